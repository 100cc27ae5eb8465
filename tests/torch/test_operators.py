"""PyTorch's operators, each compiled alone, give what PyTorch gives."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
functional = torch.nn.functional
aten = torch.ops.aten

from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402

import opendml as dml  # noqa: E402
from opendml.frontends.torch import part  # noqa: E402
from opendml.frontends.torch.conversion import TorchConversion  # noqa: E402
from opendml.frontends.torch.operators import elementwise  # noqa: E402
from opendml.frontends.torch.registry import CONVERTERS  # noqa: E402
from tests.torch.compared import compiled, require_equal, require_within  # noqa: E402


def numbers(*sizes: int, low: float = -3, high: float = 3, type: Any = None) -> Any:
    """Random numbers, always the same for the same arguments."""
    generator = torch.Generator().manual_seed(len(sizes) + sum(sizes))
    values = torch.rand(sizes, generator=generator) * (high - low) + low
    return values.to(type) if type is not None else values


def whole(*sizes: int, high: int = 10, low: int = 0, type: Any = torch.int64) -> Any:
    """Random whole numbers, `high` not among them."""
    generator = torch.Generator().manual_seed(sum(sizes))
    return torch.randint(low, high, sizes, generator=generator, dtype=type)


@pytest.fixture(autouse=True)
def on_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is said of an operator is tested; that devices run it is tested elsewhere."""
    monkeypatch.setattr(part, "Device", lambda kind: dml.Device("reference"))


X, Y = numbers(2, 3, 4), numbers(2, 3, 4, low=0.1)
ROW, ONE = numbers(4), torch.tensor(1.5)
TRUTH = numbers(2, 3, 4) > 0

UNARY = (
    "abs asinh atan ceil cos cosh erf exp expm1 floor isinf isnan logical_not neg relu round sigmoid sign "
    "sin sinh tan tanh trunc"
)
BETWEEN = {"acos": (-1, 1), "asin": (-1, 1), "atanh": (-0.9, 0.9), "acosh": (1, 5), "log": (0.1, 5)}
POSITIVE = "log1p log2 log10 sqrt rsqrt reciprocal"


@pytest.mark.parametrize("name", UNARY.split())
def test_functions_of_one_number(name: str) -> None:
    require_equal(getattr(torch, name), X)


@pytest.mark.parametrize("name", [*BETWEEN, *POSITIVE.split()])
def test_functions_of_numbers_in_a_range(name: str) -> None:
    low, high = BETWEEN.get(name, (0.1, 5))
    require_equal(getattr(torch, name), numbers(2, 3, 4, low=low, high=high))


