"""Kernels made by hand over NumPy arrays, and their launches run one by one, without the rest of the CPU
target."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from opendml.compiler.kernel import Access, Kernel
from opendml.program.node import Node, contraction, convert, source
from opendml.program.scalar_type import ScalarType
from opendml.runtime.memory.host_array import Array
from opendml.targets.cpu.contraction.tiles import BlockWay, Family, Tiles
from opendml.targets.cpu.contraction.tiling import Instructions, Storage
from opendml.targets.cpu.contraction.tilings import packed_ahead_b
from opendml.targets.cpu.engine import KernelCompiler
from opendml.targets.cpu.launch import CpuLaunch
from opendml.targets.cpu.pattern import ParameterTable

_BEHIND = 4096
"""Bytes behind scratch memory that must stay as they are."""

Operand = Callable[[Node], Node]
"""What a kernel makes of an array before it multiplies it."""
Epilogue = Callable[..., Sequence[Node]]
"""The values that a kernel stores, from the sums of products and its further loads."""


def access(buffer: int, view: Array) -> Access:
    """The access to a view of an array, which is bound at its first element."""
    type = ScalarType[view.dtype.name.upper()]
    strides = [0 if size == 1 else stride for size, stride in zip(view.shape, view.strides, strict=True)]
    return Access(buffer, type, 0, tuple(strides))


def as_float(value: Node) -> Node:
    """Narrow floats as FLOAT32, everything else as it is."""
    return convert(value, ScalarType.FLOAT32) if value.type is ScalarType.FLOAT16 else value


def only(total: Node, *further: Node) -> Sequence[Node]:
    """The epilogue that is none."""
    return [total]


def contraction_kernel(
    a: Array,
    b: Array,
    axes: tuple[int, ...],
    outputs: Sequence[Array],
    further: Sequence[Array] = (),
    epilogue: Epilogue = only,
    operand: Operand = as_float,
) -> Kernel:
    """The kernel of `epilogue` of the sum of a * b over `axes`. All arrays have as many dimensions as the
    domain; those that do not vary along one have the size 1 there. Buffers are numbered in order: a, b, those
    of `further`, the outputs."""
    domain = np.broadcast_shapes(a.shape, b.shape)
    arrays = [a, b, *further]
    loads = tuple(access(number, array) for number, array in enumerate(arrays))
    stores = tuple(access(len(arrays) + number, array) for number, array in enumerate(outputs))
    sources = [
        source(number, load.type, array.shape)
        for number, (load, array) in enumerate(zip(loads, arrays, strict=True))
    ]
    total = contraction(operand(sources[0]), operand(sources[1]), axes)
    return Kernel(domain, axes, loads, stores, tuple(epilogue(total, *sources[2:])))


def run_launches(launches: Sequence[CpuLaunch], arrays: Sequence[Array], at_once: int | None = None) -> None:
    """Runs launches over arrays, so many items per call (None: all), every call in scratch memory of its own.
    Nothing behind that or the arena is written."""
    is_apart = launches[-1].packed_at > 0
    packed = np.full(is_apart * launches[0].partial_bytes + 64, 0xFF, np.uint8)
    partial_bytes = max(launch.partial_bytes for launch in launches[is_apart:])
    arena = np.full(partial_bytes + 64 + _BEHIND, 0xFF, np.uint8)
    first = -arena.ctypes.data % 64
    table = (ctypes.c_void_p * (len(arrays) + 2))()
    own = arena.ctypes.data + first, packed.ctypes.data + -packed.ctypes.data % 64
    table[:] = [*(array.ctypes.data for array in arrays), *own]
    call_type = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, *[ctypes.c_void_p] * 3)
    for place, launch in enumerate(launches):
        with KernelCompiler() as compiler:
            (code,) = compiler.codes([launch.pattern])
        words = np.array(launch.parameters, np.int64)
        words[ParameterTable.PARTIAL_BUFFER], words[ParameterTable.PARTIAL_OFFSET] = len(arrays), 0
        if is_apart and (launch.packed_at or not place):
            words[launch.packed_at or ParameterTable.PARTIAL_BUFFER] = len(arrays) + 1
        step = at_once or launch.items
        for begin in range(launch.first, launch.first + launch.items, step):
            end = min(begin + step, launch.first + launch.items)
            # All bits one are NaN: what is read without having been written shows.
            scratch = np.full(code.scratch_bytes + 128 + _BEHIND, 0xFF, np.uint8)
            before = -scratch.ctypes.data % 128
            place = scratch.ctypes.data + before
            call_type(code.address)(begin, end, words.ctypes.data, ctypes.addressof(table), place)
            assert (scratch[before + code.scratch_bytes :] == 0xFF).all()
    assert (arena[first + partial_bytes :] == 0xFF).all()


def with_b_ahead(tiles: Tiles) -> Tiles | None:
    """Return the tiles with B packed ahead; None if tiles of B are not packed one by one."""
    packs = tiles.b in (Storage.PACKED, Storage.AHEAD)
    if not packs or tiles.instructions is Instructions.AMX_BF16:
        return None
    family = Family(tiles.roles, tiles.instructions, tiles.micro, 0.0, (), no_ways, tiles.viewed, True)
    ahead = packed_ahead_b(family)
    return ahead.of(tiles) if ahead else None


def no_ways(rows: int, columns: int) -> Iterator[BlockWay]:
    """Yield no ways to store operands."""
    return iter(())
