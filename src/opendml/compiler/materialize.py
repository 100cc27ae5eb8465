"""Chooses which values of a program kernels store to memory.

Some values must be stored: scattered tensors, tensors that views read, operands of recurrences, and what a
kernel over one domain cannot reduce. Others are stored since that costs less than computing them again in
each kernel that needs them. A kernel stores the last value that depends on a reduction alone, in the
fewest bits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from heapq import heappop, heappush
from itertools import islice
from operator import or_

from opendml.budget import check_time
from opendml.compiler.domains import Except, iteration_domain
from opendml.compiler.prices import GIVEN, Prices, costs_more_again
from opendml.compiler.view_algebra import IN_MEMORY, split_groups, walk
from opendml.program.carriers import bits_of_bfloat16
from opendml.program.node import COLLECTIVE, PLACINGS, SCANS, STORED, Node, Operation, ordered
from opendml.program.program import Program

MOST_PASSES = 3
"""Passes over a group before its results, at most: those of a softmax of a normalization."""
MOST_OPERATIONS_AGAIN = 12
"""Operations per element in a third pass that two passes have done already, at most. A softmax of a
normalization with scale and bias has as many. With more, storing takes less time and less code."""
MOST_KERNELS = 16
"""Kernels that compute a value of more than `MOST_NODES_AGAIN` nodes each for itself, at most. Without it, n
outputs of a chain of n operations would take n^2 / 2 operations."""
MOST_NODES_AGAIN = 64
MOST_PARTS_AGAIN = 32
"""Parts of a joined tensor that several other ones copy, at most."""
MOST_REDUCTIONS = 16
"""Reductions of a kernel, at most: all states are live at once. With 32, each takes 1.5 times as long for
want of registers, with 64 three times; and the time to compile grows faster than their number."""
MOST_STEPS = 64
"""Values above a reduction that its kernel may store instead, at most. Each is searched for other
reductions."""
_MOVEMENTS = STORED | {Operation.VIEW, Operation.RESHAPE}
_NOT_ELEMENT_WISE = IN_MEMORY | GIVEN
_APART = SCANS | {Operation.CONTRACTION}
"""Operations whose kernels compute nothing else."""


def materialized(roots: Sequence[Node], program: Program, prices: Prices) -> list[Node]:
    """Return the nodes that become temporaries, in the order in which they are computed."""
    nodes = ordered(roots)
    stored = {id(node): node for node in _required(nodes, roots, program)}
    users, position = _Users(nodes, roots), {id(node): number for number, node in enumerate(nodes)}
    pending = [*roots, *stored.values()]
    repeated = _RepeatedWork()
    while pending:
        check_time()
        root = pending.pop()
        held = Except(stored, id(root))
        is_whole = True
        for body in _bodies(root, held):
            for node in repeated.excess(root, body, held):
                stored[id(node)] = node
                pending.append(node)
            found = _beyond_one_kernel(body, held, position)
            for node in found:
                last = users.last_alone(node, body, stored)
                stored[id(last)] = last
                pending.append(last)
            is_whole = is_whole and not found
        if not is_whole:
            pending.append(root)
    for node in _sums_of_several(_kernels(roots, stored)):
        last = users.last_alone(node, node, stored)
        stored[id(last)] = last
    cheaper = list(_cheaper_stored(nodes, _kernels(roots, stored), stored, prices))
    alone = _needed_by_one_kernel(cheaper, roots, stored)
    stored |= {id(node): node for node in cheaper if id(node) not in alone}
    return [node for node in nodes if id(node) in stored]


# What must be stored


def _required(nodes: Sequence[Node], roots: Sequence[Node], program: Program) -> Iterator[Node]:
    """Yield the nodes that must lie in memory, whatever that costs.

    These are scattered tensors, operands of recurrences, joined tensors that others compute with, and values
    that are read through views or in other sizes. Inputs with suitable strides lie in memory already.
    """
    written = {id(root): layout for root, layout in zip(roots, program.outputs, strict=True)}
    users: dict[int, list[Node]] = {}
    for node in nodes:
        for operand in node.operands:
            users.setdefault(id(operand), []).append(node)
    copied = _copied_joins(nodes, users, written)
    for node in nodes:
        if node.operation is Operation.RECURRENCE:
            yield node
            _, *read = node.operands
            yield from (each for each in read if each.operation not in (Operation.SOURCE, Operation.RESHAPE))
        used_by = users.get(id(node), ())
        if node.operation in PLACINGS and used_by and not _is_element_wise_behind(node, used_by):
            yield node
        if node.operation in STORED and (
            any(user.operation not in _MOVEMENTS for user in used_by) or id(node) in copied
        ):
            yield node
        if node.operation not in (Operation.VIEW, Operation.RESHAPE):
            continue
        value = node.operands[0]
        if node.operation is Operation.RESHAPE and value.operation is not Operation.SOURCE:
            is_part = all(user.operation in STORED for user in used_by)
            fits = id(node) not in written or written[id(node)].reshaped(value.sizes) is not None
            if is_part and fits and (not used_by or split_groups(value.sizes, node.sizes) is not None):
                continue
        sizes = node.sizes if node.operation is Operation.RESHAPE else value.sizes
        if value.operation is Operation.SOURCE and isinstance(value.attribute, int):
            if program.inputs[value.attribute].reshaped(sizes) is None:
                yield value
        elif value.operation is not Operation.RESHAPE:
            yield value


def _copied_joins(
    nodes: Sequence[Node], users: Mapping[int, Sequence[Node]], results: Container[int]
) -> set[int]:
    """Return the identities of joined tensors of many parts that several others copy, or one more than once.

    `join([x, x])`, applied k times, would have 2^k parts.
    """
    uses: dict[int, int] = {}
    for node in reversed(nodes):
        uses[id(node)] = int(id(node) in results)
        for user in users.get(id(node), ()):
            # A node that has another one twice is among its users twice.
            uses[id(node)] += uses[id(user)] if user.operation is Operation.RESHAPE else 1
    found, parts = set[int](), dict[int, int]()
    for node in nodes:
        if node.operation is Operation.RESHAPE:
            parts[id(node)] = parts[id(node.operands[0])]
        elif node.operation not in STORED:
            parts[id(node)] = 1
        else:
            parts[id(node)] = sum(parts[id(operand)] for operand in node.operands)
            if uses[id(node)] > 1 and parts[id(node)] > MOST_PARTS_AGAIN:
                found.add(id(node))
                parts[id(node)] = 1
    return found


def _is_element_wise_behind(node: Node, used_by: Sequence[Node]) -> bool:
    """Return whether the kernel of a node computes its users, too: POSITIONS of as many as elements can."""
    if node.operation is not Operation.POSITIONS or node.sizes != node.operands[0].sizes:
        return False
    return all(user.operation not in IN_MEMORY and user.sizes == node.sizes for user in used_by)


def _bodies(root: Node, held: Container[int]) -> Iterator[Node]:
    """Yield the values that the kernels of a node compute: the node, its parts, or it in other sizes."""
    pending = [root]
    while pending:
        node = pending.pop()
        if id(node) in held:
            continue
        if node.operation in STORED:
            pending += reversed(node.operands)
        elif node.operation in (Operation.RESHAPE, Operation.RECURRENCE):
            pending.append(node.operands[0])
        else:
            yield node


# What one kernel cannot compute


def _beyond_one_kernel(root: Node, held: Container[int], position: Mapping[int, int]) -> list[Node]:
    """Return the nodes that the kernel of `root` must find in memory.

    They need reductions over another domain or other axes, more passes over a group, or more reductions than
    a kernel has. Of several products, the kernel computes the last one by `position` in the program. Sums of
    the others are stored by then. The sum of a residual with the last one is not.
    """
    nodes = sorted(ordered([root], held), key=lambda node: position[id(node)])
    domain = iteration_domain(root, nodes)
    own = {id(node) for node in domain.own}
    many = _with_many_passes(nodes, own)
    if many:
        return many
    if len(own) > MOST_REDUCTIONS:
        return _with_few_reductions(nodes, domain.own)
    return list(domain.others)


def _with_many_passes(nodes: Sequence[Node], own: set[int]) -> list[Node]:
    """Choose what to write to temporaries so that no operand of its `own` reductions needs many passes."""
    passes: dict[int, int] = {}
    found: list[Node] = []
    inside = {id(node) for node in nodes}
    apart = {*own, *({id(operand) for node in nodes for operand in node.operands} - inside)}
    for node in nodes:
        below = 0
        for operand in node.operands:
            below = max(below, passes.get(id(operand), 0))
        if id(node) in own:
            operand = node.operands[0]
            before = passes.get(id(operand), 0)
            if before >= MOST_PASSES or (
                before > 1 and _operations_of_pass(operand, apart) > MOST_OPERATIONS_AGAIN
            ):
                passes[id(operand)] = below = 0
                apart.add(id(operand))
                found.append(operand)
            below += 1
        elif node.operation in COLLECTIVE:
            below = MOST_PASSES
        passes[id(node)] = below
    if len(found) < 2:
        return found
    # A value that is made of another one may need few passes once that one is stored.
    stored = {id(node) for node in found}
    return [node for node in found if all(id(each) not in stored for each in ordered(node.operands, own))]


def _operations_of_pass(value: Node, apart: Container[int]) -> int:
    """Count the operations on each element of a value, made of what is reduced or stored `apart`."""
    free = GIVEN - {Operation.INDEX}
    return sum(node.sizes == value.sizes and node.operation not in free for node in ordered([value], apart))


def _with_few_reductions(nodes: Sequence[Node], own: Sequence[Node]) -> list[Node]:
    """Choose what to write to temporaries so that nothing needs more `own` reductions than a kernel has."""
    bits = {id(node): 1 << number for number, node in enumerate(own)}
    needs = defaultdict[int, int](int)
    found: list[Node] = []
    for node in nodes:
        operands = sorted(node.operands, key=lambda operand: needs[id(operand)].bit_count())
        while (
            need := reduce(or_, (needs[id(each)] for each in operands), bits.get(id(node), 0))
        ).bit_count() > MOST_REDUCTIONS:
            found.append(operands.pop())
            needs[id(found[-1])] = 0
        needs[id(node)] = need
    return found


class _Users:
    """The nodes that read each node of a program, and which of them are its results."""

    def __init__(self, nodes: Sequence[Node], roots: Sequence[Node]) -> None:
        self._nodes = nodes
        self._results = {id(root) for root in roots}
        self._users: dict[int, list[int]] = {id(node): [] for node in nodes}
        for position, node in enumerate(nodes):
            for operand in {id(each) for each in node.operands}:
                self._users[operand].append(position)

    def last_alone(self, node: Node, root: Node, stored: Container[int]) -> Node:
        """Return the value that the kernel of a reduction stores instead of the reduction.

        It is the last one of the fewest bits through which all readers lead, below `root` and other `stored`
        values. A bias, a residual sum and an activation may follow a sum of products, for example. A widened
        value is stored before it is widened.
        """
        result = last = _before_widening(node)
        for _ in range(MOST_STEPS):
            above = self._only_way(last, root, stored)
            if above is None:
                break
            domain = iteration_domain(above, ordered([above], Except(stored, id(above))))
            if not any(each is node for each in domain.own):
                break
            last = above
            if last.type.bits <= result.type.bits:
                result = last
        return result

    def _only_way(self, node: Node, root: Node, stored: Container[int]) -> Node | None:
        """Return the first element-wise value of a node's sizes through which all its readers lead."""
        open: list[int] = []
        reached: set[int] = set()
        last = node
        while len(reached) <= MOST_STEPS:
            if id(last) in self._results or (last.operation in IN_MEMORY and last is not node):
                return None
            for user in self._users[id(last)]:
                if user not in reached:
                    reached.add(user)
                    heappush(open, user)
            if not open:
                return None
            last = self._nodes[heappop(open)]
            is_other = last.sizes != node.sizes or last.operation in IN_MEMORY
            if last is root or id(last) in stored or is_other:
                return None
            if not open:
                return last
        return None


