"""Graphs of `directml`, what is bound to them, buffers, and constants."""

from __future__ import annotations

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml import directml
from tests.cuda import fake


@pytest.fixture(scope="module")
def device() -> Any:
    return directml.Device(use_gpu=False)


def copier(device: Any, sizes: Any, dtype: Any = np.float32, **more: Any) -> tuple[Any, Any]:
    """An input, and an operator that copies it."""
    graph = directml.Graph(device)
    x = graph.input(sizes, dtype, **more)
    return x, graph.compile([directml.identity(x)])


def sums(device: Any, **more: Any) -> tuple[Any, Any, Any, Any]:
    """A graph, inputs x and w of which w is owned, and x + w."""
    graph = directml.Graph(device)
    x, w = graph.input([2], name="x"), graph.input([2], owned=True, **more)
    return graph, x, w, graph.compile([x + w])


def test_a_view_of_an_owned_input_is_owned(device: Any) -> None:
    w = directml.Graph(device).input([4], owned=True)
    assert directml.reinterpret(w, [2, 2]).desc.flags == directml.TensorFlags.OWNED_BY_DML
    assert directml.reinterpret(w * 2.0, [2, 2]).desc.flags == directml.TensorFlags.NONE


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("float64", "float32"),
        ("float32", "float16"),
        ("uint8", "float32"),
        ("int64", "int32"),
        ("bool", "uint8"),
    ],
)
def test_arrays_are_narrowed_within_a_kind_and_cast_where_it_is_safe(
    given: str, wanted: str, device: Any
) -> None:
    x, op = copier(device, [2], wanted)
    (result,) = op({x: np.array([1, 0], given)})
    assert (result.tolist(), result.dtype.name) == ([1, 0], wanted)


@pytest.mark.parametrize(("given", "wanted"), [("int32", "float32"), ("float32", "int32"), ("uint8", "int8")])
def test_other_casts_are_refused(given: str, wanted: str, device: Any) -> None:
    x, op = copier(device, [2], wanted)
    for call in (
        lambda: op({x: np.zeros(2, given)}),
        lambda: directml.Buffer(device, np.zeros(2, given), wanted),
        lambda: directml.Graph(device).constant(np.zeros(2, given), wanted),
    ):
        with pytest.raises(ValueError, match=rf"{given} for .*; array\.astype\('{wanted}'\)") as caught:
            call()
        assert isinstance(caught.value, dml.InvalidArgument)


def test_only_the_elements_in_their_order_count(device: Any) -> None:
    x, op = copier(device, [1, 1, 2, 3])
    data = np.arange(6, dtype=np.float32).reshape(3, 2).T
    for given in (data, data.ravel().tolist(), data.reshape(1, 6)):
        (result,) = op({x: given})
        assert result.shape == (1, 1, 2, 3)
        np.testing.assert_array_equal(result.ravel(), data.ravel())
    with pytest.raises(ValueError, match=r"input 0 \(float32 \[1, 1, 2, 3\]\): 5 elements"):
        op({x: np.zeros(5)})


def test_odd_counts_of_small_elements_are_read_and_written_whole(device: Any) -> None:
    x, op = copier(device, [3], np.float16)
    assert op({x: [1.0, 2.0, 3.0]})[0].tolist() == [1, 2, 3]
    buffer = directml.Buffer(device, np.uint8([1, 2, 3]))
    assert (buffer.nbytes, buffer.numpy().tolist()) == (4, [1, 2, 3])


def test_strided_inputs_are_bound_as_they_lie(device: Any) -> None:
    x, op = copier(device, [2, 3], strides=[0, 1])
    assert (x.shape, x.strides, x.size) == ((2, 3), (0, 1), 6)
    assert op({x: np.float32([1, 2, 3])})[0].tolist() == [[1, 2, 3]] * 2
    with pytest.raises(ValueError, match=r"8 bytes; the tensor has sizes \[2, 3\] and 12 bytes"):
        op({x: np.zeros(2)})


