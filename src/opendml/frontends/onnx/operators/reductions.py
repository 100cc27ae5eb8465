"""Reductions along axes, running sums, the greatest elements."""

from __future__ import annotations

from collections.abc import Callable

import opendml as dml
from opendml.frontends.onnx.conversion import Conversion, Result
from opendml.frontends.onnx.operators.shapes import axes_of
from opendml.frontends.onnx.registry import converts
from opendml.frontends.onnx.values import BOOLEAN
from opendml.runtime.graphs.tensor import GraphTensor

_REDUCTIONS = {
    "ReduceL1": "L1",
    "ReduceL2": "L2",
    "ReduceLogSum": "LOG_SUM",
    "ReduceLogSumExp": "LOG_SUM_EXP",
    "ReduceMax": "MAX",
    "ReduceMean": "AVERAGE",
    "ReduceMin": "MIN",
    "ReduceProd": "MULTIPLY",
    "ReduceSum": "SUM",
    "ReduceSumSquare": "SUM_SQUARE",
}


def _reduction(function: str, axes_are_input_since: int) -> Callable[[Conversion], Result]:
    def convert(node: Conversion) -> Result:
        sizes, type = node.sizes(0), node.type(0)
        axes = axes_of(node, len(sizes), axes_are_input_since)
        if not axes and not node.attribute("noop_with_empty_axes", 0):
            axes = list(range(len(sizes)))
        reduced = dml.reduce(node.tensor(0), function=function, axes=axes or [])
        kept = _kept(sizes, axes or [], bool(node.attribute("keepdims", 1)))
        return node.result(reduced, kept, BOOLEAN if type == BOOLEAN else None)

    return convert


for _name, _function in _REDUCTIONS.items():
    converts(_name)(_reduction(_function, 13 if _name == "ReduceSum" else 18))


def _kept(sizes: tuple[int, ...], axes: list[int], keeps: bool) -> list[int]:
    """The sizes of a reduced tensor."""
    return [1 if axis in axes else size for axis, size in enumerate(sizes) if keeps or axis not in axes]


def _extreme(function: Callable[..., GraphTensor]) -> Callable[[Conversion], Result]:
    def convert(node: Conversion) -> Result:
        sizes = node.sizes(0)
        axis = node.axis(node.attribute("axis", 0), max(1, len(sizes)))
        direction = "DECREASING" if node.attribute("select_last_index", 0) else "INCREASING"
        found = function(node.tensor(0), axes=[axis], axis_direction=direction, output_type=dml.INT64)
        return node.result(found, _kept(sizes, [axis], bool(node.attribute("keepdims", 1))))

    return convert


converts("ArgMax")(_extreme(dml.argmax))
converts("ArgMin")(_extreme(dml.argmin))


@converts("TopK")
def top_k(node: Conversion) -> Result:
    """The greatest or least elements along an axis, in order, and where they are."""
    sizes = node.sizes(0)
    count = node.known_list(1)[0] if node.version >= 10 else node.required("k")
    axis = node.axis(node.attribute("axis", -1), len(sizes))
    found = (*sizes[:axis], count, *sizes[axis + 1 :])
    if 0 in found:
        return node.empty(found, node.type(0)), node.empty(found, "int64")
    direction = "DECREASING" if node.attribute("largest", 1) else "INCREASING"
    values, indices = dml.top_k1(
        node.tensor(0), axis=axis, k=count, axis_direction=direction, output_type=dml.UINT64
    )
    return node.result(values), node.result(dml.cast(indices, output_type=dml.INT64))


def _running(function: Callable[..., GraphTensor], exclusive: str) -> Callable[[Conversion], Result]:
    def convert(node: Conversion) -> Result:
        axis = node.axis(node.known_list(1)[0], len(node.sizes(0)))
        direction = "DECREASING" if node.attribute("reverse", 0) else "INCREASING"
        options = {exclusive: bool(node.attribute("exclusive", 0))}
        return node.result(function(node.tensor(0), axis=axis, axis_direction=direction, **options))

    return convert


converts("CumSum", since=11)(_running(dml.cumulative_summation, "has_exclusive_sum"))
converts("CumProd")(_running(dml.cumulative_product, "has_exclusive_product"))
