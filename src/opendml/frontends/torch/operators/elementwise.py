"""Element-wise operators: functions of one number, arithmetic, comparisons, choices."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from opendml.frontends.common.calls import dml
from opendml.frontends.common.functions import SAME_NAME
from opendml.frontends.common.tensors import aligned
from opendml.frontends.common.types import NotExpressible
from opendml.frontends.torch.registry import Converter, Operand, Tensor, TorchNode, converts
from opendml.program.scalar_type import ScalarType

Function = Callable[..., Tensor]

_ROUNDINGS: dict[str, Function] = {
    **{name: SAME_NAME[name] for name in ("ceil", "floor", "round")},
    "trunc": partial(dml.element_wise_round, rounding_mode="TOWARD_ZERO"),
}
"""Functions that leave integers as they are."""

_ONE_TENSOR: dict[str, Function] = {
    **{name: function for name, function in SAME_NAME.items() if name not in _ROUNDINGS},
    "abs": dml.element_wise_abs,
    "neg": dml.element_wise_negate,
    "reciprocal": dml.element_wise_recip,
    "hardsigmoid": partial(dml.activation_hard_sigmoid, alpha=1 / 6, beta=0.5),
    "hardswish": partial(dml.activation_hard_swish, alpha=1 / 6, beta=0.5),
    "relu": dml.activation_relu,
    "sigmoid": dml.activation_sigmoid,
    "silu": dml.activation_swish,
    "tanh": dml.activation_tanh,
}
"""Functions in the type of the output, so most make floats of integers first."""

_COMPARISONS: dict[str, Function] = {
    "eq.Scalar eq.Tensor": dml.element_wise_logical_equals,
    "ge.Scalar ge.Tensor": dml.element_wise_logical_greater_than_or_equal,
    "gt.Scalar gt.Tensor": dml.element_wise_logical_greater_than,
    "le.Scalar le.Tensor": dml.element_wise_logical_less_than_or_equal,
    "lt.Scalar lt.Tensor": dml.element_wise_logical_less_than,
}

_TWO_TENSORS: dict[str, Function] = {
    "atan2": dml.element_wise_atan_yx,
    "bitwise_and.Scalar bitwise_and.Tensor": dml.element_wise_bit_and,
    "bitwise_or.Scalar bitwise_or.Tensor": dml.element_wise_bit_or,
    "bitwise_xor.Scalar bitwise_xor.Tensor": dml.element_wise_bit_xor,
    "div.Scalar div.Tensor": dml.element_wise_divide,
    "fmod.Scalar fmod.Tensor": dml.element_wise_modulus_truncate,
    "maximum": dml.element_wise_max,
    "minimum": dml.element_wise_min,
    "mul.Scalar mul.Tensor": dml.element_wise_multiply,
    "pow.Scalar pow.Tensor_Tensor": dml.element_wise_pow,
    "remainder.Scalar remainder.Tensor": dml.element_wise_modulus_floor,
}
"""Functions in the type of the output. The extremes are NaN where an operand is, as in PyTorch."""

_TESTS: dict[str, Function] = {"isinf": dml.element_wise_is_infinity, "isnan": dml.element_wise_is_nan}

_OF_TRUTH: dict[str, Function] = {
    "logical_and": dml.element_wise_logical_and,
    "logical_or": dml.element_wise_logical_or,
    "logical_xor": dml.element_wise_logical_xor,
}


_OPERANDS: tuple[tuple[dict[str, Function], Callable[..., list[Operand]]], ...] = (
    (_ONE_TENSOR, lambda node, x: [node.cast(x)]),
    (_TESTS, lambda node, x: [x]),
    (_COMPARISONS, lambda node, x, y: node.operands(x, y, type=node.common_type)),
    (_TWO_TENSORS, lambda node, x, y: node.operands(x, y)),
    (_OF_TRUTH, lambda node, x, y: node.operands(node.truth(x, 0), node.truth(y, 1))),
)
"""The tables, and what their functions take for the arguments of PyTorch's operators."""


def _converter(function: Function, operands: Callable[..., list[Operand]]) -> Converter:
    return lambda node, *given: function(*operands(node, *given))


def _rounding(function: Function) -> Converter:
    return lambda node, x: function(x) if node.is_float else x


for _table, _operands in _OPERANDS:
    for _names, _function in _table.items():
        converts(*_names.split(), to=_function)(_converter(_function, _operands))
converts("ne.Tensor", "ne.Scalar")(_converter(operator.ne, _OPERANDS[2][1]))
for _name, _function in _ROUNDINGS.items():
    converts(_name, to=_function)(_rounding(_function))


@converts("logical_not", to="ELEMENT_WISE_LOGICAL_NOT")
def logical_not(node: TorchNode, x: Tensor) -> Tensor:
    """Convert 1 where the element is 0."""
    return dml.element_wise_logical_not(node.truth(x, 0))


@converts("bitwise_not", to="ELEMENT_WISE_BIT_NOT")
def bitwise_not(node: TorchNode, x: Tensor) -> Tensor:
    """Convert the inverse bits; of truth values the opposite."""
    return dml.element_wise_logical_not(x) if node.is_truth else dml.element_wise_bit_not(x)


