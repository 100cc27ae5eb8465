"""Parse ONNX models and begin their traces. Models that were run before need neither (`known`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import onnx

from opendml.budget import meter
from opendml.errors import Error
from opendml.frontends.onnx.known import KnownModel, ModelFacts, identity_to_json
from opendml.frontends.onnx.load_checks import require_possible, require_runnable
from opendml.frontends.onnx.model_file import ModelLike, read_model
from opendml.frontends.onnx.segment import CompiledSegment
from opendml.frontends.onnx.sizes import Sizes
from opendml.frontends.onnx.tensor_info import TensorInfo
from opendml.frontends.onnx.trace import Tracer, TraceStep
from opendml.frontends.onnx.values import sizes_of_type
from opendml.frontends.onnx.weights import Weights
from opendml.runtime.graphs.model_cache import ModelCache
from opendml.runtime.graphs.traced_model import has_plans
from opendml.runtime.objects.device import Device, as_device

if TYPE_CHECKING:
    from opendml.runtime.graphs.model import Model


@dataclass(frozen=True)
class Opened:
    """A parsed model, and its tracer.

    Args:
        model: the model.
        name: its name for errors.
        facts: its declarations.
        tracer: traces it.
        weights: the initializers that stay in its file.
    """

    model: onnx.ModelProto
    name: str
    facts: ModelFacts
    tracer: Tracer
    weights: Weights

    def note(
        self,
        known: KnownModel,
        step: TraceStep,
        given: Mapping[str, Any],
        contents: Mapping[str, Any],
        dimensions: Mapping[str, int],
    ) -> bool:
        """Write a run of one graph to the cache, which other processes then need not trace.

        Return whether it can be written.
        """
        segment = step.work
        if not isinstance(segment, CompiledSegment) or not self.weights.are_within(known.content):
            return False
        model, results = segment.model_at(dimensions), dict(segment.results)
        if model is None or set(results) != set(self.tracer.outputs):
            return False  # An output is an input, or known.
        if not given.keys() >= set(segment.inputs):
            return False  # An input of the graph follows from sizes.
        work, names = model._work, model._names
        buffers = {name: number for number, name in enumerate(names) if name is not None}
        layouts = work.work.inputs
        outputs = [
            [
                *(name, len(layouts) + place, layout.type.numpy.str, layout.sizes),
                *(contents[name].dtype.str, contents[name].shape),
            ]
            for place, (name, layout) in enumerate(zip(results, work.work.outputs, strict=True))
        ]
        graph = {
            "inputs": [
                (name, buffers[name], layouts[buffers[name]].type.numpy.str, layouts[buffers[name]].sizes)
                for name in segment.inputs
            ],
            "outputs": sorted(outputs, key=lambda each: self.tracer.outputs.index(each[0])),
            "kernel_steps": model._kernel_steps,
            "own_bytes": model._own_bytes,
        }
        types = [*(contents[name].dtype for name in results), *(given[name].dtype for name in segment.inputs)]
        constants = self._constants(model)
        if constants is not None and all(type.isbuiltin == 1 for type in types):
            return known.write_run(given, work.executable, graph, constants, self.weights.read_arrays())
        return False

    def _constants(self, model: Model) -> dict[int, tuple[Any, Any]] | None:
        """Return the constants that a model's executable reads, and their identities. None: one is gone."""
        numbers = {number for each in model._work.executable.kept for number in each.recipe.constants}
        found = {}
        for number in sorted(numbers):
            identity = model._identities.get(number)
            array = self.tracer.constant(identity)
            if array is None:
                return None
            found[number] = array, identity_to_json(identity)
        return found


def opened_model(
    model: ModelLike,
    device: str | Device | None,
    sizes: Sizes,
    require_used: bool,
    cache: ModelCache,
    weights: Weights,
) -> Opened:
    """Parse a model, check it, and return it with a tracer.

    Args:
        model: the model.
        device: the device of its graphs.
        sizes: fixed sizes.
        require_used: whether all of these must be sizes of the model.
        cache: decides which sizes stay compiled.
        weights: receives the initializers that stay in the model's file, or has the mapped file.
    """
    read, name, weights = read_model(model, weights=weights)
    if require_used:
        sizes.require_used([read], name)
    return opened_proto(sizes.of(read, name), name, as_device(device), cache, weights)


def opened_proto(
    model: onnx.ModelProto, name: str, device: Device, cache: ModelCache, weights: Weights
) -> Opened:
    """Check a parsed model, and return it with a tracer."""
    graph = model.graph
    initializers = {each.name for each in graph.initializer}
    declared = tuple(tensor_info(each) for each in graph.input)
    inputs = tuple(each for each in declared if each.name not in initializers)
    facts = ModelFacts(inputs, tuple(tensor_info(each) for each in graph.output), declared, meter().held)
    try:
        require_runnable(model)
        require_possible(model)
        tracer = Tracer.of_model(model, device, weights, cache, traces_sizes=has_plans(device))
    except Error as error:
        raise error._within(name) from error
    return Opened(model, name, facts, tracer, weights)


def tensor_info(value: onnx.ValueInfoProto) -> TensorInfo:
    """Return the declaration of an input or an output."""
    element = value.type.tensor_type.elem_type
    if element in (onnx.TensorProto.UNDEFINED, onnx.TensorProto.STRING):
        return TensorInfo(value.name, None, sizes_of_type(value.type))
    return TensorInfo(value.name, onnx.helper.tensor_dtype_to_np_dtype(element), sizes_of_type(value.type))
