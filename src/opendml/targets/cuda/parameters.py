"""The parameters of a kernel: 64-bit words, whose names the printed code and the launches share."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property

from opendml.targets.common.pattern import Step
from opendml.targets.cuda.pattern import WARPGROUP_MODES, CudaMode, CudaPattern
from opendml.targets.cuda.tensor_map import MAP_ALIGNMENT, MAP_BYTES


@dataclass(frozen=True, slots=True)
class Words:
    """The parameters that a schedule chooses, and two addresses; all positions in the code follow from it."""

    items: int = 0
    """Groups, or tiles of groups."""
    units: int = 0
    """Units of a group along its reduced loops; of the whole domain, if element-wise; products of a sum."""
    columns: int = 0
    """Units along the innermost loop, where it is not reduced."""
    full: int = 0
    """Full units in a row of an element-wise kernel; tiles side by side of a contraction."""
    rest: int = 0
    """The elements after the full units of a row."""
    rows: int = 0
    """Rows of a group, or of a contraction's results; places of a line."""
    slice: int = 0
    """Units of one block of a team; words of a line that is sorted, or of a warp that finds positions."""
    team: int = 0
    """Blocks in a team."""
    counters: int = 0
    """The address of a team's counters; the executable sets it."""
    scratch: int = 0
    """The address of a team's further memory; the executable sets it."""
    inner: int = 1
    """A divisor: units in a row (elements, if units run over its end; rows of tiles, if transposed; tiles of
    a matrix, of a contraction)."""
    tiles: int = 1
    """A divisor: tiles side by side (below each other, of a contraction)."""

    def named(self) -> dict[str, int]:
        """The values by their names."""
        return {name: getattr(self, name) for name in (*WORDS, *DIVISORS)}


DIVISORS = ("inner", "tiles")
"""The words by which the code divides."""
WORDS = tuple(each.name for each in fields(Words) if each.name not in DIVISORS)
"""The other ones, in their order."""
WINDOW_WORDS = (
    *("begin0", "begin1", "stride0", "stride1"),
    *("dilation0", "dilation1"),
)
"""The words of convolutions, along both axes of an image, the innermost first: where the first window begins,
the strides of windows, and the dilations of taps."""
WINDOW_DIVISORS = ("pixels0", "pixels1", "taps0", "channels")
"""The divisors of convolutions: results along both axes, taps along the innermost axis, and the padded
channels of a tap."""


_MAPS = {
    **dict.fromkeys(WARPGROUP_MODES, ("a_map", "b_map")),
    CudaMode.WGMMA_CHAIN: ("q_map", "k_map", "v_map"),
}
"""The names of tensor maps, by mode."""


@dataclass(frozen=True)
class ParameterStruct:
    """The layout of the parameters of a pattern: names of words in order. A divisor takes two words."""

    pattern: CudaPattern

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Return the plain words: addresses of the accesses, WORDS, strides in bytes of accesses along loops
        that move them, of those that move alike once, and the bits of the numbers."""
        accesses = self.pattern.accesses
        names = [f"base{number}" for number in range(len(accesses))]
        names += WORDS
        names += WINDOW_WORDS if self._has_windows else ()
        for number, access in enumerate(accesses):
            if self.pattern.offset(number) != number:
                continue
            if access.step is Step.STRIDED:
                names.append(f"step{number}")
            names += [f"group{number}_{loop}" for loop, moves in enumerate(access.groups) if moves]
            names += [f"row{number}_{loop}" for loop, moves in enumerate(access.rows) if moves]
        names += [f"number{index}" for index in range(self.pattern.numbers)]
        return tuple(names)

    @cached_property
    def divisors(self) -> tuple[str, ...]:
        """Return DIVISORS, and the counts of the loops."""
        loops = [f"group_count{loop}" for loop in range(self.pattern.group_loops)]
        loops += [f"row_count{loop}" for loop in range(self.pattern.row_loops)]
        return (*DIVISORS, *loops, *(WINDOW_DIVISORS if self._has_windows else ()))

    @property
    def _has_windows(self) -> bool:
        return self.pattern.mode is CudaMode.WGMMA_WINDOWS

    @property
    def maps(self) -> tuple[str, ...]:
        """Return the tensor maps, which are last."""
        return _MAPS.get(self.pattern.mode, ())

    def map_offset(self, number: int) -> int:
        """Where a tensor map begins, in bytes."""
        before = 8 * (len(self.words) + 2 * len(self.divisors) + 1)
        return -(-before // MAP_ALIGNMENT) * MAP_ALIGNMENT + number * MAP_BYTES

    def declaration(self) -> str:
        """The C++ structure."""
        lines = [f"    long long {name};" for name in self.words]
        lines += [f"    Divisor {name};" for name in self.divisors]
        lines.append("    double share;  // one over the elements of a group")
        lines += [f"    TensorMap {name};" for name in self.maps]
        return "\n".join(["struct Parameters {", *lines, "};"])

    def pack(self, values: Mapping[str, int], share: float = 1.0) -> bytes:
        """The structure's bytes; words that are not given are zero, divisors one."""
        words = [values.get(name, 0) for name in self.words]
        content = struct.pack(f"<{len(words)}q", *words)
        for name in self.divisors:
            count = values.get(name, 1)
            content += struct.pack("<qQ", count, magic(count))
        content += struct.pack("<d", share)
        return content.ljust(self.map_offset(len(self.maps)), b"\0") if self.maps else content


def magic(count: int) -> int:
    """The numbers, 32 bits each, that make a division by `count` a multiplication: ceil(2^s / count) and s.

    Dividends are below 2^31.
    """
    if count >= 2**31:
        return 0
    shift = 31 + (count - 1).bit_length()
    multiplier: int = -(-(2**shift) // count)
    return multiplier | shift << 32
