"""Arithmetic on sizes that change: the operators by which models compute sizes, on numbers and `Size`s.

Models state sizes by nodes such as Shape, Gather, Mul and Concat. Here these keep the expressions of sizes.
Any other node reads the numbers of the present run, which guards that they stay the same.

Floats that are whole numbers for all sizes are integers here, guarded to be below the numbers that their type
cannot hold. Other floats are rounded to their type after each operation.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from opendml.frontends.onnx.evaluator_facts import facts_of
from opendml.frontends.onnx.node import OnnxNode
from opendml.frontends.onnx.operators.movement import slice_range
from opendml.frontends.onnx.values import Array, Known, KnownSizes, Value, known_numbers
from opendml.program.sizes import in_float_type, is_traced, square_root
from opendml.program.traced_floats import TracedFloat

_EXACT = {"float16": 2**11, "float32": 2**24, "float64": 2**53}
"""The greatest integers up to which a type holds all."""
_EXACT_NAMES = {"FLOAT32": "float32", "float": "float64"}
"""The types to which an operation of traced floats rounds."""
_MOST_ELEMENTS = 1024
"""Elements of the largest result that is computed here."""

Function = Callable[..., Any]


class _NotHere(Exception):  # noqa: N818 - says that another way computes a node
    """The arithmetic of sizes has no such case."""


def follows_from_sizes(node: OnnxNode, given: Sequence[Value | None]) -> bool:
    """Return whether an input follows from sizes that change, and the outputs may do so too.

    Other nodes compute few integers from the numbers of this run.
    """
    if not any(isinstance(each, KnownSizes) for each in given):
        return False
    if node.operator in ("Shape", "Size") or not all(
        each is None or isinstance(each, Known) for each in given
    ):
        return True
    counts = [math.prod(each.sizes) for each in given if each is not None and each.sizes is not None]
    return (
        node.operator in _OPERATORS.keys() | _OF_FLOATS.keys()
        or bool(facts_of(node).grows)
        or sum(counts) > _MOST_ELEMENTS
    )


def sizes_computed(node: OnnxNode, given: Sequence[Value | None]) -> dict[str, Value] | None:
    """Return the outputs of a node on known integers, of which some follow from sizes that change.

    None: no input does, or the node computes something else.
    """
    if node.domain or not any(isinstance(each, KnownSizes) for each in given):
        return None
    is_float = given[0] is not None and np.dtype(given[0].type).kind == "f"
    function = (_OF_FLOATS if is_float and node.operator in _OF_FLOATS else _OPERATORS).get(node.operator)
    if function is None:
        return None
    try:
        arrays = [None if each is None else _elements(each) for each in given]
        found = function(node, *arrays)
        type = _type_of(node, given)
    except (_NotHere, ArithmeticError, LookupError, TypeError, ValueError):
        return None  # A converter or the evaluator says what is wrong.
    results = found if isinstance(found, tuple) else (found,)
    if max(result.size for result in results) > _MOST_ELEMENTS:
        return None
    try:
        numbers = [[_in_type(each, type) for each in result.flat] for result in results]
    except _NotHere:
        return None
    named = zip(node.outputs, numbers, results, strict=False)
    return {name: known_numbers(listed, result.shape, type) for name, listed, result in named if name}


def _elements(value: Value) -> Array:
    """Return numbers as an array of Python's numbers and sizes."""
    if isinstance(value, KnownSizes):
        return value.elements
    if not isinstance(value, Known):
        raise _NotHere
    array = np.asarray(value.content)
    if array.dtype.kind not in "iubf" or array.size > _MOST_ELEMENTS:
        raise _NotHere
    elements = array.astype(object)
    if array.dtype.kind == "f":
        plain = [int(each) if each.is_integer() else each for each in array.astype(np.float64).flat]
        elements.reshape(-1)[:] = plain
    return elements


def _type_of(node: OnnxNode, given: Sequence[Value | None]) -> Any:
    if node.operator in _COMPARISONS:
        return np.bool_
    if node.operator == "Cast":
        return node.type_attribute("to")
    first = given[1 if node.operator == "Where" else 0]
    assert first is not None
    return first.type


def _in_type(number: Any, type: Any) -> Any:
    """Return a result in its type: a float that is whole and exact as an integer, others rounded."""
    kind = np.dtype(type).kind
    if kind in "iub":
        return number
    most = _EXACT.get(np.dtype(type).name)
    if most is None:
        raise _NotHere
    if isinstance(number, int):
        if not -most <= number <= most:
            raise _NotHere
        return number
    rounded = in_float_type(number, np.dtype(type).name.upper())
    return int(rounded) if not is_traced(rounded) and rounded.is_integer() else rounded


