"""A model's work over values of its constants."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial

from opendml.runtime.graphs.compiled_work import CompiledWork
from opendml.runtime.memory.constant_store import KeptMemory
from opendml.targets.arenas import Arenas
from opendml.targets.executable import Instance
from opendml.targets.memory import Place
from opendml.targets.streams import StreamInstances


class Prepared:
    """What the work keeps of its constants, and the instances that read it.

    Args:
        work: the compiled work.
        place: the memory of its device; None: host memory.
        kept: what it keeps of its constants (`CompiledWork.keep`).
        arenas: where instances take their arenas from; None: each has its own.
    """

    def __init__(
        self,
        work: CompiledWork,
        place: Place | None,
        kept: Sequence[KeptMemory],
        arenas: Arenas | None = None,
    ) -> None:
        self._work, self._place, self.kept, self._arenas = work, place, kept, arenas
        self.held_by: object = None
        """The lock under which the instances run. The child of a fork has another one."""

    @cached_property
    def instance(self) -> Instance:
        """Over host memory."""
        return self._work.instantiate(None, self.kept, arenas=self._arenas)

    @cached_property
    def on_streams(self) -> StreamInstances:
        """Over memory of the device."""
        make = partial(self._work.instantiate, self._place, self.kept, arenas=self._arenas)
        return StreamInstances(make)

    def again(self) -> Prepared:
        """Return the same with other instances."""
        return Prepared(self._work, self._place, self.kept, self._arenas)
