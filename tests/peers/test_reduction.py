"""Reductions, scans, softmax and normalizations against NumPy, SciPy and PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from opendml import FLOAT32, Device
from opendml.runtime.memory.host_array import Array
from opendml.spec.enums import AxisDirection, ReduceFunction
from tests.operators.normalizing import desc_of, random_values
from tests.running import run
from tests.tolerances import assert_within
from tools.terms import of_log_softmax, of_normalization, of_reduction, of_softmax

from .deviations import deviation
from .onnx_peer import PEERS, onnx_result
from .peer import FLOATS, INTEGERS, Random, computed, every_device, exact, examples, on_random, seeds

FLOAT_FUNCTIONS: dict[str, Callable[[Array, Any], Any]] = {
    "AVERAGE": lambda x, axes: x.mean(axes, keepdims=True),
    "L1": lambda x, axes: np.abs(x).sum(axes, keepdims=True),
    "L2": lambda x, axes: np.sqrt((x * x).sum(axes, keepdims=True)),
    "LOG_SUM": lambda x, axes: np.log(x.sum(axes, keepdims=True)),
    "LOG_SUM_EXP": lambda x, axes: _logsumexp(x, axes),
    "MAX": lambda x, axes: x.max(axes, keepdims=True),
    "MIN": lambda x, axes: x.min(axes, keepdims=True),
    "MULTIPLY": lambda x, axes: x.prod(axes, keepdims=True),
    "SUM": lambda x, axes: x.sum(axes, keepdims=True),
    "SUM_SQUARE": lambda x, axes: (x * x).sum(axes, keepdims=True),
}
INTEGER_FUNCTIONS: dict[str, Callable[[Array, Any], Any]] = {
    "L1": lambda x, axes: np.abs(x).sum(axes, x.dtype, keepdims=True),
    "MAX": lambda x, axes: x.max(axes, keepdims=True),
    "MIN": lambda x, axes: x.min(axes, keepdims=True),
    "MULTIPLY": lambda x, axes: x.prod(axes, x.dtype, keepdims=True),
    "SUM": lambda x, axes: x.sum(axes, x.dtype, keepdims=True),
    "SUM_SQUARE": lambda x, axes: (x * x).sum(axes, x.dtype, keepdims=True),
}
SEARCHES = {"ARGMIN": np.argmin, "ARGMAX": np.argmax}


def _logsumexp(x: Array, axes: Any) -> Any:
    special = pytest.importorskip("scipy.special", reason="SciPy is not installed")
    return special.logsumexp(x, axes, keepdims=True)


@pytest.mark.parametrize("function", FLOAT_FUNCTIONS)
@on_random
def test_float_reductions_agree_with_numpy_and_scipy(function: str, device: str, random: Random) -> None:
    shape = random.shape()
    axes = random.axes(len(shape))
    x = random.values(random.of_type(FLOATS), shape, -10, 10, special=bool(random.generator.integers(2)))
    if function == "LOG_SUM":
        x = np.abs(x)
    with np.errstate(all="ignore"):
        expected = FLOAT_FUNCTIONS[function](exact(x), tuple(axes))
    result = computed("REDUCE", x, function=ReduceFunction[function], axes=axes, device=device)
    assert_within("REDUCE", result, expected, of_reduction(ReduceFunction[function], expected))


INFINITE = np.array(
    [
        [np.inf, 1],
        [-np.inf, 1],
        [np.inf, -np.inf],
        [-np.inf, -np.inf],
        [np.nan, 1],
        [np.nan, np.inf],
        [0, np.inf],
    ]
)


@every_device
@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("function", FLOAT_FUNCTIONS)
def test_groups_with_infinities_and_nan_agree_with_numpy(function: str, name: str, device: str) -> None:
    x = INFINITE.astype(name)
    with np.errstate(all="ignore"):
        expected = FLOAT_FUNCTIONS[function](INFINITE, (1,))
    result = computed("REDUCE", x, function=ReduceFunction[function], axes=[1], device=device)
    assert_within("REDUCE", result, expected, of_reduction(ReduceFunction[function], expected))


@pytest.mark.parametrize("function", INTEGER_FUNCTIONS)
@on_random
def test_integer_reductions_wrap_as_numpy_has_them(function: str, device: str, random: Random) -> None:
    wide_only = function in ("L1", "SUM_SQUARE", "MULTIPLY", "SUM")
    dtype = random.of_type(("int32", "int64", "uint32", "uint64") if wide_only else INTEGERS)
    shape = random.shape()
    axes = random.axes(len(shape))
    x = random.full(dtype, shape)
    with np.errstate(all="ignore"):
        expected = INTEGER_FUNCTIONS[function](x, tuple(axes))
    result = computed("REDUCE", x, function=ReduceFunction[function], axes=axes, device=device)
    assert_within("REDUCE", result, expected)


@pytest.mark.parametrize("direction", AxisDirection, ids=lambda direction: direction.name.lower())
@pytest.mark.parametrize("operator", SEARCHES)
@on_random
def test_searches_count_over_the_axes_as_numpy_does(
    operator: str, direction: AxisDirection, device: str, random: Random
) -> None:
    dtype = random.of_type(FLOATS + INTEGERS)
    shape = random.shape()
    axes = random.axes(len(shape))
    x = random.values(dtype, shape, -4, 4)
    x = np.round(x)  # ties
    result = computed(operator, x, axes=axes, axis_direction=direction, device=device)
    assert result.dtype.kind in "iu"
    assert_within(operator, result, _searched(SEARCHES[operator], x, axes, direction))


def _searched(search: Callable[..., Any], x: Array, axes: list[int], direction: AxisDirection) -> Array:
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    rows = x.transpose(kept + axes).reshape([x.shape[axis] for axis in kept] + [-1])
    if direction is AxisDirection.DECREASING:
        found = rows.shape[-1] - 1 - search(rows[..., ::-1], axis=-1)
    else:
        found = search(rows, axis=-1)
    result: Array = np.asarray(found).reshape(
        [1 if axis in axes else size for axis, size in enumerate(x.shape)]
    )
    return result


SCANS: dict[str, Callable[..., Array]] = {"CUMULATIVE_SUMMATION": np.cumsum, "CUMULATIVE_PRODUCT": np.cumprod}
EXCLUSIVE = {"CUMULATIVE_SUMMATION": "has_exclusive_sum", "CUMULATIVE_PRODUCT": "has_exclusive_product"}


def _scanned(operator: str, x: Array, axis: int, direction: AxisDirection, exclusive: bool) -> Array:
    lines = np.moveaxis(x, axis, -1)
    if direction is AxisDirection.DECREASING:
        lines = lines[..., ::-1]
    if exclusive:
        first = np.full_like(lines[..., :1], 0 if operator == "CUMULATIVE_SUMMATION" else 1)
        lines = np.concatenate([first, lines[..., :-1]], -1)
    with np.errstate(all="ignore"):
        lines = SCANS[operator](lines, -1, dtype=x.dtype)
    if direction is AxisDirection.DECREASING:
        lines = lines[..., ::-1]
    result: Array = np.moveaxis(lines, -1, axis)
    return result


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("direction", AxisDirection, ids=lambda direction: direction.name.lower())
@pytest.mark.parametrize("operator", SCANS)
@on_random
def test_scans_agree_with_numpy(
    operator: str, direction: AxisDirection, exclusive: bool, device: str, random: Random
) -> None:
    shape = random.shape()
    axis = int(random.generator.integers(len(shape)))
    dtype = random.of_type((*FLOATS, "int32", "int64", "uint32", "uint64"))
    # Sums of numbers with one sign do not cancel: the order of addition leaves float64 sums alike.
    x = (
        random.values(dtype, shape, 0.5, 1.5, special=False)
        if dtype.kind == "f"
        else random.full(dtype, shape)
    )
    expected = _scanned(operator, exact(x) if dtype.kind == "f" else x, axis, direction, exclusive)
    attributes = {"axis": axis, "axis_direction": direction, EXCLUSIVE[operator]: exclusive}
    assert_within(operator, computed(operator, x, device=device, **attributes), expected)


@every_device
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("operator", SCANS)
@pytest.mark.parametrize("sizes", [(1, 3, 1, 1, 2), (1,), (1, 5), (5, 1)])
def test_scans_along_one_element(sizes: tuple[int, ...], operator: str, exclusive: bool, device: str) -> None:
    x = Random(0).values(np.dtype("float32"), sizes, 0.5, 1.5, special=False)
    for axis in [axis for axis, size in enumerate(sizes) if size == 1]:
        expected = _scanned(operator, x, axis, AxisDirection.INCREASING, exclusive)
        attributes = {
            "axis": axis,
            "axis_direction": AxisDirection.INCREASING,
            EXCLUSIVE[operator]: exclusive,
        }
        np.testing.assert_array_equal(computed(operator, x, device=device, **attributes), expected)


TORCH = {"SOFTMAX": "softmax", "LOG_SOFTMAX": "log_softmax"}


def _along(x: Array, axes: Sequence[int], function: Any) -> Array:
    """`function` of rows, where each row has all elements along the axes."""
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    order = [*kept, *axes]
    turned = x.transpose(order)
    rows = np.ascontiguousarray(turned).reshape(-1, int(np.prod([x.shape[axis] for axis in axes])))
    result: Array = np.asarray(function(rows)).reshape(turned.shape).transpose(np.argsort(order))
    return result


def _softmax(name: str, rows: Array) -> Array:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    result: Array = getattr(torch, TORCH[name])(torch.from_numpy(rows), -1).numpy()
    return result


def _check(
    name: str, result: Array, expected: Array, x: Array, axes: Sequence[int], peer: bool = False
) -> None:
    terms = of_log_softmax(x, axes) if "LOG" in name else of_softmax(x, axes, expected)
    assert_within(name, result, expected, terms, peer=peer)


@pytest.mark.parametrize("name", TORCH)
@on_random
def test_softmax_over_any_axes_agrees_with_pytorch(name: str, device: str, random: Random) -> None:
    shape = random.shape()
    axes = random.axes(len(shape))
    x = _inputs(random, shape)
    expected = _along(exact(x), axes, lambda rows: _softmax(name, rows))
    operator = f"ACTIVATION_{name}1"
    _check(operator, computed(operator, x, axes=axes, device=device), expected, x, axes)


@pytest.mark.parametrize("name", TORCH)
@on_random
def test_softmax_of_rows_agrees_with_pytorch(name: str, device: str, random: Random) -> None:
    shape = (1,) * int(random.generator.integers(3)) + random.shape(2)
    x = _inputs(random, shape)
    axes, operator = [len(shape) - 1], f"ACTIVATION_{name}"
    expected = _along(exact(x), axes, lambda rows: _softmax(name, rows))
    _check(operator, computed(operator, x, device=device), expected, x, axes)


@every_device
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", TORCH)
def test_rows_with_infinities_and_nan_agree_with_pytorch(name: str, dtype: str, device: str) -> None:
    rows = np.array([[np.inf, 1], [-np.inf, 1], [np.inf, -np.inf], [-np.inf, -np.inf], [np.nan, 1]])
    operator = f"ACTIVATION_{name}"
    result = computed(operator, rows.astype(dtype), device=device)
    _check(operator, result, _softmax(name, rows), rows, [1])


def _inputs(random: Random, shape: tuple[int, ...]) -> Array:
    """Numbers from -16 to 16, in one of two arrays also special ones of every kind."""
    x = random.values(random.of_type(FLOATS), shape, -16, 16, special=False)
    if random.generator.integers(2):
        chosen = random.generator.choice([0.0, -0.0, np.inf, -np.inf, np.nan], shape)
        x = np.where(random.generator.random(shape) < 0.05, chosen, x).astype(x.dtype)
    return x


EPSILON = 1e-5


def _torch() -> Any:
    return pytest.importorskip("torch", reason="PyTorch is not installed")


def _image(random: Random) -> Array:
    sizes = tuple(random.generator.integers(1, 7, 4).tolist())
    return random.values(random.of_type(FLOATS), sizes, -3, 3, special=False)


def _like(random: Random, x: Array, sizes: tuple[int, ...], low: float, high: float) -> Array:
    return random.values(x.dtype, sizes, low, high, special=False)


@on_random
def test_batch_normalization_agrees_with_pytorch(device: str, random: Random) -> None:
    torch, x = _torch(), _image(random)
    channels = (1, x.shape[1], 1, 1)
    mean, scale, bias = (_like(random, x, channels, -2, 2) for _ in range(3))
    variance = _like(random, x, channels, 0.1, 2)
    tensors = [torch.from_numpy(exact(each).reshape(-1)) for each in (mean, variance, scale, bias)]
    expected = torch.nn.functional.batch_norm(torch.from_numpy(exact(x)), *tensors, eps=EPSILON).numpy()
    given = (x, mean, variance, scale, bias)
    result = computed("BATCH_NORMALIZATION", *given, epsilon=EPSILON, device=device)
    assert_within("BATCH_NORMALIZATION", result, expected)


@pytest.mark.parametrize("across", [False, True])
@on_random
def test_mean_variance_normalization_agrees_with_pytorch(across: bool, device: str, random: Random) -> None:
    torch, x = _torch(), _image(random)
    scale, bias = (_like(random, x, x.shape, -2, 2) for _ in range(2))
    kept = x.shape[1:] if across else x.shape[2:]
    normalized = torch.nn.functional.layer_norm(torch.from_numpy(exact(x)), kept, eps=EPSILON).numpy()
    attributes = {"cross_channel": across, "epsilon": EPSILON, "device": device}
    result = computed("MEAN_VARIANCE_NORMALIZATION", x, scale, bias, **attributes)
    terms = of_normalization(x, (1, 2, 3) if across else (2, 3), EPSILON, scale)
    assert_within("MEAN_VARIANCE_NORMALIZATION", result, normalized * exact(scale) + exact(bias), terms)


@on_random
def test_normalization_without_the_mean_is_pytorchs_root_mean_square(device: str, random: Random) -> None:
    torch, x = _torch(), _image(random)
    expected = torch.nn.functional.rms_norm(torch.from_numpy(exact(x)), x.shape[2:], eps=EPSILON).numpy()
    attributes = {"axes": [2, 3], "use_mean": False, "use_variance": True, "epsilon": EPSILON}
    result = computed("MEAN_VARIANCE_NORMALIZATION2", x, device=device, **attributes)
    assert_within("MEAN_VARIANCE_NORMALIZATION2", result, expected)


@pytest.mark.parametrize("p", [1, 2])
@on_random
def test_lp_normalization_agrees_with_pytorch(p: int, device: str, random: Random) -> None:
    torch, x = _torch(), _image(random)
    axis = int(random.generator.integers(4))
    expected = torch.nn.functional.normalize(torch.from_numpy(exact(x)), p, axis, EPSILON).numpy()
    result = computed("LP_NORMALIZATION", x, axis=axis, p=p, epsilon=EPSILON, device=device)
    assert_within("LP_NORMALIZATION", result, expected)


RESPONSE = {"alpha": 0.3, "beta": 0.75, "bias": 1.0}


@on_random
def test_local_response_across_channels_agrees_with_pytorch(device: str, random: Random) -> None:
    torch, x = _torch(), _image(random)
    size = 2 * int(random.generator.integers(3)) + 1
    expected = torch.nn.functional.local_response_norm(
        torch.from_numpy(exact(x)), size, RESPONSE["alpha"], RESPONSE["beta"], RESPONSE["bias"]
    ).numpy()
    attributes = {"cross_channel": True, "local_size": size, **RESPONSE}
    result = computed("LOCAL_RESPONSE_NORMALIZATION", x, device=device, **attributes)
    assert_within("LOCAL_RESPONSE_NORMALIZATION", result, expected)


def _as_many_batches_as_channels(x: Array) -> Array:
    count = min(x.shape[:2])
    return x[:count, :count]


_alike = deviation(
    "LOCAL_RESPONSE_NORMALIZATION", "more or fewer batches than channels", _as_many_batches_as_channels
)


@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
@given(random=seeds)
@examples
def test_local_response_across_channels_agrees_with_onnx(size: int, peer: str, random: Random) -> None:
    if peer == "runtime" and size % 2 == 0:
        pytest.skip("ONNX Runtime has no even sizes")
    x = _image(random).astype(np.float32)
    if peer == "reference":
        x = _alike(x)
    expected = onnx_result(peer, "LRN", [x], "float32", size=size, **RESPONSE)
    attributes = {"cross_channel": True, "local_size": size, **RESPONSE}
    result = computed("LOCAL_RESPONSE_NORMALIZATION", x, device="reference", **attributes)
    assert_within("LOCAL_RESPONSE_NORMALIZATION", result, expected, peer=True)


_without_signs = deviation("LP_NORMALIZATION", "P = 1, negative elements", np.abs)


@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize("p", [1, 2])
@given(random=seeds)
@examples
def test_lp_normalization_agrees_with_onnx(p: int, peer: str, random: Random) -> None:
    x = _image(random).astype(np.float32)
    if peer == "reference" and p == 1:
        x = _without_signs(x)
    axis = int(random.generator.integers(4))
    expected = onnx_result(peer, "LpNormalization", [x], "float32", axis=axis, p=p)
    # ONNX's operator has no epsilon.
    result = computed("LP_NORMALIZATION", x, axis=axis, p=p, epsilon=0.0, device="reference")
    assert_within("LP_NORMALIZATION", result, expected, peer=True)


SIZES = [2, 6, 5, 7]
EPSILON_MVN = 1e-3


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch", reason="PyTorch is not installed")


def ours(device: Device, axes: list[int], x: Array, scale: Array, bias: Array) -> Array:
    desc = desc_of(FLOAT32, x.shape, axes, scale.shape, bias.shape, epsilon=EPSILON_MVN)
    return run(desc, [x, scale, bias], device)


def assert_equal_to(theirs: Any, device: Device, axes: list[int], *given: Array, peer: bool = False) -> None:
    """`ours` are `theirs`, which may have other sizes."""
    x, scale, _ = given
    expected = np.asarray(theirs).reshape(x.shape)
    terms = of_normalization(x, axes, EPSILON_MVN, scale)
    assert_within("MEAN_VARIANCE_NORMALIZATION1", ours(device, axes, *given), expected, terms, peer=peer)


def tensors(sizes: list[int], parameters: list[int]) -> tuple[Array, Array, Array]:
    """Values, a scale and a bias."""
    return (
        random_values(0, sizes, np.float32, 2.0),
        random_values(1, parameters, np.float32),
        random_values(2, parameters, np.float32),
    )


NORMS: dict[str, tuple[list[int], list[int], Callable[..., Any]]] = {
    "instance": (
        [6, 1, 1],
        [2, 3],
        lambda f, x, *affine: f.instance_norm(x, None, None, *affine, eps=EPSILON_MVN),
    ),
    "layer": ([1, 5, 7], [2, 3], lambda f, x, *affine: f.layer_norm(x, [5, 7], *affine, EPSILON_MVN)),
    "group": ([6, 1, 1], [2, 3, 4], lambda f, x, *affine: f.group_norm(x, 3, *affine, EPSILON_MVN)),
    "batch": (
        [6, 1, 1],
        [0, 2, 3],
        lambda f, x, *affine: f.batch_norm(x, None, None, *affine, True, 0.1, EPSILON_MVN),
    ),
}
"""PyTorch's normalizations: sizes of their scales after the first, and the axes here."""


@pytest.mark.parametrize("name", NORMS)
def test_axes_say_which_of_pytorchs_normalizations_it_is(name: str, torch: Any, device: Device) -> None:
    parameters, axes, function = NORMS[name]
    x, scale, bias = tensors(SIZES, [1, *parameters])
    wide = torch.from_numpy(exact(x))
    affine = (
        torch.from_numpy(exact(each).reshape([n for n in parameters if n > 1])) for each in (scale, bias)
    )
    theirs = function(torch.nn.functional, wide, *affine)
    given: Sequence[Array] = (x, scale, bias)
    if name == "group":
        given = [each.reshape(each.shape[0], 3, -1, *each.shape[2:]) for each in given]
    assert_equal_to(theirs, device, axes, *given)
