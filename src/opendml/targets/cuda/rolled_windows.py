"""Rolls unrolled sums over windows into contractions, so that depthwise convolutions have their own kernel.

The compiler unrolls small windows (`compiler.windows`), which suits element-wise kernels. With channels last,
the kernel of `schedule_depthwise` is faster, because its threads share what neighbouring windows read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce

from opendml.compiler.kernel import Access, Kernel, KernelProgram, number_of, renumbered
from opendml.compiler.sized import plain
from opendml.late_dataclass import dataclass
from opendml.program.carriers import float32_of_bits
from opendml.program.node import Node, Operation, apply, convert, ordered, source
from opendml.program.scalar_type import ScalarType
from opendml.targets.common.guards import loads_of
from opendml.targets.cuda.contraction_source import stored_of
from opendml.targets.cuda.machine import CudaMachine
from opendml.targets.cuda.schedule_depthwise import is_depthwise
from opendml.targets.cuda.windows import bounds_of

_LEAST_TAPS = 4
"""The least taps of a window that is summed in a loop: those of 2x2."""
_LEAST_PRODUCTS = 3e6
"""The least products of a convolution with rolled windows. Element-wise kernels take 0.7 to 0.8 of the time
for 0.2 to 2.7 million products, mostly with strides of 2, and 1.2 for 4 million (H100)."""
_Steps = tuple[int, int]


def with_windows_rolled(program: KernelProgram, machine: CudaMachine) -> KernelProgram:
    """Return a program whose depthwise convolutions with channels last are contractions over windows."""
    if program.repeats:
        return program
    return replace(program, kernels=tuple(as_depthwise(each, machine) or each for each in program.kernels))


def as_depthwise(kernel: Kernel, machine: CudaMachine) -> Kernel | None:
    """Return the contraction over windows that a kernel computes if it is a large depthwise convolution with
    channels last."""
    return next((each for each in rolled_if_large(kernel) if is_depthwise(each, machine)), None)


def rolled_if_large(kernel: Kernel) -> Iterator[Kernel]:
    """Yield contractions over windows that compute what a kernel does, if they pay."""
    return (each for each in rolled(kernel) if math.prod(plain(each).domain) >= _LEAST_PRODUCTS)


def rolled(kernel: Kernel) -> Iterator[Kernel]:
    """Yield contractions over windows that compute what an element-wise kernel adds product by product."""
    chain = None if kernel.axes else _chain(kernel)
    if chain is None:
        return
    total, products = chain
    count = len(products)
    for columns in range(count, 0, -1):
        if count % columns == 0:
            factors = [_factor(kernel, [product[side] for product in products], columns) for side in (0, 1)]
            if factors[0] and factors[1]:
                yield _summed(kernel, total, (count // columns, columns), factors[0], factors[1])


def _chain(kernel: Kernel) -> tuple[Node, list[tuple[Node, Node]]] | None:
    """Return the sum of products of loads that are added one by one, and these products in order."""
    nodes = ordered(kernel.values)
    products = [node for node in nodes if node.operation in (Operation.MULTIPLY, Operation.MULTIPLY_ADD)]
    loaded = [node for node in products if all(map(_is_loaded, node.operands[:2]))]
    after = {id(node.operands[2]): node for node in loaded if node.operation is Operation.MULTIPLY_ADD}
    found = list[Node]()
    node = next((each for each in loaded if each.operation is Operation.MULTIPLY and id(each) in after), None)
    while node is not None:
        found.append(node)
        node = after.get(id(node))
    if len(found) < _LEAST_TAPS or found[0].type is not ScalarType.FLOAT32:
        return None
    rest, within = ordered(kernel.values, {id(found[-1])}), {id(node) for node in found}
    if any(id(node) in within for node in rest):
        return None
    return found[-1], [(stored_of(node.operands[0]), stored_of(node.operands[1])) for node in found]


def _is_loaded(value: Node) -> bool:
    return stored_of(value).operation is Operation.SOURCE


@dataclass(frozen=True, slots=True)
class _Factor:
    """A factor of all products.

    Args:
        load: the load of the first tap.
        steps: the bytes to the next line, and to the next column of taps.
        bounds: for each axis along which reads are guarded a counter, its steps, and its limit.
    """

    load: Access
    steps: _Steps
    bounds: tuple[tuple[Access, _Steps, Access], ...]


def _factor(kernel: Kernel, values: Sequence[Node], columns: int) -> _Factor | None:
    """Return what is loaded for products in lines of `columns`; None if loads are not evenly apart."""
    hints, numbers = plain(kernel).loads, [number_of(value) for value in values]
    first = hints[numbers[0]]
    alike = {replace(hints[number], offset=0) for number in numbers}
    known = _steps([hints[number].offset for number in numbers], columns)
    if first.buffer is None or len(alike) > 1 or first.advance or known is None:
        return None
    # The steps change with sizes. If taps are evenly apart for the hints alone, the trace records that.
    steps = _steps([kernel.loads[number].offset for number in numbers], columns)
    if steps is None:
        return None
    counted: dict[tuple[int, ...], dict[int, tuple[int, int]]] = {}
    for place, value in enumerate(values):
        bounds = bounds_of(hints, value.operands)
        if bounds is None:
            return None
        limits = _limits(value.operands)
        for counter in bounds:
            counted.setdefault(hints[counter].strides, {})[place] = counter, limits[counter]
    found = []
    for strides, places in counted.items():
        bound = _bound(kernel, first, known, columns, strides, places)
        if bound is None:
            return None
        found.append(bound)
    return _Factor(kernel.loads[numbers[0]], steps, tuple(found))


def _bound(
    kernel: Kernel,
    first: Access,
    steps: _Steps,
    columns: int,
    strides: tuple[int, ...],
    places: Mapping[int, tuple[int, int]],
) -> tuple[Access, _Steps, Access] | None:
    """Return the counter of an axis of images for the first tap, its steps, and the limit.

    Taps that are always within the image have no counter.
    """
    hints = plain(kernel).loads
    moved = [(first.strides[dimension], step) for dimension, step in enumerate(strides) if step]
    if len(moved) != 1 or moved[0][0] % moved[0][1]:
        return None
    pixel = moved[0][0] // moved[0][1]
    if pixel < 1 or len({kernel.loads[limit].offset for _, limit in places.values()}) > 1:
        return None
    for down, across in ((0, steps[1]), (steps[0], 0)):
        own = down // pixel, across // pixel
        begins = {
            hints[counter].offset - place // columns * own[0] - place % columns * own[1]
            for place, (counter, _) in places.items()
        }
        if (down or across) and not (down % pixel or across % pixel) and len(begins) == 1:
            place, (counter, limit) = next(iter(places.items()))
            ahead = place // columns * own[0] + place % columns * own[1]
            load = kernel.loads[counter]
            return replace(load, offset=load.offset - ahead), own, kernel.loads[limit]
    return None


def _limits(guards: Sequence[Node]) -> dict[int, int]:
    """Return the number of the limit of each counter of a guard that `bounds_of` understands."""
    less = [node for node in ordered(guards) if node.operation is Operation.LESS]
    return {number_of(node.operands[0]): number_of(node.operands[1]) for node in less}


def _steps(offsets: Sequence[int], columns: int) -> _Steps | None:
    """Return the distances of lines and columns; None if these are not even."""
    across = offsets[1] - offsets[0] if columns > 1 else 0
    down = offsets[columns] - offsets[0] if columns < len(offsets) else 0
    even = all(
        offset == offsets[0] + place // columns * down + place % columns * across
        for place, offset in enumerate(offsets)
    )
    return (down, across) if even else None


def _summed(kernel: Kernel, total: Node, taps: _Steps, a: _Factor, b: _Factor) -> Kernel:
    """Return the kernel with a sum over `taps`, two more dimensions, in place of a chain of products."""
    rank, loads = len(kernel.domain), [_longer(load, (0, 0)) for load in kernel.loads]
    sizes, ones = (*kernel.domain, *taps), (1, 1)

    def load_of(factor: _Factor) -> Node:
        conditions = []
        for counter, steps, limit in factor.bounds:
            pair = [
                source(len(loads) + place, each.type, sizes) for place, each in enumerate((counter, limit))
            ]
            loads.extend((_longer(counter, steps), _longer(limit, (0, 0))))
            conditions.append(apply(Operation.LESS, *pair))
        guard = [reduce(partial(apply, Operation.AND), conditions)] if conditions else []
        loads.append(_longer(factor.load, factor.steps))
        value = source(len(loads) - 1, factor.load.type, sizes, guard)
        return (
            float32_of_bits(value) if value.type is ScalarType.UINT16 else convert(value, ScalarType.FLOAT32)
        )

    operands = load_of(a), load_of(b)
    summed = Node(
        Operation.CONTRACTION, total.type, (*total.sizes, *ones), operands, (rank, rank + 1), total.origin
    )
    made = {id(total): summed}
    for node in ordered(kernel.values, made):
        own = (*node.sizes, *ones) if node.sizes else ()
        operands_of = tuple(made[id(each)] for each in node.operands)
        made[id(node)] = Node(node.operation, node.type, own, operands_of, node.attribute, node.origin)
    values = tuple(made[id(value)] for value in kernel.values)
    numbers = {old: new for new, old in enumerate(sorted(loads_of(values)))}
    return Kernel(
        sizes,
        (rank, rank + 1),
        tuple(loads[old] for old in numbers),
        tuple(_longer(store, (0, 0)) for store in kernel.stores),
        renumbered(values, numbers),
        kernel.numbers,
    )


def _longer(access: Access, steps: _Steps) -> Access:
    """Return an access that moves along two more dimensions."""
    return replace(access, strides=(*access.strides, *steps))
