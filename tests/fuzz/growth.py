"""Things made at a size and at twice that size: the work to make them, and its memory, grow no faster.

Work is counted, not timed: lines of Python, for each function, and the elements that kernels go through.
"""

from __future__ import annotations

import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FrameType
from typing import Any

import numpy as np

import opendml as dml
from opendml import serialized
from opendml.frontends import dxdispatch
from opendml.program.program import Program
from opendml.serialized import SerializedGraph, SerializedNode
from opendml.targets.cpu.planning import plan as cpu_plan
from opendml.targets.cuda.machine import CudaMachine
from opendml.targets.cuda.planning import plan as cuda_plan
from tests.fuzz.case import Case
from tests.fuzz.choices import Choices

MOST_GROWTH = 2.6
"""Times as much work and memory as at half the size, at most. Linear work is twice as much, and a little more
where less than a limit was copied or computed again at the smaller size."""
FEWEST_LINES = 1500
"""Lines of one function for each unit of size, from which on they count."""
FEWEST_ELEMENTS = 1 << 16
"""Elements of kernels for each unit of size, from which on they count."""
FEWEST_BYTES = 32 << 20
"""Memory that counts."""
_GPU = CudaMachine(90, 132, 228 * 1024)

Tensor = Any
ChainStep = Callable[[Tensor, Tensor], Tensor]


def _places(x: Tensor) -> Tensor:
    return dml.cast(x, output_type=dml.INT32)


def _normalized(x: Tensor) -> Tensor:
    return dml.mean_variance_normalization1(x, axes=[2])


STEPS: dict[str, ChainStep] = {
    "relu": lambda x, first: dml.activation_relu(x),
    "linear": lambda x, first: x * 1.5 + 0.25,
    "double": lambda x, first: x + x,
    "add_first": lambda x, first: x + first,
    "sigmoid": lambda x, first: dml.activation_sigmoid(x),
    "mirror": lambda x, first: x + x[::-1],
    "turn": lambda x, first: dml.join([x[1:], x[:1]], axis=0),
    "join_twice": lambda x, first: dml.join([x, x], axis=0)[2:6],
    "join_columns": lambda x, first: dml.join([x, x * 2.0], axis=1)[:, ::2],
    "join_first": lambda x, first: dml.join([first, x], axis=0)[4:],
    "butterfly": lambda x, first: dml.join([x[:2] + x[2:], x[2:] - x[:2]], axis=0),
    "square": lambda x, first: x.reshape(8, 4).T + x,
    "flat": lambda x, first: x.reshape(32).reshape(4, 8) * x,
    "sum": lambda x, first: x * dml.reduce(x, function="SUM", axes=[1]),
    "softmax": lambda x, first: dml.activation_softmax1(x, axes=[1]),
    "normalize": lambda x, first: dml.mean_variance_normalization1(x.reshape(1, 1, 4, 8), axes=[2]).reshape(
        4, 8
    ),
    "product": lambda x, first: x @ x.T @ x,
    "gather": lambda x, first: dml.gather_elements(x, _places(x), axis=0),
    "running_sum": lambda x, first: dml.cumulative_summation(x, axis=1),
    "reflect": lambda x, first: dml.padding(x, padding_mode="REFLECTION", start_padding=[2, 0])[:4],
    "pool": lambda x, first: dml.average_pooling(
        x.reshape(1, 1, 4, 8),
        window_size=[3, 3],
        start_padding=[1, 1],
        end_padding=[1, 1],
        include_padding=False,
    ).reshape(4, 8),
    "top": lambda x, first: dml.top_k(x, axis=1, k=8).output_value,
}
"""What chains are made of: each makes a tensor of 4 rows and 8 columns of the last and the first one."""


@dataclass(frozen=True, repr=False)
class Growing(Case):
    """Something that is made at `size`, and at twice that."""

    size: int

    def make(self, size: int) -> Callable[[], int]:
        """Return what is measured at a size; it returns how many elements kernels go through."""
        raise NotImplementedError

    def check(self) -> None:
        measured(self.make(2))  # what is imported and kept
        before, after = (measured(self.make(size)) for size in (self.size, 2 * self.size))
        shown = f"at {self.size} and at {2 * self.size}"
        for code, lines in after.lines.items():
            fewer = before.lines.get(code, 0)
            if lines > FEWEST_LINES * 2 * self.size and lines > MOST_GROWTH * fewer:
                place = f"{Path(code.co_filename).name}:{code.co_qualname}"
                raise AssertionError(f"{place} grows: {fewer} lines and {lines} lines {shown}")
        for what, few, a, b in (
            ("elements", FEWEST_ELEMENTS * 2 * self.size, before.elements, after.elements),
            ("bytes", FEWEST_BYTES, before.bytes, after.bytes),
        ):
            assert b <= max(few, MOST_GROWTH * a), f"{what} grow: {a} and {b} {shown}"


@dataclass(frozen=True)
class Measured:
    """What some work takes.

    Attributes:
        lines: the lines of each function that ran.
        elements: what the work returned, the elements that kernels go through.
        bytes: the most memory that Python objects took.
    """

    lines: Mapping[CodeType, int]
    elements: int
    bytes: int


def measured(work: Callable[[], int]) -> Measured:
    """Measure some work, which may end in an error of opendml."""
    lines, elements = Counter[CodeType](), 0

    def count(frame: FrameType, event: str, argument: object) -> Any:
        if event == "line":
            lines[frame.f_code] += 1
        return count

    known = sys.gettrace()
    sys.settrace(count)
    try:
        with suppress(dml.Error):
            elements = work()
    finally:
        sys.settrace(known)
    tracemalloc.start()
    try:
        with suppress(dml.Error):
            work()
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return Measured(lines, elements, most)


