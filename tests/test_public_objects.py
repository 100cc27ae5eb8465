"""What users see of the package: public names, public attributes, and what objects say of themselves."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml import Device, directml, pydirectml, serialized
from tests.cuda import fake
from tests.runtime.object_model import BIAS, PACKED, SCALE, SIZES, VALUES, celu, initialized, normalization
from tests.runtime.test_compile_graph import two_nodes
from tests.runtime.test_debug_device import graph_desc
from tests.runtime.test_recorder import recorded, table_for
from tests.runtime.test_state import cached

CLASSES = {
    name: value
    for name in dml.__all__
    if isinstance(value := getattr(dml, name), type) and not issubclass(value, Enum | Exception)
}
NEWEST = max(dml.FeatureLevel)
CELU = "InputTensor FLOAT32 [2, 3, 4] -> OutputTensor FLOAT32 [2, 3, 4]"


class Made:
    """One of everything on the CPU."""

    def __init__(self) -> None:
        self.shown: list[dml.Intermediate] = []
        self.device = device = Device("cpu", feature_level="5_0", debug=self.shown.append)
        self.celu, self.normalization = celu(device), normalization(device)
        self.operator = device.create_operator(dml.descs.ActivationCelu(PACKED, PACKED))
        initialized(device, self.celu)
        self.bound = self.celu.bind([VALUES], [np.zeros_like(VALUES)])
        self.bound.dispatch()
        self.table = table_for(self.celu, [VALUES], [np.zeros_like(VALUES)])
        self.recorder = recorded((self.celu, self.table))
        self.graph = dml.Graph()
        self.a = self.graph.input("a", dml.FLOAT32, SIZES)
        b = dml.activation_celu(self.a)
        self.graph.constant(BIAS)
        self.model = self.graph.compile({"y": dml.activation_tanh(b), "b": b}, device=device)


@cache
def made() -> Made:
    return Made()


REPRS: dict[str, Callable[[Made], dict[str, Any]]] = {
    "BindingProperties": lambda m: {
        "BindingProperties(required_descriptor_count=2, temporary_resource_size=0, "
        "persistent_resource_size=0)": m.celu.binding_properties
    },
    "BindingTable": lambda m: {
        "<BindingTable cpu: ACTIVATION_CELU; bound: inputs, outputs>": m.table,
        "<BindingTable cpu: ACTIVATION_CELU; bound: nothing>": m.device.create_binding_table(m.celu),
        "<BindingTable cpu: empty>": m.device.create_binding_table(),
    },
    "BoundModel": lambda m: {
        "<BoundModel cpu: a FLOAT32 [2, 3, 4] -> y FLOAT32 [2, 3, 4], b FLOAT32 [2, 3, 4]>": m.model.bind(
            {"a": VALUES}, {"y": np.zeros_like(VALUES), "b": np.zeros_like(VALUES)}
        )
    },
    "BoundOperator": lambda m: {"<BoundOperator cpu: ACTIVATION_CELU>": m.bound},
    "BufferArrayBinding": lambda m: {
        "BufferArrayBinding([None, <ndarray float32 [2, 3, 4]>, "
        "BufferBinding(<ndarray float32 [2, 3, 4]>, offset=16)])": dml.BufferArrayBinding(
            [None, SCALE, dml.BufferBinding(BIAS, 16)]
        )
    },
    "BufferBinding": lambda m: {
        "BufferBinding(<ndarray uint8 [1024]>, offset=256, size=96)": dml.BufferBinding(
            m.device.create_buffer(1024), 256, 96
        ),
        "BufferBinding(None, offset=0)": dml.BufferBinding(None),
        "BufferBinding(b'1234', offset=0)": dml.BufferBinding(b"1234"),
    },
    "CommandRecorder": lambda m: {
        "<CommandRecorder cpu: 1 dispatch recorded>": m.recorder,
        "<CommandRecorder cpu: 0 dispatches recorded>": m.device.create_command_recorder(),
    },
    "CompiledOperator": lambda m: {
        f"<CompiledOperator cpu: ACTIVATION_CELU: {CELU}>": m.celu,
        "<CompiledOperator cpu: graph: inputs[0] FLOAT32 [2, 3, 4] -> outputs[0] FLOAT32 [24]>": (
            m.device.compile_graph(graph_desc(m.device))
        ),
        "<CompiledOperator cpu: FILL_VALUE_CONSTANT: no inputs -> OutputTensor FLOAT32 [2, 3, 4]>": (
            m.device.compile_operator(
                m.device.create_operator(
                    dml.descs.FillValueConstant(PACKED, value_data_type=dml.FLOAT32, value=1.0)
                )
            )
        ),
    },
    "ConstantNode": lambda m: {
        "ConstantNode(<ndarray float32 [2, 3, 4]>, name='scale')": dml.ConstantNode(SCALE, "scale"),
        "ConstantNode(<ndarray float32 [2, 3, 4]>)": dml.ConstantNode(SCALE),
        "ConstantNode(<ndarray float32 [2, 3, 4]>, name=array([1., 1.]))": dml.ConstantNode(
            SCALE,
            np.ones(2),  # type: ignore[arg-type]
        ),
    },
    "Device": lambda m: {
        "Device('cpu', feature_level='5_0')": m.device,
        "Device('cpu', feature_level='6_4', threads=3)": Device("cpu", threads=3),
        "<Device('reference', feature_level='6_4'), removed: reference: pulled out>": removed(),
    },
    "Graph": lambda m: {
        "<Graph: a FLOAT32 [2, 3, 4]; 2 operators>": m.graph,
        "<Graph: no inputs; 0 operators>": dml.Graph(),
    },
    "GraphDesc": lambda m: {
        "GraphDesc(input_count=1, output_count=1, nodes=[OperatorNode(operator=<Operator cpu: "
        f"ACTIVATION_CELU: {CELU}>, name=''), ...": two_nodes(m.device)
    },
    "GraphTensor": lambda m: {"<GraphTensor FLOAT32 [2, 3, 4]>": m.a},
    "InputEdge": lambda m: {
        "InputEdge(graph_input_index=0, to_node_index=1, to_node_input_index=2, name='')": dml.InputEdge(
            0, 1, 2
        )
    },
    "Intermediate": lambda m: {
        "<Intermediate 0: ACTIVATION_CELU.OutputTensor float32 [2, 3, 4]>": m.shown[0]
    },
    "IntermediateEdge": lambda m: {
        "IntermediateEdge(from_node_index=0, from_node_output_index=1, to_node_index=2, "
        "to_node_input_index=3, name='')": dml.IntermediateEdge(0, 1, 2, 3)
    },
    "Limits": lambda m: {
        "Limits(memory_bytes=1024, tensor_elements=1099511627776, graph_parts=1000000, "
        "kernel_steps=1000000000000000, compile_seconds=3600, evaluator_steps=10000000000000, "
        "evaluator_seconds=3600)": dml.Limits(memory_bytes=1024)
    },
    "ModelState": lambda m: {"<ModelState of 1 caches, length 0>": cached().state()},
    "Model": lambda m: {
        "<Model cpu: a FLOAT32 [2, 3, 4] -> y FLOAT32 [2, 3, 4], b FLOAT32 [2, 3, 4]>": m.model
    },
    "Operator": lambda m: {f"<Operator cpu: ACTIVATION_CELU: {CELU}>": m.operator},
    "OperatorDesc": lambda m: {
        "ActivationRelu(input_tensor=TensorDesc(FLOAT32, [2, 3, 4]), output_tensor=None)": (
            dml.descs.ActivationRelu(PACKED)
        )
    },
    "OperatorInitializer": lambda m: {
        "<OperatorInitializer cpu: MEAN_VARIANCE_NORMALIZATION1>": m.device.create_operator_initializer(
            [m.normalization]
        ),
        "<OperatorInitializer cpu: no operators>": m.device.create_operator_initializer(),
    },
    "OperatorLimits": lambda m: {
        f"OperatorLimits(operator='GEMM', feature_level={NEWEST!r}, introduced={NEWEST!r}, since={NEWEST!r}, "
        "inputs={}, outputs={})": dml.OperatorLimits("GEMM", NEWEST, NEWEST, NEWEST, {}, {})
    },
    "OperatorNode": lambda m: {
        f"OperatorNode(operator=<Operator cpu: ACTIVATION_CELU: {CELU}>, name='blur')": dml.OperatorNode(
            m.operator, "blur"
        )
    },
    "OutputEdge": lambda m: {
        "OutputEdge(from_node_index=0, from_node_output_index=1, graph_output_index=2, name='')": (
            dml.OutputEdge(0, 1, 2)
        )
    },
    "Recording": lambda m: {
        "<Recording cpu: 2 dispatches>": m.device.record([m.bound, m.bound]),
        "<Recording cpu: 1 dispatch>": m.device.record([m.bound]),
    },
    "ScaleBias": lambda m: {"ScaleBias(scale=1.0, bias=0.5)": dml.ScaleBias(1.0, 0.5)},
    "Size2D": lambda m: {"Size2D(width=2, height=3)": dml.Size2D(2, 3)},
    "TensorDesc": lambda m: {"TensorDesc(FLOAT32, [2, 3, 4])": PACKED},
    "TensorLimits": lambda m: {
        "TensorLimits(data_types=(), dimension_counts=range(4, 6), optional=True, is_array=False, "
        "owned_by_dml=False)": dml.TensorLimits((), range(4, 6), True, False, False)
    },
}


def removed() -> Device:
    device = Device("reference")
    device.remove("pulled out")
    return device


@pytest.mark.parametrize("name", CLASSES)
def test_every_public_object_says_what_it_is(name: str) -> None:
    for text, value in REPRS[name](made()).items():
        assert isinstance(value, CLASSES[name])
        assert repr(value).startswith(text[:-3]) if text.endswith("...") else repr(value) == text


def test_arrays_on_devices_say_what_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    fake.install(monkeypatch)
    assert repr(Device("cuda").empty([2, 3])) == "DeviceArray(FLOAT32, [2, 3], device='cuda:0')"


@cache
def deep(levels: int = 5000) -> tuple[Any, ...]:
    """Descs that nest more deeply than Python calls."""
    desc: Any = None
    sizes: Any = []
    for _ in range(levels):
        desc = dml.descs.MeanVarianceNormalization1(axes=[1], fused_activation=desc)
        sizes = [sizes]
    return (
        desc,
        dml.TensorDesc(dml.FLOAT32, sizes),
        dml.TensorDesc(sizes, sizes, sizes, sizes, total_tensor_size_in_bytes=sizes),
        dml.BufferBinding(sizes, sizes, sizes),
        dml.BufferArrayBinding(sizes),
        dml.ConstantNode(sizes, sizes),
        dml.OperatorNode(sizes),
        dml.InputEdge(sizes, 0, 0),
        dml.GraphDesc(sizes, sizes, sizes),
        dml.GraphDesc(1, 1, [dml.OperatorNode(sizes)]),
    )


@pytest.mark.parametrize("number", range(10))
def test_what_nests_deeply_has_a_repr(number: int) -> None:
    value = deep()[number]
    assert repr(value).startswith(f"{type(value).__name__}(")


def test_descs_that_nest_deeply_are_refused_where_they_are_compared() -> None:
    desc = deep()[0]
    with pytest.raises(dml.InvalidArgument, match="descs within descs"):
        hash(desc)
    with pytest.raises(dml.InvalidArgument, match="descs within descs"):
        _ = desc == deep.__wrapped__()[0]
    with pytest.raises(dml.InvalidArgument):
        dml.validate(desc)


@pytest.mark.parametrize(
    "module", [dml, directml, pydirectml, serialized], ids=lambda module: module.__name__
)
def test_instances_of_all_public_classes_say_what_they_are(module: ModuleType) -> None:
    classes = [value for name in module.__all__ if isinstance(value := getattr(module, name), type)]
    assert [each for each in classes if each.__repr__ is object.__repr__] == []


# Names


def test_only_public_names_are_listed() -> None:
    modules = {"directml", "onnx", "pydirectml", "serialized", "torch"}
    assert set(dir(dml)) == {*dml.__all__, *modules, "__all__", "__doc__", "__version__"}
    assert [name for name in dml.__all__ if isinstance(getattr(dml, name), ModuleType)] == ["descs"]
    assert set(dir(dml.descs)) >= set(dml.descs.__all__)


MEMBERS: dict[str, str] = {
    "BindingProperties": "persistent_resource_size required_descriptor_count temporary_resource_size",
    "BindingTable": "bind_inputs bind_outputs bind_persistent_resource bind_temporary_resource device "
    "dispatchable name reset set_name",
    "BoundModel": "device dispatch enqueue takes_streams",
    "BoundOperator": "device dispatch enqueue takes_streams",
    "BufferArrayBinding": "bindings",
    "BufferBinding": "buffer offset size",
    "CommandRecorder": "device name record_dispatch reset set_name",
    "CompiledOperator": "bind binding_properties device explain flags input_tensors is_initialized name "
    "output_tensors save set_name",
    "ConstantNode": "data name",
    "Device": "check_feature_support compile_graph compile_operator create_binding_table create_buffer "
    "create_command_recorder create_operator create_operator_initializer download empty execute "
    "feature_level index kind name record remove removed_reason set_name synchronize threads upload",
    "Graph": "compile constant dimension feature_level input",
    "GraphDesc": "input_count input_edges intermediate_edges nodes output_count output_edges",
    "GraphTensor": "T all any argmax argmin astype data_type dtype flatten graph is_rounded max mean min "
    "ndim permute prod reinterpret reshape rounded shape sizes squeeze sum swapaxes transpose unsqueeze",
    "InputEdge": "graph_input_index name to_node_index to_node_input_index",
    "Intermediate": "name operator output sequence values",
    "IntermediateEdge": "from_node_index from_node_output_index name to_node_index to_node_input_index",
    "Limits": "compile_seconds evaluator_seconds evaluator_steps graph_parts kernel_steps memory_bytes "
    "tensor_elements untrusted",
    "Model": "bind device explain input_names output_names persistent_bytes run save state temporary_bytes "
    "warm_up",
    "ModelState": "clear length pairs run warm_up",
    "Operator": "desc device name set_name",
    "OperatorDesc": "fields operator replace input_tensor output_tensor",
    "OperatorInitializer": "binding_properties device name operators reset set_name",
    "OperatorLimits": "feature_level inputs introduced operator outputs since",
    "OperatorNode": "name operator",
    "OutputEdge": "from_node_index from_node_output_index graph_output_index name",
    "Recording": "device dispatch enqueue takes_streams",
    "ScaleBias": "bias count index scale",
    "Size2D": "count height index width",
    "TensorDesc": "data_type dimension_count effective_strides element_count flags "
    "guaranteed_base_offset_alignment size_in_bytes sizes strides total_tensor_size_in_bytes",
    "TensorLimits": "data_types dimension_counts is_array optional owned_by_dml",
}


@pytest.mark.parametrize("name", CLASSES)
def test_public_attributes_are_the_documented_ones(name: str) -> None:
    value = next(iter(REPRS[name](made()).values()))
    assert {each for each in dir(value) if not each.startswith("_")} == set(MEMBERS[name].split())
