"""Tensors of graphs that are bfloat16 in memory, compared with ml_dtypes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import opendml as dml
from opendml import Device
from opendml.program.carriers import carried, rounded_to_bfloat16
from opendml.program.functions import select
from opendml.program.node import Operation, apply, bitcast, convert, source
from opendml.program.program import Program, packed
from opendml.program.scalar_type import ScalarType
from opendml.runtime.memory.host_array import Array

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
F32 = ScalarType.FLOAT32


def random(*sizes: int, seed: int = 0) -> Array:
    """Return normal numbers of bfloat16."""
    return np.random.default_rng(seed).standard_normal(sizes).astype(BFLOAT16)


def bits(array: Array) -> Array:
    """Return the bits of an array of bfloat16."""
    assert array.dtype == BFLOAT16
    return np.ascontiguousarray(array).view(np.uint16)


def test_every_float32_is_rounded_to_the_nearest_bfloat16(any_device: Device) -> None:
    upper = np.arange(1 << 16, dtype=np.uint32) << 16
    lower = np.array([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32)
    numbers = (upper[:, None] + lower).view(np.float32)
    graph = dml.Graph()
    x = graph.input("x", dml.FLOAT32, numbers.shape)
    rounded = graph.compile({"y": x.rounded()}, any_device)(x=numbers)["y"]
    is_number = ~np.isnan(numbers)
    expected = bits(np.where(is_number, numbers, 0).astype(BFLOAT16))
    np.testing.assert_array_equal(bits(rounded)[is_number], expected[is_number])
    assert np.isnan(rounded[~is_number].astype(np.float32)).all()


def test_only_rounding_to_the_nearest_is_seen_as_rounding() -> None:
    value = source(0, F32, (3,))
    upper = apply(Operation.SHIFT_RIGHT, bitcast(value, ScalarType.UINT32), 16)
    quiet = apply(Operation.OR, upper, 64)
    truncated = convert(select(apply(Operation.EQUAL, value, value), upper, quiet), ScalarType.UINT16)
    assert rounded_to_bfloat16(truncated) is None
    rounded = convert(value, ScalarType.BFLOAT16)
    layouts = packed(F32, (3,)), packed(ScalarType.BFLOAT16, (3,))
    (bits,) = carried(Program(layouts[:1], layouts[1:], (rounded,))).results
    assert rounded_to_bfloat16(bits) is not None


def test_bits_of_another_type_are_not_taken_for_bfloat16() -> None:
    """FLOAT16, whose bits are the upper halves of FLOAT32, is rounded as any other value."""
    bits = convert(bitcast(source(0, ScalarType.FLOAT16, (3,)), ScalarType.UINT16), ScalarType.UINT32)
    whole = bitcast(apply(Operation.SHIFT_LEFT, bits, 16), F32)
    layouts = packed(ScalarType.FLOAT16, (3,)), packed(ScalarType.BFLOAT16, (3,))
    (result,) = carried(Program(layouts[:1], layouts[1:], (convert(whole, ScalarType.BFLOAT16),))).results
    assert result.type is ScalarType.UINT16
    assert rounded_to_bfloat16(result) is not None


def test_operators_compute_in_float32_and_round_once(any_device: Device) -> None:
    a, w, bias = random(1, 1, 9, 70), random(1, 1, 70, 33, seed=1), random(1, 1, 1, 33, seed=2)
    graph = dml.Graph()
    x = graph.input("x", "bfloat16", a.shape)
    product = dml.gemm(x, graph.constant(w)).rounded()
    result = dml.element_wise_add(product, graph.constant(bias)).rounded()
    found = graph.compile({"product": product, "sum": result}, any_device)(x=a)
    exact = a[0, 0].astype(np.float64) @ w[0, 0].astype(np.float64)
    near = np.abs(exact.astype(np.float32)) * 2.0**-8 + 1e-5
    assert (np.abs(found["product"][0, 0].astype(np.float64) - exact) <= near).all()
    once = (found["product"].astype(np.float32) + bias.astype(np.float32)).astype(BFLOAT16)
    np.testing.assert_array_equal(bits(found["sum"]), bits(once))


def test_moved_elements_keep_their_bits_and_arrays_may_have_any_strides(any_device: Device) -> None:
    a = random(4, 6, 5)
    graph = dml.Graph()
    x = graph.input("x", BFLOAT16, a.shape)
    outputs = {
        "same": x,
        "permuted": x.permute(2, 0, 1).rounded(),
        "part": x[1:3, ::2].rounded(),
        "joined": dml.join([x, x], axis=1).rounded(),
        "wide": dml.cast(x, output_type=dml.FLOAT32),
    }
    found = graph.compile(outputs, any_device)(x=np.asfortranarray(a))
    np.testing.assert_array_equal(bits(found["same"]), bits(a))
    np.testing.assert_array_equal(bits(found["permuted"]), bits(a.transpose(2, 0, 1)))
    np.testing.assert_array_equal(bits(found["part"]), bits(a[1:3, ::2]))
    np.testing.assert_array_equal(bits(found["joined"]), bits(np.concatenate([a, a], axis=1)))
    np.testing.assert_array_equal(found["wide"], a.astype(np.float32))
    assert found["wide"].dtype == np.float32


@pytest.mark.parametrize("padding", [0, 1])
def test_what_only_moves_elements_is_not_rounded_again(padding: int) -> None:
    """As in models of PyTorch, which round behind each operator: a padded image is read where it lies."""
    graph = dml.Graph()
    x = graph.input("x", "bfloat16", (2, 6, 9, 9))
    margin = [0, 0, padding, padding]
    moved = dml.padding(x.rounded(), start_padding=margin, end_padding=margin).rounded()
    model = graph.compile({"y": dml.average_pooling(moved, window_size=[3, 3], include_padding=True)})
    given = random(2, 6, 9, 9)
    assert len(model.explain(x=given).kernels) == 1
    padded = np.pad(given.astype(np.float32), [(0, 0), (0, 0), (padding, padding), (padding, padding)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    np.testing.assert_allclose(model(x=given)["y"], windows.mean((4, 5)), rtol=1e-5, atol=1e-6)


def test_a_saved_model_keeps_its_types(tmp_path: Path) -> None:
    a, w = random(3, 8), random(3, 8, seed=1)
    graph = dml.Graph()
    x = graph.input("x", "bfloat16", a.shape)
    model = graph.compile({"y": dml.activation_gelu(x * graph.constant(w)).rounded()})
    model.save(tmp_path / "model.dml")
    loaded = dml.load(tmp_path / "model.dml")
    assert isinstance(loaded, dml.Model)
    np.testing.assert_array_equal(bits(loaded(x=a)["y"]), bits(model(x=a)["y"]))
    assert "x BFLOAT16 [3, 8]" in repr(loaded)


def test_values_between_kernels_take_two_bytes() -> None:
    def temporary_bytes(is_rounded: bool) -> int:
        graph = dml.Graph()
        x = graph.input("x", "bfloat16", [1, 1, 64, 512])
        first = dml.activation_gelu(dml.gemm(x, graph.constant(random(1, 1, 512, 2048))))
        second = graph.constant(random(1, 1, 2048, 64))
        last = dml.gemm(first.rounded() if is_rounded else first, second)
        return graph.compile({"y": last}).temporary_bytes

    assert temporary_bytes(True) <= temporary_bytes(False) - 64 * 2048 * 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda graph, x: dml.activation_relu(random(3)), "DirectML has float32"),
        (lambda graph, x: dml.cast(x, output_type="bfloat16"), "bfloat16"),
        (lambda graph, x: dml.cast(x, output_type=dml.FLOAT16).rounded(), "a tensor of FLOAT32 is needed"),
        (
            lambda graph, x: graph.compile({"y": x})(x=np.zeros(3, np.float32)),
            r"BFLOAT16 is needed; use x\.astype\('bfloat16'\)",
        ),
        (
            lambda graph, x: graph.compile({"y": x})(x=random(3).view(BFLOAT16.newbyteorder())),
            "in the processor's byte order",
        ),
        (lambda graph, x: graph.compile({"y": x})(x=random(4)), r"sizes \[4\]; \[3\] are needed"),
    ],
)
def test_where_directml_decides_bfloat16_is_refused(call: Any, message: str) -> None:
    graph = dml.Graph()
    x = graph.input("x", "bfloat16", [3])
    with pytest.raises(dml.InvalidArgument, match=message):
        call(graph, x)


def test_arrays_of_pytorch_may_be_bfloat16() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    graph = dml.Graph()
    x = graph.input("x", "bfloat16", [3, 4])
    model = graph.compile({"y": dml.element_wise_add(x, x).rounded()})
    given = torch.linspace(-2, 2, 12).reshape(4, 3).to(torch.bfloat16).T
    found = model(given)["y"]
    assert found.dtype is torch.bfloat16
    assert torch.equal(found, given + given)
    out = torch.zeros(3, 4, dtype=torch.bfloat16)
    model.run({"x": given}, {"y": out})
    assert torch.equal(out, found)
    with pytest.raises(dml.InvalidArgument, match="x: a Tensor that requires a gradient"):
        model(given.clone().requires_grad_())
