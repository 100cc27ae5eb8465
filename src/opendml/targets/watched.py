"""Programs that show intermediate values. Each value is a further output, in memory of the instance.

The value is computed again for this output, so the results keep their bits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from opendml.program.program import Layout
from opendml.targets.arenas import Arenas
from opendml.targets.executable import Executable, Instance
from opendml.targets.kept import Kept
from opendml.targets.memory import OwnMemory

Array = np.ndarray[Any, np.dtype[Any]]


class WatchedExecutable:
    """A program whose last outputs are shown instead of returned.

    Args:
        executable: the program.
        first: the number of the first output that is shown. Shown outputs are packed tensors.
        layouts: the layouts of these outputs.
        shows: functions that get them as arrays after each dispatch.
        require_idle: is called before each dispatch, and raises if the thread is within one of `shows`.
        allocate: makes memory where the program runs.
    """

    def __init__(
        self,
        executable: Executable,
        first: int,
        layouts: Sequence[Layout],
        shows: Sequence[Callable[[Array], object]],
        require_idle: Callable[[], object],
        allocate: Callable[[int], OwnMemory],
    ) -> None:
        self._executable, self.first, self.layouts, self.shows = executable, first, layouts, shows
        self.require_idle, self.allocate = require_idle, allocate

    @property
    def temporary_bytes(self) -> int:
        """The arena of each instance, without what it shows."""
        return self._executable.temporary_bytes

    @property
    def kept(self) -> Sequence[Kept]:
        """Memory made of constants that dispatches read."""
        return self._executable.kept

    def constants_of(self, step: int) -> Collection[int]:
        """Return the numbers of the constants that a step of the initialization reads."""
        return self._executable.constants_of(step)

    def initialize(self, step: int, constants: Mapping[int, int], addresses: Mapping[int, int]) -> None:
        """Run a step of the initialization."""
        self._executable.initialize(step, constants, addresses)

    def instantiate(
        self, arena: int | None = None, kept: Sequence[int] = (), arenas: Arenas | None = None
    ) -> WatchedInstance:
        """Return a new instance, with nothing bound but its constants and what it shows."""
        return WatchedInstance(self, self._executable.instantiate(arena, kept, arenas))


class WatchedInstance:
    """A program with its buffers."""

    def __init__(self, executable: WatchedExecutable, instance: Instance) -> None:
        self._instance, self._executable = instance, executable
        self._shown = [executable.allocate(_bytes(layout)) for layout in executable.layouts]
        for number, memory in enumerate(self._shown):
            instance.bind(executable.first + number, memory.address)

    def bind(self, buffer: int, address: int) -> None:
        """Set the address of a tensor's first element: inputs first, then outputs."""
        self._instance.bind(buffer, address)

    def keep(self, memory: object) -> None:
        """Keep an object alive as long as this one."""
        self._instance.keep(memory)

    def dispatch(self) -> None:
        """Run the program, then show the values."""
        self._executable.require_idle()
        self._instance.dispatch()
        self._show()

    @property
    def enqueue(self) -> Callable[[int], object] | None:
        """Adds the program to a stream, waits for it, and shows the values; None where it runs over host
        memory."""
        add = self._instance.enqueue
        return None if add is None else partial(self._enqueue, add)

    def _enqueue(self, add: Callable[[int], object], stream: int) -> None:
        self._executable.require_idle()
        add(stream)
        self._show()

    def _show(self) -> None:
        executable = self._executable
        for memory, layout, show in zip(self._shown, executable.layouts, executable.shows, strict=True):
            values = np.empty(layout.sizes, layout.type.numpy)
            memory.read(values.ctypes.data, values.nbytes)
            show(values)


def _bytes(layout: Layout) -> int:
    return layout.element_count * layout.type.bytes
