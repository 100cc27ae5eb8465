"""Evaluates a tensor program with NumPy: every float in float64, integers exactly, one rounding at the end.

FLOAT32 and FLOAT16 intermediates are not rounded: the program's conversions between float types say how a
machine computes, not
what the operator means.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opendml.program.node import Node, Operation, ordered
from opendml.program.scalar_type import ScalarType

Array = np.ndarray[Any, np.dtype[Any]]


def evaluate(roots: Sequence[Node], inputs: Sequence[Array]) -> list[Array]:
    """The values of `roots`, in their own types and sizes, for logical `inputs` (any strides)."""
    values: dict[int, Array] = {}
    with np.errstate(all="ignore"):
        for node in ordered(roots):
            values[id(node)] = _value(node, [values[id(operand)] for operand in node.operands], inputs)
        return [np.broadcast_to(values[id(root)].astype(root.type.numpy), root.sizes) for root in roots]


def _value(node: Node, operands: list[Array], inputs: Sequence[Array]) -> Array:
    match node.operation:
        case Operation.SOURCE if isinstance(node.attribute, int):
            return _wide(inputs[node.attribute], node.type)
        case Operation.CONSTANT:
            return np.asarray(node.attribute, _numpy_type(node.type))
        case Operation.CONVERT:
            return _wide(operands[0], node.type)
        case Operation.MEAN if isinstance(node.attribute, tuple):
            return np.asarray(operands[0].mean(axis=node.attribute, keepdims=True))
        case Operation.VARIANCE if isinstance(node.attribute, tuple):
            return np.asarray(operands[0].var(axis=node.attribute, keepdims=True))
    return np.asarray(_FUNCTIONS[node.operation](*operands))


def _numpy_type(type: ScalarType) -> np.dtype[Any]:
    return np.dtype(np.float64) if type.is_float else type.numpy


def _wide(value: Array, type: ScalarType) -> Array:
    return value.astype(_numpy_type(type), copy=False)


def _error_function(x: Array) -> Array:
    return np.asarray(np.frompyfunc(math.erf, 1, 1)(x), np.float64)


def _gaussian_error_linear_unit(x: Array) -> Array:
    # erfc keeps the small probabilities that 1 + erf would cancel.
    probability = np.asarray(np.frompyfunc(math.erfc, 1, 1)(-x / math.sqrt(2)), np.float64) / 2
    return np.where(np.isneginf(x), 0.0, x * probability)


_FUNCTIONS: dict[Operation, Callable[..., Any]] = {
    Operation.ADD: np.add,
    Operation.SUBTRACT: np.subtract,
    Operation.MULTIPLY: np.multiply,
    Operation.DIVIDE: np.divide,
    Operation.MULTIPLY_ADD: lambda a, b, c: a * b + c,
    Operation.MINIMUM: np.minimum,
    Operation.MAXIMUM: np.maximum,
    Operation.NEGATE: np.negative,
    Operation.ABSOLUTE: np.abs,
    Operation.SQUARE_ROOT: np.sqrt,
    Operation.ROUND_EVEN: np.rint,
    Operation.LESS: np.less,
    Operation.LESS_EQUAL: np.less_equal,
    Operation.EQUAL: np.equal,
    Operation.AND: np.bitwise_and,
    Operation.OR: np.bitwise_or,
    Operation.NOT: np.invert,
    Operation.SELECT: np.where,
    Operation.SHIFT_LEFT: np.left_shift,
    Operation.SHIFT_RIGHT: np.right_shift,
    Operation.EXPONENTIAL: np.exp,
    Operation.EXPONENTIAL_MINUS_ONE: np.expm1,
    Operation.LOGARITHM: np.log,
    Operation.LOGARITHM_ONE_PLUS: np.log1p,
    Operation.HYPERBOLIC_TANGENT: np.tanh,
    Operation.ERROR_FUNCTION: _error_function,
    Operation.LOGARITHM_ONE_PLUS_EXPONENTIAL: lambda x: np.log1p(np.exp(x)),
    Operation.GAUSSIAN_ERROR_LINEAR_UNIT: _gaussian_error_linear_unit,
}
