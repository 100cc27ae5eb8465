"""Activations: one value from one value. Each may stand alone or as the fused activation of another operator.

NaN gives NaN in all of them, also in those that compare: a comparison with NaN is false, and the false branch
keeps it.
"""

from __future__ import annotations

import math

from opendml.operators.registry import defines
from opendml.operators.scale_bias import in_floats
from opendml.program.common_math import at_least, at_most
from opendml.program.functions import (
    equal,
    exp,
    expm1,
    gaussian_error_linear_unit,
    log1p_exp,
    maximum,
    minimum,
    multiply_add,
    near_quotient,
    rarely,
    scaled,
    scaled_exp,
    select,
    tanh,
)
from opendml.program.node import Node


@defines("ACTIVATION_CELU")
def celu(x: Node, *, alpha: float) -> Node:
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1)), which is x from zero up, and the other part below

    So near to zero that the two parts do not differ, x itself is taken: x / alpha may be denormal there.
    Where the formula has no value its limit is taken: alpha = 0 is RELU, an infinite alpha the identity. With
    alpha = NaN everything is NaN.
    """
    if alpha == 0.0:
        return maximum(x, 0.0)
    if math.isinf(alpha):
        return x
    # What was rounded off a quotient of denormals could not be told.
    scale = 2.0**64 if abs(alpha) < 2.0**-64 else 1.0
    ratio = near_quotient(x if scale == 1.0 else x * scale, alpha * scale)
    below = alpha * expm1(at_most(ratio, 0.0) if alpha > 0.0 else ratio)
    if -1.0 < alpha < 0.0:
        # The exponential alone would overflow before its product does.
        below = select(x < _NEGLIGIBLE * -alpha, scaled_exp(ratio, alpha), below)
    return select(x > -abs(alpha) * 2.0**-60, x, below)


@defines("ACTIVATION_ELU")
def elu(x: Node, *, alpha: float) -> Node:
    """x where x >= 0, alpha * (exp(x) - 1) elsewhere"""
    return select(x >= 0.0, x, alpha * expm1(at_most(x, 0.0)))


@defines("ACTIVATION_GELU")
def gelu(x: Node) -> Node:
    """x * (1 + erf(x / sqrt 2)) / 2; NaN at -infinity, which is what the formula says there (-infinity *
    0)"""
    return gaussian_error_linear_unit(x)


@defines("ACTIVATION_HARD_SIGMOID")
def hard_sigmoid(x: Node, *, alpha: float, beta: float) -> Node:
    """max(0, min(alpha * x + beta, 1))"""
    return maximum(minimum(multiply_add(x, alpha, beta), 1.0), 0.0)


@defines("ACTIVATION_HARD_SWISH")
def hard_swish(x: Node, *, alpha: float, beta: float) -> Node:
    """x * max(0, min(alpha * x + beta, 1)); NaN where that is infinity * 0"""
    return x * hard_sigmoid(x, alpha=alpha, beta=beta)


@defines("ACTIVATION_IDENTITY")
def identity(x: Node) -> Node:
    """x"""
    return x


@defines("ACTIVATION_LEAKY_RELU")
def leaky_relu(x: Node, *, alpha: float) -> Node:
    """x where x >= 0, alpha * x elsewhere"""
    return select(x >= 0.0, x, alpha * x)


@defines("ACTIVATION_LINEAR")
def linear(x: Node, *, alpha: float, beta: float) -> Node:
    """alpha * x + beta"""
    return multiply_add(x, alpha, beta)


@defines("ACTIVATION_PARAMETERIZED_RELU")
def parameterized_relu(x: Node, slope: Node) -> Node:
    """x where x >= 0, slope * x elsewhere; integers wrap"""
    return select(x >= 0, x, slope * x)


@defines("ACTIVATION_PARAMETRIC_SOFTPLUS")
def parametric_softplus(x: Node, *, alpha: float, beta: float) -> Node:
    """alpha * ln(1 + exp(beta * x))

    The logarithm is above 0, so with an infinite alpha everything but NaN is alpha.
    """
    if math.isinf(alpha):
        return select(equal(x, x), beta if math.isnan(beta) else alpha, x)
    growing = scaled(_growing_part(x, beta), alpha * beta)
    if abs(alpha) <= 1.0:
        return multiply_add(_logistic_rest(x, beta), alpha, growing)
    return growing + _magnified_rest(x, beta, alpha, alpha * _logistic_rest(x, beta))


@defines("ACTIVATION_RELU")
def relu(x: Node) -> Node:
    """max(0, x)"""
    return maximum(x, 0.0)


@defines("ACTIVATION_RELU_GRAD")
def relu_grad(x: Node, gradient: Node) -> Node:
    """gradient where x > 0, 0 elsewhere, NaN included"""
    return select(x > 0, gradient, 0)


@defines("ACTIVATION_SCALED_ELU")
def scaled_elu(x: Node, *, alpha: float, gamma: float) -> Node:
    """gamma * x where x > 0, gamma * (alpha * exp(x) - alpha) elsewhere"""
    return select(x > 0.0, gamma * x, scaled(expm1(at_most(x, 0.0)), gamma * alpha))


@defines("ACTIVATION_SCALED_TANH")
def scaled_tanh(x: Node, *, alpha: float, beta: float) -> Node:
    """alpha * tanh(beta * x)"""
    argument = beta * x
    result = alpha * tanh(argument)
    if abs(alpha) <= 1.0:
        return result
    # A denormal argument has few digits, and alpha would show it.
    return select(abs(argument) < 2.0**-20, scaled(x, alpha * beta), result)


@defines("ACTIVATION_SHRINK")
def shrink(x: Node, *, bias: float, threshold: float) -> Node:
    """x - bias where x > threshold, x + bias where x < -threshold, 0 elsewhere

    Integers are computed in FLOAT64 and truncated, and saturate.
    """

    def shrunk(x: Node) -> Node:
        inside = select(x >= -threshold, 0.0, x + bias)
        return select(x > threshold, x - bias, inside)

    return in_floats(x, shrunk)


@defines("ACTIVATION_SIGMOID")
def sigmoid(x: Node) -> Node:
    """1 / (1 + exp(-x)), in a form that cannot overflow"""
    decay = exp(-abs(x))
    factor = select(x >= 0.0, 1.0, decay)
    return multiply_add(-factor, decay / (1.0 + decay), factor)


@defines("ACTIVATION_SOFTPLUS")
def softplus(x: Node, *, steepness: float) -> Node:
    """ln(1 + exp(steepness * x)) / steepness"""
    rest = scaled(_logistic_rest(x, steepness), 1.0 / steepness if steepness else math.inf)
    # Of a still smaller steepness and a finite x the rest is never small.
    if 2.0**-128 < abs(steepness) < 1.0:
        rest = _magnified_rest(x, steepness, 1.0 / steepness, rest)
    return _growing_part(x, steepness) + rest


@defines("ACTIVATION_SOFTSIGN")
def softsign(x: Node) -> Node:
    """x / (1 + |x|)"""
    return x / (1.0 + abs(x))


@defines("ACTIVATION_SWISH")
def swish(x: Node, *, sigmoid_input_scale: float) -> Node:
    """x / (1 + exp(-scale * x)), in a form that cannot overflow; NaN where that is infinity * 0"""
    argument = sigmoid_input_scale * x
    decay = -abs(argument)

    def weighted(decayed: Node, power: Node) -> Node:
        return select(argument >= 0.0, x, decayed) / (1.0 + power)

    power = exp(at_least(decay, _NEARLY_NOTHING))
    far = select(argument > -math.inf, weighted(scaled_exp(decay, x), scaled_exp(decay, 1.0)), 0.0 * x)
    return rarely(argument < _NEARLY_NOTHING, far, weighted(x * power, power))


@defines("ACTIVATION_TANH")
def hyperbolic_tangent(x: Node) -> Node:
    """tanh(x)"""
    return tanh(x)


@defines("ACTIVATION_THRESHOLDED_RELU")
def thresholded_relu(x: Node, *, alpha: float) -> Node:
    """x where x > alpha, 0 elsewhere"""
    return select(x <= alpha, 0.0, x)


def _growing_part(x: Node, factor: float) -> Node:
    """Return max(factor * x, 0) / factor, to which ln(1 + exp(factor * x)) / factor tends."""
    return minimum(x, 0.0) if factor < 0 else maximum(x, 0.0)


def _logistic_rest(x: Node, factor: float) -> Node:
    """Return ln(1 + exp(factor * x)) - max(factor * x, 0), which cannot overflow."""
    return log1p_exp(-abs(factor) * abs(x))


_NEARLY_NOTHING = -80.0
"""e to this power is no denormal number."""
_NEGLIGIBLE = -30.0
"""e to this power is nothing beside 1."""


def _magnified_rest(x: Node, factor: float, scale: float, rest: Node) -> Node:
    """Return `rest`, which is scale * _logistic_rest(x, factor), without denormal factors.

    Where _logistic_rest(x, factor) is denormal, the result is scale * exp(-|factor * x|).
    """
    exponent = -abs(factor) * abs(x)
    return select(exponent < _NEGLIGIBLE, scaled_exp(exponent, scale), rest)
