"""Copies operands of convolutions to channels-last layout, which the copy engine of compute capability 9.0
needs.

Images are copied before the convolution. Weights are copied once if they are constant. Without copies, a
convolution of packed images uses tensor cores without the copy engine, and reads each pixel again for each
tap. That often takes longer than the copies and the faster product.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from opendml.compiler.kernel import (
    Access,
    Kernel,
    KernelProgram,
    PreparedTensor,
    Recipe,
    number_of,
    operations_of,
)
from opendml.compiler.loops import Loop
from opendml.compiler.memory import Temporary
from opendml.program.node import Node, Operation, source
from opendml.targets.common.forms import Memo, form_of
from opendml.targets.common.guards import loads_of
from opendml.targets.cuda.costs import reading
from opendml.targets.cuda.machine import CudaMachine
from opendml.targets.cuda.pattern import CudaMode
from opendml.targets.cuda.schedule_contraction import WINDOW_FACTOR, Shape, estimates
from opendml.targets.cuda.schedule_warpgroups import warpgroup_tiles
from opendml.targets.cuda.tensor_map import ADDRESS_ALIGNMENT
from opendml.targets.cuda.windows import windows_of

_COPY_CYCLES = 2500
"""Cycles of a launch that copies an operand, beside those of reading and writing; an estimate (H100)."""
_COPY_FACTOR = 1.3
"""Time of a copy that transposes, over that of reading and writing its bytes; an estimate (H100)."""
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
    """

    number: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    source_strides: tuple[int, ...]
    kernel_strides: tuple[int, ...]
    before: int

    @property
    def bytes(self) -> int:
        """Return the size of the copy."""
        return self.sizes[0] * self.strides[0]


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
        for copy in _copies_of(kernel, machine):
            load = kernel.loads[copy.number]
            if load.fixed:
                key = load.buffer, load.offset + copy.offset, copy.sizes, copy.source_strides
                if key not in known:
                    known[key] = program.first_prepared + len(prepared)
                    initializers.append(_copying(load, copy, known[key], 0))
                    prepared.append(PreparedTensor(copy.bytes, _recipe(program, load, copy)))
                buffer, place = known[key], 0
            else:
                buffer, place = program.arena, offset
                temporaries.append(Temporary(place, copy.bytes, len(kernels), len(kernels)))
                kernels.append(_copying(load, copy, buffer, place))
                offset += -(-copy.bytes // _ALIGNMENT) * _ALIGNMENT
            moved = replace(load, buffer=buffer, offset=place - copy.before, strides=copy.kernel_strides)
            loads = (*kernel.loads[: copy.number], moved, *kernel.loads[copy.number + 1 :])
            kernel = replace(kernel, loads=loads)
        # The convolution reads all its copies.
        temporaries[first:] = [replace(each, last=len(kernels)) for each in temporaries[first:]]
        arena_bytes = max(arena_bytes, offset if offset > begin else 0)
        numbers.append(len(kernels))
        kernels.append(kernel)
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


def _copying(load: Access, copy: _Copy, buffer: int, offset: int) -> Kernel:
    """Return the kernel that makes a copy."""
    return Kernel(
        copy.sizes,
        (),
        (replace(load, offset=load.offset + copy.offset, strides=copy.source_strides),),
        (Access(buffer, load.type, offset, copy.strides),),
        (source(0, load.type, copy.sizes),),
    )


def _recipe(program: KernelProgram, load: Access, copy: _Copy) -> Recipe:
    """Return the recipe by which a copy is made of constants."""
    assert load.buffer is not None
    text = f"channels last of {load.type} {load.offset + copy.offset} {copy.sizes} {copy.source_strides}"
    if load.buffer < program.first_prepared:
        return Recipe(text, (load.buffer,))
    of = program.prepared[load.buffer - program.first_prepared].recipe
    return Recipe(None if of.text is None else f"{text} of\n{of.text}", of.constants)


_known = Memo[Sequence[_Copy]]()


def _copies_of(kernel: Kernel, machine: CudaMachine) -> Sequence[_Copy]:
    """Return the copies with which a convolution takes less time; none if there are none. Kernels of equal
    form have equal ones."""
    if Operation.CONTRACTION not in operations_of(kernel.values):
        return ()
    form, _ = form_of(kernel)
    return _known.get(form, machine, lambda: _copies(form, machine))


def _copies(kernel: Kernel, machine: CudaMachine) -> Sequence[_Copy]:
    """Return the copies of a form, found anew."""
    aligned = [ADDRESS_ALIGNMENT] * (len(kernel.loads) + len(kernel.stores))
    shape = Shape(kernel, aligned)
    is_loaded = all(each.operation is Operation.SOURCE for each in shape.operands)
    is_suitable = is_loaded and shape.mode is CudaMode.MMA and shape.is_summed and not shape.loops["batch"]
    if not is_suitable or any(True for _ in warpgroup_tiles(shape, machine)):
        return ()
    before = WINDOW_FACTOR * min((each.cycles for each in estimates(shape, machine)), default=math.inf)
    a, b = shape.operands
    for image, weights in ((a, b), (b, a)):
        copies = [] if weights.operands else _operand_copies(kernel, image, weights)
        if not copies:
            continue
        loads = list(kernel.loads)
        for copy in copies:
            loads[copy.number] = replace(loads[copy.number], offset=0, strides=copy.kernel_strides)
        moved = Shape(replace(kernel, loads=tuple(loads)), aligned)
        after = min((cycles for _, _, cycles in warpgroup_tiles(moved, machine)), default=math.inf)
        own = [copy for copy in copies if not kernel.loads[copy.number].fixed]
        after += sum(_COPY_CYCLES + _COPY_FACTOR * reading(machine, 2 * copy.bytes) for copy in own)
        if after < before:
            return copies
    return ()


def _operand_copies(kernel: Kernel, image: Node, weights: Node) -> list[_Copy]:
    """Return the copies of images and weights that a convolution needs; none if it is no convolution."""
    load, other = number_of(image), number_of(weights)
    accesses = (*kernel.loads, *kernel.stores)
    guarding = loads_of(image.operands)
    loops = {
        dimension: Loop(count, tuple(access.strides[dimension] for access in accesses))
        for dimension, count in enumerate(kernel.domain)
        if count > 1
    }
    summed = [loop for dimension, loop in loops.items() if dimension in kernel.axes]
    channels = max(
        (loop for loop in summed if not any(loop.strides[each] for each in guarding)),
        key=lambda loop: loop.strides[load],
        default=None,
    )
    if channels is None or not channels.strides[load] or not channels.strides[other]:
        return []
    taps = [loop for loop in summed if loop is not channels]
    rows = [loop for dimension, loop in loops.items() if dimension not in kernel.axes and loop.strides[load]]
    windows = windows_of(accesses, image, rows, taps)
    if windows is None:
        return []
    axes = sorted((windows.images, *windows.axes), key=lambda axis: axis.bytes, reverse=True)
    if any(min(axis.bytes, axis.stride, axis.dilation, axis.size) < 1 for axis in axes):
        return []
    result, access = [], accesses[load]
    if channels.strides[load] != access.type.bytes or any(axis.bytes % ADDRESS_ALIGNMENT for axis in axes):
        strides = _strides([axis.size for axis in axes], channels.count, access.type.bytes)
        new = dict[int, int]()
        for axis, stride in zip(axes, strides, strict=False):
            new |= {id(axis.rows): axis.stride * stride, id(axis.along_k): axis.dilation * stride}
        result.append(
            _Copy(
                load,
                (*(axis.size for axis in axes), channels.count),
                strides,
                windows.offset,
                (*(axis.bytes for axis in axes), channels.strides[load]),
                _kernel_strides(kernel, loops, new | {id(channels): access.type.bytes}),
                sum(axis.before * stride for axis, stride in zip(axes, strides, strict=False)),
            )
        )
    access = accesses[other]
    own = [loop for loop in loops.values() if loop.strides[other] and loop is not channels]
    own.sort(key=lambda loop: (loop in taps, -loop.strides[other]))
    is_aligned = not any(loop.strides[other] % ADDRESS_ALIGNMENT for loop in own)
    if channels.strides[other] != access.type.bytes or not is_aligned:
        strides = _strides([loop.count for loop in own], channels.count, access.type.bytes)
        new = {id(loop): stride for loop, stride in zip((*own, channels), strides, strict=True)}
        result.append(
            _Copy(
                other,
                (*(loop.count for loop in own), channels.count),
                strides,
                0,
                (*(loop.strides[other] for loop in own), channels.strides[other]),
                _kernel_strides(kernel, loops, new),
                0,
            )
        )
    return result


def _strides(sizes: Sequence[int], channels: int, element: int) -> tuple[int, ...]:
    """Return the strides of a packed tensor of such sizes and channels, whose pixels are aligned."""
    strides, pitch = [element], -(-channels * element // ADDRESS_ALIGNMENT) * ADDRESS_ALIGNMENT
    for size in reversed(sizes):
        strides.append(pitch)
        pitch *= size
    return tuple(reversed(strides))


def _kernel_strides(kernel: Kernel, loops: dict[int, Loop], new: dict[int, int]) -> tuple[int, ...]:
    """Return the strides along all dimensions of a kernel, from those along some loops."""
    return tuple(new.get(id(loops.get(dimension)), 0) for dimension in range(len(kernel.domain)))
