"""Element-wise kernels on the CPU whose rows are a few full vectors, which follow each other in the code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

import opendml as dml
from opendml import FLOAT16, FLOAT32, INT64, UINT8, Device, TensorDataType, TensorDesc, descs
from opendml.compiler.loops import LONG
from opendml.spec.enums import PaddingMode
from opendml.targets.cpu.machine import assumed, machine
from opendml.targets.cpu.pattern import Mode
from tests.running import launches
from tests.targets.walks import check


def lanes(type: TensorDataType) -> int:
    """Elements of a vector of a kernel that has no others."""
    return machine().vector_bytes // {FLOAT16: 2, UINT8: 1}.get(type, 4)


def slice_of_rows(type: TensorDataType, width: int) -> descs.Slice:
    x, y = TensorDesc(type, [3, 21, 9, width + 5]), TensorDesc(type, [3, 21, 7, width])
    return descs.Slice(x, y, offsets=[0, 0, 1, 2], sizes=y.sizes, strides=[1, 1, 1, 1])


@pytest.mark.parametrize("type", [FLOAT32, FLOAT16, UINT8, INT64], ids=str)
@pytest.mark.parametrize("vectors", [1, 2, 4])
def test_rows_of_full_vectors_have_no_loop(type: TensorDataType, vectors: int) -> None:
    steps = vectors * lanes(type)
    for width, expected in ((steps, steps), (steps + 1, 0)):
        desc = slice_of_rows(type, width)
        (launch,) = launches(desc)
        assert launch.pattern.row_steps == expected
        check(desc, Device("cpu"))


def test_of_many_vectors_there_is_a_loop() -> None:
    (launch,) = launches(slice_of_rows(FLOAT32, 5 * lanes(FLOAT32)))
    assert not launch.pattern.row_steps


def test_guards_of_rows_of_full_vectors() -> None:
    x, y = (TensorDesc(FLOAT32, [3, 5, width]) for width in (lanes(FLOAT32) - 3, lanes(FLOAT32)))
    margins: dict[str, Sequence[int]] = {"start_padding": [0, 0, 2], "end_padding": [0, 0, 1]}
    desc = descs.Padding(x, y, padding_mode=PaddingMode.CONSTANT, padding_value=3.0, **margins)
    (launch,) = launches(desc)
    assert launch.pattern.row_steps == lanes(FLOAT32)
    check(desc, Device("cpu"))


@pytest.mark.usefixtures("small_caches")
def test_rows_that_follow_each_other_are_written_together() -> None:
    desc = slice_of_rows(FLOAT32, 3 * lanes(FLOAT32))
    (launch,) = launches(desc)
    assert (launch.pattern.mode, launch.pattern.row_steps) == (Mode.SHORT_ROWS, 3 * lanes(FLOAT32))
    check(desc, Device("cpu"))


def test_rows_at_indices_are_one_kernel() -> None:
    """Each index is used for one row, so it is moved into the range there."""
    # Shorter rows are put together as bundles.
    width = max(LONG, lanes(FLOAT32))
    x, indices = TensorDesc(FLOAT32, [1, 50, width]), TensorDesc(INT64, [1, 1, 70])
    desc = descs.Gather(x, indices, TensorDesc(FLOAT32, [1, 70, width]), axis=1, index_dimensions=1)
    (launch,) = launches(desc)
    assert launch.pattern.row_steps == width
    table = np.arange(50 * width, dtype=np.float32).reshape(1, 50, width)
    chosen = np.random.default_rng(0).integers(-60, 60, (1, 1, 70))
    within = np.clip(np.where(chosen < 0, chosen + 50, chosen), 0, 49)
    expected = table[:, within[0, 0]]
    np.testing.assert_array_equal(dml.gather(table, chosen, axis=1, index_dimensions=1), expected)


@pytest.mark.usefixtures("small_caches")
def test_rows_that_are_streamed_begin_where_memory_has_boundaries() -> None:
    """Of 64 steps, four vectors of AVX-512: streamed ones would be short rows but for their boundaries."""
    steps, width = 64, 8
    x = TensorDesc(FLOAT32, [45, steps, width], [2 * width * steps, 1, steps])
    y = TensorDesc(FLOAT32, [45, steps, width], [width * steps + 3, width, 1])
    desc = descs.ElementWiseIdentity(x, y)
    for vector_bytes in (16, 32, 64):
        with assumed(replace(machine(), vector_bytes=vector_bytes)):
            (launch,) = launches(desc)
        assert (launch.pattern.mode, launch.pattern.row_steps) == (Mode.POINTWISE, 0)
        assert launch.pattern.stores[0].streamed
    check(desc, Device("cpu"))
