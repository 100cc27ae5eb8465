"""Nodes of ONNX's operator sets 1 to 6 as nodes of operator set 7, on which converters and evaluator rely.

onnx.version_converter is not used. It has no adapter for 15 changed operators, and loses PRelu's axis and
Selu's old defaults. Ranks are known during the trace, so old broadcasting becomes an explicit Unsqueeze.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from opendml.errors import Unsupported
from opendml.frontends.onnx.node import OnnxNode, nodes_of
from opendml.frontends.onnx.package import onnx
from opendml.frontends.onnx.values import Known, Value

FIRST_MODERN_OPSET = 7
_CONTROL_FLOW = frozenset({"If", "Loop", "Scan"})
"""Operators that did not change; their graphs may have old nodes."""

_BROADCASTING = ("Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Pow", "Sub", "Xor")
_SPLIT_OPSET = 13
"""The version from which Split reads sizes from an input, as it does in version 1."""


def modern_nodes(node: OnnxNode, values: Sequence[Value | None], prefix: str) -> tuple[OnnxNode, ...] | None:
    """Return equivalent nodes of operator set 7; None: the node is new, or has no schema, as the experimental
    Affine.

    Args:
        node: the node.
        values: its inputs.
        prefix: the prefix of the names of new tensors.

    Raises:
        Unsupported: the node trains, or its meaning depends on the content of a tensor.
    """
    if node.domain or node.version >= FIRST_MODERN_OPSET or node.operator in _CONTROL_FLOW:
        return None
    if not onnx.defs.has(node.operator, node.version, ""):
        return None
    old = _Old(node, values, prefix, dict(node.attributes), list(node.inputs))
    old.attributes.pop("consumed_inputs", None)
    old.state_defaults()
    rewrite = _REWRITES.get(node.operator)
    if rewrite is not None:
        rewrite(old)
    message = onnx.helper.make_node(node.operator, old.inputs, node.outputs, node.name, **old.attributes)
    return nodes_of([*old.before, message], {**node.opsets, "": old.opset})


@dataclass
class _Old:
    """A node during its rewrite."""

    node: OnnxNode
    values: Sequence[Value | None]
    prefix: str
    attributes: dict[str, Any]
    inputs: list[str]
    before: list[onnx.NodeProto] = field(default_factory=list)
    opset: int = FIRST_MODERN_OPSET

    def state_defaults(self) -> None:
        """Add attributes for old defaults that differ from the new ones, such as Selu's."""
        schemas = [
            onnx.defs.get_schema(self.node.operator, version, "")
            for version in (self.node.version, FIRST_MODERN_OPSET)
        ]
        old, new = (each.attributes for each in schemas)
        for name, declared in old.items():
            default = declared.default_value
            if name in self.attributes or name not in new or not default.name:
                continue
            if default != new[name].default_value:
                self.attributes[name] = onnx.helper.get_attribute_value(default)

    def rank(self, number: int) -> int:
        """Return the number of dimensions of an input."""
        value = self.values[number]
        if value is None or value.sizes is None:
            raise self.refused(f"input {number} is no tensor")
        return len(value.sizes)

    def known(self, number: int) -> list[float]:
        """Return the content of a known input."""
        value = self.values[number]
        if not isinstance(value, Known):
            raise self.refused(f"input {number} is computed, and decides the sizes of the result")
        return [float(each) for each in np.asarray(value.content).reshape(-1)]

    def add(self, operator: str, inputs: Sequence[str], **attributes: Any) -> str:
        """Add a node before this one, and return the name of its output."""
        name = f"{self.prefix}{operator}.{len(self.before)}"
        self.before.append(onnx.helper.make_node(operator, inputs, [name], name, **attributes))
        return name

    def constant(self, content: Any) -> str:
        """Add an INT64 constant before this node, and return its name."""
        return self.add("Constant", [], value=onnx.numpy_helper.from_array(np.array(content, np.int64)))

    def unsqueeze(self, number: int, count: int) -> None:
        """Append `count` dimensions of size 1 to an input."""
        if count > 0:
            rank = self.rank(number)
            axes = list(range(rank, rank + count))
            self.inputs[number] = self.add("Unsqueeze", [self.inputs[number]], axes=axes)

    def refused(self, why: str) -> Unsupported:
        """Return the error for a node that cannot be rewritten."""
        return Unsupported(f"{self.node}: {why}; opendml runs such nodes from opset {FIRST_MODERN_OPSET} on")


