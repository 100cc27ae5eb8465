"""Softmax, its logarithm and hardmax against float64, PyTorch and the pages' examples."""

from __future__ import annotations

import math

import numpy as np
import pytest

import opendml as dml
from opendml import FLOAT16, FLOAT32, Device, TensorDataType, TensorDesc, descs
from opendml.compiler.fuse import fuse
from opendml.runtime.memory.host_array import Array
from opendml.spec.descs import desc_class
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.schema import operator
from opendml.targets.cpu.engine import kernel_assembly
from opendml.targets.cpu.pattern import Mode
from tests.running import FLOATS, laid_out, launches, numpy_type, run, same_bits
from tests.tolerances import assert_within
from tools.terms import of_log_softmax, of_softmax

NAMES = ("ACTIVATION_SOFTMAX1", "ACTIVATION_LOG_SOFTMAX1", "ACTIVATION_HARDMAX1")
SPLIT_ROWS = {Mode.ROWS_PARTIAL, Mode.ROWS_COMBINE, Mode.ROWS_MAP}
SPLIT_COLUMNS = {Mode.COLUMNS_PARTIAL, Mode.COLUMNS_COMBINE, Mode.COLUMNS_MAP}
WALKS: list[tuple[list[int], list[int], set[Mode]]] = [
    ([3, 1], [1], {Mode.POINTWISE}),
    ([100, 3], [1], {Mode.ROWS}),
    ([40, 1000], [1], {Mode.ROWS}),
    ([2, 70, 7, 9], [0, 2, 3], {Mode.ROWS}),
    ([3, 70001], [1], SPLIT_ROWS),
    ([9, 50], [0], {Mode.COLUMNS}),
    ([4, 9, 50], [1], {Mode.COLUMNS}),
    ([5001, 37], [0], SPLIT_COLUMNS),
]
every_walk = pytest.mark.parametrize(("sizes", "axes", "modes"), WALKS, ids=[f"{s}-{a}" for s, a, _ in WALKS])


@pytest.mark.parametrize(("name", "asks"), [("ACTIVATION_SOFTMAX1", True), ("ACTIVATION_HARDMAX1", False)])
def test_the_next_rows_are_asked_for_while_exponentials_are_computed(name: str, asks: bool) -> None:
    (launch,) = launches(desc_of(name, FLOAT32, [40, 1024], [1]))
    assert ("llvm.prefetch" in kernel_assembly(launch.pattern)) == asks


def desc_of(name: str, data_type: TensorDataType, sizes: list[int], axes: list[int]) -> OperatorDesc:
    tensor = TensorDesc(data_type, sizes)
    return desc_class(name)(tensor, tensor, axes=axes)


def expected(name: str, x: Array, axes: list[int]) -> Array:
    """In float64."""
    dims, wide = tuple(axes), x.astype(np.float64)
    with np.errstate(all="ignore"):
        shifted = wide - wide.max(dims, keepdims=True)
        total = np.exp(shifted).sum(dims, keepdims=True)
        if name == "ACTIVATION_SOFTMAX1":
            return np.asarray(np.exp(shifted) / total)
        if name == "ACTIVATION_LOG_SOFTMAX1":
            return np.asarray(shifted - np.log(total))
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    order = (*kept, *sorted(axes))
    rows = wide.transpose(order).reshape(*(x.shape[axis] for axis in kept), -1)
    result = np.zeros_like(rows)
    np.put_along_axis(result, rows.argmax(-1)[..., None], 1.0, -1)
    return result.reshape([x.shape[axis] for axis in order]).transpose(np.argsort(order))


def assert_close(name: str, result: Array, x: Array, axes: list[int]) -> None:
    wanted = expected(name, x, axes)
    if name == "ACTIVATION_HARDMAX1":
        np.testing.assert_array_equal(result, wanted)
    elif name == "ACTIVATION_LOG_SOFTMAX1":
        assert_within(name, result, wanted, of_log_softmax(x, axes))
    else:
        assert_within(name, result, wanted, of_softmax(x, axes, wanted))


@every_walk
@pytest.mark.parametrize("name", NAMES)
def test_every_walk_is_exact(
    name: str, sizes: list[int], axes: list[int], modes: set[Mode], device: Device
) -> None:
    for data_type in FLOATS:
        desc = desc_of(name, data_type, sizes, axes)
        if data_type is FLOAT32:
            assert {launch.pattern.mode for launch in launches(desc)} == modes
        x = (np.random.default_rng(1).standard_normal(sizes) * 5).astype(numpy_type(desc.input_tensor))
        assert_close(name, run(desc, [x], device), x, axes)
        assert_close(name, run(desc, [x], "reference"), x, axes)


@every_walk
def test_thread_counts_change_no_bit(sizes: list[int], axes: list[int], modes: set[Mode]) -> None:
    x = np.random.default_rng(2).standard_normal(sizes, np.float32)
    desc = desc_of("ACTIVATION_SOFTMAX1", FLOAT32, sizes, axes)
    results = [run(desc, [x], Device("cpu", threads=threads)) for threads in (1, 2, 3)]
    assert all(same_bits(result, results[0]) for result in results[1:])


