"""Loops over the rows of a group that end where a bound says that no further element counts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from opendml import FLOAT32, UINT32, TensorDesc, descs
from opendml.compiler.bounds import is_bounded
from opendml.compiler.fuse import fuse
from opendml.program.functions import reduce_maximum, reduce_minimum, reduce_sum, select
from opendml.program.node import Node, apply, convert, index
from opendml.program.node import Operation as Op
from opendml.program.program import Program, packed
from opendml.program.scalar_type import ScalarType
from opendml.program.view import gathered, reshaped, sliced
from opendml.runtime.memory.host_array import Array
from opendml.spec.enums import InterpolationMode, ReduceFunction
from opendml.spec.operator_desc import Size2D
from opendml.targets.cpu.schedule import schedule
from tests.pairwise import pairwise
from tests.programs import assert_agrees, layout_of, sources
from tests.running import launches

F32, I32, I64 = ScalarType.FLOAT32, ScalarType.INT32, ScalarType.INT64
TAPS = 9
NOTHING = {reduce_sum: 0.0, reduce_maximum: -math.inf, reduce_minimum: math.inf}
COUNTS = {
    np.float32: [3, 0, -5, 2.5, math.nan, math.inf, -math.inf, 1e30, 9, 8.5],
    np.int32: [3, 0, -5, 2**31 - 1, -(2**31), 9, 1],
    np.int64: [3, 0, -5, 2**63 - 1, -(2**63), 2**32 + 1],
}


def _values(*sizes: int) -> Array:
    """Whole numbers, so that sums are exact."""
    return np.random.default_rng(0).integers(-9, 10, sizes).astype(np.float32)


def _taps(type: ScalarType, axis: int = 1, rank: int = 3) -> Node:
    along = [int(each == axis) for each in range(rank)]
    return convert(index(I32, [TAPS if each else 1 for each in along], 0, along), type)


def _gathered(x: Node, shift: Node, axes: int = 1) -> Node:
    """Taps of x (groups, twice as many taps along each axis, width), from a place of each group on."""
    rank = axes + 2
    places = {
        axis: reshaped(shift, (x.sizes[0], *(1,) * (rank - 1))) + _taps(I32, axis, rank)
        for axis in range(1, rank - 1)
    }
    steps = [[int(row == column and row in (0, rank - 1)) for column in range(rank)] for row in range(rank)]
    return gathered(x, (x.sizes[0], *(TAPS,) * axes, x.sizes[-1]), places, steps=steps)


def _shifts(groups: int) -> Array:
    return np.random.default_rng(2).integers(0, TAPS, (groups, 1, 1)).astype(np.int32)


def _bounded_loops(result: Node, *arrays: Array) -> list[tuple[tuple[int, int], ...]]:
    """Those of the launches that compute a node."""
    layout = packed(result.type, result.sizes)
    kernels = fuse(Program(tuple(map(layout_of, arrays)), (layout,), (result,)), ends_loops=True).kernels
    return [launch.pattern.bounded for kernel in kernels for launch in schedule(kernel)]


@pairwise(
    width=[1, 5, 70],
    type=COUNTS,
    function=NOTHING,
)
def test_no_bound_is_beyond_the_loop_and_none_but_numbers_above_zero_let_it_go_on(
    function: Any, type: Any, width: int
) -> None:
    counts = np.array(COUNTS[type], type).reshape(-1, 1, 1)
    x, shifts = _values(len(counts), 2 * TAPS, width), _shifts(len(counts))
    value, shift, count = sources(x, shifts, counts)
    terms = select(_taps(count.type) < count, _gathered(value, shift), NOTHING[function])
    result = convert(function(terms, [1]), F32)
    assert_agrees([result], [x, shifts, counts])
    assert any(_bounded_loops(result, x, shifts, counts)) == (width > 1)


def test_loops_over_two_axes_end_each_at_its_own_bound() -> None:
    x, shifts = _values(4, 2 * TAPS, 2 * TAPS, 20), _shifts(4)
    counts = [np.array(each, np.float32).reshape(-1, 1, 1, 1) for each in ([1, 4, 9, 2], [3, 3, 1, 9])]
    value, shift, *bounds = sources(x, shifts, *counts)
    inside = [_taps(F32, axis, 4) < bound for axis, bound in zip((1, 2), bounds, strict=True)]
    result = convert(reduce_sum(select(apply(Op.AND, *inside), _gathered(value, shift, 2), 0.0), [1, 2]), F32)
    assert_agrees([result], [x, shifts, *counts])
    first, second = max(_bounded_loops(result, x, shifts, *counts))
    assert {first[0], second[0]} == {0, 1}


def test_a_loop_goes_on_until_nothing_counts_for_any_reduction() -> None:
    x, shifts = _values(3, 2 * TAPS, 20), _shifts(3)
    counts = [np.array(each, np.float32).reshape(-1, 1, 1) for each in ([1, 4, 9], [3, 2, 0])]
    value, shift, *bounds = sources(x, shifts, *counts)
    found = _gathered(value, shift)
    total = reduce_sum(select(_taps(F32) < bounds[0], found, 0.0), [1])
    greatest = reduce_maximum(select(_taps(F32) < bounds[1], found, -math.inf), [1])
    result = convert(total, F32) + greatest
    assert_agrees([result], [x, shifts, *counts])
    assert any(_bounded_loops(result, x, shifts, *counts))


@pytest.mark.parametrize("case", ["lanes", "rows", "other number", "elements", "in order", "again"])
def test_a_loop_goes_on_where_elements_may_count(case: str) -> None:
    x, shifts = _values(3, 2 * TAPS, 20), _shifts(3)
    sizes = {"lanes": (3, 1, 20), "rows": (3, TAPS, 1)}.get(case, (3, 1, 1))
    counts = np.random.default_rng(1).integers(0, TAPS, sizes).astype(np.float32)
    value, shift, count = sources(x, shifts, counts)
    found = sliced(value, (0, 1, 0), (3, TAPS, 20)) if case == "in order" else _gathered(value, shift)
    terms = select(_taps(F32) < count, found, 1.0 if case == "other number" else 0.0)
    result = reduce_sum(terms, [1])
    if case == "elements":
        result = convert(terms, ScalarType.FLOAT64) * result
    if case == "again":
        result = reduce_sum(select(_taps(F32) < count, found * convert(result, F32), 0.0), [1])
    result = convert(result, F32)
    assert_agrees([result], [x, shifts, counts])
    assert not any(_bounded_loops(result, x, shifts, counts))


def test_a_bound_that_only_looks_as_if_it_varied_is_one() -> None:
    x, counts = _values(3, TAPS, 20), np.ones((3, 1, 1), np.float32)
    value, count = sources(x, counts)
    for bound, expected in ((count, True), (count + _taps(F32) * 0.0, False)):
        reduction = reduce_sum(select(_taps(F32) < bound, value, 0.0), [1])
        assert is_bounded(reduction) is expected


def _tensor(*sizes: int) -> TensorDesc:
    return TensorDesc(FLOAT32, list(sizes))


@pytest.mark.parametrize("function", [ReduceFunction.AVERAGE, ReduceFunction.MAX])
def test_samples_of_a_region_end_where_it_has_no_more(function: ReduceFunction) -> None:
    desc = descs.RoiAlign(
        _tensor(1, 4, 50, 68),
        _tensor(1, 1, 8, 4),
        TensorDesc(UINT32, [1, 1, 1, 8]),
        _tensor(8, 4, 7, 7),
        reduction_function=function,
        interpolation_mode=InterpolationMode.LINEAR,
        spatial_scale_x=1.0,
        spatial_scale_y=1.0,
        out_of_bounds_input_value=0.0,
        minimum_samples_per_output=1,
        maximum_samples_per_output=2**32 - 1,
    )
    bounded = [loop for launch in launches(desc) for loop in launch.pattern.bounded]
    assert len(bounded) == 2


def test_elements_of_a_region_end_where_it_has_no_more() -> None:
    desc = descs.RoiPooling(
        _tensor(1, 4, 50, 68),
        _tensor(1, 1, 8, 5),
        _tensor(8, 4, 7, 7),
        spatial_scale=1.0,
        pooled_size=Size2D(width=7, height=7),
    )
    bounded = [loop for launch in launches(desc) for loop in launch.pattern.bounded]
    assert len(bounded) == 2
