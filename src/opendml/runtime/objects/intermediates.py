"""Intermediate tensors, which debug devices show at every dispatch."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from itertools import count
from os import PathLike
from pathlib import Path

import numpy as np

from opendml.errors import Error, InvalidArgument
from opendml.folders import replacing_within
from opendml.late_dataclass import dataclass
from opendml.runtime.graphs.work import Watched
from opendml.runtime.memory.host_array import Array
from opendml.spec.wording import shown


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Intermediate:
    """The output of one operator of a graph in one dispatch.

    Args:
        sequence: a number that grows with everything that the device shows.
        name: "nodes[2].ACTIVATION_CELU.OutputTensor", or "nodes[2:blur].ACTIVATION_CELU.OutputTensor" if the
            node is called blur; "ACTIVATION_CELU.OutputTensor" of a single operator.
        operator: DirectML's name of the operator.
        output: the name of its field.
        values: the tensor, packed, in its own type.
    """

    sequence: int
    name: str
    operator: str
    output: str
    values: Array

    def __repr__(self) -> str:
        return f"<Intermediate {self.sequence}: {self.name} {self.values.dtype} {list(self.values.shape)}>"


class DebugCallback:
    """A callback that passes watched values to a function. It is as safe for threads as the function."""

    def __init__(self, receive: Callable[[Intermediate], object]) -> None:
        self._receive, self._numbers, self._thread = receive, count(), threading.local()

    def __call__(self, watched: Watched, values: Array) -> None:
        self._thread.is_showing = True
        try:
            self._receive(
                Intermediate(next(self._numbers), watched.name, watched.operator, watched.output, values)
            )
        finally:
            self._thread.is_showing = False

    def require_idle(self) -> None:
        """Check that the calling thread is not within the function, whose dispatch has not ended yet.

        Raises:
            InvalidArgument: it is.
        """
        if getattr(self._thread, "is_showing", False):
            raise InvalidArgument(
                "debug: the debug function runs work of its own device; use another device there"
            )


def debug_callback(
    debug: Callable[[Intermediate], object] | str | PathLike[str] | None,
) -> DebugCallback | None:
    """Return the callback of a debug device, which calls a function or writes to a folder.

    Raises:
        InvalidArgument: neither a function nor a folder.
    """
    if debug is None:
        return None
    receive: Callable[[Intermediate], object]
    if isinstance(debug, str | PathLike):
        receive = _Folder(Path(debug))
    elif callable(debug):
        receive = debug
    else:
        raise InvalidArgument(f"debug: {shown(debug)}; a function or a folder is needed")
    return DebugCallback(receive)


class _Folder:
    """A writer of intermediates to files such as "000007_nodes[2].ACTIVATION_CELU.OutputTensor.npy"."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidArgument(f"debug: {folder} cannot be a folder ({error.strerror})") from error

    def __call__(self, intermediate: Intermediate) -> None:
        name = re.sub(r"[^\w.\[\]-]", "_", intermediate.name)
        path = self._folder / f"{intermediate.sequence:06}_{name}.npy"
        try:
            with replacing_within(self._folder, path.name) as file:
                np.save(file, intermediate.values, allow_pickle=False)
        except OSError as error:
            raise Error(f"debug: cannot write {path} ({error.strerror})") from error
