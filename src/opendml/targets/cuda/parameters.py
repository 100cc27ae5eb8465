"""The parameters of a kernel: 64-bit words, whose names the printed code and the launches share."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from opendml.targets.cuda.pattern import Pattern, Step

WORDS = (
    "items",
    "units",
    "columns",
    "full",
    "rest",
    "rows",
    "slice",
    "team",
    "counters",
    "scratch",
)
"""items: groups, or tiles of groups. units: units of a group along its reduced loops; of the whole
domain, if element-wise. columns: units along the innermost loop, where it is not reduced. full, rest:
full units in a row of an element-wise kernel, and the elements after them. rows: rows of a group, or places
of a line. slice: units of one block of a team, or words of a line that is sorted. team: blocks in a team.
counters, scratch: addresses of a team's memory."""

DIVISORS = ("inner", "tiles")
"""inner: units in a row (elements, if units run over its end; rows of tiles, if transposed). tiles: tiles
side by side."""


@dataclass(frozen=True)
class Parameters:
    """The layout of the parameters of a pattern: names of words in order. A divisor takes two words."""

    pattern: Pattern

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The plain words: addresses of the accesses, WORDS, strides in bytes of accesses along loops that
        move them, and the bits of the numbers.
        """
        accesses = self.pattern.accesses
        names = [f"base{number}" for number in range(len(accesses))]
        names += WORDS
        for number, access in enumerate(accesses):
            if access.step is Step.STRIDED:
                names.append(f"step{number}")
            names += [f"group{number}_{loop}" for loop, moves in enumerate(access.groups) if moves]
            names += [f"row{number}_{loop}" for loop, moves in enumerate(access.rows) if moves]
        names += [f"number{index}" for index in range(self.pattern.numbers)]
        return tuple(names)

    @cached_property
    def divisors(self) -> tuple[str, ...]:
        """DIVISORS, and the counts of the loops."""
        loops = [f"group_count{loop}" for loop in range(self.pattern.group_loops)]
        loops += [f"row_count{loop}" for loop in range(self.pattern.row_loops)]
        return (*DIVISORS, *loops)

    def declaration(self) -> str:
        """The C++ structure."""
        lines = [f"    long long {name};" for name in self.words]
        lines += [f"    Divisor {name};" for name in self.divisors]
        lines.append("    double share;  // one over the elements of a group")
        return "\n".join(["struct Parameters {", *lines, "};"])

    def pack(self, values: Mapping[str, int], share: float = 1.0) -> bytes:
        """The structure's bytes; words that are not given are zero, divisors one."""
        words = [values.get(name, 0) for name in self.words]
        content = struct.pack(f"<{len(words)}q", *words)
        for name in self.divisors:
            count = values.get(name, 1)
            content += struct.pack("<qQ", count, magic(count))
        return content + struct.pack("<d", share)


def magic(count: int) -> int:
    """The numbers, 32 bits each, that make a division by `count` a multiplication: ceil(2^s / count) and s.

    Dividends are below 2^31.
    """
    if count >= 2**31:
        return 0
    shift = 31 + (count - 1).bit_length()
    multiplier: int = -(-(2**shift) // count)
    return multiplier | shift << 32
