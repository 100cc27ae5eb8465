"""Instances of programs with traced sizes, which all sizes share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from numpy import ndarray

if TYPE_CHECKING:
    from opendml.targets.arenas import Arenas
    from opendml.targets.executable import SizedInstance, TracedExecutable


class SizedInstances:
    """The instances of an executable, of which each call has one. Several threads may use them.

    A new size in an instance costs some words, where an instance of its own would cost a whole job.

    Args:
        executable: the executable.
        kept: the addresses of its prepared constants.
        arenas: where instances take their arenas from; None: from the thread.
    """

    def __init__(self, executable: TracedExecutable, kept: Sequence[int], arenas: Arenas | None) -> None:
        self._executable, self._kept, self._arenas = executable, kept, arenas
        self.free: list[SizedInstance] = []
        """The instances that no call has."""

    def take(self, values: ndarray[Any, Any]) -> SizedInstance | None:
        """Return an instance for sizes, which the caller adds to `free` afterwards.

        A handler of a signal that runs the program meanwhile gets another one.

        Args:
            values: the values of the executable's sizes, perhaps with others behind them.

        Returns:
            None: the sizes of the device's instances do not change.
        """
        try:
            instance: SizedInstance | None = self.free.pop()
        except IndexError:
            instance = self._executable.sized_instance(self._kept, self._arenas)
        if instance is not None and instance.values is not values:
            instance.resize(values)
        return instance
