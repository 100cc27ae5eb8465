"""Which results of random ONNX models nobody can judge: ONNX's evaluator computes them wrongly, or ONNX
leaves them open."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from opendml.frontends.onnx.node import captured
from tests.fuzz.onnx_draft import Array, Draft

Contents = Mapping[str, Array]


@dataclass(frozen=True)
class Read:
    """A node with what it reads."""

    node: onnx.NodeProto
    opset: int
    contents: Contents

    def attribute(self, name: str, default: Any) -> Any:
        """An attribute as Python has it."""
        found = [each for each in self.node.attribute if each.name == name]
        return onnx.helper.get_attribute_value(found[0]) if found else default

    def input(self, number: int) -> Array | None:
        """An input's content; None: the node has it not."""
        return self.contents.get(self.node.input[number]) if number < len(self.node.input) else None


def _has_not_four_dimensions(read: Read) -> bool:
    x = read.input(0)
    return x is not None and x.ndim != 4


def _has_padding_below_zero(read: Read) -> bool:
    """Windows that are further apart than they are long, padded as for equal sizes."""
    padded = bytes(read.attribute("auto_pad", b"NOTSET")).startswith(b"SAME")
    kernel = read.attribute("kernel_shape", [])
    return padded and any(
        step > size for step, size in zip(read.attribute("strides", []), kernel, strict=False)
    )


def _takes_the_nearest(read: Read) -> bool:
    return bytes(read.attribute("mode", b"nearest")) == b"nearest"


def _has_short_sequences(read: Read) -> bool:
    lengths, x = read.input(4), read.input(0)
    return lengths is not None and x is not None and bool(np.any(lengths != len(x)))


FAULTS: Mapping[str, tuple[Callable[[Read], bool], str]] = {
    "AveragePool": (_has_padding_below_zero, "its padding is negative, which moves windows"),
    "BatchNormalization": (lambda read: read.opset < 14, "it mixes the batch's own mean and variance in"),
    "GRU": (_has_short_sequences, "it does not read how long sequences are"),
    "GlobalAveragePool": (
        _has_not_four_dimensions,
        "it takes the mean of two dimensions always",
    ),
    "GlobalMaxPool": (_has_not_four_dimensions, "it takes the maximum of two dimensions always"),
    "LSTM": (_has_short_sequences, "it does not read how long sequences are"),
    "LpPool": (_has_padding_below_zero, "its padding is negative, which moves windows"),
    "MaxPool": (_has_padding_below_zero, "its padding is negative, which moves windows"),
    "RNN": (_has_short_sequences, "it does not read how long sequences are"),
    "Resize": (_takes_the_nearest, "a rounding decides which of two elements that are as near it takes"),
    "Unique": (lambda read: not read.attribute("sorted", 1), "it sorts what is to stay in its order"),
}
"""By operators: where ONNX's evaluator computes something else than ONNX says, and what. No node reads such
results, and ONNX Runtime alone judges them."""

ENDING: Mapping[str, str] = {
    "GRU": "it divides by how many there are",
    "LSTM": "it divides by how many there are",
    "RNN": "it divides by how many there are",
    "TopK": "up to 1.30 it divides by how many rows there are",
}
"""Operators at which ONNX Runtime ends the process where an input has no elements: they are not tried so."""

CHOOSING: Mapping[str, str] = {
    "Hardmax": "which element is the greatest beside NaN is open",
    "MaxPool": "whether NaN is greater than all others is open",
    "ReduceMax": "whether NaN is greater than all others is open",
    "ReduceMin": "whether NaN is less than all others is open",
    "TopK": "where NaN is sorted to is open",
    "Unique": "whether one NaN is another is open",
}
"""Operators whose results are numbers that depend on where NaN stands in an order."""

KNOWING: Mapping[str, str] = {
    "IsInf": "infinities are what it asks for",
    "IsNaN": "NaN is what it asks for",
}
"""Operators whose integers or truth values ONNX says for infinities and NaN. Of others they are open, as a
conversion of them to an integer is."""


def errs(node: onnx.NodeProto, opset: int, contents: Contents) -> bool:
    """Whether ONNX's evaluator is known to compute a node wrongly."""
    applies, _ = FAULTS.get(node.op_type, (None, ""))
    return applies is not None and not node.domain and applies(Read(node, opset, contents))


def ends_process(node: onnx.NodeProto, contents: Contents) -> bool:
    """Whether ONNX Runtime is known to end the process at a node."""
    return node.op_type in ENDING and any(not content.size for content in contents.values())


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
