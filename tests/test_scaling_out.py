"""Models in other processes: Dask's blocks, and Ray's data sets and tasks, on a local cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml.runtime.memory.host_array import Array

PHOTOS = np.random.default_rng(0).random((8, 6), dtype=np.float32)


@pytest.fixture(scope="module")
def model() -> dml.Model:
    """Two numbers for each of four photos of six pixels."""
    graph = dml.Graph()
    photo = graph.input("photo", dml.FLOAT32, [4, 6])
    weights = np.random.default_rng(1).random((6, 2), dtype=np.float32)
    return graph.compile({"y": dml.activation_tanh(photo @ weights)}, dml.Device("cpu", threads=1))


@pytest.fixture(scope="module")
def wanted(model: dml.Model) -> Array:
    return np.concatenate([model(PHOTOS[:4])["y"], model(PHOTOS[4:])["y"]])


def of_block(block: Any, model: dml.Model) -> Any:
    return model(block)["y"]


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_dask_maps_blocks(model: dml.Model, wanted: Array, scheduler: str) -> None:
    array = pytest.importorskip("dask.array")
    blocks = array.from_array(PHOTOS, chunks=(4, 6)).map_blocks(
        of_block, model, dtype="float32", chunks=(4, 2)
    )
    np.testing.assert_array_equal(blocks.compute(scheduler=scheduler, num_workers=2), wanted)


_OF_RAY = pytest.mark.filterwarnings("ignore")
"""Ray's own warnings, of processes that it leaves, are no errors of the model's."""


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    """A cluster of two workers on this machine."""
    found = pytest.importorskip("ray")
    pytest.importorskip("ray.data", exc_type=ImportError, reason="Ray Data needs pandas and pyarrow")
    found.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
    found.data.DataContext.get_current().enable_progress_bars = False
    yield found
    found.shutdown()


class Classify:
    """As docs/guide/scaling_out.md has it."""

    def __init__(self, model: dml.Model) -> None:
        self.model = model

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        return self.model(batch["photo"])


@_OF_RAY
@pytest.mark.parametrize("kind", ["model", "class"])
def test_ray_maps_batches(ray: Any, model: dml.Model, wanted: Array, kind: str) -> None:
    dataset = ray.data.from_items([{"photo": photo} for photo in PHOTOS])
    mapped = {
        "model": lambda: dataset.map_batches(model, batch_size=4),
        "class": lambda: dataset.map_batches(
            Classify, fn_constructor_args=[model], batch_size=4, concurrency=1
        ),
    }[kind]()
    rows = mapped.take_all()
    np.testing.assert_array_equal(np.stack([row["y"] for row in rows]), wanted)


@_OF_RAY
def test_a_task_of_ray_takes_a_model_that_is_put_once(ray: Any, model: dml.Model, wanted: Array) -> None:
    held, task = ray.put(model), ray.remote(of_block)
    parts = ray.get([task.remote(PHOTOS[:4], held), task.remote(PHOTOS[4:], held)])
    np.testing.assert_array_equal(np.concatenate(parts), wanted)


def test_a_batch_is_a_dict_of_inputs(model: dml.Model, wanted: Array) -> None:
    np.testing.assert_array_equal(model({"photo": PHOTOS[:4]})["y"], wanted[:4])
    with pytest.raises(dml.InvalidArgument, match="label"):
        model({"photo": PHOTOS[:4], "label": PHOTOS[:4]})
