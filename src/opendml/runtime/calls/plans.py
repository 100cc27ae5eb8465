"""Plans: compiled calls, kept for later calls of the same form."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from opendml.runtime.objects.device import Device

_MOST_PLANS = 4096


class Plan(Protocol):
    """A compiled call."""

    device: Device
    """Where it runs: plans for removed devices are made anew, for the default device that takes its place."""


P = TypeVar("P", bound=Plan)


class Plans(threading.local, Generic[P]):
    """The calling thread's plans: an instance runs one dispatch at a time, so no two threads may share
    one.
    """

    def __init__(self) -> None:
        self._table: dict[Hashable, P] = {}

    def find(self, key: Hashable, make: Callable[..., P], *arguments: Any) -> P:
        """The plan of a key: all that decides what a call compiles to, equal only where it is the same. A new
        one is `make(*arguments)`.
        """
        plan = self._table.get(key)
        if plan is not None and plan.device._removed is None:
            return plan
        plan = make(*arguments)
        if len(self._table) >= _MOST_PLANS:
            self._table.clear()
        self._table[key] = plan
        return plan
