"""Launches as plans have them: machine code and numbers, some of which may be traced.

They need neither kernels nor patterns, so a process that finds its plans on disk imports no compiler.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

from opendml.late_dataclass import dataclass
from opendml.targets.cuda.cubins import Cubin
from opendml.targets.cuda.tensor_map import MAP_ALIGNMENT, MAP_BYTES, TensorMap, map_from_json

VECTOR_BYTES = 16
"""Bytes of the widest access of a thread."""
_WORD_BYTES = 8


def alignment_of(address: int) -> int:
    """Return the greatest power of two up to VECTOR_BYTES that divides an address."""
    return min(address & -address, VECTOR_BYTES) if address else VECTOR_BYTES


class ParameterLayout(NamedTuple):
    """The places of a kernel's parameters. Words have 64 bits, and a divisor takes two.

    Attributes:
        words: the number of plain words, which are first and begin with the addresses of the accesses.
        divisors: the number of divisors, which follow.
        share: the word by which one is divided behind the divisors; None: there is no such number.
        maps: the number of tensor maps, which are last.
        lets_next_begin, counters, scratch: words that instances set; None: there is no such word.
    """

    words: int
    divisors: int
    share: int | None
    maps: int
    lets_next_begin: int
    counters: int | None
    scratch: int | None

    def map_offset(self, number: int) -> int:
        """Return the first byte of a tensor map."""
        before = _WORD_BYTES * (self.words + 2 * self.divisors + (self.share is not None))
        return -(-before // MAP_ALIGNMENT) * MAP_ALIGNMENT + number * MAP_BYTES

    def pack(self, numbers: Sequence[int]) -> bytes:
        """Return the bytes of the parameters for plain words and divisors. Tensor maps are left zero."""
        words, divisors = numbers[: self.words], numbers[self.words : self.words + self.divisors]
        content = struct.pack(f"<{len(words)}q", *words)
        for divisor in divisors:
            content += struct.pack("<qQ", divisor, magic(divisor))
        if self.share is not None:
            content += struct.pack("<d", 1.0 / words[self.share])
        return content.ljust(self.map_offset(self.maps), b"\0") if self.maps else content


@dataclass(frozen=True)
class PlannedLaunch:
    """A launch of one kernel, or of several of equal form beside each other.

    Args:
        cubin: its machine code.
        mode: the name of the way in which threads share the kernel's domain.
        gains_early: whether it gains from being launched before the launch before it has ended.
        alignments: those of the accesses, in bytes, for which it is made.
        block: the threads of a block.
        cooperative: whether all blocks run at once.
        kernels: the number of kernels, which have blocks beside each other along y.
        layout: the places of the parameters of a kernel.
        maps: the tensor maps, without their numbers.
        numbers: the words and divisors, the blocks, the bytes of shared memory of a block, of counters and of
            scratch memory, and the numbers of the maps.
    """

    cubin: Cubin
    mode: str
    gains_early: bool
    alignments: tuple[int, ...]
    block: int
    cooperative: bool
    kernels: int
    layout: ParameterLayout
    maps: tuple[TensorMap, ...]
    numbers: tuple[int, ...]

    @property
    def identity(self) -> Hashable:
        """A key that is equal for launches that are equal for all sizes."""
        # Equal expressions are one object. Comparing them would guard their values.
        numbers = [each if type(each) is int else (id(each),) for each in self.numbers]
        forms = [each.to_json() for each in self.maps]
        return self.cubin.key, self.alignments, self.block, self.cooperative, repr(forms), *numbers

    def to_json(self, number_of: Callable[[str], int], written: Callable[[Any], Any]) -> list[Any]:
        """Return the launch as JSON.

        Args:
            number_of: returns the number of the key of its machine code.
            written: makes JSON of numbers.
        """
        return [
            number_of(self.cubin.key),
            self.mode,
            self.gains_early,
            self.alignments,
            self.block,
            self.cooperative,
            self.kernels,
            self.layout,
            [each.to_json() for each in self.maps],
            [each if type(each) is int else written(each) for each in self.numbers],
        ]


def launch_from_json(
    data: Sequence[Any], cubins: Sequence[Cubin], read: Callable[[Any], Any]
) -> PlannedLaunch:
    """Return the launch that `PlannedLaunch.to_json` has made JSON of.

    Args:
        data: the JSON.
        cubins: the machine code, by numbers.
        read: makes numbers of JSON.

    Raises:
        LookupError, TypeError, ValueError: it is damaged.
    """
    number, mode, gains_early, alignments, block, cooperative, kernels, layout, maps, numbers = data
    return PlannedLaunch(
        cubins[number],
        mode,
        gains_early,
        tuple(alignments),
        block,
        cooperative,
        kernels,
        ParameterLayout(*layout),
        tuple(map(map_from_json, maps)),
        tuple([each if type(each) is int else read(each) for each in numbers]),
    )


def magic(count: int) -> int:
    """Return the numbers that make a division by `count` a multiplication: ceil(2^s / count) and s.

    They have 32 bits each. Dividends are below 2^31.
    """
    if count >= 2**31:
        return 0
    shift = 31 + (count - 1).bit_length()
    multiplier: int = -(-(2**shift) // count)
    return multiplier | shift << 32
