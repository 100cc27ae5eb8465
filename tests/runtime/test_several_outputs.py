"""Calls with several outputs, with lists of tensors, and with sizes that the call says: on arrays, and as
nodes of graphs."""

from __future__ import annotations

import contextlib
import gc
import pickle
import re
import weakref
from typing import Any, assert_type

import numpy as np
import numpy.typing as npt
import pytest

import opendml as dml
from opendml import FLOAT32, Device, InvalidArgument
from opendml.outputs import MaxPooling2Outputs, RnnOutputs, TopK1Outputs
from opendml.runtime.memory.host_array import Array
from tests.runtime.test_odd_arguments import ODD

Floats = npt.NDArray[np.float32]
KINDS = ["cpu", "reference"]


def values(*sizes: int) -> Floats:
    return np.arange(int(np.prod(sizes)), dtype=np.float32).reshape(sizes) - 2


def smallest(x: Any, **arguments: Any) -> Any:
    """Of ascending lines: their beginnings."""
    return dml.top_k1(x, axis_direction="INCREASING", **arguments)


def pooled(x: Any, **arguments: Any) -> Any:
    return dml.max_pooling2(x, window_size=[1, 1], **arguments)


# Named tuples


@pytest.mark.parametrize("kind", KINDS)
def test_several_outputs_are_a_named_tuple(kind: str) -> None:
    x = values(2, 3)
    result = smallest(x, k=3, device=kind)
    assert type(result) is TopK1Outputs
    found, indices = result
    assert found is result.output_value
    assert indices is result.output_index
    np.testing.assert_array_equal(found, x)
    np.testing.assert_array_equal(indices, [[0, 1, 2]] * 2)
    assert indices.dtype == np.uint32


def test_named_tuples_can_be_pickled() -> None:
    result = smallest(values(3), k=3)
    again = pickle.loads(pickle.dumps(result))
    assert type(again) is TopK1Outputs
    np.testing.assert_array_equal(again.output_index, result.output_index)


def test_results_have_the_types_of_what_was_given() -> None:
    """`make lint` holds the types to this."""
    x: Floats = values(1, 1, 2, 3)
    graph = dml.Graph()
    tensor = graph.input("x", "float32", [1, 1, 2, 3])
    assert_type(dml.top_k1(x, k=3), TopK1Outputs[Array])
    assert_type(dml.top_k1(tensor, k=3), TopK1Outputs[dml.GraphTensor])
    assert_type(dml.max_pooling2(x, window_size=[1, 1]), Array)
    assert_type(dml.max_pooling2(x, window_size=[1, 1], output_indices=True), MaxPooling2Outputs[Array])
    assert_type(dml.max_pooling2(tensor, window_size=[1, 1]), dml.GraphTensor)
    assert_type(
        dml.max_pooling2(tensor, window_size=[1, 1], output_indices=True), MaxPooling2Outputs[dml.GraphTensor]
    )
    assert_type(dml.split(x, axis=2, sizes=[1, 1]), tuple[Array, ...])
    assert_type(dml.join([x, x], axis=1), Array)
    assert_type(dml.join([tensor, tensor], axis=1), dml.GraphTensor)


def test_the_type_of_an_output_may_be_said() -> None:
    assert smallest(values(3), k=3, output_type=np.uint64).output_index.dtype == np.uint64
    out = TopK1Outputs(values(3), np.zeros(3, np.uint64))
    assert smallest(values(3), k=3, out=out).output_index is out.output_index


def test_what_is_kept_of_a_call_keeps_no_arrays() -> None:
    x = values(3)
    there = weakref.ref(x)
    smallest(x, k=3)
    dml.activation_relu(x)
    del x
    gc.collect()
    assert there() is None


# Optional outputs


@pytest.mark.parametrize("kind", KINDS)
def test_an_optional_output_is_there_when_it_is_asked_for(kind: str) -> None:
    x = values(1, 1, 2, 3)
    plain = pooled(x, device=kind)
    assert type(plain) is np.ndarray
    both = pooled(x, output_indices=True, device=kind)
    assert type(both) is MaxPooling2Outputs
    np.testing.assert_array_equal(both.output, plain)
    np.testing.assert_array_equal(both.output_indices.ravel(), range(6))
    assert type(pooled(x, output_indices=False)) is np.ndarray


def recurrent(**asked: Any) -> Any:
    x, weight, recurrence = values(2, 3, 4)[None] + 2, values(1, 1, 5, 4), values(1, 1, 5, 5)
    return dml.rnn(
        x, weight, recurrence, activation_descs=[dml.descs.ActivationTanh()], direction="FORWARD", **asked
    )


