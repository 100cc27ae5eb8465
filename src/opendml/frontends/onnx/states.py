"""Where the trace of an ONNX graph stands: the nodes that are left, and what is known of tensors.

A state is never changed: those that follow it share what they have in common, so that a path of n steps costs
about n, not n times n.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from opendml.frontends.onnx.node import Node
from opendml.frontends.onnx.values import Value

Values = ChainMap[str, Value]
"""Values by the names of tensors, in layers that are never changed; the first one counts most."""


def extended(values: Values, more: Mapping[str, Value]) -> Values:
    """Values and more of them, which count most. Each layer is larger than those before it together, so n
    extensions copy each value log(n) times at most."""
    layer, others = dict(more), list(values.maps)
    while others and len(others[0]) <= len(layer):
        layer = {**others.pop(0), **layer}
    return ChainMap(layer, *others)


@dataclass(frozen=True)
class Block:
    """Nodes that came together, in their order: those of the graph, or those that a node stands for."""

    nodes: tuple[Node, ...]

    @cached_property
    def last_readers(self) -> Mapping[str, int]:
        """The number of the last node that reads a tensor, by the tensor's name."""
        return {name: number for number, node in enumerate(self.nodes) for name in node.reads}


@dataclass(frozen=True)
class Pending:
    """The nodes that are left: blocks and the number of the next node in each, the innermost last."""

    blocks: tuple[tuple[Block, int], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.blocks)

    def after(self, nodes: Sequence[Node]) -> Pending:
        """These behind others."""
        return Pending((*self.blocks, (Block(tuple(nodes)), 0))) if nodes else self

    def taken(self) -> tuple[Node, Pending]:
        """The next node, and those behind it."""
        *outer, (block, number) = self.blocks
        rest = [(block, number + 1)] if number + 1 < len(block.nodes) else []
        return block.nodes[number], Pending((*outer, *rest))

    def reads(self, name: str) -> bool:
        """Whether one of them reads a tensor."""
        return any(block.last_readers.get(name, -1) >= number for block, number in self.blocks)


@dataclass(frozen=True)
class State:
    """Where a trace stands between two steps."""

    pending: Pending
    values: Values
