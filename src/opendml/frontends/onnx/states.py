"""Immutable states of a trace: the pending nodes and the values of tensors.

States share what they have in common, so a path of n steps costs O(n), not O(n²).
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence

from opendml.across_forks import cached_property
from opendml.frontends.onnx.node import OnnxNode
from opendml.frontends.onnx.values import Value
from opendml.late_dataclass import dataclass

Values = ChainMap[str, Value]
"""Values by the names of tensors, in immutable layers; the first layer wins."""


def extended(values: Values, more: Mapping[str, Value]) -> Values:
    """Return values extended by new ones, which hide old ones of the same name.

    Each layer is larger than those before it together, so n extensions copy each value at most log(n) times.
    """
    layer, others = dict(more), list(values.maps)
    while others and len(others[0]) <= len(layer):
        layer = {**others.pop(0), **layer}
    return ChainMap(layer, *others)


@dataclass(frozen=True)
class NodeSequence:
    """A sequence of nodes: those of the graph, or those that replace one node."""

    nodes: tuple[OnnxNode, ...]

    @cached_property
    def last_readers(self) -> Mapping[str, int]:
        """The number of the last reader of each tensor, by name."""
        return {name: number for number, node in enumerate(self.nodes) for name in node.reads}


@dataclass(frozen=True)
class Pending:
    """The pending nodes: sequences with the number of the next node in each, the innermost sequence last."""

    sequences: tuple[tuple[NodeSequence, int], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.sequences)

    def prepended(self, nodes: Sequence[OnnxNode]) -> Pending:
        """Return the pending nodes with other nodes in front."""
        return Pending((*self.sequences, (NodeSequence(tuple(nodes)), 0))) if nodes else self

    def popped(self) -> tuple[OnnxNode, Pending]:
        """Return the next node, and the nodes behind it."""
        *outer, (sequence, number) = self.sequences
        rest = [(sequence, number + 1)] if number + 1 < len(sequence.nodes) else []
        return sequence.nodes[number], Pending((*outer, *rest))

    def reads(self, name: str) -> bool:
        """Return whether a pending node reads a tensor."""
        return any(each.last_readers.get(name, -1) >= number for each, number in self.sequences)


@dataclass(frozen=True)
class State:
    """The state of a trace between two steps."""

    pending: Pending
    values: Values
