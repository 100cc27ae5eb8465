"""The result of measuring a compiled graph or operator."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rich.console import RenderableType

from opendml.across_forks import importing
from opendml.folders import replacing
from opendml.late_dataclass import dataclass
from opendml.runtime.explain.wording import SHORTEST, time_text


@dataclass(frozen=True, slots=True)
class ExplainedOperator:
    """An operator of an explained graph.

    Args:
        label: its place and its name, such as "nodes[2].ACTIVATION_CELU".
        operator: its name.
        outputs: the types and sizes of its outputs that are used.
        reads: the labels of operators and the names of inputs and constants that it reads.
        kernels: the numbers of the kernels that compute something of it; none if others read or write the
            elements that it moves.
    """

    label: str
    operator: str
    outputs: tuple[str, ...]
    reads: tuple[str, ...]
    kernels: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ExplainedKernel:
    """A pass over memory. The equal passes of a recurrence count as one kernel.

    Args:
        number: its place in the order in which kernels run, from 0 on.
        operators: the labels of the operators that it computes.
        result: the sizes of the last operator's output; none if the kernel only copies.
        domain: the sizes that it runs over.
        axes: the dimensions of the domain that it reduces.
        times: its runs in a dispatch. All figures are sums over them.
        launches: the launches of one run.
        bytes_read, bytes_written: the bytes that it moves.
        operations: the arithmetic operations.
        floor_seconds: the time of a copy of as many bytes, or of a matrix product of as many operations,
            whatever is more.
        bound: "memory" or "arithmetic", by the larger of these times.
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
        """The operators in short: "GEMM + 2 ELEMENT_WISE_ADD"."""
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
class ExplainedGraph:
    """The kernels of a model or a compiled operator, with their times. `print` shows a table.

    Args:
        title: the inputs and the outputs.
        device: the kind of the device.
        threads: the threads that share a dispatch, at most; None: all that the process may use.
        seconds: the median time of a dispatch.
        operators: the operators of the graph.
        kernels: the kernels in their order; none on a device that fuses nothing.
        temporaries: the plan of the arena.
        temporary_bytes: bytes of the arena, with the scratch memory of kernels.
        persistent_bytes: bytes of prepared constants.
        bandwidth: pairs of a number of bytes and the bytes in a second of copies up to that size.
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
        """The kernels by falling time."""
        return sorted(self.kernels, key=lambda kernel: -kernel.seconds)

    @property
    def kernel_seconds(self) -> float:
        """The sum of the kernels' times."""
        return sum(kernel.seconds for kernel in self.kernels)

    def as_dict(self) -> dict[str, Any]:
        """Return all data as dicts, lists, numbers and strings."""
        found: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return found

    def json(self) -> str:
        """Return all data as JSON."""
        return json.dumps(asdict(self), indent=2)

    def html(self) -> str:
        """Return a self-contained page with the kernels, the graph and the memory."""
        with importing:
            from opendml.runtime.explain.page import page
        return page(self)

    def trace(self) -> str:
        """Return the kernels as a trace in Chrome's JSON format, which Perfetto and chrome://tracing show."""
        with importing:
            from opendml.runtime.explain.trace import trace
        return trace(self)

    def save(self, path: str | Path) -> None:
        """Write the page to a file, whole or not at all."""
        with replacing(path) as file:
            file.write(self.html().encode())

    def __repr__(self) -> str:
        with importing:
            from opendml.runtime.explain.text import summary
        return f"<ExplainedGraph {self.device}: {time_text(self.seconds)} for a dispatch; {summary(self)}>"

    def __rich__(self) -> RenderableType:
        with importing:
            from opendml.runtime.explain.text import rendered
        return rendered(self)

    def __str__(self) -> str:
        with importing:
            from opendml.runtime.explain.text import plain
        return plain(self)


def joined(parts: Sequence[ExplainedGraph]) -> ExplainedGraph:
    """Return graphs of one device that run one after the other as one. Their arena is the largest.

    Args:
        parts: the graphs, of which there is one at least. Several get numbers before their labels.
    """
    if len(parts) == 1:
        return parts[0]
    operators: list[ExplainedOperator] = []
    kernels: list[ExplainedKernel] = []
    temporaries: list[ExplainedTemporary] = []
    for number, part in enumerate(parts):
        first = len(kernels)
        labels = {each.label: f"graphs[{number}].{each.label}" for each in part.operators}
        operators += [
            replace(
                each,
                label=labels[each.label],
                reads=tuple(labels.get(name, name) for name in each.reads),
                kernels=tuple(first + kernel for kernel in each.kernels),
            )
            for each in part.operators
        ]
        kernels += [
            replace(
                each,
                number=first + each.number,
                operators=tuple(labels.get(name, name) for name in each.operators),
            )
            for each in part.kernels
        ]
        temporaries += [
            replace(each, first=first + each.first, last=first + each.last) for each in part.temporaries
        ]
    return replace(
        parts[0],
        title="; ".join(each.title for each in parts),
        seconds=sum(each.seconds for each in parts),
        operators=tuple(operators),
        kernels=tuple(kernels),
        temporaries=tuple(temporaries),
        temporary_bytes=max(each.temporary_bytes for each in parts),
        persistent_bytes=sum(each.persistent_bytes for each in parts),
    )
