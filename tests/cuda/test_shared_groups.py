"""Which long groups and lines several blocks of the CUDA target share, and what of them they keep."""

from __future__ import annotations

import pytest

import opendml as dml
from opendml.runtime.program import program_of
from opendml.spec import descs
from opendml.spec.enums import AxisDirection, TensorDataType
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.tensor_desc import TensorDesc
from opendml.targets.cuda.launch import Launch
from opendml.targets.cuda.pattern import Mode
from tests.cuda.compiled import MACHINES, launches
from tools.cuda_case import Case
from tools.cuda_cases import normalization_desc

MACHINE = MACHINES[90]


def launch_of(desc: OperatorDesc) -> Launch:
    (launch,) = launches(Case("", program_of(desc)), MACHINE)
    return launch


def softmax(*sizes: int) -> Launch:
    tensor = TensorDesc(dml.FLOAT32, sizes)
    return launch_of(descs.ActivationSoftmax1(tensor, tensor, axes=[len(sizes) - 1]))


def running_sum(*sizes: int, axis: int, data_type: TensorDataType = dml.FLOAT32) -> Launch:
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
    launch = softmax(*sizes)
    constants = dict(launch.pattern.constants)
    assert launch.pattern.mode is Mode.PASSES
    assert (constants["HELD"], constants["TEAM"]) == (kept, shared)
    assert launch.cooperative is shared
    room = launch.shared_bytes * (launch.values["team"] if shared else 1)
    assert room >= 4 * sizes[1] * kept


@pytest.mark.parametrize(("data_type", "bytes"), [(dml.FLOAT32, 4), (dml.FLOAT16, 2)])
def test_groups_that_are_read_twice_stay_in_shared_memory_in_part(
    data_type: TensorDataType, bytes: int
) -> None:
    count = 50_000_000
    launch = launch_of(normalization_desc(data_type, (1, 1, 1, count), (3,)))
    assert launch.pattern.mode is Mode.TEAM
    assert 0.7 * MACHINE.shared_bytes < launch.shared_bytes * 2 < MACHINE.shared_bytes
    assert launch.grid * launch.shared_bytes < count * bytes
    assert dict(launch.pattern.constants)["ROOM"] % dict(launch.pattern.constants)["KEEP"] == 0


def test_float16_columns_of_many_rows_have_fewer_lanes_in_shared_memory() -> None:
    few, many = (
        launch_of(normalization_desc(dml.FLOAT16, (64, rows, 1, 1024), (1,))).pattern for rows in (512, 1024)
    )
    assert (few.mode, few.vector) == (Mode.TILE, 8)
    assert (many.mode, many.vector) == (Mode.HELD, 4)


def test_blocks_that_share_a_group_have_all_of_it() -> None:
    for launch in (softmax(3, 70_001), softmax(1, 16_777_216)):
        values = launch.values
        assert (values["team"] - 1) * values["slice"] < values["units"] <= values["team"] * values["slice"]


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
    constants = dict(launch.pattern.constants)
    assert (constants["SPAN"], launch.cooperative) == (threads, False)
    assert launch.grid * constants["THREADS"] >= launch.values["items"] * threads


def test_blocks_that_share_lines_leave_what_they_have_in_memory_of_their_own() -> None:
    for launch in (running_sum(1, 16_777_216, axis=1), running_sum(1_000_000, 4, axis=0)):
        constants = dict(launch.pattern.constants)
        together = constants["THREADS"] // constants["SPAN"]
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
        constants = dict(launch.pattern.constants)
        orders.add((launch.values["team"], *(constants[name] for name in ("SPAN", "KEEP", "CHUNK"))))
        vectors.add(launch.pattern.vector)
    assert (len(orders), len(vectors) > 1) == (1, True)
