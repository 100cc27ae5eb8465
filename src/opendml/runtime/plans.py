"""What calls were compiled to, kept for later calls of the same form."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from opendml.spec.operator_desc import ScaleBias
from opendml.spec.plain import as_tuple

if TYPE_CHECKING:
    from opendml.runtime.device import Device

_MOST_PLANS = 4096


class Plan(Protocol):
    """A compiled call."""

    device: Device
    """Where it runs: plans for removed devices are made anew, for the default device that takes its place."""


P = TypeVar("P", bound=Plan)


def _has_zero(value: Any) -> bool:
    return value == 0 if isinstance(value, float) else isinstance(value, ScaleBias) and 0 in value


class Plans(threading.local, Generic[P]):
    """The calling thread's plans: an instance runs one dispatch at a time, so no two threads may share
    one.
    """

    def __init__(self) -> None:
        self._table: dict[Any, P] = {}

    def find(self, key: tuple[Any, ...], make: Callable[..., P], *arguments: Any) -> P:
        """The plan of a key: name, attributes, and all else that decides what a call compiles to. A new one
        is `make(attributes, *arguments)`.
        """
        attributes = key[1]
        try:
            plan = self._table.get(key)
        except TypeError:
            attributes = tuple(map(as_tuple, attributes))
            key = (key[0], repr(attributes), *key[2:])
            plan = self._table.get(key)
        if plan is not None and plan.device._removed is None:
            return plan
        # A key with a zero would be equal to one with a zero of the other sign: such calls go by the
        # attributes' text.
        if not isinstance(key[1], str) and any(map(_has_zero, attributes)):
            key = (key[0], repr(attributes), *key[2:])
            if (known := self._table.get(key)) is not None and known.device._removed is None:
                return known
        plan = make(attributes, *arguments)
        if len(self._table) >= _MOST_PLANS:
            self._table.clear()
        self._table[key] = plan
        return plan
