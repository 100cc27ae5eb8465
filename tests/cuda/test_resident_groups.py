"""Which groups the registers of the CUDA target's threads hold, and how many threads share one."""

from __future__ import annotations

import pytest

import opendml as dml
from opendml.program.functions import index_of_maximum, index_of_minimum, variance
from opendml.program.node import convert, source
from opendml.program.scalar_type import ScalarType
from opendml.runtime.program import program_of
from opendml.spec import descs
from opendml.spec.enums import ReduceFunction, TensorDataType
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.tensor_desc import TensorDesc
from opendml.targets.cuda.launch import Launch
from opendml.targets.cuda.pattern import Mode
from tests.cuda.compiled import MACHINES, launches
from tests.nodes import program
from tools.cuda_case import Case

REGISTERS = 32
"""Registers in which a thread holds elements, at most."""


def launch_of(desc: OperatorDesc) -> Launch:
    (launch,) = launches(Case("", program_of(desc)), MACHINES[90])
    return launch


def softmax(sizes: tuple[int, ...], axis: int, data_type: TensorDataType = dml.FLOAT32) -> Launch:
    tensor = TensorDesc(data_type, sizes)
    return launch_of(descs.ActivationSoftmax1(tensor, tensor, axes=[axis]))


def constants(launch: Launch) -> dict[str, int]:
    return dict(launch.pattern.constants)


@pytest.mark.parametrize("data_type", [dml.FLOAT32, dml.FLOAT16])
@pytest.mark.parametrize("count", [1, 1000, 300_000])
@pytest.mark.parametrize("length", [2, 3, 5, 10, 31, 49, 64, 100, 512, 1000, 4095, 4096, 16_384])
def test_threads_hold_whole_rows(length: int, count: int, data_type: TensorDataType) -> None:
    launch = softmax((count, length), 1, data_type)
    assert launch.pattern.mode is Mode.RESIDENT
    span, keep, threads = (constants(launch)[name] for name in ("SPAN", "KEEP", "THREADS"))
    assert span * keep * launch.pattern.vector >= length
    assert launch.grid * (threads // span) >= count
    assert span == threads or (span <= 32 and span & (span - 1) == 0)
    assert keep * launch.pattern.vector * (4 if data_type is dml.FLOAT32 else 2) <= 4 * REGISTERS


@pytest.mark.parametrize("data_type", [dml.FLOAT32, dml.FLOAT16])
@pytest.mark.parametrize("inner", [2, 3, 5, 21, 64, 729, 4096])
@pytest.mark.parametrize("length", [2, 21, 64, 512])
def test_threads_hold_whole_columns(length: int, inner: int, data_type: TensorDataType) -> None:
    launch = softmax((8, length, inner), 1, data_type)
    assert launch.pattern.mode is Mode.RESIDENT
    assert launch.pattern.columns
    span, across, keep = (constants(launch)[name] for name in ("SPAN", "TX", "KEEP"))
    assert span * keep >= length
    assert span * across == launch.block
    assert 32 % across == 0
    assert launch.grid * across * launch.pattern.vector >= 8 * inner


@pytest.mark.parametrize("types", [("FLOAT32", "FLOAT32", "FLOAT32"), ("FLOAT16", "FLOAT32")])
@pytest.mark.parametrize("inner", [9, 49, 98, 511])
def test_columns_of_a_tile_are_a_power_of_two(inner: int, types: tuple[str, ...]) -> None:
    """Lanes that share columns find each other by exclusive or. Here an element has 12 or 6 bytes."""
    first, *others = (
        convert(source(number, ScalarType[type], (8, 255, inner)), ScalarType.FLOAT32)
        for number, type in enumerate(types)
    )
    (launch,) = launches(Case("", program(variance(sum(others, first), [1]))), MACHINES[90])
    assert launch.pattern.mode is Mode.TILE
    across = constants(launch)["TX"]
    assert across & (across - 1) == 0
    assert launch.block % 32 == 0


def test_many_rows_are_shared_by_fewer_threads_than_few() -> None:
    many, few = softmax((16_384, 4096), 1), softmax((100, 4096), 1)
    assert constants(many)["SPAN"] == 128
    assert constants(few)["SPAN"] == 512


def test_rows_that_registers_cannot_hold_go_to_shared_memory() -> None:
    assert softmax((1000, 16_384), 1).pattern.mode is Mode.RESIDENT
    assert softmax((1000, 16_400), 1).pattern.mode is Mode.PASSES


def test_one_pass_over_columns_reads_them_where_they_lie() -> None:
    def total(axis: int) -> Mode:
        sizes = [64, 1024]
        x = TensorDesc(dml.FLOAT32, sizes)
        sizes[axis] = 1
        output = TensorDesc(dml.FLOAT32, sizes)
        desc = descs.Reduce(x, output, function=ReduceFunction.SUM, axes=[axis])
        return launch_of(desc).pattern.mode

    assert (total(0), total(1)) == (Mode.REDUCE, Mode.RESIDENT)


def test_states_of_all_reductions_fit_the_shared_memory_of_a_block() -> None:
    a, b = (source(number, ScalarType.INT64, (3, 20_001)) for number in range(2))
    found = [search(each, [1]) for each in (a, b, a + b) for search in (index_of_maximum, index_of_minimum)]
    for launch in launches(Case("", program(*found)), MACHINES[90]):
        assert launch.pattern.mode is Mode.REDUCE
        assert launch.block * 16 * len(launch.pattern.stores) <= 48 * 1024
