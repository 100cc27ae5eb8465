"""What is written past the caches is so in the machine code, too: LLVM makes ordinary stores of those that it
does not know."""

from __future__ import annotations

import llvmlite.binding as llvm
import numpy as np
import pytest

import opendml as dml
from opendml import FLOAT16, FLOAT32, INT64, UINT8, TensorDataType, TensorDesc, descs
from opendml.targets.cpu.pattern import CpuMode
from tests.running import launches
from tests.targets.test_cpu_attributes import PROCESSORS, Processor, compiled

pytestmark = pytest.mark.usefixtures("small_caches")


@pytest.mark.parametrize("processor", [each for each in PROCESSORS if "x86" in each.triple], ids=str)
@pytest.mark.parametrize("data_type", [FLOAT16, FLOAT32, UINT8, INT64])
def test_streamed_stores_are_instructions_of_their_own(
    data_type: TensorDataType, processor: Processor, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = TensorDesc(data_type, [1, 1, 100, 1000])
    column = TensorDesc(data_type, x.sizes, [0, 0, 1, 0])
    monkeypatch.setattr(
        llvm.TargetMachine, "emit_object", lambda target, module: target.emit_assembly(module).encode()
    )
    for desc in (descs.ElementWiseIdentity(x, x), descs.ElementWiseAdd(x, column, x)):
        (launch,) = launches(desc)
        assert launch.pattern.stores[0].streamed
        assert b"movnt" in compiled(launch.pattern, processor)


@pytest.mark.parametrize(("data_type", "streamed"), [(FLOAT32, True), (FLOAT16, False), (UINT8, False)])
def test_rows_apart_are_streamed_for_32_bits(data_type: TensorDataType, streamed: bool) -> None:
    across = TensorDesc(data_type, [400, 600], [1, 400])
    (launch,) = launches(descs.ElementWiseIdentity(across, TensorDesc(data_type, [400, 600])))
    assert launch.pattern.mode is CpuMode.TRANSPOSED
    assert launch.pattern.stores[0].streamed is streamed
    x = TensorDesc(data_type, [64, 30, 1000])
    if data_type is not UINT8:
        *_, last = launches(descs.ActivationSoftmax1(x, x, axes=[1]))
        assert last.pattern.mode.columns
        assert last.pattern.stores[0].streamed is streamed


def test_truth_values_that_are_streamed_have_a_byte_each() -> None:
    """Both running sums of the signs read them where two truth values of each element lie."""
    x = np.random.default_rng(0).integers(-1, 2, (100, 1000)).astype(np.float32)
    graph = dml.Graph()
    signs = dml.element_wise_sign(graph.input("x", FLOAT32, x.shape))
    sums = {f"of axis {axis}": dml.cumulative_summation(signs, axis=axis) for axis in (0, 1)}
    found = graph.compile(sums, device="cpu")(x=x)
    for axis, name in enumerate(sums):
        np.testing.assert_array_equal(found[name], x.cumsum(axis))