def test_a_whole_desc_stands_for_the_other_arguments(device: Any) -> None:
    graph = directml.Graph(device)
    desc = directml.TensorDesc(np.float16, [2, 2], flags=directml.TensorFlags.OWNED_BY_DML)
    w = graph.input(desc=desc, name="w")
    assert (w.dtype, w.shape) == (np.float16, (2, 2))
    assert isinstance(w.desc, directml.TensorDesc)
    assert not graph.compile([w]).initialized
    for wrong in ({}, {"desc": desc, "sizes": [2]}, {"desc": desc, "owned": True}, {"desc": [2]}):
        with pytest.raises(TypeError, match=r"Graph\.input"):
            graph.input(**wrong)


def test_what_is_bound_wrongly_is_named(device: Any) -> None:
    graph, x, w, op = sums(device, name="w")
    zeros = np.zeros(2)
    with pytest.raises(
        ValueError, match=r"not initialized; initialize\(\) takes input 1 'w' \(float32 \[2\]\)"
    ):
        op({x: zeros})
    with pytest.raises(ValueError, match="initialize: missing input 1 'w'"):
        op.initialize()
    with pytest.raises(ValueError, match=r"initialize: input 0 'x' .* is not owned; dispatch takes it"):
        op.initialize({w: zeros, x: zeros})
    op.initialize({w: zeros})
    for wrong, problem in (
        ({}, "dispatch: missing input 0 'x'"),
        ({x: zeros, w: zeros}, "dispatch: input 1 'w' .* is owned; initialize takes it"),
        ({x: zeros, "x": zeros}, "dispatch: input 0 'x' .* is bound twice"),
        ({"y": zeros}, "dispatch: this graph has no input named 'y'"),
        ({x + 1.0: zeros}, r"dispatch: <dml.Expression float32 \[2\]> is not an input of this graph"),
    ):
        with pytest.raises(ValueError, match=problem):
            op(wrong)
    with pytest.raises(TypeError, match="dispatch: int; an input, or its name, is needed"):
        op({0: zeros})
    with pytest.raises(ValueError, match="already has an input named 'w'"):
        graph.input([1], name="w")
    with pytest.raises(TypeError, match="name of an input: int"):
        graph.input([1], name=1)


def test_weights_are_handed_over_once_until_they_are_again(device: Any) -> None:
    _, x, w, op = sums(device)
    for weight in (1, 2):
        op.initialize({w: np.full(2, weight, np.float32)})
        for _ in range(2):
            assert op({x: [1.0, 2.0]})[0].tolist() == [1 + weight, 2 + weight]
    assert op.initialized
    assert (op.temporary_size, op.descriptor_count) >= (0, 2)
    assert op.persistent_size >= 0


def test_results_of_one_dispatch_stay_when_there_is_another(device: Any) -> None:
    x, op = copier(device, [2])
    first, second = op({x: [1.0, 2.0]})[0], op({x: [3.0, 4.0]})[0]
    assert (first.tolist(), second.tolist()) == ([1, 2], [3, 4])
    first[:] = 0  # it is the caller's


def test_threads_take_turns(device: Any) -> None:
    """What is computed on the way lies in one memory."""
    graph = directml.Graph(device)
    x = graph.input([1, 64, 64], name="x")
    y = directml.activation_softmax(directml.gemm(x, directml.gemm(x, x)), axes=[2])
    op = graph.compile([directml.cumulative_summation(y, axis=1)])
    arrays = [np.random.default_rng(seed).standard_normal((1, 64, 64), np.float32) for seed in range(4)]
    exact = [op({"x": each})[0] for each in arrays]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            results = pool.map(lambda array: op({"x": array})[0], arrays)
            for result, each in zip(results, exact, strict=True):
                np.testing.assert_array_equal(result, each)


def test_constants_are_handed_over_when_a_graph_is_compiled(device: Any) -> None:
    graph = directml.Graph(device)
    x = graph.input([1, 2])
    w = graph.constant(np.arange(2), np.int32, sizes=[1, 2], name="w")
    assert (w.dtype, w.shape) == (np.int32, (1, 2))
    half = graph.constant([0.5, 0.25], np.float16)
    op = graph.compile([x * directml.cast(w, dtype=np.float32), half])
    assert op.initialized
    results = op({x: [3.0, 4.0]})
    assert [each.tolist() for each in results] == [[[0, 4]], [0.5, 0.25]]
    with pytest.raises(ValueError, match="2 elements, 8 bytes"):
        graph.constant(np.zeros(2, np.float32), sizes=[3])
    with pytest.raises(TypeError, match="no type of a tensor's elements"):
        graph.constant(np.zeros(2, np.complex64))


