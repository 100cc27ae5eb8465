"""Running sums by blocks that share lines, on the processor: over several waves of tiles, whose last one ends
anywhere, and in launches one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pytest

import opendml as dml
from opendml.compiler.kernel import Kernel
from opendml.runtime.program import program_of
from opendml.spec import descs
from opendml.spec.enums import AxisDirection, TensorDataType
from opendml.spec.tensor_desc import TensorDesc
from opendml.targets.cuda.launch import Launch
from opendml.targets.cuda.machine import Machine
from opendml.targets.cuda.schedule import ways
from opendml.targets.cuda.schedule_scans import Span, _run
from tools.cuda_case import Case
from tools.cuda_check import worst_of
from tools.cuda_emulator import COMPILER, emulated

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler")
ALONG, ABREAST = Span(64, 64, 8, team=3, resident=1), Span(128, 4, 8, team=3, resident=1)
WAVE = ALONG.span * ALONG.keep * ALONG.team


def _so(way: Span, kernel: Kernel, machine: Machine, alignments: Sequence[int]) -> Launch:
    _, query = ways(kernel, machine, alignments)
    return _run(query, way)


@pytest.mark.parametrize("data_type", [dml.FLOAT32, dml.FLOAT16, dml.INT32, dml.INT64])
@pytest.mark.parametrize("direction", AxisDirection)
@pytest.mark.parametrize(
    ("sizes", "axis", "way"),
    [
        ((2, WAVE), 1, ALONG),
        ((2, 2 * WAVE - 1), 1, ALONG),
        ((1, 3 * WAVE + 8), 1, ALONG),
        ((4 * 8 * 3 * 2 + 1, 35), 0, ABREAST),
        ((5, 3), 0, ABREAST),
    ],
)
def test_waves_of_tiles_are_summed_up_in_their_order(
    data_type: TensorDataType, direction: AxisDirection, sizes: tuple[int, int], axis: int, way: Span
) -> None:
    tensor = TensorDesc(data_type, sizes)
    is_down = direction is AxisDirection.DECREASING
    desc = descs.CumulativeSummation(
        tensor, tensor, axis=axis, axis_direction=direction, has_exclusive_sum=is_down
    )
    case = Case(f"{sizes} {data_type} {direction}", program_of(desc), mean=1.0, deviation=0.001)
    with emulated():
        error, _ = worst_of(case, partial(_so, way))
    assert error <= 1