ELEMENT_WISE: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "add a row": (torch.add, (X, ROW)),
    "add a number": (lambda x: x + 2, (X,)),
    "add with alpha": (lambda x, y: torch.add(x, y, alpha=0.5), (X, Y)),
    "add integers": (torch.add, (whole(3, 4), whole(4))),
    "add an integer to floats": (torch.add, (X, whole(4))),
    "add truth": (torch.add, (TRUTH, TRUTH[:1])),
    "add a tensor without dimensions": (torch.add, (X, ONE)),
    "two tensors without dimensions": (torch.mul, (ONE, torch.tensor(2.0))),
    "subtract with alpha": (lambda x, y: torch.sub(x, y, alpha=2), (X, Y)),
    "subtract from a number": (lambda x: 1 - x, (X,)),
    "multiply by truth": (torch.mul, (X, TRUTH)),
    "divide": (torch.div, (X, Y)),
    "divide integers": (torch.div, (whole(3, 4), whole(3, 4, low=1))),
    "divide down": (lambda x, y: torch.div(x, y, rounding_mode="floor"), (X, Y)),
    "divide toward zero": (lambda x, y: torch.div(x, y, rounding_mode="trunc"), (X, Y)),
    "divide integers down": (lambda x, y: x // y, (whole(3, 4, low=-9), torch.tensor([2, -3, 7, -1]))),
    "divide integers toward zero": (
        lambda x: torch.div(x, -4, rounding_mode="trunc"),
        (whole(3, 4, low=-9, type=torch.int32),),
    ),
    "remainder": (torch.remainder, (X, Y)),
    "fmod": (torch.fmod, (X, Y)),
    "atan2": (torch.atan2, (X, Y)),
    "maximum with NaN": (torch.maximum, (X.masked_fill(TRUTH, torch.nan), ROW)),
    "minimum with NaN": (torch.minimum, (ROW.half(), X.masked_fill(TRUTH, torch.nan).half())),
    "maximum of truth": (torch.maximum, (TRUTH, TRUTH[:1])),
    "relu of NaN": (torch.relu, (X.masked_fill(TRUTH, torch.nan),)),
    "clamp of NaN": (lambda x: x.clamp(-1, 1), (X.masked_fill(TRUTH, torch.nan),)),
    "greatest elements with NaN": (lambda x: x.amax(0), (X.masked_fill(TRUTH, torch.nan),)),
    "square": (lambda x: x**2, (X,)),
    "cube": (lambda x: x**3, (X,)),
    "root": (lambda x: x**0.5, (Y,)),
    "any power": (lambda x: x**-1.5, (Y,)),
    "powers": (torch.pow, (Y, X)),
    "power of a number": (lambda x: 2**x, (X,)),
    "clamp": (lambda x: x.clamp(-1, 1), (X,)),
    "clamp below": (lambda x: x.clamp(min=0.5), (X,)),
    "clamp integers": (lambda x: x.clamp(2, 5), (whole(3, 4),)),
    "where": (torch.where, (TRUTH, X, Y)),
    "where with a number": (lambda c, x: torch.where(c, x, 0.0), (TRUTH, X)),
    "masked fill": (lambda x, c: x.masked_fill(c, -torch.inf), (X, TRUTH[:1])),
    "equal": (torch.eq, (whole(3, 4), whole(4))),
    "not equal": (lambda x: x != 1, (whole(3, 4),)),
    "greater": (torch.gt, (X, ROW)),
    "at most": (lambda x: x <= 0.5, (X,)),
    "an integer less than a float": (lambda x: x < 2.5, (whole(3, 4),)),
    "at least": (torch.ge, (X, Y)),
    "both": (torch.logical_and, (TRUTH, X)),
    "bits of truth": (lambda x, y: (x & y) | ~x, (TRUTH, TRUTH[:1])),
    "bits": (lambda x, y: (x & y) ^ ~x, (whole(3, 4, type=torch.int32), whole(4, type=torch.int32))),
    "halves": (lambda x, y: x * y + 1, (X.half(), Y.half())),
    "to half": (lambda x: x.half(), (X,)),
    "to integers": (lambda x: x.to(torch.int64), (X,)),
    "to truth": (lambda x: x.to(torch.bool), (whole(3, 4),)),
    "truth to floats": (lambda x: x.float(), (TRUTH,)),
    "gelu": (functional.gelu, (X,)),
    "gelu by tanh": (lambda x: functional.gelu(x, approximate="tanh"), (X,)),
    "silu": (functional.silu, (X,)),
    "hardswish": (functional.hardswish, (X * 2,)),
    "hardsigmoid": (functional.hardsigmoid, (X * 2,)),
    "relu6": (functional.relu6, (X * 3,)),
    "leaky_relu": (functional.leaky_relu, (X,)),
    "elu": (lambda x: functional.elu(x, 0.5), (X,)),
    "selu": (functional.selu, (X,)),
    "softplus": (functional.softplus, (X,)),
    "mish": (functional.mish, (X,)),
}


@pytest.mark.parametrize(
    ("function", "tensors"),
    [(torch.maximum, [X, Y]), (torch.minimum, [X, Y]), (torch.relu, [X]), (lambda x: x.clamp(-1, 1), [X])],
)
def test_extremes_are_one_operator_each(function: Callable[..., Any], tensors: list[Any]) -> None:
    module = make_fx(function, tracing_mode="fake")(*tensors)
    graph = dml.Graph()
    (node,) = (each for each in module.graph.nodes if each.op == "call_function")
    inputs = {each: part.added_input(graph, each.name, each.meta["val"]) for each in node.all_input_nodes}
    TorchConversion(node, graph, inputs.__getitem__).converted()
    assert "; 1 operator>" in repr(graph)


@pytest.mark.parametrize("case", ELEMENT_WISE)
def test_element_wise(case: str) -> None:
    function, tensors = ELEMENT_WISE[case]
    tolerance = 2e-3 if tensors[0].dtype is torch.float16 else 1e-5
    require_equal(function, *tensors, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ["expm1", "log1p"])
