"""Operators whose result sizes depend on data, split in two nodes.

The first node finds all elements and counts them with DirectML's operators. The second one is compiled for
the count.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from opendml.frontends.onnx.node import OnnxNode, nodes_of
from opendml.frontends.onnx.package import onnx
from opendml.frontends.onnx.registry import OWN
from opendml.frontends.onnx.values import Value
from opendml.spec.element_types import element_type

_SEARCHED = {"NonZero": 0, "Compress": 1}
"""The number of the input whose nonzero elements are found."""


def counted_nodes(node: OnnxNode, values: Sequence[Value | None], prefix: str) -> tuple[OnnxNode, ...] | None:
    """Return the two nodes of an operator; None: another operator, or inputs that DirectML cannot take."""
    number = _SEARCHED.get(node.operator) if not node.domain else None
    if number is None or not _is_searchable(values[number]) or _is_long(node, values):
        return None
    found = [f"{prefix}coordinates", f"{prefix}count"]
    search = onnx.helper.make_node("Coordinates", [node.inputs[number]], found, f"{prefix}found", domain=OWN)
    taken = onnx.helper.make_node(
        node.operator, [*node.inputs[:number], *found], node.outputs, node.name, domain=OWN
    )
    taken.attribute.extend(node.message.attribute)
    return nodes_of([search, taken], {**node.opsets, OWN: 1})


def _is_searchable(value: Value | None) -> bool:
    return (
        value is not None
        and value.type is not None
        and bool(value.sizes)
        and element_type(value.type) is not None
        and value.type.itemsize * value.type.kind.count("f") < 8
        and 0 not in (value.sizes or ())
    )


def _is_long(node: OnnxNode, values: Sequence[Value | None]) -> bool:
    """Return whether a condition has more elements than the axis that it selects from."""
    if node.operator != "Compress":
        return False
    chosen, condition = values[0], values[1]
    if chosen is None or condition is None or chosen.sizes is None or 0 in chosen.sizes:
        return True
    axis, total = node.attributes.get("axis"), math.prod(chosen.sizes)
    if axis is not None and not -len(chosen.sizes) <= axis < len(chosen.sizes):
        return True
    return math.prod(condition.sizes or ()) > (total if axis is None else chosen.sizes[axis])
