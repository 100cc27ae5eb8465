"""Kernels that pack constants for products."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

import opendml as dml
from opendml.targets.cpu.executable import CpuExecutable
from opendml.targets.cpu.machine import machine
from opendml.targets.cpu.native import HEADER, LAUNCH
from opendml.targets.memory import HostMemory

RANDOM = np.random.default_rng(28)


@pytest.mark.usefixtures("no_matrix_registers")
def test_kernels_that_pack_parts_of_several_depths_share_code() -> None:
    """Products of windows of 1, 3 and 7 columns are summed in parts of other depths."""
    depths: defaultdict[str, set[int]] = defaultdict(set)
    for window, channels, size in ((1, 256, 28), (3, 64, 28), (7, 3, 112)):
        w = RANDOM.standard_normal((64, channels, window, window), np.float32)
        x = RANDOM.standard_normal((1, channels, size, size), np.float32)
        graph = dml.Graph()
        given = graph.input("x", dml.FLOAT32, x.shape)
        model = graph.compile({"y": dml.convolution(given, graph.constant(w))})
        expected = dml.convolution(x, w, device="reference")
        np.testing.assert_allclose(model(x)["y"], expected, 1e-5, 1e-3)
        executable = model._work.executable
        assert isinstance(executable, CpuExecutable)
        (job,) = (step.job for step in executable.parts.steps)
        (code,) = job.codes
        depths[code.key].add(int(job.words[HEADER + LAUNCH + 1]))
    assert max(map(len, depths.values())) > 1


@pytest.mark.skipif(not machine().has("amx-bf16"), reason="this processor has no matrix registers")
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("shift", range(1, 4))
def test_kernels_that_split_constants_for_matrix_registers_read_any_address(shift: int, turned: bool) -> None:
    """Tensors of ONNX files lie anywhere. Columns of odd counts are packed in parts of panels."""
    sizes = (512, 333)[:: -1 if turned else 1]
    w = RANDOM.standard_normal(sizes, np.float32)
    x = RANDOM.standard_normal((300, 512), np.float32)
    moved = np.empty(w.nbytes + shift, np.uint8)[shift:].view(np.float32).reshape(sizes)
    moved[:] = w
    assert not moved.flags.aligned
    graph = dml.Graph()
    given = graph.input("x", dml.FLOAT32, x.shape)
    product = dml.gemm(given, graph.constant(w), trans_b="TRANSPOSE" if turned else "NONE")
    model = graph.compile({"y": product})
    executable = model._work.executable
    assert isinstance(executable, CpuExecutable)
    (kept,) = executable.kept
    assert kept.reads_unaligned
    filled = []
    for array in (w, moved):
        memory = HostMemory(kept.size)
        memory.bytes[:] = 0
        executable.initialize(kept.step, {kept.recipe.constants[0]: array.ctypes.data}, {0: memory.address})
        filled.append(memory.bytes.tobytes())
    assert filled[0] == filled[1]
    np.testing.assert_allclose(model(x)["y"], x.astype("d") @ (w.T if turned else w), 1e-4, 1e-4)
