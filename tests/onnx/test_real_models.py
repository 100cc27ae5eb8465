"""Models that people have, from packages and from exporters, agree with ONNX Runtime; all of their nodes run
on DirectML's operators. Tests whose package is not installed are skipped."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
import onnx
import onnxruntime

from opendml import onnx as dml_onnx
from tests.onnx.models import Array

_RANDOM = np.random.default_rng(7)


def _file(package: str, path: str) -> str:
    """A model that a package ships."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"{package} is not installed")
    file = Path(next(iter(spec.submodule_search_locations))) / path
    if not file.is_file():
        pytest.skip(f"this version of {package} has no {path}")
    return str(file)


def _theirs(path: str) -> Any:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def _assert_agree(path: str, *feeds: Mapping[str, Array], atol: float = 1e-4) -> None:
    """Checks each run of one session, without a node on the evaluator."""
    theirs = _theirs(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error", dml_onnx.EvaluatorWarning)
        ours = dml_onnx.InferenceSession(path)
        for feed in feeds:
            for result, wanted in zip(ours.run(None, feed), theirs.run(None, feed), strict=True):
                assert result.dtype == wanted.dtype
                assert result.shape == wanted.shape
                np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=atol)


def test_a_classifier_of_files() -> None:
    path = _file("magika", "models/standard_v3_3/model.onnx")
    text = b"import sys\n\n\ndef main():\n    print(sys.argv)\n" * 20
    content = np.full((2, 2048), 256, np.int32)
    content[0, : len(text)] = np.frombuffer(text, np.uint8)
    content[1] = _RANDOM.integers(0, 256, 2048)
    _assert_agree(path, {"bytes": content})


@pytest.mark.parametrize(
    "file", ["silero_vad.onnx", "silero_vad_16k_op15.onnx", "silero_vad_op18_ifless.onnx"]
)
def test_a_recurrent_detector_of_speech(file: str) -> None:
    path = _file("silero_vad", f"data/{file}")
    state = np.zeros((2, 1, 128), np.float32)
    time = np.arange(3 * 576) / 16000
    sound = np.asarray(
        np.sin(2 * np.pi * 220 * time) * (1 + _RANDOM.standard_normal(len(time))) / 4, np.float32
    )
    theirs = _theirs(path)
    names = {each.name for each in theirs.get_inputs()}
    for part in sound.reshape(3, 1, 576):
        feed = {"input": part, "state": state, "sr": np.array(16000, np.int64)}
        feed = {name: each for name, each in feed.items() if name in names}
        _assert_agree(path, feed)
        state = theirs.run(None, feed)[1]


_TEXT_MODELS = [
    ("ch_PP-OCRv4_det_infer.onnx", (1, 3, 64, 96)),
    ("ch_ppocr_mobile_v2.0_cls_infer.onnx", (1, 3, 48, 192)),
    ("ch_PP-OCRv4_rec_infer.onnx", (1, 3, 48, 96)),
]


@pytest.mark.parametrize(("file", "sizes"), _TEXT_MODELS)
def test_readers_of_text_in_images(file: str, sizes: tuple[int, ...]) -> None:
    path = _file("rapidocr_onnxruntime", f"models/{file}")
    _assert_agree(path, {"x": np.asarray(_RANDOM.uniform(-1, 1, sizes), np.float32)})


Export = Callable[[str], str]


@pytest.fixture(scope="module")
def export(tmp_path_factory: Any) -> Export:
    """Writes a PyTorch model, by its name, as PyTorch's exporter does; returns its path."""
    torch = pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("exported")
    modules, inputs = _modules(torch), _inputs()

    def write(name: str) -> str:
        path = folder / f"{name}.onnx"
        if not path.exists():
            torch.manual_seed(3)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                torch.onnx.export(
                    modules[name]().eval(),
                    (torch.from_numpy(inputs[name]),),
                    str(path),
                    dynamo=False,
                    input_names=["x"],
                    output_names=["y"],
                    dynamic_axes={"x": {0: "batch", 1: "length"} if name != "images" else {0: "batch"}},
                    opset_version=17,
                )
        return str(path)

    return write


def _inputs() -> dict[str, Array]:
    random = np.random.default_rng(5)
    return {
        "words": random.integers(0, 50, (2, 7)),
        "sounds": random.standard_normal((2, 9, 12)).astype(np.float32),
        "images": random.standard_normal((2, 3, 24, 20)).astype(np.float32),
    }