def _before_widening(value: Node) -> Node:
    """Return what a value is widened from if a kernel computes that, else the value.

    It is the operand of a conversion to a wider type, or the bits of a BFLOAT16.
    """
    narrow = value.operands[0] if value.operation is Operation.CONVERT else bits_of_bfloat16(value)
    if narrow is None:
        return value
    is_widened = narrow.type.bits < value.type.bits and narrow.sizes == value.sizes
    return narrow if is_widened and narrow.operation not in IN_MEMORY else value


# What several kernels need


def _kernels(roots: Sequence[Node], stored: Mapping[int, Node]) -> Iterator[tuple[object, Iterable[Node]]]:
    """Yield the loops of each kernel, and the nodes that it computes.

    Kernels with equal loops become one. Those of sums of products and of running sums stay alone.
    """
    for root in {id(node): node for node in (*roots, *stored.values())}.values():
        held = Except(stored, id(root))
        for body in _bodies(root, held):
            inside = ordered([body], held)
            domain = iteration_domain(body, inside)
            is_apart = any(node.operation in _APART for node in domain.own)
            yield id(body) if is_apart else (domain.sizes, domain.axes), inside


def _sums_of_several(kernels: Iterable[tuple[object, Iterable[Node]]]) -> list[Node]:
    """Return the sums of products and running sums that several kernels need.

    Such kernels stay apart, so each would add again, perhaps in another order.
    """
    first: dict[int, object] = {}
    found: dict[int, Node] = {}
    for loops, inside in kernels:
        for node in inside:
            if node.operation in _APART and first.setdefault(id(node), loops) != loops:
                found[id(node)] = node
    return list(found.values())


