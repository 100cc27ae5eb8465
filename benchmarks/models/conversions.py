"""Makes models in other types, and models of the onnx package with weights that differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from benchmarks.models.cases import Array, Inputs

CALIBRATION_INPUTS = 4


def to_float16(source: Path, target: Path) -> None:
    """Write a float32 model in float16, inputs and outputs too."""
    from onnxruntime.transformers.float16 import convert_float_to_float16

    model = onnx.load(source)
    onnx.save(convert_float_to_float16(model, op_block_list=[], disable_shape_infer=False), target)


def to_int8(source: Path, target: Path, inputs: Inputs) -> None:
    """Write a float32 model with 8-bit weights and activations, whose ranges random inputs give."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static

    class Reader(CalibrationDataReader):  # type: ignore[misc,unused-ignore]
        def __init__(self) -> None:
            self._inputs = _calibration(inputs)

        def get_next(self) -> dict[str, Array] | None:
            return next(self._inputs, None)

    opset = next(each.version for each in onnx.load(source).opset_import if each.domain in ("", "ai.onnx"))
    # Before opset 13, DequantizeLinear has one scale for the whole tensor.
    quantize_static(source, target, Reader(), quant_format=QuantFormat.QDQ, per_channel=opset >= 13)


def to_int8_dynamic(source: Path, target: Path, inputs: Inputs) -> None:
    """Write a float32 model whose matrix products have 8-bit weights."""
    from onnxruntime.quantization import quantize_dynamic

    quantize_dynamic(source, target, op_types_to_quantize=["MatMul", "Gemm"], per_channel=True)


def _calibration(inputs: Inputs) -> Iterator[dict[str, Array]]:
    random = np.random.default_rng(1)
    return (inputs(random) for _ in range(CALIBRATION_INPUTS))


def with_random_weights(model: Any) -> Any:
    """Replace the constants of a `light` model, which are all equal, by random weights.

    Equal weights make equal outputs, which agree with wrong ones. Quantization needs weights that are stored.
    """
    random = np.random.default_rng(0)
    graph = model.graph
    sizes = {each.name: onnx.numpy_helper.to_array(each) for each in graph.initializer}
    readers = {name: (node, place) for node in graph.node for place, name in enumerate(node.input)}
    # Halves what each layer adds to a sum, which would double from block to block.
    gain = 0.5 if any(node.op_type == "Sum" for node in graph.node) else 1.0
    nodes, weights = [], []
    for node in graph.node:
        if node.op_type != "ConstantOfShape":
            nodes.append(node)
            continue
        (name,), shape = node.output, tuple(sizes.pop(node.input[0]).tolist())
        reader, place = readers[name]
        if reader.op_type == "Unsqueeze":  # between the constants of a layer and where they are used
            reader, place = readers[reader.output[0]]
        make = _WEIGHTS.get((reader.op_type, place), _bias)
        weights.append(onnx.numpy_helper.from_array(make(random, shape, gain).astype(np.float32), name))
    given = [each for each in graph.input if each.name not in {known.name for known in graph.initializer}]
    kept = [each for each in graph.initializer if each.name in sizes]
    for field, values in ((graph.node, nodes), (graph.initializer, kept + weights), (graph.input, given)):
        del field[:]
        field.extend(values)
    model.ir_version = 8  # Before 4, initializers have to be inputs.
    return model


Maker = Callable[[np.random.Generator, tuple[int, ...], float], Array]


def _bias(random: np.random.Generator, shape: tuple[int, ...], gain: float) -> Array:
    return random.standard_normal(shape) * 0.02


def _filter(random: np.random.Generator, shape: tuple[int, ...], gain: float) -> Array:
    fan_in = np.prod(shape[1:])
    return np.asarray(random.standard_normal(shape, np.float32) * np.sqrt(2 / fan_in))


def _scale(random: np.random.Generator, shape: tuple[int, ...], gain: float) -> Array:
    return random.uniform(0.9, 1.1, shape) * gain


def _variance(random: np.random.Generator, shape: tuple[int, ...], gain: float) -> Array:
    return random.uniform(0.9, 1.1, shape)


_WEIGHTS: dict[tuple[str, int], Maker] = {
    ("Conv", 1): _filter,
    ("Gemm", 1): _filter,
    ("BatchNormalization", 1): _scale,
    ("BatchNormalization", 4): _variance,
    ("Mul", 1): _variance,
}
"""What makes a constant, by the operator and the input that it is for."""
