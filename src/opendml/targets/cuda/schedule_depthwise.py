"""Decides how depthwise convolutions with channels last are launched: how many results a thread computes.

Neighbouring threads compute neighbouring channels. The other threads of a block compute strips beside or
below each other, whose windows overlap, so that they find pixels in the L1 cache.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from operator import index

from opendml.compiler.kernel import Kernel, number_of
from opendml.compiler.loops import Loop
from opendml.compiler.sized import plain
from opendml.late_dataclass import dataclass
from opendml.program.node import Operation
from opendml.program.scalar_type import ScalarType
from opendml.targets.common.candidates import Estimate, Refusal
from opendml.targets.common.launch import loop_words, needs_64_bits
from opendml.targets.cuda.contraction_source import stored_of
from opendml.targets.cuda.costs import reading
from opendml.targets.cuda.depthwise_source import ROLES
from opendml.targets.cuda.launch import STATIC_SHARED_BYTES, CudaLaunch, check_fit
from opendml.targets.cuda.machine import CudaMachine
from opendml.targets.cuda.parameters import launch_words
from opendml.targets.cuda.pattern import CudaMode, CudaPattern
from opendml.targets.cuda.planned_launch import VECTOR_BYTES
from opendml.targets.cuda.result_units import ResultUnits, units_along
from opendml.targets.cuda.schedule_contraction import CudaProductQuery, Shape, candidate_of_form
from opendml.targets.cuda.tiled_operand import access_patterns
from opendml.targets.cuda.windows import Axis, Windows, forward_windows

_HEIGHTS, _WIDTHS = (1, 2, 4), (1, 2, 4, 7, 8, 14)
"""Lines of a thread's results, and results of a line."""
_VECTORS = (2, 4)
"""Channels of a thread. With 8 channels, no convolution of MobileNetV2 and ConvNeXt-T was faster (H100)."""
_LEAST_STRIPS, _LEAST_THREADS = 8, 128
"""The least strips and threads of a block. Strips are a multiple of 8, so blocks have whole warps. Blocks
of half as many strips took 1.05 of the time (H100)."""
_MOST_UNITS = 32
"""Units of channels of a block, at most."""
_OWN_REGISTERS = 32
"""Registers of a thread for all but sums, pixels and taps; an estimate."""
_MOST_REGISTERS = 224
"""Registers of a thread by that estimate, at most: a thread has 255."""
_REGISTERS, _RESIDENT_THREADS, _SCHEDULERS = 65536, 2048, 4
"""Registers, threads and schedulers of a multiprocessor."""
_WORD_BYTES = 4
_LEAST_UNITS = 4
"""Units of channels of a block are a multiple of this number, so that blocks of whole warps are small."""
_FEW_LINES, _LOADED = 3, 8
"""The most lines of a window whose pixels are all loaded together, and the taps that a thread loads together;
as in kernels/depthwise.cuh (UNROLLED, LOADED)."""
_PER_PRODUCT, _PER_WORD, _PER_TAP, _PER_STRIP = 2.2, 3.7, 1.9, 52
"""Cycles of a scheduler for each product, each 4 bytes of pixels, each tap of a line, and each strip.

These and the next figures are fitted to the times of 400 choices for the convolutions of MobileNetV2 and
ConvNeXt-T in FLOAT16 and FLOAT32 on an H100. The mean error is 9 percent. The choices take 1.04 of the least
time."""
_ALONE, _LATENCY = 1.4, 120
"""Cycles of a warp alone over those of a scheduler, and cycles in which it waits for pixels."""
_FEW_WARPS = 0.7
"""Additional time to move bytes if each scheduler has one warp, over that with many."""
_FILTER_CYCLES = 2500
"""Cycles for taps that a thread loads together."""
_RESERVED_BYTES = 1024
"""Bytes of shared memory that the system takes in each block."""
_SUM = ScalarType.FLOAT32


@dataclass(frozen=True, slots=True)
class Strips:
    """A choice: a thread makes a strip of `height` x `width` results, of `vector` channels.

    A block has `units` such vectors beside each other, and some `strips` of results. A multiprocessor runs
    `resident` blocks.
    """

    vector: int
    height: int
    width: int
    units: int
    strips: int
    resident: int

    @property
    def threads(self) -> int:
        """The threads of a block."""
        return self.units * self.strips


