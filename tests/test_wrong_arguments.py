"""Wrong values anywhere in the object model are answered by opendml's own errors, or taken: nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml import Device
from tests.for_each import for_each
from tests.runtime.object_model import PACKED, SIZES, VALUES, normalization
from tests.runtime.test_compile_graph import two_nodes
from tests.test_public_objects import Made, deep


class Hostile:
    """An object whose every question fails."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no ==")

    def __bool__(self) -> bool:
        raise RuntimeError("no truth")

    __hash__ = None  # type: ignore[assignment]


def removed() -> Made:
    made = Made()
    made.device.remove("pulled out")
    return made


OTHER, REMOVED = Made(), removed()

WRONG: dict[str, Any] = {
    "None": None,
    "string": "three",
    "empty string": "",
    "surrogate": "\ud800",
    "null in a string": "a\0b",
    "bytes": b"12345678",
    "int": 3,
    "zero": 0,
    "negative": -1,
    "bool": True,
    "huge": 10**400,
    "large": 2**63,
    "float": 0.5,
    "nan": float("nan"),
    "complex": 1j,
    "empty list": [],
    "list of None": [None],
    "list of lists": [[1], [2]],
    "list of strings": ["a"],
    "list of huge": [10**400],
    "list of negative": [-1],
    "list of floats": [0.5],
    "dict": {},
    "dict of wrong": {"y": 3},
    "dict by number": {3: VALUES},
    "set": {1},
    "generator": iter([1]),
    "class": int,
    "device class": Device,
    "function": len,
    "hostile": Hostile(),
    "list of hostile": [Hostile()],
    "object array": np.array([None, "a"], object),
    "text array": np.array(["a"]),
    "empty array": np.empty((0, 3), np.float32),
    "number array": np.float32(3),
    "array": VALUES,
    "array of int": np.arange(24),
    "strided array": np.zeros((48,), np.float32)[::2],
    "read-only": np.broadcast_to(np.float32(0), SIZES),
    "wrong bytes": bytearray(3),
    "data type": dml.FLOAT32,
    "unknown type": dml.TensorDataType.UNKNOWN,
    "flags": dml.ExecutionFlags.DESCRIPTORS_VOLATILE,
    "unknown flags": dml.ExecutionFlags(64),
    "level": dml.FeatureLevel.LEVEL_2_0,
    "tensor desc": PACKED,
    "malformed tensor": dml.TensorDesc(None, None),
    "huge tensor": dml.TensorDesc(dml.FLOAT32, [10**400]),
    "desc": dml.descs.ActivationCelu(PACKED, PACKED),
    "malformed desc": dml.descs.ActivationCelu(3, "x", alpha=[]),
    "bare desc": dml.OperatorDesc(),
    "deep desc": deep()[0],
    "deep tensor": deep()[1],
    "deep list": deep()[8].input_count,
    "binding": dml.BufferBinding(None, None, None),
    "huge binding": dml.BufferBinding(VALUES, 10**400, 10**400),
    "wrong binding": dml.BufferBinding("x", "y", "z"),
    "bindings of None": dml.BufferArrayBinding(None),
    "bindings of a number": dml.BufferArrayBinding(3),
    "bindings": dml.BufferArrayBinding([None]),
    "bindings of bindings": dml.BufferArrayBinding([dml.BufferArrayBinding([None])]),
    "edge": dml.InputEdge(None, "x", 10**400),
    "node": dml.OperatorNode(None),
    "graph desc": dml.GraphDesc(None, None, None, None, None, None),
    "hostile graph desc": dml.GraphDesc(
        1, 1, [dml.OperatorNode(Hostile(), Hostile())], [dml.InputEdge([], [], [])]
    ),
}
for _name, _made in (("other", OTHER), ("removed", REMOVED)):
    WRONG |= {
        f"{_name} device": _made.device,
        f"{_name} operator": _made.operator,
        f"{_name} compiled": _made.celu,
        f"{_name} bound": _made.bound,
        f"{_name} table": _made.table,
        f"{_name} recorder": _made.recorder,
        f"{_name} graph tensor": _made.a,
        f"{_name} model": _made.model,
        f"{_name} graph": two_nodes(OTHER.device),
        f"list of {_name} compiled": [_made.celu],
        f"list of {_name} bound": [_made.bound],
        f"dict of {_name} tensor": {"y": _made.a},
    }


