"""Facts about operators on onnx's evaluator: sizes of results, steps of its loops, and its known faults.

Rules compute what depends on a node. The table at the end says which operator has which facts.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from itertools import zip_longest
from typing import Any

import numpy as np

from opendml.errors import InvalidArgument
from opendml.frontends.onnx.element_types import dtype_of
from opendml.frontends.onnx.node import OnnxNode
from opendml.frontends.onnx.package import onnx
from opendml.late_dataclass import dataclass
from opendml.program.sizes import hint_of

POINTER_BYTES = 8
"""Bytes of an element that is a Python object, such as a string."""
_NUMBER_TEXT_BYTES = 128  # Greatest size of a number that NumPy has formatted as a string.
_ARRAY_BYTES = 120  # Bytes of an array in a sequence, beside its elements.

Sizes = Sequence[tuple[int, ...] | None]
Contents = Sequence[Any]
ResultSize = tuple[tuple[int, ...], float]
"""Sizes of a result, and bytes of each element. Rules return 0 bytes for the width of the result's type."""

# Sizes of the first result, from the sizes and the known contents of the inputs. None: unknown.


def range_size(node: OnnxNode, sizes: Sizes, contents: Contents) -> ResultSize | None:
    """Count with Python integers: those of ONNX's inference overflow."""
    start, limit, step = (each.item() for each in contents)
    start, step = (int(each) if type(each) is float and each.is_integer() else each for each in (start, step))
    if all(isinstance(each, int) for each in (start, limit, step)):
        return (max(0, -((start - limit) // step)),), 0
    length = (limit - start) / step
    if math.isnan(length):
        return None
    return (math.ceil(min(max(0, length), sys.float_info.max)),), 0


def square_size(node: OnnxNode, sizes: Sizes, contents: Contents) -> ResultSize | None:
    """Return a square: for one dimension ONNX says nothing, but the evaluator makes a square."""
    if sizes[0] is None or len(sizes[0]) != 1:
        return None
    type = node.attributes.get("dtype")
    width = POINTER_BYTES if type is None else dtype_of(type).itemsize
    return (*sizes[0], *sizes[0]), width


def tiled_size(node: OnnxNode, sizes: Sizes, contents: Contents) -> ResultSize | None:
    if sizes[0] is None or contents[1] is None:
        return None
    repeats = contents[1].reshape(-1).tolist()
    return tuple(size * count for size, count in zip(sizes[0], repeats, strict=True)), 0


def filled_size(node: OnnxNode, sizes: Sizes, contents: Contents) -> ResultSize | None:
    return None if contents[0] is None else (tuple(contents[0].tolist()), 0)


def expanded_size(node: OnnxNode, sizes: Sizes, contents: Contents) -> ResultSize | None:
    if sizes[0] is None or contents[1] is None:
        return None
    pairs = zip_longest(reversed(sizes[0]), reversed(contents[1].tolist()), fillvalue=1)
    return tuple(own if hint_of(wanted) == 1 else wanted for own, wanted in pairs)[::-1], 0


def padded_size(node: OnnxNode, sizes: Sizes, contents: Contents) -> ResultSize | None:
    pads = node.attributes.get("pads") or contents[1].reshape(-1).tolist()
    rank = len(sizes[0] or ())
    axes = list(range(rank))
    if len(contents) > 3 and contents[3] is not None:
        axes = [int(axis) % rank for axis in contents[3].flat]
    full = list(sizes[0] or ())
    for number, axis in enumerate(axes):
        full[axis] += pads[number] + pads[number + len(axes)]
    return tuple(max(0, size) for size in full), 0


def resized_size(node: OnnxNode, sizes: Sizes, contents: Contents) -> ResultSize | None:
    scales = node.attributes.get("scales")
    if scales is None:
        place = {"Upsample": 1}.get(node.operator, 1 if node.version < 11 else 2)
        scales = contents[place] if place < len(contents) else None
    if scales is None or not np.size(scales) or sizes[0] is None or "axes" in node.attributes:
        return None
    each = zip(sizes[0], map(float, scales), strict=True)
    return tuple(size * int(scale) if scale.is_integer() else int(size * scale) for size, scale in each), 0


def joined_strings_size(node: OnnxNode, sizes: Sizes, contents: Contents) -> ResultSize | None:
    """Add the longest lengths: NumPy gives all strings one length, with 4 bytes for each character."""
    lengths = [max((len(str(text)) for text in each.flat), default=0) for each in contents]
    return np.broadcast_shapes(*(each.shape for each in contents)), 4 * sum(lengths) + POINTER_BYTES


def split_strings_size(node: OnnxNode, sizes: Sizes, contents: Contents) -> ResultSize | None:
    """Count the parts of the string with the most: the others get empty parts."""
    delimiter, most = node.attributes.get("delimiter"), node.attributes.get("maxsplit", -1)
    delimiter = delimiter.decode() if isinstance(delimiter, bytes) else delimiter
    texts = [str(text) for text in contents[0].flat]
    counts = [(text.count(delimiter) if delimiter else len(text) // 2) + 1 for text in texts]
    parts = max(counts, default=0) if most is None or most < 0 else min(most + 1, max(counts, default=0))
    longest = max(map(len, texts), default=0)
    return (*contents[0].shape, parts), 2 * POINTER_BYTES + 4 * longest / max(parts, 1)


def cast_strings_size(node: OnnxNode, sizes: Sizes, contents: Contents) -> ResultSize | None:
    """Return the size of strings that a cast makes, all of one length."""
    if node.attributes.get("to") != onnx.TensorProto.STRING or not isinstance(contents[0], np.ndarray):
        return None
    array = contents[0]
    is_text = array.dtype.kind in "OUS"
    width = 4 * max((len(str(text)) for text in array.flat), default=0) if is_text else _NUMBER_TEXT_BYTES
    return array.shape, width + POINTER_BYTES


def sequence_size(node: OnnxNode, sizes: Sizes, contents: Contents) -> ResultSize | None:
    """Return the number of arrays that a split makes."""
    whole, axis = sizes[0] or (1,), node.attributes.get("axis", 0)
    split = contents[1] if len(contents) > 1 else None
    count = whole[axis] if split is None else np.size(split) if split.ndim else whole[axis] // int(split)
    return (max(0, count),), _ARRAY_BYTES


def concatenated_size(node: OnnxNode, sizes: Sizes, contents: Contents) -> ResultSize | None:
    """Add the elements of a sequence."""
    return (sum(np.size(each) for each in contents[0]),), max(
        (each.dtype.itemsize for each in contents[0]), default=0
    )


def word_counts_size(node: OnnxNode, sizes: Sizes, contents: Contents) -> ResultSize | None:
    """Return one number for each index of the vocabulary."""
    batch = sizes[0][0] if sizes[0] and len(sizes[0]) > 1 else 1
    return (batch, 1 + max(node.attributes["ngram_indexes"])), 4


# Steps for each element of a result, from the contents of the inputs.


def matrix_steps(node: OnnxNode, given: Contents) -> int:
    """Return an upper bound of the products for each element of a matrix product."""
    return max(sizes_of(given[0]), default=1)


def filter_steps(node: OnnxNode, given: Contents) -> int:
    """Return the products of each element of a convolution."""
    return math.prod(sizes_of(given[weights_input(node)])[1:])


def interpolated_steps(node: OnnxNode, given: Contents) -> int:
    """Return the rows that the evaluator interpolates for each element, which are all of the input."""
    sizes = sizes_of(given[0])
    return math.prod(sizes[:-1])


def sampled_steps(node: OnnxNode, given: Contents) -> int:
    """Return the samples of each element of a region."""
    ratio = int(node.attributes.get("sampling_ratio", 0))
    if ratio > 0:
        return ratio * ratio
    rois = np.asarray(given[1], np.float64)
    scale = float(node.attributes.get("spatial_scale", 1.0))
    extent = np.max(np.abs(rois), initial=0) * abs(scale) * 2 + 1
    return int(min(extent * extent, 2.0**62)) if np.isfinite(extent) else 2**62


def ensemble_steps(node: OnnxNode, given: Contents) -> int:
    """Return an upper bound of the tree nodes that one sample meets: the sum of the trees' depths.

    Raises:
        InvalidArgument: a tree has a cycle.
    """
    children = {key: tuple(after) for key, after in _tree_children(node)}
    try:
        order = list(TopologicalSorter(children).static_order())
    except CycleError as error:
        raise InvalidArgument(f"{node}: its trees lead in a circle") from error
    depths: dict[Hashable, int] = {}
    for key in order:
        depths[key] = 1 + max((depths[each] for each in children.get(key, ())), default=0)
    inner = {each for after in children.values() for each in after}
    return sum(depth for key, depth in depths.items() if key not in inner)


def _tree_children(node: OnnxNode) -> Iterator[tuple[Hashable, list[Hashable]]]:
    """Yield the nodes of all trees with their children."""
    given = node.attributes
    sides = [
        (given.get(f"nodes_{side}nodeids", ()), given.get(f"nodes_{side}leafs", ()))
        for side in ("true", "false")
    ]
    if node.operator == "TreeEnsemble":
        for number in range(min(len(ids) for ids, _ in sides)):
            after = [ids[number] for ids, leafs in sides if not (number < len(leafs) and leafs[number])]
            yield number, list(after)
        return
    keys = zip(given.get("nodes_treeids", ()), given.get("nodes_nodeids", ()), strict=False)
    modes: Mapping[int, object] = dict(enumerate(given.get("nodes_modes", ())))
    for number, (tree, key) in enumerate(keys):
        is_leaf = modes.get(number) in ("LEAF", b"LEAF")
        yield (tree, key), [] if is_leaf else [(tree, ids[number]) for ids, _ in sides if number < len(ids)]


def window_steps(node: OnnxNode, given: Contents) -> int:
    """Return the elements of a window."""
    return math.prod(node.attributes.get("kernel_shape", ()))


def einsum_steps(node: OnnxNode, given: Contents) -> int:
    """Return an upper bound of the products for each element of an Einsum: those of all letters."""
    terms = str(node.attributes.get("equation")).replace(" ", "").partition("->")[0].split(",")
    lengths: dict[str, int] = {}
    for term, content in zip_longest(terms, given, fillvalue=""):
        sizes = sizes_of(content)
        letters = term.replace("...", "." * max(0, len(sizes) - len(term.replace("...", ""))))
        for place, (letter, size) in enumerate(zip(letters, sizes, strict=False)):
            key = f".{place - len(letters)}" if letter == "." else letter
            lengths[key] = max(lengths.get(key, 1), size)
    return math.prod(lengths.values())


def attention_steps(node: OnnxNode, given: Contents) -> int:
    """Return an upper bound of the products for each element of an attention: one for each key."""
    return 2 * max((max(sizes_of(each), default=1) for each in given), default=1)


def recurrent_steps(node: OnnxNode, given: Contents) -> int:
    """Return the products of each element of a state."""
    return sum(max(sizes_of(each), default=1) for each in given[:3])


def weights_input(node: OnnxNode) -> int:
    """Return the number of the input with the weights of a convolution."""
    return 3 if node.operator == "QLinearConv" else 1


def sizes_of(content: Any) -> tuple[int, ...]:
    """Return the sizes of an array; () for anything else."""
    return tuple(np.shape(content)) if isinstance(content, np.ndarray) else ()


# Whether the evaluator computes something else than ONNX says, from the contents by name.


def input_of(node: OnnxNode, contents: Mapping[str, Any], number: int) -> Any:
    """Return the content of an input; None: the node does not have it."""
    return contents.get(node.inputs[number]) if number < len(node.inputs) else None


def pads_otherwise(node: OnnxNode, contents: Mapping[str, Any]) -> bool:
    """Return whether windows have padding that the evaluator places otherwise.

    It pads distant windows as for equal sizes. It takes other than two-dimensional padding, and paddings
    whose second start differs from the first end, in the wrong order.
    """
    if node.attributes.get("auto_pad", "NOTSET").startswith("SAME"):
        return any(step > 1 for step in node.attributes.get("strides", ()))
    pads = node.attributes.get("pads", ())
    return any(pads) and (len(pads) != 4 or pads[1] != pads[2])


def has_short_sequences(node: OnnxNode, contents: Mapping[str, Any]) -> bool:
    """Return whether a sequence of a recurrent network ends early."""
    x, lengths = (input_of(node, contents, number) for number in (0, 4))
    longest = x.shape[1 if node.attributes.get("layout", 0) else 0]
    return lengths is not None and bool(np.any(lengths != longest))


def resizes_to_one_pixel(node: OnnxNode, contents: Mapping[str, Any]) -> bool:
    """Return whether pytorch_half_pixel makes a dimension of one element, which lies at the first element."""
    if node.attributes.get("coordinate_transformation_mode") != "pytorch_half_pixel":
        return False
    scales, sizes = (input_of(node, contents, number) for number in (2, 3))
    return bool(np.any(sizes == 1) if sizes is not None else np.any(np.less(scales, 1)))


Fault = tuple[Callable[[OnnxNode, Mapping[str, Any]], bool], str]


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts about one operator.

    Args:
        grows: whether results may be larger than the product of the inputs' element counts.
        in_python: whether the evaluator loops over elements in Python.
        copies_windows: whether the evaluator copies the window of each element.
        unreliable: whether the evaluator is wrong at times, so that DirectML is preferred even for known
            inputs.
        random: whether results differ from run to run.
        size: the size of the first result, where ONNX's inference knows too little or overflows.
        steps: the steps for each element of a result; None: one.
        fault: when the evaluator computes something else than ONNX says, and what.
    """

    grows: bool = False
    in_python: bool = False
    copies_windows: bool = False
    unreliable: bool = False
    random: bool = False
    size: Callable[[OnnxNode, Sizes, Contents], ResultSize | None] | None = None
    steps: Callable[[OnnxNode, Contents], int] | None = None
    fault: Fault | None = None


_PADDING: Fault = (pads_otherwise, "does not pad such windows as ONNX says")
_LENGTHS: Fault = (has_short_sequences, "does not read the lengths of sequences")
_ONE_PIXEL: Fault = (resizes_to_one_pixel, "places one pixel of pytorch_half_pixel elsewhere")
_NONE = Facts()

_WINDOWS = Facts(grows=True, in_python=True, unreliable=True, steps=window_steps, fault=_PADDING)
_RESIZING = Facts(grows=True, in_python=True, unreliable=True, size=resized_size, steps=interpolated_steps)

_ROWS: tuple[tuple[str, Facts], ...] = (
    (
        "AffineGrid BlackmanWindow CenterCropPad DFT HammingWindow HannWindow MaxRoiPool OneHot",
        Facts(grows=True),
    ),
    ("Attention", Facts(unreliable=True, steps=attention_steps)),
    ("AveragePool LpPool MaxPool", _WINDOWS),
    ("Bernoulli RandomNormalLike RandomUniformLike", Facts(random=True)),
    ("Cast", Facts(size=cast_strings_size)),
    ("Col2Im MaxUnpool MelWeightMatrix", Facts(grows=True, in_python=True)),
    ("ConcatFromSequence", Facts(size=concatenated_size)),
    ("ConstantOfShape", Facts(grows=True, size=filled_size)),
    ("Conv ConvInteger QLinearConv", Facts(grows=True, copies_windows=True, steps=filter_steps)),
    ("ConvTranspose", Facts(grows=True, steps=filter_steps)),
    ("DeformConv", Facts(in_python=True, copies_windows=True, steps=filter_steps)),
    ("Det Gemm MatMul MatMulInteger QLinearMatMul", Facts(steps=matrix_steps)),
    (
        "DictVectorizer GatherND LabelEncoder SVMClassifier SVMRegressor ScatterElements ScatterND "
        "SequenceConstruct StringNormalizer",
        Facts(in_python=True),
    ),
    ("Einsum", Facts(steps=einsum_steps)),
    ("EyeLike", Facts(size=square_size)),
    ("Expand", Facts(grows=True, size=expanded_size)),
    ("GRU LSTM RNN", Facts(unreliable=True, steps=recurrent_steps, fault=_LENGTHS)),
    (
        "GatherElements GlobalAveragePool GlobalMaxPool MeanVarianceNormalization RotaryEmbedding Shape",
        Facts(unreliable=True),
    ),
    ("GridSample", Facts(in_python=True, unreliable=True)),
    ("LinearAttention", Facts(steps=attention_steps)),
    ("Multinomial RandomNormal RandomUniform", Facts(grows=True, random=True)),
    ("Pad", Facts(grows=True, size=padded_size)),
    ("Range", Facts(grows=True, size=range_size)),
    ("Resize", replace(_RESIZING, fault=_ONE_PIXEL)),
    ("RoiAlign", Facts(grows=True, in_python=True, steps=sampled_steps)),
    ("SplitToSequence", Facts(in_python=True, size=sequence_size)),
    ("StringConcat", Facts(size=joined_strings_size)),
    ("StringSplit", Facts(in_python=True, size=split_strings_size)),
    ("TfIdfVectorizer", Facts(in_python=True, size=word_counts_size)),
    ("Tile", Facts(grows=True, size=tiled_size)),
    (
        "TreeEnsemble TreeEnsembleClassifier TreeEnsembleRegressor",
        Facts(in_python=True, steps=ensemble_steps),
    ),
    ("Upsample", _RESIZING),
)
"""The facts about the operators that are named in front of them."""

_FACTS = {name: facts for names, facts in _ROWS for name in names.split()}


def facts_of(node: OnnxNode) -> Facts:
    """Return the facts about a node's operator. Operators of the same name in other domains share them."""
    return _FACTS.get(node.operator, _NONE)


def fault(node: OnnxNode, contents: Mapping[str, Any]) -> str | None:
    """Return what the evaluator does wrong with a node; None: no fault is known."""
    applies, reason = facts_of(node).fault or (None, "")
    return reason if applies is not None and not node.domain and applies(node, contents) else None
