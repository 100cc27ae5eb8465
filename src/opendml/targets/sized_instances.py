"""Instances of a program with traced sizes, each of which serves all sizes of its plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from numpy import ndarray

if TYPE_CHECKING:
    from opendml.targets.executable import SizedInstance

_MOST_MET = 64
"""Sizes of earlier calls that a pool knows, at most."""
_OWN_AFTER = 4
"""Calls after which a size gets an instance of its own. Making one takes about as long as writing the words
of as many other sizes."""


class SizedInstances:
    """A pool of instances of an executable. Each call takes one, so several threads may use the pool.

    Another size changes only some words of an instance. A new instance would need a whole job. Where writing
    the words takes long, sizes that come again get instances of their own, as far as there may be several.

    Args:
        make: makes an instance.
        most: instances that are made for one call at a time, at most.
    """

    def __init__(self, make: Callable[[], SizedInstance], most: int = 1) -> None:
        self._make, self._most = make, most
        self.free: list[SizedInstance] = []
        """The instances that no call uses now; the one that was used last is the last."""
        self._met: dict[int, tuple[ndarray[Any, Any], int]] = {}
        """The sizes of earlier calls by their identities, and how often each had no instance of its own, if
        there may be several instances."""

    def take(self, values: ndarray[Any, Any]) -> SizedInstance:
        """Return an instance for sizes, which the caller adds to `free` afterwards.

        A signal handler that runs the program during a call gets another one.

        Args:
            values: the values of the executable's sizes, perhaps with others behind them.
        """
        instance = self._kept(values) if self._most > 1 else None
        try:
            instance = instance or self.free.pop()
        except IndexError:
            instance = self._make()
        if instance.values is not values:
            instance.resize(values)
        return instance

    def _kept(self, values: ndarray[Any, Any]) -> SizedInstance | None:
        """Return the instance of a size. A size that comes often may get a new one. Others get one that is
        free. None: all are in use."""
        try:
            # Another thread may take one meanwhile. Any instance will do.
            for place in range(len(self.free)):
                if self.free[place].values is values:
                    return self.free.pop(place)
            _, count = self._met.get(id(values), (values, 0))
            self._met[id(values)] = values, count + 1
            while len(self._met) > _MOST_MET:
                # Other threads may add and remove sizes meanwhile.
                self._met.pop(next(iter(list(self._met)), 0), None)
            rare = [place for place in range(len(self.free)) if not self._is_often(self.free[place].values)]
            if rare and not self._is_often(values):
                return self.free.pop(rare[-1])
            if 0 < len(self.free) < self._most and not rare[1:]:
                return self._make()
            return self.free.pop(rare[-1] if rare else 0)
        except IndexError:
            return None

    def _is_often(self, values: ndarray[Any, Any] | None) -> bool:
        """Return whether a size has come often without an instance of its own."""
        return self._met.get(id(values), (values, 0))[1] >= _OWN_AFTER
