"""Normalization against float64: shapes, axes, broadcasting, extreme groups, fused activations."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import pytest

from opendml import FLOAT16, FLOAT32, Device, TensorDataType, TensorDesc
from opendml.runtime.memory.host_array import Array
from opendml.spec.descs import desc_class
from opendml.spec.fused_activation import fusable_since
from tests.operators.normalizing import assert_normalized, desc_of, random_values
from tests.pairwise import pairwise
from tests.running import FLOATS, numpy_type, run, same_bits
from tools.measure_accuracy import CASES

F32 = np.float32
FUSABLE = [name for name in CASES if fusable_since("MEAN_VARIANCE_NORMALIZATION1", name)]


def checked(
    device: Device,
    data_type: TensorDataType,
    sizes: Sequence[int],
    axes: Sequence[int],
    scale: Sequence[int] | None = None,
    bias: Sequence[int] | None = None,
    **attributes: object,
) -> None:
    """Runs one normalization of random values and compares it with float64."""
    desc = desc_of(data_type, sizes, axes, scale, bias, **attributes)
    type = numpy_type(desc.input_tensor)
    x, s, b = (
        None if given is None else random_values(seed, given, type, mean, 2.0)
        for seed, (given, mean) in enumerate([(sizes, 3.0), (scale, 1.0), (bias, -1.0)])
    )
    assert x is not None
    assert_normalized(run(desc, [x, s, b], device), desc, x, s, b)


def random_shapes() -> list[tuple[list[int], list[int]]]:
    """For every rank some random sizes and axes, always the same."""
    random = np.random.default_rng(7)
    cases = []
    for rank in range(1, 9):
        for _ in range(6):
            most = max(2, int(3000 ** (1 / rank)))
            sizes = [int(size) for size in random.integers(1, most + 1, rank)]
            axes = [axis for axis in range(rank) if random.random() < 0.5]
            cases.append((sizes, axes))
    return cases


@pytest.mark.parametrize(("number", "shape"), list(enumerate(random_shapes())), ids=str)
def test_any_rank_sizes_and_axes(number: int, shape: tuple[list[int], list[int]], device: Device) -> None:
    """Of each rank some shapes with each type, in both forms."""
    sizes, axes = shape
    checked(device, FLOATS[number % 2], sizes, axes, sizes, sizes)
    checked(device, FLOATS[number // 2 % 2], sizes, axes[::-1], normalize_variance=False)


@pytest.mark.parametrize("axes", [[2, 3], [0, 2, 3], [1], [3]], ids=str)
@pytest.mark.parametrize("pattern", list(product([False, True], repeat=4)))
def test_scale_and_bias_are_broadcast(pattern: tuple[bool, ...], axes: list[int], device: Device) -> None:
    sizes = [2, 3, 5, 17]
    some = [size if full else 1 for size, full in zip(sizes, pattern, strict=True)]
    others = [1 if full else size for size, full in zip(sizes, pattern, strict=True)]
    checked(device, FLOAT32, sizes, axes, some, others)


@pairwise(scale=[True, False], bias=[True, False], normalize_variance=[True, False], data_type=FLOATS)
def test_scale_and_bias_are_optional_each(
    scale: bool, bias: bool, normalize_variance: bool, data_type: TensorDataType, device: Device
) -> None:
    channels = [1, 8, 1, 1]
    checked(
        device,
        data_type,
        [2, 8, 9, 33],
        [2, 3],
        channels if scale else None,
        channels if bias else None,
        normalize_variance=normalize_variance,
    )


@pytest.mark.parametrize("epsilon", [0.0, 1e-12, 1e-5, 1.0, 1e6])
def test_epsilon_is_added_to_the_variance(epsilon: float, device: Device) -> None:
    checked(device, FLOAT32, [2, 3, 40, 5], [2, 3], epsilon=epsilon)


@pytest.mark.parametrize(
    ("sizes", "axes"),
    [
        ([2, 8, 64, 64], [2, 3]),
        ([2, 8, 64, 64], [0, 2, 3]),
        ([1, 3, 300, 500], [1, 2, 3]),
        ([64, 1024], [1]),
        ([2, 256, 14, 14], [1]),
        ([30000, 64], [0]),
    ],
    ids=str,
)
@pytest.mark.parametrize(("mean", "deviation"), [(1e4, 1.0), (-1e4, 1.0), (1e-20, 1e-20), (3e18, 1e17)])
def test_the_error_is_small_against_the_deviation_for_any_mean(
    sizes: list[int], axes: list[int], mean: float, deviation: float, device: Device
) -> None:
    x = random_values(11, sizes, F32, mean, deviation)
    for desc in (
        desc_of(FLOAT32, sizes, axes, epsilon=0.0),
        desc_of(FLOAT32, sizes, axes, epsilon=0.0, normalize_variance=False),
    ):
        assert_normalized(run(desc, [x, None, None], device), desc, x, None, None)


@pytest.mark.parametrize(
    ("sizes", "axes", "mean"),
    [([10_000_000], [0], 0.0), ([100_000, 100], [0, 1], 1e4), ([5_000_000, 2], [0], 1e4)],
    ids=str,
)
def test_ten_million_elements_are_exact(
    sizes: list[int], axes: list[int], mean: float, device: Device
) -> None:
    x = random_values(3, sizes, F32, mean, 1.0)
    desc = desc_of(FLOAT32, sizes, axes)
    assert_normalized(run(desc, [x, None, None], device), desc, x, None, None)


def _far_off(x: Array) -> Array:
    x[0, 0] = x[-1, -1] = 30000
    return x


def _periodic(x: Array) -> Array:
    """Every eighth vector of a row, or every eighth row, starts what is summed together."""
    x[::8] += 3000
    x[:, (np.arange(x.shape[1]) // 16) % 8 == 0] -= 3000
    return x


FLOAT16_GROUPS: dict[str, Callable[[], Array]] = {
    "large mean": lambda: random_values(7, [1030, 1030], np.float16, 30000.0, 15.0),
    "one step apart": lambda: np.where(random_values(7, [1030, 1030], np.float16) > 2, 2050, 2048),
    "far off": lambda: _far_off(random_values(7, [1030, 1030], np.float16)),
    "periodic": lambda: _periodic(random_values(7, [1030, 1030], np.float16)),
    "all magnitudes": lambda: (
        random_values(7, [1030, 1030], np.float16)
        * np.exp2(random_values(8, [1030, 1030], np.float16, -4.0, 3.0))
    ),
    "denormals": lambda: random_values(7, [1030, 1030], np.float16) * np.float16(1e-6),
    "two numbers": lambda: np.where(random_values(7, [1030, 1030], np.float16) > 0, 31984, -31984),
}


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("group", FLOAT16_GROUPS.values(), ids=FLOAT16_GROUPS.keys())
def test_float16_statistics_are_exact(group: Callable[[], Array], axis: int, device: Device) -> None:
    x = np.clip(group(), -32000, 32000).astype(np.float16)
    for normalize_variance in (True, False):
        desc = desc_of(FLOAT16, x.shape, [axis], epsilon=0.0, normalize_variance=normalize_variance)
        assert_normalized(run(desc, [x, None, None], device), desc, x, None, None)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_float16_group_with_an_infinity_or_nan_is_nan(value: float, axis: int, device: Device) -> None:
    x = random_values(7, [300, 300], np.float16)
    x[np.arange(3) * 140, np.arange(3) * 140] = value
    result = run(desc_of(FLOAT16, x.shape, [axis]), [x, None, None], device)
    lines = np.isnan(result).all(axis), np.isnan(result).any(axis)
    assert np.array_equal(*lines)
    assert np.flatnonzero(lines[0]).tolist() == [0, 140, 280]


SHAPES = [([6, 50], [1]), ([50, 6], [0]), ([4, 3, 20000], [0, 2]), ([9000, 40], [0])]


@pytest.mark.parametrize(("sizes", "axes"), SHAPES, ids=str)
@pytest.mark.parametrize("value", [0.0, 0.1, -1e4 / 3, 1e30])
def test_constants_become_the_bias(sizes: list[int], axes: list[int], value: float, device: Device) -> None:
    x = np.full(sizes, value, F32)
    bias = random_values(2, sizes, F32)
    result = run(desc_of(FLOAT32, sizes, axes, sizes, sizes), [x, np.ones(sizes, F32), bias], device)
    # The mean of equal numbers may be off by the rounding of its float64 sum.
    np.testing.assert_allclose(result, bias, rtol=1e-6, atol=max(1e-6, abs(value) * 1e-10))


@pytest.mark.parametrize(("sizes", "axes"), SHAPES, ids=str)
def test_constants_without_epsilon_are_nan(sizes: list[int], axes: list[int], device: Device) -> None:
    result = run(desc_of(FLOAT32, sizes, axes, epsilon=0.0), [np.full(sizes, 2.0, F32), None, None], device)
    assert np.isnan(result).all()


@pytest.mark.parametrize(("sizes", "axes"), SHAPES, ids=str)
@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("normalize_variance", [True, False])
@pytest.mark.parametrize("place", ["first", "middle", "last"])
def test_what_is_not_finite_affects_only_its_group(
    sizes: list[int], axes: list[int], value: float, normalize_variance: bool, place: str, device: Device
) -> None:
    desc = desc_of(FLOAT32, sizes, axes, normalize_variance=normalize_variance)
    x = random_values(4, sizes, F32)
    before = run(desc, [x, None, None], device)
    spoiled = x.copy()
    at = tuple({"first": 0, "middle": size // 2, "last": size - 1}[place] for size in sizes)
    spoiled[at] = value
    result = run(desc, [spoiled, None, None], device)
    group = tuple(slice(None) if axis in axes else index for axis, index in enumerate(at))
    assert not np.isfinite(result[group]).any()
    assert_normalized(result, desc, spoiled, None, None)
    result[group] = before[group]
    assert same_bits(result, before)


@pytest.mark.parametrize("axes", [[], [1], [1, 3]], ids=str)
@pytest.mark.parametrize("normalize_variance", [True, False])
def test_one_element_becomes_the_bias(axes: list[int], normalize_variance: bool, device: Device) -> None:
    sizes = [3, 1, 40, 1]
    desc = desc_of(FLOAT32, sizes, axes, sizes, sizes, normalize_variance=normalize_variance)
    x, scale, bias = (random_values(seed, sizes, F32) for seed in range(3))
    assert same_bits(run(desc, [x, scale, bias], device), bias)
    x[1, 0, 7, 0], x[2, 0, 3, 0] = math.inf, math.nan
    expected = bias.copy()
    expected[1, 0, 7, 0] = expected[2, 0, 3, 0] = math.nan
    assert same_bits(run(desc, [x, scale, bias], device), expected)


CONTINUED = {
    "CELU",
    "ELU",
    "GELU",
    "PARAMETRIC_SOFTPLUS",
    "SCALED_ELU",
    "SCALED_TANH",
    "SIGMOID",
    "SOFTPLUS",
    "TANH",
}
"""Transcendental activations, which fused may see more of their argument than a FLOAT32 holds."""


@pytest.mark.parametrize("name", FUSABLE)
@pytest.mark.parametrize(("sizes", "axes"), [([3, 5, 40, 9], [2, 3]), ([3, 40, 30], [1])], ids=str)
def test_fused_equals_separate(name: str, sizes: list[int], axes: list[int], device: Device) -> None:
    activation = desc_class(name)(**CASES[name][0])
    x, scale, bias = (random_values(seed, sizes, F32) for seed in range(3))
    plain = run(desc_of(FLOAT32, sizes, axes, sizes, sizes), [x, scale, bias], device)
    tensor = TensorDesc(FLOAT32, sizes)
    separate = run(desc_class(name)(tensor, tensor, **CASES[name][0]), [plain], device)
    fused = run(
        desc_of(FLOAT32, sizes, axes, sizes, sizes, fused_activation=activation), [x, scale, bias], device
    )
    if name.removeprefix("ACTIVATION_") in CONTINUED:
        np.testing.assert_allclose(fused, separate, rtol=1e-6, atol=1e-7)
    else:
        assert same_bits(fused, separate)


@pytest.mark.parametrize("name", FUSABLE)
def test_fused_float16_is_rounded_once(name: str, device: Device) -> None:
    sizes = [2, 4, 300]
    activation = desc_class(name)(**CASES[name][0])
    x = random_values(0, sizes, np.float16)
    desc = desc_of(FLOAT16, sizes, [2], fused_activation=activation)
    result = run(desc, [x, None, None], device)
    wide = run(
        desc_of(FLOAT32, sizes, [2], fused_activation=activation), [x.astype(F32), None, None], "reference"
    )
    # An ULP of FLOAT16 at most: that of a jump's input does not reach these values.
    np.testing.assert_allclose(result.astype(F32), wide, rtol=2.0**-10, atol=2.0**-14)


def test_results_are_written_to_padded_rows_only(device: Device) -> None:
    sizes, strides = [4, 30], [40, 1]
    x: Array = random_values(1, sizes, F32)
    desc = desc_of(FLOAT32, sizes, [1])
    padded = desc.replace(output_tensor=TensorDesc(FLOAT32, sizes, strides))
    memory = np.full(160, 7.0, F32)
    device.compile_operator(device.create_operator(padded)).bind([x, None, None], [memory]).dispatch()
    rows = memory.reshape(4, 40)
    assert_normalized(rows[:, :30], desc, x, None, None)
    assert (rows[:, 30:] == 7.0).all()
