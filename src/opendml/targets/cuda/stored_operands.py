"""Decides which computed operands of products are stored first.

A tile of a product computes the elements of its operands itself, each as often as there are tiles beside or
below each other. A kernel of its own computes each once, but writes and reads it, and takes a launch. Stored
operands can also go the ways of those that are only loaded, such as the copy engine's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from opendml.compiler.kernel import Kernel
from opendml.compiler.regions import work
from opendml.compiler.stored_operands import divided
from opendml.program.node import Node, Operation, ordered
from opendml.targets.common.guards import loads_of
from opendml.targets.cuda.costs import instructions, reading
from opendml.targets.cuda.launch import VECTOR_BYTES
from opendml.targets.cuda.machine import Machine
from opendml.targets.cuda.pattern import Mode
from opendml.targets.cuda.schedule_contraction import COPIED_LATENCY, Shape, candidates, tile_cycles
from opendml.targets.cuda.schedule_warpgroups import WarpgroupTile

_LAUNCH_CYCLES = 4500
"""Cycles from the end of one kernel until the next fills the device. With 3000, a product of 16 rows with
weights of 4 bits stored them first: 29 us on an H100, where the loader takes 25."""
MOST_STORED_BYTES = 256 * 1024**2
"""Largest stored operand, in bytes. It is a temporary; dequantized weights of a vocabulary would need more
memory than the model."""
_UNDERESTIMATE = 1.15
"""Measured over estimated time of products that compute an operand in the loader (H100, 16 to 4096 rows by
4096 x 4096). Estimates for stored operands need no correction."""


def stored_operand(machine: Machine, kernel: Kernel) -> Node | None:
    """Return an operand of a kernel's product that is stored first, since both kernels together then take
    fewer cycles; None if there is none."""
    products = [node for node in ordered(kernel.values) if node.operation is Operation.CONTRACTION]
    if len(products) != 1:
        return None
    shape = _shape(kernel)
    computed = _computed(shape)
    if not shape.is_summed or shape.mode is Mode.IMMA or not computed:
        return None
    best, chosen = _cycles(shape, machine), None
    for operand in computed:
        cycles = min(_with_stored(kernel, operand, machine), default=math.inf)
        if cycles < best:
            best, chosen = cycles, operand
    return chosen


def _with_stored(kernel: Kernel, operand: Node, machine: Machine) -> Iterator[float]:
    """Yield the cycles of a product and of the kernels that store its operands: of one operand alone, and of
    the other one too if that is computed."""
    part = divided(kernel, operand, _ANY_BUFFER)
    if part.bytes > MOST_STORED_BYTES:
        return
    shape, cycles = _shape(part.reads), _storing(part.stores, machine)
    yield cycles + _cycles(shape, machine)
    for other in _computed(shape):
        rest = divided(part.reads, other, _ANY_BUFFER)
        if rest.bytes <= MOST_STORED_BYTES:
            yield cycles + _storing(rest.stores, machine) + _cycles(_shape(rest.reads), machine)


_ANY_BUFFER = -1
"""The buffer of an operand whose division is only priced."""


def _shape(kernel: Kernel) -> Shape:
    """Return the shape of a product over aligned tensors."""
    return Shape(kernel, [VECTOR_BYTES] * (len(kernel.loads) + len(kernel.stores)))


def _computed(shape: Shape) -> list[Node]:
    """Return the operands that are computed of tensors in memory."""
    loads = shape.kernel.loads
    return [
        operand
        for operand in shape.operands
        if operand.operation is not Operation.SOURCE
        and any(loads[number].buffer is not None for number in loads_of([operand]))
    ]


def _cycles(shape: Shape, machine: Machine) -> float:
    """Return the cycles of a product in the way that is taken."""
    reduced = shape.reduced_cycles(machine)
    best = min(candidates(shape, machine), key=lambda each: each.cycles, default=None)
    if best is None or best.cycles >= reduced:
        return reduced
    if isinstance(best.tile, WarpgroupTile):
        return best.cycles
    if any(side.steps for side in shape.sides):
        return _UNDERESTIMATE * best.cycles
    return tile_cycles(shape, best.tile, best.splits, machine, COPIED_LATENCY)


def _storing(kernel: Kernel, machine: Machine) -> float:
    """Return the cycles of a kernel that stores an operand."""
    elements = math.prod(kernel.domain)
    (value,) = kernel.values
    bytes = elements * value.type.bytes
    for load in kernel.loads:
        moving = zip(kernel.domain, load.strides, strict=True)
        bytes += math.prod(size for size, stride in moving if stride) * load.type.bytes
    operations = work([node.operation for node in ordered(kernel.values) if node.sizes])
    return _LAUNCH_CYCLES + max(reading(machine, bytes), instructions(machine, elements * operations))