def graph_of(made: Made, **changes: Any) -> dml.GraphDesc:
    """A valid graph with some fields replaced."""
    good = two_nodes(made.device)
    fields = ("input_count", "output_count", "nodes", "input_edges", "output_edges", "intermediate_edges")
    return dml.GraphDesc(**{name: changes.get(name, getattr(good, name)) for name in fields})


def initializer(made: Made) -> dml.OperatorInitializer:
    return made.device.create_operator_initializer([normalization(made.device)])


def fresh_table(made: Made) -> dml.BindingTable:
    return made.device.create_binding_table(made.celu)


def setup_table(made: Made) -> dml.BindingTable:
    return made.device.create_binding_table(initializer(made))


X, Y = VALUES.copy(), np.zeros_like(VALUES)

CALLS: dict[str, Callable[[Made, Any], Any]] = {
    "Device": lambda m, v: Device(v),
    "Device.feature_level": lambda m, v: Device("cpu", feature_level=v),
    "Device.threads": lambda m, v: Device("cpu", threads=v),
    "set_name": lambda m, v: m.device.create_command_recorder().set_name(v),
    "check_feature_support": lambda m, v: m.device.check_feature_support(v),
    "check_feature_support of levels": lambda m, v: m.device.check_feature_support([v]),
    "create_operator": lambda m, v: m.device.create_operator(v),
    "create_operator of a tensor": lambda m, v: m.device.create_operator(dml.descs.ActivationCelu(v, v)),
    "create_operator of a type": lambda m, v: m.device.create_operator(
        dml.descs.ActivationCelu(dml.TensorDesc(v, SIZES), PACKED)
    ),
    "create_operator of sizes": lambda m, v: m.device.create_operator(
        dml.descs.ActivationCelu(dml.TensorDesc(dml.FLOAT32, v), PACKED)
    ),
    "create_operator of strides": lambda m, v: m.device.create_operator(
        dml.descs.ActivationCelu(dml.TensorDesc(dml.FLOAT32, SIZES, v), PACKED)
    ),
    "create_operator of flags": lambda m, v: m.device.create_operator(
        dml.descs.ActivationCelu(dml.TensorDesc(dml.FLOAT32, SIZES, flags=v), PACKED)
    ),
    "create_operator of a size in bytes": lambda m, v: m.device.create_operator(
        dml.descs.ActivationCelu(dml.TensorDesc(dml.FLOAT32, SIZES, total_tensor_size_in_bytes=v), PACKED)
    ),
    "create_operator of an alignment": lambda m, v: m.device.create_operator(
        dml.descs.ActivationCelu(
            dml.TensorDesc(dml.FLOAT32, SIZES, guaranteed_base_offset_alignment=v), PACKED
        )
    ),
    "create_operator of an attribute": lambda m, v: m.device.create_operator(
        dml.descs.ActivationCelu(PACKED, PACKED, alpha=v)
    ),
    "create_operator of axes": lambda m, v: m.device.create_operator(
        dml.descs.MeanVarianceNormalization1(PACKED, None, None, PACKED, axes=v)
    ),
    "create_operator of a fused activation": lambda m, v: m.device.create_operator(
        dml.descs.MeanVarianceNormalization1(PACKED, None, None, PACKED, axes=[1], fused_activation=v)
    ),
    "compile_operator": lambda m, v: m.device.compile_operator(v),
    "compile_operator.flags": lambda m, v: m.device.compile_operator(m.operator, v),
    "compile_graph": lambda m, v: m.device.compile_graph(v),
    "compile_graph.flags": lambda m, v: m.device.compile_graph(two_nodes(m.device), v),
    "create_operator_initializer": lambda m, v: m.device.create_operator_initializer(v),
    "create_operator_initializer of one": lambda m, v: m.device.create_operator_initializer([v]),
    "OperatorInitializer.reset": lambda m, v: m.device.create_operator_initializer().reset(v),
    "create_binding_table": lambda m, v: m.device.create_binding_table(v),
    "BindingTable.reset": lambda m, v: m.device.create_binding_table().reset(v),
    "bind_inputs": lambda m, v: fresh_table(m).bind_inputs(v),
    "bind_inputs of one": lambda m, v: fresh_table(m).bind_inputs([v]),
    "bind_inputs of several": lambda m, v: fresh_table(m).bind_inputs([dml.BufferArrayBinding(v)]),
    "bind_inputs, buffer": lambda m, v: fresh_table(m).bind_inputs([dml.BufferBinding(v)]),
    "bind_inputs, offset": lambda m, v: fresh_table(m).bind_inputs([dml.BufferBinding(X, v)]),
    "bind_inputs, size": lambda m, v: fresh_table(m).bind_inputs([dml.BufferBinding(X, 0, v)]),
    "bind_outputs": lambda m, v: fresh_table(m).bind_outputs(v),
    "bind_outputs of one": lambda m, v: fresh_table(m).bind_outputs([v]),
    "bind_temporary_resource": lambda m, v: fresh_table(m).bind_temporary_resource(v),
    "bind_persistent_resource": lambda m, v: fresh_table(m).bind_persistent_resource(v),
    "initialize, bind_inputs": lambda m, v: setup_table(m).bind_inputs(v),
    "initialize, bind_inputs of one": lambda m, v: setup_table(m).bind_inputs([v]),
    "initialize, bind_inputs of several": lambda m, v: setup_table(m).bind_inputs(
        [dml.BufferArrayBinding(v)]
    ),
    "initialize, bind_inputs of each": lambda m, v: setup_table(m).bind_inputs(
        [dml.BufferArrayBinding([None, v, v])]
    ),
    "initialize, bind_outputs": lambda m, v: setup_table(m).bind_outputs(v),
    "initialize, bind_outputs of one": lambda m, v: setup_table(m).bind_outputs([v]),
    "record_dispatch": lambda m, v: m.device.create_command_recorder().record_dispatch(v, m.table),
    "record_dispatch.table": lambda m, v: m.device.create_command_recorder().record_dispatch(m.celu, v),
    "execute": lambda m, v: m.device.execute(v),
    "execute.stream": lambda m, v: m.device.execute(m.recorder, v),
    "create_buffer": lambda m, v: m.device.create_buffer(v),
    "empty": lambda m, v: m.device.empty(v),
    "empty of one": lambda m, v: m.device.empty([v]),
    "empty.data_type": lambda m, v: m.device.empty([2], v),
    "upload": lambda m, v: m.device.upload(v),
    "download": lambda m, v: m.device.download(v),
    "record": lambda m, v: m.device.record(v),
    "record of one": lambda m, v: m.device.record([v]),
    "remove": lambda m, v: Device("cpu").remove(v),
    "CompiledOperator.bind inputs": lambda m, v: m.celu.bind(v, [Y]),
    "CompiledOperator.bind an input": lambda m, v: m.celu.bind([v], [Y]),
    "CompiledOperator.bind outputs": lambda m, v: m.celu.bind([X], v),
    "CompiledOperator.bind an output": lambda m, v: m.celu.bind([X], [v]),
    "enqueue": lambda m, v: m.bound.enqueue(v),
    "Graph": lambda m, v: dml.Graph(feature_level=v),
    "Graph.input": lambda m, v: dml.Graph().input(v, dml.FLOAT32, [2]),
    "Graph.input.data_type": lambda m, v: dml.Graph().input("x", v, [2]),
    "Graph.input.sizes": lambda m, v: dml.Graph().input("x", dml.FLOAT32, v),
    "Graph.input.strides": lambda m, v: dml.Graph().input("x", dml.FLOAT32, [2], strides=v),
    "Graph.constant": lambda m, v: dml.Graph().constant(v),
    "Graph.compile": lambda m, v: m.graph.compile(v),
    "Graph.compile of a list": lambda m, v: m.graph.compile([v]),
    "Graph.compile of one": lambda m, v: m.graph.compile({"y": v}),
    "Graph.compile.device": lambda m, v: m.graph.compile({"y": m.a}, v),
    "Graph.compile of a name": lambda m, v: m.graph.compile({_hashable(v): m.a}),
    "Model": lambda m, v: m.model(a=v),
    "Model of another name": lambda m, v: m.model(b=v),
    "Model.run inputs": lambda m, v: m.model.run(v, {"y": Y, "b": Y.copy()}),
    "Model.run an input": lambda m, v: m.model.run({"a": v}, {"y": Y, "b": Y.copy()}),
    "Model.run outputs": lambda m, v: m.model.run({"a": X}, v),
    "Model.run an output": lambda m, v: m.model.run({"a": X}, {"y": v, "b": Y}),
    "Model.bind inputs": lambda m, v: m.model.bind(v, {"y": Y, "b": Y.copy()}),
    "Model.bind an output": lambda m, v: m.model.bind({"a": X}, {"y": v, "b": Y}),
    "GraphDesc.input_count": lambda m, v: m.device.compile_graph(graph_of(m, input_count=v)),
    "GraphDesc.output_count": lambda m, v: m.device.compile_graph(graph_of(m, output_count=v)),
    "GraphDesc.nodes": lambda m, v: m.device.compile_graph(graph_of(m, nodes=v)),
    "GraphDesc.nodes of one": lambda m, v: m.device.compile_graph(graph_of(m, nodes=[v])),
    "GraphDesc.input_edges": lambda m, v: m.device.compile_graph(graph_of(m, input_edges=v)),
    "GraphDesc.output_edges": lambda m, v: m.device.compile_graph(graph_of(m, output_edges=[v])),
    "GraphDesc.intermediate_edges": lambda m, v: m.device.compile_graph(graph_of(m, intermediate_edges=[v])),
    "InputEdge": lambda m, v: m.device.compile_graph(graph_of(m, input_edges=[dml.InputEdge(v, v, v, v)])),
    "OutputEdge": lambda m, v: m.device.compile_graph(graph_of(m, output_edges=[dml.OutputEdge(v, v, v, v)])),
    "IntermediateEdge": lambda m, v: m.device.compile_graph(
        graph_of(m, intermediate_edges=[dml.IntermediateEdge(v, v, v, v, v)])
    ),
    "OperatorNode": lambda m, v: m.device.compile_graph(graph_of(m, nodes=[dml.OperatorNode(v, v)] * 2)),
    "OperatorNode.name": lambda m, v: m.device.compile_graph(
        graph_of(m, nodes=[dml.OperatorNode(m.operator, v)] * 2)
    ),
    "ConstantNode": lambda m, v: m.device.compile_graph(graph_of(m, nodes=[dml.ConstantNode(v, v)] * 2)),
    "validate": lambda m, v: dml.validate(v),
    "validate.feature_level": lambda m, v: dml.validate(m.operator.desc, v),
    "calc_buffer_tensor_size": lambda m, v: dml.calc_buffer_tensor_size(v, [2]),
    "calc_buffer_tensor_size.sizes": lambda m, v: dml.calc_buffer_tensor_size(dml.FLOAT32, v),
    "calc_buffer_tensor_size.strides": lambda m, v: dml.calc_buffer_tensor_size(dml.FLOAT32, [2], v),
    "from_buffer": lambda m, v: dml.from_buffer(v, PACKED),
    "from_buffer.tensor": lambda m, v: dml.from_buffer(VALUES, v),
    "to_buffer": lambda m, v: dml.to_buffer(v),
}