def test_constants_wait_for_the_other_weights(device: Any) -> None:
    graph = directml.Graph(device)
    x, w = graph.input([1]), graph.input([1], owned=True)
    c = graph.constant(np.float32([10]))
    op = graph.compile([x + w + c])
    assert not op.initialized
    with pytest.raises(ValueError, match="missing input 1"):
        op.initialize()
    op.initialize({w: [1.0]})
    assert op({x: [0.0]})[0].tolist() == [11]
    with pytest.raises(ValueError, match="missing input 2"):
        op.initialize({w: [2.0]})
    op.initialize({w: [2.0], c: [20.0]})
    assert op({x: [0.0]})[0].tolist() == [22]


def test_constants_are_free_again_once_they_are_handed_over(device: Any) -> None:
    graph = directml.Graph(device)
    array = np.ones(8, np.float32)
    freed = weakref.ref(array)
    c = graph.constant(array)
    op = graph.compile([c + 1.0])
    del array
    gc.collect()
    assert freed() is None
    assert op()[0].tolist() == [2] * 8


def test_buffers_are_tensors_of_a_device(device: Any) -> None:
    array = np.arange(6.0).reshape(1, 2, 3)
    buffer = directml.Buffer(device, array, np.float32)
    array[:] = 0
    assert (buffer.shape, buffer.strides, buffer.dtype, buffer.size) == ((1, 2, 3), None, np.float32, 6)
    assert (buffer.nbytes, buffer.device) == (24, device)
    assert buffer.desc.data_type is directml.TensorDataType.FLOAT32
    assert repr(buffer) == "<dml.Buffer float32 [1, 2, 3]>"
    copy = buffer.numpy()
    copy[:] = 0
    assert buffer.numpy().tolist() == [[[0, 1, 2], [3, 4, 5]]]
    assert np.asarray(buffer).dtype == object  # no silent copies
    assert directml.Buffer(device, 1.5).shape == (1,)
    with pytest.raises(TypeError, match=r"Buffer\.device: str"):
        directml.Buffer("cpu", array)


def test_outputs_stay_on_the_device_and_feed_the_next_graph(device: Any) -> None:
    graph = directml.Graph(device)
    x = graph.input([2, 2])
    first = graph.compile([x * 2.0, x + 1.0])
    graph = directml.Graph(device)
    a, b = graph.input([2, 2]), graph.input([2, 2])
    second = graph.compile([directml.multiply(a, b)])
    values = np.arange(4, dtype=np.float32).reshape(2, 2)
    doubled, more = first.dispatch({x: values}, readback=False)
    assert isinstance(doubled, directml.Buffer)
    (result,) = second({a: doubled, b: more})
    np.testing.assert_array_equal(result, values * 2 * (values + 1))
    np.testing.assert_array_equal(doubled.numpy(), values * 2)
    del first, graph
    np.testing.assert_array_equal(more.numpy(), values + 1)


def test_buffers_are_weights_and_constants_too(device: Any) -> None:
    seven = directml.Buffer(device, np.full(2, 7, np.float32))
    _, x, w, op = sums(device)
    op.initialize({w: seven})
    assert op({x: [0.0, 1.0]})[0].tolist() == [7, 8]
    graph = directml.Graph(device)
    op = graph.compile([graph.constant(seven, sizes=[1, 2]) * 2.0])
    assert op()[0].tolist() == [[14, 14]]


def test_buffers_must_fit(device: Any) -> None:
    x, op = copier(device, [2])
    for buffer, problem in (
        (directml.Buffer(device, np.zeros(2, np.float16)), "float16 is bound; Buffers are not converted"),
        (directml.Buffer(device, np.zeros(3, np.float32)), "Buffer: 3 elements"),
        (directml.Buffer(directml.Device(use_gpu=False), np.zeros(2, np.float32)), "a different device"),
    ):
        with pytest.raises(ValueError, match=problem):
            op({x: buffer})


