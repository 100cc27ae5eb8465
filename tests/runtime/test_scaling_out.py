"""Models in the workers of Dask and Ray, on clusters of this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import pytest

import opendml as dml
from opendml import Model
from opendml.runtime.memory.host_array import Array

on_a_cluster = pytest.mark.skipif(
    not os.environ.get("OPENDML_TEST_CLUSTERS"),
    reason="clusters take long to start; OPENDML_TEST_CLUSTERS=1 tries them",
)
X = np.random.default_rng(0).normal(size=(12, 6)).astype(np.float32)


@pytest.fixture
def model() -> Model:
    graph = dml.Graph()
    x = graph.input("x", dml.FLOAT32, [4, 6])
    return graph.compile(
        {"y": dml.activation_tanh(x @ np.linspace(-1, 1, 18, dtype=np.float32).reshape(6, 3))}
    )


def expected(model: Model) -> Array:
    return np.vstack([model(part)["y"] for part in np.split(X, 3)])


def of_block(block: Array, model: Model) -> Array:
    return model(block)["y"]


class OfBatch:
    """What Ray makes one of in each worker."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def __call__(self, batch: dict[str, Array]) -> dict[str, Array]:
        return self._model(batch["x"])


@pytest.mark.filterwarnings("default")
def test_dask_maps_blocks_by_a_model(model: Model) -> None:
    array = pytest.importorskip("dask.array", reason="Dask is not installed")
    blocks = array.from_array(X, chunks=(4, 6)).map_blocks(of_block, model, dtype=np.float32, chunks=(4, 3))
    np.testing.assert_array_equal(blocks.compute(scheduler="threads"), expected(model))


@on_a_cluster
@pytest.mark.filterwarnings("default")
def test_dasks_workers_map_blocks_by_a_model(model: Model) -> None:
    array = pytest.importorskip("dask.array", reason="Dask is not installed")
    distributed = pytest.importorskip("distributed", reason="Dask's distributed is not installed")
    blocks = array.from_array(X, chunks=(4, 6)).map_blocks(of_block, model, dtype=np.float32, chunks=(4, 3))
    cluster = distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None)
    with cluster, distributed.Client(cluster):
        np.testing.assert_array_equal(blocks.compute(), expected(model))


@pytest.fixture
def ray_data() -> Iterator[object]:
    """Ray's data sets, on a cluster of one worker."""
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    data = pytest.importorskip("ray.data", reason="Ray's data sets are not installed")
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, configure_logging=False)
    yield data
    ray.shutdown()


@on_a_cluster
@pytest.mark.filterwarnings("default")
def test_ray_maps_batches_by_a_model(model: Model, ray_data: object) -> None:
    data = ray_data.from_numpy(X)  # type: ignore[attr-defined]
    found = data.rename_columns(["x"]).map_batches(
        OfBatch, fn_constructor_args=[model], batch_size=4, compute=None, concurrency=1
    )
    rows = [row["y"] for row in found.take_all()]
    np.testing.assert_array_equal(np.stack(rows), expected(model))


@on_a_cluster
@pytest.mark.filterwarnings("default")
def test_ray_runs_a_model_in_tasks(model: Model) -> None:
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, configure_logging=False)
    try:
        held = ray.put(model)
        task = ray.remote(of_block)
        found = ray.get([task.remote(part, held) for part in np.split(X, 3)])
    finally:
        ray.shutdown()
    np.testing.assert_array_equal(np.vstack(found), expected(model))
