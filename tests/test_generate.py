"""The example that generates text with a growing cache, compared with PyTorch and in one process."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from examples import generate

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("onnxscript", reason="onnxscript is not installed")

ALPHABET = "abcdefgh \n"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    """Return a model with random weights, and its file."""
    torch.manual_seed(3)
    network = generate.gpt(len(ALPHABET)).eval()
    path = tmp_path_factory.mktemp("gpt") / "model.onnx"
    generate.export(network, path)
    return network, path


def test_characters_one_by_one_have_the_logits_of_the_whole_text(
    model: tuple[Any, Path],
) -> None:
    network, path = model
    numbers, parts = np.arange(9)[None] % len(ALPHABET), ((0, 4), (4, 5), (5, 6), (6, 9))
    run = generate.loaded("opendml", path)
    logits = [run(numbers[:, begin:end]) for begin, end in parts]
    with torch.no_grad():
        nothing = [torch.from_numpy(each) for each in generate.empty_cache(1).values()]
        whole, *_ = network(torch.from_numpy(numbers), *nothing)
    np.testing.assert_allclose(np.concatenate(logits, axis=1), whole.numpy(), rtol=1e-4, atol=1e-5)


def test_a_text_continues_its_prompt_and_is_the_same_again(model: tuple[Any, Path]) -> None:
    _, path = model
    first, second = (generate.generate("opendml", path, ALPHABET, "abc", 4) for _ in range(2))
    assert first.text == second.text
    assert first.text.startswith("abc")
    assert len(first.text) == 7
    assert len(first.seconds) == 4


def test_the_documents_are_the_corpus() -> None:
    text = generate.corpus()
    assert "DirectML" in text
    assert text.isascii()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--prompt", "snowman \u2603"], "is in no document"),
        (["--count", "0"], "--count: 0; 1 to"),
        (["--count", "5000"], "--count: 5000; 1 to"),
    ],
)
def test_a_task_that_cannot_be_done_is_refused_before_training(
    arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["generate.py", *arguments])
    with pytest.raises(SystemExit):
        generate.main()
    assert message in capsys.readouterr().err
