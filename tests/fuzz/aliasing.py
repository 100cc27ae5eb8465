"""Immediate calls whose output lies over their inputs: as if the inputs had been copied, or refused and
nothing written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import opendml as dml
from opendml.runtime.memory.host_array import Array
from tests.fuzz.case import Case
from tests.fuzz.choices import Choices
from tests.running import same_bits

Attributes = tuple[tuple[str, Any], ...]

CALLS: tuple[tuple[str, int, Attributes], ...] = (
    ("activation_relu", 1, ()),
    ("element_wise_identity", 1, ()),
    ("element_wise_add", 2, ()),
    ("element_wise_multiply", 2, ()),
    ("element_wise_subtract", 2, ()),
    ("element_wise_pow", 2, ()),
    ("element_wise_divide", 2, ()),
    ("activation_parameterized_relu", 2, ()),
    ("activation_relu_grad", 2, ()),
    ("element_wise_max", 2, ()),
    ("element_wise_modulus_floor", 2, ()),
    ("activation_softmax1", 1, (("axes", [0]),)),
    ("activation_hardmax1", 1, (("axes", [0]),)),
    ("cumulative_summation", 1, (("axis", 0),)),
    ("cumulative_product", 1, (("axis", 0),)),
    ("reduce", 1, (("function", dml.ReduceFunction.SUM), ("axes", []))),
    ("mean_variance_normalization1", 1, (("axes", [0]),)),
    ("mean_variance_normalization1", 3, (("axes", [0]),)),
    ("lp_normalization", 1, (("axis", 0), ("p", 2))),
    ("batch_normalization", 5, (("epsilon", 1e-5),)),
)


@dataclass(frozen=True)
class View:
    """Elements of the memory: from `offset` on, `steps` apart (any numbers, 0 and negative ones too)."""

    offset: int
    steps: tuple[int, ...]

    def of(self, memory: Array, shape: tuple[int, ...]) -> Array:
        """The view as an array."""
        strides = [step * memory.itemsize for step in self.steps]
        return np.lib.stride_tricks.as_strided(memory[self.offset :], shape, strides)


@dataclass(frozen=True, repr=False)
class OnShared(Case):
    """A call on views of one memory. An input of the output's own view is the output itself where
    `same_object` is set.

    Attributes:
        function: its name.
        attributes: of the call.
        data_type: of the elements.
        shape: of all arrays.
        inputs: the views that are read.
        out: the view that is written.
        same_object: `out` is an input not only in place, but as the same object.
        size: elements of the memory.
    """

    function: str
    attributes: Attributes
    data_type: str
    shape: tuple[int, ...]
    inputs: tuple[View, ...]
    out: View
    same_object: bool = True
    size: int = 600

    @property
    def subject(self) -> str:
        return self.function

    def check(self) -> None:
        call = getattr(dml, self.function)
        memory = (np.arange(self.size) * 0.37 % 5 - 2).astype(self.data_type)
        before = memory.copy()
        out = self.out.of(memory, self.shape)
        inputs = [
            out if view == self.out and self.same_object else view.of(memory, self.shape)
            for view in self.inputs
        ]
        expected = call(*(each.copy() for each in inputs), **dict(self.attributes))
        try:
            result = call(*inputs, **dict(self.attributes), out=out)
        except dml.InvalidArgument:
            assert same_bits(memory, before), f"{self.function}: refused, but wrote"
            return
        assert result is out
        after = memory.copy()
        memory[...] = before
        out[...] = expected
        assert same_bits(after, memory), f"{self.function}: not what copies of the inputs give"


def make(choices: Choices) -> OnShared:
    """A case of views that mostly overlap."""
    function, count, attributes = choices.of(CALLS)
    shape = tuple(choices.several(lambda: choices.of((1, 2, 3, 4, 5, 7, 17)), 1, 3))
    out = _view(choices, shape)
    inputs = tuple(out if choices.below(3) == 0 else _view(choices, shape) for _ in range(count))
    data_type = choices.of(("float32", "float16"))
    lowest = min(view.offset + _reach(shape, view.steps)[0] for view in (out, *inputs))
    out, *rest = (View(view.offset - lowest, view.steps) for view in (out, *inputs))
    size = max(view.offset + _reach(shape, view.steps)[1] for view in (out, *rest)) + 1
    same = choices.below(2) == 0
    return OnShared(function, attributes, data_type, shape, tuple(rest), out, same, size)


def _view(choices: Choices, shape: tuple[int, ...]) -> View:
    """Dimensions in any order in memory, sometimes backwards, repeated or with gaps; or any steps."""
    if choices.rarely(6):
        return View(choices.below(40), tuple(choices.between(0, 80) - 40 for _ in shape))
    steps, step = [0] * len(shape), choices.between(1, 2)
    for dimension in choices.shuffled(range(len(shape))[::-1]):
        if not choices.rarely(8):
            steps[dimension] = -step if choices.rarely(4) else step
            step *= shape[dimension]
    low, _ = _reach(shape, tuple(steps))
    return View(choices.below(4) * choices.of((1, shape[-1])) - low, tuple(steps))


def _reach(shape: tuple[int, ...], steps: tuple[int, ...]) -> tuple[int, int]:
    """The first and the last element of a view, from its offset."""
    ends = [(size - 1) * step for size, step in zip(shape, steps, strict=True)]
    return sum(min(end, 0) for end in ends), sum(max(end, 0) for end in ends)
