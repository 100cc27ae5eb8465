"""Times the network of `examples/style_transfer.py` on the CPU beside PyTorch, ONNX Runtime and OpenVINO.

python -m benchmarks.style_transfer [--style NAME] [--weights FOLDER] [--size N] [--rounds N] [--threads N]

All repaint the same photograph in turns on the same threads; figures are medians. The floor is the time of
the multiply-adds of the convolutions alone, at the speed of a loop over registers that takes its turn with
them. Differences are from PyTorch's float64, of values from 0 to 255 before they are clipped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.onnx_model import IR_VERSION, Builder
from benchmarks.sessions import onnxruntime_session, openvino_request
from benchmarks.table_command import parsed, table_options, write_table
from benchmarks.turns import in_turns
from examples.style_transfer import (
    BORDER,
    MEANS,
    RESIDUAL_BLOCKS,
    STYLES,
    WEIGHTS,
    Picture,
    Weights,
    build,
    load_photo,
    load_weights,
    numbered,
)

Run = Callable[[], Any]
OPSET = 17


def operations(weights: Weights, size: int) -> int:
    """Of all convolutions for a picture of that height and width, a multiply-add being two."""
    first = size + 2 * BORDER
    inside = [first // 4 - 2 * layer for layer in range(1, 2 * RESIDUAL_BLOCKS + 1)]
    # Those of outputs or, where the convolution is transposed, of inputs.
    edges = [first, first // 2, first // 4, *inside, size // 4, size // 2, size]
    filters = (weights[f"{numbered('convolution', layer)}_W"] for layer in range(len(edges)))
    return sum(2 * filter.size * edge**2 for filter, edge in zip(filters, edges, strict=True))


def torch_network(weights: Weights, photo: Any) -> Any:
    """The repainted tensor by PyTorch, in the type of `photo`."""
    import torch
    from torch.nn import functional

    constants = {name: torch.from_numpy(array).to(photo.dtype) for name, array in weights.items()}

    def convolved(x: Any, layer: int, padding: int = 0, stride: int = 1) -> Any:
        filter, bias = (constants[f"{numbered('convolution', layer)}_{part}"] for part in "WB")
        return functional.conv2d(x, filter, bias, stride, padding)

    def enlarged(x: Any, layer: int) -> Any:
        filter, bias = (constants[f"convolution{layer}_{part}"] for part in "WB")
        return functional.conv_transpose2d(x, filter, bias, stride=2, padding=1, output_padding=1)

    def normalized(x: Any, layer: int, relu: bool = True) -> Any:
        scale, bias = (constants[numbered(f"InstanceNormalization_{part}", layer)] for part in ("scale", "B"))
        x = functional.instance_norm(x, weight=scale, bias=bias, eps=1e-5)
        return torch.relu_(x) if relu else x

    x = photo - torch.tensor(MEANS, dtype=photo.dtype).reshape(1, 3, 1, 1)
    x = functional.pad(x, [BORDER] * 4, mode="reflect")
    x = normalized(convolved(x, 0, padding=4), 0)
    for layer in (1, 2):
        x = normalized(convolved(x, layer, padding=1, stride=2), layer)
    for layer in range(3, 3 + 2 * RESIDUAL_BLOCKS, 2):
        y = normalized(convolved(x, layer), layer)
        y = normalized(convolved(y, layer + 1), layer + 1, relu=False)
        x = x[:, :, 2:-2, 2:-2] + y
    for layer in (13, 14):
        x = normalized(enlarged(x, layer), layer)
    x = torch.tanh(convolved(x, 15, padding=4))
    return x * 150 * constants["Mul_B"] + constants["scale_B"]


def onnx_model(weights: Weights, size: int) -> bytes:
    """The network as a serialized ONNX model from "photo" to "painting"."""
    import onnx

    builder = Builder("float32")
    node, constant = builder.node, builder.constant

    def convolved(x: str, layer: int, padding: int = 0, stride: int = 1) -> str:
        filter, bias = (constant(weights[f"{numbered('convolution', layer)}_{part}"]) for part in "WB")
        return node("Conv", x, filter, bias, pads=[padding] * 4, strides=[stride] * 2)

    def enlarged(x: str, layer: int) -> str:
        filter, bias = (constant(weights[f"convolution{layer}_{part}"]) for part in "WB")
        padding = {"pads": [1] * 4, "output_padding": [1, 1]}
        return node("ConvTranspose", x, filter, bias, strides=[2, 2], **padding)

    def normalized(x: str, layer: int, relu: bool = True) -> str:
        scale, bias = (
            constant(weights[numbered(f"InstanceNormalization_{part}", layer)]) for part in ("scale", "B")
        )
        x = node("InstanceNormalization", x, scale, bias, epsilon=1e-5)
        return node("Relu", x) if relu else x

    x = node("Sub", "photo", constant(np.reshape(MEANS, (1, 3, 1, 1))))
    border = [0, 0, BORDER, BORDER]
    x = node("Pad", x, constant([*border, *border], np.int64), mode="reflect")
    x = normalized(convolved(x, 0, padding=4), 0)
    for layer in (1, 2):
        x = normalized(convolved(x, layer, padding=1, stride=2), layer)
    begin, end, axes = (constant(pair, np.int64) for pair in ([2, 2], [-2, -2], [2, 3]))
    for layer in range(3, 3 + 2 * RESIDUAL_BLOCKS, 2):
        y = normalized(convolved(x, layer), layer)
        y = normalized(convolved(y, layer + 1), layer + 1, relu=False)
        x = node("Add", node("Slice", x, begin, end, axes), y)
    for layer in (13, 14):
        x = normalized(enlarged(x, layer), layer)
    x = node("Mul", node("Tanh", convolved(x, 15, padding=4)), constant(150.0))
    node("Add", node("Mul", x, constant(weights["Mul_B"])), constant(weights["scale_B"]))
    builder.nodes[-1].output[0] = "painting"
    helper = onnx.helper
    photo, painting = (
        helper.make_tensor_value_info(name, builder.type, [1, 3, size, size])
        for name in ("photo", "painting")
    )
    graph = helper.make_graph(builder.nodes, "style_transfer", [photo], [painting], builder.constants)
    opset = [helper.make_opsetid("", OPSET)]
    return bytes(helper.make_model(graph, opset_imports=opset, ir_version=IR_VERSION).SerializeToString())


def _opendml(weights: Weights, photo: Picture, threads: int) -> Run:
    import opendml as dml

    painting = np.empty_like(photo)
    height, width = photo.shape[2:]
    model = build(weights, height, width, dml.Device("cpu", threads=threads))
    dispatch = model.bind({"photo": photo}, {"painting": painting}).dispatch

    def run() -> Picture:
        dispatch()
        return painting

    return run


def _torch(weights: Weights, photo: Picture, threads: int) -> Run:
    import torch

    tensor = torch.from_numpy(photo)
    return lambda: torch_network(weights, tensor)


def _onnxruntime(weights: Weights, photo: Picture, threads: int) -> Run:
    session = onnxruntime_session(onnx_model(weights, photo.shape[2]), threads)
    return lambda: session.run(None, {"photo": photo})[0]


def _openvino(weights: Weights, photo: Picture, threads: int) -> Run:
    request = openvino_request(onnx_model(weights, photo.shape[2]), threads)
    return lambda: request.infer({"photo": photo}, share_inputs=True, share_outputs=True)[0]


CONTENDERS: dict[str, Callable[[Weights, Picture, int], Run]] = {
    "opendml": _opendml,
    "torch": _torch,
    "onnxruntime": _onnxruntime,
    "openvino": _openvino,
}


def measure(weights: Weights, photo: Picture, rounds: int, threads: int) -> list[dict[str, Any]]:
    """A row for the floor and for each contender that is installed: median milliseconds, GFLOP/s, and the
    largest difference from float64."""
    import torch

    from benchmarks.peak import Peak

    peak, count = Peak(threads), operations(weights, photo.shape[2])
    exact = torch_network(weights, torch.from_numpy(photo.astype(np.float64))).numpy()
    runs: dict[str, Run] = {}
    for name, prepare in CONTENDERS.items():
        try:
            runs[name] = prepare(weights, photo, threads)
        except ImportError:
            print(f"{name} is not installed")
    differences = {name: float(np.abs(np.asarray(run()) - exact).max()) for name, run in runs.items()}
    medians = in_turns(lambda: count / peak.operations(), runs, rounds)
    return [
        {
            "name": name,
            "milliseconds": median,
            "of_floor": medians["floor"] / median,
            "gflops": count / median / 1e6,
            "difference": differences.get(name),
        }
        for name, median in medians.items()
    ]


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows as a Markdown table."""
    lines = ["| | ms | of floor | GFLOP/s | difference |", "|---|--:|--:|--:|--:|"]
    for row in rows:
        difference = "" if row["difference"] is None else f"{row['difference']:.2g}"
        lines.append(
            f"| {row['name']} | {row['milliseconds']:.0f} | {row['of_floor']:.2f} | {row['gflops']:.0f} "
            f"| {difference} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Times the network and writes the table."""
    parser = table_options("Times the network of the style transfer example.")
    parser.add_argument("--style", choices=STYLES, default=STYLES[0])
    parser.add_argument("--weights", type=Path, default=WEIGHTS, metavar="FOLDER")
    parser.add_argument("--size", type=int, default=720)
    arguments = parsed(parser)
    import torch

    torch.set_grad_enabled(False)
    weights = load_weights(arguments.weights, arguments.style)
    photo = load_photo(arguments.weights / "dog.jpg", arguments.size)
    rows = measure(weights, photo, arguments.rounds, arguments.threads)
    print(table(rows))
    facts = {"style": arguments.style, "size": arguments.size}
    setting = f"{arguments.size} x {arguments.size} pixels"
    write_table("style-transfer", "Style transfer", arguments, rows, table(rows), setting=setting, **facts)


if __name__ == "__main__":
    main()
