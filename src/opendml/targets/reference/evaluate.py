"""Evaluates a tensor program with NumPy: every float in float64, integers exactly, one rounding at the end.

FLOAT32 and FLOAT16 intermediates are not rounded: the program's conversions between float types say how a
machine computes, not what the operator means.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import setitem
from typing import Any

import numpy as np

from opendml.compiler.kernel import number_of
from opendml.errors import Unsupported
from opendml.host_memory import host_memory
from opendml.program.node import (
    PLACINGS,
    REDUCTIONS,
    SCANS,
    SEARCHES,
    STORED,
    Node,
    Operation,
    Recurrence,
    View,
    ordered,
)
from opendml.program.scalar_type import ScalarType

Array = np.ndarray[Any, np.dtype[Any]]


def evaluate(roots: Sequence[Node], inputs: Sequence[Array]) -> list[Array]:
    """Return the values of `roots`, in their own types and sizes, for logical `inputs` (any strides)."""
    with np.errstate(all="ignore"):
        return [
            np.broadcast_to(converted(value, root.type), root.sizes)
            for value, root in zip(_values(roots, inputs), roots, strict=True)
        ]


def _values(roots: Sequence[Node], inputs: Sequence[Array]) -> list[Array]:
    values: dict[int, Array] = {}
    for node in ordered(roots):
        if node.operation in (Operation.INDEX, Operation.VIEW):
            _require_memory(node)
        try:
            values[id(node)] = _value(node, [values[id(operand)] for operand in node.operands], inputs)
        except MemoryError as error:
            raise _out_of_memory(node, str(error)) from error
    return [values[id(root)] for root in roots]


def _require_memory(node: Node) -> None:
    """Check that as many places, and their parts, fit: systems hand out memory that they have not."""
    needed, there = 2 * 8 * math.prod(node.sizes), host_memory()
    if needed > there:
        raise _out_of_memory(node, f"{needed:,} bytes; this process may use {there:,}")


def _out_of_memory(node: Node, problem: str) -> Unsupported:
    what = f"{node.operation.name} of sizes {list(node.sizes)}"
    return Unsupported(f"the reference device has no memory for {what}: {problem}")


def _value(node: Node, operands: list[Array], inputs: Sequence[Array]) -> Array:
    """Return the value of a node: in its own type where it is an input or made of bits, else as `_wide` has
    it."""
    if node.operation is Operation.BITCAST:
        return converted(operands[0], node.operands[0].type).view(node.type.numpy)
    if node.operation is Operation.ROUND:
        return converted(operands[0], node.type)
    operands = [_wide(value, operand.type) for value, operand in zip(operands, node.operands, strict=True)]
    if node.operation in REDUCTIONS or node.operation in _WHOLE:
        # Repeated elements count as often as they are repeated.
        operands = [np.broadcast_to(a, b.sizes) for a, b in zip(operands, node.operands, strict=True)]
    if node.operation is Operation.SOURCE:
        return inputs[number_of(node)]
    if node.operation in _NODES:
        return np.asarray(_NODES[node.operation](node, *operands))
    if node.operation in _REDUCTIONS:
        # The type keeps NumPy from adding narrow integers in wider ones.
        reduce = _REDUCTIONS[node.operation]
        return np.asarray(reduce(operands[0], axis=node.attribute, keepdims=True)).astype(
            _numpy_type(node.type)
        )
    return np.asarray(_FUNCTIONS[node.operation](*operands))


def converted(value: Array, type: ScalarType) -> Array:
    """Return a value in the type's own elements: rounded to floats, truncated to integers, where it
    saturates."""
    if type.is_float or not np.issubdtype(value.dtype, np.floating):
        return value.astype(type.numpy, copy=False)
    limits = np.iinfo(type.numpy.name)
    # The greatest integers of 64 bits are no floats: what is not below the next power of two is out of range.
    above, below = value >= float(limits.max) + (type.bits < 64), value <= float(limits.min)
    inside = np.where(above | below | np.isnan(value), 0.0, value)
    return np.where(above, limits.max, np.where(below, limits.min, inside.astype(type.numpy))).astype(
        type.numpy
    )


def _affine(terms: Sequence[int], sizes: Sequence[int]) -> Array:
    """Return terms[0] + i . terms[1:] at every index i."""
    indices = np.indices(sizes, np.int64, sparse=True)
    return np.asarray(sum((i * step for i, step in zip(indices, terms[1:], strict=True)), np.int64(terms[0])))


def _view(view: View, sizes: Sequence[int], value: Array, *others: Array) -> Array:
    places = [
        _affine((offset, *steps), sizes) for offset, steps in zip(view.offsets, view.steps, strict=True)
    ]
    for dimension, index in zip(view.indexed, others[1:], strict=True):
        places[dimension] = places[dimension] + index
    if not others:
        return np.asarray(value[tuple(places)])
    inside = others[0]
    # What is outside is read at the index 0 and replaced.
    elements = value[tuple(np.where(inside, place, 0) for place in places)]
    return np.where(inside, elements, np.zeros_like(elements))


def _recurrence(steps: Recurrence, operands: Sequence[Array]) -> Array:
    states = [operands[0]]
    for number in range(steps.count):
        parts = [
            value[
                tuple(
                    slice(first + number * advance, first + number * advance + size)
                    for first, advance, size in zip(window.first, window.advance, window.sizes, strict=True)
                )
            ]
            for value, window in zip(operands[1:], steps.windows, strict=True)
        ]
        (made,) = _values([steps.body], [states[-1], *parts])
        states.append(np.broadcast_to(_wide(made, steps.body.type), operands[0].shape))
    return np.concatenate(states)


def _contraction(a: Array, b: Array, axes: tuple[int, ...]) -> Array:
    """Return the sum of a * b over the axes; dimensions of one operand alone are those of products of
    matrices."""
    letters = list(range(max(a.ndim, b.ndim)))
    terms: list[Any] = []
    for value in (a, b):
        own = [axis for axis in letters if value.shape[axis] > 1]
        terms += [value.reshape([value.shape[axis] for axis in own]), own]
    kept = [axis for axis in letters if axis not in axes and max(a.shape[axis], b.shape[axis]) > 1]
    sizes = [1 if axis in axes else max(a.shape[axis], b.shape[axis]) for axis in letters]
    return np.asarray(np.einsum(*terms, kept, optimize=True).reshape(sizes)).astype(a.dtype)


def _found(operation: Operation, x: Array, positions: Array, axes: tuple[int, ...]) -> Array:
    """Return the position of an extreme element over the axes: of equal ones, NaN among them, the first or
    last."""
    greatest = operation in (Operation.FIRST_GREATEST, Operation.LAST_GREATEST)
    last = operation in (Operation.LAST_LEAST, Operation.LAST_GREATEST)
    extreme = (np.max if greatest else np.min)(x, axis=axes, keepdims=True)
    is_extreme = (x == extreme) | (np.isnan(x) & np.isnan(extreme))
    limits = np.iinfo(positions.dtype)
    candidates = np.where(is_extreme, positions, limits.min if last else limits.max)
    return np.asarray((np.max if last else np.min)(candidates, axis=axes, keepdims=True))


def _scattered(
    result: Array, indices: Array, values: Array, axes: Sequence[int], put: Callable[..., object]
) -> Array:
    """Put values into `result` at their indices along the first of the axes, and at 0 along the others.

    Indices out of range are left out. `put` takes the result, an index for each dimension, and values.
    """
    indices, values = np.broadcast_arrays(indices, values)
    inside = (indices >= 0) & (indices < result.shape[axes[0]])
    places = list(np.nonzero(inside))
    for axis in axes:
        places[axis] = indices[inside] if axis == axes[0] else np.zeros_like(places[axis])
    put(result, tuple(places), values[inside].astype(result.dtype, copy=False))
    return result


def _last_positions(node: Node, indices: Array) -> Array:
    """Return for each index along an axis the last position that has it, or -1."""
    axis, _ = node.attribute  # type: ignore[misc]
    positions = np.arange(indices.shape[axis]).reshape([-1 if d == axis else 1 for d in range(indices.ndim)])
    result = np.full(node.sizes, -1, node.type.numpy)
    return _scattered(result, indices, positions, [axis], np.maximum.at)


def _positions(found: Array, axis: int, type: ScalarType) -> Array:
    """Return the positions along an axis that are true, in their order, and -1 behind them."""
    order = np.argsort(~found, axis=axis, kind="stable")
    return np.where(np.take_along_axis(found, order, axis), order, -1).astype(type.numpy)


def _top(x: Array, axis: int, count: int) -> Array:
    """Return the positions of the least elements along an axis, in their order."""
    return np.argsort(x, axis=axis, kind="stable").take(range(count), axis)


def _running(operation: Operation, x: Array, axis: int, exclusive: int, reverse: int) -> Array:
    """Return a running sum or product along an axis, in the type of x."""
    function = np.add if operation is Operation.RUNNING_SUM else np.multiply
    line = np.moveaxis(x, axis, 0)[:: -1 if reverse else 1]
    result = function.accumulate(line, axis=0, dtype=x.dtype)
    if exclusive:
        result = np.concatenate([np.full_like(line[:1], function.identity), result[:-1]])
    return np.moveaxis(result[:: -1 if reverse else 1], 0, axis)


def _numpy_type(type: ScalarType) -> np.dtype[Any]:
    return np.dtype(np.float64) if type.is_float else type.numpy


def _wide(value: Array, type: ScalarType) -> Array:
    """Return a value as it is computed with: floats in float64, integers in their own type."""
    if not type.is_float:
        return converted(value, type)
    if type is ScalarType.FLOAT32 and value.dtype.kind in "iu":
        # Of 64 bits float64 may have to round, and FLOAT32 again. FLOAT16 has no such great numbers.
        value = value.astype(np.float32)
    return value.astype(np.float64, copy=False)


def _quotient(a: Array, b: Array) -> Array:
    """Return a / b; of integers truncated, and all bits one where b is 0."""
    if a.dtype.kind == "f":
        return np.asarray(np.divide(a, b))
    whole = np.floor_divide(a, np.where(b == 0, 1, b).astype(b.dtype))
    is_below = (whole * b != a) & ((a < 0) != (b < 0))
    return np.where(b == 0, ~np.zeros_like(a), whole + is_below.astype(a.dtype))


def _remainder(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return np.asarray(np.fmod(a, b))
    is_minus_one = (b == -1) if b.dtype.kind == "i" else np.zeros(b.shape, bool)
    divisor = np.where((b == 0) | is_minus_one, 1, b).astype(b.dtype)
    return np.where(b == 0, a, np.fmod(a, divisor))


def _power(a: Array, b: Array) -> Array:
    # np.power takes the root for a power of a half, also of -infinity; a signaling NaN is not passed on.
    return np.where((a == 1) | (b == 0), 1.0, np.float_power(a, b))


def _error_function(x: Array) -> Array:
    return np.asarray(np.frompyfunc(math.erf, 1, 1)(x), np.float64)


def _gaussian_error_linear_unit(x: Array) -> Array:
    # erfc keeps the small probabilities that 1 + erf would cancel.
    probability = np.asarray(np.frompyfunc(math.erfc, 1, 1)(-x / math.sqrt(2)), np.float64) / 2
    return x * probability


_WHOLE = frozenset({Operation.RESHAPE}) | STORED | SCANS | PLACINGS

_NODES: dict[Operation, Callable[..., Any]] = {
    Operation.CONSTANT: lambda node: np.asarray(node.attribute, _numpy_type(node.type)),
    Operation.INDEX: lambda node: converted(_affine(node.attribute, node.sizes), node.type),
    Operation.VIEW: lambda node, *operands: _view(node.attribute, node.sizes, *operands),
    Operation.RESHAPE: lambda node, x: x.reshape(node.sizes),
    Operation.EXPAND: lambda node, x: np.broadcast_to(x, node.sizes),
    Operation.MATERIALIZE: lambda node, x: x,
    Operation.JOIN: lambda node, *operands: np.concatenate(operands, axis=node.attribute),
    Operation.RECURRENCE: lambda node, *operands: _recurrence(node.attribute, operands),
    Operation.CONTRACTION: lambda node, a, b: _contraction(a, b, node.attribute),
    Operation.CONVERT: lambda node, x: _wide(x, node.type),
    **dict.fromkeys(SEARCHES, lambda node, x, at: _found(node.operation, x, at, node.attribute)),
    **dict.fromkeys(SCANS, lambda node, x: _running(node.operation, x, *node.attribute)),
    Operation.SCATTER: _last_positions,
    Operation.SCATTER_SUM: lambda node, indices, values: _scattered(
        np.zeros(node.sizes, values.dtype), indices, values, node.attribute[:-1], np.add.at
    ),
    # Of several values of one element NumPy keeps the last.
    Operation.SCATTER_LAST: lambda node, indices, values, before: _scattered(
        np.array(np.broadcast_to(before, node.sizes)), indices, values, node.attribute[:1], setitem
    ),
    Operation.POSITIONS: lambda node, x: _positions(x, node.attribute[0], node.type),
    Operation.TOP: lambda node, x: _top(x, *node.attribute).astype(node.type.numpy),
}
"""The operations whose results depend on more of a node than its operands."""

_REDUCTIONS: dict[Operation, Callable[..., Any]] = {
    Operation.MEAN: np.mean,
    Operation.VARIANCE: np.var,
    Operation.SUM: np.sum,
    Operation.PRODUCT: np.prod,
    Operation.LEAST: np.min,
    Operation.GREATEST: np.max,
}

_FUNCTIONS: dict[Operation, Callable[..., Any]] = {
    Operation.ADD: np.add,
    Operation.SUBTRACT: np.subtract,
    Operation.MULTIPLY: np.multiply,
    Operation.DIVIDE: _quotient,
    Operation.REMAINDER: _remainder,
    Operation.MULTIPLY_ADD: lambda a, b, c: a * b + c,
    Operation.MINIMUM: np.minimum,
    Operation.MAXIMUM: np.maximum,
    Operation.NEGATE: np.negative,
    Operation.ABSOLUTE: np.abs,
    Operation.SQUARE_ROOT: np.sqrt,
    Operation.ROUND_EVEN: np.rint,
    Operation.FLOOR: np.floor,
    Operation.TRUNCATE: np.trunc,
    Operation.LESS: np.less,
    Operation.LESS_EQUAL: np.less_equal,
    Operation.EQUAL: np.equal,
    Operation.AND: np.bitwise_and,
    Operation.OR: np.bitwise_or,
    Operation.XOR: np.bitwise_xor,
    Operation.NOT: np.invert,
    Operation.COUNT_BITS: np.bitwise_count,
    Operation.SELECT: np.where,
    Operation.SHIFT_LEFT: np.left_shift,
    Operation.SHIFT_RIGHT: np.right_shift,
    Operation.EXPONENTIAL: np.exp,
    Operation.EXPONENTIAL_MINUS_ONE: np.expm1,
    Operation.SCALED_EXPONENTIAL: lambda x, factor: np.exp(x) * factor,
    Operation.LOGARITHM: np.log,
    Operation.LOGARITHM_ONE_PLUS: np.log1p,
    Operation.HYPERBOLIC_TANGENT: np.tanh,
    Operation.ERROR_FUNCTION: _error_function,
    Operation.LOGARITHM_ONE_PLUS_EXPONENTIAL: lambda x: np.log1p(np.exp(x)),
    Operation.GAUSSIAN_ERROR_LINEAR_UNIT: _gaussian_error_linear_unit,
    Operation.POWER: _power,
    Operation.SINE: np.sin,
    Operation.COSINE: np.cos,
    Operation.TANGENT: np.tan,
    Operation.ARC_SINE: np.arcsin,
    Operation.ARC_COSINE: np.arccos,
    Operation.ARC_TANGENT_YX: np.arctan2,
    Operation.HYPERBOLIC_SINE: np.sinh,
    Operation.HYPERBOLIC_COSINE: np.cosh,
    Operation.INVERSE_HYPERBOLIC_SINE: np.arcsinh,
    Operation.INVERSE_HYPERBOLIC_COSINE: np.arccosh,
    Operation.INVERSE_HYPERBOLIC_TANGENT: np.arctanh,
}