def _hashable(value: Any) -> Any:
    try:
        hash(value)
    except (TypeError, dml.Error):
        return repr(type(value))
    return value


@pytest.fixture(scope="module")
def made() -> Made:
    return Made()


@for_each("call", CALLS)
def test_wrong_values_are_answered_by_errors_of_opendml(call: str, made: Made) -> None:
    others = {}
    for name, value in WRONG.items():
        try:
            CALLS[call](made, value)
        except dml.Error:
            continue
        except Exception as error:
            others[name] = f"{type(error).__name__}: {str(error)[:100]}"
    assert not others


@for_each("value", WRONG)
def test_wrong_values_in_objects_have_a_repr(value: str) -> None:
    """Objects that check nothing themselves show whatever they hold."""
    v = WRONG[value]
    for make in (
        dml.BufferBinding,
        dml.BufferArrayBinding,
        dml.ConstantNode,
        dml.OperatorNode,
        dml.descs.ActivationCelu,
    ):
        assert repr(make(v))
    for made_ in (
        dml.BufferBinding(v, v, v),
        dml.TensorDesc(v, v, v, v, total_tensor_size_in_bytes=v, guaranteed_base_offset_alignment=v),
        dml.InputEdge(v, v, v, v),
        dml.GraphDesc(v, v, v, v, v, v),
    ):
        assert repr(made_)


@pytest.mark.parametrize("make", [Device.create_buffer, Device.empty], ids=lambda each: str(each.__name__))
def test_memory_that_is_not_there_is_unsupported(make: Callable[..., Any]) -> None:
    for size in (2**62, 2**48):
        with pytest.raises(dml.Error):
            make(Device("cpu"), size if make is Device.create_buffer else [size])


def test_a_signature_that_does_not_fit_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        Device("cpu").create_operator()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Device("cpu").create_operator(1, 2)  # type: ignore[call-arg]
