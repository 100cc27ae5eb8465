"""Constants of graphs and OWNED_BY_DML tensors are prepared once."""

from __future__ import annotations

import ctypes
import gc
import mmap
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml import FLOAT32, Device, Graph, Model, TensorDesc, TensorFlags, descs
from opendml.runtime.memory import mapped
from opendml.runtime.memory.host_array import Array
from opendml.targets.cpu.executable import CpuExecutable
from opendml.targets.memory import address_of
from tests.processes import has_fork, succeeds_in_child
from tests.running import same_bits
from tests.runtime.object_model import compiled, initialized
from tests.runtime.test_recorder import recorded, table_for

SIZES = [1, 6, 10, 10]
ROW = [1, 6, 1, 1]


def values(seed: int, sizes: list[int]) -> Array:
    return np.abs(np.random.default_rng(seed).standard_normal(sizes, np.float32)) + np.float32(0.1)


def normalized(x: Any, mean: Any, variance: Any, scale: Any, bias: Any) -> Any:
    return dml.batch_normalization(x, mean, variance, scale, bias, spatial=True, epsilon=1e-3)


def convolved(x: Any, weights: Any, scale: Any) -> Any:
    """With weights that are scaled first."""
    return dml.convolution(x, dml.element_wise_multiply(weights, scale), start_padding=[1, 1])


def multiplied(x: Any, weights: Any) -> Any:
    return dml.gemm(x, weights, trans_b=dml.MatrixTransform.TRANSPOSE)


def weighted(x: Any, weights: Any) -> Any:
    """A sum over a constant and a function of it, which is a result as well."""
    return dml.element_wise_multiply(x, dml.activation_softmax1(weights, axes=[1, 3]))


CASES: dict[str, tuple[Callable[..., Any], list[list[int]]]] = {
    "batch normalization": (normalized, [SIZES, ROW, ROW, ROW, ROW]),
    "convolution": (convolved, [SIZES, [48, 6, 3, 3], [48, 1, 1, 1]]),
    "deep convolution": (dml.convolution, [[1, 64, 14, 14], [64, 64, 3, 3]]),
    "product": (multiplied, [[1, 1, 64, 256], [1, 1, 192, 256]]),
    "few rows": (dml.gemm, [[1, 1, 5, 512], [1, 1, 512, 1100]]),
    "softmax": (weighted, [SIZES, SIZES]),
}


def models(name: str, device: Device) -> tuple[Model, Model, list[Array]]:
    """A function of inputs of which all but the first are constants in one model, none in the other."""
    function, sizes = CASES[name]
    arrays = [values(seed, each) for seed, each in enumerate(sizes)]

    def model(constant: bool) -> Model:
        graph = Graph()
        tensors = [
            graph.constant(array) if constant and number else graph.input(f"x{number}", FLOAT32, array.shape)
            for number, array in enumerate(arrays)
        ]
        return graph.compile({"y": function(*tensors)}, device)

    return model(True), model(False), arrays


@pytest.mark.parametrize("name", CASES)
def test_preparing_changes_no_bit(name: str, any_device: Device) -> None:
    constant, variable, arrays = models(name, any_device)
    expected = variable(**{f"x{number}": array for number, array in enumerate(arrays)})["y"]
    for _ in range(2):
        assert same_bits(constant(x0=arrays[0])["y"], expected)
    assert constant.persistent_bytes > 0
    assert variable.persistent_bytes == 0


def launches(model: Model) -> tuple[int, int]:
    """Of a dispatch, and of the initialization."""
    executable = model._work.executable
    assert isinstance(executable, CpuExecutable)
    return int(executable._job.words[0]), sum(int(step.job.words[0]) for step in executable._steps)


@pytest.mark.parametrize(
    ("name", "once"),
    [("batch normalization", 1), ("convolution", 2), ("deep convolution", 1), ("product", 1), ("softmax", 1)],
)
def test_what_depends_on_constants_alone_is_no_launch_of_a_dispatch(name: str, once: int) -> None:
    """In batch normalization the divisor, in convolutions and products the packed weights, before these their
    product with a scale."""
    constant, variable, _ = models(name, Device("cpu"))
    assert launches(constant) == (1, once)
    assert launches(variable)[1] == 0


def test_weights_that_are_packed_once_are_not_kept_as_they_are() -> None:
    constant, _, (_, weights) = models("deep convolution", Device("cpu"))
    for each in constant._prepared.kept:
        assert weights.tobytes() not in ctypes.string_at(each.memory.address, each.size)
    # In pieces they take half as much again, and parts say how they are; in panels each column begins with a
    # whole vector (with AVX2 four rows of eight lanes), and parts are as long as the longest.
    assert weights.nbytes <= constant.persistent_bytes < 3 * weights.nbytes