def test_expressions_are_repeated_only_where_it_is_said(device: Any) -> None:
    graph = directml.Graph(device)
    image, bias = graph.input([2, 3, 2, 2]), graph.constant(np.float32([1, 2, 3]), sizes=[1, 3, 1, 1])
    view = directml.broadcast(bias, image.shape)
    assert (view.shape, view.strides) == ((2, 3, 2, 2), (0, 1, 0, 0))
    assert directml.broadcast(image, [2, 3, 2, 2]) is image
    assert directml.broadcast(graph.input([3, 4]), [2, 3, 4]).strides == (0, 4, 1)
    turned = directml.reinterpret(graph.input([1, 2, 3, 4]), [1, 2, 4, 3], [24, 12, 1, 4])
    assert directml.broadcast(turned, [5, 2, 4, 3]).strides == (0, 12, 1, 4)
    graph = directml.Graph(device)
    image, bias = graph.input([2, 3, 2, 2]), graph.constant(np.float32([1, 2, 3]), sizes=[1, 3, 1, 1])
    (result,) = graph.compile([image + directml.broadcast(bias, image.shape)])({image: np.zeros(24)})
    assert result[1, :, 1, 1].tolist() == [1, 2, 3]
    for sizes, problem in (([2, 3, 4, 4], "only axes of 1"), ([3, 2, 2], "fewer axes")):
        with pytest.raises(ValueError, match=f"cannot broadcast .*{problem}"):
            directml.broadcast(image, sizes)


def test_operands_that_differ_are_refused_where_they_meet(device: Any) -> None:
    graph = directml.Graph(device)
    a, b, c = graph.input([2, 2]), graph.input([2, 3]), graph.input([2, 2], np.float16)
    for call in (
        lambda: a + b,
        lambda: a / b,
        lambda: directml.max(a, b),
        lambda: directml.pow(a, b),
        lambda: directml.where(a, a, b),
        lambda: directml.where(b, a, a),
        lambda: directml.less_than(a, b),
    ):
        with pytest.raises(ValueError, match=r"\[2, [23]\].*shapes differ|shapes differ.*\[2, 2\]"):
            call()
    with pytest.raises(ValueError, match=r"float32 .* and float16 .*: element types differ"):
        a * c


def test_expressions_of_several_graphs_do_not_mix(device: Any) -> None:
    graph, other = directml.Graph(device), directml.Graph(device)
    a, b = graph.input([2]), other.input([2])
    with pytest.raises(ValueError, match="expressions of several graphs"):
        a + b
    with pytest.raises(ValueError, match=r"compile\.outputs: an expression of another graph"):
        graph.compile([b])
    with pytest.raises(ValueError, match=r"compile\.outputs: none"):
        graph.compile([])
    with pytest.raises(TypeError, match=r"compile\.outputs: Expression; a list"):
        graph.compile(a)
    with pytest.raises(TypeError, match=r"compile\.flags: int"):
        graph.compile([a], flags=0)
    with pytest.raises(TypeError, match=r"Graph\.device: str"):
        directml.Graph("cpu")


def test_expressions_are_keys_and_compare_as_what_they_are(device: Any) -> None:
    graph = directml.Graph(device)
    a, b = graph.input([2]), graph.input([2])
    assert a == a
    assert a != b
    assert len({a, b, a}) == 2
    assert repr(a) == "<dml.Expression float32 [2]>"


def test_inputs_may_be_outputs_and_inputs_unused_are_bound(device: Any) -> None:
    graph = directml.Graph(device)
    x, unused = graph.input([2]), graph.input([3], np.int64, name="unused")
    op = graph.compile([x, directml.reinterpret(x, [2, 1]), x])
    with pytest.raises(ValueError, match="missing input 1 'unused'"):
        op({x: [1.0, 2.0]})
    results = op({x: [1.0, 2.0], unused: np.zeros(3, np.int64)})
    assert [each.tolist() for each in results] == [[1, 2], [[1], [2]], [1, 2]]


