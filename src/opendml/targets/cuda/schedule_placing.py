"""Decides how kernels that place along lines are launched."""

from __future__ import annotations

import math
from dataclasses import replace

from opendml.compiler.kernel import Kernel
from opendml.compiler.loops import line_nest
from opendml.program.node import PLACINGS, Operation
from opendml.targets.cuda.launch import Launch, Nest
from opendml.targets.cuda.machine import Machine
from opendml.targets.cuda.parameters import Words
from opendml.targets.cuda.pattern import Mode, Pattern

_THREADS = 256
"""Threads of a block that scatters."""
_PANEL = 512
"""Lines of a panel, where they are a multiple of it."""
_LEAST_TILE = 64
_MOST_TILE = 2048
"""Words that a block sorts in shared memory."""
_MOST_THREADS = 512
"""Threads of a block that sorts: of a small tile, one for each pair of words."""
_BLOCKS = 2
"""Blocks that sort on a multiprocessor, where they meet."""


def schedule_placing(kernel: Kernel, machine: Machine) -> Launch | None:
    """The launch of a kernel that places along lines; None: it does not."""
    placed = kernel.values[0]
    if placed.operation not in PLACINGS:
        return None
    assert isinstance(placed.attribute, tuple)
    loops = line_nest(kernel)
    nest = Nest(kernel, loops.groups, loops.rows, loops.inner, True)
    count = placed.attribute[-1]
    return _top(nest, count, machine) if placed.operation is Operation.TOP else _scatter(nest, count)


def _scatter(nest: Nest, count: int) -> Launch:
    elements = nest.group_count * nest.row_count * nest.inner.count
    constants = {"THREADS": _THREADS, "ACROSS": int(_lies_across(nest))}
    pattern = _pattern(Mode.SCATTER, nest, elements, constants)
    units = nest.row_count * nest.inner.count
    lines = nest.group_count
    panel = lines if lines % _PANEL else _PANEL
    words = Words(items=lines, units=units, inner=nest.inner.count, rows=count, columns=panel)
    return Launch(pattern, -(-elements // _THREADS), _THREADS, nest.given() | words.named())


def _lies_across(nest: Nest) -> bool:
    """Whether more operands are contiguous from line to line than along them."""

    def contiguous(strides: tuple[int, ...]) -> int:
        loads = zip(strides, nest.kernel.loads, strict=False)
        return sum(stride == load.type.bytes for stride, load in loads if load.buffer is not None)

    return bool(nest.groups) and contiguous(nest.groups[-1].strides) > contiguous(nest.inner.strides)


def _top(nest: Nest, count: int, machine: Machine) -> Launch:
    length, lines = nest.inner.count, nest.group_count
    whole = max(_LEAST_TILE, 1 << (length - 1).bit_length())
    tile = min(whole, _MOST_TILE)
    threads = min(tile // 2, _MOST_THREADS)
    is_narrow = length <= tile or count <= tile // 2
    tiles = -(-length // tile)
    constants = {"THREADS": threads, "BLOCKS": _BLOCKS, "TILE": tile, "NARROW_TOP": int(is_narrow)}
    pattern = _pattern(Mode.TOP, nest, lines * max(tiles, 2 * whole), constants)
    grid = lines if tiles == 1 else min(machine.multiprocessors * _BLOCKS, lines * tiles)
    line_words = tiles * count if is_narrow else whole
    words = Words(items=lines, units=length, rows=count, slice=line_words, team=grid, inner=length)
    launch = Launch(pattern, grid, threads, nest.given() | words.named())
    if tiles == 1:
        return launch
    word_bytes = 2 * nest.kernel.values[0].operands[0].type.bytes
    # In rounds, from one half to the other.
    scratch_bytes = lines * line_words * word_bytes * (2 if is_narrow else 1)
    return replace(launch, cooperative=True, counters_bytes=8, scratch_bytes=scratch_bytes)


def _pattern(mode: Mode, nest: Nest, elements: int, constants: dict[str, int]) -> Pattern:
    wide = nest.wide(max(elements, math.prod(nest.kernel.domain)))
    values = nest.kernel.values
    return Pattern(mode, 1, False, wide, nest.loads, nest.stores, values, tuple(constants.items()))
