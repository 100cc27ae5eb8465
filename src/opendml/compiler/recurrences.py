"""Builds the kernels of a recurrence: those of one step, repeated with offsets that advance."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from operator import index

from opendml.compiler.kernel import Access, Kernel, KernelProgram, KernelSequence, Repeat
from opendml.compiler.kernel_builder import KernelBuilder, Location
from opendml.late_dataclass import dataclass
from opendml.program.node import Node, Recurrence
from opendml.program.program import Program


def append_steps(
    sequence: KernelSequence,
    node: Node,
    location: Location,
    builder: KernelBuilder,
    fuse: Callable[[Program], KernelProgram],
    arena: int,
) -> None:
    """Append the steps of a RECURRENCE that is written to a location.

    `fuse` makes the kernels of one step, whose temporaries are in the buffer `arena`.
    """
    steps = node.attribute
    assert isinstance(steps, Recurrence)
    # Each step has kernels of its own.
    count = index(steps.count)
    state = location.part((0,) * len(node.sizes), (1, *node.sizes[1:]))
    parts = [(state, location.layout.strides[0])]
    for operand, window in zip(node.operands[1:], steps.windows, strict=True):
        whole = builder.stored_at(operand)
        advance = sum(a * b for a, b in zip(window.advance, whole.layout.strides, strict=True))
        parts.append((whole.part(window.first, window.sizes), advance))
    written = (replace(state, offset=state.offset + location.layout.strides[0]), location.layout.strides[0])
    body = fuse(Program(tuple(part.layout for part, _ in parts), (state.layout,), (steps.body,)))
    tensors = [
        _Moving(each.buffer, each.offset, advance, 1 if advance else count)
        for each, advance in (*parts, written)
    ]
    sequence.repeats.append(Repeat(len(sequence.kernels), len(body.kernels), count))
    sequence.kernels += _repeated(body.kernels, [*tensors, _Moving(arena, 0, 0, 1)], count)
    sequence.temporaries[arena] = body.arena_bytes


@dataclass(frozen=True, slots=True)
class _Moving:
    """The location of a buffer of a step in the table of the whole program. The fields are those of
    `Access`."""

    buffer: int
    offset: int
    advance: int
    steps: int


def _repeated(kernels: Sequence[Kernel], buffers: Sequence[_Moving], count: int) -> Iterator[Kernel]:
    """Yield the kernels of all steps, over the table of buffers of the whole program."""

    def moved(access: Access, step: int) -> Access:
        if access.buffer is None:
            return access
        moving = buffers[access.buffer]
        offset = access.offset + moving.offset + step * moving.advance
        return replace(
            access, buffer=moving.buffer, offset=offset, steps=moving.steps, advance=moving.advance
        )

    for step in range(count):
        for kernel in kernels:
            yield kernel.with_accesses(partial(moved, step=step))
