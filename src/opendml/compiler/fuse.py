"""Cuts a program into kernels.

Each output is one kernel, or part of one, that recomputes nothing from memory. Element-wise nodes are
inlined. A kernel also has the reductions over common axes of its domain, and makes one pass over a group for
each that needs others. Views and reshaped tensors become the strides and masks of loads and stores.
`materialize` chooses what lies in memory between kernels. Kernels over one domain become one (`horizontal`),
and so do products around a softmax (`attention`).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial

from opendml.budget import check_time
from opendml.compiler.attention import with_attention
from opendml.compiler.domains import Except
from opendml.compiler.horizontal import fused_horizontally
from opendml.compiler.in_place import without_copies
from opendml.compiler.kernel import Access, Kernel, KernelProgram, KernelSequence, PreparedTensor
from opendml.compiler.kernel_builder import KernelBuilder, Location, parts_of
from opendml.compiler.materialize import materialized
from opendml.compiler.memory import Temporary, place
from opendml.compiler.operand_kernels import with_operand_kernels
from opendml.compiler.parameters import Shared, with_parameters
from opendml.compiler.prepare import recipes_of, split
from opendml.compiler.prices import Prices
from opendml.compiler.recurrences import append_steps
from opendml.compiler.rewrites import (
    with_factors_behind_products,
    with_unordered_scatters,
    without_idle_guards,
)
from opendml.compiler.sized import plain
from opendml.compiler.views import with_views_moved
from opendml.compiler.windows import with_windows_unrolled
from opendml.late_dataclass import dataclass
from opendml.program.carriers import has_four_bits
from opendml.program.node import STORED, Node, Operation, Recurrence, ordered
from opendml.program.program import Program, packed
from opendml.program.sizes import greatest


@dataclass(frozen=True, slots=True)
class Abilities:
    """Abilities and prices of a target that decide what becomes a kernel.

    Args:
        ends_loops: loops end where no further element counts (`bounds`).
        scatters_in_order: a line is scattered by one thread, in order.
        computes_attention: whether the target computes such a kernel rather than three.
        stored_operands: the operands of a kernel's products that the target stores first. It sees hints in
            place of traced sizes.
        arranged: gives temporaries the layouts that their readers need.
        prices: what memory and operations cost.
        reads_halves: kernels take constants of 4 bits out of bytes while they read them. Otherwise these are
            prepared, a byte for each.
    """

    ends_loops: bool = False
    scatters_in_order: bool = False
    computes_attention: Callable[[Kernel], bool] | None = None
    stored_operands: Callable[[Kernel], Sequence[Node]] | None = None
    arranged: Callable[[KernelSequence], KernelSequence] | None = None
    prices: Prices = field(default_factory=Prices)
    reads_halves: bool = False


_FEWEST_ABILITIES = Abilities()


def fuse(program: Program, abilities: Abilities = _FEWEST_ABILITIES) -> KernelProgram:
    """Return the kernels of a program for a target with some abilities, and those that prepare its
    constants."""
    if not abilities.scatters_in_order:
        program = replace(program, results=with_unordered_scatters(program.results))
    if not program.constants:
        return _fused(program, abilities)
    first, rest = split(program, abilities.reads_halves)
    ahead, kernels = (_fused(each, abilities) for each in (first, rest))
    input_count = len(program.inputs)
    arena = input_count + len(program.outputs)
    kept = range(arena + 1, arena + 1 + len(first.outputs))
    inputs, outputs = range(input_count), range(input_count, arena)
    prepared = tuple(
        PreparedTensor(layout.span[1], recipe)
        for layout, recipe in zip(first.outputs, recipes_of(first), strict=True)
    )
    four_bit = {number for number, root in enumerate(first.results, input_count) if has_four_bits(root)}
    return replace(
        kernels,
        kernels=_over(kernels.kernels, [*inputs, *kept, *outputs, arena], rest.constants, four_bit),
        input_count=input_count,
        initializers=_over(ahead.kernels, [*inputs, *kept, arena], first.constants),
        initializer_arena_bytes=ahead.arena_bytes,
        prepared=prepared,
    )


def _over(
    kernels: Sequence[Kernel],
    buffers: Sequence[int],
    constants: Container[int],
    four_bit: Container[int] = (),
) -> tuple[Kernel, ...]:
    """Return the kernels with other numbers of buffers. Those of `constants` are the same in every run, those
    of `four_bit` hold a number of 4 bits in each byte."""

    def moved(access: Access) -> Access:
        if access.buffer is None:
            return access
        number = access.buffer
        return replace(access, buffer=buffers[number], fixed=number in constants, four_bit=number in four_bit)

    return tuple(kernel.with_accesses(moved) for kernel in kernels)


def _fused(program: Program, abilities: Abilities) -> KernelProgram:
    """Return the kernels of a program, whose constants are inputs like others."""
    roots = with_views_moved(program.results, abilities.prices)
    roots = with_windows_unrolled(with_factors_behind_products(roots), abilities.ends_loops)
    roots = without_idle_guards(roots)
    temporaries = materialized(roots, program, abilities.prices)
    check_time()
    sequence = _sequence(program, roots, temporaries, abilities)
    if program.in_place:
        pairs = {(len(program.inputs) + output, input) for output, input in program.in_place}
        sequence = without_copies(sequence, pairs)
    arena = len(program.inputs) + len(program.outputs)
    is_computed, stored = abilities.computes_attention, abilities.stored_operands
    if is_computed is not None:
        sequence = with_attention(sequence, is_computed)
    if stored is not None:
        sequence = with_operand_kernels(sequence, partial(_chosen_by_hints, stored), arena)
    if abilities.arranged is not None:
        sequence = abilities.arranged(sequence)
    return _placed(sequence, len(program.inputs), arena)


def _chosen_by_hints(choose: Callable[[Kernel], Sequence[Node]], kernel: Kernel) -> list[Node]:
    """Return the nodes of a kernel that a target chooses, which sees hints in place of traced sizes."""
    known = plain(kernel)
    places = {id(node): place for place, node in enumerate(ordered(known.values))}
    nodes = ordered(kernel.values)
    return [nodes[places[id(node)]] for node in choose(known)]


def _sequence(
    program: Program, roots: Sequence[Node], stored: Sequence[Node], abilities: Abilities
) -> KernelSequence:
    """Return the kernels that write results and stored nodes, each node in a buffer of its own."""
    inputs = [Location(number, 0, layout) for number, layout in enumerate(program.inputs)]
    outputs = [Location(number, 0, layout) for number, layout in enumerate(program.outputs, len(inputs))]
    arena = len(inputs) + len(outputs)
    temporaries = _locations(stored, roots, outputs, arena)
    stores = {id(node): [temporaries[id(node)]] for node in stored}
    for root, output in zip(roots, outputs, strict=True):
        locations = stores.setdefault(id(root), [])
        if output not in locations:
            locations.append(output)
    nodes = {id(node): node for node in (*stored, *roots)}
    builder = KernelBuilder(inputs, temporaries)
    sequence = KernelSequence([], [], {})
    for each in temporaries.values():
        if each.buffer >= arena:
            end = each.offset + each.layout.span[1]
            sequence.temporaries[each.buffer] = greatest(sequence.temporaries.get(each.buffer, 0), end)
    between = list[Kernel]()
    of_steps = replace(abilities, stored_operands=None)
    for key, locations in stores.items():
        check_time()
        node = nodes[key]
        if not isinstance(node.attribute, Recurrence):
            between += builder.kernels(node, locations)
            continue
        own, *others = locations
        sequence.kernels += fused_horizontally([*between, *builder.kernels(node, [own])])
        buffer = arena + len(stored) + len(sequence.repeats)
        append_steps(sequence, node, own, builder, partial(_fused, abilities=of_steps), buffer)
        between = [builder.copy(node, each) for each in others]
    sequence.kernels += fused_horizontally(between)
    return sequence


def _locations(
    stored: Sequence[Node], roots: Sequence[Node], outputs: Sequence[Location], arena: int
) -> dict[int, Location]:
    """Return the locations of stored nodes.

    A node that is a part of an output or of another stored node lies there. Others have buffers of their own,
    with the numbers from `arena` on.
    """
    users: dict[int, list[Node]] = {}
    for node in ordered(roots):
        for operand in node.operands:
            users.setdefault(id(operand), []).append(node)
    held = {id(node) for node in stored}
    locations: dict[int, Location] = {}
    for root, output in zip(roots, outputs, strict=True):
        for key, part in _locations_within(root, output, held, users):
            locations.setdefault(key, part)
    for number, node in enumerate(reversed(stored)):
        own = locations.setdefault(id(node), Location(arena + number, 0, packed(node.type, node.sizes)))
        for key, part in _locations_within(node, own, Except(held, id(node)), users):
            locations.setdefault(key, part)
    return {id(node): locations[id(node)] for node in stored}


def _locations_within(
    node: Node, location: Location, held: Container[int], users: Mapping[int, Sequence[Node]]
) -> Iterator[tuple[int, Location]]:
    """Yield the identities and locations of the stored nodes that a tensor in memory moves.

    They are its parts, or it in other sizes, or it with permuted dimensions that nothing else reads.
    """
    pending = [(node, location)]
    while pending:
        node, location = pending.pop()
        if id(node) in held:
            is_reshaped = any(user.operation is Operation.RESHAPE for user in users.get(id(node), ()))
            if location.is_packed or not is_reshaped:
                yield id(node), location
        elif node.operation in STORED:
            pending += reversed(list(parts_of(node, location)))
        elif node.operation is Operation.RESHAPE:
            below = location.reshaped(node.operands[0].sizes)
            if below is not None:
                pending.append((node.operands[0], below))
        elif node.operation is Operation.VIEW and len(users[id(node.operands[0])]) == 1:
            before = location.before(node)
            if before is not None:
                pending.append((node.operands[0], before))


def _placed(sequence: KernelSequence, input_count: int, arena: int) -> KernelProgram:
    """Return the program of the kernels, with all temporaries in one arena."""
    buffers = sequence.temporaries
    steps: dict[int, list[int]] = {buffer: [] for buffer in buffers}
    for step, kernel in enumerate(sequence.kernels):
        for access in kernel.accesses:
            if access.buffer in steps:
                steps[access.buffer].append(step)
    # No access touches the arena of a step without temporaries.
    lifetimes = [(min(steps[each], default=0), max(steps[each], default=0)) for each in buffers]
    offsets, arena_bytes = place(list(buffers.values()), lifetimes)
    offset_of = dict(zip(buffers, offsets, strict=True))

    def final(access: Access) -> Access:
        if access.buffer not in offset_of:
            return access
        return replace(access, buffer=arena, offset=access.offset + offset_of[access.buffer])

    result = []
    shared: Shared = {}
    repeated = sequence.repeated
    for position, kernel in enumerate(sequence.kernels):
        values, numbers = kernel.values, kernel.numbers
        # Kernels of steps have parameters already.
        if position not in repeated:
            values, numbers = with_parameters(values, shared)
        result.append(replace(kernel.with_accesses(final), values=values, numbers=numbers))
    temporaries = tuple(
        Temporary(offset, size, *lifetime)
        for offset, size, lifetime in zip(offsets, buffers.values(), lifetimes, strict=True)
    )
    return KernelProgram(
        tuple(result),
        input_count,
        arena - input_count,
        arena_bytes,
        repeats=tuple(sequence.repeats),
        temporaries=temporaries,
    )
