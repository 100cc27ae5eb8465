"""Matrix products and convolutions against PyTorch and ONNX."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

from opendml import descs
from opendml.runtime.memory.host_array import Array
from opendml.spec.enums import ConvolutionDirection, ConvolutionMode, MatrixTransform
from tests.running import on_arrays
from tests.tolerances import assert_within

from .onnx_peer import PEERS, onnx_result
from .peer import DEVICES, Random, exact, examples, seeds


def _torch() -> Any:
    return pytest.importorskip("torch", reason="PyTorch is not installed")


def _values(random: Random, *sizes: int) -> Array:
    return random.generator.uniform(-1, 1, sizes).astype(np.float32)


class _Convolution:
    """A random convolution: arrays and attributes, which PyTorch allows too."""

    def __init__(self, random: Random, backward: bool) -> None:
        draw = random.generator.integers
        self.rank = int(draw(1, 4))
        self.groups = int(draw(1, 4))
        self.strides, self.dilations, self.padding = (draw(a, b, self.rank).tolist() for a, b in _ATTRIBUTES)
        extents = draw(1, 5, self.rank)
        spans = (extents - 1) * self.dilations + 1
        # Backward, padding takes away outputs; some must be left.
        image = (spans + draw(0, 6, self.rank) + 2 * backward).tolist()
        self.output_padding = [int(draw(0, s)) if backward else 0 for s in self.strides]
        own, other = int(draw(1, 4)), int(draw(1, 4))
        self.x = _values(random, int(draw(1, 3)), self.groups * own, *image)
        first = self.groups * (own if backward else other)
        self.filter = _values(random, first, other if backward else own, *extents.tolist())
        self.bias = _values(random, self.groups * other)
        self.backward = backward

    def by_torch(self, x: Array, filter: Array, bias: Array) -> Array:
        torch = _torch()
        name = f"conv{'_transpose' if self.backward else ''}{self.rank}d"
        tensors = [torch.from_numpy(exact(each)) for each in (x, filter, bias)]
        more = {"output_padding": self.output_padding} if self.backward else {}
        result: Array = getattr(torch.nn.functional, name)(
            *tensors,
            stride=self.strides,
            padding=self.padding,
            dilation=self.dilations,
            groups=self.groups,
            **more,
        ).numpy()
        return result

    def computed(self, output: Array, device: str) -> Array:
        direction = ConvolutionDirection.BACKWARD if self.backward else ConvolutionDirection.FORWARD
        bias = self.bias.reshape(1, -1, *(1,) * self.rank)
        (result,) = on_arrays(
            descs.Convolution,
            [self.x, self.filter, bias],
            [output.astype(np.float32)],
            device,
            mode=ConvolutionMode.CROSS_CORRELATION,
            direction=direction,
            strides=self.strides,
            dilations=self.dilations,
            start_padding=self.padding,
            end_padding=self.padding,
            output_padding=self.output_padding,
            group_count=self.groups,
        )
        return result

    def assert_agrees(self, expected: Array, device: str) -> None:
        magnitude = self.by_torch(*map(np.abs, (self.x, self.filter, self.bias)))
        assert_within("CONVOLUTION", self.computed(expected, device), expected, magnitude)


_ATTRIBUTES = ((1, 4), (1, 3), (0, 2))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("backward", [False, True])
@given(random=seeds)
@examples
def test_convolution_agrees_with_pytorch(backward: bool, device: str, random: Random) -> None:
    case = _Convolution(random, backward)
    case.assert_agrees(case.by_torch(case.x, case.filter, case.bias), device)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize("backward", [False, True])
@given(random=seeds)
@examples
def test_convolution_agrees_with_onnx(backward: bool, peer: str, device: str, random: Random) -> None:
    _torch()
    case = _Convolution(random, backward)
    if backward and peer == "reference":
        pytest.skip("ONNX's evaluator has dilations and groups of ConvTranspose for some ranks only")
    attributes: dict[str, Any] = {"output_padding": case.output_padding} if backward else {}
    expected = onnx_result(
        peer,
        "ConvTranspose" if backward else "Conv",
        [case.x, case.filter, case.bias],
        "float32",
        strides=case.strides,
        dilations=case.dilations,
        pads=[*case.padding, *case.padding],
        group=case.groups,
        **attributes,
    )
    magnitude = case.by_torch(*map(np.abs, (case.x, case.filter, case.bias)))
    assert_within("CONVOLUTION", case.computed(expected, device), expected, magnitude, peer=True)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("peer", PEERS)
@given(random=seeds)
@examples
def test_gemm_agrees_with_onnx(peer: str, device: str, random: Random) -> None:
    m, k, n = random.generator.integers(1, 20, 3).tolist()
    trans_a, trans_b = random.generator.integers(0, 2, 2).tolist()
    a = _values(random, *((k, m) if trans_a else (m, k)))
    b = _values(random, *((n, k) if trans_b else (k, n)))
    c = _values(random, m, n)
    attributes = {"alpha": 0.5, "beta": -2.0}
    inputs = [a, b, c]
    expected = onnx_result(peer, "Gemm", inputs, "float32", transA=trans_a, transB=trans_b, **attributes)
    transforms = {"trans_a": MatrixTransform(trans_a), "trans_b": MatrixTransform(trans_b)}
    (result,) = on_arrays(descs.Gemm, inputs, [c], device, **transforms, **attributes)
    magnitude = 0.5 * np.abs(a.T if trans_a else a) @ np.abs(b.T if trans_b else b) + 2 * np.abs(c)
    assert_within("GEMM", result, expected, magnitude, peer=True)
