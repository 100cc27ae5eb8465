"""Hints whose plans do not serve some sizes. Noting them saves planning for such hints again."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

from opendml.digests import digest_of
from opendml.json_files.compact import compact_json
from opendml.logs import log
from opendml.program.size_values import Conditions, Guard
from opendml.program.stored_sizes import guards_from_json, guards_to_json
from opendml.targets.object_cache import read_object, write_later, write_object
from opendml.targets.plan_files import DAMAGED

MOST_REFUSED = 256
"""Hints that are noted, at most. Others take the place of the oldest."""
Hints = Mapping[str, int]
Refused = Sequence[tuple[Hints, Sequence[Guard]]]
"""Hints, each with guards that must all hold for their plan."""


class _Refusal(NamedTuple):
    """Guards of a plan that was given up because the last one did not hold.

    Attributes:
        guards: the guards.
        conditions: tells whether all hold.
        texts: the guards as texts, which are equal in all traces.
    """

    guards: Sequence[Guard]
    conditions: Conditions
    texts: frozenset[str]


class Refusals:
    """Hints, each with guards that must all hold for a plan of these hints.

    Attributes:
        keepers: are called with each refusal that `note` adds.
    """

    def __init__(self) -> None:
        self._found: dict[Hashable, tuple[Hints, list[_Refusal]]] = {}
        self.keepers: dict[Hashable, Callable[[Hints, Sequence[Guard]], object]] = {}

    def note(self, hints: Hints, guards: Iterable[Guard]) -> None:
        """Note that a plan for hints serves only sizes for which some guards all hold."""
        listed = list(guards)
        if self.add(hints, listed):
            for keep in list(self.keepers.values()):
                keep(hints, listed)

    def add(self, hints: Hints, guards: Sequence[Guard]) -> bool:
        """Add what is noted elsewhere. Return whether it was not known."""
        texts = frozenset([f"{relation.name} {size!r}" for relation, size in guards])
        _, known = self._found.setdefault(_key(hints), (dict(hints), []))
        if any(texts <= each.texts for each in known):
            return False
        # Planning for other sizes stops at a later guard. Its list begins with the guards of before.
        known[:] = [each for each in known if not each.texts <= texts]
        known.append(_Refusal(guards, Conditions(guards), texts))
        while len(self._found) > MOST_REFUSED:
            self._found.pop(next(iter(self._found)), None)
        return True

    def cover(self, hints: Hints, sizes: Mapping[str, int]) -> bool:
        """Return whether it is known that no plan for some hints serves some sizes."""
        _, known = self._found.get(_key(hints), (hints, ()))
        return not all(each.conditions(sizes) for each in list(known))

    def of(self, every: Iterable[Hints]) -> list[tuple[Hints, Sequence[Guard]]]:
        """Return those of some hints that are noted, with their guards."""
        return [
            (hints, each.guards)
            for hints in every
            for each in self._found.get(_key(hints), (hints, ()))[1]
        ]  # fmt: skip

    @property
    def every(self) -> list[tuple[Hints, Sequence[Guard]]]:
        """All hints that are noted, each with its guards."""
        return self.of([hints for hints, _ in list(self._found.values())])

    def read(self, key: str) -> None:
        """Add what is in the cache under a key."""
        content = read_object(key, "plan")
        try:
            for each in [] if content is None else guards_from_json(json.loads(content)):
                self.add(*each)
        except DAMAGED as error:
            log.debug("refused hints %s cannot be read: %s", key, error)


def refusals_key(key: str) -> str:
    """Return the key of refused hints for a purpose whose plans have a key."""
    return digest_of(f"{key} refused".encode()).hexdigest()


def keep_refusal(key: str, hints: Hints, guards: Sequence[Guard]) -> None:
    """Add a refusal to those in the cache under a key, later."""

    def write() -> None:
        every = Refusals()
        every.read(key)
        if every.add(hints, guards):
            write_object(key, compact_json(guards_to_json(every.every)), "plan")

    write_later(write)


def _key(hints: Hints) -> Hashable:
    return frozenset(hints.items())
