"""Instances of a program with traced sizes, each of which serves all sizes of its plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from numpy import ndarray

if TYPE_CHECKING:
    from opendml.targets.arenas import Arenas
    from opendml.targets.executable import SizedInstance, TracedExecutable


class SizedInstances:
    """A pool of instances of an executable. Each call takes one, so several threads may use the pool.

    Another size changes only some words of an instance. A new instance would need a whole job.

    Args:
        executable: the executable.
        kept: the addresses of its prepared constants.
        arenas: where instances take their arenas from; None: from the thread.
    """

    def __init__(self, executable: TracedExecutable, kept: Sequence[int], arenas: Arenas | None) -> None:
        self._executable, self._kept, self._arenas = executable, kept, arenas
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
            instance = self._executable.sized_instance(self._kept, self._arenas)
        if instance is not None and instance.values is not values:
            instance.resize(values)
        return instance
