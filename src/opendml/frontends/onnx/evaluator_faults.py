"""Where onnx's evaluator computes something else than ONNX says: it is not asked then."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from opendml.frontends.onnx.node import Node

Contents = Mapping[str, Any]


def input_of(node: Node, contents: Contents, number: int) -> Any:
    """The content of an input; None: the node has it not."""
    return contents.get(node.inputs[number]) if number < len(node.inputs) else None


def _is_padded_otherwise(node: Node, contents: Contents) -> bool:
    """Windows more than one element apart, padded as for equal sizes; padding that is not that of two
    dimensions, the same at the second's start and the first's end."""
    if node.attributes.get("auto_pad", "NOTSET").startswith("SAME"):
        return any(step > 1 for step in node.attributes.get("strides", ()))
    pads = node.attributes.get("pads", ())
    return any(pads) and (len(pads) != 4 or pads[1] != pads[2])


def _has_short_sequences(node: Node, contents: Contents) -> bool:
    x, lengths = (input_of(node, contents, number) for number in (0, 4))
    longest = x.shape[1 if node.attributes.get("layout", 0) else 0]
    return lengths is not None and bool(np.any(lengths != longest))


def _makes_one_pixel_of_pytorch(node: Node, contents: Contents) -> bool:
    """Whether a dimension ends up with one element, which lies at the first one there."""
    if node.attributes.get("coordinate_transformation_mode") != "pytorch_half_pixel":
        return False
    scales, sizes = (input_of(node, contents, number) for number in (2, 3))
    return bool(np.any(sizes == 1) if sizes is not None else np.any(np.less(scales, 1)))


_WINDOWS = (_is_padded_otherwise, "does not pad such windows as ONNX says")
_LENGTHS = (_has_short_sequences, "does not read the lengths of sequences")

FAULTS: Mapping[str, tuple[Callable[[Node, Contents], bool], str]] = {
    "AveragePool": _WINDOWS,
    "GRU": _LENGTHS,
    "LSTM": _LENGTHS,
    "LpPool": _WINDOWS,
    "MaxPool": _WINDOWS,
    "RNN": _LENGTHS,
    "Resize": (_makes_one_pixel_of_pytorch, "places one pixel of pytorch_half_pixel elsewhere"),
}
"""By operators of ONNX: when, and what the evaluator does."""


def fault(node: Node, contents: Contents) -> str | None:
    """What the evaluator does otherwise with a node; None: nothing that is known."""
    applies, reason = FAULTS.get(node.operator, (None, ""))
    return reason if applies is not None and not node.domain and applies(node, contents) else None