def test_where_all_outputs_are_optional_those_not_asked_for_are_none() -> None:
    sequence, single = recurrent(output_sequence=True, output_single=True)
    assert sequence.shape == (2, 1, 3, 5)
    np.testing.assert_array_equal(single, sequence[1:])
    only = recurrent(output_single=True)
    assert type(only) is RnnOutputs
    assert only.output_sequence is None
    np.testing.assert_array_equal(only.output_single, single)
    with pytest.raises(InvalidArgument, match=r"^rnn\.output_sequence: missing, as are the other outputs"):
        recurrent()


def test_asking_takes_a_truth_value() -> None:
    with pytest.raises(InvalidArgument, match=r"^max_pooling2\.output_indices: 'yes'; True asks for"):
        pooled(values(1, 1, 2, 3), output_indices="yes")


# Lists


@pytest.mark.parametrize("kind", KINDS)
def test_lists_of_tensors_are_taken_and_returned(kind: str) -> None:
    x = values(2, 3, 2)
    parts = dml.split(x, axis=1, sizes=[1, 1, 1], device=kind)
    assert type(parts) is tuple
    assert len(parts) == 3
    for number, part in enumerate(parts):
        np.testing.assert_array_equal(part, x[:, number : number + 1])
    for sequence in (parts, list(parts)):
        np.testing.assert_array_equal(dml.join(sequence, axis=1, device=kind), x)
    np.testing.assert_array_equal(dml.join(parts[:2], axis=-2, device=kind), x[:, :2])


@pytest.mark.parametrize("kind", KINDS)
def test_a_list_may_be_beside_tensors(kind: str) -> None:
    x, scale = np.arange(6, dtype=np.int8).reshape(2, 3), np.full((2, 3), 0.5, np.float32)
    zero_point = np.ones((2, 3), np.int8)
    result = dml.dequantize(x, [scale, zero_point], quantization_type="SCALE_ZERO_POINT", device=kind)
    np.testing.assert_array_equal(result, (x - 1.0) * 0.5)
    result = dml.dequantize(x, [scale], quantization_type="SCALE", device=kind)
    np.testing.assert_array_equal(result, x * 0.5)


X = values(2, 1)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([], "join.inputs: empty; at least one tensor is needed"),
        (None, "join.inputs: NoneType; a list of tensors is needed"),
        (X, "join.inputs: ndarray; a list of tensors is needed"),
        ("xy", "join.inputs: str; a list of tensors is needed"),
        ([X, None], "join.inputs[1]: None; a tensor is needed"),
        ([X, 3.0], "join.inputs[1]: 3.0; a tensor is needed"),
        ([X, [1]], "join.inputs[1]: list; an array is needed"),
        ([X, X.astype("f2")], "join.inputs[1]: FLOAT16; must have the data type of inputs[0], FLOAT32"),
        ([X, values(3, 1)], "join.inputs[1]: sizes [3, 1]"),
        ([X, values(2)], "join.inputs[1]: 1 dimension"),
        ([X, np.zeros((2, 1), "c8")], "join.inputs[1]: elements of dtype('complex64')"),
    ],
)
def test_wrong_lists_name_the_member(inputs: Any, message: str) -> None:
    with pytest.raises(InvalidArgument, match=f"^{re.escape(message)}"):
        dml.join(inputs, axis=1)


def test_lists_of_one_graph_and_of_several() -> None:
    graph, other = dml.Graph(), dml.Graph()
    a, b = graph.input("a", FLOAT32, [2, 1]), other.input("b", FLOAT32, [2, 1])
    with pytest.raises(InvalidArgument, match=r"^join\.inputs\[1\]: not a tensor of this graph"):
        dml.join([a, b], axis=1)
    assert dml.join([a, np.ones((2, 3), np.float32)], axis=1).sizes == (2, 4)


def test_calls_with_lists_of_different_lengths_are_different() -> None:
    parts = [values(2, 1) + number for number in range(3)]
    for count in (3, 1, 2, 3):
        np.testing.assert_array_equal(dml.join(parts[:count], axis=1), np.hstack(parts[:count]))


