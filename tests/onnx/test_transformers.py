"""Models of the package `transformers`, with random weights and exported by PyTorch, agree with ONNX Runtime
and are one graph of DirectML's operators. Tests whose package is not installed are skipped."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("torch")
import onnxruntime
import torch

from opendml import onnx as dml_onnx

_SIZES = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 64}


@pytest.fixture(scope="module")
def transformers() -> Iterator[Any]:
    """The package, which loads torchvision: where that was made for another PyTorch, its operators get their
    names at least."""
    package = pytest.importorskip("transformers", exc_type=ImportError)
    library = torch.library.Library("torchvision", "FRAGMENT")
    try:
        import torchvision  # noqa: F401
    except ModuleNotFoundError:
        pass
    except RuntimeError:
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    yield package
    del library  # its names hold until here


Made = tuple[Any, Callable[..., Any], tuple[Any, ...]]
"""A model, what is made of it and its inputs, and these."""


def _words() -> tuple[Any, Any]:
    mask = torch.ones(2, 7, dtype=torch.int64)
    mask[1, 5:] = 0
    return torch.randint(0, 99, (2, 7)), mask


def _bert(package: Any) -> Made:
    model = package.BertModel(package.BertConfig(vocab_size=99, **_SIZES))
    return model, lambda m, x, mask: m(input_ids=x, attention_mask=mask).last_hidden_state, _words()


def _t5(package: Any) -> Made:
    config = package.T5Config(vocab_size=99, d_model=32, d_kv=8, d_ff=64, num_layers=1, num_heads=4)
    read = lambda m, x, y: m(input_ids=x, decoder_input_ids=y, use_cache=False).last_hidden_state  # noqa: E731
    return package.T5Model(config), read, _words()


def _vit(package: Any) -> Made:
    model = package.ViTModel(package.ViTConfig(image_size=32, patch_size=8, **_SIZES))
    return model, lambda m, x: m(pixel_values=x).last_hidden_state, (torch.randn(2, 3, 32, 32),)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", [_bert, _t5, _vit])
def test_exported_models_agree(transformers: Any, make: Callable[[Any], Made], tmp_path: Path) -> None:
    torch.manual_seed(3)
    model, read, inputs = make(transformers)

    class Exported(torch.nn.Module):  # type: ignore[misc,name-defined,unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.model = model.eval()

        def forward(self, *given: Any) -> Any:
            return read(self.model, *given)

    path, names = str(tmp_path / "model.onnx"), [f"x{number}" for number in range(len(inputs))]
    batch = {name: {0: "batch"} for name in names}
    torch.onnx.export(
        Exported(), inputs, path, dynamo=False, opset_version=17, input_names=names, dynamic_axes=batch
    )
    feed = {name: each.numpy() for name, each in zip(names, inputs, strict=True)}
    theirs = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, feed)[0]
    ours = dml_onnx.load(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error", dml_onnx.EvaluatorWarning)
        (result,) = ours.run(feed).values()
    np.testing.assert_allclose(result, theirs, rtol=1e-4, atol=1e-4)
    assert len(ours.parts(feed)) == 1


class _Decoder(torch.nn.Module):  # type: ignore[misc,name-defined,unused-ignore]
    """A LLaMA of one layer: what follows after words, and the keys and values to go on with."""

    def __init__(self, package: Any) -> None:
        super().__init__()
        config = package.LlamaConfig(vocab_size=99, num_key_value_heads=2, **_SIZES)
        self.model, self.cache = package.LlamaForCausalLM(config).eval(), package.DynamicCache

    def forward(self, words: Any, mask: Any, keys: Any, values: Any) -> Any:
        cache = self.cache()
        cache.update(keys, values, 0)
        found = self.model(input_ids=words, attention_mask=mask, past_key_values=cache, use_cache=True)
        (layer,) = found.past_key_values.layers
        return found.logits, layer.keys, layer.values


@pytest.mark.filterwarnings("ignore")
def test_a_decoder_goes_on_from_its_keys_and_values(transformers: Any, tmp_path: Path) -> None:
    torch.manual_seed(3)
    path, names = str(tmp_path / "model.onnx"), ["words", "mask", "keys", "values"]
    past = torch.randn(2, 2, 3, 8)
    inputs = (torch.randint(0, 99, (2, 4)), torch.ones(2, 7, dtype=torch.int64), past, past)
    axes = {name: {0: "batch", 2 if name in names[2:] else 1: name} for name in names}
    options = {"dynamo": False, "opset_version": 17, "input_names": names, "dynamic_axes": axes}
    torch.onnx.export(_Decoder(transformers), inputs, path, **options)
    theirs = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    ours = dml_onnx.load(path, "reference")
    words = np.random.default_rng(5).integers(0, 99, (1, 6))
    keys = values = np.zeros((1, 2, 0, 8), np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error", dml_onnx.EvaluatorWarning)
        for part in (words[:, :5], words[:, 5:]):
            length = keys.shape[2] + part.shape[1]
            feed = dict(zip(names, (part, np.ones((1, length), np.int64), keys, values), strict=True))
            logits, keys, values = ours.run(feed).values()
            for result, wanted in zip((logits, keys, values), theirs.run(None, feed), strict=True):
                np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-4)
    assert keys.shape == (1, 2, 6, 8)
