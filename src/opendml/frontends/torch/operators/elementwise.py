"""Element-wise operators: functions of one number, arithmetic, comparisons, choices."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

import opendml as dml
from opendml.frontends.torch.conversion import Conversion, NotExpressible
from opendml.frontends.torch.operators.operands import Operand, common_type, operands, with_rank
from opendml.frontends.torch.registry import Converter, converts
from opendml.runtime.graphs.tensor import GraphTensor

_aten = torch.ops.aten

_OF_FLOATS: dict[Any, Callable[[GraphTensor], GraphTensor]] = {
    _aten.acos.default: dml.element_wise_acos,
    _aten.acosh.default: dml.element_wise_acosh,
    _aten.asin.default: dml.element_wise_asin,
    _aten.asinh.default: dml.element_wise_asinh,
    _aten.atan.default: dml.element_wise_atan,
    _aten.atanh.default: dml.element_wise_atanh,
    _aten.cos.default: dml.element_wise_cos,
    _aten.cosh.default: dml.element_wise_cosh,
    _aten.erf.default: dml.element_wise_erf,
    _aten.exp.default: dml.element_wise_exp,
    _aten.log.default: dml.element_wise_log,
    _aten.reciprocal.default: dml.element_wise_recip,
    _aten.sigmoid.default: dml.activation_sigmoid,
    _aten.sin.default: dml.element_wise_sin,
    _aten.sinh.default: dml.element_wise_sinh,
    _aten.sqrt.default: dml.element_wise_sqrt,
    _aten.tan.default: dml.element_wise_tan,
    _aten.tanh.default: dml.activation_tanh,
}
"""Integers become floats before these."""

_OF_NUMBERS: dict[Any, Callable[[GraphTensor], GraphTensor]] = {
    _aten.abs.default: dml.element_wise_abs,
    _aten.neg.default: dml.element_wise_negate,
    _aten.relu.default: dml.activation_relu,
    _aten.sign.default: dml.element_wise_sign,
}

_ROUNDINGS: dict[Any, Callable[[GraphTensor], GraphTensor]] = {
    _aten.ceil.default: dml.element_wise_ceil,
    _aten.floor.default: dml.element_wise_floor,
    _aten.round.default: dml.element_wise_round,
    _aten.trunc.default: lambda x: dml.element_wise_round(x, rounding_mode="TOWARD_ZERO"),
}
"""Integers stay what they are."""


def _differs(x: GraphTensor, y: Operand) -> GraphTensor:
    return dml.element_wise_logical_not(dml.element_wise_logical_equals(x, y))


_COMPARISONS: dict[Any, Callable[..., GraphTensor]] = {
    _aten.eq: dml.element_wise_logical_equals,
    _aten.ge: dml.element_wise_logical_greater_than_or_equal,
    _aten.gt: dml.element_wise_logical_greater_than,
    _aten.le: dml.element_wise_logical_less_than_or_equal,
    _aten.lt: dml.element_wise_logical_less_than,
    _aten.ne: _differs,
}

_BITS: dict[Any, Callable[..., GraphTensor]] = {
    _aten.bitwise_and: dml.element_wise_bit_and,
    _aten.bitwise_or: dml.element_wise_bit_or,
    _aten.bitwise_xor: dml.element_wise_bit_xor,
}

_EXTREMES: dict[Any, Callable[..., GraphTensor]] = {
    _aten.maximum.default: dml.element_wise_max,
    _aten.minimum.default: dml.element_wise_min,
}
"""NaN where an operand is, as in PyTorch."""

_OF_TRUTH: dict[Any, Callable[..., GraphTensor]] = {
    _aten.logical_and.default: dml.element_wise_logical_and,
    _aten.logical_or.default: dml.element_wise_logical_or,
    _aten.logical_xor.default: dml.element_wise_logical_xor,
}


def _of_one(function: Callable[[GraphTensor], GraphTensor]) -> Converter:
    def convert(node: Conversion, x: GraphTensor) -> GraphTensor:
        return function(node.cast(x, node.dtype))

    return convert


def _rounding(function: Callable[[GraphTensor], GraphTensor]) -> Converter:
    def convert(node: Conversion, x: GraphTensor) -> GraphTensor:
        return function(x) if node.dtype.is_floating_point else x

    return convert


def _comparison(function: Callable[..., GraphTensor]) -> Converter:
    def convert(node: Conversion, x: GraphTensor, y: Operand) -> GraphTensor:
        return function(*operands(node, x, y, dtype=common_type(node)))

    return convert


def _of_two(function: Callable[..., GraphTensor]) -> Converter:
    def convert(node: Conversion, x: GraphTensor, y: Operand) -> GraphTensor:
        return function(*operands(node, x, y))

    return convert


for _operator, _function in (_OF_FLOATS | _OF_NUMBERS).items():
    converts(_operator)(_of_one(_function))
for _operator, _function in _ROUNDINGS.items():
    converts(_operator)(_rounding(_function))
for _operator, _pair in _COMPARISONS.items():
    converts(_operator.Tensor, _operator.Scalar)(_comparison(_pair))
for _operator, _pair in _EXTREMES.items():
    converts(_operator)(_of_two(_pair))
for _operator, _pair in _BITS.items():
    converts(_operator.Tensor, _operator.Scalar)(_of_two(_pair))


def truth(node: Conversion, x: GraphTensor, type: torch.dtype) -> GraphTensor:
    """Whether elements are not 0, as UINT8."""
    if type is torch.bool:
        return x
    return dml.element_wise_logical_not(dml.element_wise_logical_equals(x, 0))


def _of_truth(function: Callable[..., GraphTensor]) -> Converter:
    def convert(node: Conversion, x: GraphTensor, y: GraphTensor) -> GraphTensor:
        first, second = truth(node, x, node.given(0).dtype), truth(node, y, node.given(1).dtype)
        return function(*operands(node, first, second))

    return convert


for _operator, _both in _OF_TRUTH.items():
    converts(_operator)(_of_truth(_both))


@converts(_aten.logical_not.default)
def logical_not(node: Conversion, x: GraphTensor) -> GraphTensor:
    """1 where the element is 0."""
    return dml.element_wise_logical_not(truth(node, x, node.given(0).dtype))


@converts(_aten.bitwise_not.default)
def bitwise_not(node: Conversion, x: GraphTensor) -> GraphTensor:
    """Of truth values the opposite."""
    if node.dtype is torch.bool:
        return dml.element_wise_logical_not(x)
    return dml.element_wise_bit_not(x)


@converts(_aten.add.Tensor, _aten.add.Scalar)
def add(node: Conversion, x: GraphTensor, y: Operand, alpha: float = 1) -> GraphTensor:
    """x + alpha * y; of truth values whether one is true."""
    if node.dtype is torch.bool:
        return dml.element_wise_logical_or(*operands(node, x, y))
    return dml.element_wise_add(*_scaled(node, x, y, alpha))


@converts(_aten.sub.Tensor, _aten.sub.Scalar)
def subtract(node: Conversion, x: GraphTensor, y: Operand, alpha: float = 1) -> GraphTensor:
    """x - alpha * y"""
    return dml.element_wise_subtract(*_scaled(node, x, y, alpha))


@converts(_aten.rsub.Scalar)
def subtract_reversed(node: Conversion, x: GraphTensor, y: float, alpha: float = 1) -> GraphTensor:
    """y - alpha * x"""
    second, first = operands(node, x, y)
    return dml.element_wise_subtract(
        first, second if alpha == 1 else dml.element_wise_multiply(second, alpha)
    )


def _scaled(node: Conversion, x: GraphTensor, y: Operand, alpha: float) -> list[Operand]:
    first, second = operands(node, x, y)
    if alpha == 1:
        return [first, second]
    if isinstance(second, GraphTensor):
        return [first, dml.element_wise_multiply(second, alpha)]
    return [first, second * alpha]


@converts(_aten.mul.Tensor, _aten.mul.Scalar)
def multiply(node: Conversion, x: GraphTensor, y: Operand) -> GraphTensor:
    """x * y"""
    return dml.element_wise_multiply(*operands(node, x, y))


@converts(_aten.div.Tensor, _aten.div.Scalar)
def divide(node: Conversion, x: GraphTensor, y: Operand) -> GraphTensor:
    """x / y, of integers a float."""
    return dml.element_wise_divide(*operands(node, x, y))


@converts(_aten.div.Tensor_mode, _aten.div.Scalar_mode)
def divide_rounded(
    node: Conversion, x: GraphTensor, y: Operand, rounding_mode: str | None = None
) -> GraphTensor:
    """The quotient, rounded down or toward 0; of integers what the dividend without the rest has."""
    if rounding_mode is None:
        return divide(node, x, y)
    dividend, divisor = operands(node, x, y)
    if node.dtype.is_floating_point:
        quotient = dml.element_wise_divide(dividend, divisor)
        if rounding_mode == "floor":
            return dml.element_wise_floor(quotient)
        return dml.element_wise_round(quotient, rounding_mode="TOWARD_ZERO")
    is_floor = rounding_mode == "floor"
    rest = (dml.element_wise_modulus_floor if is_floor else dml.element_wise_modulus_truncate)(
        dividend, divisor
    )
    return dml.element_wise_divide(dml.element_wise_subtract(dividend, rest), divisor)


@converts(_aten.remainder.Tensor, _aten.remainder.Scalar)
def remainder(node: Conversion, x: GraphTensor, y: Operand) -> GraphTensor:
    """With the sign of y."""
    return dml.element_wise_modulus_floor(*operands(node, x, y))


@converts(_aten.fmod.Tensor, _aten.fmod.Scalar)
def fmod(node: Conversion, x: GraphTensor, y: Operand) -> GraphTensor:
    """With the sign of x."""
    return dml.element_wise_modulus_truncate(*operands(node, x, y))


@converts(_aten.atan2.default)
def atan2(node: Conversion, x: GraphTensor, y: GraphTensor) -> GraphTensor:
    """The angle of (y, x)."""
    return dml.element_wise_atan_yx(*operands(node, x, y))


@converts(_aten.pow.Tensor_Scalar)
def power(node: Conversion, x: GraphTensor, exponent: float) -> GraphTensor:
    """x to a constant power."""
    base = node.cast(x, node.dtype)
    if exponent == 2:
        return dml.element_wise_multiply(base, base)
    if exponent == 3:
        return dml.element_wise_multiply(dml.element_wise_multiply(base, base), base)
    if exponent == 0.5:
        return dml.element_wise_sqrt(base)
    return dml.element_wise_constant_pow(base, exponent=float(exponent))


@converts(_aten.pow.Tensor_Tensor, _aten.pow.Scalar)
def power_of(node: Conversion, x: Operand, exponent: GraphTensor) -> GraphTensor:
    """x to a power that differs from element to element."""
    return dml.element_wise_pow(*operands(node, x, exponent))


@converts(_aten.rsqrt.default)
def reciprocal_root(node: Conversion, x: GraphTensor) -> GraphTensor:
    """1 / sqrt(x)"""
    return dml.element_wise_recip(dml.element_wise_sqrt(node.cast(x, node.dtype)))


@converts(_aten.log2.default, _aten.log10.default)
def logarithm(node: Conversion, x: GraphTensor) -> GraphTensor:
    """log(x) / log(base)"""
    base = 2 if node.node.target is _aten.log2.default else 10
    return dml.element_wise_multiply(dml.element_wise_log(node.cast(x, node.dtype)), 1 / math.log(base))


@converts(_aten.expm1.default)
def exponential_less_one(node: Conversion, x: GraphTensor) -> GraphTensor:
    """exp(x) - 1, without losing small x: where u = exp(x) is rounded, so is x = log(u), by as much."""
    base = node.cast(x, node.dtype)
    power = dml.element_wise_exp(base)
    less = dml.element_wise_subtract(power, 1.0)
    exact = dml.element_wise_multiply(less, dml.element_wise_divide(base, dml.element_wise_log(power)))
    is_far = dml.element_wise_logical_greater_than(dml.element_wise_abs(base), 1.0)
    is_small = dml.element_wise_logical_equals(power, 1.0)
    return dml.element_wise_if(is_small, base, dml.element_wise_if(is_far, less, exact))


@converts(_aten.log1p.default)
def logarithm_of_one_more(node: Conversion, x: GraphTensor) -> GraphTensor:
    """log(1 + x), without losing small x: where u = 1 + x is rounded, so is x = u - 1, by as much."""
    base = node.cast(x, node.dtype)
    more = dml.element_wise_add(base, 1.0)
    ratio = dml.element_wise_divide(base, dml.element_wise_subtract(more, 1.0))
    logarithm = dml.element_wise_log(more)
    is_far = dml.element_wise_logical_greater_than(dml.element_wise_abs(base), 1.0)
    near = dml.element_wise_multiply(logarithm, ratio)
    is_small = dml.element_wise_logical_equals(more, 1.0)
    return dml.element_wise_if(is_small, base, dml.element_wise_if(is_far, logarithm, near))


@converts(_aten.isnan.default)
def is_nan(node: Conversion, x: GraphTensor) -> GraphTensor:
    """Whether elements are no numbers."""
    return dml.element_wise_is_nan(x)


@converts(_aten.isinf.default)
def is_infinite(node: Conversion, x: GraphTensor) -> GraphTensor:
    """Whether elements are infinite, of either sign."""
    return dml.element_wise_is_infinity(x)


@converts(_aten.where.self)
def where(node: Conversion, condition: GraphTensor, x: GraphTensor, y: GraphTensor) -> GraphTensor:
    """x where the condition holds, y elsewhere."""
    if node.given(0).dtype is not torch.bool:
        raise NotExpressible("a condition that is not of truth values")
    return dml.element_wise_if(*with_rank(condition, node.cast(x, node.dtype), node.cast(y, node.dtype)))


@converts(_aten.clamp.default, _aten.hardtanh.default)
def clamp(
    node: Conversion, x: GraphTensor, min: float | None = None, max: float | None = None
) -> GraphTensor:
    """x within bounds; NaN stays."""
    if node.node.target is _aten.hardtanh.default:
        min, max = (-1.0 if min is None else min), (1.0 if max is None else max)
    base = node.cast(x, node.dtype)
    if node.dtype.is_floating_point:
        low, high = (-math.inf if min is None else min), (math.inf if max is None else max)
    else:
        limits = torch.iinfo(node.dtype)
        low, high = (limits.min if min is None else min), (limits.max if max is None else max)
    return dml.element_wise_clip1(base, min=low, max=high)
