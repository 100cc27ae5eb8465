"""Batch, LP, local response, and the other mean-variance normalizations against float64 and PyTorch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest

import opendml as dml
from opendml import FLOAT16, FLOAT32, Device, TensorDesc, descs
from opendml.runtime.memory.host_array import Array
from tests.pairwise import pairwise
from tests.running import launches, run, same_bits
from tests.tolerances import assert_within

types = pytest.mark.parametrize("type", [np.float32, np.float16])


def values(seed: int, sizes: Sequence[int], type: type[np.floating]) -> Array:
    return (np.random.default_rng(seed).standard_normal(sizes) + 1).astype(type)


@types
@pytest.mark.parametrize("channels", [[1, 5, 1, 1], [1, 1, 1, 1], [2, 5, 1, 9]], ids=str)
def test_batch_normalization(type: type[np.floating], channels: list[int], device: Device) -> None:
    x = values(0, [2, 5, 7, 9], type)
    mean, scale, bias = (values(seed, [1, 5, 1, 1], type) for seed in (1, 2, 3))
    variance = np.abs(values(4, channels, type))
    result = dml.batch_normalization(
        x, mean, variance, scale, bias, epsilon=0.1, fused_activation=descs.ActivationRelu(), device=device
    )
    wide = [each.astype(np.float64) for each in (x, mean, variance, scale, bias)]
    wanted = wide[3] * (wide[0] - wide[1]) / np.sqrt(wide[2] + np.float32(0.1)) + wide[4]
    assert_within("BATCH_NORMALIZATION", result, np.maximum(wanted, 0))


def test_batch_normalization_agrees_with_pytorch(device: Device) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x = values(0, [3, 4, 5, 6], np.float32)
    mean, scale, bias = (values(seed, [4], np.float32) for seed in (1, 2, 3))
    variance = np.abs(values(4, [4], np.float32))
    given = [torch.from_numpy(each).double() for each in (x, mean, variance, scale, bias)]
    wanted = torch.nn.functional.batch_norm(*given, eps=1e-3).numpy()
    channels = [each.reshape(1, 4, 1, 1) for each in (mean, variance, scale, bias)]
    result = dml.batch_normalization(x, *channels, epsilon=1e-3, device=device)
    assert_within("BATCH_NORMALIZATION", result, wanted)


@pytest.mark.parametrize("spatial", [False, True])
def test_spatial_changes_nothing(spatial: bool) -> None:
    x = values(0, [2, 3, 4, 5], np.float32)
    full = [values(seed, x.shape, np.float32) ** 2 for seed in range(4)]
    results = [dml.batch_normalization(x, *full, spatial=each, epsilon=0.1) for each in (spatial, True)]
    assert same_bits(*results)


@types
@pytest.mark.parametrize("cross_channel", [False, True])
@pytest.mark.parametrize("normalize_variance", [False, True])
def test_the_first_form_is_the_second_over_height_and_width(
    type: type[np.floating], cross_channel: bool, normalize_variance: bool, device: Device
) -> None:
    x, scale, bias = (values(seed, [2, 5, 7, 9], type) for seed in range(3))
    first = dml.mean_variance_normalization(
        x, scale, bias, cross_channel=cross_channel, normalize_variance=normalize_variance, device=device
    )
    axes = [1, 2, 3] if cross_channel else [2, 3]
    second = dml.mean_variance_normalization1(
        x, scale, bias, axes=axes, normalize_variance=normalize_variance, device=device
    )
    assert same_bits(first, second)


@pairwise(
    type=[np.float32, np.float16],
    axes=[[1], [0, 2], [0, 1, 2]],
    use_mean=[False, True],
    use_variance=[False, True],
)
def test_mean_and_variance_are_used_each_on_its_own(
    type: type[np.floating], axes: list[int], use_mean: bool, use_variance: bool, device: Device
) -> None:
    x, scale = values(0, [4, 50, 9], type), values(1, [1, 50, 9], type)
    result = dml.mean_variance_normalization2(
        x, scale, axes=axes, use_mean=use_mean, use_variance=use_variance, epsilon=0.01, device=device
    )
    wide, dims = x.astype(np.float64), tuple(axes)
    centered = wide - wide.mean(dims, keepdims=True) if use_mean else wide
    spread = np.square(centered).mean(dims, keepdims=True) + np.float32(0.01)
    wanted = centered / np.sqrt(spread) if use_variance else centered
    assert_within("MEAN_VARIANCE_NORMALIZATION2", result, scale.astype(np.float64) * wanted)


def test_root_mean_square_normalization_agrees_with_pytorch(device: Device) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x, weight = values(0, [6, 128], np.float32), values(1, [128], np.float32)
    given = [torch.from_numpy(each).double() for each in (x, weight)]
    wanted = torch.nn.functional.rms_norm(given[0], [128], given[1], 1e-5).numpy()
    result = dml.mean_variance_normalization2(
        x, weight.reshape(1, 128), axes=[1], use_mean=False, epsilon=1e-5, device=device
    )
    assert_within("MEAN_VARIANCE_NORMALIZATION2", result, wanted)


@pairwise(
    type=[np.float32, np.float16],
    axis=[0, 1, 2],
    p=[1, 2],
)
def test_lp_normalization(type: type[np.floating], axis: int, p: int, device: Device) -> None:
    x = values(0, [5, 40, 17], type)
    result = dml.lp_normalization(x, axis=axis, p=p, device=device)
    wide = x.astype(np.float64)
    assert_within("LP_NORMALIZATION", result, wide / np.linalg.norm(wide, p, axis, keepdims=True))


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("where", ["cpu", "reference"])
def test_epsilon_is_the_least_norm(p: int, where: str) -> None:
    x = np.array([[0.0, 0.0], [0.003, 0.004], [3.0, 4.0]], np.float32)
    result = dml.lp_normalization(x, axis=1, epsilon=0.5, p=p, device=where)
    norms = np.maximum(np.linalg.norm(x.astype(np.float64), p, 1, keepdims=True), 0.5)
    assert_within("LP_NORMALIZATION", result, x / norms)


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_norm_may_be_beyond_all_of_the_type(p: int, axis: int, device: Device) -> None:
    x = np.array([[-3.4e38, 3.4e38, 3e30, 1e-40, 0.0]] * 2, np.float32)
    x = x if axis else np.ascontiguousarray(x.T)
    wide = x.astype(np.float64)
    result = dml.lp_normalization(x, axis=axis, epsilon=1.0, p=p, device=device)
    wanted = wide / np.linalg.norm(wide, p, axis, keepdims=True)
    assert_within("LP_NORMALIZATION", result, wanted)
    least = dml.lp_normalization(x, axis=axis, epsilon=3.4e38, p=p, device=device)
    assert_within("LP_NORMALIZATION", least, wanted)


def test_squares_do_not_overflow(device: Device) -> None:
    x = np.array([[3e30, 4e30], [3e-30, 4e-30]], np.float32)
    result = dml.lp_normalization(x, axis=1, epsilon=0.0, p=2, device=device)
    assert_within("LP_NORMALIZATION", result, x.astype(np.float64) / [[5e30], [5e-30]])
    tensor = TensorDesc(FLOAT16, [1, 300])
    halves = np.full((1, 300), 60000.0, np.float16)
    desc = descs.MeanVarianceNormalization2(tensor, None, None, tensor, axes=[1], use_mean=False)
    assert run(desc, [halves, None, None], device).tolist() == [[1.0] * 300]


def test_fused_activation_of_the_second_form(device: Device) -> None:
    tensor = TensorDesc(FLOAT32, [6, 30])
    x = values(0, [6, 30], np.float32)
    desc = descs.MeanVarianceNormalization2(
        tensor, None, None, tensor, axes=[1], fused_activation=descs.ActivationRelu()
    )
    plain = dml.mean_variance_normalization1(x, axes=[1], device=device)
    assert same_bits(run(desc, [x, None, None], device), np.maximum(plain, 0))


def responses(x: Array, axes: Sequence[int], size: int, alpha: float, beta: float, bias: float) -> Array:
    """Local response normalization in float64, element by element of the region."""
    squares = np.square(x.astype(np.float64))
    before = (size - 1) // 2
    for axis in axes:
        margins = [(before, size - 1 - before) if each == axis else (0, 0) for each in range(4)]
        windows = np.lib.stride_tricks.sliding_window_view(np.pad(squares, margins), size, axis)
        squares = windows.sum(-1)
    with np.errstate(invalid="ignore"):
        return np.asarray(x / (bias + alpha / size * squares) ** beta)


@pairwise(
    type=[np.float32, np.float16],
    cross_channel=[False, True],
    size=[1, 2, 3, 5, 40, 70],
)
def test_local_response_normalization(
    type: type[np.floating], cross_channel: bool, size: int, device: Device
) -> None:
    x = values(0, [2, 70, 9, 8], type) * type(3)
    settings = {"alpha": 0.5, "beta": 0.75, "bias": 2.0}
    wanted = responses(x, (1,) if cross_channel else (2, 3), size, **settings)
    for where in (device, Device("reference")):
        result = dml.local_response_normalization(
            x, cross_channel=cross_channel, local_size=size, **settings, device=where
        )
        assert_within("LOCAL_RESPONSE_NORMALIZATION", result, wanted)


@pytest.mark.parametrize(
    ("size", "special"),
    [
        *((size, 1.0) for size in (33, 63, 1023, 1024, 1025, 1057, 2047, 5000)),
        *product((63, 1057), (math.inf, math.nan)),
    ],
)
def test_local_response_normalization_over_large_regions(size: int, special: float, device: Device) -> None:
    x = values(0, [1, 2100, 1, 2], np.float32)
    x[0, 1500, 0, 1] = special
    settings = {"alpha": 0.5, "beta": 0.75, "bias": 2.0}
    wanted = responses(x, (1,), min(size, 4199), **settings | {"alpha": 0.5 * min(size, 4199) / size})
    for where in (device, Device("reference")):
        result = dml.local_response_normalization(
            x, cross_channel=True, local_size=size, **settings, device=where
        )
        assert_within("LOCAL_RESPONSE_NORMALIZATION", result, wanted)


def test_code_of_local_response_normalization_hardly_grows_with_its_regions() -> None:
    image = TensorDesc(FLOAT32, [1, 262_144, 1, 3])
    desc = descs.LocalResponseNormalization(image, image, cross_channel=True, local_size=262_144)
    assert sum(len(each.pattern.loads) for each in launches(desc)) < 200


@pytest.mark.parametrize(("size", "kernels"), [(5, 1), (31, 2)])
def test_squares_of_small_regions_are_not_stored(size: int, kernels: int) -> None:
    image = TensorDesc(FLOAT32, [2, 64, 12, 12])
    desc = descs.LocalResponseNormalization(image, image, cross_channel=True, local_size=size)
    assert len(launches(desc)) == kernels


@pytest.mark.parametrize("size", [2, 3, 5])
def test_local_response_normalization_agrees_with_pytorch(size: int, device: Device) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x = values(0, [2, 8, 5, 6], np.float32)
    # PyTorch's regions of even size hold one more element before than after, DirectML's after than before.
    given = torch.from_numpy(x[:, ::-1].copy() if size % 2 == 0 else x).double()
    wanted = torch.nn.functional.local_response_norm(given, size, alpha=0.3, beta=0.6, k=1.5).numpy()
    result = dml.local_response_normalization(
        x, cross_channel=True, local_size=size, alpha=0.3, beta=0.6, bias=1.5, device=device
    )
    wanted = wanted[:, ::-1] if size % 2 == 0 else wanted
    assert_within("LOCAL_RESPONSE_NORMALIZATION", result, wanted)


def test_padding_and_parts_in_a_graph(device: Device) -> None:
    x = values(0, [1, 6, 5, 7], np.float32)
    graph = dml.Graph()
    tensor = dml.activation_relu(graph.input("x", FLOAT32, x.shape))
    normalized = dml.local_response_normalization(tensor, cross_channel=True, local_size=3)
    model = graph.compile({"y": dml.activation_softmax1(normalized, axes=[1])}, device=device)
    wanted = responses(np.maximum(x, 0), (1,), 3, 1e-4, 0.75, 1.0)
    wanted = np.exp(wanted) / np.exp(wanted).sum(1, keepdims=True)
    np.testing.assert_allclose(model(x=x)["y"], wanted, rtol=2e-6, atol=2e-6)
