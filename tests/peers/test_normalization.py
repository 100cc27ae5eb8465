"""Normalizations against PyTorch and ONNX."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

from opendml.runtime.memory.host_array import Array
from tests.tolerances import assert_within
from tools.terms import of_normalization

from .deviations import deviation
from .onnx_peer import PEERS, onnx_result
from .peer import DEVICES, FLOATS, Random, computed, exact, examples, seeds

EPSILON = 1e-5


def _torch() -> Any:
    return pytest.importorskip("torch", reason="PyTorch is not installed")


def _image(random: Random) -> Array:
    sizes = tuple(random.generator.integers(1, 7, 4).tolist())
    return random.values(random.of_type(FLOATS), sizes, -3, 3, special=False)


def _like(random: Random, x: Array, sizes: tuple[int, ...], low: float, high: float) -> Array:
    return random.values(x.dtype, sizes, low, high, special=False)


@pytest.mark.parametrize("device", DEVICES)
@given(random=seeds)
@examples
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


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("across", [False, True])
@given(random=seeds)
@examples
def test_mean_variance_normalization_agrees_with_pytorch(across: bool, device: str, random: Random) -> None:
    torch, x = _torch(), _image(random)
    scale, bias = (_like(random, x, x.shape, -2, 2) for _ in range(2))
    kept = x.shape[1:] if across else x.shape[2:]
    normalized = torch.nn.functional.layer_norm(torch.from_numpy(exact(x)), kept, eps=EPSILON).numpy()
    attributes = {"cross_channel": across, "epsilon": EPSILON, "device": device}
    result = computed("MEAN_VARIANCE_NORMALIZATION", x, scale, bias, **attributes)
    terms = of_normalization(x, (1, 2, 3) if across else (2, 3), EPSILON, scale)
    assert_within("MEAN_VARIANCE_NORMALIZATION", result, normalized * exact(scale) + exact(bias), terms)


@pytest.mark.parametrize("device", DEVICES)
@given(random=seeds)
@examples
def test_normalization_without_the_mean_is_pytorchs_root_mean_square(device: str, random: Random) -> None:
    torch, x = _torch(), _image(random)
    expected = torch.nn.functional.rms_norm(torch.from_numpy(exact(x)), x.shape[2:], eps=EPSILON).numpy()
    attributes = {"axes": [2, 3], "use_mean": False, "use_variance": True, "epsilon": EPSILON}
    result = computed("MEAN_VARIANCE_NORMALIZATION2", x, device=device, **attributes)
    assert_within("MEAN_VARIANCE_NORMALIZATION2", result, expected)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("p", [1, 2])
@given(random=seeds)
@examples
def test_lp_normalization_agrees_with_pytorch(p: int, device: str, random: Random) -> None:
    torch, x = _torch(), _image(random)
    axis = int(random.generator.integers(4))
    expected = torch.nn.functional.normalize(torch.from_numpy(exact(x)), p, axis, EPSILON).numpy()
    result = computed("LP_NORMALIZATION", x, axis=axis, p=p, epsilon=EPSILON, device=device)
    assert_within("LP_NORMALIZATION", result, expected)


RESPONSE = {"alpha": 0.3, "beta": 0.75, "bias": 1.0}


@pytest.mark.parametrize("device", DEVICES)
@given(random=seeds)
@examples
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