# Sizes


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        (None, "split: neither sizes nor out; one of them is needed"),
        (3, "split.sizes: 3; one for each part, along the axis, is needed"),
        ([], "split.sizes: (); one for each part, along the axis, is needed"),
        ([1, 0], "split.sizes[1]: 0; must be a whole number from 1 to 4294967295"),
        ([1, "b"], "split.sizes[1]: 'b'; must be a whole number from 1 to 4294967295"),
        ([1, 1], "split.input.Sizes[1]: 3; must be the sum of the parts along the axis, 2"),
    ],
)
def test_wrong_sizes_of_parts_are_named(sizes: Any, message: str) -> None:
    with pytest.raises(InvalidArgument, match=f"^{re.escape(message)}"):
        dml.split(values(2, 3), axis=1, sizes=sizes)


def resampled(x: Any, **arguments: Any) -> Any:
    return dml.resample3(
        x,
        interpolation_mode="LINEAR",
        scales=[1.0, 1.0, 1.5, 2.0],
        antialiased=False,
        rounding_direction="DECREASING",
        **arguments,
    )


def test_sizes_that_a_call_may_say_have_a_usual_value() -> None:
    x = values(1, 1, 5, 5)
    assert resampled(x).shape == (1, 1, 7, 10)
    assert resampled(x, sizes=[1, 1, 8, 10]).shape == (1, 1, 8, 10)
    assert resampled(x, out=values(1, 1, 8, 10)).shape == (1, 1, 8, 10)
    with pytest.raises(InvalidArgument, match=r"^resample3\.sizes\[2\]: 0; must be a whole number"):
        resampled(x, sizes=[1, 1, 0, 10])
    with pytest.raises(InvalidArgument, match=r"^resample3\.out: sizes \[1, 1, 7, 9\]; \[1, 1, 8, 10\]"):
        resampled(x, sizes=[1, 1, 8, 10], out=values(1, 1, 7, 9))


def test_sizes_are_judged_by_the_shape_of_the_operator() -> None:
    x = values(1, 1, 2, 3)
    with pytest.raises(
        InvalidArgument, match=r"^max_pooling2\.sizes: sizes \[1, 1, 2, 9\]; must be \[1, 1, 2, 3\]"
    ):
        pooled(x, sizes=[1, 1, 2, 9])
    # Two windows of 2 in steps of 2 over 3 elements, or one.
    assert dml.max_pooling2(x, window_size=[1, 1], sizes=[1, 1, 2, 3]).shape == (1, 1, 2, 3)


# What is written


def test_outputs_are_written_where_the_call_says() -> None:
    x = values(2, 3)
    value, index = np.zeros((2, 3), np.float32), np.zeros((4, 6), np.uint32)[::2, ::2]
    for out in ((value, index), [value, index], TopK1Outputs(value, index)):
        value[...], index[...] = 0, 9
        result: Any = smallest(x, k=3, out=out)
        assert type(result) is TopK1Outputs
        assert result[0] is value
        assert result[1] is index
        np.testing.assert_array_equal(value, x)
        np.testing.assert_array_equal(index, [[0, 1, 2]] * 2)
    given = values(2, 1), values(2, 1)
    parts = dml.split(x[:, :2], axis=1, out=given)
    assert parts[0] is given[0]
    assert parts[1] is given[1]
    np.testing.assert_array_equal(given[1], x[:, 1:2])


VALUE, INDEX = np.zeros(3, np.float32), np.zeros(3, np.uint32)
READ_ONLY = INDEX.copy()
READ_ONLY.flags.writeable = False


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (VALUE, "top_k1.out: ndarray; a tuple is needed of output_value, output_index"),
        ((VALUE,), "top_k1.out: 1 arrays; a tuple is needed of output_value, output_index"),
        ((VALUE, None), "top_k1.out.output_index: None; an array is needed"),
        ((VALUE, 3), "top_k1.out.output_index: int; an array is needed"),
        ((VALUE, INDEX[:2]), "top_k1.out.output_index: sizes [2]; [3] are needed"),
        ((VALUE, VALUE.copy()), "top_k1.out.output_index: FLOAT32;"),
        ((VALUE, np.zeros(3, bool)), "top_k1.out.output_index: an array of truth values"),
        ((VALUE, READ_ONLY), "top_k1.out.output_index: a read-only array; an output must be writable"),
        ((VALUE, VALUE.view(np.uint32)), "top_k1.out.output_index: overlaps out.output_value; outputs must"),
    ],
)
def test_arrays_that_cannot_be_written_are_named(out: Any, message: str) -> None:
    for _ in range(2):  # the second call finds what the first compiled
        with pytest.raises(InvalidArgument, match=f"^{re.escape(message)}"):
            smallest(values(3), k=3, out=out)


