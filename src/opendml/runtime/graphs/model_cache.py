"""Decides which models for several sizes stay in memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Protocol

from opendml.errors import InvalidArgument
from opendml.host_memory import host_memory
from opendml.locked import Locked
from opendml.runtime.graphs.shared import Footprint, PreparedMemory, SharedMemory
from opendml.spec.wording import shown

_SHARE = 4
"""Models of sizes that do not run may take this part of the process's memory: a quarter. Other models must
fit beside them."""


class Holder(Protocol):
    """The owner of the models for a size."""

    @property
    def footprint(self) -> Footprint:
        """The memory that the models take."""

    def forget(self) -> None:
        """Drop the models."""


class ModelCache(Locked):
    """Keeps the models for the sizes that were used last, as far as they take no more memory than a bound.
    Safe to use from several threads.

    The bound excludes memory that the running sizes need, so memory that all sizes share never causes one to
    be dropped.

    Args:
        most_bytes: the bound; None: a quarter of the memory that the process may use.
        name: what errors call it.

    Raises:
        InvalidArgument: no number of bytes.
    """

    def __init__(self, most_bytes: int | None = None, name: str = "most_kept_bytes") -> None:
        super().__init__()
        if most_bytes is not None and (type(most_bytes) is not int or most_bytes < 0):
            raise InvalidArgument(
                f"{name}: {shown(most_bytes)}; a number of bytes from 0 on is needed, or None"
            )
        self.shared = SharedMemory()
        self.most_bytes = host_memory() // _SHARE if most_bytes is None else most_bytes
        self._entries: OrderedDict[int, _Entry] = OrderedDict()
        self._users: dict[PreparedMemory, int] = {}
        self._bytes = 0
        self._runs: list[_Run] = []
        self._waiting: list[tuple[Sequence[Holder], bool]] = []
        self._is_noting = False
        self._own = threading.local()

    @property
    def bytes(self) -> int:
        """Bytes of the models of all sizes, with prepared constants and arenas."""
        return self._bytes + self.shared.arenas.free_bytes

    def running(self, path: Sequence[Holder]) -> _Run:
        """Use the entries of a run when it ends. Until then none of them is dropped.

        An inner run, as of a loop's body, is also used when the outer one ends. So no model drops a part that
        it needs again.

        Args:
            path: the entries; the caller appends those that the run goes on to.
        """
        return _Run(self, path)

    def use(self, path: Sequence[Holder], *, changed: bool = False) -> None:
        """Record that entries have run, each after those that led to it.

        New entries are kept from now on. Those that were used longest ago are dropped for them.

        Args:
            path: the entries.
            changed: whether what they take may have changed since they were used last.
        """
        with self._lock:
            self._waiting.append((path, changed))
            if self._is_noting:
                return  # a handler or a finalizer has interrupted this; what it used is noted below
            self._is_noting = True
            try:
                while self._waiting:
                    self._note(*self._waiting.pop(0))
            finally:
                self._is_noting = False

    def _note(self, path: Sequence[Holder], changed: bool) -> None:
        for each in path if changed else ():
            entry = self._entries.get(id(each))
            if entry is not None and entry.kept != each.footprint.kept:
                self._take_out(entry)
        new = [each for each in path if id(each) not in self._entries]
        for each in new:
            self._add(_Entry(each))
        # Those that lead to others are newer, so the oldest one leads to none that is kept.
        for each in reversed(path):
            self._entries.move_to_end(id(each))
        if new:
            self._drop({id(each) for each in path})

    def _add(self, entry: _Entry) -> None:
        self._entries[id(entry.holder)] = entry
        self._bytes += entry.own_bytes
        for each in entry.kept:
            users = self._users.get(each, 0)
            self._users[each] = users + 1
            self._bytes += 0 if users else each.size

    def _drop(self, used: set[int]) -> None:
        """Drop the oldest entries, except used ones, until the memory of unused ones is within the bound."""
        used = used.union(id(each) for run in list(self._runs) for each in (*run.path, *run.within.values()))
        current = [self._entries[each] for each in used if each in self._entries]
        needed = sum(each.own_bytes for each in current)
        needed += sum(each.size for each in {memory for entry in current for memory in entry.kept})
        arenas = self.shared.arenas
        needed_arena = max(each.arena_bytes for each in current)
        for oldest in list(self._entries.values()):
            excess = max(arenas.most - needed_arena, 0)
            if self._bytes - needed + excess <= self.most_bytes:
                break
            if id(oldest.holder) in used:
                continue
            self._remove(oldest)
            if oldest.arena_bytes >= arenas.most:
                arenas.shrink(max((each.arena_bytes for each in self._entries.values()), default=0))

    def _remove(self, entry: _Entry) -> None:
        self._take_out(entry)
        entry.holder.forget()

    def _take_out(self, entry: _Entry) -> None:
        del self._entries[id(entry.holder)]
        self._bytes -= entry.own_bytes
        for each in entry.kept:
            self._users[each] -= 1
            if not self._users[each]:
                del self._users[each]
                self._bytes -= each.size


class _Run:
    """A run that has not ended: its entries, and those of runs within it by their identities."""

    def __init__(self, cache: ModelCache, path: Sequence[Holder]) -> None:
        self._cache, self.path = cache, path
        self.within: dict[int, Holder] = {}

    def __enter__(self) -> None:
        self._outer: list[_Run] = self._cache._own.__dict__.setdefault("runs", [])
        self._cache._runs.append(self)
        self._outer.append(self)

    def __exit__(self, *error: object) -> None:
        outer = self._outer
        outer.remove(self)
        self._cache._runs.remove(self)
        every = {id(each): each for each in self.path} | self.within
        if every:
            self._cache.use(list(every.values()))
        if outer:
            outer[-1].within |= every


class _Entry:
    """The memory of a holder's models."""

    def __init__(self, holder: Holder) -> None:
        footprint = holder.footprint
        self.holder = holder
        self.own_bytes = _ENTRY_BYTES + footprint.own_bytes
        self.kept, self.arena_bytes = footprint.kept, footprint.arena_bytes


_ENTRY_BYTES = 4096
"""Bytes of an entry without models, with the names and sizes that lead to it; an estimate."""
