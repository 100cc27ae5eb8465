"""The programs of an operator or a graph, before they are compiled."""

from __future__ import annotations

from opendml.across_forks import cached_property
from opendml.budget import meter
from opendml.late_dataclass import dataclass
from opendml.program.node import Node, ordered
from opendml.program.program import Layout, Program
from opendml.program.steps import repeats_of, steps_of
from opendml.runtime.graphs.run_limits import require_tensors


@dataclass(frozen=True, slots=True)
class Watched:
    """An output of an operator, which a debug device shows. A node without dimensions fills its sizes."""

    name: str
    operator: str
    output: str
    node: Node
    sizes: tuple[int, ...]


@dataclass(frozen=True)
class WorkStage:
    """One program of some work: tensor `i` of it is buffer `buffers[i]` of the work."""

    program: Program
    buffers: tuple[int, ...]
    watched: tuple[Watched, ...] = ()

    @cached_property
    def node_count(self) -> int:
        """The number of nodes of the program, which all plans of it ask for."""
        return len(ordered(self.program.results))


@dataclass(frozen=True, slots=True)
class Work:
    """Programs over a common table of buffers: inputs, outputs, and tensors of `between` bytes."""

    inputs: tuple[Layout, ...]
    outputs: tuple[Layout, ...]
    stages: tuple[WorkStage, ...]
    between: tuple[int, ...] = ()


def require_work(work: Work) -> int:
    """Check the tensors, the recurrent networks and the kernel steps of some work against the limits.

    Returns:
        The kernel steps of one dispatch.

    Raises:
        LimitExceeded: more than the model around it may take.
    """
    steps = sum(steps_of(stage.program.results) for stage in work.stages)
    require_parts(work)
    require_tensors((*work.inputs, *work.outputs), steps, sum(work.between))
    return steps


def require_parts(work: Work) -> None:
    """Check the recurrent networks of some work against the limits.

    Raises:
        LimitExceeded: they have more steps than the model around them may have.
    """
    repeats = sum(repeats_of(stage.program.results) for stage in work.stages)
    meter().require("graph_parts", repeats, "the steps of a graph's recurrent networks")