def _modules(torch: Any) -> dict[str, Callable[[], Any]]:
    """A transformer, recurrent layers in both directions, a convolutional network with residuals."""
    nn = torch.nn

    class Block(nn.Module):  # type: ignore[misc,name-defined,unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.projection, self.output = nn.Linear(32, 96), nn.Linear(32, 32)
            self.norms = nn.ModuleList([nn.LayerNorm(32), nn.LayerNorm(32)])
            self.feed = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32))

        def forward(self, x: Any) -> Any:
            batch, length, _ = x.shape
            heads = [
                each.view(batch, length, 4, 8).transpose(1, 2) for each in self.projection(x).chunk(3, -1)
            ]
            shares = torch.softmax(heads[0] @ heads[1].transpose(-1, -2) / 8**0.5, -1)
            seen = (shares @ heads[2]).transpose(1, 2).reshape(batch, length, 32)
            x = self.norms[0](x + self.output(seen))
            return self.norms[1](x + self.feed(x))

    class Words(nn.Module):  # type: ignore[misc,name-defined,unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.blocks = nn.Embedding(50, 32), nn.Sequential(Block(), Block())
            self.head = nn.Linear(32, 5)

        def forward(self, x: Any) -> Any:
            return self.head(self.blocks(self.embedding(x)).mean(1))

    class Sounds(nn.Module):  # type: ignore[misc,name-defined,unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.long = nn.LSTM(12, 16, num_layers=2, bidirectional=True, batch_first=True)
            self.gated = nn.GRU(32, 8, batch_first=True)

        def forward(self, x: Any) -> Any:
            return self.gated(self.long(x)[0])[0]

    class Images(nn.Module):  # type: ignore[misc,name-defined,unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Sequential(
                nn.Conv2d(3, 16, 3, stride=2, padding=1), nn.BatchNorm2d(16), nn.ReLU()
            )
            self.second = nn.Sequential(nn.Conv2d(16, 16, 3, padding=1, groups=4), nn.Hardswish())
            self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5))

        def forward(self, x: Any) -> Any:
            y = self.first(x)
            return self.head(torch.max_pool2d(y + self.second(y), 2))

    return {"words": Words, "sounds": Sounds, "images": Images}


def test_a_transformer_of_any_length(export: Export) -> None:
    words = _inputs()["words"]
    _assert_agree(export("words"), {"x": words}, {"x": words[:1, :4]})


def test_layers_of_lstm_and_gru(export: Export) -> None:
    _assert_agree(export("sounds"), {"x": _inputs()["sounds"]})


def test_a_network_for_images(export: Export) -> None:
    _assert_agree(export("images"), {"x": _inputs()["images"]})


@pytest.mark.parametrize("name", ["words", "images"])
def test_what_onnxruntime_fused(name: str, export: Export, tmp_path: Path) -> None:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(tmp_path / "fused.onnx")
    options.log_severity_level = 3
    onnxruntime.InferenceSession(export(name), options, providers=["CPUExecutionProvider"])
    fused = onnx.load(options.optimized_model_filepath)
    assert any(node.domain == "com.microsoft" for node in fused.graph.node)
    _assert_agree(options.optimized_model_filepath, {"x": _inputs()[name]})


def test_a_transformer_with_weights_of_8_bits(export: Export, tmp_path: Path) -> None:
    """One bit is not used: on processors without VNNI, ONNX Runtime adds two products in 16 bits, where they
    would saturate."""
    quantization = pytest.importorskip("onnxruntime.quantization")
    path = str(tmp_path / "words.onnx")
    quantization.quantize_dynamic(export("words"), path, reduce_range=True)
    _assert_agree(path, {"x": _inputs()["words"]}, atol=1e-3)


@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
def test_a_network_in_8_bits(form: str, export: Export, tmp_path: Path) -> None:
    """Without one bit of the weights likewise."""
    quantization = pytest.importorskip("onnxruntime.quantization")
    path = str(tmp_path / "images.onnx")

    class Reader(quantization.CalibrationDataReader):  # type: ignore[misc,name-defined,unused-ignore]
        def __init__(self) -> None:
            self.left = [{"x": _inputs()["images"]}]

        def get_next(self) -> Any:
            return self.left.pop() if self.left else None

    quantization.quantize_static(
        export("images"),
        path,
        Reader(),
        quant_format=quantization.QuantFormat[form],
        per_channel=True,
        reduce_range=True,
    )
    _assert_agree(path, {"x": _inputs()["images"]}, atol=1e-3)