@converts("add.Tensor", "add.Scalar", to="ELEMENT_WISE_ADD")
def add(node: TorchNode, x: Tensor, y: Operand, alpha: float = 1) -> Tensor:
    """Convert x + alpha * y; of truth values whether one is true."""
    if node.is_truth:
        return dml.element_wise_logical_or(*node.operands(x, y))
    first, second = node.operands(x, y)
    return dml.element_wise_add(first, second if alpha == 1 else second * alpha)


@converts("sub.Tensor", "sub.Scalar", to="ELEMENT_WISE_SUBTRACT")
def subtract(node: TorchNode, x: Tensor, y: Operand, alpha: float = 1) -> Tensor:
    """Convert x - alpha * y."""
    first, second = node.operands(x, y)
    return dml.element_wise_subtract(first, second if alpha == 1 else second * alpha)


@converts("rsub.Scalar")
def subtract_reversed(node: TorchNode, x: Tensor, y: float, alpha: float = 1) -> Tensor:
    """Convert y - alpha * x."""
    second, first = node.operands(x, y)
    return dml.element_wise_subtract(first, second if alpha == 1 else second * alpha)


@converts("div.Tensor_mode", "div.Scalar_mode")
def divide_rounded(node: TorchNode, x: Tensor, y: Operand, rounding_mode: str | None = None) -> Tensor:
    """Convert the quotient, rounded down or toward 0.

    Of integers it is the quotient of the dividend without the rest, which is exact.
    """
    dividend, divisor = node.operands(x, y)
    is_floor = rounding_mode == "floor"
    if rounding_mode is None or node.is_float:
        quotient = dml.element_wise_divide(dividend, divisor)
        return quotient if rounding_mode is None else _ROUNDINGS["floor" if is_floor else "trunc"](quotient)
    modulus = dml.element_wise_modulus_floor if is_floor else dml.element_wise_modulus_truncate
    return dml.element_wise_divide(dividend - modulus(dividend, divisor), divisor)


@converts("pow.Tensor_Scalar", to="ELEMENT_WISE_CONSTANT_POW")
def power(node: TorchNode, x: Tensor, exponent: float) -> Tensor:
    """Convert x to a constant power."""
    base = node.cast(x)
    if exponent in (2, 3):
        return base * base if exponent == 2 else base * base * base
    if exponent == 0.5:
        return dml.element_wise_sqrt(base)
    return dml.element_wise_constant_pow(base, exponent=float(exponent))


@converts("rsqrt", to="ELEMENT_WISE_SQRT ELEMENT_WISE_RECIP")
def reciprocal_root(node: TorchNode, x: Tensor) -> Tensor:
    """Convert 1 / sqrt(x)."""
    return dml.element_wise_recip(dml.element_wise_sqrt(node.cast(x)))


def _logarithm(base: int) -> Converter:
    def convert(node: TorchNode, x: Tensor) -> Tensor:
        return dml.element_wise_log(node.cast(x)) * (1 / math.log(base))

    return convert


converts("log2")(_logarithm(2))
converts("log10")(_logarithm(10))


@converts("expm1")
def exponential_less_one(node: TorchNode, x: Tensor) -> Tensor:
    """Convert exp(x) - 1 without losing small x.

    Where u = exp(x) is rounded, so is log(u), by as much.
    """
    base = node.cast(x)
    power = dml.element_wise_exp(base)
    less = power - 1.0
    exact = less * (base / dml.element_wise_log(power))
    return dml.element_wise_if(power == 1.0, base, dml.element_wise_if(abs(base) > 1.0, less, exact))


@converts("log1p")
def logarithm_of_one_more(node: TorchNode, x: Tensor) -> Tensor:
    """Convert log(1 + x) without losing small x.

    Where u = 1 + x is rounded, so is u - 1, by as much.
    """
    base = node.cast(x)
    more = base + 1.0
    logarithm = dml.element_wise_log(more)
    near = logarithm * (base / (more - 1.0))
    return dml.element_wise_if(more == 1.0, base, dml.element_wise_if(abs(base) > 1.0, logarithm, near))


@converts("where.self", to="ELEMENT_WISE_IF")
def where(node: TorchNode, condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Convert x where the condition holds, y elsewhere."""
    if not node.is_truth_value(0):
        raise NotExpressible("a condition that is not of truth values")
    return dml.element_wise_if(*aligned(condition, node.cast(x), node.cast(y)))


@converts("clamp", to="ELEMENT_WISE_CLIP1")
def clamp(node: TorchNode, x: Tensor, min: float | None = None, max: float | None = None) -> Tensor:
    """Convert x within bounds; NaN stays."""
    limits: Any = np.iinfo(ScalarType.of(node.data_type).numpy) if not node.is_float else None
    least = min if min is not None else -math.inf if limits is None else limits.min
    most = max if max is not None else math.inf if limits is None else limits.max
    return dml.element_wise_clip1(node.cast(x), min=least, max=most)


@converts("hardtanh", to="ELEMENT_WISE_CLIP1")
def hard_tanh(node: TorchNode, x: Tensor, min: float = -1, max: float = 1) -> Tensor:
    """Convert x within bounds that have defaults."""
    return clamp(node, x, min, max)