def _planned(graph: dml.Graph, outputs: Mapping[str, Tensor]) -> int:
    """Plans a graph for both targets; returns how many elements its kernels go through."""
    program: Program = graph.compile(outputs, "reference")._program
    elements = 0
    for planned in (cpu_plan(program), cuda_plan(program, _GPU)):
        for kernel in (*planned.kernels.kernels, *planned.kernels.initializers):
            elements += int(np.prod(kernel.domain, dtype=object))
    return elements


@dataclass(frozen=True, repr=False)
class OnChain(Growing):
    """A chain of steps, as many as the size.

    Attributes:
        steps: the names of the steps, which take turns.
        ends: "last": the last tensor is the output; "all": every one is.
        starts: "input": the chain starts from an input; "constant": from a constant.
    """

    steps: tuple[str, ...]
    ends: str = "last"
    starts: str = "input"

    @property
    def subject(self) -> str:
        return ",".join(self.steps)

    def make(self, size: int) -> Callable[[], int]:
        def work() -> int:
            graph = dml.Graph()
            constant = self.starts == "constant"
            first = graph.constant(_ONES) if constant else graph.input("x", dml.FLOAT32, [4, 8])
            x, outputs = first, {}
            for number in range(size):
                x = STEPS[self.steps[number % len(self.steps)]](x, first)
                if self.ends == "all" or number == size - 1:
                    outputs[f"y{number}"] = x
            return _planned(graph, outputs)

        return work


_ONES = np.ones((4, 8), np.float32)


def _fan(size: int) -> int:
    graph = dml.Graph()
    x = graph.input("x", dml.FLOAT32, [4, 8])
    return _planned(graph, {f"y{number}": x * (number + 2.0) for number in range(size)})


def _inputs(size: int) -> int:
    graph = dml.Graph()
    total = graph.input("x", dml.FLOAT32, [8])
    for number in range(size):
        total = total + graph.input(f"x{number}", dml.FLOAT32, [8])
    return _planned(graph, {"y": total})


def _parts(size: int) -> int:
    graph = dml.Graph()
    x = graph.input("x", dml.FLOAT32, [size])
    return _planned(graph, {"y": dml.join([dml.activation_relu(x[n : n + 1]) for n in range(size)], axis=0)})


def _window(size: int) -> int:
    graph = dml.Graph()
    x = graph.input("x", dml.FLOAT32, [1, 1, 2, 2])
    rows = size * size << 14
    window = {"window_size": [rows, 1], "start_padding": [rows - 1, 0], "end_padding": [0, 0]}
    average = dml.average_pooling(x, include_padding=True, **window)
    return _planned(graph, {"average": average, "norm": dml.lp_pooling(x, p=2, **window)})


def _serialized(size: int) -> int:
    tensor = dml.TensorDesc(dml.FLOAT32, [4, 8])
    nodes = [
        SerializedNode(dml.descs.ActivationRelu(tensor, tensor), (f"t{n}",), (f"t{n + 1}",), f"node{n}")
        for n in reversed(range(size))
    ]
    with TemporaryDirectory() as folder:
        path, *_ = serialized.write(
            SerializedGraph(("t0",), (f"t{size}",), tuple(nodes)), Path(folder) / "graph.bin"
        )
        serialized.load(path, "reference")
    return 0


def _resources(size: int) -> int:
    resources = ",".join(
        f'"resource{n}": {{"initialValuesDataType": "FLOAT32", "initialValues": [{n}]}}' for n in range(size)
    )
    commands = ",".join(f'{{"type": "print", "resource": "resourse{n}"}}' for n in range(size))
    text = f'{{"resources": {{{resources}}}, "dispatchables": {{}}, "commands": [{commands}]}}'
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        path.write_text(text)
        dxdispatch.load(path)
    return 0


def _names(size: int) -> int:
    graph = dml.Graph()
    x = graph.input("x" * 70, dml.FLOAT32, [1])
    for number in range(size):
        x = x + graph.input(f"a_name_that_is_much_like_others_{number}", dml.FLOAT32, [1])
    model = graph.compile({"y": x}, "reference")
    model(**{f"another_name_that_is_like_others_{n}": np.zeros(1, np.float32) for n in range(size)})
    return 0


FAMILIES: dict[str, Callable[[int], int]] = {
    "fan": _fan,
    "inputs": _inputs,
    "parts": _parts,
    "window": _window,
    "serialized": _serialized,
    "resources": _resources,
    "names": _names,
}


@dataclass(frozen=True, repr=False)
class OnFamily(Growing):
    """One of the `FAMILIES`, by its name."""

    family: str

    @property
    def subject(self) -> str:
        return self.family

    def make(self, size: int) -> Callable[[], int]:
        return lambda: FAMILIES[self.family](size)


def make(choices: Choices) -> Growing:
    """A chain of up to four steps that take turns, or one of the families."""
    # Below 64 steps, kernels may still compute again what the compiler stores in longer chains.
    size = choices.of((64, 128, 256))
    if choices.rarely(6):
        return OnFamily(size, choices.of(tuple(FAMILIES)))
    steps = tuple(choices.of(tuple(STEPS)) for _ in range(choices.between(1, 4)))
    ends = "all" if choices.rarely(4) else "last"
    return OnChain(size, steps, ends, "constant" if choices.rarely(5) else "input")