def test_small_numbers_keep_their_digits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    x = torch.tensor([0, 1e-30, -3e-9, 1e-7, -2e-4, 0.01, -0.3, 0.7, -1, 5, 40, torch.inf])
    require_equal(getattr(torch, name), x, rtol=1e-6, atol=0)


MOVED: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "reshape": (lambda x: (x + 1).reshape(4, 6), (X,)),
    "permute": (lambda x: (x + 1).permute(2, 0, 1).contiguous(), (X,)),
    "transposed and added": (lambda x: x.transpose(0, 2) + 1, (X,)),
    "transposed input": (lambda x: x + 1, (X.transpose(0, 2),)),
    "strided input": (lambda x: x + 1, (X[:, ::2, 1:3],)),
    "repeated input": (lambda x: x * 2, (ROW.expand(3, 4),)),
    "expand": (lambda x, y: x.expand(2, 3, 4) + y, (ROW, X)),
    "squeeze": (lambda x: (x * 2).squeeze(1).unsqueeze(-1), (X[:, :1],)),
    "slice": (lambda x: x[:, 1:, ::2] * 2, (X,)),
    "negative slice": (lambda x: x[:, -2:] * 2, (X,)),
    "select": (lambda x: x[:, -1] * 2, (X,)),
    "select one element": (lambda x: x[0, 0, 0] * 2, (X,)),
    "split": (lambda x: [each * 2 for each in x.split([1, 2], 1)], (X,)),
    "chunk": (lambda x: torch.cat(x.chunk(2, 2)[::-1], 2), (X,)),
    "flip": (lambda x: x.flip(0, 2), (X,)),
    "cat": (lambda x, y: torch.cat([x, y, x], -1), (X, Y)),
    "cat with nothing": (lambda x: torch.cat([torch.empty(0), x], 1), (X,)),
    "cat of types": (lambda x, y: torch.cat([x, y]), (X, whole(1, 3, 4))),
    "stack": (lambda x, y: torch.stack([x, y], 1), (X, Y)),
    "slice replaced": (lambda x, y: x.slice_scatter(y[:, 1:2], 1, 1, 2), (X, Y)),
    "every other element replaced": (lambda x, y: x.slice_scatter(y[:, :, 1:3], 2, 0, 3, 2), (X, Y)),
    "element replaced": (lambda x, y: x.select_scatter(y[:, 0], 1, -1), (X, Y)),
    "copied over": (lambda x, y: aten.copy(x, y), (X, whole(3, 1))),
    "copied over as truth": (lambda x, y: aten.copy(x, y), (TRUTH, whole(3, 1, high=2))),
    "other strides": (lambda x: (x + 1).as_strided((3, 2), (4, 2), 5), (X,)),
    "other strides of a transposed tensor": (lambda x: (x.mT + 1).as_strided((4, 2), (1, 6)), (X,)),
    "overlapping strides": (lambda x: (x + 1).as_strided((3, 3), (1, 1)), (X,)),
    "all memory replaced": (
        lambda x, y: aten.as_strided_scatter(x.mT, y, (4, 6), (1, 4)),
        (X, numbers(4, 6)),
    ),
    "roll": (lambda x: x.roll((1, -1), (0, 2)), (X,)),
    "roll all": (lambda x: x.roll(5), (X,)),
    "repeat": (lambda x: x.repeat(2, 1, 1, 3), (X,)),
    "pad": (lambda x: functional.pad(x, (1, 2, 0, 1), value=0.5), (X,)),
    "pad integers": (lambda x: functional.pad(x, (1, 0), value=-100.0), (whole(3, 4),)),
    "pad and cut": (lambda x: functional.pad(x, (-1, 2)), (X,)),
    "pad mirrored": (lambda x: functional.pad(x, (2, 1), mode="reflect"), (X,)),
    "pad an image mirrored": (
        lambda x: functional.pad(x, (2, 1, 0, 1), mode="reflect"),
        (numbers(1, 2, 3, 4),),
    ),
    "pad with the ends": (lambda x: functional.pad(x, (2, 1), mode="replicate"), (X,)),
    "pad an image with the ends": (
        lambda x: functional.pad(x, (2, 1, 0, 5), mode="replicate"),
        (numbers(1, 2, 3, 4),),
    ),
    "slice_backward": (lambda x: aten.slice_backward(x, [2, 3, 8], 2, 1, 8, 2), (X,)),
    "select_backward": (lambda x: aten.select_backward(x, [2, 5, 3, 4], 1, -2), (X,)),
    "embedding": (functional.embedding, (whole(2, 5), numbers(10, 4))),
    "index_select": (lambda x, i: x.index_select(1, i), (X, whole(5, high=3))),
    "index": (lambda x, i: x[:, i], (X, whole(2, 2, high=3))),
    "indices of two dimensions": (
        lambda x, i, j: x[i, j],
        (X, whole(5, high=2), whole(2, 1, high=3, low=-3)),
    ),
    "indices of the last dimensions": (lambda x, i: x[:, i, i - 4], (X, whole(5, high=3))),
    "indices of dimensions apart": (lambda x, i: x[i, :, i], (X, whole(5, high=2))),
    "indices of all dimensions": (lambda x, i: x[i, i, i], (X, whole(2, 2, high=2))),
    "gather": (lambda x, i: x.gather(1, i), (X, whole(2, 2, 4, high=3))),
    "scatter a number": (lambda x, i: x.scatter(1, i, 7.0), (X, whole(2, 1, 4, high=3))),
    "scatter": (lambda x, i, y: x.scatter(1, i, y), (X, whole(2, 1, 4, high=3), Y[:, :1].contiguous())),
    "put rows": (lambda x, i, y: x.index_put((i,), y), (X, torch.tensor([1]), Y[:1])),
    "put a number": (lambda x, i: x.index_put((i,), torch.tensor(7.0)), (X, torch.tensor([-1]))),
    "put in a middle dimension": (
        lambda x, i, y: aten.index_put(x, [None, i], y),
        (X, torch.tensor([[2], [0]]), numbers(2, 2, 1, 4)),
    ),
    "put in two dimensions": (
        lambda x, i, j, y: aten.index_put(x, [None, i, j], y),
        (X, torch.tensor([2, 0]), torch.tensor([[1], [-2], [0]]), numbers(3, 2)),
    ),
    "put in dimensions apart": (
        lambda x, i, y: aten.index_put(x, [i, None, i], y),
        (X, torch.tensor([1, 0]), numbers(2, 3)),
    ),
    "put where a mask is true": (lambda x, one: aten.index_put(x, [x > 0], one), (X, ONE)),
    "put where a mask of rows is true": (
        lambda x, y, one: aten.index_put(x, [y[:, :, 0] > 1], one),
        (X, Y, ONE),
    ),
    "triangle": (lambda x: torch.tril(x) + torch.triu(x, 1), (numbers(4, 4),)),
    "arange": (lambda x: x + torch.arange(4), (X,)),
    "full": (lambda x: x + torch.full((4,), 2.5) + torch.ones_like(x) + x.new_zeros(4), (X,)),
    "channels last": (lambda x: x.relu(), (numbers(2, 3, 4, 5).to(memory_format=torch.channels_last),)),
}