def test_outputs_that_nobody_asks_for_are_left_out(device: Any) -> None:
    graph = directml.Graph(device)
    x = graph.input([1, 4])
    best = directml.top_k(x, axis=1, k=2)
    (left, _), state = directml.split(x, axis=1, output_axis_sizes=[1, 3]), graph.input([6], np.uint32)
    bits = directml.random_generator(state, output_sizes=[2])
    op = graph.compile([best.values * 2.0, left, bits.values])
    results = op({x: [[4.0, 1.0, 3.0, 2.0]], state: np.zeros(6, np.uint32)})
    assert [each.shape for each in results] == [(1, 2), (1, 1), (2,)]
    assert results[0].tolist() == [[8, 6]]
    assert len(op({x: np.zeros(4), state: np.zeros(6, np.uint32)}, readback=False)) == 3


def test_a_policy_lays_out_what_operators_compute(device: Any) -> None:
    image = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4)
    graph = directml.Graph(device, tensor_policy=directml.TensorPolicy.interleaved_channel)
    x = graph.input(image.shape)
    y = x * 2.0
    assert (x.strides, y.strides) == (None, (24, 1, 8, 2))
    flat = directml.reinterpret(y, [24])  # the bytes as they lie
    op = graph.compile([y, flat, directml.reduce(y, function=directml.ReduceFunction.SUM, axes=[1])])
    results = op({x: image})
    np.testing.assert_array_equal(results[0], 2 * image)
    np.testing.assert_array_equal(results[1], 2 * image.transpose(0, 2, 3, 1).ravel())
    np.testing.assert_array_equal(results[2], 2 * image.sum(1, keepdims=True))
    buffer, *_ = op({x: image}, readback=False)
    assert buffer.strides == (24, 1, 8, 2)
    np.testing.assert_array_equal(buffer.numpy(), 2 * image)


def test_graphs_operators_and_devices_say_what_they_are(device: Any) -> None:
    graph = directml.Graph(device)
    graph.input([2])
    graph.constant(np.zeros(2, np.float32))
    assert repr(graph) == "<dml.Graph: 2 inputs>"
    _, op = copier(device, [2])
    assert repr(op).startswith("<dml.CompiledOperator of <CompiledOperator cpu: ")
    assert repr(device) == "dml.Device on CPU"


def test_on_a_gpu_buffers_are_in_its_memory_and_arrays_go_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a device that stands for one, with memory of its own."""
    fake.install(monkeypatch)
    gpu = directml.Device()
    assert repr(gpu) == "dml.Device on GPU"
    graph = directml.Graph(gpu)
    x, y, w = graph.input([2], name="x"), graph.input([2], np.float64), graph.input([2], owned=True)
    c = graph.constant(np.float32([100, 200]))
    halves = x + directml.cast(y, dtype=np.float32)
    op = graph.compile([halves + w + c, directml.reinterpret(halves, [2, 1])])
    op.initialize({w: directml.Buffer(gpu, np.float32([10, 20]))})
    first = op({x: np.float32([1, 2]), y: np.zeros(2)})
    assert [each.tolist() for each in first] == [[111, 222], [[1], [2]]]
    held, _ = op({x: directml.Buffer(gpu, np.float32([1, 2])), y: np.ones(2)}, readback=False)
    assert not isinstance(held._memory, np.ndarray)
    assert held.numpy().tolist() == [112, 223]
    assert op({x: held, y: np.zeros(2)})[0].tolist() == [222, 443]
    op.initialize({w: np.zeros(2), c: np.zeros(2)})
    assert op({x: held, y: np.zeros(2)})[0].tolist() == [112, 223]


def test_a_real_gpu_computes_what_the_cpu_does(device: Any) -> None:
    gpu = directml.Device()
    if repr(gpu) != "dml.Device on GPU":
        pytest.skip("no NVIDIA GPU")
    image, weight = np.random.default_rng(3).random((1, 3, 8, 8)), np.float32([[[[1, 0], [0, 2]]] * 3] * 2)
    results = []
    for each in (device, gpu):
        graph = directml.Graph(each)
        x = graph.input(image.shape)
        y = directml.convolution(x, graph.constant(weight), fused_activation=directml.FusedActivation.relu())
        op = graph.compile([y, directml.reduce(y, function=directml.ReduceFunction.SUM, axes=[2, 3])])
        buffers = op({x: directml.Buffer(each, image, np.float32)}, readback=False)
        results.append([*op({x: image}), *(buffer.numpy() for buffer in buffers)])
    for result, exact in zip(*results, strict=True):
        np.testing.assert_allclose(result, exact, rtol=1e-5)
