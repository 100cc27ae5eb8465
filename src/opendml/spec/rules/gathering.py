"""Elements chosen by indices: gather, scatter, one-hot, top-k, reversal, coordinates."""

from __future__ import annotations

from math import prod

from opendml.spec.rules.declared import Broken, rule
from opendml.spec.rules.sizes import Size, expect, replaced, right_aligned, without_leading_ones
from opendml.spec.tensor_desc import TensorDesc


@rule("GATHER")
def gathered_sizes(
    input_tensor: TensorDesc,
    indices_tensor: TensorDesc,
    output_tensor: TensorDesc,
    axis: int,
    index_dimensions: int,
) -> Broken:
    """The last IndexDimensions sizes of the indices stand in the output for the input's size at the axis.

    The range of DirectML's page excludes the indices' number of dimensions; its first example has it.
    """
    rank = len(input_tensor.sizes)
    wrong = list(_meaningful("indices_tensor", indices_tensor, "index_dimensions", index_dimensions, 0))
    yield from wrong
    if wrong:
        return
    indices = indices_tensor.sizes[rank - index_dimensions :]
    sizes = (*input_tensor.sizes[:axis], *indices, *input_tensor.sizes[axis + 1 :])
    reason = "the input, indices, axis and IndexDimensions given"
    yield from expect("output_tensor", output_tensor, right_aligned(sizes, rank), reason)


@rule("GATHER_ELEMENTS", whole="InputTensor")
@rule("SCATTER", whole="OutputTensor")
def indexed_along_axis(whole: TensorDesc, indices_tensor: TensorDesc, axis: int) -> Broken:
    """The indices have the sizes of what they index, but along the axis."""
    expected = replaced(whole.sizes, axis, None)
    yield from expect("indices_tensor", indices_tensor, expected, "the input and axis given")


@rule("GATHER_ND", "GATHER_ND1", elements="OutputTensor")
@rule("SCATTER_ND", elements="UpdatesTensor")
def indexed_by_tuples(
    input_tensor: TensorDesc,
    indices_tensor: TensorDesc,
    elements: TensorDesc,
    input_dimension_count: int,
    indices_dimension_count: int,
    batch_dimension_count: int = 0,
) -> Broken:
    """The elements have the indices' sizes but for the last, then the input's after batch and index tuple.

    DirectML's pages print the input's last sizes, as many as the tuple is long, and that of SCATTER_ND
    excludes the tensors' number of dimensions from the counts; their own examples do neither. Batch and tuple
    together have at most as many dimensions as the input.
    """
    rank, reads, tuples = len(input_tensor.sizes), input_dimension_count, indices_dimension_count
    wrong = [
        *_meaningful("input_tensor", input_tensor, "input_dimension_count", reads, 1),
        *_meaningful("indices_tensor", indices_tensor, "indices_dimension_count", tuples, 1),
    ]
    yield from wrong
    if wrong:
        return
    data, indices = input_tensor.sizes[rank - reads :], indices_tensor.sizes[rank - tuples :]
    batch, length = batch_dimension_count, indices[-1]
    if batch >= min(reads, tuples):
        allowed = "must be less than InputDimensionCount and IndicesDimensionCount"
        yield "batch_dimension_count", f": {batch}; {allowed}, {reads} and {tuples}"
        return
    if batch + length > reads:
        left = "the input's dimensions" + (" after those of the batch" if batch else "")
        yield "indices_tensor", f".Sizes[{rank - 1}]: {length}; must be at most {reads - batch}, {left}"
        return
    leading = (*(1,) * (rank - tuples), *data[:batch], *(None,) * (tuples - batch))
    yield from expect("indices_tensor", indices_tensor, leading, "the batch of the input")
    sizes = (*indices[:-1], *data[batch + length :])
    reason = "the input, indices and dimension counts given"
    yield from expect("elements", elements, right_aligned(sizes, rank), reason)


@rule("ONE_HOT", whole="OutputTensor", lines="IndicesTensor")
@rule("REVERSE_SUBSEQUENCES", whole="InputTensor", lines="SequenceLengthsTensor")
def one_for_each_line(whole: TensorDesc, lines: TensorDesc, axis: int) -> Broken:
    """One index or length for each line along the axis."""
    yield from expect("lines", lines, replaced(whole.sizes, axis, 1), "the other tensor and axis given")


@rule("ONE_HOT")
def off_and_on(values_tensor: TensorDesc) -> Broken:
    """ValuesTensor has at least two elements."""
    if prod(values_tensor.sizes) < 2:
        yield "values_tensor", f": sizes {list(values_tensor.sizes)}; must be 2 elements or more, off and on"


@rule("TOP_K", "TOP_K1", basic=True)
def enough_elements(input_tensor: TensorDesc, axis: int, k: int) -> Broken:
    """K is at most the size of the axis.

    DirectML's page says "less than"; all elements are a sort, as in ONNX.
    """
    if k > input_tensor.sizes[axis]:
        yield "k", f": {k}; must be at most {input_tensor.sizes[axis]}, InputTensor's size at axis {axis}"


@rule("TOP_K", "TOP_K1")
def top_sizes(
    input_tensor: TensorDesc,
    output_value_tensor: TensorDesc,
    output_index_tensor: TensorDesc,
    axis: int,
    k: int,
) -> Broken:
    """Both outputs have the input's sizes, with K at the axis."""
    expected = replaced(input_tensor.sizes, axis, k)
    yield from expect("output_value_tensor", output_value_tensor, expected, "the input, axis and K given")
    yield from expect("output_index_tensor", output_index_tensor, expected, "the input, axis and K given")


@rule("NONZERO_COORDINATES")
def coordinate_sizes(input_tensor: TensorDesc, output_coordinates_tensor: TensorDesc) -> Broken:
    """A row for each element, of a coordinate for each dimension; those of leading ones may be left out."""
    rank, count = len(input_tensor.sizes), prod(input_tensor.sizes)
    fewest = max(1, len(without_leading_ones(input_tensor.sizes)))
    row: tuple[Size, ...] = (count, tuple(range(fewest, rank + 1)))
    expected = right_aligned(row, len(output_coordinates_tensor.sizes))
    yield from expect("output_coordinates_tensor", output_coordinates_tensor, expected, "the input given")


def _meaningful(name: str, tensor: TensorDesc, count_name: str, count: int, least: int) -> Broken:
    """The tensor has so many last dimensions that count; those before them are 1."""
    rank = len(tensor.sizes)
    if not least <= count <= rank:
        yield count_name, f": {count}; must be {least} to {rank}, the tensor's number of dimensions"
    elif any(size != 1 for size in tensor.sizes[: rank - count]):
        leading = f"must have {rank - count} leading ones before {count} meaningful dimensions"
        yield name, f": sizes {list(tensor.sizes)}; {leading}"
