"""A contender: one or more ways in which a library runs a case, ready to be timed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from numpy.typing import NDArray

from benchmarks.data import Data


class Mode(StrEnum):
    """The destination of a result, which decides how much of the time is fresh memory's page faults."""

    BOUND = "bound"  # into an output that exists
    NEW = "new"  # into a new array
    IN_PLACE = "in place"  # over the input


@dataclass(frozen=True)
class Contender:
    """One way to run a case. `run` returns what `to_numpy` turns into an array of the case's sizes."""

    peer: str
    mode: Mode
    run: Callable[[], object]
    to_numpy: Callable[[Any], NDArray[Any]]
    reset: Callable[[], object] | None = None  # writes the input anew, before each run in place


class NotExpressible(Exception):  # noqa: N818 (an answer, not an error)
    """The library has no direct way to say this case."""


class Peer(Protocol):
    """A library, imported when its class is called; `ImportError` means that it is not installed."""

    name: str
    version: str

    @property
    def modes(self) -> Sequence[Mode]: ...

    def prepare(self, data: Data, mode: Mode) -> Contender:
        """Builds and compiles all that the case needs; may raise `NotExpressible`."""
