"""Decides how sums of few products of FLOAT16 or BFLOAT16 are launched.

They are products with a short k, and convolutions of few channels with channels last.

Memory bounds their time. Tiles of warpgroups pad k to 64 and pass rows and results through shared memory:
they took 1.1 to 1.4 of the time (batch 32, MobileNetV2, H100).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from operator import index

from opendml.compiler.kernel import number_of
from opendml.compiler.loops import Loop
from opendml.late_dataclass import dataclass
from opendml.program.node import Node, Operation
from opendml.program.scalar_type import ScalarType
from opendml.program.sizes import least
from opendml.targets.common.candidates import Estimate, Refusal
from opendml.targets.common.guards import guards_of, loads_of
from opendml.targets.common.launch import loop_words
from opendml.targets.cuda.costs import reading
from opendml.targets.cuda.launch import CudaLaunch, check_fit, tiled_pattern
from opendml.targets.cuda.machine import CudaMachine
from opendml.targets.cuda.parameters import launch_words
from opendml.targets.cuda.pattern import CudaMode
from opendml.targets.cuda.result_units import ResultUnits, units_along
from opendml.targets.cuda.schedule_contraction import Shape, candidate_of_form
from opendml.targets.cuda.short_sums_source import ROLES, UNIT
from opendml.targets.cuda.tiled_operand import access_patterns
from opendml.targets.cuda.windows import Windows, forward_windows

_ROWS, _CHUNK, _DEPTH = 16, 32, 16
"""Rows and products of an instruction of tensor cores, and columns that a warp computes at a time."""
_THREADS, _WARPS = 256, 8
"""Threads and warps of a block."""
_MOST_COLUMNS = 192
"""Most columns; more were not timed. The estimate leaves out that blocks load the filters of their columns.
In packed convolutions of 1x1 the columns are pixels, all of which a few blocks would load."""
_MOST_STEPS = 3
"""Most steps of 16 products of a sum. With four, 64 to 64 channels of 56x56 took 1.14 of the time of tiles of
warpgroups (batch 32, H100), and with more up to 1.7."""
_RESIDENT, _SCHEDULERS = 3, 4
"""Blocks and schedulers of a multiprocessor. Threads have at most 80 registers."""
_PARTS = 1, 2, 4, 8
"""Parts of the columns, of which a block has one."""
_SHARED_BYTES = 48 * 1024
"""Shared memory of the filters of a block, at most."""
_BEGIN_CYCLES, _ITEM_CYCLES, _PIECE_CYCLES, _CHUNK_CYCLES, _STEP_CYCLES = 2400, 80, 12, 60, 10
"""Cycles before the first rows are loaded. Cycles of a scheduler for each 16 rows, each load of these, each
32 columns, and each step of those. These and the next figures are fitted to 12 convolutions on an H100."""
_LATENCY = 800
"""Cycles in which a warp waits for its rows."""
_FEW_WARPS = 2
"""Additional time to move bytes if a multiprocessor has one warp, over that with many."""


@dataclass(frozen=True, slots=True)
class ShortSums:
    """A product of a matrix, or of the windows of images, with filters. Choices are the columns of a block.

    Args:
        shape: the contraction.
        images: which of its operands is the matrix or the images.
        windows: the windows over the images. Those of a matrix are its rows.
        columns: the loop over the filters, along which results are contiguous.
        channels: the loop along which taps of images are contiguous.
        unit: neighbouring channels that are loaded together.
    """

    shape: Shape
    images: int
    windows: Windows
    columns: Loop
    channels: Loop
    unit: int

    @classmethod
    def of(cls, shape: Shape) -> ShortSums | Refusal:
        """Return the product that a contraction is, or the reason why it is not one."""
        if shape.mode is not CudaMode.MMA or not shape.is_summed or shape.loops["batch"]:
            return Refusal("not a plain product of FLOAT16 or BFLOAT16")
        first, m, n = len(shape.kernel.loads), shape.loops["m"], shape.loops["n"]
        for images, (rows, columns) in enumerate(((m, n), (n, m))):
            if len(columns) == 1 and rows and _is_contiguous(shape, first, columns[0]):
                return cls._of(shape, images, rows, columns[0])
        return Refusal("results are not contiguous along one loop over columns")

    @classmethod
    def _of(cls, shape: Shape, images: int, rows: Sequence[Loop], columns: Loop) -> ShortSums | Refusal:
        kernel, image, filters = shape.kernel, shape.operands[images], shape.operands[1 - images]
        if any(each.operation is not Operation.SOURCE for each in (image, filters)) or filters.operands:
            return Refusal("operands are computed, or filters guarded")
        load, guarding = number_of(image), loads_of(image.operands)
        if set(guards_of(kernel.values)) - {load} or any(
            kernel.loads[each].buffer is None for each in (load, number_of(filters))
        ):
            return Refusal("something else is guarded, or operands are counted")
        channels = [loop for loop in shape.loops["k"] if _is_contiguous(shape, load, loop)]
        if len(channels) != 1 or any(channels[0].strides[each] for each in guarding):
            return Refusal("channels are not contiguous")
        taps = [loop for loop in shape.loops["k"] if loop is not channels[0]]
        windows = forward_windows(shape.accesses, image, rows, taps)
        if isinstance(windows, Refusal):
            return windows
        found = cls(shape, images, windows, columns, channels[0], _unit(shape, load, channels[0], rows, taps))
        if found.steps > _MOST_STEPS:
            return Refusal(f"sums of {shape.k} products, of which tensor cores take {_DEPTH} at a time")
        if columns.count > _MOST_COLUMNS:
            return Refusal(f"{columns.count} columns; at most {_MOST_COLUMNS}")
        if columns.count % UNIT or found.units_of_results().count != UNIT:
            return Refusal(f"{columns.count} columns, or what is beside their sums, are not in units")
        return found

    @property
    def _image(self) -> Node:
        return self.shape.operands[self.images]

    @property
    def _filters(self) -> int:
        """The number of the load of the filters."""
        return number_of(self.shape.operands[1 - self.images])

    @property
    def steps(self) -> int:
        """The instructions along k. Those of units of 8 are in pairs."""
        together = 2 if self.unit == UNIT else 1
        return together * -(-self.shape.k // (together * _DEPTH))

    @property
    def _rows(self) -> list[Loop | None]:
        along, across = self.windows.axes
        return [self.windows.images.rows, across.rows, along.rows]

    @property
    def _k(self) -> list[Loop]:
        """The loops along k in the order of taps: the channels are innermost."""
        along, across = self.windows.axes
        return [loop for loop in (across.along_k, along.along_k, self.channels) if loop]

    @property
    def _m(self) -> int:
        return math.prod(loop.count for loop in self._rows if loop)

    def units_of_results(self) -> ResultUnits:
        """Return how accesses beside the operands move within a unit of results."""
        around = [*(loop for loop in self._rows if loop), self.columns]
        return units_along(self.shape.kernel, self.shape.alignments, self.columns, around, UNIT)

    def _filters_are_together(self) -> bool:
        """Return whether four neighbouring channels of filters are loaded together."""
        number, bytes = self._filters, 4 * ScalarType.FLOAT16.bytes
        others = [loop.strides[number] for loop in (*self._k[:-1], self.columns)]
        return (
            _is_contiguous(self.shape, number, self.channels)
            and self.channels.count % 4 == 0
            and all(each % bytes == 0 for each in (self.shape.alignments[number], *others))
        )

    def launch(self, choice: int, machine: CudaMachine) -> CudaLaunch:
        """Return the launch of a choice."""
        kernel, along, across = self.shape.kernel, *self.windows.axes
        n, items = self.columns.count, -(-self._m // _ROWS)
        check_fit(self.shape, n % UNIT == 0)
        column_tiles = -(-n // choice)
        blocks = least(-(-items // _WARPS), max(1, _RESIDENT * machine.multiprocessors // column_tiles))
        rows = tuple(loop for loop in (*self._rows, self.columns, *self._k) if loop)
        counts = [*(int(loop is not None) for loop in self._rows), 1, len(self._k)]
        depth = _DEPTH * (2 if self.unit == UNIT else 1)
        constants = {
            "THREADS": _THREADS,
            "BLOCKS": _RESIDENT,
            "STEPS": index(self.steps),
            "UNIT": self.unit,
            "IMAGES": self.images,
            "GUARDED": int(bool(self._image.operands)),
            "PADDED": int(self.shape.k % depth != 0),
            "FILTERS_TOGETHER": int(self._filters_are_together()),
            **{f"LOOPS_{role.upper()}": count for role, count in zip(ROLES, counts, strict=True)},
        }
        results = self.units_of_results()
        patterns = results.moved(access_patterns(kernel, (), rows, ()))
        greatest = (items + blocks * _WARPS) * _ROWS
        words = launch_words(
            CudaMode.SHORT_SUMS,
            items=items,
            m=self._m,
            n=n,
            k=self.shape.k,
            step=blocks * _WARPS,
            block_columns=choice,
            before=self.windows.offset,
            pixel_bytes=along.bytes,
            line_bytes=across.bytes,
            size0=along.size,
            size1=across.size,
            begin0=-along.before,
            begin1=-across.before,
            stride0=along.stride,
            stride1=across.stride,
            dilation0=along.dilation,
            dilation1=across.dilation,
            pixels0=along.outputs,
            pixels1=across.outputs,
            taps0=along.taps,
            own_channels=self.channels.count,
            column_tiles=column_tiles,
        )
        return CudaLaunch(
            tiled_pattern(CudaMode.SHORT_SUMS, kernel, patterns, rows, greatest, constants),
            blocks * column_tiles,
            _THREADS,
            loop_words(kernel, (), rows) | words | results.lane_steps(),
            shared_bytes=self._filter_bytes(choice // _CHUNK),
        )

    def estimates(self, machine: CudaMachine) -> Iterator[Estimate[int]]:
        """Yield the estimates of all choices: of all columns in a block, or of a part of them."""
        chunks, tiles = -(-self.columns.count // _CHUNK), -(-self._m // _ROWS)
        for own in sorted({-(-chunks // parts) for parts in _PARTS}, reverse=True):
            if self._filter_bytes(own) > _SHARED_BYTES:
                continue
            parts = -(-chunks // own)
            places = max(1, _RESIDENT * machine.cores // parts) * _WARPS
            warps = min(_RESIDENT * _WARPS, -(-tiles * parts // machine.cores))
            rounds = -(-tiles // places)
            each = _ITEM_CYCLES + _PIECE_CYCLES * 8 * self.steps / self.unit
            each += own * (_CHUNK_CYCLES + _STEP_CYCLES * self.steps)
            memory = reading(machine, self._moved_bytes) * (1 + _FEW_WARPS / warps)
            issued = rounds * max(each * warps / _SCHEDULERS, _LATENCY + each)
            terms = {"begin": _BEGIN_CYCLES, "rows and memory": math.hypot(issued, memory)}
            yield Estimate(own * _CHUNK, terms, float(parts))

    def _filter_bytes(self, chunks: int) -> int:
        """Return the bytes of shared memory of the filters of some columns."""
        return chunks * _CHUNK * self.steps * _DEPTH * ScalarType.FLOAT16.bytes

    @property
    def _moved_bytes(self) -> int:
        """The bytes of images and results."""
        pixels = self.windows.images.outputs * math.prod(axis.size for axis in self.windows.axes)
        stored = sum(store.type.bytes for store in self.shape.kernel.stores)
        return int(pixels * self.channels.count * 2 + self._m * self.columns.count * stored)


def _is_contiguous(shape: Shape, number: int, loop: Loop) -> bool:
    return loop.strides[number] == shape.accesses[number].type.bytes


def _unit(shape: Shape, load: int, channels: Loop, rows: Sequence[Loop], taps: Sequence[Loop]) -> int:
    """Return how many neighbouring channels are loaded together."""
    strides = [shape.alignments[load], *(loop.strides[load] for loop in (*rows, *taps))]
    for unit in (UNIT, 4, 2):
        together = channels.count % unit == 0 and all(each % (2 * unit) == 0 for each in strides)
        if together and (unit < UNIT or shape.k > _DEPTH):
            return unit
    return 1


SHORT_SUMS = candidate_of_form("sums of few products", ShortSums.of, "no block can hold the filters")
"""The way to compute products with a short k, and convolutions of few channels with channels last."""
