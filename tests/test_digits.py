"""Examples: digits, style transfer and other processes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opendml as dml
from examples import digits, style_transfer
from opendml import Device
from opendml.runtime.memory.host_array import Array

pytest.importorskip("PIL", reason="Pillow is not installed")
pytest.importorskip("sklearn", reason="scikit-learn is not installed")


def _batch() -> dict[str, digits.Floats]:
    generator = np.random.default_rng(0)
    rows = np.eye(digits.CLASSES, dtype=np.float32)[generator.integers(0, 10, digits.BATCH)]
    return {
        "pictures": generator.random((digits.BATCH, 1, 8, 8), np.float32),
        "digits": rows.reshape(1, 1, digits.BATCH, digits.CLASSES),
        "parameters": digits.Random(1, "cpu").parameters(),
    }


def test_the_gradient_is_that_of_pytorch(any_device: Device) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    functional, given = torch.nn.functional, _batch()
    wide = {name: torch.from_numpy(value.astype(np.float64)) for name, value in given.items()}
    flat = wide["parameters"].reshape(-1).requires_grad_()
    parts = zip(digits.SHAPES.items(), digits.ENDS, digits.ENDS[1:], strict=False)
    own = {name: flat[start:end].reshape(shape) for (name, shape), start, end in parts}
    x = functional.conv2d(wide["pictures"], own["filter1"], own["bias1"].reshape(-1), padding=1).relu()
    x = functional.conv2d(x, own["filter2"], own["bias2"].reshape(-1), padding=1).relu()
    x = functional.max_pool2d(x, 2).reshape(digits.BATCH, -1)
    scores = x @ own["weights"][0, 0] + own["added"].reshape(-1)
    loss = functional.cross_entropy(scores, wide["digits"].reshape(digits.BATCH, -1))
    loss.backward()
    found = digits.training(any_device)(**given)
    np.testing.assert_allclose(found["loss"].item(), loss.item(), rtol=1e-5)
    np.testing.assert_allclose(found["gradient"].reshape(-1), flat.grad.numpy(), rtol=1e-4, atol=1e-6)


def test_a_network_reads_what_it_was_not_trained_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from PIL import Image

    output = tmp_path / "new" / "digits.png"
    monkeypatch.setattr(sys, "argv", ["digits.py", "--rounds", "4", "--output", str(output)])
    digits.main()
    text = capsys.readouterr().out
    right = int(text.split(" of 360 test digits read")[0].split()[-1])
    assert right >= 0.9 * digits.TESTED
    assert str(output) in text.replace("\n", "")
    with Image.open(output) as image:
        assert image.format == "PNG"
        assert np.asarray(image).std() > 20


pytest.importorskip("PIL", reason="Pillow is not installed")


SIZE = 44
"""Small, but larger than the border that is mirrored, as PyTorch demands."""
SCALE = 255.0
"""The range of the output, before it is clipped."""


def test_every_device_repaints_as_pytorch_does(any_device: Device, shared: Path) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from benchmarks.models.style_transfer import StyleTransfer

    folder = shared / "models" / "style_transfer"
    photo = style_transfer.load_photo(folder / "dog.jpg", SIZE)
    weights = style_transfer.load_weights(folder, "mosaic")
    painting = style_transfer.build(weights, SIZE, SIZE, any_device)(photo=photo)["painting"]
    network = StyleTransfer(weights)
    with torch.no_grad():
        single = network(torch.from_numpy(photo)).numpy()
        exact = network.double()(torch.from_numpy(photo.astype(np.float64))).numpy()
    assert np.abs(painting - single).max() <= 1e-3 * SCALE
    # PyTorch's float32 is 0.0015 from its float64 here; an operator that is wrong, more than 1.
    assert np.abs(painting - exact).max() <= 5e-3


def test_the_picture_may_have_any_height_and_width_of_multiples_of_4(shared: Path) -> None:
    weights = style_transfer.load_weights(shared / "models" / "style_transfer", "mosaic")
    model = style_transfer.build(weights, 8, 52)
    painting = model(photo=np.full((1, 3, 8, 52), 100, np.float32))["painting"]
    assert painting.shape == (1, 3, 8, 52)
    assert np.isfinite(painting).all()


def test_a_photograph_becomes_a_file_of_the_size_asked_for(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from PIL import Image

    folder, output = shared / "models" / "style_transfer", tmp_path / "new" / "painting.png"
    arguments = ["--weights", str(folder), "--size", "52", "--output", str(output), "--style", "la_muse"]
    monkeypatch.setattr(sys, "argv", ["style_transfer.py", *arguments])
    style_transfer.main()
    assert str(output) in capsys.readouterr().out
    with Image.open(output) as image:
        assert (image.format, image.size, image.mode) == ("PNG", (52, 52), "RGB")
        assert np.asarray(image).std() > 20


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--weights", "nowhere"],
            r"no weights at nowhere.mosaic\.npz: pass --weights FOLDER, .*mosaic\.npz",
        ),
        (["--weights", "nowhere", "--style", "la_muse"], r"no weights at nowhere.la_muse\.npz: .*"),
    ],
)
def test_absent_weights_have_one_line(
    arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["style_transfer.py", *arguments])
    with pytest.raises(SystemExit, match=rf"^{message}$"):
        style_transfer.main()


def test_an_absent_photograph_is_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"^no photograph at .*none\.jpg: pass --photo PATH.*$"):
        style_transfer.load_photo(tmp_path / "none.jpg", 8)


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
