"""Graphs mean their operators one by one, each result rounded to its type: exactly so on the reference
device, within what those roundings can change on the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import opendml as dml
from opendml import ReduceFunction, TensorDataType, TensorDesc
from opendml.runtime.memory.host_array import Array
from tests.fuzz.case import Case
from tests.fuzz.choices import Choices
from tests.fuzz.descs import filled, tamed
from tests.fuzz.judgement import near
from tests.fuzz.random_descs import any_sizes
from tests.running import same_bits

Attributes = tuple[tuple[str, Any], ...]

UNARY: tuple[tuple[str, Attributes], ...] = (
    ("activation_relu", ()),
    ("element_wise_identity", ()),
    ("element_wise_negate", ()),
    ("element_wise_abs", ()),
    ("activation_linear", (("alpha", 3.0), ("beta", -0.5))),
    ("activation_sigmoid", ()),
    ("activation_tanh", ()),
    ("activation_celu", (("alpha", 0.5),)),
    ("activation_gelu", ()),
    ("activation_softplus", ()),
    ("activation_hard_sigmoid", ()),
    ("activation_softsign", ()),
    ("activation_swish", (("sigmoid_input_scale", 1.5),)),
    ("element_wise_exp", ()),
    ("element_wise_log", ()),
    ("element_wise_sqrt", ()),
    ("element_wise_recip", ()),
    ("element_wise_erf", ()),
    ("element_wise_atan", ()),
    ("element_wise_sinh", ()),
    ("element_wise_clip", (("min", -2.0), ("max", 2.0))),
    ("element_wise_constant_pow", (("exponent", 2.0),)),
    ("element_wise_floor", ()),
    ("element_wise_sign", ()),
)
BINARY: tuple[tuple[str, Attributes], ...] = (
    ("element_wise_add", ()),
    ("element_wise_multiply", ()),
    ("element_wise_subtract", ()),
    ("element_wise_divide", ()),
    ("element_wise_max", ()),
    ("element_wise_difference_square", ()),
    ("element_wise_mean", ()),
    ("element_wise_atan_yx", ()),
)
REDUCTIONS: tuple[ReduceFunction, ...] = (
    ReduceFunction.SUM,
    ReduceFunction.MAX,
    ReduceFunction.AVERAGE,
    ReduceFunction.L2,
)
REDUCTIONS += (ReduceFunction.LOG_SUM_EXP, ReduceFunction.SUM_SQUARE)
SIGN_OF_ZERO_IS_OPEN = ("activation_relu", "element_wise_clip", "element_wise_max", "reduce")
"""Of two zeros, a minimum or a maximum is either one."""
TYPES = (TensorDataType.FLOAT32, TensorDataType.FLOAT16)
MOST_STEPS = 8
PERTURBATIONS = 8
ROUNDINGS = 4


@dataclass(frozen=True)
class Step:
    """One operator: a function, its attributes, and which earlier results it takes."""

    function: str
    attributes: Attributes
    takes: tuple[int, ...]


@dataclass(frozen=True, repr=False)
class OnGraph(Case):
    """A graph over one input, result 0; step i makes result i + 1. All that is read by no step is an output.

    Attributes:
        data_type: of all tensors.
        sizes: of the input.
        strides: of the input.
        steps: the operators.
        values: chooses the input's values; see `filled`.
        device: where the graph runs.
    """

    data_type: TensorDataType
    sizes: tuple[int, ...]
    strides: tuple[int, ...] | None
    steps: tuple[Step, ...]
    values: int
    device: str

    @property
    def subject(self) -> str:
        return f"{self.device} {self.data_type.name}"

    def check(self) -> None:
        x = self._input()
        wanted = self._one_by_one(x, None)
        found = self._graph(x)
        for number, result in found.items():
            if self.device == "reference":
                what = f"result {number}: {_first(result, wanted[number])}, one by one the latter"
                assert same_bits(result, wanted[number]), what
            else:
                self._assert_near(x, number, result, wanted[number])

    def _input(self) -> Array:
        tensor = TensorDesc(self.data_type, self.sizes, self.strides)
        memory = filled(tensor, self.values)
        if self.data_type is TensorDataType.FLOAT32:
            memory = tamed(memory)
        strides = [stride * memory.itemsize for stride in tensor.effective_strides]
        return np.lib.stride_tricks.as_strided(memory, self.sizes, strides)

    def _graph(self, x: Array) -> dict[int, Array]:
        graph = dml.Graph()
        results = [graph.input("x", self.data_type, self.sizes, strides=self.strides)]
        for step in self.steps:
            taken = [results[number] for number in step.takes]
            results.append(getattr(dml, step.function)(*taken, **dict(step.attributes)))
        read = {number for step in self.steps for number in step.takes}
        ends = [number for number in range(1, len(results)) if number not in read]
        model = graph.compile({f"y{number}": results[number] for number in ends}, device=self.device)
        outputs = model(x=x)
        return {number: outputs[f"y{number}"] for number in ends}

    def _one_by_one(self, x: Array, random: np.random.Generator | None) -> list[Array]:
        """All results on the reference device, with `random` each exchanged for neighbours of its numbers."""
        results = [x]
        for step in self.steps:
            taken = [results[number] for number in step.takes]
            call = getattr(dml, step.function)
            result = call(*taken, **dict(step.attributes), device="reference")
            if random is not None:
                result = near(result, random)
                if step.function in SIGN_OF_ZERO_IS_OPEN and random.random() < 0.5:
                    result = np.where(result == 0, -result, result)
            results.append(result)
        return results

    def _assert_near(self, x: Array, number: int, result: Array, wanted: Array) -> None:
        assert result.shape == wanted.shape
        if same_bits(result, wanted):
            return
        low, high = wanted.astype(np.float64), wanted.astype(np.float64)
        free = np.zeros(wanted.shape, bool)
        random = np.random.default_rng(0)
        with np.errstate(all="ignore"):
            for _ in range(PERTURBATIONS):
                neighbour = self._one_by_one(x, random)[number].astype(np.float64)
                free |= np.isnan(neighbour) != np.isnan(wanted)
                low, high = np.fmin(low, neighbour), np.fmax(high, neighbour)
            spread = np.nan_to_num(high - low, nan=0.0)
            free |= spread > np.maximum(np.abs(low), np.abs(high)) / 2  # not one digit is certain
            room = ROUNDINGS * (spread + np.spacing(np.abs(wanted)).astype(np.float64))
            exact = result.astype(np.float64)
            inside = (exact >= low - room) & (exact <= high + room) | (exact == wanted)
        wrong = ~(inside | free | (np.isnan(result) & np.isnan(wanted)))
        assert not wrong.any(), f"result {number}: {_first(result[wrong], wanted[wrong])} one by one"


def _first(result: Array, wanted: Array) -> str:
    different = (result != wanted) & ~(np.isnan(result) & np.isnan(wanted))
    return f"{result[different][:1]} instead of {wanted[different][:1]}, {int(different.sum())} wrong"


def make(choices: Choices) -> OnGraph:
    """A case of up to eight operators."""
    sizes = any_sizes(choices, 1, 3)
    order = choices.shuffled(range(len(sizes))[::-1])
    strides, step = [0] * len(sizes), 1
    for dimension in order:
        strides[dimension] = step if not choices.rarely(8) else 0
        step *= sizes[dimension]
    steps = [_step(choices, len(sizes), 0)]
    while len(steps) < MOST_STEPS and choices.more():
        steps.append(_step(choices, len(sizes), len(steps)))
    values = choices.below(1 << 16)
    data_type, device = choices.of(TYPES), choices.of(("cpu", "reference"))
    return OnGraph(data_type, tuple(sizes), tuple(strides), tuple(steps), values, device)


def _step(choices: Choices, rank: int, last: int) -> Step:
    """An operator on the last result, and on earlier ones."""
    kind = choices.below(8)
    if kind < 4:
        return Step(*choices.of(UNARY), (last,))
    if kind < 6:
        return Step(*choices.of(BINARY), tuple(choices.shuffled([last, last - choices.below(last + 1)])))
    axes = [axis for axis in range(rank) if choices.below(2)]
    if kind == 6:
        return Step("reduce", (("function", choices.of(REDUCTIONS)), ("axes", axes)), (last,))
    operators: list[tuple[str, Attributes]] = [
        ("activation_softmax1", (("axes", axes),)),
        ("activation_log_softmax1", (("axes", axes),)),
        ("mean_variance_normalization1", (("axes", axes), ("epsilon", 1e-3))),
        ("cumulative_summation", (("axis", choices.below(rank)),)),
    ]
    return Step(*choices.of(operators), (last,))
