"""Copies operands of convolutions to channels-last layout, and those of products of bytes to the layout in
which sums run along memory. The copy engine and tensor cores of compute capability 9.0 need these.

Images are copied before the convolution. Weights are copied once if they are constant. Without copies, a
convolution of packed images uses tensor cores without the copy engine, and reads each pixel again for each
tap. That often takes longer than the copies and the faster product.

Images of few channels, such as those of a first layer, are copied with their padding. Strides become
channels: with a stride of 2, a square of 2 x 2 pixels is one pixel of the copy ("space to depth"). Channels
are padded, so that windows begin multiples of 16 bytes apart. Then a row of a window is contiguous: its taps
and channels are one loop along k. Windows of 7 x 7 over 3 channels with strides of 2 have 4 steps along k, of
which 37 in 64 elements exist in the mean. Otherwise they have 49 steps, of which 3 elements exist.

Images of bytes are copied in this way whatever their channels. The copy engine fills with zeros, but around
bytes lies their zero point.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce

from opendml.compiler.kernel import (
    Access,
    Kernel,
    KernelProgram,
    PreparedTensor,
    number_of,
    operations_of,
    renumbered,
)
from opendml.compiler.loops import Loop, loops_over
from opendml.compiler.memory import Temporary
from opendml.compiler.recipe import Recipe
from opendml.compiler.sized import plain
from opendml.late_dataclass import dataclass
from opendml.program.carriers import bits_of_bfloat16
from opendml.program.node import Node, Operation, apply, rebuild, source
from opendml.program.scalar_type import ScalarType
from opendml.program.sizes import greatest
from opendml.targets.common.candidates import Estimate
from opendml.targets.common.differences import BYTES, difference
from opendml.targets.common.forms import Memo, form_of
from opendml.targets.common.guards import loads_of
from opendml.targets.cuda.contraction_source import contraction_of, stored_of
from opendml.targets.cuda.costs import reading
from opendml.targets.cuda.machine import CudaMachine
from opendml.targets.cuda.pattern import CudaMode
from opendml.targets.cuda.schedule_contraction import (
    FMA_FACTOR,
    WINDOW_FACTOR,
    CudaProductQuery,
    Shape,
    estimates,
)
from opendml.targets.cuda.schedule_short_sums import SHORT_SUMS
from opendml.targets.cuda.schedule_warpgroups import warpgroup_tiles
from opendml.targets.cuda.tensor_map import ADDRESS_ALIGNMENT, ROW_BYTES
from opendml.targets.cuda.windows import Axis, Windows, windows_of

_COPY_CYCLES = 2500
"""Cycles of a launch that copies an operand, beside those of reading and writing; an estimate (H100)."""
_COPY_FACTOR = 1.3
"""Time of a copy that transposes, over that of reading and writing its bytes; an estimate (H100)."""
_NARROW_FACTOR = 1.4
"""Time of a convolution of FLOAT16 over few channels without copies, over its estimate. On an H100 the ratio
is 1.25 to 1.7 for eight convolutions of 3 to 48 channels."""
_MOST_PADDING = 2.5
"""Most elements of a row of a window, padded to whole rows of tiles, over those that exist. For 3 channels an
H100 takes 0.73 of the time of `mma.sync` with windows of 7 x 7 and strides of 2 (2.3 times the elements). It
takes 1.7 times as long with windows of 3 x 3 (2.7)."""
_ALIGNMENT = 256
"""Bytes to which copies in the arena are aligned, as its temporaries are (`compiler.memory.ALIGNMENT`)."""


@dataclass(frozen=True, slots=True)
class _Copy:
    """A packed copy of an operand with its channels innermost.

    Args:
        number: the load of the operand.
        sizes: the sizes of the copy.
        strides: its strides in bytes.
        offset: bytes from the first byte of the load to what is copied.
        source_strides: the strides of the operand, in bytes.
        kernel_strides: the strides of the load in the kernel, once it reads the copy.
        before: the bytes from the first address of the load to the copy: the padding in front of images.
        bounds: for some axes of the operand how each dimension of the copy moves along it, the index there of
            the first element, and its size. Elements outside are zeros, or `fill`.
        fill: the load of the number that elements outside are, and its strides.
    """

    number: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    source_strides: tuple[int, ...]
    kernel_strides: tuple[int, ...]
    before: int
    bounds: tuple[tuple[tuple[int, ...], int, int], ...] = ()
    fill: tuple[int, tuple[int, ...]] | None = None

    @property
    def bytes(self) -> int:
        """Return the size of the copy."""
        return self.sizes[0] * self.strides[0]

    def filled_by(self, kernel: Kernel) -> Access | None:
        """Return the load of the number that elements outside are."""
        if self.fill is None:
            return None
        number, strides = self.fill
        return replace(kernel.loads[number], strides=strides)

    def is_fixed(self, kernel: Kernel) -> bool:
        """Return whether the copy is made of constants alone."""
        return kernel.loads[self.number].fixed and (self.fill is None or kernel.loads[self.fill[0]].fixed)


@dataclass(frozen=True, slots=True)
class _Copies:
    """The copies of a convolution's operands.

    Args:
        each: the copies.
        resized: if the images, which are the first copy, have their padding there, the dimensions of the
            kernel over channels and taps, and their sizes in the copies.
    """

    each: tuple[_Copy, ...] = ()
    resized: tuple[tuple[int, int], ...] = ()

    def read_by(self, kernel: Kernel, places: Sequence[tuple[int | None, int]]) -> Kernel:
        """Return the kernel over the copies, which lie at offsets of buffers."""
        loads = list(kernel.loads)
        for copy, (buffer, offset) in zip(self.each, places, strict=True):
            loads[copy.number] = replace(
                loads[copy.number], buffer=buffer, offset=offset - copy.before, strides=copy.kernel_strides
            )
        kernel = replace(kernel, loads=tuple(loads))
        if not self.resized:
            return kernel
        return _without_guard(kernel, self.each[0].number, dict(self.resized))


def _without_guard(kernel: Kernel, load: int, counts: Mapping[int, int]) -> Kernel:
    """Return a kernel of which a load needs no guard, with other sizes of some dimensions."""

    def resized(sizes: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(
            counts.get(dimension, size) if size > 1 else size for dimension, size in enumerate(sizes)
        )

    def changed(node: Node) -> Node:
        if node.operation is Operation.SELECT:
            inside = node.operands[1]
            if is_source(bits_of_bfloat16(inside) or inside):
                return inside
        operands = () if is_source(node) else node.operands
        return Node(node.operation, node.type, resized(node.sizes), operands, node.attribute, node.origin)

    def is_source(node: Node) -> bool:
        return node.operation is Operation.SOURCE and number_of(node) == load

    values = rebuild(kernel.values, changed)
    numbers = {old: new for new, old in enumerate(sorted(loads_of(values)))}
    return replace(
        kernel,
        domain=resized(kernel.domain),
        loads=tuple(kernel.loads[old] for old in numbers),
        values=renumbered(values, numbers),
    )


def with_channels_last(program: KernelProgram, machine: CudaMachine) -> KernelProgram:
    """Return the program whose convolutions read copies with channels last, where that takes less time."""
    if not machine.multiplies_by_warpgroups or program.repeats:
        return program
    kernels, arena_bytes = list[Kernel](), program.arena_bytes
    begin = -(-arena_bytes // _ALIGNMENT) * _ALIGNMENT
    prepared, initializers = list(program.prepared), list(program.initializers)
    known = dict[tuple[object, ...], int]()
    numbers, temporaries = list[int](), list[Temporary]()
    for kernel in program.kernels:
        offset, first = begin, len(temporaries)
        copies, places = copies_of(kernel, machine), list[tuple[int | None, int]]()
        own = dict[tuple[object, ...], int]()
        for copy in copies.each:
            load = kernel.loads[copy.number]
            fill = copy.filled_by(kernel)
            key = load.buffer, load.offset + copy.offset, copy.sizes, copy.source_strides, copy.bounds, fill
            if copy.is_fixed(kernel):
                if key not in known:
                    known[key] = program.first_prepared + len(prepared)
                    initializers.append(_copying(load, copy, fill, known[key], 0))
                    prepared.append(PreparedTensor(copy.bytes, _recipe(program, load, copy, fill)))
                places.append((known[key], 0))
            elif key in own:
                places.append((program.arena, own[key]))
            else:
                own[key] = offset
                places.append((program.arena, offset))
                temporaries.append(Temporary(offset, copy.bytes, len(kernels), len(kernels)))
                kernels.append(_copying(load, copy, fill, program.arena, offset))
                offset += -(-copy.bytes // _ALIGNMENT) * _ALIGNMENT
        # The convolution reads all its copies.
        temporaries[first:] = [replace(each, last=len(kernels)) for each in temporaries[first:]]
        if len(temporaries) > first:
            arena_bytes = greatest(arena_bytes, offset)
        numbers.append(len(kernels))
        kernels.append(copies.read_by(kernel, places))
    temporaries += [
        replace(each, first=numbers[each.first], last=numbers[each.last]) for each in program.temporaries
    ]
    return replace(
        program,
        kernels=tuple(kernels),
        arena_bytes=arena_bytes,
        initializers=tuple(initializers),
        prepared=tuple(prepared),
        temporaries=tuple(temporaries),
    )


def _copying(load: Access, copy: _Copy, fill: Access | None, buffer: int, offset: int) -> Kernel:
    """Return the kernel that makes a copy."""
    loads = [replace(load, offset=load.offset + copy.offset, strides=copy.source_strides)]
    guards = list[Node]()
    for steps, first, size in copy.bounds:
        index, limit = (source(len(loads) + number, ScalarType.UINT32, copy.sizes) for number in (0, 1))
        loads.append(Access(None, ScalarType.UINT32, first, steps))
        loads.append(Access(None, ScalarType.UINT32, size, (0,) * len(steps)))
        guards.append(apply(Operation.LESS, index, limit))
    guard = [reduce(partial(apply, Operation.AND), guards)] if guards else []
    value = source(0, load.type, copy.sizes, guard)
    if fill is not None:
        loads.append(fill)
        value = apply(Operation.SELECT, *guard, value, source(len(loads) - 1, load.type, copy.sizes))
    store = Access(buffer, load.type, offset, copy.strides)
    return Kernel(copy.sizes, (), tuple(loads), (store,), (value,))


def _recipe(program: KernelProgram, load: Access, copy: _Copy, fill: Access | None) -> Recipe:
    """Return the recipe by which a copy is made of constants."""
    assert load.buffer is not None
    text = f"channels last of {load.type} {load.offset + copy.offset} {copy.sizes} {copy.source_strides}"
    text += f" within {copy.bounds}" if copy.bounds else ""
    more = tuple[int, ...]()
    if fill is not None and fill.buffer is not None:
        more = (fill.buffer,)
        text += f" else {fill.offset} {fill.strides}"
    if load.buffer < program.first_prepared:
        return Recipe(text, (load.buffer, *more))
    of = program.prepared[load.buffer - program.first_prepared].recipe
    return Recipe(None if of.text is None else f"{text} of\n{of.text}", of.constants)


_known = Memo[tuple[_Copies, int]]()


def copies_of(kernel: Kernel, machine: CudaMachine) -> _Copies:
    """Return the copies with which a convolution takes least time. Kernels of equal form have equal ones.

    Of traced sizes, they are those that are best for the hints.
    """
    if Operation.CONTRACTION not in operations_of(kernel.values):
        return _Copies()
    hints = plain(kernel)
    form, _ = form_of(hints)
    copies, number = _known.get(form, machine, lambda: _copies(form, machine))
    return copies if hints is kernel or number < 0 else list(_ways_to_copy(kernel))[number]


def _copies(kernel: Kernel, machine: CudaMachine) -> tuple[_Copies, int]:
    """Return the copies of a form, found anew, and their number among the ways to copy; -1 if none pays."""
    aligned = [ADDRESS_ALIGNMENT] * (len(kernel.loads) + len(kernel.stores))
    shape = Shape(kernel, aligned)
    is_loaded = all(_padded_source(each) for each in shape.operands)
    is_suitable = is_loaded and shape.is_summed and not shape.loops["batch"]
    if not is_suitable or any(True for _ in warpgroup_tiles(shape, machine)):
        return _Copies(), -1

    def cycles(copies: _Copies) -> float:
        moved = copies.read_by(kernel, [(0, copy.before) for copy in copies.each])
        after = min(
            (cycles for _, _, cycles in warpgroup_tiles(Shape(moved, aligned), machine)), default=math.inf
        )
        own = [copy for copy in copies.each if not copy.is_fixed(kernel)]
        return after + sum(_COPY_CYCLES + _COPY_FACTOR * reading(machine, 2 * copy.bytes) for copy in own)

    before = min((each.cycles for each in estimates(shape, machine)), default=math.inf)
    short = SHORT_SUMS.estimate(CudaProductQuery(kernel, machine, aligned))
    if isinstance(short, Estimate):
        before = min(before, short.cycles)
    factor = FMA_FACTOR if shape.mode is CudaMode.FMA else WINDOW_FACTOR
    narrow = _NARROW_FACTOR if shape.mode is CudaMode.MMA else factor
    ways = list(_ways_to_copy(kernel))
    found = [cycles(way) / (narrow if way.resized else factor) for way in ways]
    best = min(range(len(ways)), key=found.__getitem__, default=-1)
    return (ways[best], best) if best >= 0 and found[best] < before else (_Copies(), -1)


def _ways_to_copy(kernel: Kernel) -> Iterator[_Copies]:
    """Yield the ways to copy the operands of a kernel, if it is a convolution or a product of bytes."""
    operands = contraction_of(kernel.values).operands
    bytes = [difference(each) for each in operands]
    if all(bytes):
        sides = [each for each in bytes if each]
        if not any(value.operands for value, *_ in sides):
            yield from _ways_to_sum_along_memory(kernel, [number_of(value) for value, *_ in sides])
    else:
        sides = [(stored_of(each),) for each in operands]
    for images, weights in (sides, reversed(sides)):
        convolution = _convolution_of(kernel, images, weights)
        if convolution is not None and not all(bytes):
            copies = tuple(filter(None, (convolution.image_copy(), convolution.weights_copy())))
            if copies:
                yield _Copies(copies)
        if convolution is not None:
            yield from convolution.rows_of_windows()


def _padded_source(value: Node) -> Node | None:
    """Return the tensor that an operand is, with another number around it or not; None for others."""
    if value.operation is not Operation.SELECT:
        return value if value.operation is Operation.SOURCE else None
    condition, inside, _ = value.operands
    return inside if inside.operation is Operation.SOURCE and inside.operands == (condition,) else None


def _ways_to_sum_along_memory(kernel: Kernel, numbers: Sequence[int]) -> Iterator[_Copies]:
    """Yield the copies of those operands of a product whose summed dimension is not contiguous."""
    loops = loops_over(kernel, range(len(kernel.domain)))
    summed = [loops[axis] for axis in kernel.axes if loops[axis].count > 1]
    if len(summed) != 1:
        return
    (along,) = summed
    copies = []
    for number in numbers:
        bytes = kernel.loads[number].type.bytes
        rows = [loop for loop in loops if loop is not along and loop.count > 1 and loop.strides[number]]
        rows.sort(key=lambda loop: loop.strides[number], reverse=True)
        strides_of_rows = [loop.strides[number] for loop in rows]
        if along.strides[number] == bytes and not any(each % ADDRESS_ALIGNMENT for each in strides_of_rows):
            continue
        if any(each < 1 for each in (along.strides[number], *strides_of_rows)):
            return
        own, sizes = (*rows, along), tuple(loop.count for loop in rows)
        strides = _strides(sizes, along.count, bytes)
        new = dict(zip(map(id, own), strides, strict=True))
        source_strides = (*strides_of_rows, along.strides[number])
        kernel_strides = tuple(new.get(id(loop), 0) for loop in loops)
        copies.append(_Copy(number, (*sizes, along.count), strides, 0, source_strides, kernel_strides, 0))
    if copies:
        yield _Copies(tuple(copies))


def _convolution_of(kernel: Kernel, images: Sequence[Node], weights: Sequence[Node]) -> _Convolution | None:
    """Return the convolution that a kernel is with these images and weights, each with what is subtracted
    from it; None if it is none."""
    (value, *of_images), (filters, *of_filters) = images, weights
    image = _padded_source(value)
    if image is None or filters.operation is not Operation.SOURCE or filters.operands:
        return None
    load, other = number_of(image), number_of(filters)
    zero, zero_of_filters = (
        _loaded_zero(kernel, each[0]) if each else None for each in (of_images, of_filters)
    )
    if (of_images and not zero) or (of_filters and not zero_of_filters):
        return None
    if value is not image and value.operands[2] is not zero:
        return None
    if zero is not None and any(kernel.loads[number_of(zero)].strides):
        return None
    guarding = loads_of(image.operands)
    every = enumerate(loops_over(kernel, range(len(kernel.domain))))
    loops = {dimension: loop for dimension, loop in every if loop.count > 1}
    summed = [loop for dimension, loop in loops.items() if dimension in kernel.axes]
    channels = max(
        (loop for loop in summed if not any(loop.strides[each] for each in guarding)),
        key=lambda loop: loop.strides[load],
        default=None,
    )
    if channels is None or not channels.strides[load] or not channels.strides[other]:
        return None
    taps = [loop for loop in summed if loop is not channels]
    rows = [loop for dimension, loop in loops.items() if dimension not in kernel.axes and loop.strides[load]]
    windows = windows_of(kernel.accesses, image, rows, taps)
    if windows is None:
        return None
    axes = (windows.images, *windows.axes)
    if any(each < 1 for axis in axes for each in (axis.bytes, axis.stride, axis.dilation, axis.size)):
        return None
    return _Convolution(kernel, loops, load, other, channels, taps, windows, (zero, zero_of_filters))


def _loaded_zero(kernel: Kernel, subtracted: Node) -> Node | None:
    """Return the load of a zero point before it is widened; None if it is computed."""
    (value,) = subtracted.operands if subtracted.operation is Operation.CONVERT else (subtracted,)
    is_loaded = value.operation is Operation.SOURCE and not value.operands
    return value if is_loaded and kernel.loads[number_of(value)].buffer is not None else None


@dataclass(frozen=True, slots=True)
class _Convolution:
    """A convolution whose operands may be copied.

    Args:
        kernel: its kernel.
        loops: the loops of the kernel by their dimensions, but for those of one step.
        load, other: the numbers of the loads of images and weights.
        channels: the loop over channels.
        taps: the other loops along k.
        windows: the windows in which images are read.
        zeros: the loads of the zero points of images and of weights, if they have any.
    """

    kernel: Kernel
    loops: dict[int, Loop]
    load: int
    other: int
    channels: Loop
    taps: list[Loop]
    windows: Windows
    zeros: tuple[Node | None, Node | None] = (None, None)

    @property
    def _axes(self) -> list[Axis]:
        """Return the axes of the images, as they lie in memory, outermost first."""
        axes = self.windows.images, *self.windows.axes
        return sorted(axes, key=lambda axis: axis.bytes, reverse=True)

    @property
    def _own_weights(self) -> list[Loop]:
        """Return the loops over weights but for that over channels: over filters, then over taps."""
        loops = self.loops.values()
        own = [loop for loop in loops if loop.strides[self.other] and loop is not self.channels]
        return sorted(
            own, key=lambda loop: (any(loop is each for each in self.taps), -loop.strides[self.other])
        )

    def image_copy(self) -> _Copy | None:
        """Return the copy of the images with channels last; None if they lie so that it needs none."""
        axes, type, channels = self._axes, self.kernel.loads[self.load].type, self.channels
        is_aligned = not any(axis.bytes % ADDRESS_ALIGNMENT for axis in axes)
        if channels.strides[self.load] == type.bytes and is_aligned:
            return None
        strides = _strides([axis.size for axis in axes], channels.count, type.bytes)
        return _Copy(
            self.load,
            (*(axis.size for axis in axes), channels.count),
            strides,
            self.windows.offset,
            (*(axis.bytes for axis in axes), channels.strides[self.load]),
            self._moving(axes, strides),
            sum(axis.before * stride for axis, stride in zip(axes, strides, strict=False)),
        )

    def weights_copy(self) -> _Copy | None:
        """Return the copy of the weights with channels last; None if they lie so that it needs none."""
        own, type, channels = self._own_weights, self.kernel.loads[self.other].type, self.channels
        is_aligned = not any(loop.strides[self.other] % ADDRESS_ALIGNMENT for loop in own)
        if channels.strides[self.other] == type.bytes and is_aligned:
            return None
        sizes = [loop.count for loop in own]
        strides = _strides(sizes, channels.count, type.bytes)
        return _Copy(
            self.other,
            (*sizes, channels.count),
            strides,
            0,
            (*(loop.strides[self.other] for loop in own), channels.strides[self.other]),
            self._strides_of_kernel(dict(zip(map(id, (*own, channels)), strides, strict=True))),
            0,
        )

    def rows_of_windows(self) -> Iterator[_Copies]:
        """Yield the copies in which the rows of windows are contiguous, if that is possible."""
        type, own = self.kernel.loads[self.load].type, self._own_weights
        along, across = self.windows.axes
        is_row = along.along_k is not None and along.dilation == 1
        has_few_channels = type in BYTES or self.channels.count * type.bytes < ROW_BYTES
        if not is_row or own[-1] is not along.along_k or not has_few_channels:
            return
        # The pixels of a square become one pixel of the copy.
        square = across.stride if across.along_k and across.dilation == 1 else 1, along.stride
        unit = ADDRESS_ALIGNMENT // math.gcd(ADDRESS_ALIGNMENT, math.prod(square) * type.bytes)
        channels = -(-self.channels.count // unit) * unit
        count = math.prod(square) * channels
        taps = {
            id(axis.along_k): -(-axis.taps // side)
            for axis, side in zip((across, along), square, strict=True)
        }
        row = taps[id(along.along_k)] * count * type.bytes
        if -(-row // ROW_BYTES) * ROW_BYTES > _MOST_PADDING * row:
            return
        dimensions = {id(loop): dimension for dimension, loop in self.loops.items()}
        resized = ((dimensions[each], size) for each, size in taps.items() if each in dimensions)
        yield _Copies(
            (self._squares(square, channels, taps), self._weights_of_squares(square, channels, taps)),
            (*resized, (dimensions[id(self.channels)], count)),
        )

    def _squares(self, square: tuple[int, int], channels: int, taps: Mapping[int, int]) -> _Copy:
        """Return the copy of the images with their padding, whose pixels are squares of pixels."""
        (along, across), (zero, _) = self.windows.axes, self.zeros
        axes, type = (self.windows.images, across, along), self.kernel.loads[self.load].type
        moved, sizes = list[Axis](), list[int]()
        for axis, side in zip(axes, (1, *square), strict=True):
            step, dilation = axis.stride // side, axis.dilation
            moved.append(replace(axis, stride=step))
            sizes.append((axis.outputs - 1) * step + (taps.get(id(axis.along_k), 1) - 1) * dilation + 1)
        strides = _strides([*sizes, *square], channels, type.bytes, 4)
        sides = square[0] * across.bytes, square[1] * along.bytes
        return _Copy(
            self.load,
            (*sizes, *square, channels),
            strides,
            0,
            (axes[0].bytes, *sides, across.bytes, along.bytes, self.channels.strides[self.load]),
            self._moving(moved, (*strides[:3], strides[-1])),
            0,
            (
                ((0, square[0], 0, 1, 0, 0), -across.before, across.size),
                ((0, 0, square[1], 0, 1, 0), -along.before, along.size),
                ((0, 0, 0, 0, 0, 1), 0, self.channels.count),
            ),
            None if zero is None else (number_of(zero), (0,) * 6),
        )

    def _weights_of_squares(self, square: tuple[int, int], channels: int, taps: Mapping[int, int]) -> _Copy:
        """Return the copy of the weights for images whose pixels are squares of pixels."""
        own, type = self._own_weights, self.kernel.loads[self.other].type
        (along, across), (_, zero) = self.windows.axes, self.zeros
        sides = {id(across.along_k): square[0], id(along.along_k): square[1]}
        sizes = [taps.get(id(loop), loop.count) for loop in own]
        strides = _strides([*sizes, *square], channels, type.bytes, 4)
        steps = {id(loop): loop.strides[self.other] for loop in own}
        places, length = {id(loop): place for place, loop in enumerate(own)}, len(own)
        bounds = [(_unit_steps(length + 3, {length + 2: 1}), 0, self.channels.count)]
        for number, axis in enumerate((across, along)):
            if axis.along_k is not None:
                place = places[id(axis.along_k)]
                moved = _unit_steps(length + 3, {place: square[number], length + number: 1})
                bounds.append((moved, 0, axis.taps))
        return _Copy(
            self.other,
            (*sizes, *square, channels),
            strides,
            0,
            (
                *(sides.get(each, 1) * step for each, step in steps.items()),
                *(steps.get(id(axis.along_k), 0) for axis in (across, along)),
                self.channels.strides[self.other],
            ),
            self._strides_of_kernel(
                dict(zip(map(id, own), strides, strict=False)) | {id(self.channels): strides[-1]}
            ),
            0,
            tuple(bounds),
            None if zero is None else (number_of(zero), (*_strides_of(own, number_of(zero)), 0, 0, 0)),
        )

    def _moving(self, axes: Sequence[Axis], strides: Sequence[int]) -> tuple[int, ...]:
        """Return the strides of the kernel over a copy of the images."""
        new = {id(self.channels): strides[-1]}
        for axis, stride in zip(axes, strides, strict=False):
            new |= {id(axis.rows): axis.stride * stride, id(axis.along_k): axis.dilation * stride}
        new.pop(id(None), None)
        return self._strides_of_kernel(new)

    def _strides_of_kernel(self, new: Mapping[int, int]) -> tuple[int, ...]:
        """Return the strides along the dimensions of the kernel, from those along loops by their ids."""
        dimensions = range(len(self.kernel.domain))
        return tuple(new.get(id(self.loops.get(dimension)), 0) for dimension in dimensions)


def _strides_of(loops: Sequence[Loop], number: int) -> tuple[int, ...]:
    """Return how loops move an access."""
    return tuple(loop.strides[number] for loop in loops)


def _unit_steps(dimensions: int, steps: Mapping[int, int]) -> tuple[int, ...]:
    """Return the steps along all dimensions, from those of some."""
    return tuple(steps.get(dimension, 0) for dimension in range(dimensions))


def _strides(sizes: Sequence[int], channels: int, element: int, packed: int = 1) -> tuple[int, ...]:
    """Return the strides of a tensor of such sizes and channels. Its innermost dimensions, `packed` ones, are
    contiguous, and those around them are aligned."""
    strides, pitch = [element], channels * element
    for number, size in enumerate(reversed(sizes), 1):
        pitch = pitch if number < packed else -(-pitch // ADDRESS_ALIGNMENT) * ADDRESS_ALIGNMENT
        strides.append(pitch)
        pitch *= size
    return tuple(reversed(strides))
