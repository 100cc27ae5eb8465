"""Write ONNX models with their plans, machine code and packed weights into one file."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any

import onnx

from opendml.errors import Unsupported
from opendml.frontends.onnx.model import OnnxModel, load
from opendml.frontends.onnx.model_file import read_model
from opendml.frontends.onnx.sizes import NO_SIZES, Sizes
from opendml.frontends.onnx.weights import Weights
from opendml.logs import log
from opendml.runtime.objects.device import Device
from opendml.runtime.saved.write import write_compiled
from opendml.targets.compiled_files import Recorder, recorded

_MOST_BYTES = 2**31 - 1
"""Bytes of a message, at most: a limit of protobuf."""

NO_PLANS = (
    "a file is compiled for one graph of DirectML's operators on a processor, with types of NumPy for its "
    "inputs and outputs, and with plans switched on"
)


def compile_to_file(
    path: str | PathLike[str],
    output: str | PathLike[str],
    inputs: Callable[[OnnxModel], Mapping[str, Any]],
    device: str | Device | None = None,
    sizes: Sizes = NO_SIZES,
) -> None:
    """Load a model, run it once, and write it with all that its runs need to a compiled file.

    Args:
        path: the model.
        output: the file.
        inputs: returns the inputs of the run; the file knows runs of their sizes and types.
        device: the device.
        sizes: fixed sizes, which the model in the file has.

    Raises:
        Unsupported: the model takes 2 GiB or more, or runs of several graphs or on another device than a
            processor, or plans are switched off.
        Error: as of `load` and of a run.
    """
    began = time.perf_counter()
    read, name, weights = read_model(path)
    sizes.require_used([read], name)
    content = self_contained(sizes.of(read, name), name, weights)
    with recorded() as found:
        model = load(content, device)
        model.run(inputs(model))
    require_plans(str(path), model, found)
    write_compiled(output, "onnx", content, found)
    log.info("compiled %s to %s in %.2f s", path, output, time.perf_counter() - began)


def require_plans(where: str, model: OnnxModel, found: Recorder) -> None:
    """Raise Unsupported unless another process finds the runs of a model among what was recorded."""
    opened = model._opened
    if not callable(opened) and opened.custom:
        raise Unsupported(f"{where}: {opened.custom[0]} is a Python function, which no file holds")
    if not any(name.endswith(".plan") for name in found.objects) or not model._knows_runs:
        raise Unsupported(f"{where}: {NO_PLANS}")


def self_contained(model: onnx.ModelProto, name: str, weights: Weights) -> bytes:
    """Return the bytes of a model with the tensors that lie elsewhere.

    Args:
        model: the model.
        name: its name for errors.
        weights: the tensors that are not in the message.

    Raises:
        Unsupported: the bytes are more than a message of protobuf holds.
    """
    if sum(each.nbytes for each in weights.arrays.values()) + model.ByteSize() > _MOST_BYTES:
        raise Unsupported(f"{name}: a file holds models of less than 2 GiB")
    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    for tensor in whole.graph.initializer:
        if tensor.name in weights.arrays:
            filled = onnx.numpy_helper.from_array(weights.arrays[tensor.name], tensor.name)
            tensor.CopyFrom(filled)
    return bytes(whole.SerializeToString())
