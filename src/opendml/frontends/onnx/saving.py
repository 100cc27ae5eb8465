"""Writes ONNX models into files, with or without plans, machine code and packed weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from typing import TYPE_CHECKING

from opendml.errors import Unsupported
from opendml.frontends.onnx.forms import ExactForm, arrays_of
from opendml.frontends.onnx.package import onnx
from opendml.runtime.saved.write import write_compiled, write_file
from opendml.targets.compiled_files import Recorder, recorded

if TYPE_CHECKING:
    from opendml.frontends.onnx.model import OnnxModel
    from opendml.frontends.onnx.opening import Opened
    from opendml.frontends.onnx.weights import Weights

_MOST_BYTES = 2**31 - 1
"""Bytes of a message, at most: a limit of protobuf."""
_NO_PLANS = (
    "a file is compiled for one graph of DirectML's operators on a processor, with types of NumPy for its "
    "inputs and outputs, and with plans switched on"
)


def save(
    path: str | PathLike[str],
    opened: Opened,
    runs: Sequence[ExactForm] | None,
    load: Callable[[bytes], OnnxModel],
) -> None:
    """Write a model to a file that `dml.onnx.load` reads.

    Args:
        path: the file.
        opened: the model.
        runs: the sizes and types of inputs for which the file has plans, machine code and packed weights;
            None: it has none.
        load: loads the content of a file on the same device, with the same limits.

    Raises:
        InvalidArgument: the file cannot be written.
        Unsupported: the model takes 2 GiB or more, or its runs cannot be compiled to a file.
    """
    content = self_contained(opened.model, opened.name, opened.weights)
    if runs is None:
        write_file(path, content)
        return
    where = "save: compiled=True"
    if not opened.tracer.has_one_graph:
        raise Unsupported(f"{where}: {_NO_PLANS}")
    with recorded() as found:
        again = load(content)
        for form in runs:
            again.run(arrays_of(form))
    require_plans(where, again, found)
    write_compiled(path, "onnx", content, found)


def require_plans(where: str, model: OnnxModel, found: Recorder) -> None:
    """Raise Unsupported unless another process finds the runs of a model among what was recorded."""
    if model._custom_operators:
        raise Unsupported(f"{where}: {model._custom_operators[0]} is a Python function, which no file holds")
    is_stored = model.device._backend.maps_constants and found.has_plans and model._knows_runs
    if not is_stored:
        raise Unsupported(f"{where}: {_NO_PLANS}")


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
