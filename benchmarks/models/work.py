"""The work of a model: operations of its products, bytes that it has to move, and the floor of its time."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.models.cases import Array

ITEM_BYTES = {"float32": 4, "float16": 2, "int8": 1, "int8-dynamic": 1}
"""Bytes of a weight. Of an 8-bit model a few weights stay wider, so its floor is a little low."""

Sizes = tuple[int, ...]


@dataclass(frozen=True)
class Work:
    """The bytes and operations that one run of a model needs at least.

    Args:
        operations: of products, convolutions and recurrent layers; a multiply-add is two.
        moved: bytes of weights, inputs and outputs. Tables from which rows are gathered are not counted.
    """

    operations: int
    moved: int


@dataclass(frozen=True)
class Rates:
    """What the machine reaches: seconds of a copy of the same bytes, and operations in a second."""

    copy_seconds: float
    operations: float

    def floor(self, work: Work) -> float:
        """Return the milliseconds of the copy or of the operations, whichever is larger."""
        return 1e3 * max(self.copy_seconds, work.operations / self.operations)


def count(path: Path, inputs: Mapping[str, Array], output_elements: int) -> tuple[int, int, int]:
    """Return the operations of a float32 model, the elements of its weights, and those of inputs and outputs.

    ONNX Runtime simplifies the model first. It knows scalar inputs then, which decide about branches.
    """
    import onnx

    model = _simplified(onnx.load(path), inputs)
    graph = model.graph
    used = [name for node in graph.node for place, name in enumerate(node.input) if not _gathers(node, place)]
    weights = sum(prod(each.dims) for each in graph.initializer if each.name in set(used))
    return _operations(model, inputs), weights, output_elements + sum(each.size for each in inputs.values())


def _gathers(node: Any, place: int) -> bool:
    return node.op_type in ("Gather", "GatherElements") and place == 0


def _simplified(model: Any, inputs: Mapping[str, Array]) -> Any:
    import onnx
    import onnxruntime

    scalars = {name: array for name, array in inputs.items() if array.ndim == 0}
    left = [each for each in model.graph.input if each.name not in scalars]
    del model.graph.input[:]
    model.graph.input.extend(left)
    model.graph.initializer.extend(onnx.numpy_helper.from_array(a, name) for name, a in scalars.items())
    with tempfile.TemporaryDirectory() as folder:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        options.optimized_model_filepath = str(Path(folder) / "model.onnx")
        onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return onnx.load(options.optimized_model_filepath)


_OPERANDS: dict[str, tuple[int, ...]] = {
    "Conv": (1,),
    "ConvTranspose": (0, 1),
    "MatMul": (0,),
    "FusedMatMul": (0, 1),
    "Gemm": (0,),
    "LSTM": (0, 1, 2),
    "GRU": (0, 1, 2),
    "RNN": (0, 1, 2),
}
"""Inputs whose sizes say how many operations a node has, beside those of its first output."""


def _operations(model: Any, inputs: Mapping[str, Array]) -> int:
    """Run the model with the sizes of what products read and write as its outputs."""
    import onnx
    import onnxruntime

    graph, wanted = model.graph, dict[str, None]()
    nodes = [node for node in graph.node if node.op_type in _OPERANDS]
    for node in nodes:
        first = node.output[0] or node.output[1]  # Recurrent layers may have only their last state.
        wanted |= dict.fromkeys([first, *(node.input[place] for place in _OPERANDS[node.op_type])])
    del graph.output[:]
    for name in wanted:
        graph.node.append(onnx.helper.make_node("Shape", [name], [f"sizes of {name}"]))
        info = onnx.helper.make_tensor_value_info(f"sizes of {name}", onnx.TensorProto.INT64, None)
        graph.output.append(info)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    needed = {each.name for each in session.get_inputs()}
    found = session.run(None, {name: array for name, array in inputs.items() if name in needed})
    sizes = {name: tuple(each.tolist()) for name, each in zip(wanted, found, strict=True)}
    total = 0
    for node in nodes:
        operands = [sizes[node.input[place]] for place in _OPERANDS[node.op_type]]
        total += 2 * _multiply_adds(node, operands, sizes[node.output[0] or node.output[1]])
    return total


def _multiply_adds(node: Any, operands: list[Sizes], output: Sizes) -> int:
    attributes = {each.name: each.i for each in node.attribute}
    match node.op_type:
        case "Conv":
            return prod(output) * prod(operands[0][1:])
        case "ConvTranspose":
            return prod(operands[0]) * prod(operands[1][1:])
        case "MatMul":
            return prod(output) * operands[0][-1]
        case "Gemm":
            return prod(output) * operands[0][0 if attributes.get("transA") else 1]
        case "FusedMatMul":
            return prod(output) * operands[0][-2 if attributes.get("transA") else -1]
        case _:  # A recurrent layer multiplies both of its matrices in each step.
            steps, batch = operands[0][:2]
            return steps * batch * (prod(operands[1]) + prod(operands[2]))


_REPEATS = 5


def measure_rates(moved: int, type: str, threads: int, device: str) -> Rates:
    """Measure a copy of so many bytes and the rate of multiply-adds; each is the best of some rounds."""
    return _cuda_rates(moved, type) if device == "cuda" else _cpu_rates(moved, type, threads)


def _cpu_rates(moved: int, type: str, threads: int) -> Rates:
    from benchmarks.peak import Peak
    from benchmarks.yardstick import Copy
    from opendml.program.scalar_type import ScalarType
    from opendml.targets.cpu.contraction.arithmetic import has_bytes
    from opendml.targets.cpu.machine import machine

    copy = Copy(max(moved // 2, threads), threads)
    in_bytes = type.startswith("int8") and has_bytes(machine())
    peak = Peak(threads, ScalarType.INT8 if in_bytes else ScalarType.FLOAT32)
    return Rates(
        min(copy.seconds() for _ in range(_REPEATS)), max(peak.operations() for _ in range(_REPEATS))
    )


def _cuda_rates(moved: int, type: str) -> Rates:
    import torch

    source = torch.ones(max(moved // 2, 1), dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    length, dtype = 8192, torch.float16 if type == "float16" else torch.float32
    a, b = (torch.randn(length, length, dtype=dtype, device="cuda") for _ in range(2))

    def seconds(call: Any) -> float:
        times = []
        for _ in range(_REPEATS):
            first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            first.record()
            call()
            last.record()
            last.synchronize()
            times.append(float(first.elapsed_time(last)) / 1e3)
        return min(times)

    return Rates(seconds(lambda: target.copy_(source)), 2 * length**3 / seconds(lambda: a @ b))


SMALL = 1e-3  # Probabilities of a detector that finds nothing are smaller, and engines round them otherwise.


def difference(found: list[Array], expected: list[Array]) -> float:
    """Return the largest distance of an output from the expected one, as a share of the latter's length.

    Outputs below `SMALL` count as if they were so large. The share is infinite for other sizes, and where a
    value is no number.
    """
    if [each.shape for each in found] != [each.shape for each in expected]:
        return float("inf")
    worst = 0.0
    for one, other in zip(found, expected, strict=True):
        wanted = other.astype(np.float64)
        distance = float(np.linalg.norm((one.astype(np.float64) - wanted).ravel()))
        length = max(float(np.linalg.norm(wanted.ravel())), SMALL * wanted.size**0.5)
        share = distance / (length or 1.0)
        worst = max(worst, share) if share == share else float("inf")
    return worst
