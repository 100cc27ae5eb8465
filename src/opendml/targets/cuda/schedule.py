"""Decides how a kernel is launched, and for element-wise kernels, with what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from opendml.compiler.kernel import Kernel
from opendml.compiler.loops import loop_nest
from opendml.program.node import Operation, ordered
from opendml.targets.cuda.group_source import is_normalization
from opendml.targets.cuda.launch import VECTOR_BYTES, Launch, Nest, nest_of
from opendml.targets.cuda.machine import Machine
from opendml.targets.cuda.pattern import Mode, Pattern, Step
from opendml.targets.cuda.schedule_contraction import schedule_contraction
from opendml.targets.cuda.schedule_groups import schedule_groups
from opendml.targets.cuda.schedule_passes import schedule_passes
from opendml.targets.cuda.schedule_placing import schedule_placing

_THREADS = 128
_UNITS = 2
"""Vectors that one thread loads before it computes."""
_SCALAR_UNITS = 8
"""Units of less than 8 bytes that one thread loads before it computes."""
_SQUARE_THREADS = 256
"""Threads of a block that transposes."""
_LEAST_SIDE = 16
"""Least steps of both loops for which a transposition goes through shared memory."""


def schedule(kernel: Kernel, machine: Machine, alignments: Sequence[int]) -> Launch:
    """The launch that runs `kernel`.

    Args:
        kernel: what to compute.
        machine: for which device.
        alignments: of the address of each access's first element (loads, then stores), in bytes; only whether
            they are multiples of 2, 4, 8, 16 counts.
    """
    if any(node.operation is Operation.CONTRACTION for node in ordered(kernel.values)):
        launch = schedule_contraction(kernel, machine, alignments)
        if launch is not None:
            return launch
    placing = schedule_placing(kernel, machine)
    if placing is not None:
        return placing
    nest = nest_of(kernel, loop_nest(kernel))
    if kernel.axes:
        normalizes = is_normalization(kernel.values)
        return schedule_groups(nest, machine, alignments) if normalizes else schedule_passes(nest, machine)
    return _transposed(nest) or _pointwise(nest, machine, alignments)


def _pointwise(nest: Nest, machine: Machine, alignments: Sequence[int]) -> Launch:
    vector = nest.vector(alignments, whole_rows=False)
    row_units = -(-nest.inner.count // vector)
    units = nest.group_count * row_units
    widest = max((a.type.bytes for a in nest.accesses if a.step is not Step.NONE), default=1) * vector
    per_thread = _UNITS if widest >= VECTOR_BYTES // 2 else _SCALAR_UNITS
    # Small work is spread over the whole device.
    while per_thread > 1 and units < machine.multiprocessors * _THREADS * per_thread:
        per_thread //= 2
    constants = (("THREADS", _THREADS), ("UNITS", per_thread))
    pattern = Pattern(
        Mode.POINTWISE,
        vector,
        False,
        nest.wide(units),
        nest.loads,
        nest.stores,
        nest.kernel.values,
        constants,
    )
    values = {
        **nest.given(),
        "units": units,
        "inner": row_units,
        "full": nest.inner.count // vector,
        "rest": nest.inner.count % vector,
    }
    return Launch(pattern, -(-units // (_THREADS * per_thread)), _THREADS, values)


def _along_stores(nest: Nest) -> Nest:
    """The nest with the loop innermost along which all results are contiguous, if there is one."""
    first = len(nest.loads)
    for loop in nest.groups:
        steps = zip(loop.strides[first:], nest.stores, strict=True)
        if all(stride == access.type.bytes for stride, access in steps):
            others = (*(other for other in nest.groups if other is not loop), nest.inner)
            return Nest(nest.kernel, others, (), loop, False)
    return nest


def _transposed(nest: Nest) -> Launch | None:
    """A launch in squares, where an operand is contiguous along another loop than the results; None where
    none is.
    """
    nest = _along_stores(nest)
    if any(access.step is not Step.CONTIGUOUS for access in nest.stores) or nest.inner.count < _LEAST_SIDE:
        return None
    accesses = nest.accesses[: len(nest.loads)]
    for loop in nest.groups:
        turned = [
            access.step is Step.STRIDED and stride == access.type.bytes
            for access, stride in zip(accesses, loop.strides, strict=False)
        ]
        if any(turned) and loop.count >= _LEAST_SIDE:
            break
    else:
        return None
    others = tuple(other for other in nest.groups if other is not loop)
    square = Nest(nest.kernel, others, (loop,), nest.inner, False)
    loads = tuple(replace(access, turned=turn) for access, turn in zip(square.loads, turned, strict=True))
    held = sum(access.type.bytes for access in loads if access.turned)
    side = 32 if held > 8 else 64
    across, down = -(-nest.inner.count // side), -(-loop.count // side)
    tiles = square.group_count * across * down
    constants = (("THREADS", _SQUARE_THREADS), ("SIDE", side))
    pattern = Pattern(
        Mode.TRANSPOSED, 1, False, square.wide(tiles), loads, square.stores, nest.kernel.values, constants
    )
    values = {
        **square.given(),
        "columns": nest.inner.count,
        "units": loop.count,
        "tiles": across,
        "inner": down,
    }
    return Launch(pattern, tiles, _SQUARE_THREADS, values)
