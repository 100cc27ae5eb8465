"""`ScatterElements` and `ScatterND` with a reduction, in NumPy.

DirectML's scatters replace elements. A reduction with DirectML's operators must sort the updates and takes
log2(n) passes over them: 24 ms for 800 rows of 384 updates, against 0.7 ms here. ROI_ALIGN_GRAD adds at
    computed offsets, but its error is
relative to the greatest update, and one NaN makes all its sums NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from opendml.errors import InvalidArgument
from opendml.frontends.onnx.node import OnnxNode
from opendml.frontends.onnx.values import Array
from opendml.spec.tensor_desc import packed_strides
from opendml.spec.wording import shown

FUNCTIONS: dict[str, np.ufunc] = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
"""The reductions of ONNX. A maximum or a minimum with NaN is NaN."""

_BLOCK = 1 << 16
"""Elements of a block, which stay in an L2 cache of 1 MiB together with their offsets."""

_LEAST_COLUMNS = 32
"""Elements of the smallest slice that is reduced as a row; smaller ones are reduced by element."""

_LEAST_ROUND = 1 << 10
"""Elements of the smallest round; below it, each row is reduced alone."""


def is_reduction(node: OnnxNode) -> bool:
    """Return whether the node is a scatter whose updates and elements are reduced."""
    is_scatter = not node.domain and node.operator in ("ScatterElements", "ScatterND")
    return is_scatter and node.attributes.get("reduction", "none") != "none"


def scatter_reduction_of(node: OnnxNode) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return the node as a function of the contents of tensors by name.

    The updates of one element are taken in an order that only the indices decide. Floats of 16 bits and less
    are reduced in float32 and rounded once.

    Raises (the function):
        InvalidArgument: an index out of range, or sizes, types or attributes that ONNX does not allow.
    """
    name = node.attributes["reduction"]
    is_by_tuples = node.operator == "ScatterND"

    def run(contents: Mapping[str, Any]) -> dict[str, Any]:
        if name not in FUNCTIONS:
            raise InvalidArgument(f"{node}: reduction {name!r}; must be one of none, {', '.join(FUNCTIONS)}")
        data, indices, updates = (_array(node, contents, number) for number in range(3))
        result = np.array(data, _accumulator(data.dtype), order="C")
        updates = np.ascontiguousarray(updates, result.dtype)
        with np.errstate(all="ignore"):
            (_by_tuples if is_by_tuples else _by_elements)(node, FUNCTIONS[name], result, indices, updates)
        return {node.outputs[0]: result.astype(data.dtype, copy=False)}

    return run


def _array(node: OnnxNode, contents: Mapping[str, Any], number: int) -> Array:
    """Return the content of an input."""
    found = contents.get(node.inputs[number]) if number < len(node.inputs) else None
    if not isinstance(found, np.ndarray) or found.dtype.kind in "OSU":
        raise InvalidArgument(f"{node}: input {number} is no tensor of numbers")
    if number == 1 and found.dtype.kind not in "iu":
        raise InvalidArgument(f"{node}: indices of type {found.dtype}; must be integers")
    return found


def _accumulator(type: np.dtype[Any]) -> np.dtype[Any]:
    """Return the accumulator type: float32 for float16 and for floats that NumPy lacks."""
    is_narrow = type == np.float16 or type.kind == "V" or (type.kind == "f" and type.itemsize < 4)
    return np.dtype(np.float32) if is_narrow else type


