"""Fused operators give the bits that they give one by one."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

import opendml as dml
from opendml import Device
from opendml.runtime.memory.host_array import Array
from tests.pairwise import pairwise
from tests.running import same_bits

COUNT = 333
"""Elements: several vectors, and a rest."""

HALF_UNITS = 1.0
"""How far results of a device may be from those of the reference after one operator on the same FLOAT16."""

Call = Callable[..., Any]

ONE_OPERAND: list[Call] = [
    dml.activation_relu,
    dml.activation_sigmoid,
    dml.activation_softplus,
    dml.activation_tanh,
    dml.activation_swish,
    lambda x: dml.activation_celu(x, alpha=-0.7),
    lambda x: dml.activation_hard_sigmoid(x, alpha=0.3),
    lambda x: dml.activation_linear(x, alpha=700.0, beta=-0.3),
    lambda x: dml.activation_scaled_elu(x),
    dml.element_wise_abs,
    dml.element_wise_exp,
    dml.element_wise_log,
    dml.element_wise_negate,
    dml.element_wise_recip,
    dml.element_wise_sin,
    dml.element_wise_sinh,
    dml.element_wise_sqrt,
    lambda x: dml.element_wise_constant_pow(x, exponent=1.7),
]
TWO_OPERANDS: list[Call] = [
    dml.element_wise_add,
    dml.element_wise_divide,
    dml.element_wise_max,
    dml.element_wise_multiply,
    dml.element_wise_pow,
    dml.element_wise_subtract,
]
CASTS: list[Call] = [
    lambda x: dml.cast(x, output_type=dml.FLOAT16),
    lambda x: dml.cast(x, output_type=dml.FLOAT32),
]


class Chain:
    """Random operators over two inputs, of which every value may be read again."""

    def __init__(self, seed: int, data_type: dml.TensorDataType, casts: bool) -> None:
        chooser, numbers = random.Random(seed), np.random.default_rng(seed)
        type = np.float16 if data_type is dml.FLOAT16 else np.float32
        special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1000.0, -1000.0, 6e-8, 65504.0]
        self.inputs = [numbers.normal(scale=4.0, size=COUNT).astype(type) for _ in range(2)]
        for values in self.inputs:
            values[chooser.sample(range(COUNT), len(special))] = special
        self.steps: list[tuple[Call, tuple[int, ...]]] = []
        types: list[Any] = [data_type, data_type]
        for _ in range(chooser.randint(2, 6)):
            function = chooser.choice([*ONE_OPERAND, *TWO_OPERANDS, *(CASTS * 3 if casts else [])])
            first = chooser.randrange(len(types))
            alike = [number for number, each in enumerate(types) if each is types[first]]
            operands = (first, chooser.choice(alike)) if function in TWO_OPERANDS else (first,)
            self.steps.append((function, operands))
            types.append(
                (dml.FLOAT16, dml.FLOAT32)[CASTS.index(function)] if function in CASTS else types[first]
            )

    def values(self, sources: list[Any]) -> list[Any]:
        """Return the results of all steps, over arrays or tensors of a graph."""
        values = list(sources)
        for function, operands in self.steps:
            values.append(function(*(values[number] for number in operands)))
        return values[len(sources) :]

    def one_by_one(self, device: Device) -> list[Array]:
        """Each step by itself, on a device."""
        sources = [*self.inputs]
        for function, operands in self.steps:
            graph = dml.Graph()
            names = {f"x{number}": sources[number] for number in set(operands)}
            tensors = {name: graph.input(name, _type(x), [COUNT]) for name, x in names.items()}
            model = graph.compile({"y": function(*(tensors[f"x{number}"] for number in operands))}, device)
            sources.append(model(**names)["y"])
        return sources[2:]

    def fused(self, device: Device, every: bool) -> list[Array]:
        """The last step, or all, of one graph."""
        graph = dml.Graph()
        tensors = [graph.input(f"x{i}", _type(x), [COUNT]) for i, x in enumerate(self.inputs)]
        results = self.values(tensors)
        wanted = {f"y{i}": y for i, y in enumerate(results) if every or i == len(results) - 1}
        read = {f"x{i}": x for i, x in enumerate(self.inputs)}
        return list(graph.compile(wanted, device)(**read).values())


def _type(x: Array) -> dml.TensorDataType:
    return dml.FLOAT16 if x.dtype == np.float16 else dml.FLOAT32


@pairwise(casts=[False, True], data_type=[dml.FLOAT16, dml.FLOAT32], seed=range(12))
def test_fused_operators_give_the_bits_that_they_give_one_by_one(
    seed: int, data_type: dml.TensorDataType, casts: bool, any_device: Device
) -> None:
    chain = Chain(seed, data_type, casts)
    expected = chain.one_by_one(any_device)
    for fused, alone in zip(chain.fused(any_device, True), expected, strict=True):
        assert same_bits(fused, alone)
    assert same_bits(chain.fused(any_device, False)[0], expected[-1])
