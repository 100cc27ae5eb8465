"""Random nodes of element-wise operators."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper

from tests.fuzz.onnx_draft import ANY, BOOLEAN, FLOATS, INTEGERS, NUMBERS, Draft, Made

_SMOOTH = ("Tanh", "Sigmoid", "Exp", "Erf", "Softplus", "Softsign", "Sin", "Cos", "Atan", "Sqrt", "Log")
_SMOOTH += ("Reciprocal", "Tan", "Asin", "Acos", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "Elu", "Selu")
_SMOOTH += ("Celu", "Gelu", "Mish", "HardSwish", "HardSigmoid", "Swish")
_STEPS = ("Floor", "Ceil", "Round", "Sign", "IsNaN", "IsInf", "ThresholdedRelu", "Shrink")


def smooth(draft: Draft) -> Made:
    """A function of each element."""
    operator, x = draft.choices.of(_SMOOTH), draft.pick()
    attributes: dict[str, Any] = {}
    if operator in ("Elu", "Celu") and draft.choices.below(2):
        attributes = {"alpha": draft.choices.of((0.5, 2.0))}
    if operator == "HardSigmoid" and draft.choices.below(2):
        attributes = {"alpha": 0.3, "beta": 0.4}
    if operator == "Gelu" and draft.choices.below(2):
        attributes = {"approximate": "tanh"}
    return Made(operator, [x.name], attributes)


def step(draft: Draft) -> Made:
    """A function of each element that jumps."""
    return Made(draft.choices.of(_STEPS), [draft.pick(exact=True).name], {}, True)


def sign(draft: Draft) -> Made:
    """A function of each element that is exact."""
    operator = draft.choices.of(("Relu", "Neg", "Abs", "Identity", "LeakyRelu"))
    x = draft.pick(FLOATS if operator in ("Relu", "LeakyRelu") else NUMBERS)
    return Made(operator, [x.name], {}, x.is_exact and operator != "LeakyRelu")


def binary(draft: Draft) -> Made:
    """An operation on two tensors that are broadcast."""
    operator = draft.choices.of(("Add", "Mul", "Sub", "Div", "Max", "Min", "Pow", "Mod", "PRelu"))
    x = draft.pick(FLOATS if operator == "PRelu" else NUMBERS, exact=operator == "Mod")
    y = draft.new(x.sizes, x.type, 1) if operator in ("Div", "Mod") else draft.like(x.sizes, x.type)
    if operator == "Mod":
        x = x if x.is_exact else draft.new(x.sizes, x.type)
        fmod = int(x.type.kind == "f" or draft.choices.below(2))
        return Made(operator, [x.name, y.name], {"fmod": fmod}, True)
    if operator == "Pow":
        y = draft.new(x.sizes[-1:], x.type, 0, 3 if x.type.kind != "f" else 8)
    inputs = [x.name, y.name]
    if operator in ("Add", "Mul", "Sub", "Max", "Min") and draft.choices.rarely(3):
        inputs.reverse()
    return Made(operator, inputs, {}, x.type.kind != "f" and x.is_exact and y.is_exact)


def variadic(draft: Draft) -> Made:
    """An operation on any number of tensors."""
    operator, x = draft.choices.of(("Sum", "Mean", "Max", "Min")), draft.pick()
    others = [draft.like(x.sizes, x.type).name for _ in range(draft.choices.below(3))]
    return Made(operator, draft.choices.shuffled([x.name, *others]), {})


def comparison(draft: Draft) -> Made:
    """Truth values of two tensors."""
    operator = draft.choices.of(("Less", "Greater", "Equal", "LessOrEqual", "GreaterOrEqual"))
    x = draft.pick(NUMBERS, exact=True)
    y = draft.like(x.sizes, x.type)
    return Made(operator, [x.name, (y if y.is_exact else x).name], {}, True)


def logical(draft: Draft) -> Made:
    """An operation on truth values."""
    operator, x = draft.choices.of(("And", "Or", "Xor", "Not")), draft.pick((BOOLEAN,))
    return Made(
        operator, [x.name, *([] if operator == "Not" else [draft.like(x.sizes, BOOLEAN).name])], {}, True
    )


def bitwise(draft: Draft) -> Made:
    """An operation on bits."""
    operator = draft.choices.of(("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot", "BitShift"))
    if operator == "BitShift":
        x = draft.new([draft.size()], draft.choices.of((np.uint8, np.uint32, np.uint64, np.uint16)))
        way = draft.choices.of(("LEFT", "RIGHT"))
        return Made(operator, [x.name, draft.new(x.sizes, x.type, 0, 7).name], {"direction": way}, True)
    x = draft.pick(INTEGERS)
    more = [] if operator == "BitwiseNot" else [draft.like(x.sizes, x.type).name]
    return Made(operator, [x.name, *more], {}, True)


def where(draft: Draft) -> Made:
    """A choice between two tensors."""
    x = draft.pick(ANY)
    y, condition = draft.like(x.sizes, x.type), draft.like(x.sizes, BOOLEAN)
    both = draft.choices.shuffled([x, y])
    return Made("Where", [condition.name, *(each.name for each in both)], {}, x.is_exact and y.is_exact)


def clip(draft: Draft) -> Made:
    """A tensor between bounds, either of which may be absent."""
    x = draft.pick(NUMBERS)
    low, high = (
        draft.new([], x.type, *each).name if draft.choices.below(3) else "" for each in ((-4, 0), (1, 5))
    )
    return Made("Clip", [x.name, low, high], {}, x.is_exact)


def cast(draft: Draft) -> Made:
    """Another type."""
    to = draft.choices.of(ANY)
    x = draft.pick(ANY, exact=to.kind != "f")
    if x.type.kind == "f" and to.kind == "u":
        to = np.dtype(np.int32)
    if draft.choices.rarely(4):
        return Made("CastLike", [x.name, draft.new([1], to).name], {}, x.is_exact)
    return Made("Cast", [x.name], {"to": helper.np_dtype_to_tensor_dtype(to)}, x.is_exact)
