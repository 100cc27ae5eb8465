"""Functions of PyTorch on bfloat16, compared with PyTorch itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from opendml.frontends.torch.report import explained  # noqa: E402
from tests.torch.compared import compiled  # noqa: E402

functional = torch.nn.functional
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


def numbers(*sizes: int) -> Any:
    """Return normal numbers of bfloat16."""
    return torch.randn(sizes, generator=torch.Generator().manual_seed(sum(sizes))).bfloat16()


A, B, IMAGE = numbers(4, 6), numbers(6, 8), numbers(2, 3, 9, 9)
CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "product": (torch.matmul, (A, B)),
    "product of a transpose": (lambda a, b: a.t() @ b, (A, numbers(4, 3))),
    "product of a transposed input": (torch.matmul, (numbers(6, 4).t(), B)),
    "linear": (functional.linear, (A, numbers(8, 6), numbers(8))),
    "from float32": (lambda x: x.bfloat16(), (A.float() / 3,)),
    "to float32": (lambda x: x.float(), (A,)),
    "product to float32": (lambda a, b: (a @ b).float(), (A, B)),
    "transposed result": (lambda x: x.t() * 2, (A,)),
    "sum": (lambda x: x.sum(0), (A,)),
    "mean to float32": (lambda x: x.mean(1, dtype=torch.float32), (A,)),
    "joined": (lambda x: torch.cat([x, x * 2]), (A,)),
    "chosen": (lambda w, i: functional.embedding(i, w), (B, torch.tensor([1, 5, 0]))),
    "compared": (lambda x: x > 0.5, (A,)),
    "masked": (lambda x: x.masked_fill(x < 0, torch.finfo(torch.bfloat16).min), (A,)),
    "with float32": (torch.add, (A, A.float() / 3)),
    "softmax": (lambda x: x.softmax(-1), (A,)),
    "layer normalization": (lambda x: functional.layer_norm(x, (6,)), (A,)),
    "convolution": (functional.conv2d, (IMAGE, numbers(4, 3, 3, 3), numbers(4))),
    "attention": (functional.scaled_dot_product_attention, (numbers(1, 2, 5, 8),) * 3),
}


@pytest.mark.parametrize("name", CASES)
def test_functions_of_bfloat16_are_within_a_rounding_of_pytorch(name: str) -> None:
    function, tensors = CASES[name]
    run, report = compiled(function, *tensors)
    assert not report.left, str(report)
    found, expected = run(*tensors), function(*tensors)
    if name != "attention":  # whose strides PyTorch's own trace gets wrong
        assert found.stride() == expected.stride()
    torch.testing.assert_close(found, expected, rtol=2.0**-7, atol=1e-2)


def test_a_network_of_bfloat16_runs_whole_and_as_exactly_as_in_pytorch() -> None:
    torch.manual_seed(0)
    layer = torch.nn.Sequential(
        torch.nn.LayerNorm(64), torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.Linear(128, 64)
    )
    x = torch.randn(2, 11, 64)
    with torch.no_grad(), explained() as explanation:
        exact = layer.double()(x.double())
        layer.bfloat16()
        run = torch.compile(layer, backend="opendml")
        found, eager = run(x.bfloat16()), layer(x.bfloat16())
    assert not explanation.graphs[0].left, str(explanation)
    assert found.dtype is torch.bfloat16
    assert (found - exact).abs().max() <= 1.5 * (eager - exact).abs().max()