def test_an_output_that_lies_over_an_input_is_named() -> None:
    x = values(3)
    with pytest.raises(InvalidArgument, match=r"^top_k1\.out\.output_value: shares memory with input; this"):
        smallest(x, k=3, out=(x, INDEX))
    out = values(2, 2)
    with pytest.raises(InvalidArgument, match=r"^join\.out: shares memory with inputs\[1\]; this operator"):
        dml.join([values(2, 1), out[:, 1:]], axis=1, out=out)
    whole = values(2, 2)
    with pytest.raises(InvalidArgument, match=r"^split\.out\[1\]: shares memory with input; this operator"):
        dml.split(whole, axis=1, out=[values(2, 1), whole[:, 1:]])


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (values(2, 1), "split.out: ndarray; a tuple of arrays is needed"),
        ([], "split.out: empty; a tuple of arrays is needed"),
        ([values(2, 1), None], "split.out[1]: None; an array is needed"),
        ([values(2, 1), values(1)], "split.out[1]: sizes [1]; [2, 1] are needed"),
        ([values(2, 1), INDEX], "split.out[1]: UINT32; FLOAT32 is needed"),
        ([values(2, 1)] * 2, "split.out[1]: overlaps out[0]; outputs must not share memory"),
    ],
)
def test_arrays_for_parts_are_named_by_their_number(out: Any, message: str) -> None:
    with pytest.raises(InvalidArgument, match=f"^{re.escape(message)}"):
        dml.split(values(2, 2), axis=1, out=out)


def test_sizes_and_arrays_for_parts_are_equally_many() -> None:
    with pytest.raises(InvalidArgument, match=r"^split\.out: 1 arrays; 2 are needed$"):
        dml.split(values(2, 2), axis=1, sizes=[1, 1], out=[values(2, 1)])


def test_arrays_for_outputs_that_are_not_asked_for_are_refused() -> None:
    x = values(1, 1, 1, 3)
    with pytest.raises(InvalidArgument, match=r"^max_pooling2\.out: tuple; an array is needed"):
        pooled(x, out=(x.copy(), INDEX))
    with pytest.raises(InvalidArgument, match=r"out\.output_single: .* output_single=True asks for it$"):
        recurrent(output_sequence=True, out=(values(2, 1, 3, 5), values(1, 1, 3, 5)))
    out = None, values(1, 1, 3, 5)
    assert recurrent(output_single=True, out=out).output_single is out[1]


def test_each_output_may_lie_over_an_input_where_the_operator_runs_in_place() -> None:
    def step(out: Any) -> Any:
        return dml.adam_optimizer(
            *inputs,
            np.ones((1, 1, 1, 1), np.uint32),
            learning_rate=0.1,
            beta1=0.9,
            beta2=0.9,
            epsilon=0.1,
            out=out,
        )

    inputs = [values(1, 1, 2, 4) + number for number in range(2, 6)]
    expected = step(None)
    step(tuple(inputs[:3]))
    for found, wanted in zip(inputs, expected, strict=False):
        np.testing.assert_array_equal(found, wanted)


# Arrays of other libraries


def test_arrays_of_other_libraries_come_back_as_theirs() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x = torch.arange(6.0).reshape(2, 3)
    value, index = smallest(x, k=3, output_type="uint64")
    assert torch.equal(value, x)
    assert torch.equal(index, torch.tensor([[0, 1, 2]] * 2, dtype=torch.uint64))
    parts = dml.split(x, axis=1, sizes=[1, 1, 1])
    assert all(isinstance(part, torch.Tensor) for part in parts)
    assert torch.equal(dml.join(parts, axis=1), x)
    out = torch.zeros(2, 3), torch.zeros(2, 3, dtype=torch.uint64)
    result = smallest(x, k=3, out=out)
    assert result.output_value is out[0]
    assert torch.equal(out[1], index)
    assert torch.equal(out[0], x)


# Odd arguments

X4 = values(1, 1, 2, 2)
CALLS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "split": ([X4], {"axis": 3, "sizes": [1, 1], "out": None}),
    "join": ([[X4, X4]], {"axis": 3, "out": None}),
    "top_k1": ([X4], {"k": 2, "axis": None, "output_type": None, "out": None}),
    "max_pooling2": ([X4], {"window_size": [1, 1], "sizes": None, "output_indices": True, "out": None}),
    "dequantize": ([X4.astype("i1"), [X4]], {"quantization_type": "SCALE", "out": None}),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_raise_errors_of_their_own(name: str) -> None:
    inputs, keywords = CALLS[name]
    graph = dml.Graph()
    a = graph.input("a", FLOAT32, X4.shape)
    function = getattr(dml, name)
    function(*inputs, **keywords)
    for odd in ODD:
        for wrong in (odd, [odd], [X4, odd], (odd, odd), [a, odd]):
            for position in range(len(inputs)):
                given = [*inputs[:position], wrong, *inputs[position + 1 :]]
                with contextlib.suppress(dml.Error):
                    function(*given, **keywords)
            for keyword in keywords:
                with contextlib.suppress(dml.Error):
                    function(*inputs, **keywords | {keyword: wrong})


