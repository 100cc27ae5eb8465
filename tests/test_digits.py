"""The example that trains a network to read digits."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from opendml import Device


@pytest.fixture(scope="module")
def digits() -> ModuleType:
    """The example, imported by the process that runs it alone: scikit-learn takes seconds."""
    pytest.importorskip("PIL", reason="Pillow is not installed")
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    from examples import digits

    return digits


def _batch(digits: ModuleType) -> dict[str, Any]:
    generator = np.random.default_rng(0)
    rows = np.eye(digits.CLASSES, dtype=np.float32)[generator.integers(0, 10, digits.BATCH)]
    return {
        "pictures": generator.random((digits.BATCH, 1, 8, 8), np.float32),
        "digits": rows.reshape(1, 1, digits.BATCH, digits.CLASSES),
        "parameters": digits.Random(1, "cpu").parameters(),
    }


def test_the_gradient_is_that_of_pytorch(digits: ModuleType, any_device: Device) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    functional, given = torch.nn.functional, _batch(digits)
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
    digits: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
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