@pytest.mark.parametrize("size", [1, 2, 15, 16, 17, 33, 65, 255, 256, 300])
@pytest.mark.parametrize("name", NAMES)
def test_sizes_around_vectors(name: str, size: int, device: Device) -> None:
    for sizes, axes in (([3, size], [1]), ([size, 3], [0])):
        x = np.random.default_rng(size).standard_normal(sizes, np.float32)
        assert_close(name, run(desc_of(name, FLOAT32, sizes, axes), [x], device), x, axes)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("axes", [[0], [2], [0, 1], [0, 2]], ids=str)
def test_strides_change_nothing(name: str, axes: list[int], device: Device) -> None:
    sizes = [6, 7, 40]
    x = np.random.default_rng(4).standard_normal(sizes, np.float32)
    permuted, padded = TensorDesc(FLOAT32, sizes, [1, 6, 42]), TensorDesc(FLOAT32, sizes, [301, 43, 1])
    desc = desc_of(name, FLOAT32, sizes, axes)
    strided = desc.replace(input_tensor=permuted, output_tensor=padded)
    assert_close(name, run(strided, [laid_out(x, permuted)], device), x, axes)


@pytest.mark.parametrize("name", ["ACTIVATION_SOFTMAX", "ACTIVATION_LOG_SOFTMAX", "ACTIVATION_HARDMAX"])
def test_the_older_form_is_the_newer_one_over_the_last_dimension(name: str, device: Device) -> None:
    x = np.random.default_rng(6).standard_normal((1, 1, 5, 33), np.float32)
    older, newer = (getattr(dml, f"{name.lower()}{suffix}") for suffix in ("", "1"))
    assert same_bits(older(x, device=device), newer(x, axes=[3], device=device))


def test_large_elements_do_not_overflow(device: Device) -> None:
    x = np.array([[1e4, 1e4, -1e4], [3e38, -3e38, 0.0]], np.float32)
    assert dml.activation_softmax1(x, axes=[1], device=device).tolist() == [[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]]
    half = np.full((1, 3000), 60000.0, np.float16)
    assert_close("ACTIVATION_SOFTMAX1", dml.activation_softmax1(half, axes=[1], device=device), half, [1])


@pytest.mark.parametrize("special", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("device_kind", ["cpu", "reference"])
def test_what_is_not_finite_is_treated_as_in_pytorch(special: float, device_kind: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x = np.array([[1.0, special, 2.0, 3.0], [0.0, 1.0, 2.0, 3.0], [special] * 4], np.float32)
    wide = torch.from_numpy(x).double()
    wanted = torch.nn.functional.softmax(wide, dim=1).numpy()
    result = dml.activation_softmax1(x, axes=[1], device=device_kind)
    assert_within("ACTIVATION_SOFTMAX1", result, wanted, of_softmax(x, [1], wanted))
    wanted = torch.nn.functional.log_softmax(wide, dim=1).numpy()
    result = dml.activation_log_softmax1(x, axes=[1], device=device_kind)
    assert_within("ACTIVATION_LOG_SOFTMAX1", result, wanted, of_log_softmax(x, [1]))


def test_hardmax_takes_the_first_greatest_element_and_not_a_number_before_all(device: Device) -> None:
    x = np.array([[1, 3, 3, 2], [math.nan, 9, 9, math.nan], [-math.inf] * 4], np.float32)
    result = dml.activation_hardmax1(x, axes=[1], device=device)
    assert result.tolist() == [[0, 1, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]]


def test_worked_examples_of_the_pages(device: Device) -> None:
    for example in operator("ACTIVATION_HARDMAX1").examples:
        x = np.array(example["inputs"]["InputTensor"], np.float32)
        result = dml.activation_hardmax1(x, axes=example["attributes"]["Axes"], device=device)
        np.testing.assert_array_equal(result, example["outputs"]["OutputTensor"])


def test_softmax_of_a_normalization_is_one_kernel() -> None:
    x = np.random.default_rng(7).standard_normal((30, 64), np.float32)
    graph = dml.Graph()
    tensor = graph.input("x", FLOAT32, x.shape)
    normalized = dml.mean_variance_normalization1(tensor, axes=[1])
    model = graph.compile({"y": dml.activation_softmax1(normalized, axes=[1])})
    assert len(fuse(model._program).kernels) == 1
    separate = dml.activation_softmax1(dml.mean_variance_normalization1(x, axes=[1]), axes=[1])
    np.testing.assert_allclose(model(x=x)["y"], separate, rtol=2e-6)


def test_float16_is_rounded_once(device: Device) -> None:
    x = np.random.default_rng(9).standard_normal((50, 40)).astype(np.float16)
    tensor = TensorDesc(FLOAT16, x.shape)
    result = run(descs.ActivationSoftmax1(tensor, tensor, axes=[1]), [x], device)
    assert_close("ACTIVATION_SOFTMAX1", result, x, [1])
