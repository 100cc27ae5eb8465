"""Decides which computed operands of products are stored first.

A tile of a product computes the elements of its operands itself, each as often as there are tiles beside or
below each other. A kernel of its own computes each once, but writes and reads it, and takes a launch. Stored
operands can also go the ways of those that are only loaded, such as the copy engine's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations

from opendml.compiler.kernel import Kernel
from opendml.compiler.operand_kernels import divided, together
from opendml.compiler.prices import operation_count
from opendml.program.carriers import bits_of_bfloat16
from opendml.program.node import Node, Operation, ordered
from opendml.targets.common.guards import loads_of
from opendml.targets.cuda.costs import instructions, reading
from opendml.targets.cuda.machine import CudaMachine
from opendml.targets.cuda.pattern import CudaMode
from opendml.targets.cuda.planned_launch import VECTOR_BYTES
from opendml.targets.cuda.schedule_attention import AttentionShape
from opendml.targets.cuda.schedule_chain import ChainShape, chain_cycles
from opendml.targets.cuda.schedule_contraction import COPIED_LATENCY, Shape, estimates, tile_cycles
from opendml.targets.cuda.schedule_few_rows import FewRowsShape
from opendml.targets.cuda.warpgroup_tile import WarpgroupTile

_LAUNCH_CYCLES = 5000
"""Cycles from the end of one kernel until the next fills the device. With 4500, a product of 16 rows with
weights of 4 bits stored them first: 29 us on an H100, where the loader takes 25."""
MOST_STORED_BYTES = 256 * 1024**2
"""Largest stored operand, in bytes. It is a temporary; dequantized weights of a vocabulary would need more
memory than the model."""
_UNDERESTIMATE = 1.15
"""Measured over estimated time of products that compute an operand in the loader (H100, 16 to 4096 rows by
4096 x 4096). Estimates for stored operands need no correction."""


_LEAST_SHARING = 3
"""Matrices of scores that share a mask, at least, if its truth values are stored first; an estimate."""


def stored_operands(machine: CudaMachine, kernel: Kernel) -> Sequence[Node]:
    """Return the operands of a kernel's products that are stored first, since all kernels together then take
    fewer cycles than in any other way."""
    products = [node for node in ordered(kernel.values) if node.operation is Operation.CONTRACTION]
    if len(products) not in _PRODUCTS:
        return ()
    ways = _ways_of_product if len(products) == 1 else _ways_of_attention
    operands, cycles = ways(kernel, machine)
    masks = _shared_mask(kernel, machine)
    if not operands:
        return masks
    best, chosen = cycles(kernel), tuple[Node, ...]()
    for count in range(1, len(operands) + 1):
        for some in combinations(operands, count):
            part = divided(kernel, some, range(-count, 0))
            if max(part.bytes) > MOST_STORED_BYTES:
                continue
            storing = sum(_storing(each, machine) for each in together(part.stores))
            total = storing + cycles(part.reads)
            if total < best:
                best, chosen = total, some
    return (*chosen, *masks)


_PRODUCTS = (1, 2)
"""Products of kernels that compute operands: one alone, or those before and after a softmax."""
_Ways = tuple[Sequence[Node], Callable[[Kernel], float]]
"""The operands that a kernel computes, and what gives the cycles of it or of what is left of it."""


def _ways_of_product(kernel: Kernel, machine: CudaMachine) -> _Ways:
    shape = _shape(kernel)
    is_other = not shape.is_summed or shape.mode is CudaMode.IMMA
    operands = () if is_other else _computed(kernel, _as_stored(shape.operands))
    return operands, lambda each: _cycles(_shape(each), machine)


def _ways_of_attention(kernel: Kernel, machine: CudaMachine) -> _Ways:
    shape = ChainShape.of(kernel)

    def cycles(each: Kernel) -> float:
        return chain_cycles(each, machine, _aligned(each))

    # Keys and values of few queries are computed from elements as they lie in memory.
    is_one_way = FewRowsShape.of(kernel, _aligned(kernel)) is not None
    return () if shape is None or is_one_way else _computed(kernel, _as_stored(shape.values)), cycles


def _as_stored(operands: Sequence[Node]) -> list[Node]:
    """Return what is stored of operands. Bits that are computed are stored as they are, for tensor cores;
    those in memory can be widened."""
    bits = [bits_of_bfloat16(each) for each in operands]
    return [
        own if own is not None and own.operation is not Operation.SOURCE else each
        for own, each in zip(bits, operands, strict=True)
    ]


def _shared_mask(kernel: Kernel, machine: CudaMachine) -> Sequence[Node]:
    """Return the truth value of each query and key that scores depend on, if several matrices share it.

    Warpgroups read stored truth values as bits while products are in flight. On an H100, 4 x 16 heads of 128
    with 2,048 tokens take 318 us. They take 504 us if each score compares a number of INT32.
    """
    shape = ChainShape.of(kernel)
    if shape is None or not machine.multiplies_by_warpgroups:
        return ()
    attention = AttentionShape(shape, _aligned(kernel))
    mask = attention.computed_mask if attention.is_loadable else None
    if mask is None or shape.keys % VECTOR_BYTES:
        return ()
    moved = [
        any(kernel.loads[number].strides[dimension] for number in loads_of([mask]))
        for dimension in range(len(kernel.domain))
    ]
    own = math.prod(size for size, is_moved in zip(kernel.domain, moved, strict=True) if is_moved)
    return (mask,) if _LEAST_SHARING * own <= shape.batch_count * shape.m * shape.keys else ()


def _shape(kernel: Kernel) -> Shape:
    """Return the shape of a product over aligned tensors."""
    return Shape(kernel, _aligned(kernel))


def _aligned(kernel: Kernel) -> list[int]:
    return [VECTOR_BYTES] * (len(kernel.loads) + len(kernel.stores))


def _computed(kernel: Kernel, operands: Sequence[Node]) -> list[Node]:
    """Return the operands that are computed of tensors in memory."""
    return [
        operand
        for operand in operands
        if operand.operation is not Operation.SOURCE
        and any(kernel.loads[number].buffer is not None for number in loads_of([operand]))
    ]


def _cycles(shape: Shape, machine: CudaMachine) -> float:
    """Return the cycles of a product in the way that is taken."""
    reduced = shape.reduced_cycles(machine)
    best = min(estimates(shape, machine), key=lambda each: each.cycles, default=None)
    if best is None or best.cycles >= reduced:
        return reduced
    tile, splits = best.choice.tile, best.choice.splits
    if isinstance(tile, WarpgroupTile):
        return best.cycles
    if any(side.steps for side in shape.sides):
        return _UNDERESTIMATE * best.cycles
    return tile_cycles(shape, tile, splits, machine, COPIED_LATENCY)


def _storing(kernel: Kernel, machine: CudaMachine) -> float:
    """Return the cycles of a kernel that stores operands."""
    elements = math.prod(kernel.domain)
    bytes = elements * sum(value.type.bytes for value in kernel.values)
    for load in kernel.loads:
        moving = zip(kernel.domain, load.strides, strict=True)
        bytes += math.prod(size for size, stride in moving if stride) * load.type.bytes
    operations = operation_count([node.operation for node in ordered(kernel.values) if node.sizes])
    return _LAUNCH_CYCLES + max(reading(machine, bytes), instructions(machine, elements * operations))