@pytest.mark.parametrize("case", MOVED)
def test_what_moves_elements(case: str) -> None:
    function, tensors = MOVED[case]
    require_equal(function, *tensors)


REDUCED: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "sum": (torch.sum, (X,)),
    "sum of truth": (torch.sum, (TRUTH,)),
    "sum along": (lambda x: x.sum((0, -1)), (X,)),
    "sum keeping": (lambda x: x.sum(1, keepdim=True), (X,)),
    "mean": (lambda x: x.mean(-1), (X,)),
    "amax": (lambda x: x.amax((0, 1)), (X,)),
    "amin": (lambda x: x.amin(2), (X,)),
    "prod": (lambda x: x.prod(1), (X,)),
    "any": (lambda x: x.any(1), (TRUTH,)),
    "all": (lambda x: x.all(), (TRUTH,)),
    "any of numbers": (lambda x: x.any(0), (whole(2, 3, high=2),)),
    "argmax": (lambda x: x.argmax(1), (X,)),
    "argmax of all": (lambda x: x.argmax(), (X,)),
    "argmin": (lambda x: x.argmin(-1, keepdim=True), (X,)),
    "cumsum": (lambda x: x.cumsum(1), (X,)),
    "cumprod": (lambda x: x.cumprod(1), (X,)),
    "max along": (lambda x: x.max(1), (X,)),
    "min along": (lambda x: x.min(-1, keepdim=True), (X,)),
    "min of equal ones": (lambda x: x.min(1), (whole(3, 9, high=3),)),
    "cumsum of truth": (lambda x: x.cumsum(-1), (TRUTH,)),
    "var": (lambda x: x.var(1), (X,)),
    "var of the population": (lambda x: x.var((0, 2), correction=0), (X,)),
    "var and mean": (lambda x: torch.var_mean(x, -1), (X,)),
    "std": (lambda x: x.std(1), (X,)),
    "topk": (lambda x: x.topk(2, 1), (X,)),
    "logsumexp": (lambda x: x.logsumexp(-1), (X,)),
    "softmax": (lambda x: x.softmax(1), (X,)),
    "log_softmax": (lambda x: x.log_softmax(-1), (X,)),
    "softmax_backward": (lambda g, y: aten._softmax_backward_data(g, y, 1, torch.float32), (X, Y)),
    "norm": (lambda x: torch.linalg.vector_norm(x, dim=1), (X,)),
    "cross entropy": (functional.cross_entropy, (numbers(5, 10), whole(5))),
    "mse": (functional.mse_loss, (X, Y)),
}