def _by_elements(node: OnnxNode, function: np.ufunc, result: Array, indices: Array, updates: Array) -> None:
    """Reduce elements of `result` with one update for each index along an axis."""
    axis, rank = node.attributes.get("axis", 0), result.ndim
    if not -rank <= axis < rank:
        raise InvalidArgument(f"{node}: axis {axis}; must be within [{-rank}, {rank - 1}]")
    axis %= rank
    others = [number for number in range(rank) if number != axis]
    is_within = indices.ndim == rank and all(indices.shape[each] <= result.shape[each] for each in others)
    if not is_within or updates.shape != indices.shape:
        raise _wrong_sizes(node, result, indices, updates)
    if not indices.size:
        return
    strides = packed_strides(result.shape)
    starts = [
        np.arange(size).reshape([-1 if each == number else 1 for each in range(rank)]) * strides[number]
        for number, size in enumerate(indices.shape)
    ]
    flat = result.reshape(-1)
    rows = max(1, _BLOCK * len(indices) // indices.size)
    for first in range(0, len(indices), rows):
        block = slice(first, first + rows)
        places = _counted_from_start(node, indices[block], result.shape[axis])
        if strides[axis] != 1:
            places = places * strides[axis]
        for number in others:
            places = places + (starts[number][block] if number == 0 else starts[number])
        function.at(flat, places.reshape(-1), updates[block].reshape(-1))


def _by_tuples(node: OnnxNode, function: np.ufunc, result: Array, indices: Array, updates: Array) -> None:
    """Reduce slices of `result` with one slice of updates for each tuple of indices."""
    length = indices.shape[-1] if indices.ndim else 0
    chosen, kept = result.shape[:length], result.shape[length:]
    if not 1 <= length <= result.ndim or updates.shape != indices.shape[:-1] + kept:
        raise _wrong_sizes(node, result, indices, updates)
    if not updates.size:
        return
    places = _counted_from_start(node, indices[..., 0], chosen[0])
    for number, size in enumerate(chosen[1:], 1):
        places = places * size + _counted_from_start(node, indices[..., number], size)
    columns = int(np.prod(kept))
    places, rows, slices = places.reshape(-1), result.reshape(-1, columns), updates.reshape(-1, columns)
    if columns < _LEAST_COLUMNS or slices.size < _LEAST_ROUND:
        elements = places if columns == 1 else (places[:, None] * columns + np.arange(columns)).reshape(-1)
        function.at(rows.reshape(-1), elements, slices.reshape(-1))
    else:
        _by_rows(function, rows, places, slices)


def _by_rows(function: np.ufunc, rows: Array, places: Array, slices: Array) -> None:
    """Reduce a block of rows with the first slice of each, then with the second of each, and so on.

    Rows lie in the order of how many slices they get, so each round works on the first rows of its block.
    That takes a third of the time of `ufunc.at`.
    """
    order = _order_of(places, len(rows))
    in_order = places[order]
    firsts = np.flatnonzero(np.concatenate([[True], in_order[1:] != in_order[:-1]]))
    counts = np.diff(firsts, append=len(places))
    by_count = _order_of(counts.max() - counts, len(places))
    firsts, counts = firsts[by_count], counts[by_count]
    size = max(1, _BLOCK // rows.shape[1])
    room = np.empty((size, rows.shape[1]), rows.dtype)
    for start in range(0, len(firsts), size):
        first, count = firsts[start : start + size], counts[start : start + size]
        reduced, done, left = rows[in_order[first]], 0, len(first)
        while left * rows.shape[1] >= _LEAST_ROUND:
            chosen = slices.take(order[first[:left] + done], 0, room[:left], "clip")
            function(reduced[:left], chosen, out=reduced[:left])
            done += 1
            left = int(np.searchsorted(-count, -done))
        for row in range(left):
            rest = slices[order[first[row] + done : first[row] + count[row]]]
            function(reduced[row], function.reduce(rest, dtype=rows.dtype), out=reduced[row])
        rows[in_order[first]] = reduced


def _order_of(numbers: Array, most: int) -> Array:
    """Return the stable order of numbers below `most`.

    NumPy sorts 16-bit integers by radix, in a tenth of the time of wider ones.
    """
    order = np.arange(len(numbers))
    for shift in range(0, most.bit_length(), 16):
        order = order[np.argsort((numbers[order] >> shift).astype(np.uint16), kind="stable")]
    return order


def _counted_from_start(node: OnnxNode, indices: Array, size: int) -> Array:
    """Return indices as INT64, with negative ones counted from the end."""
    least, most = indices.min(), indices.max()
    if least < -size or most >= size:
        wrong = most if most >= size else least
        raise InvalidArgument(f"{node}: index {wrong} is out of range; must be within [{-size}, {size - 1}]")
    wide: Array = indices.astype(np.int64, copy=False)
    return np.where(wide < 0, wide + size, wide) if least < 0 else wide


def _wrong_sizes(node: OnnxNode, data: Array, indices: Array, updates: Array) -> InvalidArgument:
    sizes = [shown(list(each.shape)) for each in (data, indices, updates)]
    return InvalidArgument(f"{node}: data {sizes[0]}, indices {sizes[1]} and updates {sizes[2]} do not fit")
