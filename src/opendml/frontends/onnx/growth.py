"""Sizes of results, which are checked before anything makes them.

A number in a tensor may ask for any size, and systems hand out memory that they have not; a process that then
writes into it is ended.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from opendml.budget import meter
from opendml.frontends.onnx.inference import inferred_outputs
from opendml.frontends.onnx.node import Node
from opendml.frontends.onnx.values import Known, Value

Results = Mapping[str, tuple[tuple[int, ...], float]]
"""Sizes of results, and bytes of each of their elements, by name."""

_GROWING = frozenset(
    {
        "AffineGrid",
        "AveragePool",
        "BlackmanWindow",
        "CenterCropPad",
        "Col2Im",
        "ConstantOfShape",
        "Conv",
        "ConvInteger",
        "ConvTranspose",
        "DFT",
        "Expand",
        "HammingWindow",
        "HannWindow",
        "LpPool",
        "MaxPool",
        "MaxRoiPool",
        "MaxUnpool",
        "MelWeightMatrix",
        "Multinomial",
        "OneHot",
        "Pad",
        "QLinearConv",
        "RandomNormal",
        "RandomUniform",
        "Range",
        "Resize",
        "RoiAlign",
        "Tile",
        "Upsample",
    }
)
"""Operators whose results may be larger than all of their inputs by any factor: those of others have no more
elements than the product of what their inputs have, as a matrix product of two vectors does."""

_POINTER = 8
"""Bytes of an element that is a Python object, as strings are."""
_NUMBER_TEXT = 128
"""Bytes of a number that NumPy has made a string, at most."""
_ARRAY = 120
"""Bytes of an array of a sequence, beside its elements."""


def require_memory(node: Node, values: Mapping[str, Value]) -> None:
    """Check the sizes of what a node will make, where they are known.

    Raises:
        LimitExceeded: more elements or bytes than the model may have.
    """
    if node.domain or not (node.operator in _GROWING or _may_exceed(node, values)):
        return
    for name, (sizes, width) in results_of(node, values).items():
        meter().require_tensor(sizes, width, f"{node}: output {name!r} of sizes {list(sizes)}")


def results_of(
    node: Node, values: Mapping[str, Value], inferred: Mapping[str, onnx.TypeProto] | None = None
) -> Results:
    """Return the sizes of a node's results and the bytes of their elements, as far as they are known.

    Args:
        values: of the tensors that it reads.
        inferred: what ONNX's inference says of the results; None: it is asked.
    """
    types = inferred_outputs(node, values) if inferred is None else inferred
    found = {name: known for name, type in types.items() if (known := _inferred(type)) is not None}
    rule = None if node.domain else _RULES.get(node.operator)
    name = next(iter(node.outputs), "")
    if rule is not None and name:
        given = [values.get(each) if each else None for each in node.inputs]
        contents = [each.content if isinstance(each, Known) else None for each in given]
        try:
            known = rule(node, [None if each is None else each.sizes for each in given], contents)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            known = None  # not of the types and sizes that the operator takes
        if known is not None:
            sizes, width = known
            found[name] = sizes, width or found.get(name, ((), _POINTER))[1]
    return found


def _inferred(type: onnx.TypeProto) -> tuple[tuple[int, ...], float] | None:
    tensor = type.tensor_type
    is_known = tensor.HasField("shape") and all(each.HasField("dim_value") for each in tensor.shape.dim)
    if not tensor.elem_type or not is_known:
        return None
    width = _POINTER
    if tensor.elem_type != onnx.TensorProto.STRING:
        width = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type).itemsize
    return tuple(each.dim_value for each in tensor.shape.dim), width


def _may_exceed(node: Node, values: Mapping[str, Value]) -> bool:
    """Return whether as many numbers of 8 bytes as the product of what the inputs have may be too many."""
    given = [values.get(name) for name in node.inputs if name]
    counts = [math.prod(value.sizes) for value in given if value is not None and value.sizes is not None]
    count, limits = math.prod(count for count in counts if count), meter()
    return count > limits.limits.tensor_elements or 8 * count + limits.held > limits.limits.memory_bytes


Sizes = Sequence[tuple[int, ...] | None]
Contents = Sequence[Any]
Result = tuple[tuple[int, ...], float] | None
"""Sizes of a result and bytes of its elements, 0: those of its type; None: they are not known."""


def _range(node: Node, sizes: Sizes, contents: Contents) -> Result:
    """Count in Python's numbers: those of ONNX's inference overflow, and say that there are none."""
    start, limit, step = (each.item() for each in contents)
    length = (limit - start) / step
    if math.isnan(length):
        return None
    return (math.ceil(min(max(0, length), sys.float_info.max)),), 0


def _square(node: Node, sizes: Sizes, contents: Contents) -> Result:
    """The evaluator makes a square of one dimension, of which ONNX says nothing."""
    if sizes[0] is None or len(sizes[0]) != 1:
        return None
    type = node.attributes.get("dtype")
    width = _POINTER if type is None else onnx.helper.tensor_dtype_to_np_dtype(type).itemsize
    return (*sizes[0], *sizes[0]), width


def _tile(node: Node, sizes: Sizes, contents: Contents) -> Result:
    if sizes[0] is None or contents[1] is None:
        return None
    repeats = [int(each) for each in contents[1].flat]
    return tuple(size * count for size, count in zip(sizes[0], repeats, strict=True)), 0


def _padded(node: Node, sizes: Sizes, contents: Contents) -> Result:
    pads = node.attributes.get("pads") or [int(each) for each in contents[1].flat]
    rank = len(sizes[0] or ())
    axes = list(range(rank))
    if len(contents) > 3 and contents[3] is not None:
        axes = [int(axis) % rank for axis in contents[3].flat]
    full = list(sizes[0] or ())
    for number, axis in enumerate(axes):
        full[axis] += pads[number] + pads[number + len(axes)]
    return tuple(max(0, size) for size in full), 0


def _resized(node: Node, sizes: Sizes, contents: Contents) -> Result:
    scales = node.attributes.get("scales")
    if scales is None:
        place = {"Upsample": 1}.get(node.operator, 1 if node.version < 11 else 2)
        scales = contents[place] if place < len(contents) else None
    if scales is None or not np.size(scales) or sizes[0] is None or "axes" in node.attributes:
        return None
    return tuple(int(size * float(scale)) for size, scale in zip(sizes[0], scales, strict=True)), 0


def _joined_strings(node: Node, sizes: Sizes, contents: Contents) -> Result:
    """NumPy makes strings of one length: that of the longest of each input together, 4 bytes a character."""
    lengths = [max((len(str(text)) for text in each.flat), default=0) for each in contents]
    return np.broadcast_shapes(*(each.shape for each in contents)), 4 * sum(lengths) + _POINTER


def _split_strings(node: Node, sizes: Sizes, contents: Contents) -> Result:
    """Each string has as many parts as the one with the most, the rest are empty."""
    delimiter, most = node.attributes.get("delimiter"), node.attributes.get("maxsplit", -1)
    delimiter = delimiter.decode() if isinstance(delimiter, bytes) else delimiter
    texts = [str(text) for text in contents[0].flat]
    counts = [(text.count(delimiter) if delimiter else len(text) // 2) + 1 for text in texts]
    parts = max(counts, default=0) if most is None or most < 0 else min(most + 1, max(counts, default=0))
    longest = max(map(len, texts), default=0)
    return (*contents[0].shape, parts), 2 * _POINTER + 4 * longest / max(parts, 1)


def _strings(node: Node, sizes: Sizes, contents: Contents) -> Result:
    """The strings that numbers or strings become, all of one length."""
    if node.attributes.get("to") != onnx.TensorProto.STRING or not isinstance(contents[0], np.ndarray):
        return None
    array = contents[0]
    is_text = array.dtype.kind in "OUS"
    width = 4 * max((len(str(text)) for text in array.flat), default=0) if is_text else _NUMBER_TEXT
    return array.shape, width + _POINTER


def _sequence(node: Node, sizes: Sizes, contents: Contents) -> Result:
    """As many arrays as a split says."""
    whole, axis = sizes[0] or (1,), node.attributes.get("axis", 0)
    split = contents[1] if len(contents) > 1 else None
    count = whole[axis] if split is None else np.size(split) if split.ndim else whole[axis] // int(split)
    return (max(0, count),), _ARRAY


def _concatenated(node: Node, sizes: Sizes, contents: Contents) -> Result:
    """All elements of a sequence."""
    return (sum(np.size(each) for each in contents[0]),), max(
        (each.dtype.itemsize for each in contents[0]), default=0
    )


def _counted_words(node: Node, sizes: Sizes, contents: Contents) -> Result:
    """A number for each index that the vocabulary has."""
    batch = sizes[0][0] if sizes[0] and len(sizes[0]) > 1 else 1
    return (batch, 1 + max(node.attributes["ngram_indexes"])), 4


_RULES: Mapping[str, Callable[[Node, Sizes, Contents], Result]] = {
    "Cast": _strings,
    "ConcatFromSequence": _concatenated,
    "EyeLike": _square,
    "Pad": _padded,
    "Range": _range,
    "Resize": _resized,
    "SplitToSequence": _sequence,
    "StringConcat": _joined_strings,
    "StringSplit": _split_strings,
    "TfIdfVectorizer": _counted_words,
    "Tile": _tile,
    "Upsample": _resized,
}
"""The first result of operators of which ONNX's inference knows too little, or overflows."""
