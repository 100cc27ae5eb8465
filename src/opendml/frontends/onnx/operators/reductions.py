"""Reductions along axes, running sums, the greatest elements."""

from __future__ import annotations

from collections.abc import Callable

from opendml.frontends.common.calls import dml
from opendml.frontends.onnx.conversion import OnnxConversion, Result
from opendml.frontends.onnx.operators.shapes import axes_of
from opendml.frontends.onnx.registry import Converter, converts
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


def _kept(node: OnnxConversion, axes: list[int]) -> list[int]:
    """Return the sizes of input 0 reduced over axes, as `keepdims` says."""
    keeps = node.flag("keepdims")
    each = enumerate(node.sizes(0))
    return [1 if axis in axes else size for axis, size in each if keeps or axis not in axes]


def _reduction(function: str, axes_are_input_since: int) -> Converter:
    def convert(node: OnnxConversion) -> Result:
        rank = len(node.sizes(0))
        axes = axes_of(node, rank, axes_are_input_since) or []
        if not axes and not node.flag("noop_with_empty_axes"):
            axes = list(range(rank))
        reduced = dml.reduce(node.tensor(0), function=function, axes=axes)
        return node.result(reduced, _kept(node, axes), BOOLEAN if node.type(0) == BOOLEAN else None)

    return convert


def _extreme(function: Callable[..., GraphTensor]) -> Converter:
    def convert(node: OnnxConversion) -> Result:
        axis = node.axis_attribute(max(1, len(node.sizes(0))))
        direction = "DECREASING" if node.flag("select_last_index") else "INCREASING"
        found = function(node.tensor(0), axes=[axis], axis_direction=direction, output_type="INT64")
        return node.result(found, _kept(node, [axis]))

    return convert


def _running(function: Callable[..., GraphTensor], exclusive: str) -> Converter:
    def convert(node: OnnxConversion) -> Result:
        axis = node.axis(node.known_integer(1), len(node.sizes(0)))
        direction = "DECREASING" if node.flag("reverse") else "INCREASING"
        options = {exclusive: node.flag("exclusive")}
        return node.result(function(node.tensor(0), axis=axis, axis_direction=direction, **options))

    return convert


for _name, _function in _REDUCTIONS.items():
    converts(_name, to="REDUCE")(_reduction(_function, 13 if _name == "ReduceSum" else 18))
converts("ArgMax", to=dml.argmax)(_extreme(dml.argmax))
converts("ArgMin", to=dml.argmin)(_extreme(dml.argmin))
converts("CumSum", since=11, to=dml.cumulative_summation)(
    _running(dml.cumulative_summation, "has_exclusive_sum")
)
converts("CumProd", to=dml.cumulative_product)(_running(dml.cumulative_product, "has_exclusive_product"))


@converts("TopK", to="TOP_K1")
def top_k(node: OnnxConversion) -> Result:
    """Convert TopK: the greatest or least elements along an axis, in order, and their indices."""
    count = node.known_integer(1) if node.version >= 10 else node.required("k")
    axis = node.axis_attribute()
    direction = "DECREASING" if node.version < 11 or node.flag("largest") else "INCREASING"
    values, indices = dml.top_k1(
        node.tensor(0), axis=axis, k=count, axis_direction=direction, output_type="UINT64"
    )
    return node.result(values), node.result(dml.cast(indices, output_type="INT64"))
