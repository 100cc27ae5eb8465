"""Elements chosen by indices: gather, scatter, one-hot, top-k, reversal, coordinates."""

from __future__ import annotations

from math import prod

from opendml.spec.fault import Fault, wrong_rank, wrong_sizes
from opendml.spec.rules.declared import rule, shape
from opendml.spec.rules.rule import (
    Broken,
    Sizes,
    SizeSpan,
    expect,
    replaced,
    right_aligned,
    without_leading_ones,
)
from opendml.spec.tensor_desc import TensorDesc


@rule("GATHER", basic=True)
def meaningful_indices(indices_tensor: TensorDesc, index_dimensions: int) -> Broken:
    """The last IndexDimensions sizes of the indices count; those before them are 1.

    The range of DirectML's page excludes the indices' number of dimensions; its first example has it.
    """
    yield from _meaningful("indices_tensor", indices_tensor, "index_dimensions", index_dimensions, 0)


@rule("GATHER", basic=True)
def room_for_indices(
    input_tensor: TensorDesc, indices_tensor: TensorDesc, axis: int, index_dimensions: int
) -> Broken:
    """All tensors have the output's number of dimensions, so leading ones make room for the indices'."""
    rank = len(input_tensor.sizes)
    if any(size != 1 for size in indices_tensor.sizes[: max(rank - index_dimensions, 0)]):
        return
    gathered = gathered_sizes(input_tensor, indices_tensor, axis, index_dimensions)
    if len(gathered) > rank:
        allowed = f"must have {len(gathered)}, as the gathered {list(gathered)}, by leading ones"
        yield "input_tensor", wrong_rank(rank, allowed)


@shape("GATHER", reason="the input, indices, axis and {IndexDimensions} given")
def gathered_sizes(
    input_tensor: TensorDesc, indices_tensor: TensorDesc, axis: int, index_dimensions: int
) -> Sizes:
    """The last IndexDimensions sizes of the indices stand in the output for the input's size at the axis."""
    rank = len(input_tensor.sizes)
    indices = indices_tensor.sizes[rank - index_dimensions :]
    sizes = (*input_tensor.sizes[:axis], *indices, *input_tensor.sizes[axis + 1 :])
    return right_aligned(sizes, rank)


@rule("GATHER_ELEMENTS", whole="InputTensor")
@rule("SCATTER", whole="OutputTensor")
def indexed_along_axis(whole: TensorDesc, indices_tensor: TensorDesc, axis: int) -> Broken:
    """The indices have the sizes of what they index, but along the axis."""
    expected = replaced(whole.sizes, axis, None)
    yield from expect("indices_tensor", indices_tensor, expected, "the input and axis given")


