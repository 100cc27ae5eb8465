"""Splits off the values that depend on constants alone: they are computed once, before all runs.

A value is prepared if that saves time. Constants as they are, moved or converted, stay where they are: a
kernel reads them for free. A value that takes more memory than the constants that it is made of stays in the
program, since reading it costs more than computing it again. Results of reductions are always prepared.
Values that depend on traced sizes are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, islice

from opendml.compiler.prices import FREE_IN_LOADS
from opendml.compiler.recipe import Recipe
from opendml.compiler.view_algebra import above_memory, walk
from opendml.program.carriers import has_four_bits
from opendml.program.node import COLLECTIVE, Node, Operation, View, ordered, source, with_operands
from opendml.program.program import Program, packed
from opendml.program.sizes import is_traced

MOST_VISITED = 1024
"""Nodes of a value that are visited, at most, to decide whether it is prepared."""


def split(program: Program, reads_halves: bool = False) -> tuple[Program, Program]:
    """Return a program that prepares constants, and the remaining one.

    Both have all inputs of the whole. After these, the second reads the packed outputs of the first. Halves
    of bytes are prepared, a byte for each, unless kernels read halves.
    """
    prepared = _prepared(program, reads_halves)
    layouts = tuple(packed(node.type, node.sizes) for node in prepared)
    first = len(program.inputs)
    copies = {id(node): source(first + number, node.type, node.sizes) for number, node in enumerate(prepared)}
    for node in ordered(program.results, copies):
        copies[id(node)] = with_operands(node, tuple(copies[id(operand)] for operand in node.operands))
    return (
        Program(program.inputs, layouts, tuple(prepared), program.constants),
        Program(
            (*program.inputs, *layouts),
            program.outputs,
            tuple(copies[id(root)] for root in program.results),
            program.constants | set(range(first, first + len(layouts))),
            program.in_place,
        ),
    )


def recipes_of(first: Program) -> list[Recipe]:
    """Return the recipes of the results of a program that prepares constants.

    Sums may depend on other results of their kernel, so a recipe of a sum has the whole program.
    """
    result = []
    for number, root in enumerate(first.results):
        if COLLECTIVE.isdisjoint(node.operation for node in ordered([root])):
            result.append(_recipe([root], first))
        else:
            whole = _recipe(first.results, first)
            text = None if whole.text is None else f"{number} of\n{whole.text}"
            result.append(Recipe(text, whole.constants))
    return result


def _recipe(roots: Sequence[Node], program: Program) -> Recipe:
    """Return the recipe of some nodes. The body of a recurrence has no text."""
    names: dict[int, int] = {}
    constants: dict[int, int] = {}
    lines = []
    for node in ordered(roots):
        names[id(node)] = len(names)
        attribute = repr(node.attribute)
        if node.operation is Operation.SOURCE and isinstance(node.attribute, int):
            number = node.attribute
            attribute = f"{constants.setdefault(number, len(constants))} {program.inputs[number]}"
        operands = ",".join(str(names[id(operand)]) for operand in node.operands)
        lines.append(f"{node.operation.name} {node.type.name} {node.sizes} {attribute} {operands}")
    lines.append(",".join(str(names[id(root)]) for root in roots))
    has_body = any(node.operation is Operation.RECURRENCE for node in ordered(roots))
    return Recipe(None if has_body else "\n".join(lines), tuple(constants))


def _prepared(program: Program, reads_halves: bool) -> list[Node]:
    """Return the nodes that are prepared, operands first."""
    if not program.constants:
        return []
    nodes = ordered(program.results)
    fixed, used = _fixed(nodes, program)
    pending = [root for root in program.results if id(root) in fixed]
    for node in nodes:
        if id(node) not in fixed:
            pending += [operand for operand in node.operands if id(operand) in fixed]
    result: dict[int, Node] = {}
    seen: set[int] = set()
    while pending:
        node = pending.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        is_half = not reads_halves and has_four_bits(node)
        if id(node) in used and (is_half or _pays(node, used[id(node)], program)):
            result[id(node)] = node
        else:
            pending += [operand for operand in node.operands if id(operand) in fixed]
    return [node for node in nodes if id(node) in result]


def _fixed(nodes: Sequence[Node], program: Program) -> tuple[set[int], dict[int, int]]:
    """Return the identities of the nodes that depend on no inputs, and the bytes of constants of some.

    A node that depends on constants has the bytes of the largest one.
    """
    fixed, used = set[int](), dict[int, int]()
    for node in nodes:
        if node.operation is Operation.SOURCE:
            if node.attribute in program.constants:
                fixed.add(id(node))
                used[id(node)] = _constant_bytes(node, program)
        elif all(id(each) in fixed for each in node.operands) and not _has_traced_sizes(node):
            fixed.add(id(node))
            largest = [used[id(each)] for each in node.operands if id(each) in used]
            if largest:
                used[id(node)] = max(largest)
    return fixed, used


def _has_traced_sizes(node: Node) -> bool:
    """Return whether a node depends on traced sizes: other runs may have other values."""
    attribute = node.attribute
    inner: tuple[object, ...] = attribute if isinstance(attribute, tuple) else ()
    if isinstance(attribute, View):
        inner = (*attribute.offsets, *chain(*attribute.steps))
    return any(map(is_traced, (*node.sizes, attribute, *inner)))


def _constant_bytes(constant: Node, program: Program) -> int:
    """Return the bytes of a constant."""
    assert isinstance(constant.attribute, int)
    first, last = program.inputs[constant.attribute].span
    return last - first


def _pays(node: Node, largest: int, program: Program) -> bool:
    """Return whether a run is faster if a value that depends on constants lies in memory.

    `largest` is the bytes of the largest constant.
    """
    if node.operation in COLLECTIVE or node.operation is Operation.RECURRENCE:
        return True
    if node.operation in _FREE and not (isinstance(node.attribute, View) and node.attribute.indexed):
        return False
    layout = packed(node.type, node.sizes)
    needed = layout.element_count * layout.type.bytes / (2 if _is_gathered(node) else 1)
    return largest >= needed or _are_made_of(node, needed, program)


def _are_made_of(node: Node, needed: float, program: Program) -> bool:
    """Return whether the constants of a node have at least `needed` bytes."""
    numbers, total = set[object](), 0
    for each in islice(walk(node, lambda each: each.operands), MOST_VISITED):
        if each.operation is Operation.SOURCE and each.attribute not in numbers:
            numbers.add(each.attribute)
            total += _constant_bytes(each, program)
            if total >= needed:
                break
    return total >= needed


def _is_gathered(value: Node) -> bool:
    """Return whether an element-wise value is made of elements at computed indices."""
    return any(
        isinstance(each.attribute, View) and each.attribute.indexed
        for each in islice(above_memory(value), MOST_VISITED)
    )


_FREE = FREE_IN_LOADS | {Operation.SOURCE, Operation.VIEW, Operation.RESHAPE}
"""Operations that kernels do at no cost while they read."""
