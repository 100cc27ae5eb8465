"""Instances of a program with traced sizes, each of which serves all sizes of its plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from numpy import ndarray

if TYPE_CHECKING:
    from opendml.targets.executable import SizedInstance


class SizedInstances:
    """A pool of instances of an executable. Each call takes one, so several threads may use the pool.

    Another size changes only some words of an instance. A new instance would need a whole job.

    Args:
        make: makes an instance. None: the sizes of the device's instances do not change.
    """

    def __init__(self, make: Callable[[], SizedInstance | None]) -> None:
        self._make = make
        self.free: list[SizedInstance] = []
        """The instances that no call uses now."""

    def take(self, values: ndarray[Any, Any]) -> SizedInstance | None:
        """Return an instance for sizes, which the caller adds to `free` afterwards.

        A signal handler that runs the program during a call gets another one.

        Args:
            values: the values of the executable's sizes, perhaps with others behind them.

        Returns:
            None: the sizes of the device's instances do not change.
        """
        try:
            instance: SizedInstance | None = self.free.pop()
        except IndexError:
            instance = self._make()
        if instance is not None and instance.values is not values:
            instance.resize(values)
        return instance
