"""Cuts a tensor program into kernels.

Every output is one kernel, or part of one (`regions`), that recomputes nothing from memory: element-wise
nodes are inlined, and reductions over common axes of the kernel's domain stay inside it, also of values that
need such reductions themselves: the kernel passes over a group once for each. Views and reshaped tensors are
how a kernel reads and writes. Written to a temporary first are only reductions over another domain or other
axes, what is read through views that cannot be moved below it, what would need too many passes or
reductions, sums of products and running sums that several kernels need, and what else costs more for them to
compute again than to store (`repeated`). Products around a softmax may be put together again (`chains`).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from opendml.budget import check_time
from opendml.compiler.chains import Takes, chained
from opendml.compiler.factors import factored
from opendml.compiler.guards import without_idle_guards
from opendml.compiler.homes import Except, home_of
from opendml.compiler.kernel import Access, Kernel, KernelProgram, PreparedTensor, Repeat
from opendml.compiler.memory import Temporary, place
from opendml.compiler.numbers import Shared, with_parameters
from opendml.compiler.placings import in_any_order
from opendml.compiler.prepare import recipes_of, split
from opendml.compiler.recurrences import steps_of
from opendml.compiler.regions import merged
from opendml.compiler.repeated import stored_once
from opendml.compiler.stored import Users
from opendml.compiler.stored_operands import Chooses, with_stored_operands
from opendml.compiler.views import IN_MEMORY, moved, split_groups
from opendml.compiler.windows import unrolled
from opendml.compiler.write import Place, Writer, parts_of
from opendml.program.node import COLLECTIVE, PLACINGS, SCANS, STORED, Node, Operation, Recurrence, ordered
from opendml.program.program import Program, packed

MAXIMUM_PASSES = 3
"""Over a group, before its results: those of a softmax of a normalization."""
MOST_AGAIN = 12
"""Operations for each element in a third pass, some of which two have made already: those of a softmax of a
normalization with scale and bias. With more, it takes less time to write and read elements than to compute
them again, and there is less code to compile."""
MOST_KERNELS = 16
"""Kernels that compute a value of more than `MOST_NODES_AGAIN` nodes each for itself, at most; for more of
them it is stored, however few elements it has."""
MOST_NODES_AGAIN = 64
MOST_PARTS_AGAIN = 32
"""Parts of a joined tensor that several others consist of, each of which writes them itself, at most."""
MAXIMUM_REDUCTIONS = 16
"""In a kernel: all states are live at once. Of 32, for want of registers, each takes half as long again, of
64 three times as long; and the time to compile grows faster than their number."""


def fuse(
    program: Program,
    takes: Takes | None = None,
    ends_loops: bool = False,
    in_order: bool = False,
    chooses: Chooses | None = None,
) -> KernelProgram:
    """Return the kernels of a program, and those that prepare its constants. Products around a softmax are
    one kernel where the target `takes` it. `ends_loops`: it ends loops where nothing counts any more
    (`bounds`). `in_order`: it goes along lines in order where it places. It stores the operands of products
    first that it `chooses`."""
    if not in_order:
        program = replace(program, results=in_any_order(program.results))
    if not program.constants:
        return _fused(program, takes, ends_loops, chooses)
    first, rest = split(program)
    ahead, kernels = (_fused(each, takes, ends_loops, chooses) for each in (first, rest))
    input_count = len(program.inputs)
    arena = input_count + len(program.outputs)
    kept = range(arena + 1, arena + 1 + len(first.outputs))
    inputs, outputs = range(input_count), range(input_count, arena)
    prepared = tuple(
        PreparedTensor(layout.span[1], recipe)
        for layout, recipe in zip(first.outputs, recipes_of(first), strict=True)
    )
    return KernelProgram(
        _over(kernels.kernels, [*inputs, *kept, *outputs, arena], rest.constants),
        input_count,
        len(program.outputs),
        kernels.arena_bytes,
        _over(ahead.kernels, [*inputs, *kept, arena], first.constants),
        ahead.arena_bytes,
        prepared,
        kernels.repeats,
        kernels.temporaries,
    )


def _over(kernels: Sequence[Kernel], buffers: Sequence[int], constants: Container[int]) -> tuple[Kernel, ...]:
    """The kernels over another table of buffers: for each of their own, the buffer there. Of their own,
    `constants` are fixed."""

    def moved_to(access: Access) -> Access:
        if access.buffer is None:
            return access
        return replace(access, buffer=buffers[access.buffer], fixed=access.buffer in constants)

    return tuple(
        replace(kernel, loads=tuple(map(moved_to, kernel.loads)), stores=tuple(map(moved_to, kernel.stores)))
        for kernel in kernels
    )


def _fused(
    program: Program,
    takes: Takes | None = None,
    ends_loops: bool = False,
    chooses: Chooses | None = None,
) -> KernelProgram:
    """Return the kernels of a program, whose constants are inputs like others."""
    roots = without_idle_guards(unrolled(factored(moved(program.results)), ends_loops))
    inputs = [Place(number, 0, layout) for number, layout in enumerate(program.inputs)]
    outputs = [Place(len(inputs) + number, 0, layout) for number, layout in enumerate(program.outputs)]
    cuts = _cuts(roots, program)
    check_time()
    arena = len(inputs) + len(outputs)
    temporaries = _temporaries(cuts, roots, outputs, arena)
    stores = {id(node): [temporaries[id(node)]] for node in cuts}
    for root, output in zip(roots, outputs, strict=True):
        places = stores.setdefault(id(root), [])
        if output not in places:
            places.append(output)
    nodes = {id(node): node for node in (*cuts, *roots)}
    writer = Writer(inputs, temporaries)
    result, repeats, between = list[Kernel](), list[Repeat](), list[Kernel]()
    sizes = dict[int, int]()
    for each in temporaries.values():
        if each.buffer >= arena:
            sizes[each.buffer] = max(sizes.get(each.buffer, 0), each.offset + each.layout.span[1])
    for key, places in stores.items():
        check_time()
        node = nodes[key]
        if not isinstance(node.attribute, Recurrence):
            between += writer.kernels(node, places)
            continue
        own, *others = places
        result += merged([*between, *writer.kernels(node, [own])])
        buffer = arena + len(cuts) + len(repeats)
        steps = steps_of(node, own, writer, partial(_fused, takes=takes, ends_loops=ends_loops), buffer)
        repeats.append(Repeat(len(result), steps.length, steps.count))
        result += steps.kernels
        sizes[buffer] = steps.arena_bytes
        between = [writer.copy(node, each) for each in others]
    result += merged(between)
    if takes is not None:
        result, repeats, sizes = chained(result, repeats, sizes, takes)
    if chooses is not None:
        first_buffer = max(sizes, default=arena - 1) + 1
        result, repeats, sizes = with_stored_operands(result, repeats, sizes, chooses, first_buffer)
    return _placed(result, repeats, len(inputs), arena, sizes)


def _temporaries(
    cuts: Sequence[Node], roots: Sequence[Node], outputs: Sequence[Place], arena: int
) -> dict[int, Place]:
    """The places of temporaries: in outputs or in other temporaries that have all of them, or in buffers of
    their own with the numbers from `arena` on."""
    users: dict[int, list[Node]] = {}
    for node in ordered(roots):
        for operand in node.operands:
            users.setdefault(id(operand), []).append(node)
    held = {id(node) for node in cuts}
    places: dict[int, Place] = {}
    for root, output in zip(roots, outputs, strict=True):
        for key, part in _lent(root, output, held, users):
            places.setdefault(key, part)
    for number, node in enumerate(reversed(cuts)):
        own = places.setdefault(id(node), Place(arena + number, 0, packed(node.type, node.sizes)))
        for key, part in _lent(node, own, Except(held, id(node)), users):
            places.setdefault(key, part)
    return {id(node): places[id(node)] for node in cuts}


def _lent(
    node: Node, place: Place, held: Container[int], users: Mapping[int, Sequence[Node]]
) -> Iterator[tuple[int, Place]]:
    """Where temporaries lie of which a tensor in memory is made by movements alone: perhaps as parts of it,
    in other sizes, or with their dimensions in another order, in which nothing else reads them."""
    pending = [(node, place)]
    while pending:
        node, place = pending.pop()
        if id(node) in held:
            is_reshaped = any(user.operation is Operation.RESHAPE for user in users.get(id(node), ()))
            if place.is_packed or not is_reshaped:
                yield id(node), place
        elif node.operation in STORED:
            pending += reversed(list(parts_of(node, place)))
        elif node.operation is Operation.RESHAPE:
            below = place.reshaped(node.operands[0].sizes)
            if below is not None:
                pending.append((node.operands[0], below))
        elif node.operation is Operation.VIEW and len(users[id(node.operands[0])]) == 1:
            before = place.before(node)
            if before is not None:
                pending.append((node.operands[0], before))


def _placed(
    kernels: Sequence[Kernel],
    repeats: Sequence[Repeat],
    input_count: int,
    arena: int,
    sizes: Mapping[int, int],
) -> KernelProgram:
    """The kernels with all temporaries, in buffers of `sizes`, in one arena."""
    steps: dict[int, list[int]] = {buffer: [] for buffer in sizes}
    for step, kernel in enumerate(kernels):
        for access in (*kernel.loads, *kernel.stores):
            if access.buffer in steps:
                steps[access.buffer].append(step)
    # A step without temporaries has an arena that nobody touches.
    lifetimes = [(min(steps[each], default=0), max(steps[each], default=0)) for each in sizes]
    offsets, arena_bytes = place(list(sizes.values()), lifetimes)
    offset_of = dict(zip(sizes, offsets, strict=True))

    def final(access: Access) -> Access:
        if access.buffer not in offset_of:
            return access
        return replace(access, buffer=arena, offset=access.offset + offset_of[access.buffer])

    result = []
    shared: Shared = {}
    # Those of steps have parameters for their numbers already.
    in_steps = {
        number for each in repeats for number in range(each.first, each.first + each.length * each.count)
    }
    for position, kernel in enumerate(kernels):
        loads, stores = tuple(map(final, kernel.loads)), tuple(map(final, kernel.stores))
        values, numbers = kernel.values, kernel.numbers
        if position not in in_steps:
            values, numbers = with_parameters(values, shared)
        result.append(Kernel(kernel.domain, kernel.axes, loads, stores, values, numbers))
    output_count = arena - input_count
    temporaries = tuple(
        Temporary(offset, size, *lifetime)
        for offset, size, lifetime in zip(offsets, sizes.values(), lifetimes, strict=True)
    )
    return KernelProgram(
        tuple(result),
        input_count,
        output_count,
        arena_bytes,
        repeats=tuple(repeats),
        temporaries=temporaries,
    )


def _cuts(roots: Sequence[Node], program: Program) -> list[Node]:
    """The nodes that become temporaries, in the order in which they are computed."""
    nodes = ordered(roots)
    cuts = {id(node): node for node in _in_memory(nodes, roots, program)}
    users = Users(nodes, roots)
    pending = [*roots, *cuts.values()]
    again = _Again()
    while pending:
        check_time()
        root = pending.pop()
        held = Except(cuts, id(root))
        is_whole = True
        for body in _bodies(root, held):
            for node in again.shared(root, body, held):
                cuts[id(node)] = node
                pending.append(node)
            found = _foreign(body, held)
            for node in found:
                last = users.stored_for(node, body, cuts)
                cuts[id(last)] = last
                pending.append(last)
            is_whole = is_whole and not found
        if not is_whole:
            pending.append(root)
    for node in _sums_of_several(_walks(roots, cuts)):
        last = users.stored_for(node, node, cuts)
        cuts[id(last)] = last
    cuts |= {id(node): node for node in stored_once(nodes, _walks(roots, cuts), frozenset(cuts))}
    return [node for node in nodes if id(node) in cuts]


def _walks(roots: Sequence[Node], cuts: Mapping[int, Node]) -> Iterator[tuple[object, Iterable[Node]]]:
    """What each kernel goes through, and the nodes that it computes. Those of sums of products and of running
    sums stay alone."""
    for root in {id(node): node for node in (*roots, *cuts.values())}.values():
        held = Except(cuts, id(root))
        for body in _bodies(root, held):
            inside = ordered([body], held)
            home = home_of(body, inside)
            apart = any(node.operation in _STAY_APART for node in home.own)
            yield id(body) if apart else (home.domain, home.axes), inside


_STAY_APART = SCANS | {Operation.CONTRACTION}


def _sums_of_several(kernels: Iterable[tuple[object, Iterable[Node]]]) -> list[Node]:
    """The sums of products and running sums that more than one of the kernels needs: as an output, say, and
    in what is made of it. Such kernels stay apart, so each would add up again, perhaps in another order."""
    first: dict[int, object] = {}
    found: dict[int, Node] = {}
    for kernel, inside in kernels:
        for node in inside:
            if node.operation in _STAY_APART and first.setdefault(id(node), kernel) != kernel:
                found[id(node)] = node
    return list(found.values())


def _in_memory(nodes: Sequence[Node], roots: Sequence[Node], program: Program) -> Iterator[Node]:
    """Of the nodes that `roots` need, those that must lie in memory: what is placed, joined tensors that are
    computed with, and what is seen through views or in other sizes, unless it is an input that can be."""
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
            yield from (each for each in read if each.operation not in _SOURCES)
        used_by = users.get(id(node), ())
        if node.operation in PLACINGS and used_by and not _is_gone_on_from(node, used_by):
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
    """The identities of joined tensors that are part of several others, or of one more than once, and have
    many parts. The others copy them: `join([x, x])`, applied k times, would have 2^k parts."""
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


def _is_gone_on_from(node: Node, used_by: Sequence[Node]) -> bool:
    """Whether the kernel that places computes what is made of that, too: of as many positions as elements."""
    if node.operation is not Operation.POSITIONS or node.sizes != node.operands[0].sizes:
        return False
    return all(user.operation not in IN_MEMORY and user.sizes == node.sizes for user in used_by)


_SOURCES = frozenset({Operation.SOURCE, Operation.RESHAPE})
_MOVEMENTS = STORED | {Operation.VIEW, Operation.RESHAPE}


class _Again:
    """Counts how many kernels compute each node, and finds what must be stored since too many do.

    Without it n outputs of a chain of n operations would take n^2 / 2 operations in all.
    """

    def __init__(self) -> None:
        self._counted: set[tuple[int, int]] = set()
        self._times: dict[int, int] = {}
        self._long: dict[int, bool] = {}

    def shared(self, root: Node, body: Node, held: Container[int]) -> list[Node]:
        """Counts the kernel of a `body` of `root`; returns what it should read rather than compute."""
        if (id(root), id(body)) in self._counted:
            return []
        self._counted.add((id(root), id(body)))
        found: dict[int, Node] = {}
        pending, seen = [body], {id(body)}
        while pending:
            node = pending.pop()
            times = self._times.get(id(node), 0)
            if node is not body and times >= MOST_KERNELS and self._is_long(node, held):
                found[id(node)] = node
                continue
            self._times[id(node)] = times + 1
            for operand in node.operands:
                if id(operand) not in seen and id(operand) not in held:
                    seen.add(id(operand))
                    pending.append(operand)
        return list(found.values())

    def _is_long(self, value: Node, held: Container[int]) -> bool:
        """Whether a value is element-wise and takes more nodes than many kernels may compute again."""
        if id(value) not in self._long:
            pending, seen = [value], {id(value)}
            while pending and len(seen) <= MOST_NODES_AGAIN:
                new = {id(each): each for each in pending.pop().operands if id(each) not in seen}
                seen.update(new)
                pending += [each for key, each in new.items() if key not in held]
            is_stored = value.operation not in IN_MEMORY and bool(value.sizes)
            self._long[id(value)] = is_stored and len(seen) > MOST_NODES_AGAIN
        return self._long[id(value)]


def _bodies(root: Node, held: Container[int]) -> Iterator[Node]:
    """What the kernels of a node compute: it, or parts of it, or it in other sizes."""
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


def _foreign(root: Node, held: Container[int]) -> list[Node]:
    """The nodes that the kernel of `root` cannot compute itself: a tensor that it reduces and that needs
    reductions over another domain or other axes, or more passes over a group than a kernel makes; parts of
    its result that have as many reductions as a kernel may have; then other such reductions."""
    nodes = ordered([root], held)
    home = home_of(root, nodes)
    own = {id(node) for node in home.own}
    many = _with_many_passes(nodes, own)
    if many:
        return many
    if len(own) > MAXIMUM_REDUCTIONS:
        return _with_few_reductions(nodes, home.own)
    return list(home.others)


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
            if before >= MAXIMUM_PASSES or (before > 1 and _operations(operand, apart) > MOST_AGAIN):
                passes[id(operand)] = below = 0
                apart.add(id(operand))
                found.append(operand)
            below += 1
        elif node.operation in COLLECTIVE:
            below = MAXIMUM_PASSES
        passes[id(node)] = below
    if len(found) < 2:
        return found
    # A value that is made of another one may need few passes once that one is stored.
    stored = {id(node) for node in found}
    return [node for node in found if all(id(each) not in stored for each in ordered(node.operands, own))]


def _operations(value: Node, apart: Container[int]) -> int:
    """How many operations each element of a value takes, of what is reduced or stored `apart`."""
    return sum(node.sizes == value.sizes and node.operation not in _GIVEN for node in ordered([value], apart))


_GIVEN = frozenset({Operation.SOURCE, Operation.CONSTANT, Operation.PARAMETER})


def _with_few_reductions(nodes: Sequence[Node], own: Sequence[Node]) -> list[Node]:
    """What to write to temporaries, so that nothing needs more of its `own` reductions than a kernel has."""
    bits = {id(node): 1 << number for number, node in enumerate(own)}
    needs: dict[int, int] = {}
    found: list[Node] = []
    for node in nodes:
        operands = sorted(node.operands, key=lambda operand: needs.get(id(operand), 0).bit_count())
        while (need := _united(bits.get(id(node), 0), operands, needs)).bit_count() > MAXIMUM_REDUCTIONS:
            found.append(operands.pop())
            needs[id(found[-1])] = 0
        needs[id(node)] = need
    return found


def _united(bits: int, operands: Sequence[Node], needs: Mapping[int, int]) -> int:
    for operand in operands:
        bits |= needs.get(id(operand), 0)
    return bits