class _RepeatedWork:
    """Counts how many kernels compute each node, and finds those that too many compute."""

    def __init__(self) -> None:
        self._counted: set[tuple[int, int]] = set()
        self._times: dict[int, int] = {}
        self._long: dict[int, bool] = {}

    def excess(self, root: Node, body: Node, held: Container[int]) -> list[Node]:
        """Count the kernel of a `body` of `root`; return what it should read rather than compute."""
        if (id(root), id(body)) in self._counted:
            return []
        self._counted.add((id(root), id(body)))
        found: dict[int, Node] = {}

        def below(node: Node) -> Sequence[Node]:
            times = self._times.get(id(node), 0)
            if node is not body and times >= MOST_KERNELS and self._is_long(node, held):
                found[id(node)] = node
                return ()
            self._times[id(node)] = times + 1
            return [each for each in dict.fromkeys(node.operands) if id(each) not in held]

        for _ in walk(body, below):
            pass
        return list(found.values())

    def _is_long(self, value: Node, held: Container[int]) -> bool:
        """Return whether a value is element-wise and takes more nodes than many kernels may compute."""
        if id(value) not in self._long:
            inside = walk(value, lambda each: () if id(each) in held and each is not value else each.operands)
            is_long = len(list(islice(inside, MOST_NODES_AGAIN + 1))) > MOST_NODES_AGAIN
            self._long[id(value)] = is_long and value.operation not in IN_MEMORY and bool(value.sizes)
        return self._long[id(value)]


