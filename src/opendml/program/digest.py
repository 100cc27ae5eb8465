"""Digests of programs: equal programs have equal digests, in every process."""

from __future__ import annotations

import struct

from opendml.digests import digest_of
from opendml.program.node import LookupTable, Node, Operation, Recurrence, ordered
from opendml.program.program import Layout, Program
from opendml.program.sizes import is_traced


def program_digest(program: Program) -> str:
    """Return a digest of all that a program computes, sizes and numbers included.

    The contents of constants and the names of operators (`Node.origin`) do not count. Traced sizes count by
    their expressions over named dimensions.
    """
    lines = [*map(_layout_text, program.inputs), "->", *map(_layout_text, program.outputs)]
    lines += [f"{sorted(program.constants)}", _nodes_text(program.results)]
    lines += [f"in place: {sorted(program.in_place)}"] if program.in_place else []
    return digest_of("\n".join(lines).encode()).hexdigest()


def _layout_text(layout: Layout) -> str:
    return f"{layout.type.name} {layout.sizes} {layout.strides}"


def _nodes_text(roots: tuple[Node, ...]) -> str:
    names: dict[int, int] = {}
    lines = []
    for node in ordered(roots):
        names[id(node)] = len(names)
        operands = [names[id(operand)] for operand in node.operands]
        attribute = "" if node.attribute is None else _attribute_text(node)
        lines.append(f"{node.operation.name} {node.type.name} {node.sizes} {attribute} {operands}")
    lines.append(f"{[names[id(root)] for root in roots]}")
    return "\n".join(lines)


def _attribute_text(node: Node) -> str:
    """Return a text that is equal for equal attributes alone: the bits of floats tell -0.0 from 0.0."""
    attribute = node.attribute
    if isinstance(attribute, float) and not is_traced(attribute):
        return struct.pack("<d", attribute).hex()
    if isinstance(attribute, LookupTable):
        return struct.pack(f"<{len(attribute.entries)}d", *attribute.entries).hex()
    if isinstance(attribute, Recurrence):
        return f"{attribute.count} {attribute.windows}\n{_nodes_text((attribute.body,))}\n"
    if node.operation is Operation.CONSTANT:
        return f"integer {attribute}"
    return repr(attribute)
