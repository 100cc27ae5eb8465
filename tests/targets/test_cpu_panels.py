"""One row times a large constant matrix reads several panels side by side."""

from __future__ import annotations

import numpy as np
import pytest

import opendml as dml
from opendml.targets.cpu.contraction.tiles import ITEMS
from opendml.targets.cpu.contraction.tiling import PANELS_TOGETHER, Storage, Tiling
from opendml.targets.cpu.machine import assumed, machine
from opendml.targets.cpu.schedule import scheduled
from tests.targets.test_cpu_sizes import PROCESSORS, layer


def _results(x: np.ndarray, weights: np.ndarray, bias: np.ndarray, threads: int) -> np.ndarray:
    graph = dml.Graph()
    product = dml.gemm(
        graph.input("x", dml.FLOAT32, [1, 1, 1, x.size]),
        graph.constant(weights[None, None]),
        graph.constant(bias[None, None, None]),
        fused_activation=dml.descs.ActivationRelu(),
    )
    model = graph.compile({"y": product}, device=dml.Device("cpu", threads=threads))
    result: np.ndarray = model(x=x[None, None, None])["y"]
    return result


@pytest.mark.parametrize("sizes", [(1037, 700), (1024, 777), (560, 3001), (1600, 2049)], ids=str)
def test_results_are_right_and_have_the_bits_of_panels_alone(sizes: tuple[int, int]) -> None:
    n, k = sizes
    random = np.random.default_rng(n)
    x, bias = random.standard_normal(k, np.float32), random.standard_normal(n, np.float32)
    weights = random.standard_normal((k, n), np.float32)
    found = _results(x, weights, bias, 2)
    np.testing.assert_array_equal(found, _results(x, weights, bias, 64))  # Too many threads for groups.
    wanted = np.maximum(x.astype(np.float64) @ weights + bias, 0)
    magnitudes = np.abs(x.astype(np.float64)) @ np.abs(weights)
    assert (np.abs(found.ravel() - wanted) <= 300 * 2.0**-24 * magnitudes).all()


@pytest.mark.parametrize("processor", PROCESSORS)
def test_a_row_reads_panels_together_and_several_rows_read_one(
    processor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENDML_THREADS", "2")
    with assumed(PROCESSORS[processor]):
        for rows in (1, 4):
            walk = scheduled(layer(rows, False, processor))[1][-1].pattern.walk
            assert isinstance(walk, Tiling)
            assert walk.b.storage is Storage.STREAMED
            width = walk.micro.vectors * machine().lanes
            enough = 768 // width >= PANELS_TOGETHER * ITEMS
            assert walk.columns == (PANELS_TOGETHER if rows == 1 and enough else 1) * width
