"""Graphs in DirectML's form: their values, and every rule of DML_GRAPH_DESC's page."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml import (
    FLOAT16,
    FLOAT32,
    CompiledOperator,
    ConstantNode,
    Device,
    GraphDesc,
    InputEdge,
    IntermediateEdge,
    InvalidArgument,
    OperatorNode,
    OutputEdge,
    TensorDesc,
    descs,
)
from opendml.compiler.fuse import fuse
from opendml.compiler.simplify import simplify
from opendml.runtime.graphs.compilable import compilable_of_graph
from opendml.runtime.graphs.wiring import graph_of_desc
from tests.running import same_bits
from tests.runtime.object_model import BIAS, OWNED, PACKED, SCALE, SIZES, VALUES, elu, initialized, normalized

FLAT = TensorDesc(FLOAT32, [24])
PLAIN = TensorDesc(FLOAT32, [1, 4])
REPEATED = TensorDesc(FLOAT32, SIZES, [0, 0, 1])


def celu(input: TensorDesc = PACKED, output: TensorDesc = PACKED) -> descs.ActivationCelu:
    return descs.ActivationCelu(input, output, alpha=0.5)


def tanh(input: TensorDesc = PACKED, output: TensorDesc = PACKED) -> descs.ActivationTanh:
    return descs.ActivationTanh(input, output)


def normalization(
    scale: TensorDesc | None = PACKED, bias: TensorDesc | None = PACKED
) -> descs.MeanVarianceNormalization1:
    return descs.MeanVarianceNormalization1(PACKED, scale, bias, PACKED, axes=[2])


def node(device: Device, desc: dml.OperatorDesc, name: str = "") -> OperatorNode:
    return OperatorNode(device.create_operator(desc), name)


def chain(device: Device, *operators: dml.OperatorDesc) -> GraphDesc:
    """Operators one after the other."""
    last = len(operators) - 1
    return GraphDesc(
        1,
        1,
        [node(device, desc) for desc in operators],
        [InputEdge(0, 0, 0)],
        [OutputEdge(last, 0, 0)],
        [IntermediateEdge(number, 0, number + 1, 0) for number in range(last)],
    )


def reinterpreting(device: Device) -> CompiledOperator:
    """CELU and tanh of its results, whose bytes an operator between them sees as elements of half the width:
    a graph of three programs."""
    halves = TensorDesc(dml.UINT16, [48])
    return device.compile_graph(
        chain(device, celu(), descs.ElementWiseIdentity(halves, halves), tanh(FLAT, FLAT))
    )


def run(compiled: CompiledOperator, inputs: list[Any], count: int = 1) -> list[Any]:
    device = compiled.device
    given = [None if each is None else device.upload(each) for each in inputs]
    outputs = [
        device.empty(tensor.sizes, tensor.data_type)
        for tensor in compiled.output_tensors
        if tensor is not None
    ]
    assert len(outputs) == count
    compiled.bind(given, outputs).dispatch()
    return [device.download(each) for each in outputs]


def test_a_chain_gives_what_its_operators_give_one_by_one(any_device: Device) -> None:
    desc = chain(any_device, celu(), tanh(), celu())
    (y,) = run(any_device.compile_graph(desc), [VALUES])
    assert np.allclose(y, elu(np.tanh(elu(VALUES))), rtol=1e-6)


def test_a_chain_without_a_change_of_layout_is_fused() -> None:
    device = Device("cpu")
    assert device.compile_graph(chain(device, celu(), tanh())).binding_properties.temporary_resource_size == 0


def test_a_graph_is_the_same_as_one_of_immediate_functions(device: Device) -> None:
    graph = dml.Graph()
    x = graph.input("x", FLOAT32, SIZES)
    model = graph.compile({"y": dml.activation_tanh(dml.activation_celu(x, alpha=0.5))}, device=device)
    (y,) = run(device.compile_graph(chain(device, celu(), tanh())), [VALUES])
    assert same_bits(y, model(x=VALUES)["y"])


def test_the_ends_of_an_edge_may_see_the_same_bytes_differently(any_device: Device) -> None:
    turned = TensorDesc(FLOAT32, [4, 3, 2], [1, 4, 12])
    packed = TensorDesc(FLOAT32, [4, 3, 2])
    desc = chain(any_device, celu(), tanh(FLAT, FLAT), celu(turned, packed), tanh(packed, packed))
    (y,) = run(any_device.compile_graph(desc), [VALUES])
    expected = np.tanh(elu(np.tanh(elu(VALUES)).transpose(2, 1, 0)))
    assert np.allclose(y, expected, rtol=1e-6)


def test_an_edge_may_change_the_type(device: Device) -> None:
    halves = TensorDesc(FLOAT16, [48])
    x = np.linspace(-2, 2, 48, dtype=np.float16)
    desc = chain(device, descs.ActivationIdentity(halves, halves), descs.ActivationIdentity(FLAT, FLAT))
    (y,) = run(device.compile_graph(desc), [x])
    assert same_bits(y, x.view(np.float32))


def test_one_tensor_may_lead_to_several_nodes_and_outputs(any_device: Device) -> None:
    nodes = [node(any_device, desc) for desc in (celu(), tanh(), normalization(), tanh(FLAT, FLAT))]
    desc = GraphDesc(
        1,
        4,
        nodes,
        [InputEdge(0, 0, 0)],
        [OutputEdge(0, 0, 1), OutputEdge(1, 0, 0), OutputEdge(2, 0, 2), OutputEdge(3, 0, 3)],
        [
            IntermediateEdge(0, 0, 1, 0),
            *(IntermediateEdge(0, 0, 2, i) for i in range(3)),
            IntermediateEdge(0, 0, 3, 0),
        ],
    )
    tanh_, celu_, normal, flat = run(any_device.compile_graph(desc), [VALUES], 4)
    x = elu(VALUES)
    expected = x * (x - x.mean(2, keepdims=True)) / np.sqrt(x.var(2, keepdims=True) + 1e-5) + x
    assert np.allclose(celu_, x, rtol=1e-6)
    assert np.allclose(tanh_, np.tanh(x), rtol=1e-6)
    assert np.allclose(flat, np.tanh(x).ravel(), rtol=1e-6)
    assert np.allclose(normal, expected, rtol=1e-5, atol=1e-5)


def test_constants_and_repeated_inputs(any_device: Device) -> None:
    """The bias is one row for all, seen through strides of 0, once from a constant and once from an input."""
    bias = np.array([1, 2, 3, 4], np.float32)
    scale = np.linspace(1, 2, 24, dtype=np.float32).reshape(SIZES)
    x = VALUES.astype(np.float64)
    normal = scale * (x - x.mean(2, keepdims=True)) / np.sqrt(x.var(2, keepdims=True) + 1e-5)
    for constant in (True, False):
        nodes = [node(any_device, normalization(PACKED, REPEATED)), ConstantNode(bias)]
        desc = GraphDesc(
            3,
            1,
            nodes if constant else nodes[:1],
            [InputEdge(0, 0, 0), InputEdge(2, 0, 1), *([] if constant else [InputEdge(1, 0, 2)])],
            [OutputEdge(0, 0, 0)],
            [IntermediateEdge(1, 0, 0, 2)] if constant else [],
        )
        compiled = any_device.compile_graph(desc)
        assert (compiled.input_tensors[1] is None) == constant
        (y,) = run(compiled, [VALUES, None if constant else bias, scale])
        assert np.allclose(y, normal + bias, rtol=1e-5, atol=1e-5)


def test_a_constant_is_copied_when_the_graph_is_compiled() -> None:
    device = Device("cpu")
    data = VALUES.copy()
    desc = GraphDesc(
        0,
        1,
        [ConstantNode(data), node(device, celu())],
        [],
        [OutputEdge(1, 0, 0)],
        [IntermediateEdge(0, 0, 1, 0)],
    )
    compiled = device.compile_graph(desc)
    data.fill(9)
    (y,) = run(compiled, [])
    assert np.allclose(y, elu(VALUES), rtol=1e-6)


def test_an_input_read_in_two_layouts(any_device: Device) -> None:
    desc = GraphDesc(
        1,
        2,
        [node(any_device, celu(FLAT, FLAT)), node(any_device, celu(PLAIN, PLAIN))],
        [InputEdge(0, 0, 0), InputEdge(0, 1, 0)],
        [OutputEdge(0, 0, 0), OutputEdge(1, 0, 1)],
    )
    compiled = any_device.compile_graph(desc)
    assert compiled.input_tensors == [FLAT]
    whole, part = run(compiled, [VALUES.ravel()], 2)
    assert np.allclose(whole, elu(VALUES).ravel(), rtol=1e-6)
    assert np.allclose(part.ravel(), elu(VALUES).ravel()[:4], rtol=1e-6)


def test_a_tensor_that_is_one_number_is_a_tensor(any_device: Device) -> None:
    fill = descs.FillValueConstant(PACKED, value_data_type=FLOAT32, value=2.5)
    add = descs.ElementWiseAdd(PACKED, PACKED, PACKED)
    desc = GraphDesc(
        1,
        2,
        [node(any_device, each) for each in (fill, normalization(), add)],
        [InputEdge(0, 1, 1), InputEdge(0, 2, 1)],
        [OutputEdge(1, 0, 0), OutputEdge(2, 0, 1)],
        [IntermediateEdge(0, 0, 1, 0), IntermediateEdge(0, 0, 1, 2), IntermediateEdge(0, 0, 2, 0)],
    )
    normal, total = run(any_device.compile_graph(desc), [VALUES], 2)
    assert (normal == 2.5).all()
    assert same_bits(total, VALUES + np.float32(2.5))


def test_owned_tensors_of_nodes_are_those_of_the_graph(any_device: Device) -> None:
    desc = GraphDesc(
        3,
        1,
        [node(any_device, normalization(OWNED, OWNED))],
        [InputEdge(index, 0, index) for index in range(3)],
        [OutputEdge(0, 0, 0)],
    )
    compiled = any_device.compile_graph(desc)
    assert compiled.binding_properties.persistent_resource_size == 512
    assert [tensor == OWNED for tensor in compiled.input_tensors] == [False, True, True]
    persistent = initialized(any_device, compiled, [None, SCALE, BIAS])
    y = any_device.upload(np.zeros(SIZES, np.float32))
    table = any_device.create_binding_table(compiled)
    table.bind_inputs([any_device.upload(VALUES), None, None])
    table.bind_outputs([y])
    table.bind_persistent_resource(persistent)
    temporary = compiled.binding_properties.temporary_resource_size
    table.bind_temporary_resource(any_device.create_buffer(temporary) if temporary else None)
    recorder = any_device.create_command_recorder()
    recorder.record_dispatch(compiled, table)
    any_device.execute(recorder)
    assert np.allclose(any_device.download(y), normalized(), rtol=1e-5, atol=1e-5)


def two_nodes(device: Device) -> GraphDesc:
    return chain(device, celu(), tanh())


def more_nodes(desc: GraphDesc, *nodes: Any) -> list[Any]:
    return [*desc.nodes, *nodes]


BROKEN: list[tuple[Any, str]] = [
    (lambda g, d: replace(g, input_count=-1), "graph.input_count: -1; an integer from 0 to 65536"),
    (lambda g, d: replace(g, output_count=0), "graph.output_count: 0; an integer from 1 to 65536"),
    (lambda g, d: replace(g, nodes=[]), "graph.nodes: []; a list of one or more nodes"),
    (lambda g, d: replace(g, nodes=more_nodes(g, celu())), "graph.nodes[2]: ActivationCelu("),
    (
        lambda g, d: replace(g, nodes=[node(Device("cpu"), celu()), g.nodes[1]]),
        "graph.nodes[0]: ACTIVATION_CELU was created by another device",
    ),
    (
        lambda g, d: replace(g, nodes=more_nodes(g, ConstantNode(3.5))),
        "graph.nodes[2].data: float; a contiguous buffer is needed",
    ),
    (lambda g, d: replace(g, input_edges=[3]), "graph.input_edges: [3]; a list of InputEdge"),
    (
        lambda g, d: replace(g, input_edges=[InputEdge(1, 0, 0)]),
        "graph.input_edges[0].graph_input_index: 1; there are 1 inputs, the first is 0",
    ),
    (
        lambda g, d: replace(g, input_edges=[InputEdge(0, 2, 0)]),
        "graph.input_edges[0].to_node_index: 2; there are 2 nodes, the first is 0",
    ),
    (
        lambda g, d: replace(g, input_edges=[InputEdge(0, 0, 1)]),
        "graph.input_edges[0].to_node_input_index: 1; there are 1 inputs of the node",
    ),
    (
        lambda g, d: replace(g, input_edges=[InputEdge("x", 0, 0)]),
        "graph.input_edges[0].graph_input_index: 'x'; there are 1 inputs",
    ),
    (
        lambda g, d: replace(g, output_edges=[OutputEdge(-1, 0, 0)]),
        "graph.output_edges[0].from_node_index: -1; there are 2 nodes, the first is 0",
    ),
    (
        lambda g, d: replace(g, intermediate_edges=[IntermediateEdge(0, 1, 1, 0)]),
        "graph.intermediate_edges[0].from_node_output_index: 1; there are 1 outputs of the node",
    ),
    (
        lambda g, d: replace(g, output_edges=[OutputEdge(1, 0, 1)]),
        "graph.output_edges[0].graph_output_index: 1; there are 1 outputs, the first is 0",
    ),
    (
        lambda g, d: replace(
            g,
            nodes=[g.nodes[0], node(d, normalization(None, None))],
            intermediate_edges=[IntermediateEdge(0, 0, 1, 0), IntermediateEdge(0, 0, 1, 1)],
        ),
        "graph.intermediate_edges[1]: to nodes[1].MEAN_VARIANCE_NORMALIZATION1.ScaleTensor, which is absent",
    ),
    (
        lambda g, d: replace(g, input_edges=[InputEdge(0, 0, 0), InputEdge(0, 1, 0)]),
        "graph.intermediate_edges[0]: nodes[1].ACTIVATION_TANH.InputTensor has an edge already",
    ),
    (
        lambda g, d: replace(g, output_edges=[OutputEdge(1, 0, 0), OutputEdge(0, 0, 0)]),
        "graph.output_edges[1]: outputs[0] of the graph has an edge already",
    ),
    (
        lambda g, d: replace(g, input_edges=[]),
        "graph.nodes[0].ACTIVATION_CELU.InputTensor: no edge leads to it",
    ),
    (
        lambda g, d: replace(
            g, nodes=more_nodes(g, node(d, tanh(), "spare")), input_edges=[*g.input_edges, InputEdge(0, 2, 0)]
        ),
        "graph.nodes[2:spare].ACTIVATION_TANH.OutputTensor: no edge leaves it",
    ),
    (
        lambda g, d: replace(g, nodes=more_nodes(g, ConstantNode(VALUES))),
        "graph.nodes[2]: no edge leaves this constant",
    ),
    (lambda g, d: replace(g, output_count=2), "graph.outputs[1]: no edge leads to it"),
    (
        lambda g, d: replace(
            g,
            output_count=2,
            nodes=more_nodes(g, ConstantNode(VALUES)),
            output_edges=[*g.output_edges, OutputEdge(2, 0, 1)],
        ),
        "graph.output_edges[1]: from a constant; outputs of the graph come from operators",
    ),
    (
        lambda g, d: replace(g, nodes=[g.nodes[0], node(d, tanh(PLAIN, PLAIN))]),
        "graph.nodes[1].ACTIVATION_TANH.InputTensor: 16 bytes, but nodes[0].ACTIVATION_CELU.OutputTensor, "
        "which leads to it, has 96",
    ),
    (
        lambda g, d: replace(
            g,
            nodes=more_nodes(g, ConstantNode(VALUES[:1])),
            input_edges=[],
            intermediate_edges=[*g.intermediate_edges, IntermediateEdge(2, 0, 0, 0)],
        ),
        "graph.nodes[0].ACTIVATION_CELU.InputTensor: 96 bytes, but nodes[2], which leads to it, has 48",
    ),
    (
        lambda g, d: replace(
            g,
            nodes=more_nodes(g, ConstantNode(VALUES.astype(np.int32))),
            input_edges=[],
            intermediate_edges=[*g.intermediate_edges, IntermediateEdge(2, 0, 0, 0)],
        ),
        "graph.nodes[2].data: elements of int32; the tensor is FLOAT32",
    ),
    (
        lambda g, d: replace(g, nodes=more_nodes(g, ConstantNode(np.asfortranarray(VALUES)))),
        "nodes[2].data: an array that is not contiguous in row-major order",
    ),
    (
        lambda g, d: replace(
            g,
            nodes=more_nodes(g, node(d, tanh())),
            input_edges=[InputEdge(0, 2, 0)],
            output_edges=[OutputEdge(2, 0, 0)],
            intermediate_edges=[IntermediateEdge(0, 0, 1, 0), IntermediateEdge(1, 0, 0, 0)],
        ),
        "graph.nodes[0, 1]: they are, or wait for, a cycle of edges",
    ),
    (
        lambda g, d: replace(g, nodes=[g.nodes[0], node(d, tanh(OWNED))]),
        "graph.nodes[1].ACTIVATION_TANH.InputTensor: OWNED_BY_DML tensors must be connected to inputs of",
    ),
    (
        lambda g, d: replace(
            g,
            output_count=2,
            nodes=more_nodes(g, node(d, tanh(OWNED))),
            input_edges=[*g.input_edges, InputEdge(0, 2, 0)],
            output_edges=[*g.output_edges, OutputEdge(2, 0, 1)],
        ),
        "inputs[0] of the graph leads to tensors with and without OWNED_BY_DML",
    ),
]


@pytest.mark.parametrize(("change", "message"), BROKEN, ids=[message for _, message in BROKEN])
def test_graphs_that_break_a_rule_are_refused_by_name(change: Any, message: str) -> None:
    device = Device("cpu")
    with pytest.raises(InvalidArgument) as error:
        device.compile_graph(change(two_nodes(device), device))
    assert message in str(error.value)


def test_all_that_is_wrong_with_a_graph_is_told_at_once() -> None:
    device = Device("cpu")
    desc = replace(two_nodes(device), input_edges=[InputEdge(5, 0, 0)], output_edges=[OutputEdge(9, 0, 0)])
    with pytest.raises(InvalidArgument) as error:
        device.compile_graph(desc)
    assert len(error.value.failures) == 2


def test_other_mistakes_of_compile_graph() -> None:
    device = Device("cpu")
    with pytest.raises(InvalidArgument, match="a GraphDesc is needed"):
        device.compile_graph(two_nodes(device).nodes)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="flags"):
        device.compile_graph(two_nodes(device), flags=1 << 20)  # type: ignore[arg-type]


def test_graphs_begin_at_feature_level_2_1() -> None:
    tensor, values = TensorDesc(FLOAT32, [1, 1, 1, 2]), np.float32([[[[-1, 2]]]])
    relu = descs.ActivationRelu(tensor, tensor)
    device = Device("cpu", feature_level="2_0")
    message = "exists from DML_FEATURE_LEVEL_2_1, not in DML_FEATURE_LEVEL_2_0"
    with pytest.raises(InvalidArgument, match=message):
        device.compile_graph(chain(device, relu))
    device = Device("cpu", feature_level="2_1")
    assert np.array_equal(run(device.compile_graph(chain(device, relu)), [values])[0], np.maximum(values, 0))


def test_constant_nodes_begin_at_feature_level_6_2() -> None:
    def graph(device: Device) -> GraphDesc:
        nodes = [ConstantNode(VALUES), node(device, descs.ActivationRelu(PACKED, PACKED))]
        return GraphDesc(0, 1, nodes, [], [OutputEdge(1, 0, 0)], [IntermediateEdge(0, 0, 1, 0)])

    device = Device("cpu", feature_level="6_1")
    message = r"nodes\[0\]: ConstantNode; exists from DML_FEATURE_LEVEL_6_2, not in DML_FEATURE_LEVEL_6_1"
    with pytest.raises(InvalidArgument, match=message):
        device.compile_graph(graph(device))
    device = Device("cpu", feature_level="6_2")
    assert np.array_equal(run(device.compile_graph(graph(device)), [])[0], np.maximum(VALUES, 0))


def test_operators_that_see_bytes_in_other_sizes_are_one_program() -> None:
    device = Device("cpu")
    sizes = [FLAT, PACKED, TensorDesc(FLOAT32, [4, 6])]
    descs_of_chain = [celu(sizes[n % 3], sizes[n % 3]) for n in range(100)]
    form = compilable_of_graph(*graph_of_desc(chain(device, *descs_of_chain), device))
    assert len(form.work.stages) == 1
    program = form.work.stages[0].program
    assert len(fuse(replace(program, results=simplify(program.results))).kernels) == 1


@pytest.mark.parametrize("kind", ["cpu", "reference"])
@pytest.mark.parametrize(
    "read",
    [
        TensorDesc(FLOAT32, [4, 6], [1, 4]),
        TensorDesc(FLOAT32, [2, 3, 4], [12, 1, 3]),
        TensorDesc(FLOAT32, [3, 2], [8, 4], total_tensor_size_in_bytes=96),
        TensorDesc(dml.INT32, [24]),
    ],
    ids=["transposed", "permuted", "part", "bits"],
)
def test_a_tensor_is_read_as_its_bytes_lie(kind: str, read: TensorDesc) -> None:
    device = Device(kind)
    output = TensorDesc(read.data_type, read.sizes)
    graph = chain(device, celu(), descs.ElementWiseIdentity(read, output))
    (found,) = run(device.compile_graph(graph), [VALUES])
    (middle,) = run(device.compile_graph(chain(device, celu())), [VALUES])
    flat = np.ascontiguousarray(middle).reshape(-1).view(found.dtype)
    strides = [stride * 4 for stride in read.effective_strides]
    assert same_bits(found, np.lib.stride_tricks.as_strided(flat, read.sizes, strides))
