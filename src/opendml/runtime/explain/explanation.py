"""Where the time of a compiled graph or operator goes, as data."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import RenderableType

from opendml.folders import replacing
from opendml.runtime.explain.wording import SHORTEST, time_text


@dataclass(frozen=True, slots=True)
class ExplainedOperator:
    """An operator.

    Args:
        label: its place and its name, such as "nodes[2].ACTIVATION_CELU".
        operator: its name.
        outputs: the types and sizes of its outputs that are used.
        reads: the labels of the operators, and the names of the inputs and constants, that it reads.
        kernels: the numbers of the kernels that compute something of it; none where others read or write
            what it would only have moved.
    """

    label: str
    operator: str
    outputs: tuple[str, ...]
    reads: tuple[str, ...]
    kernels: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ExplainedKernel:
    """A pass over memory, or as many equal ones as a recurrence has steps.

    Args:
        number: its place in the order in which kernels run, from 0 on.
        operators: the labels of the operators that it computes.
        result: the sizes of what the last of them gives; none where it only copies.
        domain: the sizes that it runs over.
        axes: the dimensions of these that it reduces.
        times: how often it runs in a dispatch; all figures are of all of them together.
        launches: how the launches of one run go about it.
        bytes_read, bytes_written, operations: what it moves and computes.
        floor_seconds: the time of a copy of as many bytes, or of as many operations of a matrix product:
            whatever is more.
        bound: "memory" or "arithmetic", whatever is more.
        seconds: the sum of the medians of its launches, each dispatched alone.
    """

    number: int
    operators: tuple[str, ...]
    result: tuple[int, ...]
    domain: tuple[int, ...]
    axes: tuple[int, ...]
    times: int
    launches: tuple[str, ...]
    bytes_read: int
    bytes_written: int
    operations: int
    floor_seconds: float
    bound: str
    seconds: float

    @property
    def name(self) -> str:
        """Its operators in short: "GEMM + 2 ELEMENT_WISE_ADD"."""
        counts = Counter(each.rpartition(".")[2] for each in self.operators)
        return (
            " + ".join(f"{count} {name}" if count > 1 else name for name, count in counts.items()) or "copy"
        )

    @property
    def floors(self) -> float | None:
        """Return how many times its floor it takes; None where it is over too soon to be measured: what a
        launch of nothing takes, which is subtracted, varies by as much."""
        return self.seconds / self.floor_seconds if self.seconds >= SHORTEST else None


@dataclass(frozen=True, slots=True)
class ExplainedTemporary:
    """Bytes of the arena that hold data from the kernel `first` to the kernel `last`, both included."""

    offset: int
    size: int
    first: int
    last: int


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """What a model or a compiled operator is made of, and what was measured; `print` shows it as a table.

    Args:
        title: from what to what it computes.
        device: the kind of the device.
        threads: how many threads share a dispatch at most; None: all that the process may use.
        seconds: the median of dispatches of the whole.
        operators: the graph.
        kernels: in their order; none on a device that fuses nothing.
        temporaries: the plan of the arena's memory.
        temporary_bytes: the arena with what kernels need beside these temporaries.
        persistent_bytes: what is kept of the constants.
        bandwidth: bytes in a second of copies of up to so many bytes, which floors are made of.
        operation_rate: operations in a second of a matrix product.
    """

    title: str
    device: str
    threads: int | None
    seconds: float
    operators: tuple[ExplainedOperator, ...]
    kernels: tuple[ExplainedKernel, ...] = ()
    temporaries: tuple[ExplainedTemporary, ...] = ()
    temporary_bytes: int = 0
    persistent_bytes: int = 0
    bandwidth: tuple[tuple[int, float], ...] = ()
    operation_rate: float | None = None

    @property
    def largest_first(self) -> list[ExplainedKernel]:
        """The kernels by the time that they take."""
        return sorted(self.kernels, key=lambda kernel: -kernel.seconds)

    @property
    def kernel_seconds(self) -> float:
        """The sum of the kernels' times."""
        return sum(kernel.seconds for kernel in self.kernels)

    def as_dict(self) -> dict[str, Any]:
        """Return all of it as dicts, lists, numbers and texts."""
        found: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return found

    def json(self) -> str:
        """Return all of it as JSON."""
        return json.dumps(asdict(self), indent=2)

    def html(self) -> str:
        """Return one page that needs nothing else: the kernels with their times, the graph, and the
        memory."""
        from opendml.runtime.explain.page import page

        return page(self)

    def trace(self) -> str:
        """Return the kernels one after the other as a trace in Chrome's JSON format, which Perfetto and
        chrome://tracing show."""
        from opendml.runtime.explain.trace import trace

        return trace(self)

    def save(self, path: str | Path) -> None:
        """Write the page to a file, whole or not at all."""
        with replacing(path) as file:
            file.write(self.html().encode())

    def __repr__(self) -> str:
        from opendml.runtime.explain.text import summary

        return f"<Explanation {self.device}: {time_text(self.seconds)} for a dispatch; {summary(self)}>"

    def __rich__(self) -> RenderableType:
        from opendml.runtime.explain.text import rendered

        return rendered(self)

    def __str__(self) -> str:
        from opendml.runtime.explain.text import plain

        return plain(self)