@dataclass(frozen=True, slots=True)
class Depthwise:
    """A depthwise convolution: its loops, and the windows in which it reads images.

    Args:
        shape: the contraction.
        images: which of its operands is the images.
        channels: the loop over channels.
        windows: the windows over images.
    """

    shape: Shape
    images: int
    channels: Loop
    windows: Windows

    @classmethod
    def of(cls, shape: Shape) -> Depthwise | Refusal:
        """Return the depthwise convolution that a contraction is, or the reason why it is not one."""
        kernel, (a, b) = shape.kernel, map(stored_of, shape.contraction.operands)
        images = 0 if a.operands or shape.m > 1 else 1
        image, filters = (a, b) if images == 0 else (b, a)
        rows, columns = (shape.loops[role] for role in ("mn" if images == 0 else "nm"))
        channels = shape.loops["batch"]
        if columns or len(channels) != 1 or not shape.is_summed or shape.contraction.type is not _SUM:
            return Refusal("not a sum for each channel alone")
        if any(each.operation is not Operation.SOURCE for each in (image, filters)) or filters.operands:
            return Refusal("operands are computed, or filters guarded")
        load = number_of(image)
        if kernel.loads[load].buffer is None or kernel.loads[number_of(filters)].buffer is None:
            return Refusal("operands are counted")
        windows = forward_windows(kernel.accesses, image, rows, shape.loops["k"])
        if isinstance(windows, Refusal):
            return windows
        if channels[0].strides[load] != kernel.loads[load].type.bytes:
            return Refusal("channels are not innermost")
        return cls(shape, images, channels[0], windows)

    @property
    def _load(self) -> int:
        """The number of the load of the images."""
        return number_of(stored_of(self.shape.contraction.operands[self.images]))

    @property
    def _loops(self) -> list[Loop | None]:
        """The loops in the order of `ROLES`."""
        along, across = self.windows.axes
        return [self.windows.images.rows, across.rows, along.rows, across.along_k, along.along_k]

    @property
    def pixel_bytes(self) -> int:
        """The bytes of a channel of a pixel."""
        return self.shape.kernel.loads[self._load].type.bytes

    def units_of_results(self, vector: int) -> ResultUnits:
        """Return how accesses beside the operands move within a unit of channels."""
        around = [loop for loop in self._loops[:3] if loop]
        return units_along(self.shape.kernel, self.shape.alignments, self.channels, around, vector)

    def fits(self, vector: int) -> bool:
        """Return whether a thread may access `vector` channels together."""
        kernel, needed = self.shape.kernel, min(VECTOR_BYTES, vector * self.pixel_bytes)
        strides = [loop.strides[self._load] for loop in self._loops if loop]
        return (
            vector * self.pixel_bytes <= VECTOR_BYTES
            and self.channels.count % vector == 0
            and self.shape.alignments[self._load] % needed == 0
            and all(stride % needed == 0 for stride in strides)
            and all(
                self.channels.strides[number] == kernel.accesses[number].type.bytes
                for number in range(len(kernel.loads), len(kernel.accesses))
            )
            and self.units_of_results(vector).count == vector
        )

    def launch(self, choice: Strips, machine: CudaMachine) -> CudaLaunch:
        """Return the launch of a choice."""
        kernel, along, across = self.shape.kernel, *self.windows.axes
        check_fit(self.shape, self.fits(choice.vector))
        units = self.channels.count // choice.vector
        column_tiles = -(-units // choice.units)
        tiles_across, tiles_down = -(-along.outputs // choice.width), -(-across.outputs // choice.height)
        strips = self.windows.images.outputs * tiles_down * tiles_across
        groups = -(-strips // choice.strips)
        # As many blocks as run at once, each with as many strips as the others.
        rounds = -(-groups * column_tiles // (choice.resident * machine.multiprocessors))
        blocks = -(-groups // rounds)
        constants = {
            "THREADS": choice.threads,
            "BLOCKS": choice.resident,
            "UNITS": choice.units,
            "STRIPS": choice.strips,
            "HEIGHT": choice.height,
            "WIDTH": choice.width,
            **{f"TAPS{number}": index(axis.taps) for number, axis in enumerate((along, across))},
            **{f"STRIDE{number}": index(axis.stride) for number, axis in enumerate((along, across))},
            **{f"DILATION{number}": index(axis.dilation) for number, axis in enumerate((along, across))},
            "PIXEL_BYTES": index(along.bytes),
            "ALONG_TAPS": int(self._has_taps_together),
            "IMAGES": self.images,
            **{
                f"LOOPS_{role.upper()}": int(loop is not None)
                for role, loop in zip(ROLES, self._loops, strict=True)
            },
        }
        rows = tuple(loop for loop in self._loops if loop)
        results = self.units_of_results(choice.vector)
        patterns = results.moved(access_patterns(kernel, (self.channels,), rows, ()))
        loads, wide = (
            len(kernel.loads),
            needs_64_bits((self.channels, *rows), strips + blocks * choice.strips),
        )
        pattern = CudaPattern(
            CudaMode.DEPTHWISE,
            tuple(patterns[:loads]),
            tuple(patterns[loads:]),
            kernel.values,
            choice.vector,
            False,
            wide,
            tuple(constants.items()),
        )
        words = launch_words(
            pattern.mode,
            items=strips,
            units=units,
            step=blocks * choice.strips,
            before=self.windows.offset,
            size0=along.size,
            size1=across.size,
            begin0=-along.before,
            begin1=-across.before,
            line_bytes=across.bytes,
            pixels0=along.outputs,
            pixels1=across.outputs,
            tiles_across=tiles_across,
            tiles_down=tiles_down,
            column_tiles=column_tiles,
        )
        words |= loop_words(kernel, (self.channels,), rows) | results.lane_steps()
        return CudaLaunch(pattern, blocks * column_tiles, choice.threads, words)

    @property
    def _has_taps_together(self) -> bool:
        """Return whether neighbouring taps of a filter are nearer to each other than channels are."""
        filters = number_of(stored_of(self.shape.contraction.operands[1 - self.images]))
        taps = self.windows.axes[0].along_k or self.windows.axes[1].along_k
        return taps is None or abs(taps.strides[filters]) < abs(self.channels.strides[filters])

    def estimates(self, machine: CudaMachine) -> Iterator[Estimate[Strips]]:
        """Yield the estimates of all choices."""
        for vector, height, width in product(filter(self.fits, _VECTORS), _HEIGHTS, _WIDTHS):
            along, across = self.windows.axes
            if (width > 1 and width >= 2 * along.outputs) or (height > 1 and height >= 2 * across.outputs):
                continue
            units = self.channels.count // vector
            beside = _units_of_block(units)
            strips = _LEAST_STRIPS * -(-_LEAST_THREADS // (_LEAST_STRIPS * beside))
            found = self._estimate(vector, height, width, beside, strips, machine)
            if found is not None:
                yield found

    def _estimate(
        self, vector: int, height: int, width: int, beside: int, strips: int, machine: CudaMachine
    ) -> Estimate[Strips] | None:
        """Return the estimate of a choice; None if a block cannot hold its filters, or a thread its sums."""
        along, across = self.windows.axes
        span, lines = _extent(along, width), _extent(across, height)
        is_half, threads = self.pixel_bytes < _WORD_BYTES, beside * strips
        taps, pixels = across.taps * along.taps, lines * span * vector
        words = span * vector * self.pixel_bytes // _WORD_BYTES
        instructions = _PER_PRODUCT * taps * height * width * vector + _PER_WORD * lines * words
        instructions += is_half * pixels + _PER_TAP * taps * height + _PER_STRIP
        together = lines if across.taps <= _FEW_LINES else 1
        registers = _OWN_REGISTERS + (height * width + 1) * vector + together * words
        registers += is_half * span * vector
        shared = taps * (beside + 1) * vector * _WORD_BYTES
        resident = min(_REGISTERS // (threads * registers), _RESIDENT_THREADS // threads)
        resident = min(resident, machine.shared_bytes // (shared + _RESERVED_BYTES))
        if registers > _MOST_REGISTERS or shared > STATIC_SHARED_BYTES or resident < 1:
            return None
        all_strips = self.windows.images.outputs * -(-across.outputs // height) * -(-along.outputs // width)
        blocks = -(-all_strips // strips) * -(-self.channels.count // (vector * beside))
        rounds = -(-blocks // (resident * machine.cores))
        warps = min(resident, -(-blocks // machine.cores)) * -(-threads // machine.lanes) / _SCHEDULERS
        alone = _ALONE * instructions + lines / together * _LATENCY
        memory = reading(machine, self._moved_bytes) * (1 + _FEW_WARPS / warps)
        terms = {
            "filters": -(-taps * beside * vector // (threads * _LOADED)) * _FILTER_CYCLES,
            "strips and memory": math.hypot(rounds * max(instructions * warps, alone), memory),
        }
        work = float(all_strips * self.channels.count // vector * instructions)
        return Estimate(Strips(vector, height, width, beside, strips, resident), terms, work)

    @property
    def _moved_bytes(self) -> int:
        """The bytes of images and results."""
        kernel = self.shape.kernel
        results = self.windows.images.outputs * math.prod(axis.outputs for axis in self.windows.axes)
        pixels = self.windows.images.outputs * math.prod(axis.size for axis in self.windows.axes)
        stored = sum(store.type.bytes for store in kernel.stores)
        return int(self.channels.count * (pixels * self.pixel_bytes + results * stored))


def _units_of_block(units: int) -> int:
    """Return the units of channels of a block: the largest number that leaves the fewest threads idle."""
    return min(
        range(_LEAST_UNITS, _MOST_UNITS + 1, _LEAST_UNITS), key=lambda each: (-(-units // each) * each, -each)
    )


def _extent(axis: Axis, results: int) -> int:
    """Return the pixels along an axis that the windows of neighbouring results see."""
    return (results - 1) * axis.stride + (axis.taps - 1) * axis.dilation + 1


DEPTHWISE = candidate_of_form(
    "strips of each channel", Depthwise.of, "channels are not aligned, or no block can hold the filters"
)
"""The way to compute depthwise convolutions with channels last."""


def is_depthwise(kernel: Kernel, machine: CudaMachine) -> bool:
    """Return whether a contraction is a depthwise convolution that has a launch of this kind."""
    hints = plain(kernel)
    query = CudaProductQuery(hints, machine, [VECTOR_BYTES] * len(hints.accesses))
    return isinstance(DEPTHWISE.estimate(query), Estimate)
