"""Work: the programs of an operator or a graph, in their order, before they are compiled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opendml.program.node import Node
from opendml.program.program import Layout, Program


@dataclass(frozen=True, slots=True)
class Watched:
    """A value that a debug device shows: the `output` of an operator, by the name of its field. A node
    without dimensions fills a tensor of these sizes."""

    name: str
    operator: str
    output: str
    node: Node
    sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WorkStage:
    """One program of some work: tensor `i` of it is buffer `buffers[i]` of the work."""

    program: Program
    buffers: tuple[int, ...]
    watched: tuple[Watched, ...] = ()


@dataclass(frozen=True, slots=True)
class Work:
    """Programs in their order, over a common table of buffers: the inputs, the outputs, then tensors of
    `between` bytes."""

    inputs: tuple[Layout, ...]
    outputs: tuple[Layout, ...]
    stages: tuple[WorkStage, ...]
    between: tuple[int, ...] = ()


def work_of(program: Program, watched: Sequence[Watched] = ()) -> Work:
    """One program as work."""
    buffers = tuple(range(len(program.inputs) + len(program.outputs)))
    return Work(program.inputs, program.outputs, (WorkStage(program, buffers, tuple(watched)),))
