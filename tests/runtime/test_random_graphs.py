"""Random graphs in DirectML's form, with every tensor in a random layout over the same 24 elements: what one
operator writes, another reads in other sizes and strides. The values are those of NumPy, one by one."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from opendml import (
    FLOAT32,
    Device,
    GraphDesc,
    InputEdge,
    IntermediateEdge,
    OperatorNode,
    OutputEdge,
    TensorDesc,
    descs,
)
from opendml.runtime.memory.host_array import Array
from tests.running import elements

SHAPES = ([24], [2, 12], [4, 6], [2, 3, 4], [1, 24], [3, 2, 2, 2])
Origin = tuple[str, int]


class RandomGraph:
    """A graph, and the memory that each of its tensors should hold."""

    def __init__(self, seed: int, device: Device) -> None:
        self._random, self._device = random.Random(seed), device
        numbers = np.random.default_rng(seed)
        self._inputs = [numbers.normal(size=24).astype(np.float32) for _ in range(self._random.randint(1, 3))]
        self._memory: dict[Origin, Array] = {("input", i): each for i, each in enumerate(self._inputs)}
        self._nodes: list[OperatorNode] = []
        self._input_edges: list[InputEdge] = []
        self._edges: list[IntermediateEdge] = []
        for _ in range(self._random.randint(1, 6)):
            self._add_node()
        read = {edge.from_node_index for edge in self._edges}
        self._results = [i for i in range(len(self._nodes)) if i not in read or self._random.random() < 0.3]

    def desc(self) -> GraphDesc:
        outputs = [OutputEdge(node, 0, index) for index, node in enumerate(self._results)]
        return GraphDesc(
            len(self._inputs), len(outputs), self._nodes, self._input_edges, outputs, self._edges
        )

    def check(self) -> None:
        """Compiles, runs and compares."""
        compiled = self._device.compile_graph(self.desc())
        pairs = zip(self._inputs, compiled.input_tensors, strict=True)
        results = [np.full(24, 7, np.float32) for _ in self._results]
        compiled.bind([None if tensor is None else values for values, tensor in pairs], results).dispatch()
        for node, result in zip(self._results, results, strict=True):
            assert np.allclose(result, self._memory["node", node], rtol=2e-3, atol=2e-3)

    def _add_node(self) -> None:
        sizes = self._random.choice(SHAPES)
        operator, compute, count = self._operator(len(sizes))
        origins = [self._random.choice(list(self._memory)) for _ in range(count)]
        *inputs, output = [self._layout(sizes) for _ in range(count + 1)]
        number = len(self._nodes)
        for index, (kind, origin) in enumerate(origins):
            if kind == "input":
                self._input_edges.append(InputEdge(origin, number, index))
            else:
                self._edges.append(IntermediateEdge(origin, 0, number, index))
        pairs = zip(origins, inputs, strict=True)
        values = [elements(self._memory[origin], tensor).astype(np.float64) for origin, tensor in pairs]
        memory = np.zeros(24, np.float32)
        elements(memory, output)[...] = compute(*values)
        self._memory["node", number] = memory
        self._nodes.append(OperatorNode(self._device.create_operator(operator(*inputs, output))))

    def _layout(self, sizes: list[int]) -> TensorDesc:
        """Often packed, else with the dimensions in a random order in memory."""
        order = list(reversed(range(len(sizes))))
        if self._random.random() < 0.4:
            self._random.shuffle(order)
        strides, step = [0] * len(sizes), 1
        for axis in order:
            strides[axis] = step
            step *= sizes[axis]
        return TensorDesc(FLOAT32, sizes, strides)

    def _operator(self, rank: int) -> tuple[Callable[..., Any], Callable[..., Array], int]:
        axis = self._random.randrange(rank)

        def normalization(*tensors: TensorDesc) -> descs.MeanVarianceNormalization1:
            return descs.MeanVarianceNormalization1(*tensors, axes=[axis])

        def normalized(x: Array, scale: Array, bias: Array) -> Array:
            deviation = np.sqrt(x.var(axis, keepdims=True) + 1e-5)
            return np.asarray(scale * (x - x.mean(axis, keepdims=True)) / deviation + bias)

        operators: list[tuple[Callable[..., Any], Callable[..., Array], int]] = [
            (descs.ActivationTanh, np.tanh, 1),
            (descs.ActivationRelu, lambda x: np.maximum(x, 0), 1),
            (descs.ElementWiseAdd, np.add, 2),
            (descs.ElementWiseMultiply, np.multiply, 2),
            (normalization, normalized, 3),
        ]
        return self._random.choice(operators)


@pytest.mark.parametrize("seed", range(40))
def test_random_graphs_give_what_their_operators_give_one_by_one(seed: int, any_device: Device) -> None:
    RandomGraph(seed, any_device).check()


@pytest.mark.parametrize("seed", range(40, 50))
def test_random_graphs_are_the_same_on_debug_devices(seed: int) -> None:
    shown: list[Any] = []
    device = Device("cpu", debug=shown.append)
    graph = RandomGraph(seed, device)
    graph.check()
    assert len(shown) == len(graph.desc().nodes)