@pytest.mark.parametrize("case", REDUCED)
def test_reductions(case: str) -> None:
    function, tensors = REDUCED[case]
    require_equal(function, *tensors)


A, B, C = numbers(5, 7), numbers(7, 6), numbers(6)
IMAGE = numbers(2, 4, 8, 9)
NORMALIZED: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "mm": (torch.mm, (A, B)),
    "mm of a transposed matrix": (lambda a, b: a @ b.t(), (A, numbers(6, 7))),
    "bmm": (torch.bmm, (numbers(3, 5, 7), numbers(3, 7, 2))),
    "matmul of four dimensions": (torch.matmul, (numbers(2, 3, 5, 7), numbers(2, 3, 7, 2))),
    "addmm": (lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=2), (C, A, B)),
    "baddbmm": (torch.baddbmm, (numbers(1, 5, 2), numbers(3, 5, 7), numbers(3, 7, 2))),
    "linear": (functional.linear, (numbers(2, 3, 7), numbers(6, 7), C)),
    "matrix and vector": (torch.mv, (A, numbers(7))),
    "dot": (torch.dot, (numbers(7), numbers(7, low=0))),
    "einsum": (lambda a, b: torch.einsum("bik,bjk->bij", a, b), (numbers(2, 3, 4), numbers(2, 5, 4))),
    "layer norm": (lambda x, w, b: functional.layer_norm(x, (4,), w, b), (X, ROW, ROW)),
    "layer norm alone": (lambda x: functional.layer_norm(x, (3, 4)), (X,)),
    "layer norm for training": (lambda x: aten.native_layer_norm(x, [4], None, None, 1e-5), (X,)),
    "batch norm": (
        lambda x, m, v, w, b: functional.batch_norm(x, m, v, w, b),
        (IMAGE, numbers(4), numbers(4, low=0.5), numbers(4), numbers(4)),
    ),
    "batch norm of the batch": (
        lambda x, w, b, m, v: aten._native_batch_norm_legit_functional(x, w, b, m, v, True, 0.1, 1e-5),
        (IMAGE, numbers(4), numbers(4), numbers(4), numbers(4, low=0.5)),
    ),
    "batch norm backward": (
        lambda g, x, w, m, v, c, d: aten.native_batch_norm_backward(
            g, x, w, m, v, c, d, True, 1e-5, [True, True, True]
        ),
        (IMAGE.flip(0), IMAGE, *(numbers(4, low=0.5) for _ in range(5))),
    ),
    "group norm": (lambda x: functional.group_norm(x, 2), (IMAGE,)),
    "instance norm": (functional.instance_norm, (IMAGE,)),
    "max pool": (lambda x: functional.max_pool2d(x, 3, 2, 1), (IMAGE,)),
    "max pool with ceil_mode": (lambda x: functional.max_pool2d(x, 3, 2, ceil_mode=True), (IMAGE,)),
    "max pool with dilation": (lambda x: functional.max_pool2d(x, 2, 1, dilation=2), (IMAGE,)),
    "max pool with indices": (lambda x: functional.max_pool2d(x, 3, 2, 1, return_indices=True), (IMAGE,)),
    "average pool": (lambda x: functional.avg_pool2d(x, 3, 2), (IMAGE,)),
    "average pool with padding": (lambda x: functional.avg_pool2d(x, 3, 2, 1), (IMAGE,)),
    "average pool without padding": (
        lambda x: functional.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
        (IMAGE,),
    ),
    "average pool with ceil_mode": (lambda x: functional.avg_pool2d(x, 3, 2, ceil_mode=True), (IMAGE,)),
    "adaptive average pool": (lambda x: functional.adaptive_avg_pool2d(x, (4, 3)), (IMAGE,)),
    "adaptive average pool to more": (lambda x: functional.adaptive_avg_pool2d(x[:, :, :3, :2], 5), (IMAGE,)),
    "adaptive average pool to less": (lambda x: functional.adaptive_avg_pool2d(x, (5, 4)), (IMAGE,)),
    "adaptive average pool to one": (lambda x: functional.adaptive_avg_pool2d(x, 1), (IMAGE,)),
    "attention": (
        lambda q, k, v: functional.scaled_dot_product_attention(q, k, v),
        (numbers(2, 3, 5, 4), numbers(2, 3, 6, 4), numbers(2, 3, 6, 4)),
    ),
}


