"""Measures the memory of models that meet many sizes, beside ONNX Runtime.

python -m benchmarks.memory [--models chain transformer convolutions] [--engines opendml onnxruntime]
    [--counts 1 8 64] [--threads N]

Each engine loads a file in a process of its own, runs the first sizes of a list, and tells its resident
memory (VmRSS) after so many of them, its peak (VmHWM), and the seconds that all runs took. Weights are
random: only their sizes matter. The files lie in the folder for temporary files, and are made once.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.__main__ import pin_threads
from benchmarks.onnx_model import IR_VERSION, OPSET, Builder

Sizes = tuple[int | str, ...]

CHAIN_WIDTH, CHAIN_LENGTH = 2048, 12
LAYERS, WIDTH, HEADS, HIDDEN = 12, 768, 12, 3072
"""Those of BERT: 85 million parameters without its embedding."""
CHANNELS = (64, 128, 256, 512)
"""Channels of the stages of the convolution network, as in ResNet."""
BLOCKS = 2
"""Residual blocks of a stage."""
MEGABYTE = 1e6


def main() -> None:
    """Prints a table, or, in the process of one engine, its figures."""
    parser = argparse.ArgumentParser(description="Memory of models that meet many sizes")
    parser.add_argument("--models", nargs="*", choices=MODELS, default=list(MODELS))
    parser.add_argument("--engines", nargs="*", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--counts", nargs="*", type=int, default=[1, 8, 64])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--engine", choices=ENGINES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    pin_threads(arguments.threads)
    if arguments.engine:
        (name,) = arguments.models
        print(json.dumps(measured(arguments.engine, name, arguments.counts, arguments.threads)))
        return
    print("| model | sizes | engine | MB | peak MB | of ONNX Runtime | s |", "|---" * 7 + "|", sep="\n")
    for name in arguments.models:
        file_of(name)
        figures = {engine: _apart(engine, name, arguments) for engine in arguments.engines}
        for number, count in enumerate(figures[arguments.engines[0]]["counts"]):
            for engine, each in figures.items():
                resident, peer = (
                    each["resident"][number],
                    figures.get("onnxruntime", each)["resident"][number],
                )
                peak, seconds = each["peak"][number], each["seconds"][number]
                print(
                    f"| {name} | {count} | {engine} | {resident:.0f} | {peak:.0f} | {resident / peer:.2f} "
                    f"| {seconds:.1f} |",
                    flush=True,
                )


def _apart(engine: str, name: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """The figures of an engine from a process of its own."""
    counts = map(str, arguments.counts)
    command = [sys.executable, "-m", "benchmarks.memory", "--engine", engine, "--models", name]
    command += ["--threads", str(arguments.threads), "--counts", *counts]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def measured(engine: str, name: str, counts: Sequence[int], threads: int) -> dict[str, Any]:
    """Resident memory, its peak and the seconds after so many sizes of a model."""
    run = ENGINES[engine](file_of(name), threads)
    _, sizes, _ = MODELS[name]
    figures: dict[str, list[float]] = {"counts": [], "resident": [], "peak": [], "seconds": []}
    begun = perf_counter()
    for number, each in enumerate(sizes()[: max(counts)], 1):
        run(np.zeros(each, np.float32))
        if number in counts or number == len(sizes()):
            status = _status()
            figures["counts"].append(number)
            figures["resident"].append(status["VmRSS"])
            figures["peak"].append(status["VmHWM"])
            figures["seconds"].append(perf_counter() - begun)
    return figures


def _status() -> dict[str, float]:
    """Return the memory of this process as the system states it, in megabytes."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    pairs = (line.split(":") for line in lines if line.startswith("Vm"))
    return {name: int(text.split()[0]) * 1024 / MEGABYTE for name, text in pairs}


def _opendml(path: Path, threads: int) -> Callable[[Any], object]:
    import opendml as dml

    return dml.onnx.load(path, dml.Device("cpu", threads=threads))


def _onnxruntime(path: Path, threads: int) -> Callable[[Any], object]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda x: session.run(None, {"x": x})


ENGINES: dict[str, Callable[[Path, int], Callable[[Any], object]]] = {
    "opendml": _opendml,
    "onnxruntime": _onnxruntime,
}


def file_of(name: str) -> Path:
    """The file of a model, which is made if it is not there."""
    make, _, dimensions = MODELS[name]
    path = Path(tempfile.gettempdir()) / f"opendml-memory-{name}.onnx"
    if not path.exists():
        import onnx

        builder = Builder("float32")
        result = make(builder)
        helper = onnx.helper
        x, y = (
            helper.make_tensor_value_info(each, builder.type, sizes)
            for each, sizes in (("x", dimensions), (result, None))
        )
        graph = helper.make_graph(builder.nodes, name, [x], [y], builder.constants)
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION
        )
        part = path.with_suffix(".part")
        part.write_bytes(model.SerializeToString())
        part.replace(path)
    return path


