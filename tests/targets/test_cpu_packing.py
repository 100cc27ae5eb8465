"""Kernels that pack constants for products."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

import opendml as dml
from opendml.targets.cpu.executable import CpuExecutable
from opendml.targets.cpu.native import HEADER, LAUNCH

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