@rule("GATHER_ND", "GATHER_ND1", "SCATTER_ND", basic=True)
def indices_as_tuples(
    input_tensor: TensorDesc,
    indices_tensor: TensorDesc,
    input_dimension_count: int,
    indices_dimension_count: int,
    batch_dimension_count: int = 0,
) -> Broken:
    """Batch and index tuple together have at most as many dimensions as the input.

    DirectML's page of SCATTER_ND excludes the tensors' number of dimensions from the counts; its own example
    does not.
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
        allowed = "must be less than {InputDimensionCount} and {IndicesDimensionCount}"
        yield "batch_dimension_count", Fault(batch, f"{allowed}, {reads} and {tuples}")
        return
    if batch + length > reads:
        left = "the input's dimensions" + (" after those of the batch" if batch else "")
        allowed = f"must be at most {reads - batch}, {left}"
        yield "indices_tensor", Fault(length, allowed, ("Sizes", rank - 1))
        return
    leading = (*(1,) * (rank - tuples), *data[:batch], *(None,) * (tuples - batch))
    yield from expect("indices_tensor", indices_tensor, leading, "the batch of the input")


_TUPLES = "the input, indices and dimension counts given"


@shape("GATHER_ND", "GATHER_ND1", reason=_TUPLES)
def elements_of_tuples(
    input_tensor: TensorDesc,
    indices_tensor: TensorDesc,
    input_dimension_count: int,
    indices_dimension_count: int,
    batch_dimension_count: int = 0,
) -> Sizes:
    """The elements have the indices' sizes but for the last, then the input's after batch and index tuple.

    DirectML's pages print the input's last sizes, as many as the tuple is long; their own examples do not.
    """
    rank = len(input_tensor.sizes)
    data = input_tensor.sizes[rank - input_dimension_count :]
    indices = indices_tensor.sizes[rank - indices_dimension_count :]
    return right_aligned((*indices[:-1], *data[batch_dimension_count + indices[-1] :]), rank)


@rule("SCATTER_ND")
def updates_of_tuples(
    input_tensor: TensorDesc,
    indices_tensor: TensorDesc,
    updates_tensor: TensorDesc,
    input_dimension_count: int,
    indices_dimension_count: int,
) -> Broken:
    """The updates have the sizes of the elements that the index tuples name."""
    expected = elements_of_tuples(
        input_tensor, indices_tensor, input_dimension_count, indices_dimension_count
    )
    yield from expect("updates_tensor", updates_tensor, expected, _TUPLES)


@rule("REVERSE_SUBSEQUENCES")
def length_of_each_line(input_tensor: TensorDesc, sequence_lengths_tensor: TensorDesc, axis: int) -> Broken:
    """One length for each line along the axis."""
    expected = replaced(input_tensor.sizes, axis, 1)
    yield from expect(
        "sequence_lengths_tensor", sequence_lengths_tensor, expected, "the input and axis given"
    )


@rule("ONE_HOT", basic=True)
def one_index_of_each_line(indices_tensor: TensorDesc, axis: int) -> Broken:
    """One index for each line along the axis."""
    expected = replaced((None,) * len(indices_tensor.sizes), axis, 1)
    yield from expect("indices_tensor", indices_tensor, expected, "the axis given")


@shape("ONE_HOT", reason="the indices and axis given", is_open=True)
def one_hot_sizes(indices_tensor: TensorDesc, axis: int) -> Sizes:
    """The output has the sizes of the indices, but along the axis any."""
    return replaced(indices_tensor.sizes, axis, None)


@rule("ONE_HOT")
def off_and_on(values_tensor: TensorDesc) -> Broken:
    """ValuesTensor has at least two elements."""
    if prod(values_tensor.sizes) < 2:
        yield "values_tensor", wrong_sizes(values_tensor.sizes, "must be 2 elements or more, off and on")


@rule("TOP_K", "TOP_K1", basic=True)
def enough_elements(input_tensor: TensorDesc, axis: int, k: int) -> Broken:
    """K is at most the size of the axis.

    DirectML's page says "less than"; all elements are a sort, as in ONNX.
    """
    if k > input_tensor.sizes[axis]:
        allowed = f"must be at most {input_tensor.sizes[axis]}, {{InputTensor}}'s size at axis {axis}"
        yield "k", Fault(k, allowed)


@shape(
    "TOP_K",
    "TOP_K1",
    outputs=("OutputValueTensor", "OutputIndexTensor"),
    reason="the input, axis and K given",
)
def top_sizes(input_tensor: TensorDesc, axis: int, k: int) -> Sizes:
    """Both outputs have the input's sizes, with K at the axis."""
    return replaced(input_tensor.sizes, axis, k)


@shape(
    "NONZERO_COORDINATES", outputs=("OutputCoordinatesTensor",), reason="the input given", leading_ones=True
)
def coordinate_sizes(input_tensor: TensorDesc) -> Sizes:
    """A row for each element, of a coordinate for each dimension; those of leading ones may be left out."""
    rank, count = len(input_tensor.sizes), prod(input_tensor.sizes)
    fewest = max(1, len(without_leading_ones(input_tensor.sizes)))
    return (count, SizeSpan(rank, fewest, rank))


def _meaningful(name: str, tensor: TensorDesc, count_name: str, count: int, least: int) -> Broken:
    """Yield a fault unless the last `count` dimensions exist, and those before them are 1."""
    rank = len(tensor.sizes)
    if not least <= count <= rank:
        yield count_name, Fault(count, f"must be {least} to {rank}, the tensor's number of dimensions")
    elif any(size != 1 for size in tensor.sizes[: rank - count]):
        leading = f"must have {rank - count} leading ones before {count} meaningful dimensions"
        yield name, wrong_sizes(tensor.sizes, leading)
