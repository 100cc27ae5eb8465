"""Schedules of groups and lines on the CUDA target: what threads hold and blocks share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

import opendml as dml
from opendml.compiler.kernel import Kernel
from opendml.program.functions import index_of_maximum, index_of_minimum, reduce_sum, variance
from opendml.program.node import Operation, convert, placing, source
from opendml.program.scalar_type import ScalarType
from opendml.program.view import padded
from opendml.runtime.program import program_of
from opendml.spec import descs
from opendml.spec.enums import AxisDirection, ReduceFunction, TensorDataType
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.tensor_desc import TensorDesc
from opendml.targets.cuda.kernel_source import kernel_source
from opendml.targets.cuda.launch import CudaLaunch
from opendml.targets.cuda.machine import CudaMachine
from opendml.targets.cuda.pattern import CudaMode
from opendml.targets.cuda.schedule import schedule
from tests.cuda.compiled import MACHINES, launches, machine_code
from tests.nodes import program
from tools.cuda_case import Case
from tools.cuda_cases import normalization_desc
from tools.cuda_check import worst_of
from tools.cuda_emulator import COMPILER, emulated

MACHINE = MACHINES[90]
REGISTERS = 32
"""Registers in which a thread holds elements, at most."""


def launch_of(desc: OperatorDesc) -> CudaLaunch:
    (launch,) = launches(Case("", program_of(desc)), MACHINES[90])
    return launch


def softmax(sizes: tuple[int, ...], axis: int, data_type: TensorDataType = dml.FLOAT32) -> CudaLaunch:
    tensor = TensorDesc(data_type, sizes)
    return launch_of(descs.ActivationSoftmax1(tensor, tensor, axes=[axis]))


def constants(launch: CudaLaunch) -> dict[str, int]:
    return dict(launch.pattern.constants)


@pytest.mark.parametrize("data_type", [dml.FLOAT32, dml.FLOAT16])
@pytest.mark.parametrize("count", [1, 1000, 300_000])
@pytest.mark.parametrize("length", [2, 3, 5, 10, 31, 49, 64, 100, 512, 1000, 4095, 4096, 16_384])
def test_threads_hold_whole_rows(length: int, count: int, data_type: TensorDataType) -> None:
    launch = softmax((count, length), 1, data_type)
    assert launch.pattern.mode is CudaMode.REDUCE
    span, keep, threads = (constants(launch)[name] for name in ("SPAN", "REGISTER_UNITS", "THREADS"))
    assert span * keep * launch.pattern.vector >= length
    assert launch.grid * (threads // span) >= count
    assert span == threads or (span <= 32 and span & (span - 1) == 0)
    assert keep * launch.pattern.vector * (4 if data_type is dml.FLOAT32 else 2) <= 4 * REGISTERS


@pytest.mark.parametrize("data_type", [dml.FLOAT32, dml.FLOAT16])
@pytest.mark.parametrize("inner", [2, 3, 5, 21, 64, 729, 4096])
@pytest.mark.parametrize("length", [2, 21, 64, 512])
def test_threads_hold_whole_columns(length: int, inner: int, data_type: TensorDataType) -> None:
    launch = softmax((8, length, inner), 1, data_type)
    assert launch.pattern.columns
    span, keep = (constants(launch)[name] for name in ("SPAN", "REGISTER_UNITS"))
    across = launch.block // span
    assert span * keep >= length
    assert 32 % across == 0 or 32 < across == inner <= 64
    assert launch.grid * across * launch.pattern.vector >= 8 * inner


@pytest.mark.parametrize("types", [("FLOAT32", "FLOAT32", "FLOAT32"), ("FLOAT16", "FLOAT32")])
@pytest.mark.parametrize("inner", [9, 49, 98, 511])
def test_columns_of_a_block_are_a_short_row_or_a_power_of_two(inner: int, types: tuple[str, ...]) -> None:
    """Here an element has 12 or 6 bytes."""
    first, *others = (
        convert(source(number, ScalarType[type], (8, 255, inner)), ScalarType.FLOAT32)
        for number, type in enumerate(types)
    )
    (launch,) = launches(Case("", program(variance(sum(others, first), [1]))), MACHINES[90])
    assert launch.pattern.columns
    across = launch.block // constants(launch)["SPAN"]
    assert across == inner == 49 or (across & (across - 1) == 0 and launch.block % 32 == 0)


def test_many_rows_are_shared_by_fewer_threads_than_few() -> None:
    many, few = softmax((16_384, 4096), 1), softmax((100, 4096), 1)
    assert constants(many)["SPAN"] == 128
    assert constants(few)["SPAN"] == 512


def test_rows_that_registers_cannot_hold_go_to_shared_memory() -> None:
    names = "REGISTER_UNITS", "SHARED_UNITS"
    kept = [
        [constants(softmax((1000, length), 1))[name] > 0 for name in names] for length in (16_384, 16_400)
    ]
    assert kept == [[True, False], [False, True]]


def test_one_pass_over_columns_reads_them_where_they_lie() -> None:
    def registers(axis: int) -> int:
        sizes = [64, 1024]
        x = TensorDesc(dml.FLOAT32, sizes)
        sizes[axis] = 1
        output = TensorDesc(dml.FLOAT32, sizes)
        desc = descs.Reduce(x, output, function=ReduceFunction.SUM, axes=[axis])
        return constants(launch_of(desc))["REGISTER_UNITS"]

    assert registers(0) == 0 < registers(1)


@pytest.mark.parametrize("sizes", [(12_544, 32), (1_000_000, 4), (1_000_000, 16)])
def test_few_columns_keep_all_threads_of_blocks_that_are_soon_merged(sizes: tuple[int, int]) -> None:
    x, output = TensorDesc(dml.FLOAT16, sizes), TensorDesc(dml.FLOAT16, (1, sizes[1]))
    launch = launch_of(descs.Reduce(x, output, function=ReduceFunction.SUM, axes=[0]))
    found, values = constants(launch), launch.values
    assert found["THREADS"] // found["SPAN"] == values["items"] == sizes[1] // launch.pattern.vector
    assert 32 <= values["team"] <= 32 * found["SPAN"]
    assert values["slice_units"] * values["team"] >= sizes[0]


def test_states_of_all_reductions_fit_the_shared_memory_of_a_block() -> None:
    a, b = (source(number, ScalarType.INT64, (3, 20_001)) for number in range(2))
    found = [search(each, [1]) for each in (a, b, a + b) for search in (index_of_maximum, index_of_minimum)]
    for launch in launches(Case("", program(*found)), MACHINES[90]):
        assert launch.pattern.mode is CudaMode.REDUCE
        assert launch.block // 32 * 24 * len(launch.pattern.stores) <= 48 * 1024


def running_sum(*sizes: int, axis: int, data_type: TensorDataType = dml.FLOAT32) -> CudaLaunch:
    tensor = TensorDesc(data_type, sizes)
    direction = AxisDirection.INCREASING
    return launch_of(descs.CumulativeSummation(tensor, tensor, axis=axis, axis_direction=direction))


@pytest.mark.parametrize(
    ("sizes", "kept", "shared"),
    [
        ((2048, 20_000), True, False),
        ((8, 100_000), True, True),
        ((1, 6_000_000), True, True),
        ((512, 1_000_000), True, True),
        ((1, 16_777_216), False, True),
    ],
)
def test_groups_of_several_passes_are_kept_where_the_device_has_room(
    sizes: tuple[int, ...], kept: bool, shared: bool
) -> None:
    launch = softmax(sizes, 1)
    found = constants(launch)
    assert (not found["REREADS"], found["TEAM"]) == (kept, shared)
    assert launch.cooperative is shared
    room = launch.shared_bytes * launch.values["team"]
    assert (room >= 4 * sizes[1]) == kept


@pytest.mark.parametrize(("data_type", "bytes"), [(dml.FLOAT32, 4), (dml.FLOAT16, 2)])
def test_groups_that_are_read_twice_stay_in_shared_memory_in_part(
    data_type: TensorDataType, bytes: int
) -> None:
    count = 50_000_000
    launch = launch_of(normalization_desc(data_type, (1, 1, 1, count), (3,)))
    assert constants(launch)["REREADS"]
    blocks = constants(launch)["BLOCKS"]
    assert 0.7 * MACHINE.shared_bytes < launch.shared_bytes * blocks < MACHINE.shared_bytes
    assert launch.grid * launch.shared_bytes < count * bytes


@pytest.mark.parametrize(("data_type", "is_copied"), [(dml.FLOAT32, True), (dml.FLOAT16, False)])
def test_long_columns_are_read_once(data_type: TensorDataType, is_copied: bool) -> None:
    """They stay in shared memory. Elements of FLOAT16 go there through registers."""
    launch = launch_of(normalization_desc(data_type, (8, 1280, 27, 27), (1,)))
    found = constants(launch)
    assert (launch.pattern.vector, found["REREADS"]) == (1, 0)
    assert found["SHARED_UNITS"] * found["SPAN"] >= 1280
    assert launch.shared_bytes == found["SHARED_UNITS"] * found["THREADS"] * (4 if is_copied else 2)
    text = kernel_source(launch.pattern)
    assert f"constexpr bool COPIES = {int(is_copied)};" in text
    assert ("copy_async<4>(to + 0" in text) == is_copied


def test_blocks_that_share_a_group_have_all_of_it() -> None:
    for launch in (softmax((3, 70_001), 1), softmax((1, 16_777_216), 1)):
        values = launch.values
        assert (
            (values["team"] - 1) * values["slice_units"]
            < values["units"]
            <= values["team"] * values["slice_units"]
        )


@pytest.mark.parametrize(("sizes", "axis"), [((1, 16_777_216), 1), ((4, 1_000_000), 1), ((1_000_000, 4), 0)])
def test_few_long_lines_keep_the_device_busy(sizes: tuple[int, int], axis: int) -> None:
    launch = running_sum(*sizes, axis=axis)
    assert launch.cooperative
    assert launch.grid >= MACHINE.multiprocessors
    assert launch.pattern.vector == (4 if axis else 1)


@pytest.mark.parametrize(
    ("sizes", "axis", "threads"),
    [((64, 256, 512), 1, 8), ((64, 256, 512), 0, 1), ((4096, 4096), 0, 16), ((131_072, 100), 1, 16)],
)
def test_lines_have_several_threads_where_they_are_few_or_follow_each_other(
    sizes: tuple[int, ...], axis: int, threads: int
) -> None:
    launch = running_sum(*sizes, axis=axis)
    found = constants(launch)
    assert (found["SPAN"], launch.cooperative) == (threads, False)
    assert launch.grid * found["THREADS"] >= launch.values["items"] * threads


def test_blocks_that_share_lines_leave_what_they_have_in_memory_of_their_own() -> None:
    for launch in (running_sum(1, 16_777_216, axis=1), running_sum(1_000_000, 4, axis=0)):
        found = constants(launch)
        together = found["THREADS"] // found["SPAN"]
        assert launch.counters_bytes == 2 * 16 * launch.grid * together
        assert launch.scratch_bytes == 0
        assert launch.grid % launch.values["team"] == 0


@pytest.mark.parametrize("data_type", [dml.FLOAT16, dml.FLOAT32, dml.INT64])
def test_two_tiles_of_all_resident_threads_fit_their_registers(data_type: TensorDataType) -> None:
    bytes = {dml.FLOAT16: 2, dml.FLOAT32: 4, dml.INT64: 8}[data_type]
    for sizes in ((1, 16_777_216), (16, 1_048_576), (4096, 512), (1000, 5000)):
        constants = dict(running_sum(*sizes, axis=1, data_type=data_type).pattern.constants)
        threads = constants["BLOCKS"] * constants["THREADS"]
        assert 2 * threads * constants["KEEP"] * bytes <= 128 * 1024


@pytest.mark.parametrize("data_type", [dml.FLOAT16, dml.FLOAT32, dml.INT64])
def test_the_order_of_sums_is_the_same_for_all_alignments(data_type: TensorDataType) -> None:
    tensor = TensorDesc(data_type, (2, 65536))
    desc = descs.CumulativeSummation(tensor, tensor, axis=1, axis_direction=AxisDirection.INCREASING)
    orders, vectors = set(), set()
    for offset in (0, 1, 2):
        (launch,) = launches(Case("", program_of(desc), offset=offset), MACHINE)
        found = constants(launch)
        orders.add((launch.values["team"], *(found[name] for name in ("SPAN", "KEEP", "CHUNK"))))
        vectors.add(launch.pattern.vector)
    assert (len(orders), len(vectors) > 1) == (1, True)


UINT32, UINT64 = ScalarType.UINT32, ScalarType.UINT64
CAPABILITIES = pytest.mark.parametrize("capability", MACHINES)
SIZES = pytest.mark.parametrize(
    ("sizes", "axis"), [((64, 250_000), 1), ((20_000, 2000), 1), ((5000, 12), 0), ((1, 3_000_000), 1)]
)


def launch_of_top(
    sizes: tuple[int, ...], axis: int, count: int, type: ScalarType = UINT32, capability: int = 90
) -> CudaLaunch:
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
    launch = launch_of_top(sizes, axis, count, type, capability)
    found, length = constants(launch), sizes[axis]
    chunk, together = found["SPAN"] * found["KEEP"], found["THREADS"] // found["SPAN"]
    assert launch.pattern.mode is CudaMode.TOP
    assert count <= found["SORTED"] <= found["MOST"] < found["LIMIT"]
    assert found["CAPACITY"] >= max(found["SORTED"], length if length <= chunk else found["MOST"] + chunk)
    assert launch.shared_bytes == together * found["CAPACITY"] * 2 * type.bytes
    assert (launch.shared_bytes + 2048) * found["BLOCKS"] <= MACHINES[capability].shared_bytes


@SIZES
def test_slices_are_whole_lines_together(sizes: tuple[int, int], axis: int) -> None:
    launch = launch_of_top(sizes, axis, 64)
    words, team = launch.values, launch.values["team"]
    assert (team - 1) * words["slice_units"] < words["units"] <= team * words["slice_units"]
    assert (launch.scratch_bytes > 0) == (launch.counters_bytes > 0) == (team > 1)
    assert not launch.cooperative


def test_few_lines_are_shared_by_blocks_and_many_are_not() -> None:
    teams = {lines: launch_of_top((lines, 250_000), 1, 64).values["team"] for lines in (1, 64, 5000)}
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
    found = dict(launch_of_top((5000, 64), 0, 5).pattern.constants)
    assert (found["ACROSS"], found["THREADS"] // found["SPAN"]) == (1, 8)


@pytest.mark.parametrize("count", [2, 5000])
def test_what_is_not_there_is_not_read(count: int) -> None:
    x = padded(source(0, UINT32, (3, 9000)), (0, 5), (1, 30))
    (launch,) = launches(Case("", program(placing(Operation.TOP, x, 1, count))), MACHINES[90])
    assert any(load.guarded for load in launch.pattern.loads)
    assert machine_code(launch, 90).startswith(b"\x7fELF")


def test_more_than_a_block_keeps_is_found_by_sorting_all() -> None:
    modes = [launch_of_top((3, 9000), 1, count).pattern.mode for count in (4096, 4097)]
    assert modes == [CudaMode.TOP, CudaMode.SORT]
    modes = [launch_of_top((3, 9000), 1, count, UINT64).pattern.mode for count in (2048, 2049)]
    assert modes == [CudaMode.TOP, CudaMode.SORT]


def _nonzero(sizes: tuple[int, ...]) -> list[CudaLaunch]:
    outputs = [TensorDesc(dml.TensorDataType.UINT32, each) for each in ((1,), (math.prod(sizes), len(sizes)))]
    desc = descs.NonzeroCoordinates(TensorDesc(dml.FLOAT32, sizes), *outputs)
    return list(launches(Case("", program_of(desc)), MACHINES[90]))


def _case(sizes: tuple[int, int]) -> Case:
    placed = placing(Operation.POSITIONS, source(0, ScalarType.INT32, sizes) >= 9, 1, sizes[1])
    number = reduce_sum(convert(placed >= 0, UINT32), [1])
    return Case("", program(placed, number), mean=9.0, deviation=9.0)


@pytest.mark.parametrize(("sizes", "row"), [((100,), 1), ((8, 64), 2), ((8, 8, 8), 1), ((2, 4, 8, 8), 4)])
def test_coordinates_and_their_number_are_one_kernel_that_writes_whole_rows(
    sizes: tuple[int, ...], row: int
) -> None:
    (launch,) = _nonzero(sizes)
    assert launch.pattern.mode is CudaMode.POSITIONS
    assert constants(launch)["ROW"] == row


@pytest.mark.parametrize("capability", MACHINES)
@pytest.mark.parametrize("lines", [1, 3, 64, 5000])
@pytest.mark.parametrize("length", [1, 8192, 8193, 1_000_000, 100_000_000])
def test_there_is_room_for_the_bits_of_a_wave_on_each_multiprocessor(
    lines: int, length: int, capability: int
) -> None:
    machine = MACHINES[capability]
    (launch,) = launches(_case((lines, length)), machine)
    found, words = constants(launch), launch.values
    assert launch.grid == lines * words["team"]
    assert launch.shared_bytes == found["THREADS"] // 32 * words["warp_words"] * 4
    assert words["warp_words"] % found["BATCH"] == 0 < words["warp_words"]
    assert (launch.shared_bytes + 1024) * found["BLOCKS"] <= machine.shared_bytes
    assert launch.cooperative == (launch.counters_bytes > 0) == (words["team"] > 1)
    if launch.cooperative:
        assert launch.grid <= found["BLOCKS"] * machine.multiprocessors


@pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler")
@pytest.mark.parametrize("lines", [1, 2, 5])
@pytest.mark.parametrize("length", [3 * 16384, 5 * 16384 + 1, 6 * 32768 - 1])
def test_waves_follow_each_other(lines: int, length: int) -> None:
    """Four blocks run at once: as a team for one line, as teams of two, and each with lines of its own."""

    def narrow(kernel: Kernel, machine: CudaMachine, alignments: Sequence[int]) -> CudaLaunch:
        launch = schedule(kernel, replace(machine, multiprocessors=2, shared_bytes=6144), alignments)
        assert launch.values["warp_words"] * 32 * 16 * launch.values["team"] < length
        return launch

    with emulated():
        error, used = worst_of(_case((lines, length)), narrow)
    assert used == ["positions"]
    assert error == 0
