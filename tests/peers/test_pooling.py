"""Pooling against PyTorch and ONNX."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from opendml import descs
from opendml.runtime.memory.host_array import Array
from opendml.spec.operator_desc import OperatorDesc
from tests.running import on_arrays
from tests.tolerances import assert_within

from .deviations import deviation
from .onnx_peer import PEERS, onnx_result
from .peer import DEVICES, Random, exact, examples, seeds


class _Pooling:
    """A random pooling that PyTorch allows: at most half a window of padding."""

    def __init__(self, random: Random, dilated: bool) -> None:
        draw = random.generator.integers
        self.rank = int(draw(2, 4))
        extents = draw(1, 5, self.rank)
        self.extents: list[int] = extents.tolist()
        self.strides: list[int] = draw(1, 4, self.rank).tolist()
        self.dilations: list[int] = draw(1, 3 if dilated else 2, self.rank).tolist()
        self.padding: list[int] = [int(draw(0, k // 2 + 1)) for k in self.extents]
        image = ((extents - 1) * self.dilations + 1 + draw(0, 5, self.rank)).tolist()
        self.x = random.generator.uniform(-3, 3, (2, 3, *image)).astype(np.float32)

    def by_torch(self, name: str, *arguments: Any, **attributes: Any) -> Any:
        torch = pytest.importorskip("torch", reason="PyTorch is not installed")
        function = getattr(torch.nn.functional, f"{name}{self.rank}d")
        return function(torch.from_numpy(exact(self.x)), *arguments, self.extents, **attributes)

    def of_magnitudes(self) -> _Pooling:
        """The same of all elements without their signs."""
        other = copy(self)
        other.x = np.abs(self.x)
        return other

    def computed(
        self, desc: type[OperatorDesc], outputs: list[Array], device: str, **more: Any
    ) -> list[Array]:
        attributes: dict[str, Any] = {
            "strides": self.strides,
            "window_size": self.extents,
            "start_padding": self.padding,
            "end_padding": self.padding,
        }
        return on_arrays(desc, [self.x], outputs, device, **attributes, **more)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("include", [False, True])
@pytest.mark.parametrize("ceil", [False, True])
@given(random=seeds)
@examples
def test_averages_agree_with_pytorch(ceil: bool, include: bool, device: str, random: Random) -> None:
    case = _Pooling(random, dilated=False)
    expected, terms = (
        each.by_torch(
            "avg_pool",
            stride=case.strides,
            padding=case.padding,
            ceil_mode=ceil,
            count_include_pad=include,
        ).numpy()
        for each in (case, case.of_magnitudes())
    )
    made = [expected.astype(np.float32)]
    (result,) = case.computed(descs.AveragePooling, made, device, include_padding=include)
    assert_within("AVERAGE_POOLING", result, expected, terms)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("ceil", [False, True])
@given(random=seeds)
@examples
def test_maxima_agree_with_pytorch(ceil: bool, device: str, random: Random) -> None:
    case = _Pooling(random, dilated=True)
    values, indices = case.by_torch(
        "max_pool",
        stride=case.strides,
        padding=case.padding,
        dilation=case.dilations,
        ceil_mode=ceil,
        return_indices=True,
    )
    # PyTorch numbers the elements of each channel by itself.
    batches, channels, *image = case.x.shape
    first = np.arange(batches * channels).reshape(batches, channels, *(1,) * case.rank) * np.prod(image)
    outputs = [values.numpy().astype(np.float32), (indices.numpy() + first).astype(np.uint32)]
    results = case.computed(descs.MaxPooling2, outputs, device, dilations=case.dilations)
    for result, expected in zip(results, outputs, strict=True):
        np.testing.assert_array_equal(result, expected)


_magnitudes = deviation("LP_POOLING", "odd P, negative elements", np.abs)
deviation("LP_POOLING1", "odd P, negative elements", np.abs)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("p", [1, 2, 3])
@given(random=seeds)
@examples
def test_norms_agree_with_pytorch(p: int, device: str, random: Random) -> None:
    case = _Pooling(random, dilated=False)
    case.padding = [0] * case.rank
    given_x = case.x
    if p % 2:
        case.x = _magnitudes(given_x)
    expected = case.by_torch("lp_pool", float(p), stride=case.strides).numpy()
    case.x = given_x
    (result,) = case.computed(descs.LpPooling, [expected.astype(np.float32)], device, p=p)
    assert_within("LP_POOLING", result, expected)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize("name", ["MaxPool", "AveragePool", "LpPool"])
@given(random=seeds)
@examples
def test_pooling_agrees_with_onnx(name: str, peer: str, device: str, random: Random) -> None:
    case = _Pooling(random, dilated=True)
    if name == "LpPool" and peer == "reference" and case.rank > 2:
        return  # its window is flat
    attributes: dict[str, Any] = {"LpPool": {"p": 3}, "AveragePool": {"count_include_pad": 1}}.get(name, {})
    expected = onnx_result(
        peer,
        name,
        [case.x],
        "float32",
        kernel_shape=case.extents,
        strides=case.strides,
        dilations=case.dilations,
        pads=[*case.padding, *case.padding],
        **attributes,
    )
    desc, more = {
        "MaxPool": (descs.MaxPooling2, {}),
        "AveragePool": (descs.AveragePooling1, {"include_padding": True}),
        "LpPool": (descs.LpPooling1, {"p": 3}),
    }[name]
    outputs = [expected, None] if name == "MaxPool" else [expected]
    (result,) = case.computed(desc, outputs, device, dilations=case.dilations, **more)
    if name == "MaxPool":
        np.testing.assert_array_equal(result, expected)
    else:
        assert_within(desc.operator, result, expected, peer=True)