# What is cheaper stored


def _cheaper_stored(
    nodes: Sequence[Node],
    kernels: Iterable[tuple[object, Iterable[Node]]],
    held: Iterable[int],
    prices: Prices,
) -> Iterator[Node]:
    """Yield the element-wise values that are cheaper to store, operands first."""
    needed: dict[int, set[object]] = {}
    for loops, inside in kernels:
        for node in inside:
            needed.setdefault(id(node), set()).add(loops)
    # The same kernels need what is made of these alone, in no more bytes.
    continued = {
        id(operand)
        for node in nodes
        if node.operation not in _NOT_ELEMENT_WISE
        for operand in node.operands
        if node.sizes == operand.sizes
        and node.type.bits <= operand.type.bits
        and needed.get(id(node)) == needed.get(id(operand))
    }
    apart, reduced = set(held), set[int]()
    for node in nodes:
        # The kernel of such a value would have to reduce or scan something.
        if node.operation in COLLECTIVE or any(
            id(each) in reduced and id(each) not in apart for each in node.operands
        ):
            reduced.add(id(node))
        if node.operation in _NOT_ELEMENT_WISE or id(node) in apart or id(node) in continued:
            continue
        count = len(needed.get(id(node), ()))
        if id(node) not in reduced and costs_more_again(node, count, prices, apart):
            apart.add(id(node))
            yield node


def _needed_by_one_kernel(
    values: Sequence[Node], roots: Sequence[Node], stored: Mapping[int, Node]
) -> set[int]:
    """Return the identities of those `values`, operands first, that only kernels with the same loops need.

    These kernels become one, which computes them. Masks of an activation, for example, take fewer bytes than
    its result. But once the result is stored, too, its kernel alone needs them.
    """
    if not values:
        return set()
    added = {id(value): value for value in values}
    own = {
        id(body) for root in (*roots, *stored.values()) for body in _bodies(root, Except(stored, id(root)))
    }
    loops_of, operands_of = dict[int, object](), dict[int, set[int]]()
    readers = {key: {key} & own for key in added}
    for loops, inside in _kernels(roots, {**stored, **added}):
        nodes = list(inside)
        body = id(nodes[-1])
        loops_of[body] = loops
        operands_of[body] = added.keys() & {id(each) for node in nodes for each in node.operands}
        for key in operands_of[body]:
            readers[key].add(body)
    alone = set[int]()
    for key in reversed(added):
        if len({loops_of[reader] for reader in readers[key]}) == 1:
            alone.add(key)
            for operand in operands_of[key]:
                readers[operand] = readers[operand] - {key} | readers[key]
    return alone
