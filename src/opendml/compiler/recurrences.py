"""The kernels of a recurrence: those of one step, over and over, each time a little further in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from opendml.compiler.kernel import Access, Kernel, KernelProgram
from opendml.compiler.write import Place, Writer
from opendml.program.node import Node, Recurrence
from opendml.program.program import Program


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of a recurrence, each of so many kernels with temporaries of so many bytes."""

    kernels: tuple[Kernel, ...]
    length: int
    count: int
    arena_bytes: int


def steps_of(
    node: Node, place: Place, writer: Writer, fuse: Callable[[Program], KernelProgram], arena: int
) -> Steps:
    """The steps of a RECURRENCE.

    Args:
        node: the RECURRENCE.
        place: where it is written.
        writer: knows where its operands lie.
        fuse: makes the kernels of the program of one step.
        arena: the buffer of their temporaries.
    """
    steps = node.attribute
    assert isinstance(steps, Recurrence)
    state = place.part((0,) * len(node.sizes), (1, *node.sizes[1:]))
    parts = [(state, place.layout.strides[0])]
    for operand, window in zip(node.operands[1:], steps.windows, strict=True):
        whole = writer.lies_at(operand)
        advance = sum(a * b for a, b in zip(window.advance, whole.layout.strides, strict=True))
        parts.append((whole.part(window.first, window.sizes), advance))
    written = (replace(state, offset=state.offset + place.layout.strides[0]), place.layout.strides[0])
    body = fuse(Program(tuple(part.layout for part, _ in parts), (state.layout,), (steps.body,)))
    tensors = [
        _Moving(each.buffer, each.offset, advance, 1 if advance else steps.count)
        for each, advance in (*parts, written)
    ]
    kernels = tuple(_repeated(body.kernels, [*tensors, _Moving(arena, 0, 0, 1)], steps.count))
    return Steps(kernels, len(body.kernels), steps.count, body.arena_bytes)


@dataclass(frozen=True, slots=True)
class _Moving:
    """Where a buffer of the kernels of one step lies, by how much that grows with every step, and how many
    steps find the same there."""

    buffer: int
    offset: int
    advance: int
    steps: int


def _repeated(kernels: Sequence[Kernel], places: Sequence[_Moving], count: int) -> Iterator[Kernel]:
    """The kernels of one step so many times, over another table of buffers."""

    def moved(access: Access, step: int) -> Access:
        if access.buffer is None:
            return access
        place = places[access.buffer]
        offset = access.offset + place.offset + step * place.advance
        return replace(access, buffer=place.buffer, offset=offset, steps=place.steps, advance=place.advance)

    for step in range(count):
        for kernel in kernels:
            loads, stores = (
                tuple(moved(each, step) for each in accesses) for accesses in (kernel.loads, kernel.stores)
            )
            yield replace(kernel, loads=loads, stores=stores)