@pytest.mark.parametrize("case", NORMALIZED)
def test_products_normalizations_and_pooling(case: str) -> None:
    function, tensors = NORMALIZED[case]
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        require_equal(function, *tensors)


CONVOLUTIONS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "plain": ((2, 4, 8, 9), (6, 4, 3, 3), {}),
    "strides that leave a rest": ((2, 4, 8, 9), (6, 4, 3, 3), {"stride": [2, 3], "padding": [1, 0]}),
    "dilation": ((2, 4, 9, 9), (6, 4, 3, 2), {"dilation": [2, 1], "padding": [2, 1]}),
    "groups": ((2, 4, 8, 9), (6, 2, 3, 3), {"groups": 2, "padding": [1, 1]}),
    "one channel each": ((2, 4, 8, 9), (4, 1, 3, 3), {"groups": 4, "stride": [2, 2], "padding": [1, 1]}),
    "one element": ((2, 4, 5, 5), (6, 4, 1, 1), {}),
    "one dimension": ((2, 4, 9), (6, 4, 3), {"stride": [2]}),
    "three dimensions": ((1, 2, 5, 6, 4), (3, 2, 2, 3, 2), {}),
    "transposed": ((2, 4, 5, 6), (4, 3, 3, 3), {"transposed": True, "stride": [2, 2], "padding": [1, 1]}),
    "transposed, more output": (
        (2, 4, 5, 6),
        (4, 2, 3, 3),
        {"transposed": True, "stride": [2, 2], "output_padding": [1, 1], "groups": 2},
    ),
}


def _convolution(case: str) -> tuple[Any, Any, list[Any]]:
    sizes, filters, options = CONVOLUTIONS[case]
    spatial = len(sizes) - 2
    arguments = [
        options.get("stride", [1] * spatial),
        options.get("padding", [0] * spatial),
        options.get("dilation", [1] * spatial),
        options.get("transposed", False),
        options.get("output_padding", [0] * spatial),
        options.get("groups", 1),
    ]
    return numbers(*sizes), numbers(*filters), arguments


@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_convolutions(case: str) -> None:
    x, weight, arguments = _convolution(case)
    outputs = weight.shape[1] * arguments[-1] if arguments[3] else weight.shape[0]
    given = x, weight, numbers(outputs)
    require_equal(lambda *t: aten.convolution(*t, *arguments), *given)
    require_within("CONVOLUTION", lambda *t: aten.convolution(*t, *arguments), *given)


@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_gradients_of_convolutions(case: str) -> None:
    x, weight, arguments = _convolution(case)
    gradient = numbers(*aten.convolution(x, weight, None, *arguments).shape)

    def function(*tensors: Any) -> Any:
        bias = [gradient.shape[1]]
        return aten.convolution_backward(*tensors, bias, *arguments, [True, True, True])

    require_equal(function, gradient, x, weight, atol=1e-4)
    require_within("CONVOLUTION", function, gradient, x, weight)


