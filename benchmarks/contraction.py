"""Times matrix products and convolutions on the CPU beside NumPy, PyTorch and ONNX Runtime.

python -m benchmarks.contraction [--words WORD ...] [--rounds N] [--threads N] [--out DIRECTORY]

All take turns on the same threads and values; figures are medians, in GFLOP/s. The floor is the time of the
multiply-adds alone, at the speed of a loop over registers that takes its turn with them.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.__main__ import RESULTS, pin_threads

Array = np.ndarray[Any, np.dtype[Any]]

PRODUCTS = [
    (512, 512, 512),
    (1024, 1024, 1024),
    (2048, 2048, 2048),
    (128, 768, 768),
    (128, 768, 3072),
    (1, 4096, 4096),
    (4096, 64, 64),
    (50176, 64, 147),
]
"""m, n, k."""

CONVOLUTIONS = [
    (3, 224, 64, 7, 2),
    (64, 56, 64, 1, 1),
    (64, 56, 64, 3, 1),
    (64, 56, 256, 1, 1),
    (256, 56, 64, 1, 1),
    (128, 56, 128, 3, 2),
    (128, 28, 128, 3, 1),
    (128, 28, 512, 1, 1),
    (256, 56, 512, 1, 2),
    (256, 14, 256, 3, 1),
    (256, 14, 1024, 1, 1),
    (512, 7, 512, 3, 1),
    (512, 7, 2048, 1, 1),
    (96, 56, 24, 1, 1),
    (32, 112, 16, 1, 1),
]
"""Channels, height and width, filters, window, stride: layers of ResNet-50 and MobileNetV2, batch 1, with
bias and ReLU."""


@dataclass(frozen=True)
class Case:
    """One product, said in every way; the first contender is opendml."""

    name: str
    operations: int
    contenders: dict[str, Callable[[], Any]]


def products(threads: int) -> Iterator[Case]:
    """Products of matrices, C = A B."""
    import torch

    for m, n, k in PRODUCTS:
        a, b = _random(m, k), _random(k, n)
        out = np.empty((m, n), np.float32)
        left, right, target = torch.from_numpy(a), torch.from_numpy(b), torch.empty(m, n)
        yield Case(
            f"{m} x {n} x {k}",
            2 * m * n * k,
            {
                "opendml": _opendml_product(a, b),
                "numpy": partial(np.matmul, a, b, out=out),
                "torch": partial(torch.mm, left, right, out=target),
                "onnxruntime": _onnx("MatMul", [a, b], {}, threads),
            },
        )


def convolutions(threads: int) -> Iterator[Case]:
    """Convolutions with bias and ReLU."""
    import torch

    for channels, size, filters, window, stride in CONVOLUTIONS:
        x, w, bias = (
            _random(1, channels, size, size),
            _random(filters, channels, window, window),
            _random(filters),
        )
        margin = window // 2
        edge = (size + 2 * margin - window) // stride + 1
        tensors = [torch.from_numpy(each) for each in (x, w, bias)]
        attributes = {"strides": [stride] * 2, "pads": [margin] * 4}
        yield Case(
            f"{channels} x {size} x {size}, {filters} of {window} x {window}, stride {stride}",
            2 * filters * channels * window * window * edge * edge,
            {
                "opendml": _opendml_convolution(x, w, bias, stride),
                "torch": partial(_torch_convolution, tensors, stride, margin),
                "onnxruntime": _onnx("Conv", [x, w, bias], attributes, threads, relu=True),
            },
        )


def _torch_convolution(tensors: list[Any], stride: int, margin: int) -> Any:
    import torch

    return torch.relu_(torch.nn.functional.conv2d(*tensors, stride=stride, padding=margin))


def _random(*sizes: int) -> Array:
    return np.random.default_rng(len(sizes)).standard_normal(sizes, np.float32)


def _opendml_product(a: Array, b: Array) -> Callable[[], Any]:
    from opendml.program.node import contraction, source
    from opendml.program.scalar_type import ScalarType
    from opendml.program.view import permuted, reshaped

    (m, k), n = a.shape, b.shape[1]
    left, right = (source(index, ScalarType.FLOAT32, each.shape) for index, each in enumerate((a, b)))
    total = contraction(reshaped(left, (m, 1, k)), reshaped(permuted(right, (1, 0)), (1, n, k)), (2,))
    return _bound(reshaped(total, (m, n)), [a, b])


def _opendml_convolution(x: Array, w: Array, bias: Array, stride: int) -> Callable[[], Any]:
    from opendml.program.functions import maximum
    from opendml.program.node import contraction, source
    from opendml.program.scalar_type import ScalarType
    from opendml.program.view import permuted, reshaped, windows

    filters, channels, window, _ = w.shape
    margin = window // 2
    edge = (x.shape[2] + 2 * margin - window) // stride + 1
    image, weights, addend = (
        source(index, ScalarType.FLOAT32, each.shape) for index, each in enumerate((x, w, bias))
    )
    seen = windows(image, (edge, edge), (window,) * 2, (stride,) * 2, (1, 1), (margin,) * 2)
    seen = reshaped(permuted(seen, (0, 2, 3, 1, 4, 5)), (1, 1, edge, edge, channels, window, window))
    total = contraction(reshaped(weights, (1, filters, 1, 1, channels, window, window)), seen, (4, 5, 6))
    total = reshaped(total, (1, filters, edge, edge)) + reshaped(addend, (1, filters, 1, 1))
    return _bound(maximum(total, 0.0), [x, w, bias])


def _bound(result: Any, inputs: list[Array]) -> Callable[[], Any]:
    """The dispatch of a program over arrays, which it keeps alive."""
    from opendml.program.program import Layout, Program, packed
    from opendml.program.scalar_type import ScalarType
    from opendml.runtime.graphs.compiled_work import compile_program

    layouts = tuple(Layout(ScalarType.FLOAT32, each.shape, each.strides) for each in inputs)
    out = np.empty(result.sizes, np.float32)
    program = Program(layouts, (packed(result.type, result.sizes),), (result,))
    instance = compile_program(program, "cpu").instantiate()
    for buffer, array in enumerate((*inputs, out)):
        instance.bind(buffer, array.ctypes.data)
    dispatch = instance.dispatch

    def run() -> Array:
        dispatch()
        return out

    run.keeps = inputs, instance  # type: ignore[attr-defined]
    return run


def _onnx(
    operator: str, inputs: list[Array], attributes: dict[str, Any], threads: int, relu: bool = False
) -> Callable[[], Any]:
    """ONNX Runtime's call of one operator; of a convolution all but the first input is constant."""
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    names = [f"x{index}" for index in range(len(inputs))]
    nodes = [helper.make_node(operator, names, ["y"], **attributes)]
    if relu:
        nodes.append(helper.make_node("Relu", ["y"], ["z"]))
    fed = 1 if relu else len(inputs)
    graph = helper.make_graph(
        nodes,
        operator,
        [helper.make_tensor_value_info(names[i], TensorProto.FLOAT, inputs[i].shape) for i in range(fed)],
        [helper.make_tensor_value_info("z" if relu else "y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(inputs[i], names[i]) for i in range(fed, len(inputs))],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    feed = dict(zip(names[:fed], inputs[:fed], strict=True))
    return lambda: session.run(None, feed)[0]


def time_case(case: Case, peak: Any, rounds: int) -> dict[str, Any]:
    """Median GFLOP/s of all contenders and of the floor, in turns, and the largest difference from them."""
    results = {name: np.asarray(contender()) for name, contender in case.contenders.items()}
    reference = results["opendml"]
    scale = float(np.abs(reference).max())
    difference = max(float(np.abs(each - reference).max()) / scale for each in results.values())
    speeds: dict[str, list[float]] = {name: [] for name in ("floor", *case.contenders)}
    for _ in range(rounds):
        speeds["floor"].append(peak.flops() / 1e9)
        for name, contender in case.contenders.items():
            contender()
            begun = time.perf_counter()
            contender()
            speeds[name].append(case.operations / (time.perf_counter() - begun) / 1e9)
    medians = {name: statistics.median(values) for name, values in speeds.items()}
    fastest = max(value for name, value in medians.items() if name not in ("floor", "opendml"))
    return {
        "name": case.name,
        "of_floor": medians["opendml"] / medians["floor"],
        "of_fastest": medians["opendml"] / fastest,
        "gflops": medians,
        "difference": difference,
    }


def table(rows: list[dict[str, Any]]) -> str:
    """The rows as a Markdown table."""
    columns = ("floor", "opendml", "numpy", "torch", "onnxruntime")
    lines = [f"| case | of floor | of fastest peer | {' | '.join(columns)} |", "|---" * 8 + "|"]
    for row in rows:
        speeds = row["gflops"]
        shown = " | ".join(f"{speeds[name]:.0f}" if name in speeds else "" for name in columns)
        lines.append(f"| {row['name']} | {row['of_floor']:.2f} | {row['of_fastest']:.2f} | {shown} |")
    return "\n".join(lines)


def main() -> None:
    """Times the cases and writes the table."""
    parser = argparse.ArgumentParser(description="Times matrix products and convolutions on the CPU.")
    parser.add_argument("--words", nargs="*", default=[])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    pin_threads(arguments.threads)
    import torch

    from benchmarks.peak import Peak
    from benchmarks.report import processor_name

    torch.set_num_threads(arguments.threads)
    peak = Peak(arguments.threads)
    rows = []
    for case in (*products(arguments.threads), *convolutions(arguments.threads)):
        if all(word in case.name for word in arguments.words):
            row = time_case(case, peak, arguments.rounds)
            rows.append(row)
            print(
                f"{case.name:44} {row['of_floor']:.2f} of floor, {row['of_fastest']:.2f} of fastest",
                flush=True,
            )
    processor = processor_name()
    stem = arguments.out / f"{date.today().isoformat()}-{'-'.join(processor.lower().split())}-contraction"
    facts = {"processor": processor, "threads": arguments.threads, "rounds": arguments.rounds}
    stem.with_suffix(".json").write_text(json.dumps({**facts, "rows": rows}, indent=1))
    head = (
        f"# Sums of products, {date.today().isoformat()}\n\n{processor}, {arguments.threads} threads; "
        f"medians of {arguments.rounds} rounds in turns, GFLOP/s.\n\n"
    )
    stem.with_suffix(".md").write_text(head + table(rows) + "\n")


if __name__ == "__main__":
    main()
