"""Compile and call serialized graphs."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np

from opendml.budget import Limits, metered
from opendml.errors import InvalidArgument, located
from opendml.frontends.serialized.graph import SerializedGraph, read_graph
from opendml.runtime.graphs.model import require_names
from opendml.runtime.memory.packing import from_buffer
from opendml.runtime.objects.device import Device, as_device
from opendml.spec.enums import ExecutionFlags


class SerializedModel:
    """A compiled serialized graph. Calls from several threads are safe.

    Attributes:
        graph: the graph.
        inputs: the tensors that a call gives, by name.
        outputs: the tensors that it returns, by name.
    """

    def __init__(
        self, graph: SerializedGraph, device: Device, flags: ExecutionFlags = ExecutionFlags.NONE
    ) -> None:
        self.graph, self.device = graph, device
        desc = graph.desc(device)
        with located(graph.name):
            self._compiled = device.compile_graph(desc, flags)
        tensors = zip(graph.inputs, self._compiled.input_tensors, strict=True)
        self._tensors = dict(tensors)
        self.inputs = {name: tensor for name, tensor in self._tensors.items() if tensor is not None}
        outputs = zip(graph.outputs, self._compiled.output_tensors, strict=True)
        self.outputs = {name: tensor for name, tensor in outputs if tensor is not None}

    def __repr__(self) -> str:
        names = f"{', '.join(self.inputs) or 'nothing'} -> {', '.join(self.outputs)}"
        return f"<SerializedModel {self.graph.name} on {self.device.kind}: {names}>"

    def __call__(self, /, *arrays: Any, **inputs: Any) -> dict[str, Any]:
        """Return the outputs by name for arrays, given in the order of the inputs or by their names."""
        if len(arrays) > len(self.inputs):
            raise InvalidArgument(f"{self.graph.name}: {len(arrays)} inputs; it has {len(self.inputs)}")
        return self.run({**dict(zip(self.inputs, arrays, strict=False)), **inputs})

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Run the graph, and return its outputs by name as new NumPy arrays.

        Args:
            inputs: arrays by name, each of its tensor's type, with as many elements, or raw bytes.

        Raises:
            InvalidArgument: an input that is missing or unknown, or of another type or size.
        """
        with located(self.graph.name):
            require_names("inputs", inputs, tuple(self.inputs))
        buffers = {name: np.zeros(tensor.size_in_bytes, np.uint8) for name, tensor in self.outputs.items()}
        given = [None if tensor is None else inputs[name] for name, tensor in self._tensors.items()]
        with located(self.graph.name):
            self._compiled.bind(given, list(buffers.values())).dispatch()
        return {name: from_buffer(buffers[name], tensor) for name, tensor in self.outputs.items()}


def load(
    path: str | PathLike[str], device: str | Device | None = None, *, limits: Limits | None = None
) -> SerializedModel:
    """Compile the graph in a file. Files of its constants are read from the same folder.

    Args:
        path: a file that ONNX Runtime or `save` wrote.
        device: a device, its kind, or None for the CPU.
        limits: what loading and compiling it may take; `dml.Limits.untrusted()` for a file from a stranger.
            None: the defaults of `dml.Limits`.

    Raises:
        InvalidArgument: no such file, no serialized graph, or one that breaks DirectML's rules.
        Unsupported: an operator that the device cannot run.
        LimitExceeded: the graph takes more than its limits allow.
    """
    with metered(limits, name=str(path)) as limit, limit.timed("compile_seconds", path):
        return SerializedModel(read_graph(path), as_device(device))
