"""The operators of `directml` that move elements, fill tensors, or see the same bytes as other tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from opendml.frontends.directml.call import output, outputs, present
from opendml.frontends.directml.tensors import Expression, tensor
from opendml.frontends.pydirectml.data_types import DataType, as_data_type, numpy_type
from opendml.frontends.pydirectml.enumerations import (
    AxisDirection,
    DepthSpaceOrder,
    InterpolationMode,
    PaddingMode,
    TensorDataType,
)
from opendml.frontends.pydirectml.errors import Refused
from opendml.frontends.pydirectml.expressions import Scope, reinterpreted
from opendml.frontends.pydirectml.functions import REQUIRED, require
from opendml.spec import enums
from opendml.spec.wording import shown

__all__ = [
    "TopKOutputs",
    "broadcast",
    "depth_to_space",
    "fill_value_constant",
    "fill_value_sequence",
    "gather",
    "gather_elements",
    "gather_nd",
    "join",
    "one_hot",
    "padding",
    "reinterpret",
    "resample",
    "reverse_subsequences",
    "scatter_elements",
    "scatter_nd",
    "slice",
    "space_to_depth",
    "split",
    "tile",
    "top_k",
    "upsample_2d",
]


class TopKOutputs(NamedTuple):
    """What `top_k` gives: the elements, and where they stood."""

    values: Expression
    indices: Expression


def reinterpret(
    input: Expression,
    sizes: Sequence[int] = REQUIRED,
    strides: Sequence[int] | None = None,
    dtype: DataType | None = None,
    **before: Any,
) -> Expression:
    """The same bytes as another tensor, whose strides count its elements.

    Args:
        input: a tensor.
        sizes: elements per dimension.
        strides: elements from one index to the next; None: packed.
        dtype: the type of the elements; None: the input's.
        before: the arguments as they were before: (input, new_type, new_size, new_strides).
    """
    if isinstance(sizes, TensorDataType):
        sizes, strides, dtype = strides if strides is not None else REQUIRED, dtype, sizes  # type: ignore[assignment]
    unknown = before.keys() - {"new_type", "new_size", "new_strides"}
    if unknown:
        raise TypeError(f"reinterpret() has no arguments {', '.join(sorted(unknown))}")
    sizes = before.get("new_size", sizes)
    require("reinterpret", sizes=sizes)
    strides, dtype = before.get("new_strides", strides), before.get("new_type", dtype)
    own = tensor(input, "reinterpret.input").desc.data_type
    data_type = own if dtype is None else enums.TensorDataType(int(as_data_type(dtype)))
    return reinterpreted(input, data_type, tuple(sizes), None if strides is None else tuple(strides))


def broadcast(input: Expression, shape: Sequence[int]) -> Expression:
    """The tensor repeated to a shape as NumPy repeats arrays: seen with strides of 0, nothing is copied.

    Raises:
        ValueError: the shapes do not fit.
    """
    desc, wanted = tensor(input, "broadcast.input").desc, tuple(shape)
    if desc.sizes == wanted:
        return input
    more = len(wanted) - len(desc.sizes)
    fits = more >= 0 and all(size in (1, new) for size, new in zip(desc.sizes, wanted[more:], strict=True))
    if not fits:
        problem = "the shape has fewer axes" if more < 0 else "only axes of 1 are repeated"
        raise Refused(f"broadcast: cannot broadcast {list(desc.sizes)} to {list(wanted)}; {problem}")
    axes = zip(desc.sizes, wanted[more:], desc.effective_strides, strict=True)
    strides = [0] * more + [stride if size == new else 0 for size, new, stride in axes]
    return reinterpreted(input, desc.data_type, wanted, strides)


def slice(
    input: Expression,
    input_window_offsets: Sequence[int],
    input_window_sizes: Sequence[int],
    input_window_strides: Sequence[int],
) -> Expression:
    """SLICE1: a window, and of it every so manieth element per axis; negative: from its end."""
    return output("SLICE1", locals())


def padding(
    input: Expression,
    padding_mode: PaddingMode = PaddingMode.CONSTANT,
    padding_value: float = 0.0,
    start_padding: Sequence[int] = REQUIRED,
    end_padding: Sequence[int] = REQUIRED,
) -> Expression:
    """PADDING: elements before and behind each axis."""
    require("padding", start_padding=start_padding, end_padding=end_padding)
    return output("PADDING", locals())


def join(inputs: Sequence[Expression] = REQUIRED, axis: int = REQUIRED, **before: Any) -> Expression:
    """JOIN: the tensors one behind the other along an axis; `inputs` may be called `input`, as before."""
    inputs = before.pop("input", inputs)
    if before:
        raise TypeError(f"join() has no arguments {', '.join(sorted(before))}")
    require("join", inputs=inputs, axis=axis)
    return output("JOIN", {"inputs": list(inputs), "axis": axis})


def split(input: Expression, *, axis: int, output_axis_sizes: Sequence[int]) -> list[Expression]:
    """SPLIT: parts of those sizes along an axis."""
    return [present(each) for each in outputs("SPLIT", locals(), sizes=output_axis_sizes)]


def tile(input: Expression, *, repeats: Sequence[int]) -> Expression:
    """TILE: the tensor so many times along each axis."""
    return output("TILE", locals())


def upsample_2d(
    input: Expression, *, scale_size: tuple[int, int], interpolation_mode: InterpolationMode
) -> Expression:
    """UPSAMPLE_2D: the last two axes larger by factors for (width, height)."""
    return output("UPSAMPLE_2D", locals())


def resample(
    input: Expression,
    *,
    output_sizes: Sequence[int],
    mode: InterpolationMode,
    rounding_direction: AxisDirection = AxisDirection.INCREASING,
    scales: Sequence[float] = (),
    input_pixel_offsets: Sequence[float] = (),
    output_pixel_offsets: Sequence[float] = (),
    antialiased: bool = False,
) -> Expression:
    """RESAMPLE3: the tensor in other sizes.

    Args:
        input: a tensor.
        output_sizes: the sizes wanted.
        mode: how to interpolate.
        rounding_direction: where NEAREST_NEIGHBOR goes from the middle.
        scales: how much larger it becomes per axis; without any, as the sizes say.
        input_pixel_offsets: where the centre of an input's element is; without any, 0.5.
        output_pixel_offsets: minus where the centre of an output's element is; without any, -0.5.
        antialiased: whether a smaller tensor averages what it leaves out.
    """
    given = {**locals(), "interpolation_mode": mode}
    if len(scales) == 0:
        given["scales"] = scales_of(tensor(input, "resample.input").desc.sizes, output_sizes)
    return output("RESAMPLE3", given, sizes=output_sizes)


def scales_of(small: Sequence[int], large: Sequence[int]) -> list[float]:
    """How much larger the second sizes are, per axis."""
    return [wanted / size for size, wanted in zip(small, large, strict=False)]


def space_to_depth(
    input: Expression, *, block_size: int, order: DepthSpaceOrder = DepthSpaceOrder.DEPTH_COLUMN_ROW
) -> Expression:
    """SPACE_TO_DEPTH1: blocks of an image as channels."""
    return output("SPACE_TO_DEPTH1", locals())


def depth_to_space(
    input: Expression, *, block_size: int, order: DepthSpaceOrder = DepthSpaceOrder.DEPTH_COLUMN_ROW
) -> Expression:
    """DEPTH_TO_SPACE1: channels as blocks of an image."""
    return output("DEPTH_TO_SPACE1", locals())


def gather(input: Expression, indices: Expression, axis: int, index_dimensions: int) -> Expression:
    """GATHER: what stands at the indices along an axis."""
    return output("GATHER", locals())


def gather_elements(input: Expression, indices: Expression, *, axis: int) -> Expression:
    """GATHER_ELEMENTS: for each index the element there along an axis."""
    return output("GATHER_ELEMENTS", locals())


def gather_nd(
    input: Expression,
    indices: Expression,
    *,
    input_dimension_count: int,
    indices_dimension_count: int,
    batch_dimension_count: int = 0,
) -> Expression:
    """GATHER_ND1: what stands at coordinates, which are the last axis of the indices."""
    return output("GATHER_ND1", locals())


def scatter_elements(input: Expression, indices: Expression, updates: Expression, *, axis: int) -> Expression:
    """SCATTER: the input with the updates at the indices along an axis."""
    return output("SCATTER", locals())


def scatter_nd(
    input: Expression,
    indices: Expression,
    updates: Expression,
    *,
    input_dimension_count: int,
    indices_dimension_count: int,
) -> Expression:
    """SCATTER_ND: the input with the updates at coordinates, which are the last axis of the indices."""
    return output("SCATTER_ND", locals())


def reverse_subsequences(input: Expression, sequence_lengths: Expression, *, axis: int) -> Expression:
    """REVERSE_SUBSEQUENCES: the first elements along an axis, as many as its length says, in reverse."""
    return output("REVERSE_SUBSEQUENCES", locals())


def one_hot(indices: Expression, values: Expression, *, output_length: int, axis: int) -> Expression:
    """ONE_HOT: values[1] at each index along an axis of that length, values[0] elsewhere."""
    sizes = list(tensor(indices, "one_hot.indices").desc.sizes)
    if not isinstance(axis, int) or not -len(sizes) <= axis < len(sizes):
        raise Refused(f"one_hot.axis: {shown(axis)}; the indices have {len(sizes)} dimensions")
    sizes[axis] = output_length
    return output("ONE_HOT", locals(), sizes=sizes)


def top_k(
    input: Expression, *, axis: int, k: int, axis_direction: AxisDirection = AxisDirection.DECREASING
) -> TopKOutputs:
    """TOP_K1: the k greatest elements along an axis, the greatest first, or the k least ones."""
    values, indices = outputs("TOP_K1", locals())
    return TopKOutputs(present(values), present(indices))


def fill_value_constant(
    graph: Scope, *, sizes: Sequence[int], value: float, dtype: DataType | None = None
) -> Expression:
    """FILL_VALUE_CONSTANT: a tensor of one number; FLOAT32 unless said otherwise.

    Raises:
        ValueError: the type does not have the number.
    """
    data_type = TensorDataType.FLOAT32 if dtype is None else as_data_type(dtype)
    numbers = {"value": _number(value, data_type, "value")}
    return _filled("FILL_VALUE_CONSTANT", graph, sizes, data_type, numbers)


def fill_value_sequence(
    graph: Scope,
    *,
    sizes: Sequence[int],
    value_start: float,
    value_delta: float,
    dtype: DataType | None = None,
) -> Expression:
    """FILL_VALUE_SEQUENCE: numbers that grow by a step, in row-major order; FLOAT32 unless said otherwise.

    Raises:
        ValueError: the type does not have a number.
    """
    data_type = TensorDataType.FLOAT32 if dtype is None else as_data_type(dtype)
    given = {"value_start": value_start, "value_delta": value_delta}
    numbers = {name: _number(value, data_type, name) for name, value in given.items()}
    return _filled("FILL_VALUE_SEQUENCE", graph, sizes, data_type, numbers)


def _filled(
    name: str, graph: Scope, sizes: Sequence[int], data_type: TensorDataType, numbers: dict[str, Any]
) -> Expression:
    if not isinstance(graph, Scope):
        raise TypeError(f"{name.lower()}.graph: {type(graph).__name__}; a Graph is needed")
    return output(name, {**numbers, "value_data_type": data_type}, sizes=sizes, graph=graph)


def _number(value: float, data_type: TensorDataType, what: str) -> Any:
    """A number as one of a type."""
    dtype = numpy_type(data_type)
    try:
        return np.array(value, dtype).item()
    except (OverflowError, TypeError, ValueError) as error:
        raise Refused(f"{what}={value!r}: no {dtype.name} ({error})") from error
