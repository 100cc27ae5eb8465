"""Splits off what a program computes of its constants alone: it is computed once, ahead of all runs.

Prepared is what saves a run more than it costs. What a kernel reads for free stays where it is: constants as
they are, moved or converted. So does what would take more memory than the constants that it is made of, as
reading it would cost more than computing it again, but for sums and the like, which run over whole tensors.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from itertools import islice

from opendml.compiler.kernel import Recipe
from opendml.compiler.views import above_memory
from opendml.program.node import COLLECTIVE, Node, Operation, View, ordered, source, with_operands
from opendml.program.program import Program, packed

MOST_VISITED = 1024
"""Nodes of a value that are looked at, at most, to find out whether it pays to compute it ahead."""


def split(program: Program) -> tuple[Program, Program]:
    """A program that prepares constants, and the one that is left. Both have all inputs of the whole; behind
    them, the second reads the outputs of the first, packed."""
    prepared = _prepared(program)
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
        ),
    )


def recipes_of(first: Program) -> list[Recipe]:
    """Return the recipes of the results of a program that prepares constants.

    Sums may depend on what shares their kernel, so a recipe of a sum says the whole program.
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


def _prepared(program: Program) -> list[Node]:
    """The nodes to compute ahead, in the order in which they are met."""
    if not program.constants:
        return []
    nodes = ordered(program.results)
    fixed, used = _fixed(nodes, program.constants)
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
        if id(node) in used and _pays(node, program):
            result[id(node)] = node
        else:
            pending += [operand for operand in node.operands if id(operand) in fixed]
    return [node for node in nodes if id(node) in result]


def _fixed(nodes: Sequence[Node], constants: Container[object]) -> tuple[set[int], set[int]]:
    """The identities of the nodes that depend on constants or numbers alone, and of those among them that
    depend on constants."""
    fixed, used = set[int](), set[int]()
    for node in nodes:
        is_source = node.operation is Operation.SOURCE
        if node.attribute in constants if is_source else all(id(each) in fixed for each in node.operands):
            fixed.add(id(node))
            if is_source or any(id(each) in used for each in node.operands):
                used.add(id(node))
    return fixed, used


def _pays(node: Node, program: Program) -> bool:
    """Whether a run is faster if it finds the value in memory of a node that depends on constants."""
    if node.operation in COLLECTIVE or node.operation is Operation.RECURRENCE:
        return True
    if node.operation in _FREE and not (isinstance(node.attribute, View) and node.attribute.indexed):
        return False
    layout = packed(node.type, node.sizes)
    needed = layout.element_count * layout.type.bytes / (2 if _is_gathered(node) else 1)
    return _are_made_of(node, needed, program)


def _are_made_of(node: Node, needed: float, program: Program) -> bool:
    """Whether the constants of a node have as many bytes as are `needed`."""
    pending, seen, total = [node], {id(node)}, 0
    numbers = set[int]()
    while pending and total < needed and len(seen) <= MOST_VISITED:
        each = pending.pop()
        if isinstance(each.attribute, int) and each.operation is Operation.SOURCE:
            if each.attribute not in numbers:
                first, last = program.inputs[each.attribute].span
                total += last - first
            numbers.add(each.attribute)
        new = {id(operand): operand for operand in each.operands if id(operand) not in seen}
        seen.update(new)
        pending += new.values()
    return total >= needed


def _is_gathered(value: Node) -> bool:
    """Whether an element-wise value is made of elements at computed places."""
    return any(
        isinstance(each.attribute, View) and each.attribute.indexed
        for each in islice(above_memory(value), MOST_VISITED)
    )


_FREE = frozenset(
    {
        Operation.SOURCE,
        Operation.VIEW,
        Operation.RESHAPE,
        Operation.CONVERT,
        Operation.BITCAST,
        Operation.ROUND,
        Operation.EXPAND,
    }
)
"""What kernels do while they read."""
