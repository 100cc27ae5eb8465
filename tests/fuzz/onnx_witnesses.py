"""Which results of random ONNX models nobody can judge: ONNX's evaluator computes them wrongly, or ONNX
leaves them open."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx

from opendml.frontends.onnx.evaluator_facts import fault, input_of
from opendml.frontends.onnx.node import OnnxNode, captured, nodes_of
from tests.fuzz.onnx_draft import Array, Draft

Contents = Mapping[str, Array]


def _has_not_four_dimensions(node: OnnxNode, contents: Contents) -> bool:
    return bool(input_of(node, contents, 0).ndim != 4)


def _begins_in_front(node: OnnxNode, contents: Contents) -> bool:
    """Whether a slice backwards begins in front of all elements."""
    x, starts, axes, steps = (input_of(node, contents, number) for number in (0, 1, 3, 4))
    places = range(len(starts)) if axes is None else axes
    each = zip(starts, places, [] if steps is None else steps, strict=False)
    return any(step < 0 and start < -x.shape[axis] for start, axis, step in each)


def _ends_before_all(node: OnnxNode, contents: Contents) -> bool:
    return bool(node.attributes.get("end", 0) < -input_of(node, contents, 0).ndim)


MORE_FAULTS: Mapping[str, tuple[Callable[[OnnxNode, Contents], bool], str]] = {
    "BatchNormalization": (lambda node, _: node.version < 14, "mixes the batch's own mean and variance in"),
    "GlobalAveragePool": (_has_not_four_dimensions, "takes the mean of two dimensions always"),
    "GlobalMaxPool": (_has_not_four_dimensions, "takes the maximum of two dimensions always"),
    "Resize": (
        lambda node, _: node.attributes.get("mode") == "nearest",
        "lets a rounding decide which of two elements that are as near it takes",
    ),
    "Shape": (_ends_before_all, "counts an end before all dimensions from their end again"),
    "Slice": (_begins_in_front, "finds nothing backwards from in front of all elements"),
    "Unique": (lambda node, _: not node.attributes.get("sorted", 1), "sorts what is to stay in its order"),
}
"""By operators: where ONNX's evaluator computes something else than ONNX says, beside what opendml does not
ask it for. No node reads such results, and ONNX Runtime alone judges them."""

EMPTY: Mapping[str, str] = {
    "Conv": "ONNX Runtime does not end",
    "GRU": "ONNX Runtime ends the process",
    "InstanceNormalization": "ONNX's inference says other sizes",
    "LSTM": "ONNX Runtime ends the process",
    "RNN": "ONNX Runtime ends the process",
    "ReduceSumSquare": "ONNX's evaluator makes other types of it, ONNX Runtime other sizes",
    "TopK": "ONNX Runtime up to 1.30 ends the process",
}
"""Operators that are not tried where an input has no elements, and why."""

CHOOSING: Mapping[str, str] = {
    "Hardmax": "which element is the greatest beside NaN is open",
    "MaxPool": "whether NaN is greater than all others is open",
    "ReduceMax": "whether NaN is greater than all others is open",
    "ReduceMin": "whether NaN is less than all others is open",
    "TopK": "where NaN is sorted to is open",
    "Unique": "whether one NaN is another is open",
}
"""Operators whose results are numbers that depend on where NaN stands in an order."""

KNOWING: Mapping[str, str] = {"IsInf": "infinities are what it asks for", "IsNaN": "NaN is what it asks for"}
"""Operators whose integers or truth values ONNX says for infinities and NaN. Of others they are open, as a
conversion of them to an integer is."""


def errs(message: onnx.NodeProto, opset: int, contents: Contents) -> bool:
    """Whether ONNX's evaluator is known to compute a node wrongly."""
    (node,) = nodes_of([message], {"": opset})
    applies, _ = MORE_FAULTS.get(node.operator, (None, ""))
    return not node.domain and (
        fault(node, contents) is not None or (applies is not None and applies(node, contents))
    )


def is_untried(node: onnx.NodeProto, contents: Contents) -> bool:
    """Whether a node is of no elements, of which there is no telling or worse."""
    return node.op_type in EMPTY and any(not content.size for content in contents.values())


def open_results(draft: Draft, nodes: Sequence[onnx.NodeProto]) -> frozenset[str]:
    """The tensors that infinities or NaN leave open."""
    contents = {each.name: each.content for each in draft.tensors}
    strange = {name for name, content in contents.items() if not np.isfinite(content).all()}
    left_open: set[str] = set()
    for node in nodes:
        reads, made = {*node.input, *captured(node)}, set(node.output)
        if reads & strange:
            strange |= made
            wholes = {name for name in made if name not in contents or contents[name].dtype.kind != "f"}
            left_open |= (
                made if node.op_type in CHOOSING else wholes if node.op_type not in KNOWING else set()
            )
        if reads & left_open:
            left_open |= made
    return frozenset(left_open)
