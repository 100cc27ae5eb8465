"""Ranges of bytes, and which of them may overlap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from opendml.errors import InvalidArgument
from opendml.program.program import Layout
from opendml.targets.memory import Place


@dataclass(frozen=True, slots=True)
class MemoryRange:
    """Some bytes, and the object that keeps them alive. `place` is where they are, None for host memory."""

    address: int
    size: int
    owner: Any
    place: Place | None = None

    def overlaps(self, other: MemoryRange) -> bool:
        """Return whether the two share a byte."""
        return (
            self.place == other.place
            and self.address < other.address + other.size
            and other.address < self.address + self.size
        )


def check_overlap(
    owner: str,
    inputs: Sequence[tuple[str, MemoryRange, Layout] | None],
    outputs: Sequence[tuple[str, MemoryRange, Layout]],
    in_place: frozenset[str],
    shares: Callable[[MemoryRange, MemoryRange], bool] = MemoryRange.overlaps,
) -> None:
    """Reject bindings of `owner` that overlap where DirectML does not allow it.

    An output may lie exactly on an input named in `in_place` that has the same layout; no other output may
    share memory with an input or with another output, as `shares` tells.

    Raises:
        InvalidArgument: two bindings overlap.
    """
    for index, (name, output, layout) in enumerate(outputs):
        for other_name, other, _ in outputs[:index]:
            if shares(output, other):
                raise InvalidArgument(f"{owner}.{name}: overlaps {other_name}; outputs must not share memory")
        for item in inputs:
            if item is None or not shares(output, item[1]):
                continue
            input_name, input, input_layout = item
            if input_name not in in_place:
                allowed = (
                    f"only {', '.join(sorted(in_place))} may be"
                    if in_place
                    else "this operator does not run in place"
                )
                raise InvalidArgument(f"{owner}.{name}: shares memory with {input_name}; {allowed}")
            if output.address != input.address or layout != input_layout:
                raise InvalidArgument(
                    f"{owner}.{name}: overlaps {input_name} in part; "
                    "in place means the same memory, laid out alike"
                )
