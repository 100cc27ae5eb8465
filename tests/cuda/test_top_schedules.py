"""Schedules that find the least elements of lines on the CUDA target, for typical sizes."""

from __future__ import annotations

import pytest

from opendml.program.node import Operation, convert, placing, source
from opendml.program.scalar_type import ScalarType
from opendml.program.view import padded
from opendml.targets.cuda.launch import Launch
from opendml.targets.cuda.pattern import Mode
from tests.cuda.compiled import MACHINES, launches, machine_code
from tests.nodes import program
from tools.cuda_case import Case

UINT32, UINT64 = ScalarType.UINT32, ScalarType.UINT64
CAPABILITIES = pytest.mark.parametrize("capability", MACHINES)
SIZES = pytest.mark.parametrize(
    ("sizes", "axis"), [((64, 250_000), 1), ((20_000, 2000), 1), ((5000, 12), 0), ((1, 3_000_000), 1)]
)


def launch_of(
    sizes: tuple[int, ...], axis: int, count: int, type: ScalarType = UINT32, capability: int = 90
) -> Launch:
    found = placing(Operation.TOP, source(0, type, sizes), axis, count)
    (launch,) = launches(Case("", program(found)), MACHINES[capability])
    return launch


@CAPABILITIES
@SIZES
@pytest.mark.parametrize("count", [2, 64, 1000, 2000])
@pytest.mark.parametrize("type", [UINT32, UINT64], ids=str)
def test_there_is_room_for_what_stays_and_for_what_all_threads_bring(
    sizes: tuple[int, int], axis: int, count: int, type: ScalarType, capability: int
) -> None:
    launch = launch_of(sizes, axis, count, type, capability)
    found, length = dict(launch.pattern.constants), sizes[axis]
    chunk, together = found["SPAN"] * found["KEEP"], found["THREADS"] // found["SPAN"]
    assert launch.pattern.mode is Mode.TOP
    assert count <= found["SORTED"] <= found["MOST"] < found["LIMIT"]
    assert found["ROOM"] >= max(found["SORTED"], length if length <= chunk else found["MOST"] + chunk)
    assert launch.shared_bytes == together * found["ROOM"] * 2 * type.bytes
    assert (launch.shared_bytes + 2048) * found["BLOCKS"] <= MACHINES[capability].shared_bytes


@SIZES
def test_slices_are_whole_lines_together(sizes: tuple[int, int], axis: int) -> None:
    launch = launch_of(sizes, axis, 64)
    words, team = launch.values, launch.values["team"]
    assert (team - 1) * words["slice"] < words["units"] <= team * words["slice"]
    assert (launch.scratch_bytes > 0) == (launch.counters_bytes > 0) == (team > 1)
    assert not launch.cooperative


def test_few_lines_are_shared_by_blocks_and_many_are_not() -> None:
    teams = {lines: launch_of((lines, 250_000), 1, 64).values["team"] for lines in (1, 64, 5000)}
    assert teams[1] > 32
    assert teams[64] == 4
    assert teams[5000] == 1


@pytest.mark.parametrize("type", [ScalarType.UINT8, ScalarType.FLOAT16, UINT32, UINT64], ids=str)
def test_elements_come_in_units_of_16_bytes_where_a_thread_takes_as_many(type: ScalarType) -> None:
    key = UINT64 if type is UINT64 else UINT32
    found = placing(Operation.TOP, convert(source(0, type, (64, 4096)), key), 1, 8)
    (launch,) = launches(Case("", program(found)), MACHINES[90])
    assert launch.pattern.vector == min(16 // type.bytes, 32 // key.bytes)


def test_lines_beside_each_other_are_read_together() -> None:
    found = dict(launch_of((5000, 64), 0, 5).pattern.constants)
    assert (found["ACROSS"], found["THREADS"] // found["SPAN"]) == (1, 8)


@pytest.mark.parametrize("count", [2, 5000])
def test_what_is_not_there_is_not_read(count: int) -> None:
    x = padded(source(0, UINT32, (3, 9000)), (0, 5), (1, 30))
    (launch,) = launches(Case("", program(placing(Operation.TOP, x, 1, count))), MACHINES[90])
    assert any(load.guarded for load in launch.pattern.loads)
    assert machine_code(launch, 90).startswith(b"\x7fELF")


def test_more_than_a_block_keeps_is_found_by_sorting_all() -> None:
    modes = [launch_of((3, 9000), 1, count).pattern.mode for count in (4096, 4097)]
    assert modes == [Mode.TOP, Mode.SORT]
    modes = [launch_of((3, 9000), 1, count, UINT64).pattern.mode for count in (2048, 2049)]
    assert modes == [Mode.TOP, Mode.SORT]