def _each(function: Callable[..., Any], *arrays: Array) -> Array:
    """Apply a function to the elements of arrays that are repeated to common sizes."""
    repeated = np.broadcast_arrays(*arrays)
    result = np.empty(repeated[0].shape, object)
    result.reshape(-1)[:] = [function(*each) for each in zip(*(each.flat for each in repeated), strict=True)]
    return result


def _of_each(function: Callable[..., Any]) -> Function:
    def compute(node: OnnxNode, *arrays: Array) -> Array:
        return (
            reduce(lambda a, b: _each(function, a, b), arrays)
            if len(arrays) > 1
            else _each(function, *arrays)
        )

    return compute


def _truncated(above: Any, below: Any) -> Any:
    """Return a quotient rounded towards 0."""
    quotient = abs(above) // abs(below)
    return quotient if (above >= 0) == (below > 0) else -quotient


def _quotient(above: Any, below: Any) -> Any:
    """Return a quotient of floats, which is an integer if it is whole for all sizes."""
    if isinstance(above, int) and isinstance(below, int):
        whole = above // below
        rest = above - whole * below
        if not is_traced(rest) and rest == 0:
            return whole
    return above / below


def _floor(number: Any) -> int:
    """Return a float rounded down, as an expression of sizes where it is a fraction of one."""
    above, below = _fraction(number)
    return above // below  # type: ignore[no-any-return]


