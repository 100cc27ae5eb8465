"""Whatever a function is given, it takes it, or raises an error of opendml or a TypeError."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

import numpy as np

import opendml as dml
from opendml import directml
from opendml.frontends.pydirectml.table import MODULES, row_of
from tests.for_each import for_each

SIZES = [[2, 3], [1, 1, 4, 4], [4], [1, 2, 3, 4], [2, 2, 2, 2, 2], [1]]
TYPES = [np.float32, np.uint32, np.int8, np.float16, np.uint8]
WRONG: list[Any] = [
    None,
    *(0, 1, -1, 3.5, True, 2**70, -(2**70), float("nan")),
    *("x", b"12345678", object(), {}),
    *([], [1], [1, 1], [1, 1, 1, 1], (0, 2), [-1], [None], ["a"], [10**12] * 4),
    *(np.int64(2), np.float32(1.5), np.array([1, 1]), np.float32, np.complex64),
    *(directml.TensorDataType.FLOAT16, directml.TensorDataType.UNKNOWN, directml.ReduceFunction.SUM),
    *(directml.InterpolationMode.LINEAR, directml.PaddingMode.EDGE, directml.AxisDirection.INCREASING),
    *(directml.QuantizationType.SCALE, directml.GRUOutputOptions.Both, directml.FusedActivation.relu()),
    [directml.FusedActivation.relu()] * 2,
]


@for_each("name", sorted(MODULES["directml"]))
def test_any_arguments_are_taken_or_refused(name: str) -> None:
    device, rng, row = directml.Device(use_gpu=False), random.Random(name), row_of("directml", name)
    sources = dict(zip(row.parameters, (each for each in row.source if each != "*"), strict=True))
    for _ in range(8):
        graph, given = directml.Graph(device), dict[str, Any]()
        for parameter, source in sources.items():
            chance = rng.random()
            if parameter.name == "graph" and chance < 0.9:
                given[parameter.name] = graph
            elif "Expression" in source and chance < 0.8:
                tensor = graph.input(rng.choice(SIZES), rng.choice(TYPES))
                given[parameter.name] = [tensor, tensor] if "Sequence" in source else tensor
            elif " = " not in source or chance >= 0.5:
                given[parameter.name] = rng.choice(WRONG)
        with suppress(dml.Error, TypeError):
            getattr(directml, name)(**given)


def test_any_arguments_of_graphs_and_bindings_are_taken_or_refused() -> None:
    device, rng = directml.Device(use_gpu=False), random.Random(1)
    graph = directml.Graph(device)
    x, w = graph.input([2, 3], name="x"), graph.input([2, 3], owned=True, name="w")
    op = graph.compile([x + w])
    op.initialize({w: np.zeros((2, 3))})
    more = [
        *WRONG,
        x,
        w,
        op,
        device,
        graph,
        directml.Buffer(device, 1.0),
        np.zeros((2, 3)),
        np.zeros(6, "U1"),
    ]
    calls: list[Any] = [
        lambda a, b, c: directml.Graph(device).input(a, b, strides=c),
        lambda a, b, c: directml.Graph(device).input(desc=a, name=b),
        lambda a, b, c: directml.Graph(device).constant(a, b, sizes=c),
        lambda a, b, c: directml.Graph(a, tensor_policy=b),
        lambda a, b, c: directml.Buffer(device, a, b),
        lambda a, b, c: directml.TensorDesc(a, b, strides=c),
        lambda a, b, c: directml.TensorDesc(a, b, flags=c),
        lambda a, b, c: directml.TensorDesc(np.float32, [2], total_tensor_size_in_bytes=a),
        lambda a, b, c: graph.compile(a, flags=b),
        lambda a, b, c: op({"x": a}),
        lambda a, b, c: op.dispatch(a, readback=b),
        lambda a, b, c: op.initialize({"w": a}),
        lambda a, b, c: op.initialize(a),
        lambda a, b, c: directml.FusedActivation(a, b, c),
    ]
    for call in calls:
        for _ in range(60):
            with suppress(dml.Error, TypeError):
                call(*rng.choices(more, k=3))
