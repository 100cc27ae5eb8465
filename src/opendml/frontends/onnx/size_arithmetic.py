"""Arithmetic on sizes that change: the operators by which models compute sizes, on integers and `Size`s.

Models state sizes by nodes such as Shape, Gather, Mul and Concat. Here these keep the expressions of sizes.
Any other node reads the numbers of the present run, which guards that they stay the same.
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
from opendml.frontends.onnx.values import Array, Known, KnownSizes, Value, known_numbers

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
    if not all(each is None or isinstance(each, Known) for each in given):
        return True
    counts = [math.prod(each.sizes) for each in given if each is not None and each.sizes is not None]
    return node.operator in _OPERATORS or bool(facts_of(node).grows) or sum(counts) > _MOST_ELEMENTS


def sizes_computed(node: OnnxNode, given: Sequence[Value | None]) -> dict[str, Value] | None:
    """Return the outputs of a node on known integers, of which some follow from sizes that change.

    None: no input does, or the node computes something else.
    """
    function = _OPERATORS.get(node.operator) if not node.domain else None
    if function is None or not any(isinstance(each, KnownSizes) for each in given):
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
    named = zip(node.outputs, results, strict=False)
    return {name: known_numbers(result.flat, result.shape, type) for name, result in named if name}


def _elements(value: Value) -> Array:
    """Return integers as an array of Python's integers and sizes."""
    if isinstance(value, KnownSizes):
        return value.elements
    if not isinstance(value, Known):
        raise _NotHere
    array = np.asarray(value.content)
    if array.dtype.kind not in "iub" or array.size > _MOST_ELEMENTS:
        raise _NotHere
    return array.astype(object)


def _type_of(node: OnnxNode, given: Sequence[Value | None]) -> Any:
    if node.operator in _COMPARISONS:
        return np.bool_
    if node.operator == "Cast":
        type = node.type_attribute("to")
        if type is None or type.kind not in "iu":
            raise _NotHere
        return type
    first = given[1 if node.operator == "Where" else 0]
    assert first is not None
    return first.type


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


def _divide(above: Any, below: Any) -> Any:
    """Return a quotient rounded towards 0."""
    quotient = abs(above) // abs(below)
    return quotient if (above >= 0) == (below > 0) else -quotient


def _modulus(node: OnnxNode, a: Array, b: Array) -> Array:
    if node.attribute("fmod"):
        return _each(lambda above, below: above - _divide(above, below) * below, a, b)
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
    taken = [slice(None)] * data.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps or [1] * len(starts), strict=True):
        taken[axis] = slice(operator.index(start), operator.index(end), operator.index(step))
    return data[tuple(taken)]


def _split(node: OnnxNode, data: Array, *given: Array) -> tuple[Array, ...]:
    axis, count = node.attribute("axis") or 0, len(node.outputs)
    parts = given[0].tolist() if given else node.attributes.get("split")
    if parts is None:
        each = -(-data.shape[axis] // count)
        parts = [min(each, data.shape[axis] - number * each) for number in range(count)]
    ends = np.cumsum([operator.index(each) for each in parts])
    return tuple(np.split(data, ends[:-1], axis))


def _expand(node: OnnxNode, data: Array, sizes: Array) -> Array:
    wanted = tuple([operator.index(each) for each in sizes.flat])
    return np.broadcast_to(data, np.broadcast_shapes(data.shape, wanted))


def _tile(node: OnnxNode, data: Array, repeats: Array) -> Array:
    return np.tile(data, [operator.index(each) for each in repeats.flat])


def _reduced(function: Callable[[list[Any]], Any]) -> Function:
    def compute(node: OnnxNode, *given: Array) -> Array:
        data, axes = given[0], _axes(node, given)
        if data.ndim > 1 or (
            axes is not None and [axis % max(1, data.ndim) for axis in axes] not in ([0], [])
        ):
            raise _NotHere
        if axes == [] or (axes is None and node.attribute("noop_with_empty_axes")):
            return data
        result = np.empty((1,) * data.ndim if node.attribute("keepdims") else (), object)
        result[...] = function(list(data.flat))
        return result

    return compute


def _where(node: OnnxNode, *arrays: Array) -> Array:
    return _each(lambda condition, first, second: first if condition else second, *arrays)


def _same(node: OnnxNode, data: Array) -> Array:
    return data


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
    "Cast": _same,
    "Concat": _concat,
    "Div": _of_each(_divide),
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