def _ceiling(number: Any) -> int:
    above, below = _fraction(number)
    return -(-above // below)  # type: ignore[no-any-return]


def _fraction(number: Any) -> tuple[Any, Any]:
    """Return integers whose quotient, rounded up or down, is that of a number."""
    if isinstance(number, int):
        return number, 1
    if type(number) is TracedFloat and number.operation in _EXACT_NAMES:
        most, number = _EXACT[_EXACT_NAMES[number.operation]], number.operands[0]
        if type(number) is TracedFloat and number.operation in "*/":
            first, second = number.operands
            if number.operation == "*" and isinstance(first, float):
                first, second = second, first
            if number.operation == "*" and isinstance(first, int) and isinstance(second, float):
                above, second = second.as_integer_ratio()
                first = first * above
            # A quotient is rounded to a whole number in this type only if it is one.
            if isinstance(first, int) and isinstance(second, int) and second > 0 <= first < most - second:
                return first, second
    return math.floor(float(number)), 1


def _modulus(node: OnnxNode, a: Array, b: Array) -> Array:
    if node.attribute("fmod"):
        return _each(lambda above, below: above - _truncated(above, below) * below, a, b)
    return _each(operator.mod, a, b)


def _axes(node: OnnxNode, given: Sequence[Array | None], number: int = 1) -> list[int] | None:
    """Return axes that are an attribute or an input."""
    if len(given) > number and given[number] is not None:
        return [operator.index(each) for each in given[number].flat]  # type: ignore[union-attr]
    found: list[int] | None = node.attributes.get("axes")
    return found


def _squeeze(node: OnnxNode, *given: Array) -> Array:
    axes = _axes(node, given)
    return np.squeeze(given[0], None if axes is None else tuple(axes))


def _unsqueeze(node: OnnxNode, *given: Array) -> Array:
    axes = _axes(node, given)
    if axes is None:
        raise _NotHere
    return np.expand_dims(given[0], tuple(axes))


def _reshape(node: OnnxNode, data: Array, sizes: Array) -> Array:
    wanted = [operator.index(each) for each in sizes.flat]
    if not node.attribute("allowzero"):
        wanted = [data.shape[axis] if size == 0 else size for axis, size in enumerate(wanted)]
    return data.reshape(wanted)


def _concat(node: OnnxNode, *given: Array) -> Array:
    return np.concatenate(given, node.attributes["axis"])


def _gather(node: OnnxNode, data: Array, indices: Array) -> Array:
    plain = np.array([operator.index(each) for each in indices.flat], np.int64).reshape(indices.shape)
    found: Array = np.asarray(np.take(data, plain, node.attribute("axis") or 0), object)
    return found


def _plain(data: Array, number: Any) -> int:
    """Return an integer that decides how many elements of `data` a result has.

    Elements that do not follow from sizes are moved by a converter instead, for all values of the integer.
    """
    if is_traced(number) and not any(map(is_traced, data.flat)):
        raise _NotHere
    return operator.index(number)


def _slice(node: OnnxNode, data: Array, *given: Array | None) -> Array:
    if node.version < 10:
        starts, ends, axes = (node.attributes.get(name) for name in ("starts", "ends", "axes"))
        steps = None
    else:
        listed = [None if each is None else list(each.flat) for each in given]
        starts, ends, axes, steps = [*listed, None, None][:4]
    if starts is None or ends is None:
        raise _NotHere
    axes = range(len(starts)) if axes is None else axes
    for start, end, axis, step in zip(starts, ends, axes, steps or [1] * len(starts), strict=True):
        axis = operator.index(axis)
        places = slice_range(start, end, operator.index(step), data.shape[axis])
        first, length = _plain(data, places.first), _plain(data, places.length)
        data = data.take(range(first, first + length * places.step, places.step), axis)
    return data


def _split(node: OnnxNode, data: Array, *given: Array) -> tuple[Array, ...]:
    axis, count = node.attribute("axis") or 0, len(node.outputs)
    parts = given[0].tolist() if given else node.attributes.get("split")
    if parts is None:
        each = -(-data.shape[axis] // count)
        parts = [min(each, data.shape[axis] - number * each) for number in range(count)]
    ends = np.cumsum([operator.index(each) for each in parts])
    return tuple(np.split(data, ends[:-1], axis))


def _expand(node: OnnxNode, data: Array, sizes: Array) -> Array:
    wanted = tuple([_plain(data, each) for each in sizes.flat])
    return np.broadcast_to(data, np.broadcast_shapes(data.shape, wanted))


def _tile(node: OnnxNode, data: Array, repeats: Array) -> Array:
    return np.tile(data, [_plain(data, each) for each in repeats.flat])


def _reduced(function: Callable[[list[Any]], Any]) -> Function:
    def compute(node: OnnxNode, *given: Array) -> Array:
        data, axes = given[0], _axes(node, given)
        if data.ndim > 1 or (
            axes is not None and [axis % max(1, data.ndim) for axis in axes] not in ([0], [])
        ):
            raise _NotHere
        if not axes and node.attribute("noop_with_empty_axes"):
            return data
        result = np.empty((1,) * data.ndim if node.attribute("keepdims") else (), object)
        result[...] = function(list(data.flat))
        return result

    return compute


def _where(node: OnnxNode, *arrays: Array) -> Array:
    return _each(lambda condition, first, second: first if condition else second, *arrays)


def _same(node: OnnxNode, data: Array) -> Array:
    return data


def _cast(node: OnnxNode, data: Array) -> Array:
    type = node.type_attribute("to")
    if type is None or type.kind not in "iuf":
        raise _NotHere
    return data if type.kind == "f" else _each(lambda each: _truncated(*_fraction(each)), data)


def _transpose(node: OnnxNode, data: Array) -> Array:
    return np.transpose(data, node.attributes.get("perm"))


_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "Equal": operator.eq,
    "Greater": operator.gt,
    "GreaterOrEqual": operator.ge,
    "Less": operator.lt,
    "LessOrEqual": operator.le,
}

_OPERATORS: dict[str, Function] = {
    **{name: _of_each(function) for name, function in _COMPARISONS.items()},
    "Abs": _of_each(abs),
    "Add": _of_each(operator.add),
    "Cast": _cast,
    "Concat": _concat,
    "Div": _of_each(_truncated),
    "Expand": _expand,
    "Flatten": lambda node, data: data.reshape(1, -1) if data.ndim < 2 else _same(node, data),
    "Gather": _gather,
    "Identity": _same,
    "Max": _of_each(max),
    "Min": _of_each(min),
    "Mod": _modulus,
    "Mul": _of_each(operator.mul),
    "Neg": _of_each(operator.neg),
    "ReduceMax": _reduced(max),
    "ReduceMin": _reduced(min),
    "ReduceProd": _reduced(math.prod),
    "ReduceSum": _reduced(sum),
    "Reshape": _reshape,
    "Slice": _slice,
    "Split": _split,
    "Squeeze": _squeeze,
    "Sub": _of_each(operator.sub),
    "Sum": _of_each(operator.add),
    "Tile": _tile,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
    "Where": _where,
}

_OF_FLOATS: dict[str, Function] = {
    "Ceil": _of_each(_ceiling),
    "Div": _of_each(_quotient),
    "Floor": _of_each(_floor),
    "Reciprocal": _of_each(lambda each: _quotient(1, each)),
    "Sqrt": _of_each(square_root),
}
"""Functions of floats, where they differ from those of integers or there are none of these."""
