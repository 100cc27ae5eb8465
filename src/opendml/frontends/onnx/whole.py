"""Methods that models of ONNX share with compiled graphs: they are explained, bound to arrays and saved."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

from opendml.errors import InvalidArgument, Unsupported
from opendml.frontends.onnx.segment import CompiledSegment
from opendml.frontends.onnx.values import carrier_of
from opendml.runtime.explain.explanation import ExplainedGraph, joined
from opendml.runtime.graphs.model import Model, require_names
from opendml.runtime.graphs.warming import zeros_of
from opendml.runtime.objects.bound import BoundModel
from opendml.runtime.saved.write import write_compiled, write_file
from opendml.targets.compiled_files import Recorder, recorded

if TYPE_CHECKING:
    from opendml.frontends.onnx.model import ExactForm, OnnxModel
    from opendml.frontends.onnx.tensor_info import TensorInfo
    from opendml.frontends.onnx.weights import Weights

_MOST_BYTES = 2**31 - 1
"""Bytes of a message, at most: a limit of protobuf."""
NO_PLANS = (
    "a file is compiled for one graph of DirectML's operators on a processor, with types of NumPy for its "
    "inputs and outputs, and with plans switched on"
)
Array = np.ndarray[Any, Any]


def explained(model: OnnxModel, inputs: Mapping[str, Any]) -> ExplainedGraph:
    """Run a model, measure its graphs, and return them as one.

    Args:
        model: the model.
        inputs: arrays by name; others of fixed sizes are zeros in the run, and as in `Model.explain` in the
            measurements.
    """
    made_up = {each.name: _zeros("explain", each) for each in model.inputs if each.name not in inputs}
    checked = model._checked({**made_up, **inputs})
    parts = model.parts(checked)
    for each in parts:
        if isinstance(each, str):
            problem = f"{each} runs outside of DirectML's operators, and is not measured"
            warnings.warn(problem, UserWarning, stacklevel=3)
    graphs = [each for each in parts if isinstance(each, Model)]
    if not graphs:
        raise Unsupported("explain: nothing of the model becomes a graph of DirectML's operators")
    found = []
    for graph in graphs:
        given = {name: checked[name] for name in graph.input_names if name in inputs}
        packed = {name: np.ascontiguousarray(each) for name, each in given.items()}
        found.append(
            graph.explain(**{name: _in_memory("explain", name, each) for name, each in packed.items()})
        )
    return joined(found)


def bound(model: OnnxModel, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> BoundModel:
    """Trace a model for arrays, and bind its graph to them."""
    require_names("outputs", outputs, model.output_names)
    checked = model._checked(inputs)
    for name, array in checked.items():
        if array is not inputs[name]:
            raise InvalidArgument(f"bind: input {name!r}: {_needs(model, name, inputs[name])}")
    dimensions = dict[str, int]()
    contents = dict(checked)
    steps = list(model._tracer.steps(contents, dimensions))
    segment = steps[0].work
    if len(steps) != 1 or not isinstance(segment, CompiledSegment):
        raise Unsupported("bind: the model is more than one graph of DirectML's operators; `run` runs it")
    computed = {name for name, _ in segment.results}
    others = [name for name in model.output_names if name not in computed]
    if others:
        raise Unsupported(f"bind: output {others[0]!r} is an input or a constant; `run` copies it")
    graph = segment.model_at(dimensions)
    assert graph is not None
    known = segment.known(dimensions)
    given = {
        name: _in_memory("bind", name, (known if name in known else checked)[name]) for name in segment.inputs
    }
    made = {}
    for name in model.output_names:
        array, wanted = outputs[name], contents[name]
        if not isinstance(array, np.ndarray) or (array.dtype, array.shape) != (wanted.dtype, wanted.shape):
            needed = f"an array of {wanted.dtype.name} of sizes {list(wanted.shape)} is needed"
            raise InvalidArgument(f"bind: output {name!r}: {_described(array)}; {needed}")
        made[name] = _in_memory("bind", name, array)
    return graph.bind(given, made)


def _needs(model: OnnxModel, name: str, given: Any) -> str:
    type = model._declared[name].type
    return f"{_described(given)}; a NumPy array of {'objects' if type is None else type.name} is needed"


def _described(given: Any) -> str:
    if isinstance(given, np.ndarray):
        return f"{given.dtype} of sizes {list(given.shape)}"
    return f"a {type(given).__name__}"


def _in_memory(what: str, name: str, array: Array) -> Array:
    """Return an array in the form of a DirectML tensor, without a copy."""
    if not array.flags.c_contiguous:
        raise InvalidArgument(f"{what}: {name!r}: strides {list(array.strides)}; a packed array is needed")
    return np.atleast_1d(array).view(carrier_of(array.dtype))


def save(
    model: OnnxModel, path: str | PathLike[str], load: Callable[[bytes], OnnxModel], compiled: bool
) -> None:
    """Write a model to a file that `dml.onnx.load` reads.

    Args:
        model: the model.
        path: the file.
        load: loads the content of a file on the same device, with the same limits.
        compiled: whether the file has plans, machine code and packed weights.
    """
    content = self_contained(model._proto, model._name, model._traced.weights)
    if not compiled:
        write_file(path, content)
        return
    forms = model._met_forms()
    if not forms:
        forms = [_fixed(model.inputs)]
    _require_one_graph(model)
    with recorded() as found:
        again = load(content)
        for form in forms:
            again.run({name: np.zeros(sizes, type) for name, sizes, type in form})
    require_plans("save: compiled=True", again, found)
    write_compiled(path, "onnx", content, found)


def _require_one_graph(model: OnnxModel) -> None:
    """Raise Unsupported if a run was traced that is more than one graph, and so has no plan."""
    if callable(model._opened):
        return
    steps = [step for steps in model._tracer._first_steps.values() for step in steps]
    if not all(isinstance(step.work, CompiledSegment) and step.next_state is None for step in steps):
        raise Unsupported(f"save: compiled=True: {NO_PLANS}")


def _fixed(inputs: Sequence[TensorInfo]) -> ExactForm:
    """Return the sizes and types of inputs without open sizes."""
    return tuple((each.name, zeros.shape, zeros.dtype) for each in inputs for zeros in [_zeros("save", each)])


def _zeros(what: str, info: TensorInfo) -> Array:
    """Return zeros for an input of fixed sizes. `what` is the method, for the error of open ones."""
    if info.type is None or info.sizes is None or not all(isinstance(size, int) for size in info.sizes):
        fix = "call or warm up the model before" if what == "save" else "an array is needed"
        raise InvalidArgument(f"{what}: input {info.name!r} has open sizes; {fix}")
    return zeros_of(info.name, info.type, info.sizes, {})


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
