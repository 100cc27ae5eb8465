"""A model's work over values of its constants."""

from __future__ import annotations

from functools import cached_property, partial

from opendml.runtime.graphs.compiled_work import CompiledWork
from opendml.runtime.memory.ranges import Range
from opendml.targets.executable import Instance
from opendml.targets.memory import Place
from opendml.targets.streams import StreamInstances


class Prepared:
    """What the work keeps of its constants, and the instances that read it.

    Args:
        work: the compiled work.
        place: the memory of its device; None: host memory.
        persistent: what it keeps of its constants (`CompiledWork.prepare`).
    """

    def __init__(self, work: CompiledWork, place: Place | None, persistent: Range) -> None:
        self._work, self._place, self.persistent = work, place, persistent
        self.held_by: object = None
        """The lock under which the instances run. The child of a fork has another one."""

    @cached_property
    def instance(self) -> Instance:
        """Over host memory."""
        return self._work.instantiate(None, self.persistent)

    @cached_property
    def on_streams(self) -> StreamInstances:
        """Over memory of the device."""
        return StreamInstances(partial(self._work.instantiate, self._place, self.persistent))

    def again(self) -> Prepared:
        """Return the same with other instances."""
        return Prepared(self._work, self._place, self.persistent)

    def free_temporaries(self) -> None:
        """Free what instances hold beside their tensors; the next run takes new memory. A run that a handler
        of a signal has interrupted keeps its own."""
        for name in ("instance", "on_streams"):
            self.__dict__.pop(name, None)
