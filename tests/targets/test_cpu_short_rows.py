"""Element-wise kernels on the CPU whose results are short rows that follow each other: they are put together,
and whole cache lines are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml import FLOAT16, FLOAT32, INT64, UINT8, Device, TensorDataType, TensorDesc, descs
from opendml.spec.enums import InterpolationMode, PaddingMode
from opendml.spec.operator_desc import OperatorDesc
from opendml.targets.cpu.machine import assumed
from opendml.targets.cpu.pattern import CpuMode, ElementWalk
from tests.running import launches
from tests.targets.test_cpu_attributes import Processor, every_processor, needed_symbols
from tests.targets.walks import GUARD, SMALL_CACHES, check, memory_at

pytestmark = pytest.mark.usefixtures("small_caches")
FORMS = [(FLOAT32, 15), (FLOAT32, 28), (FLOAT16, 33), (UINT8, 28), (INT64, 16)]
"""Types, and the widths of rows."""


def tile(type: TensorDataType, width: int) -> OperatorDesc:
    x, y = TensorDesc(type, [2, 9, 41, width]), TensorDesc(type, [2, 9, 82, 2 * width])
    return descs.Tile(x, y, repeats=[1, 1, 2, 2])


def slice_of_all_rows(type: TensorDataType, width: int) -> OperatorDesc:
    x, y = TensorDesc(type, [2, 45, 41, width + 3]), TensorDesc(type, [2, 45, 38, width])
    return descs.Slice(x, y, offsets=[0, 0, 1, 2], sizes=y.sizes, strides=[1, 1, 1, 1])


def padding(type: TensorDataType, width: int) -> OperatorDesc:
    x, y = TensorDesc(type, [2, 45, 38, width]), TensorDesc(type, [2, 45, 43, width + 5])
    margins: dict[str, Any] = {"start_padding": [0, 0, 2, 3], "end_padding": [0, 0, 3, 2]}
    return descs.Padding(x, y, padding_mode=PaddingMode.EDGE, padding_value=0.0, **margins)


def depth_to_space(type: TensorDataType, width: int) -> OperatorDesc:
    x, y = TensorDesc(type, [2, 24, 35, width]), TensorDesc(type, [2, 6, 70, 2 * width])
    return descs.DepthToSpace(x, y, block_size=2)


def joined(type: TensorDataType, width: int) -> OperatorDesc:
    parts = [TensorDesc(type, [2, 21, 43, width])] * 3
    return descs.Join(parts, TensorDesc(type, [2, 21, 43, 3 * width]), axis=3)


def divided(type: TensorDataType, width: int) -> OperatorDesc:
    parts = [TensorDesc(type, [2, 21, 43, width])] * 3
    return descs.Split(TensorDesc(type, [2, 21, 43, 3 * width]), parts, axis=3)


def streams(desc: OperatorDesc) -> tuple[tuple[int, ...], ...]:
    """The stores of its one kernel that are put together."""
    (launch,) = launches(desc)
    assert (launch.pattern.mode is CpuMode.SHORT_ROWS) == bool(launch.pattern.walk_as(ElementWalk).streams)
    return launch.pattern.walk_as(ElementWalk).streams


@pytest.mark.parametrize("make", [tile, slice_of_all_rows, padding, depth_to_space])
@pytest.mark.parametrize(("type", "width"), FORMS)
def test_short_rows_equal_the_reference(make: Any, type: TensorDataType, width: int) -> None:
    desc = make(type, width)
    (stream,) = streams(desc)
    assert len(stream) == (2 if make is depth_to_space else 1)
    check(desc, Device("cpu"))


def bound(
    desc: OperatorDesc, inputs: Sequence[TensorDesc], outputs: Sequence[TensorDesc], threads: int, offset: int
) -> tuple[list[Any], list[Any]]:
    """The inputs and what the operator makes of them, so many elements behind a cache line; it writes nothing
    beside its outputs."""
    values = [memory_at(offset + number, each)[1] for number, each in enumerate(inputs)]
    random = np.random.default_rng(0)
    for value in values:
        value[:] = random.integers(0, 100, value.size)
    places = [memory_at(offset + 3 * number, each) for number, each in enumerate(outputs)]
    device = Device("cpu", threads=threads)
    device.compile_operator(device.create_operator(desc)).bind(
        values, [each for _, each in places]
    ).dispatch()
    shaped = [value.reshape(each.sizes) for value, each in zip(values, inputs, strict=True)]
    results = [each.copy().reshape(desc.sizes) for (_, each), desc in zip(places, outputs, strict=True)]
    for raw, each in places:
        each.view(np.uint8)[:] = GUARD
        assert (raw == GUARD).all()
    return shaped, results


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("type", "width"), FORMS)
def test_parts_of_short_rows_are_one_stream(type: TensorDataType, width: int, threads: int) -> None:
    desc: Any = joined(type, width)
    assert streams(desc) == ((3, 4, 5),)
    for offset in (0, 5):
        parts, (whole,) = bound(desc, desc.input_tensors, [desc.output_tensor], threads, offset)
        assert (whole == np.concatenate(parts, 3)).all()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("type", "width"), FORMS)
def test_results_of_short_rows_have_own_streams(type: TensorDataType, width: int, threads: int) -> None:
    desc: Any = divided(type, width)
    assert streams(desc) == ((3,), (4,), (5,))
    for offset in (0, 5):
        (whole,), parts = bound(desc, [desc.input_tensor], desc.output_tensors, threads, offset)
        assert (np.concatenate(parts, 3) == whole).all()


def test_runs_of_rows_with_gaps_between_them_are_written_one_by_one() -> None:
    sizes = [5, 90, 33]
    x = TensorDesc(FLOAT32, sizes, [90 * 35, 35, 1])
    y = TensorDesc(FLOAT32, sizes, [90 * 33 + 7, 33, 1])
    desc = descs.ActivationRelu(x, y)
    assert len(streams(desc)) == 1
    check(desc, Device("cpu"))


@pytest.mark.parametrize("gap", [0, 1])
def test_rows_apart_and_short_runs_of_rows_are_written_as_they_are_computed(gap: int) -> None:
    sizes = [200, 20, 33]
    x = TensorDesc(FLOAT32, sizes, [20 * 40, 40, 1])
    y = TensorDesc(FLOAT32, sizes, [(20 + 1 - gap) * (33 + gap), 33 + gap, 1])
    assert streams(descs.ActivationRelu(x, y)) == ()


def test_results_that_a_cache_holds_are_not_streamed() -> None:
    desc = tile(FLOAT32, 28)
    assert streams(desc)
    with assumed(replace(SMALL_CACHES, last_cache_bytes=1 << 30)):
        assert streams(desc) == ()


def test_arithmetic_that_takes_longer_than_writing_is_not_put_together() -> None:
    x, y = TensorDesc(FLOAT32, [2, 9, 41, 28]), TensorDesc(FLOAT32, [2, 9, 82, 56])
    for mode, count in ((InterpolationMode.NEAREST_NEIGHBOR, 1), (InterpolationMode.LINEAR, 0)):
        desc = descs.Upsample2D(x, y, scale_size=dml.Size2D(2, 2), interpolation_mode=mode)
        assert len(streams(desc)) == count


@every_processor
def test_short_rows_need_no_symbol(processor: Processor) -> None:
    descs = [make(type, 28) for make in (depth_to_space, divided) for type in (FLOAT32, UINT8)]
    assert all(map(streams, descs))
    assert needed_symbols(descs, processor) == {}
