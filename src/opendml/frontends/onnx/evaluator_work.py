"""How much a node takes on onnx's evaluator, estimated before it runs: Python cannot stop it later."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from opendml.budget import meter
from opendml.frontends.onnx.growth import Results
from opendml.frontends.onnx.node import Node
from opendml.frontends.onnx.trees import tree_steps

_PYTHON_STEPS = 1000
"""Steps of one element where the evaluator loops over elements in Python, relative to NumPy's loops."""

_COPIED_BYTES = 8
"""Bytes of an element that the evaluator copies on the way to a result."""

_UNFOLDED = frozenset({"Conv", "ConvInteger", "DeformConv", "QLinearConv"})
"""Operators whose windows the evaluator copies."""

_IN_PYTHON = frozenset(
    {
        "AveragePool",
        "Col2Im",
        "DeformConv",
        "DictVectorizer",
        "GatherND",
        "GridSample",
        "LabelEncoder",
        "LpPool",
        "MaxPool",
        "MaxUnpool",
        "MelWeightMatrix",
        "Resize",
        "RoiAlign",
        "SVMClassifier",
        "SVMRegressor",
        "ScatterElements",
        "ScatterND",
        "SequenceConstruct",
        "SplitToSequence",
        "StringNormalizer",
        "StringSplit",
        "TfIdfVectorizer",
        "TreeEnsemble",
        "TreeEnsembleClassifier",
        "TreeEnsembleRegressor",
        "Upsample",
    }
)
"""Operators whose elements the evaluator goes through in Python."""


def require_work(node: Node, contents: Mapping[str, Any], results: Results) -> None:
    """Check what a node will take, and count its steps.

    Args:
        contents: of the tensors that it reads, by name.
        results: sizes and bytes of each element of its results by name, as far as they are known.

    Raises:
        LimitExceeded: more than the model may take.
    """
    given = [contents.get(name) if name else None for name in node.inputs]
    read = sum(elements_of(each) for each in given)
    written = 0
    for name, (sizes, width) in results.items():
        meter().require_tensor(sizes, width, f"{node}: output {name!r} of sizes {list(sizes)}")
        written += math.prod(sizes)
    factor = _REDUCED[node.operator](node, given) if node.operator in _REDUCED else 1
    if node.operator in _UNFOLDED:
        # The evaluator copies the window of each element of a result.
        copied = written // max(1, _sizes(given[_weights(node)])[0]) * factor * _COPIED_BYTES
        meter().require_memory(copied, f"{node} on onnx's evaluator")
    steps = read + max(written, 1) * factor
    weight = _PYTHON_STEPS if node.operator in _IN_PYTHON else 1
    meter().count("evaluator_steps", steps * weight, f"{node} on onnx's evaluator")


def elements_of(content: Any) -> int:
    """Return the elements of a tensor, or of all tensors of a sequence."""
    if isinstance(content, list):
        return len(content) + sum(map(elements_of, content))
    return int(np.size(content)) if isinstance(content, np.ndarray) else 1


def bytes_of(content: Any) -> int:
    """Return the bytes of a tensor, with its strings, or of all tensors of a sequence."""
    if isinstance(content, list):
        return 8 * len(content) + sum(map(bytes_of, content))
    if not isinstance(content, np.ndarray):
        return sys.getsizeof(content)
    if not content.dtype.hasobject:
        return content.nbytes
    strings = {id(each): each for each in content.flat}
    return content.nbytes + sum(map(sys.getsizeof, strings.values()))


def _sizes(content: Any) -> tuple[int, ...]:
    return tuple(np.shape(content)) if isinstance(content, np.ndarray) else ()


def _inner(node: Node, given: Sequence[Any]) -> int:
    """Return the products of each element of a product of matrices, at most."""
    return max(_sizes(given[0]), default=1)


def _filter(node: Node, given: Sequence[Any]) -> int:
    """Return the products of each element of a convolution."""
    return math.prod(_sizes(given[_weights(node)])[1:])


def _weights(node: Node) -> int:
    """Return the number of the input that has the weights of a convolution."""
    return 3 if node.operator == "QLinearConv" else 1


def _interpolated(node: Node, given: Sequence[Any]) -> int:
    """Return the rows that the evaluator interpolates for each element: all of the input."""
    sizes = _sizes(given[0])
    return math.prod(sizes[:-1])


def _sampled(node: Node, given: Sequence[Any]) -> int:
    """Return the samples of each element of a region."""
    ratio = int(node.attributes.get("sampling_ratio", 0))
    if ratio > 0:
        return ratio * ratio
    rois = np.asarray(given[1], np.float64)
    scale = float(node.attributes.get("spatial_scale", 1.0))
    extent = np.max(np.abs(rois), initial=0) * abs(scale) * 2 + 1
    return int(min(extent * extent, 2.0**62)) if np.isfinite(extent) else 2**62


def _in_trees(node: Node, given: Sequence[Any]) -> int:
    return tree_steps(node)


def _window(node: Node, given: Sequence[Any]) -> int:
    """Return the elements of a window."""
    return math.prod(node.attributes.get("kernel_shape", ()))


def _summed(node: Node, given: Sequence[Any]) -> int:
    """Return the products of each element of an Einsum, at most: those of all letters."""
    terms = str(node.attributes.get("equation")).replace(" ", "").partition("->")[0].split(",")
    lengths: dict[str, int] = {}
    for term, content in zip_longest(terms, given, fillvalue=""):
        sizes = _sizes(content)
        letters = term.replace("...", "." * max(0, len(sizes) - len(term.replace("...", ""))))
        for place, (letter, size) in enumerate(zip(letters, sizes, strict=False)):
            key = f".{place - len(letters)}" if letter == "." else letter
            lengths[key] = max(lengths.get(key, 1), size)
    return math.prod(lengths.values())


def _attended(node: Node, given: Sequence[Any]) -> int:
    """Return the products of each element of an attention: one for each key, at most."""
    return 2 * max((max(_sizes(each), default=1) for each in given), default=1)


def _recurrent(node: Node, given: Sequence[Any]) -> int:
    """Return the products of each element of a state."""
    return sum(max(_sizes(each), default=1) for each in given[:3])


_REDUCED: Mapping[str, Callable[[Node, Sequence[Any]], int]] = {
    "Attention": _attended,
    "AveragePool": _window,
    "Conv": _filter,
    "ConvInteger": _filter,
    "ConvTranspose": _filter,
    "DeformConv": _filter,
    "Det": _inner,
    "Einsum": _summed,
    "GRU": _recurrent,
    "Gemm": _inner,
    "LSTM": _recurrent,
    "LinearAttention": _attended,
    "LpPool": _window,
    "MatMul": _inner,
    "MatMulInteger": _inner,
    "MaxPool": _window,
    "QLinearConv": _filter,
    "QLinearMatMul": _inner,
    "RNN": _recurrent,
    "Resize": _interpolated,
    "RoiAlign": _sampled,
    "TreeEnsemble": _in_trees,
    "TreeEnsembleClassifier": _in_trees,
    "TreeEnsembleRegressor": _in_trees,
    "Upsample": _interpolated,
}
"""Operators of which each element of a result takes several steps, and how many."""
