"""An implementation of `onnx.backend.base`, which ONNX's test suite calls."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping, Sequence
from typing import Any

from onnx.backend.base import Backend as Base
from onnx.backend.base import BackendRep

from opendml.errors import Error
from opendml.frontends.onnx.model import OnnxModel, load
from opendml.frontends.onnx.package import onnx
from opendml.targets.registry import backend_of


class BackendModel(BackendRep):  # type: ignore[misc,unused-ignore]
    """A model that ONNX's test suite runs."""

    def __init__(self, model: OnnxModel) -> None:
        self.model = model

    def __repr__(self) -> str:
        return f"<BackendModel of {self.model!r}>"

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Return the outputs in order, for a list of inputs, one input, or a mapping by name."""
        if isinstance(inputs, Mapping):
            return tuple(self.model.run(inputs).values())
        given = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
        return tuple(self.model(*given).values())


class Backend(Base):  # type: ignore[misc,unused-ignore]
    """opendml as a backend of ONNX: `Backend.run_model(model, inputs, device="CPU")`."""

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> BackendModel:
        """Load a model. The device is ONNX's ("CPU", "CUDA") or opendml's."""
        return BackendModel(load(model, device.partition(":")[0].lower()))

    @classmethod
    def run_model(cls, model: onnx.ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any) -> Any:
        """Return the outputs of a model."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[Any, tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return the outputs of one node of the newest operator set, as a named tuple."""
        names = [name for name in node.output if name]
        graph = onnx.GraphProto(name="node")
        graph.node.append(node)
        graph.input.extend(onnx.ValueInfoProto(name=name) for name in node.input if name)
        graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
        results = cls.run_model(onnx.helper.make_model(graph), inputs, device)
        return namedtuple("Outputs", names, rename=True)(*results)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Return whether this machine has a device."""
        try:
            backend_of(device.partition(":")[0].lower())
        except Error:
            return False
        return True