def _weights(*sizes: int) -> Any:
    scale = np.float32(np.prod(sizes[1:]) ** -0.5)
    return np.random.default_rng(len(sizes)).standard_normal(sizes, np.float32) * scale


def _chain(builder: Builder) -> str:
    value = "x"
    for _ in range(CHAIN_LENGTH):
        product = builder.node("MatMul", value, builder.constant(_weights(CHAIN_WIDTH, CHAIN_WIDTH)))
        value = builder.node("Relu", product)
    return value


def _transformer(builder: Builder) -> str:
    """Build a transformer of (batch, length, width); heads are split and joined as exporters do."""
    integers = np.int64
    split = builder.constant([0, 0, HEADS, WIDTH // HEADS], integers)
    joined = builder.constant([0, 0, WIDTH], integers)
    scale = builder.constant((WIDTH // HEADS) ** -0.5)

    def linear(value: str, inputs: int, outputs: int) -> str:
        product = builder.node("MatMul", value, builder.constant(_weights(inputs, outputs)))
        return builder.node("Add", product, builder.constant(np.zeros(outputs)))

    def heads(value: str, order: Sequence[int]) -> str:
        projected = builder.node("Reshape", linear(value, WIDTH, WIDTH), split)
        return builder.node("Transpose", projected, perm=order)

    def normalized(value: str) -> str:
        ones, zeros = (builder.constant(make(WIDTH)) for make in (np.ones, np.zeros))
        return builder.node("LayerNormalization", value, ones, zeros, axis=-1)

    value = "x"
    for _ in range(LAYERS):
        q, k, v = (heads(value, order) for order in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
        scores = builder.node("Mul", builder.node("MatMul", q, k), scale)
        weighted = builder.node("MatMul", builder.node("Softmax", scores, axis=-1), v)
        attended = builder.node("Reshape", builder.node("Transpose", weighted, perm=[0, 2, 1, 3]), joined)
        value = normalized(builder.node("Add", value, linear(attended, WIDTH, WIDTH)))
        hidden = builder.node("Gelu", linear(value, WIDTH, HIDDEN))
        value = normalized(builder.node("Add", value, linear(hidden, HIDDEN, WIDTH)))
    return value


def _convolutions(builder: Builder) -> str:
    """Build a network of (batch, 3, height, width): residual blocks, whose stages halve the image."""

    def convolved(value: str, inputs: int, outputs: int, size: int = 3, stride: int = 1) -> str:
        weights = builder.constant(_weights(outputs, inputs, size, size))
        pads = [size // 2] * 4
        return builder.node(
            "Conv", value, weights, builder.constant(np.zeros(outputs)), strides=[stride] * 2, pads=pads
        )

    before = CHANNELS[0]
    value = builder.node("Relu", convolved("x", 3, before, 7, 2))
    value = builder.node("MaxPool", value, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for channels in CHANNELS:
        for block in range(BLOCKS):
            stride = 2 if block == 0 and channels != CHANNELS[0] else 1
            beside = convolved(value, before, channels, 1, stride) if channels != before else value
            inner = builder.node("Relu", convolved(value, before, channels, 3, stride))
            value = builder.node("Relu", builder.node("Add", convolved(inner, channels, channels), beside))
            before = channels
    pooled = builder.node("Flatten", builder.node("GlobalAveragePool", value))
    return builder.node("MatMul", pooled, builder.constant(_weights(before, 1000)))


def _chain_sizes() -> list[Sizes]:
    return [(rows, CHAIN_WIDTH) for rows in range(1, 65)]


def _transformer_sizes() -> list[Sizes]:
    """Mixed, as they come: 64 of few sentences and short texts."""
    sizes = [(batch, length, WIDTH) for batch in (1, 2, 4, 8) for length in range(4, 68, 4)]
    random.Random(0).shuffle(sizes)
    return list(sizes)


def _image_sizes() -> list[Sizes]:
    return [(1, 3, size, size + 32 * (size % 64 == 0)) for size in range(64, 704, 32)]


MODELS: dict[str, tuple[Callable[[Builder], str], Callable[[], list[Sizes]], Sizes]] = {
    "chain": (_chain, _chain_sizes, ("n", CHAIN_WIDTH)),
    "transformer": (_transformer, _transformer_sizes, ("batch", "length", WIDTH)),
    "convolutions": (_convolutions, _image_sizes, ("batch", 3, "height", "width")),
}
"""For each model what builds it, the sizes that it meets, and those that it declares."""


if __name__ == "__main__":
    main()