@pytest.mark.parametrize("name", ["batch normalization", "deep convolution"])
def test_models_read_constants_when_they_are_compiled_only(name: str, any_device: Device) -> None:
    function, sizes = CASES[name]
    arrays = [values(seed, each) for seed, each in enumerate(sizes)]
    expected = models(name, any_device)[0](x0=arrays[0])["y"]
    graph = Graph()
    x = graph.input("x", FLOAT32, sizes[0])
    model = graph.compile({"y": function(x, *map(graph.constant, arrays[1:]))}, any_device)
    for array in arrays[1:]:
        array.fill(np.nan)
    assert same_bits(model(x=arrays[0])["y"], expected)


def test_a_bound_model_outlives_its_model(any_device: Device) -> None:
    model, _, arrays = models("convolution", any_device)
    expected = model(x0=arrays[0])["y"]
    y = np.empty_like(expected)
    dispatch = model.bind({"x0": arrays[0]}, {"y": y}).dispatch
    del model
    gc.collect()
    dispatch()
    assert same_bits(y, expected)


def test_an_output_may_lie_on_a_constant(any_device: Device) -> None:
    weights = values(0, SIZES)
    graph = Graph()
    y = dml.element_wise_add(graph.input("x", FLOAT32, SIZES), graph.constant(weights))
    model = graph.compile({"y": y}, any_device)
    x, first = values(1, SIZES), weights.copy()
    for _ in range(2):
        model.run({"x": x}, {"y": weights})
        assert same_bits(weights, x + first)


def test_a_model_of_constants_alone_has_results(any_device: Device) -> None:
    graph = Graph()
    x = values(0, SIZES)
    tensor = graph.constant(x)
    model = graph.compile({"y": dml.element_wise_add(tensor, tensor), "z": tensor}, any_device)
    for _ in range(2):
        results = model()
        assert same_bits(results["y"], x + x)
        assert same_bits(results["z"], x)
        results["y"].fill(0)


def test_constants_of_any_layout_are_kept_as_they_lie(any_device: Device) -> None:
    """Reversed, apart and repeated elements take no more memory than they span."""
    x = values(0, SIZES)
    whole = values(1, [1, 6, 10, 20])
    arrays = [whole[:, ::-1, :, ::-2], np.broadcast_to(values(2, ROW), SIZES), whole[:, :, ::-1, :10]]
    graph = Graph()
    y = graph.input("x", FLOAT32, SIZES)
    for array in arrays:
        y = dml.element_wise_add(y, graph.constant(array))
    model = graph.compile({"y": y}, any_device)
    assert same_bits(model(x=x)["y"], x + arrays[0] + arrays[1] + arrays[2])
    assert model.persistent_bytes <= 2 * whole.nbytes + 4 * 256


def owned(sizes: list[int]) -> TensorDesc:
    return TensorDesc(FLOAT32, sizes, flags=TensorFlags.OWNED_BY_DML)


OPERATORS: dict[str, tuple[Callable[[Callable[[list[int]], TensorDesc]], Any], list[list[int]]]] = {
    "GEMM": (
        lambda weights: descs.Gemm(
            TensorDesc(FLOAT32, [1, 1, 64, 256]),
            weights([1, 1, 256, 192]),
            weights([1, 1, 64, 192]),
            TensorDesc(FLOAT32, [1, 1, 64, 192]),
            alpha=0.5,
        ),
        [[1, 1, 64, 256], [1, 1, 256, 192], [1, 1, 64, 192], [1, 1, 64, 192]],
    ),
    "CONVOLUTION": (
        lambda weights: descs.Convolution(
            TensorDesc(FLOAT32, [1, 64, 14, 14]),
            weights([64, 64, 3, 3]),
            weights([1, 64, 1, 1]),
            TensorDesc(FLOAT32, [1, 64, 12, 12]),
            strides=[1, 1],
            dilations=[1, 1],
            start_padding=[0, 0],
            end_padding=[0, 0],
            output_padding=[0, 0],
        ),
        [[1, 64, 14, 14], [64, 64, 3, 3], [1, 64, 1, 1], [1, 64, 12, 12]],
    ),
}


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("recording", [True, False])
def test_owned_weights_are_prepared_at_initialization(name: str, recording: bool, any_device: Device) -> None:
    make, sizes = OPERATORS[name]
    arrays = [values(seed, each) for seed, each in enumerate(sizes)]
    x, weights, bias, y = arrays
    plain = compiled(any_device, make(lambda each: TensorDesc(FLOAT32, each)))
    plain.bind([x, weights, bias], [y]).dispatch()
    expected = y.copy()
    y.fill(0)
    operator = compiled(any_device, make(owned))
    assert operator.binding_properties.persistent_resource_size > 0
    assert plain.binding_properties.persistent_resource_size == 0
    if recording:
        persistent = initialized(any_device, operator, [None, weights, bias])
        given, result = any_device.upload(x), any_device.upload(y)
        table = table_for(operator, [given, None, None], [result], persistent)
        needed = operator.binding_properties.temporary_resource_size
        table.bind_temporary_resource(any_device.create_buffer(needed) if needed else None)
        weights.fill(np.nan)
        any_device.execute(recorded((operator, table)))
        y = any_device.download(result).view(np.float32).reshape(y.shape)
    else:
        bound = operator.bind([x, weights, bias], [y])
        weights.fill(np.nan)
        del operator
        bound.dispatch()
    assert same_bits(y, expected)


