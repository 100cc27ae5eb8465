"""The example that repaints a photograph, compared with PyTorch."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from examples import style_transfer
from opendml import Device

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
