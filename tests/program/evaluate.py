"""Evaluates element-wise nodes with NumPy as a machine must: each operation in its own type, rounded once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opendml.program.node import FUNCTIONS, LookupTable, Node, Operation, ordered, rebuild
from opendml.program.vector_math import expand

Array = np.ndarray[Any, np.dtype[Any]]

_BLOCK = 1 << 15
"""Elements that are evaluated at a time: few enough to stay in the cache."""


def expanded(root: Node) -> Node:
    """The same value in basic operations."""
    return rebuild([root], lambda node: expand(node) if node.operation in FUNCTIONS else node)[0]


def evaluate(root: Node, *inputs: Array) -> Array:
    """The value of `root`, which has basic operations only, for one-dimensional inputs of equal length."""
    result = np.empty(len(inputs[0]), root.type.numpy)
    for start in range(0, len(result), _BLOCK):
        block = slice(start, start + _BLOCK)
        result[block] = _evaluate_block(root, [values[block] for values in inputs])
    return result


def _evaluate_block(root: Node, inputs: list[Array]) -> Array:
    values: dict[int, Array] = {}
    with np.errstate(all="ignore"):
        for node in ordered([root]):
            values[id(node)] = _value(node, [values[id(operand)] for operand in node.operands], inputs)
    return values[id(root)]


def _value(node: Node, operands: list[Array], inputs: list[Array]) -> Array:
    match node.operation:
        case Operation.SOURCE:
            assert isinstance(node.attribute, int)
            return inputs[node.attribute]
        case Operation.CONSTANT:
            return np.full(1, node.attribute, node.type.numpy)
        case Operation.CONVERT:
            return operands[0].astype(node.type.numpy)
        case Operation.BITCAST:
            return operands[0].view(node.type.numpy)
        case Operation.SCALE:
            value, n = (operand.astype(np.float64) for operand in operands)
            return np.asarray(value * np.exp2(n), np.float32)
        case Operation.EXPONENT:
            n = np.frexp(operands[0])[1] - np.float32(1)
            special = ~np.isfinite(operands[0]) | (operands[0] == 0)
            return np.where(special, np.log2(np.abs(operands[0])), n).astype(np.float32)
        case Operation.SIGNIFICAND:
            significand = np.where(
                np.isinf(operands[0]) | (operands[0] == 0), 1, np.frexp(operands[0])[0] * 2
            )
            return np.where(operands[0] < 0, np.float32(np.nan), significand.astype(np.float32))
        case Operation.LOOKUP:
            assert isinstance(node.attribute, LookupTable)
            entries = np.array(node.attribute.entries, np.float32)
            return np.asarray(entries[operands[0] & (entries.size - 1)])
    return np.asarray(_FUNCTIONS[node.operation](*operands))


def _multiply_add(a: Array, b: Array, c: Array) -> Array:
    """a * b + c, rounded once; float64 occur only with exact products.

    The product is exact in float64. The sum is rounded to odd there: where it is inexact its last bit becomes
    1, so that the second rounding, to float32, sees on which side of a tie it was.
    """
    product = a.astype(np.float64) * b
    total = product + c
    if a.dtype == np.float64:
        return total
    rest = total - product
    error = (product - (total - rest)) + (c - rest)
    bits = total.view(np.int64)
    inexact_and_even = (error != 0) & np.isfinite(error) & (bits & 1 == 0)
    step = np.where((error > 0) == (total > 0), 1, -1)
    return np.where(inexact_and_even, bits + step, bits).view(np.float64).astype(np.float32)


_FUNCTIONS: dict[Operation, Callable[..., Any]] = {
    Operation.ADD: np.add,
    Operation.SUBTRACT: np.subtract,
    Operation.MULTIPLY: np.multiply,
    Operation.DIVIDE: np.divide,
    Operation.MULTIPLY_ADD: _multiply_add,
    Operation.NEGATE: np.negative,
    Operation.ABSOLUTE: np.abs,
    Operation.SQUARE_ROOT: np.sqrt,
    Operation.ROUND_EVEN: np.rint,
    Operation.TRUNCATE: np.trunc,
    Operation.MAXIMUM: np.maximum,
    Operation.LESS: np.less,
    Operation.LESS_EQUAL: np.less_equal,
    Operation.EQUAL: np.equal,
    Operation.AND: np.bitwise_and,
    Operation.OR: np.bitwise_or,
    Operation.XOR: np.bitwise_xor,
    Operation.NOT: np.bitwise_not,
    Operation.SELECT: np.where,
    Operation.SHIFT_LEFT: np.left_shift,
    Operation.SHIFT_RIGHT: np.right_shift,
}
