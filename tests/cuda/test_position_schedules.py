"""Schedules that find the positions of true elements on the CUDA target, in one kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

import opendml as dml
from opendml.compiler.kernel import Kernel
from opendml.program.functions import reduce_sum
from opendml.program.node import Operation, convert, placing, source
from opendml.program.scalar_type import ScalarType
from opendml.runtime.program import program_of
from opendml.spec import descs
from opendml.spec.tensor_desc import TensorDesc
from opendml.targets.cuda.launch import Launch
from opendml.targets.cuda.machine import Machine
from opendml.targets.cuda.pattern import Mode
from opendml.targets.cuda.schedule import schedule
from tests.cuda.compiled import MACHINES, launches
from tests.nodes import program
from tools.cuda_case import Case
from tools.cuda_check import worst_of
from tools.cuda_emulator import COMPILER, emulated

INT32, UINT32 = ScalarType.INT32, ScalarType.UINT32


def _nonzero(sizes: tuple[int, ...]) -> list[Launch]:
    outputs = [TensorDesc(dml.TensorDataType.UINT32, each) for each in ((1,), (math.prod(sizes), len(sizes)))]
    desc = descs.NonzeroCoordinates(TensorDesc(dml.FLOAT32, sizes), *outputs)
    return list(launches(Case("", program_of(desc)), MACHINES[90]))


def _case(sizes: tuple[int, int]) -> Case:
    placed = placing(Operation.POSITIONS, source(0, INT32, sizes) >= 9, 1, sizes[1])
    number = reduce_sum(convert(placed >= 0, UINT32), [1])
    return Case("", program(placed, number), mean=9.0, deviation=9.0)


@pytest.mark.parametrize(("sizes", "row"), [((100,), 1), ((8, 64), 2), ((8, 8, 8), 1), ((2, 4, 8, 8), 4)])
def test_coordinates_and_their_number_are_one_kernel_that_writes_whole_rows(
    sizes: tuple[int, ...], row: int
) -> None:
    (launch,) = _nonzero(sizes)
    assert launch.pattern.mode is Mode.POSITIONS
    assert dict(launch.pattern.constants)["ROW"] == row


@pytest.mark.parametrize("capability", MACHINES)
@pytest.mark.parametrize("lines", [1, 3, 64, 5000])
@pytest.mark.parametrize("length", [1, 8192, 8193, 1_000_000, 100_000_000])
def test_there_is_room_for_the_bits_of_a_wave_on_each_multiprocessor(
    lines: int, length: int, capability: int
) -> None:
    machine = MACHINES[capability]
    (launch,) = launches(_case((lines, length)), machine)
    found, words = dict(launch.pattern.constants), launch.values
    assert launch.grid == lines * words["team"]
    assert launch.shared_bytes == found["THREADS"] // 32 * words["slice"] * 4
    assert words["slice"] % found["BATCH"] == 0 < words["slice"]
    assert (launch.shared_bytes + 1024) * found["BLOCKS"] <= machine.shared_bytes
    assert launch.cooperative == (launch.counters_bytes > 0) == (words["team"] > 1)
    if launch.cooperative:
        assert launch.grid <= found["BLOCKS"] * machine.multiprocessors


@pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler")
@pytest.mark.parametrize("lines", [1, 3, 40])
@pytest.mark.parametrize("length", [3 * 16384, 5 * 16384 + 1, 6 * 32768 - 1])
def test_waves_follow_each_other(lines: int, length: int) -> None:
    def narrow(kernel: Kernel, machine: Machine, alignments: Sequence[int]) -> Launch:
        launch = schedule(kernel, replace(machine, multiprocessors=2, shared_bytes=6144), alignments)
        assert launch.values["slice"] * 32 * 16 * launch.values["team"] < length
        return launch

    with emulated():
        error, used = worst_of(_case((lines, length)), narrow)
    assert used == ["positions"]
    assert error == 0
