"""Output sizes that PyTorch calculates are those that the rules accept: geometry drawn at random."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from opendml.spec.descs import Convolution, MaxPooling2, OperatorDesc, Unfold
from opendml.spec.enums import ConvolutionDirection, TensorDataType
from opendml.spec.tensor_desc import TensorDesc
from opendml.spec.validator import failures

torch = pytest.importorskip("torch")

F32 = TensorDataType.FLOAT32
examples = settings(max_examples=60, deadline=None)
spatial = st.tuples(st.integers(1, 12), st.integers(1, 12))
extents, steps = (
    st.tuples(st.integers(1, 4), st.integers(1, 4)),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
)
groups = st.integers(1, 3)


def shape(module: Any, sizes: tuple[int, ...]) -> list[int]:
    """The sizes of the module's output; nothing is calculated. Windows larger than the input are left out."""
    try:
        found = list(module.to("meta")(torch.empty(sizes, device="meta")).shape)
    except RuntimeError:
        found = [0]
    assume(min(found) > 0)
    return found


def sizes_accepted(desc: OperatorDesc, output: list[int]) -> bool:
    found = failures(desc.replace(output_tensor=TensorDesc(F32, output)))
    assert all(".OutputTensor: sizes " in message for message in found)
    return not found


@given(spatial, extents, steps, steps, st.tuples(st.integers(0, 2), st.integers(0, 2)), groups)
@examples
def test_convolution(size: Any, extent: Any, stride: Any, dilation: Any, padding: Any, group: int) -> None:
    module = torch.nn.Conv2d(2 * group, 3 * group, extent, stride, padding, dilation, group)
    sizes = (2, 2 * group, *size)
    expected = shape(module, sizes)
    desc = Convolution(
        TensorDesc(F32, sizes),
        TensorDesc(F32, [3 * group, 2, *extent]),
        TensorDesc(F32, [1, 3 * group, 1, 1]),
        strides=stride,
        dilations=dilation,
        start_padding=padding,
        end_padding=padding,
        output_padding=[0, 0],
        group_count=group,
    )
    assert sizes_accepted(desc, expected)
    assert not sizes_accepted(desc, [*expected[:3], expected[3] + 1])


@given(spatial, extents, steps, steps, st.tuples(st.integers(0, 2), st.integers(0, 2)), groups, st.data())
@examples
def test_convolution_backward(
    size: Any, extent: Any, stride: Any, dilation: Any, padding: Any, group: int, data: st.DataObject
) -> None:
    """PyTorch's output padding chooses among the sizes; DirectML's is 0 here, as ONNX Runtime gives it."""
    more = tuple(data.draw(st.integers(0, step - 1)) for step in stride)
    module = torch.nn.ConvTranspose2d(
        2 * group, 3 * group, extent, stride, padding, more, group, dilation=dilation
    )
    sizes = (2, 2 * group, *size)
    expected = shape(module, sizes)
    desc = Convolution(
        TensorDesc(F32, sizes),
        TensorDesc(F32, [2 * group, 3, *extent]),
        direction=ConvolutionDirection.BACKWARD,
        strides=stride,
        dilations=dilation,
        start_padding=padding,
        end_padding=padding,
        output_padding=[0, 0],
        group_count=group,
    )
    assert sizes_accepted(desc, expected)
    assert not sizes_accepted(desc, [*expected[:3], expected[3] + stride[1] - more[1]])


@given(spatial, extents, steps, steps, st.booleans(), st.data())
@examples
def test_pooling(
    size: Any, extent: Any, stride: Any, dilation: Any, round_up: bool, data: st.DataObject
) -> None:
    padding = tuple(data.draw(st.integers(0, window // 2)) for window in extent)
    # PyTorch rounds up even where the window does not fit once.
    assume(all((e - 1) * d < n + 2 * p for n, e, d, p in zip(size, extent, dilation, padding, strict=True)))
    module = torch.nn.MaxPool2d(extent, stride, padding, dilation, ceil_mode=round_up)
    sizes = (2, 3, *size)
    expected = shape(module, sizes)
    desc = MaxPooling2(
        TensorDesc(F32, sizes),
        strides=stride,
        window_size=extent,
        start_padding=padding,
        end_padding=padding,
        dilations=dilation,
    )
    assert sizes_accepted(desc, expected)
    assert not sizes_accepted(desc, [*expected[:3], expected[3] + 2])


@given(spatial, extents, steps, steps, st.tuples(st.integers(0, 2), st.integers(0, 2)))
@examples
def test_unfold(size: Any, extent: Any, stride: Any, dilation: Any, padding: Any) -> None:
    module = torch.nn.Unfold(extent, dilation, padding, stride)
    sizes = (2, 3, *size)
    expected = shape(module, sizes)
    desc = Unfold(
        TensorDesc(F32, sizes),
        window_sizes=extent,
        strides=stride,
        dilations=dilation,
        start_padding=padding,
        end_padding=padding,
    )
    assert sizes_accepted(desc, expected)
    assert not sizes_accepted(desc, [*expected[:2], expected[2] + 1])