@pytest.mark.parametrize("ceil", [False, True])
def test_gradients_of_pooling(ceil: bool) -> None:
    options = ([3, 3], [2, 2], [1, 0])
    values, indices = aten.max_pool2d_with_indices(IMAGE, *options, [1, 1], ceil)

    def of_greatest(gradient: Any, x: Any, numbers: Any) -> Any:
        return aten.max_pool2d_with_indices_backward(gradient, x, *options, [1, 1], ceil, numbers)

    def of_mean(gradient: Any, x: Any) -> Any:
        return aten.avg_pool2d_backward(gradient, x, *options, ceil, ceil is False, None)

    require_equal(of_greatest, values.sin(), IMAGE, indices)
    require_equal(of_mean, values.sin(), IMAGE)


@pytest.mark.parametrize("sizes", [(4, 3), (5, 4), (11, 10)])
def test_gradients_of_pooling_to_a_size(sizes: tuple[int, int]) -> None:
    require_equal(aten._adaptive_avg_pool2d_backward, numbers(2, 4, *sizes), IMAGE)


def test_what_directml_cannot_say_stays_in_pytorch() -> None:
    cases: dict[Callable[..., Any], tuple[Any, str]] = {
        lambda x: torch.fft.fft(x).real: (X, "no mapping"),
        lambda x: x.double().sin(): (X, "FLOAT64"),
        lambda x: x[:, :0] * 2: (X, "no elements"),
        lambda x: aten.index_add(x, -1, (x[0, 0] > 0).long(), x): (X, "faster kernel"),
    }
    for function, (tensor, reason) in cases.items():
        run, report = compiled(function, tensor)
        assert report.left
        assert any(reason in each for each in report.reasons.values()), str(report)
        torch.testing.assert_close(run(tensor), function(tensor))


def test_views_of_results_and_inputs_share_their_memory() -> None:
    def function(x: Any) -> Any:
        y = x * 2
        return y, y.t(), x.t(), y[1:]

    run, _ = compiled(function, A)
    y, transposed, seen, stretch = run(A)
    assert transposed.data_ptr() == y.data_ptr()
    assert seen.data_ptr() == A.data_ptr()
    assert stretch.data_ptr() == y[1:].data_ptr()
    torch.testing.assert_close(transposed, (A * 2).t())


def test_parts_alternate_with_what_is_left() -> None:
    def function(x: Any) -> Any:
        y = torch.fft.fft(x + 1).real
        return (y * 2 + x.exp()).sum()

    run, report = compiled(function, A)
    assert report.part_count == 2
    torch.testing.assert_close(run(A), function(A), rtol=1e-5, atol=1e-4)


def test_every_overload_that_is_converted_is_one_of_pytorch() -> None:
    for _, name in CONVERTERS.names():
        namespace, operator, overload = name.split(".")
        assert str(getattr(getattr(getattr(torch.ops, namespace), operator), overload)) == name


def test_the_page_about_adding_an_operator_adds_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The block of docs/design/adding_a_pytorch_operator.md, in a registry of its own."""
    page = Path(__file__).parents[2] / "docs" / "design" / "adding_a_pytorch_operator.md"
    (block,) = re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)

    schema = "(Tensor x, float scale=0.5) -> Tensor"
    made = torch.library.custom_op(
        "example::half_square", lambda x, scale=0.5: scale * x * x, mutates_args=(), schema=schema
    )
    made.register_fake(lambda x, scale=0.5: torch.empty_like(x))
    require_equal(torch.ops.example.half_square, X, left=1)
    for name in ("_converters", "_operators"):
        monkeypatch.setattr(CONVERTERS, name, copy.copy(getattr(CONVERTERS, name)))
    exec(block, dict(vars(elementwise)))
    assert CONVERTERS.directml_names()["example.half_square.default"] == {"ELEMENT_WISE_MULTIPLY"}
    require_equal(torch.ops.example.half_square, X)
    require_equal(torch.ops.example.half_square, X, 0.25)
    require_equal(torch.ops.example.half_square, whole(3), left=1)
