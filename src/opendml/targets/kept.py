"""Constants that dispatches read as they are: copies in the memory that an executable keeps."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence

from opendml.compiler.memory import aligned
from opendml.program.program import Layout
from opendml.targets.executable import Instance


class KeptConstants:
    """Of a program's inputs those with the numbers `kept`, one behind the other from the byte `first` of
    persistent memory on; `end` is the byte after the last."""

    def __init__(self, layouts: Sequence[Layout], kept: Container[int], first: int) -> None:
        self._layouts = {number: layout for number, layout in enumerate(layouts) if number in kept}
        self._offsets: dict[int, int] = {}
        self.end = first
        for number, layout in self._layouts.items():
            low, high = layout.span
            self._offsets[number] = self.end - low
            self.end += aligned(high - low)

    def copy(
        self, constants: Mapping[int, int], persistent: int, copy: Callable[[int, int, int], object]
    ) -> None:
        """Copies the constants, given by the addresses of their first elements, into persistent memory.
        `copy` is given a target, a source and a size."""
        for number, layout in self._layouts.items():
            low, high = layout.span
            copy(persistent + self._offsets[number] + low, constants[number] + low, high - low)

    def bind(self, instance: Instance, persistent: int) -> None:
        """Binds the copies."""
        for number, offset in self._offsets.items():
            instance.bind(number, persistent + offset)