# Graphs


@pytest.mark.parametrize("kind", KINDS)
def test_several_outputs_and_lists_are_nodes_of_graphs(kind: str) -> None:
    graph = dml.Graph()
    x = graph.input("x", FLOAT32, [2, 3])
    parts = dml.split(x, axis=1, sizes=[1, 1, 1])
    assert [part.sizes for part in parts] == [(2, 1)] * 3
    value, index = dml.top_k1(dml.join([parts[2], parts[0]], axis=1), k=2)
    assert index.data_type is dml.UINT32
    model = graph.compile({"value": value, "index": index, "first": dml.activation_relu(parts[0])}, kind)
    given = values(2, 3)
    found = model(x=given)
    np.testing.assert_array_equal(found["value"], given[:, [2, 0]])
    np.testing.assert_array_equal(found["index"], [[0, 1]] * 2)
    np.testing.assert_array_equal(found["first"], np.maximum(given[:, :1], 0))
    assert repr(graph) == "<Graph: x FLOAT32 [2, 3]; 4 operators>"


def test_optional_outputs_of_nodes_are_asked_for() -> None:
    graph = dml.Graph()
    x = graph.input("x", FLOAT32, [1, 1, 2, 3])
    assert isinstance(pooled(x), dml.GraphTensor)
    assert isinstance(pooled(x, output_indices=True).output_indices, dml.GraphTensor)
    with pytest.raises(InvalidArgument, match="out and device belong to the compiled graph"):
        smallest(x, k=1, device="cpu")


@pytest.mark.parametrize("kind", KINDS)
def test_debug_devices_show_each_output_by_its_name(kind: str) -> None:
    shown: list[dml.Intermediate] = []
    graph = dml.Graph()
    x = graph.input("x", FLOAT32, [2, 2])
    parts = dml.split(x, axis=1, sizes=[1, 1])
    value, index = smallest(dml.join(parts, axis=1), k=2)
    graph.compile({"value": value, "index": index}, Device(kind, debug=shown.append))(x=values(2, 2))
    assert [(each.name, each.output) for each in shown] == [
        ("nodes[0].SPLIT.OutputTensors[0]", "OutputTensors[0]"),
        ("nodes[0].SPLIT.OutputTensors[1]", "OutputTensors[1]"),
        ("nodes[1].JOIN.OutputTensor", "OutputTensor"),
        ("nodes[2].TOP_K1.OutputValueTensor", "OutputValueTensor"),
        ("nodes[2].TOP_K1.OutputIndexTensor", "OutputIndexTensor"),
    ]
    np.testing.assert_array_equal(shown[1].values, values(2, 2)[:, 1:])


# DirectML's own way


def tensor(*sizes: int) -> dml.TensorDesc:
    return dml.TensorDesc(FLOAT32, sizes)


@pytest.mark.parametrize("kind", KINDS)
def test_compiled_operators_and_graphs_of_descs_have_lists_and_several_outputs(kind: str) -> None:
    device = Device(kind)
    split = device.create_operator(dml.descs.Split(tensor(2, 2), [tensor(2, 1)] * 2, axis=1))
    join = device.create_operator(dml.descs.Join([tensor(2, 1)] * 2, tensor(2, 2), axis=1))
    x, parts = values(2, 2), [values(2, 1), values(2, 1)]
    device.compile_operator(split).bind([x], parts).dispatch()
    np.testing.assert_array_equal(np.hstack(parts), x)
    graph = dml.GraphDesc(
        1,
        1,
        [dml.OperatorNode(split), dml.OperatorNode(join)],
        [dml.InputEdge(0, 0, 0)],
        [dml.OutputEdge(1, 0, 0)],
        [dml.IntermediateEdge(0, 0, 1, 1), dml.IntermediateEdge(0, 1, 1, 0)],
    )
    out = np.zeros_like(x)
    device.compile_graph(graph).bind([x], [out]).dispatch()
    np.testing.assert_array_equal(out, x[:, ::-1])
