"""Tensors whose elements are not those in their memory, or that have no memory: they are read as PyTorch
reads them, or refused."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import opendml as dml  # noqa: E402
from opendml import InvalidArgument  # noqa: E402
from opendml.frontends.torch.report import FallbackWarning  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


def _computed_lazily() -> dict[str, Any]:
    """Tensors whose elements are not those in their memory."""
    return {
        "negative imaginary parts": torch.complex(torch.ones(3, 2), torch.full((3, 2), 2.0)).conj().imag,
        "negatives": torch._neg_view(torch.arange(6.0).reshape(3, 2)),
        "zeros without memory": torch._efficientzerotensor((3, 2)),
    }


NAMES = pytest.mark.parametrize("name", _computed_lazily())


@NAMES
@pytest.mark.parametrize("options", [None, {"freezing": True}])
def test_what_is_computed_when_it_is_read_is_read_so(name: str, options: dict[str, Any] | None) -> None:
    given = _computed_lazily()[name]
    run = torch.compile(lambda x: (x * 2 + 1, x.T), backend="opendml", options=options)
    for result, wanted in zip(run(given), (given.clone() * 2 + 1, given.clone().T), strict=True):
        assert torch.equal(result.clone().resolve_neg(), wanted)


def test_a_lazy_sign_that_a_graph_makes_is_read() -> None:
    z = torch.complex(torch.randn(3, 4), torch.randn(3, 4))

    def function(z: Any) -> Any:
        return z.conj().imag * 2 + torch._neg_view(z.real).exp()

    with pytest.warns(FallbackWarning):
        torch.testing.assert_close(torch.compile(function, backend="opendml")(z), function(z))


@NAMES
def test_calls_refuse_what_is_computed_when_it_is_read(name: str) -> None:
    given, out = _computed_lazily()[name], torch.zeros(3, 2)
    problem = "without memory; use clone" if "without" in name else "negative bit set; use resolve_neg"
    with pytest.raises(InvalidArgument, match=rf"element_wise_add\.a: .*{problem}"):
        dml.element_wise_add(given, given)
    with pytest.raises(InvalidArgument, match=problem):
        dml.element_wise_add(out, out, out=given)
    dml.element_wise_add(given.clone().resolve_neg(), out, out=out)
    assert torch.equal(out, given.clone().resolve_neg())


def test_tensors_without_memory_are_refused() -> None:
    freed = torch.ones(3)
    freed.untyped_storage().resize_(0)
    with torch._subclasses.FakeTensorMode():
        fake = torch.ones(3)
    for given in (freed, fake):
        with pytest.raises(InvalidArgument, match=r"without memory|data pointer"):
            dml.element_wise_add(given, given)
    run = torch.compile(lambda x: x + 1, backend="opendml")
    run(torch.ones(3))
    with pytest.raises(InvalidArgument, match="an input without memory"):
        run(freed)


def test_graphs_on_other_devices_are_left_to_pytorch() -> None:
    with pytest.warns(FallbackWarning):
        result = torch.compile(lambda x: x + 1, backend="opendml")(torch.ones(3, device="meta"))
    assert result.device.type == "meta"


def test_repeated_memory_is_copied_once() -> None:
    given = torch._neg_view(torch.randn(3, 1)).expand(3, 4)
    run = torch.compile(lambda x: x * 2 + 1, backend="opendml")
    torch.testing.assert_close(run(given), given * 2 + 1)


@pytest.mark.parametrize("name", ["prod", "max"])
def test_second_derivatives_are_those_of_pytorch(name: str) -> None:
    function = torch.func.hessian(lambda x: getattr(x, name)())
    x = torch.rand(4) + 0.5
    with pytest.warns(FallbackWarning):
        torch.testing.assert_close(torch.compile(function, backend="opendml")(x), function(x))
