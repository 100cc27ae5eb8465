"""The models: where each comes from, its inputs, and the types in which it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Inputs = Callable[[np.random.Generator], dict[str, Array]]

TYPES = ("float32", "float16", "int8", "int8-dynamic")
"""`int8` quantizes activations with constants (QDQ), `int8-dynamic` with what each run finds."""

QUICK = ("mobilenet-v2", "resnet-50", "bert-base", "magika", "rapidocr-rec", "light-squeezenet")
"""Cases of `--quick`: one of each kind, each run below a second."""


@dataclass(frozen=True)
class Case:
    """A model.

    Args:
        name: on the command line and in tables.
        package: the module that has the model, or the configuration from which it is made.
        inputs: makes the inputs by name.
        file: the model's file in the package; None: the network is made by `benchmarks.models.networks`.
        has_dense_layers: most weights belong to matrix products, which dynamic quantization is for.
    """

    name: str
    package: str
    inputs: Inputs
    file: str | None = None
    has_dense_layers: bool = False

    @property
    def is_network(self) -> bool:
        """Whether PyTorch has the model too."""
        return self.file is None

    @property
    def types(self) -> tuple[str, ...]:
        """The types in which the model runs."""
        return TYPES if self.has_dense_layers else TYPES[:3]

    def absent(self) -> str | None:
        """Return why the model cannot be had here; None if it can."""
        for package in (self.package, "torch", "onnxscript")[: 3 if self.is_network else 1]:
            if find_spec(package) is None:
                return f"{package} is not installed"
        if self.file is not None and not self.path.is_file():
            return f"this version of {self.package} has no {self.file}"
        return None

    @property
    def path(self) -> Path:
        """The file in the package, which is not imported."""
        spec = find_spec(self.package)
        assert spec is not None
        return Path(next(iter(spec.submodule_search_locations or ()))) / str(self.file)


def normal(random: np.random.Generator, **sizes: tuple[int, ...]) -> dict[str, Array]:
    """Return normally distributed float32 inputs of these sizes."""
    return {name: random.standard_normal(each, np.float32) for name, each in sizes.items()}


def _image(size: int) -> Inputs:
    return partial(normal, pixel_values=(1, 3, size, size))


def _pixels(random: np.random.Generator) -> dict[str, Array]:
    """Return an image as a detector gets it. With normal numbers, its activations are partly subnormal."""
    return {"images": random.random((1, 3, 320, 320), np.float32)}


def _words(random: np.random.Generator) -> dict[str, Array]:
    ids = random.integers(0, 30522, (1, 128))
    return {"input_ids": ids, "attention_mask": np.ones_like(ids)}


GPT2_LAYERS, GPT2_TOKENS = 12, 512
_KEYS = (1, 12, GPT2_TOKENS, 64)


def _prompt(random: np.random.Generator) -> dict[str, Array]:
    return {"input_ids": random.integers(0, 50257, (1, GPT2_TOKENS))}


def _next_token(random: np.random.Generator) -> dict[str, Array]:
    names = [f"past_{number}_{part}" for number in range(GPT2_LAYERS) for part in ("key", "value")]
    past = normal(random, **dict.fromkeys(names, _KEYS))
    return {"input_ids": random.integers(0, 50257, (1, 1)), **past}


def _bytes_of_a_file(random: np.random.Generator) -> dict[str, Array]:
    return {"bytes": random.integers(0, 256, (1, 2048), np.int32)}


def _sound(random: np.random.Generator) -> dict[str, Array]:
    parts = normal(random, input=(1, 576), state=(2, 1, 128))
    return {"input": parts["input"] / 4, "state": parts["state"] / 4, "sr": np.array(16000, np.int64)}


_network = partial(Case, package="transformers")


def _ocr(name: str, file: str, height: int, width: int) -> Case:
    return Case(name, "rapidocr_onnxruntime", partial(normal, x=(1, 3, height, width)), f"models/{file}")


LIGHT = {
    "bvlc_alexnet": "data_0",
    "densenet121": "data_0",
    "inception_v1": "data_0",
    "inception_v2": "data_0",
    "resnet50": "gpu_0/data_0",
    "shufflenet": "gpu_0/data_0",
    "squeezenet": "data_0",
    "vgg19": "data_0",
    "zfnet512": "gpu_0/data_0",
}
"""The models of the onnx package, and the names of their inputs."""


def _light(name: str, input: str) -> Case:
    path = f"backend/test/data/light/light_{name}.onnx"

    def inputs(random: np.random.Generator) -> dict[str, Array]:
        return {input: random.standard_normal((1, 3, 224, 224), np.float32)}

    return Case(f"light-{name.replace('_', '-')}", "onnx", inputs, path)


def _photo(random: np.random.Generator) -> dict[str, Array]:
    return {"photo": random.uniform(0, 255, (1, 3, 720, 720)).astype(np.float32)}


_ALL = (
    _network("mobilenet-v2", inputs=_image(224)),
    _network("resnet-50", inputs=_image(224)),
    _network("vit-b16", inputs=_image(224), has_dense_layers=True),
    _network("convnext-t", inputs=_image(224)),
    _network("efficientnet-b0", inputs=_image(224)),
    _network("segformer-b0", inputs=_image(512)),
    _network("bert-base", inputs=_words, has_dense_layers=True),
    _network("gpt2-512", inputs=_prompt, has_dense_layers=True),
    _network("gpt2-next", inputs=_next_token, has_dense_layers=True),
    Case("style-transfer", "torch", _photo),
    Case("magika", "magika", _bytes_of_a_file, "models/standard_v3_3/model.onnx", has_dense_layers=True),
    Case("silero-vad", "silero_vad", _sound, "data/silero_vad.onnx"),
    _ocr("rapidocr-det", "ch_PP-OCRv4_det_infer.onnx", 640, 640),
    _ocr("rapidocr-cls", "ch_ppocr_mobile_v2.0_cls_infer.onnx", 48, 192),
    _ocr("rapidocr-rec", "ch_PP-OCRv4_rec_infer.onnx", 48, 320),
    Case("nudenet", "nudenet", _pixels, "320n.onnx"),
    *(_light(name, input) for name, input in LIGHT.items()),
)

CASES: dict[str, Case] = {case.name: case for case in _ALL}
