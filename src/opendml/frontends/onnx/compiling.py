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
from opendml.logs import log
from opendml.runtime.objects.device import Device
from opendml.runtime.saved.write import write_compiled
from opendml.targets.compiled_files import recorded

_MOST_BYTES = 2**31 - 1
"""Bytes of a message, at most: a limit of protobuf."""


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
    content = _self_contained(path, sizes)
    with recorded() as found:
        model = load(content, device)
        model.run(inputs(model))
    if not any(name.endswith(".plan") for name in found.objects) or not model._knows_runs:
        reason = (
            "a file is compiled for one graph of DirectML's operators on a processor, with types of NumPy "
            "for its inputs and outputs, and with plans switched on"
        )
        raise Unsupported(f"{path}: {reason}")
    write_compiled(output, "onnx", content, found)
    log.info("compiled %s to %s in %.2f s", path, output, time.perf_counter() - began)


def _self_contained(path: str | PathLike[str], sizes: Sizes) -> bytes:
    """Return the bytes of a model with these sizes, and with the tensors of other files."""
    model, name, weights = read_model(path)
    sizes.require_used([model], name)
    model = sizes.of(model, name)
    if sum(each.nbytes for each in weights.arrays.values()) + model.ByteSize() > _MOST_BYTES:
        raise Unsupported(f"{name}: a compiled file holds models of less than 2 GiB")
    for tensor in model.graph.initializer:
        if tensor.name in weights.arrays:
            filled = onnx.numpy_helper.from_array(weights.arrays[tensor.name], tensor.name)
            tensor.CopyFrom(filled)
    return bytes(model.SerializeToString())