def test_one_initialization_serves_several_persistent_resources() -> None:
    """Two bound objects of one operator have weights of their own."""
    make, sizes = OPERATORS["GEMM"]
    operator = compiled(Device("cpu"), make(owned))
    results = []
    for seed in (1, 2):
        x, weights, bias, y = (values(number, each) for number, each in enumerate(sizes))
        weights *= np.float32(seed)
        bias *= np.float32(seed)
        results.append((operator.bind([x, weights, bias], [y]), y))
    for bound, _ in results:
        bound.dispatch()
    assert same_bits(results[1][1], 2 * results[0][1])


def test_debug_devices_show_operators_on_constants(any_device: Device) -> None:
    shown: list[dml.Intermediate] = []
    device = Device(any_device.kind, debug=shown.append)
    x, scale, weights = values(0, SIZES), values(2, [48, 1, 1, 1]), values(1, [48, 6, 3, 3])
    graph = Graph()
    tensors = graph.input("x", FLOAT32, SIZES), graph.constant(weights), graph.constant(scale)
    model = graph.compile({"y": convolved(*tensors)}, device)
    assert shown == []
    for _ in range(2):
        shown.clear()
        y = model(x=x)["y"]
        assert [each.operator for each in shown] == ["ELEMENT_WISE_MULTIPLY", "CONVOLUTION"]
        assert same_bits(shown[0].values, weights * scale)
        assert same_bits(shown[1].values, y)


@has_fork
def test_threads_and_forks_share_what_was_prepared() -> None:
    model, _, arrays = models("convolution", Device("cpu"))
    expected = model(x0=arrays[0])["y"]
    wrong: list[int] = []

    def work(number: int) -> None:
        y = np.empty_like(expected)
        bound = model.bind({"x0": arrays[0]}, {"y": y})
        for _ in range(20):
            y.fill(0)
            bound.dispatch()
            if not same_bits(y, expected) or not same_bits(model(x0=arrays[0])["y"], expected):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert succeeds_in_child(lambda: same_bits(model(x0=arrays[0])["y"], expected))


MANY = """
import gc
import numpy as np, opendml as dml
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
weights = np.ones((1, 1, 512, 512), np.float32)
x = np.ones((1, 1, 256, 512), np.float32)
def use():
    graph = dml.Graph()
    y = dml.gemm(graph.input("x", dml.FLOAT32, x.shape), graph.constant(weights))
    model = graph.compile({"y": y})
    assert model(x=x)["y"][0, 0, 0, 0] == 512
for _ in range(5):
    use()
gc.collect()
before = resident()
for _ in range(100):
    use()
gc.collect()
print(resident() - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_prepared_constants_end_with_their_models() -> None:
    """A hundred models of a megabyte of weights."""
    done = subprocess.run([sys.executable, "-c", MANY], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 20 * 2**20


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_a_strided_constant_that_nothing_reads_needs_no_memory(device: str) -> None:
    x, constant = np.ones((2, 2), np.float32), np.ones((4, 2), np.float32)[::2]
    graph = dml.Graph()
    tensor = graph.input("x", dml.FLOAT32, [2, 2])
    _ = tensor + constant
    np.testing.assert_array_equal(graph.compile({"y": tensor * 2.0}, device)(x=x)["y"], 2 * x)


def test_a_mapped_constant_is_copied_in_pieces_that_are_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").write_bytes(bytes(range(256)) * 64)
    released: list[int] = []
    monkeypatch.setattr(mapped, "_PIECE_BYTES", 4096)
    monkeypatch.setattr(mapped, "release", lambda array: released.append(array.nbytes))
    with (tmp_path / "data").open("rb") as file:
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    array = np.frombuffer(content, np.uint8, 16000, 3).view(np.float32)
    copy = np.empty_like(array)
    mapped.copy_released(address_of(copy), address_of(array), array.nbytes, array)
    assert copy.tobytes() == array.tobytes()
    assert released == [16000] * 4