def _broadcast(old: _Old) -> None:
    """Align the second operand at `axis`; by default it has the innermost dimensions."""
    broadcast, axis = old.attributes.pop("broadcast", 0), old.attributes.pop("axis", None)
    if broadcast and axis is not None:
        axis += old.rank(0) if axis < 0 else 0
        old.unsqueeze(1, old.rank(0) - axis - old.rank(1))


def _slope(old: _Old) -> None:
    """Align a slope of several elements with the channels."""
    value = old.values[1]
    if value is not None and value.sizes is not None and len(value.sizes) == 1 and value.sizes != (1,):
        old.unsqueeze(1, old.rank(0) - 2)


def _inference(old: _Old) -> None:
    if not old.attributes.pop("is_test", 0):
        raise old.refused("is_test is 0, so the node trains")


def _without(*names: str) -> Callable[[_Old], None]:
    def rewrite(old: _Old) -> None:
        for name in names:
            old.attributes.pop(name, None)

    return rewrite


def _cast(old: _Old) -> None:
    to = old.attributes.get("to")
    if isinstance(to, str):
        if to not in dict(onnx.TensorProto.DataType.items()):
            raise old.refused(f"to is {to!r}, which is no type of ONNX")
        old.attributes["to"] = onnx.TensorProto.DataType.Value(to)


def _concat(old: _Old) -> None:
    if old.node.version < 4:
        old.attributes.setdefault("axis", 1)


def _pad(old: _Old) -> None:
    if "paddings" in old.attributes:
        old.attributes["pads"] = old.attributes.pop("paddings")


def _reshape(old: _Old) -> None:
    if "shape" in old.attributes:
        old.inputs.append(old.constant(old.attributes.pop("shape")))


def _split(old: _Old) -> None:
    if len(old.inputs) > 1:
        old.opset = _SPLIT_OPSET
        old.inputs[1] = old.add("Cast", [old.inputs[1]], to=onnx.TensorProto.INT64)


def _tile(old: _Old) -> None:
    if old.node.version < 6:
        (count,), (axis,) = old.known(1), old.known(2)
        repeats = [1] * old.rank(0)
        repeats[int(axis)] = int(count)
        old.inputs[1:] = [old.constant(repeats)]


def _upsample(old: _Old) -> None:
    height, width = (old.attributes.pop(f"{name}_scale", 1.0) for name in ("height", "width"))
    old.attributes["scales"] = [1.0, 1.0, height, width]


def _norm(old: _Old) -> None:
    """Make the exponent an integer; in version 1 it is a float."""
    exponent = old.attributes.get("p", 2)
    if exponent != int(exponent):
        raise old.refused(f"p is {exponent}; a whole number is needed")
    old.attributes["p"] = int(exponent)


_REWRITES: Mapping[str, Callable[[_Old], None]] = {
    **dict.fromkeys(_BROADCASTING, _broadcast),
    "BatchNormalization": _inference,
    "Cast": _cast,
    "Concat": _concat,
    "Dropout": _inference,
    "GRU": _without("output_sequence"),
    "Gemm": _without("broadcast"),
    "GlobalLpPool": _norm,
    "LSTM": _without("output_sequence"),
    "LpPool": _norm,
    "PRelu": _slope,
    "Pad": _pad,
    "RNN": _without("output_sequence"),
    "Reshape": _reshape,
    "Split": _split,
    "Tile": _tile,
    "Upsample": _upsample,
}
