"""Operators that ONNX Runtime adds."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
import onnx

import opendml as dml
from opendml import onnx as dml_onnx
from opendml.frontends.onnx import attributes, registry, wide
from opendml.frontends.onnx.operators import elementwise
from opendml.frontends.onnx.registry import CONVERTERS
from tests.onnx.models import (
    Array,
    assert_as_onnxruntime,
    assert_same,
    computed,
    evaluated,
    feed,
    one_node,
    run_by_onnxruntime,
)

_DOMAIN = "com.microsoft"


def _array(*sizes: int, seed: int = 0, factor: float = 1.0) -> Array:
    return np.asarray(factor * np.random.default_rng([seed, *sizes]).standard_normal(sizes), np.float32)


def _bytes(*sizes: int, type: Any = np.uint8, seed: int = 0) -> Array:
    limits = np.iinfo(type)
    random = np.random.default_rng([seed, *sizes])
    return random.integers(limits.min, limits.max + 1, sizes).astype(type)


def _check(
    operator: str, inputs: list[Array | None], *, atol: float = 2e-5, outputs: int = 1, **options: Any
) -> None:
    model = one_node(operator, inputs, outputs, opset=21, domain=_DOMAIN, **options)
    given = feed(inputs, options.get("known", ()))
    assert_as_onnxruntime(model, given, atol=atol)


@pytest.mark.parametrize(
    ("operator", "sizes"),
    [
        ("Gelu", ()),
        ("Gelu", (2, 3, 8)),
        ("FastGelu", (3,)),
        ("FastGelu", (2, 3, 8)),
        ("QuickGelu", (2, 3, 8)),
    ],
)
def test_gelu(operator: str, sizes: tuple[int, ...]) -> None:
    _check(operator, [_array(*sizes, factor=4.0)])


def test_gelu_with_bias_and_scale() -> None:
    x, bias = _array(2, 3, 8, factor=3.0), _array(8, seed=1)
    _check("BiasGelu", [x, bias])
    _check("FastGelu", [x, bias])
    _check("QuickGelu", [x], alpha=1.0)


def test_bias_add_and_halves_are_what_they_say() -> None:
    x, bias, skip = _array(2, 3, 8), _array(8, seed=1), _array(2, 3, 8, seed=2)
    model = one_node("BiasAdd", [x, bias, skip], domain=_DOMAIN)
    assert_same(computed(model, feed([x, bias, skip])), [x + bias + skip])
    model = one_node("BiasSplitGelu", [x, bias], domain=_DOMAIN)
    gate = one_node("Gelu", [(x + bias)[..., 4:]], opset=21, domain=_DOMAIN)
    (gelu,) = run_by_onnxruntime(gate, feed([(x + bias)[..., 4:]]))
    assert_same(computed(model, feed([x, bias])), [(x + bias)[..., :4] * gelu])


@pytest.mark.parametrize(
    ("a", "b", "attributes"),
    [
        ([2, 3], [3, 4], {}),
        ([3], [3, 4], {"transA": 1}),
        ([2, 3], [3], {"transB": 1}),
        ([5, 3, 2], [5, 4, 3], {"transA": 1, "transB": 1, "alpha": 0.5}),
        ([5, 2, 3], [3, 4], {}),
        ([6, 1, 2, 3], [5, 4, 3], {"transB": 1}),
        ([2, 5, 3], [3, 5, 4], {"transBatchA": 1, "transBatchB": 1}),
        ([3, 5, 2], [4, 5, 3], {"transA": 1, "transB": 1, "transBatchA": 1, "transBatchB": 1}),
        ([2, 6, 5, 3], [3, 6, 5, 4], {"transBatchA": 1, "transBatchB": 1}),
    ],
)
def test_fused_matmul_transposes(a: list[int], b: list[int], attributes: dict[str, Any]) -> None:
    _check("FusedMatMul", [_array(*a), _array(*b, seed=1)], **attributes)


def test_fused_matmul_activation_is_a_product_and_an_activation() -> None:
    inputs = [_array(2, 3), _array(3, 4, seed=1)]
    attributes = {"alpha": 2.0, "activation": "LeakyRelu", "activation_alpha": 0.25}
    model = one_node("FusedMatMulActivation", inputs, domain=_DOMAIN, **attributes)
    product = 2 * inputs[0] @ inputs[1]
    assert_same(computed(model, feed(inputs)), [np.where(product > 0, product, product / 4)])


@pytest.mark.parametrize(
    "attributes",
    [
        {"activation": "Relu"},
        {"activation": "Sigmoid", "transB": 1},
        {"activation": "Tanh", "alpha": 0.5, "beta": 2.0},
        {"activation": "LeakyRelu", "activation_alpha": 0.25},
        {"activation": "Elu", "activation_alpha": 0.5},
        {"activation": "HardSigmoid", "activation_alpha": 0.25, "activation_beta": 0.75},
        {"activation": "Softplus"},
        {"activation": "Softsign"},
        {"activation": "ThresholdedRelu", "activation_alpha": 0.5},
    ],
)
def test_fused_gemm_activates(attributes: dict[str, Any]) -> None:
    b = _array(4, 3, seed=1) if attributes.get("transB") else _array(3, 4, seed=1)
    _check("FusedGemm", [_array(2, 3), b, _array(4, seed=2)], **attributes)


@pytest.mark.parametrize(
    "attributes",
    [
        {"activation": "Relu"},
        {"activation": "Sigmoid", "pads": [1, 1, 1, 1]},
        {"activation": "LeakyRelu", "activation_params": [0.25]},
        {"activation": "Clip", "activation_params": [-0.5, 1.0], "strides": [2, 2]},
        {"activation": "HardSigmoid", "activation_params": [0.25, 0.75]},
        {"activation": "Tanh", "auto_pad": "SAME_UPPER"},
    ],
)
def test_fused_conv_activates(attributes: dict[str, Any]) -> None:
    _check("FusedConv", [_array(2, 3, 6, 7), _array(4, 3, 3, 3, seed=1), _array(4, seed=2)], **attributes)


def test_fused_conv_adds_before_it_activates() -> None:
    inputs: list[Array | None] = [_array(1, 2, 5, 5), _array(3, 2, 3, 3, seed=1), _array(3, seed=2)]
    _check("FusedConv", [*inputs, _array(1, 3, 3, 3, seed=3)], activation="Relu")
    _check("FusedConv", [*inputs[:2], None, _array(1, 3, 3, 3, seed=3)], activation="Relu")


def test_fused_convolutions_of_no_elements_are_refused() -> None:
    x, w = np.ones((0, 2, 3, 3), np.float32), _array(2, 2, 1, 1)
    model = one_node("FusedConv", [x, w], domain="com.microsoft", activation="Relu")
    with pytest.raises(dml.Unsupported, match=r"FusedConv.*has no elements"):
        computed(model, feed([x, w]))


@pytest.mark.parametrize("group", [1, 2])
def test_nhwc_conv_has_its_channels_last(group: int) -> None:
    x, w, bias = _array(2, 5, 6, 4), _array(6, 4 // group, 3, 3, seed=1), _array(6, seed=2)
    model = one_node("NhwcConv", [x, w, bias], domain=_DOMAIN, group=group, pads=[1, 0, 1, 1])
    turned = np.ascontiguousarray(x.transpose(0, 3, 1, 2))
    same = one_node("Conv", [turned, w, bias], group=group, pads=[1, 0, 1, 1])
    (expected,) = evaluated(same, feed([turned, w, bias]))
    assert_same(computed(model, feed([x, w, bias])), [expected.transpose(0, 2, 3, 1)])


@pytest.mark.parametrize(
    ("skip", "biases"),
    [
        ((2, 3, 8), (True, True)),
        ((1, 3, 8), (True, False)),
        ((3, 8), (False, True)),
        ((2, 3, 8), (False, False)),
    ],
)
def test_skip_layer_normalization(skip: tuple[int, ...], biases: tuple[bool, bool]) -> None:
    beta, bias = (_array(8, seed=3 + i) if there else None for i, there in enumerate(biases))
    inputs = [_array(2, 3, 8), _array(*skip, seed=1), _array(8, seed=2), beta, bias]
    _check_first_and_last("SkipLayerNormalization", inputs)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("sizes", [(2, 3, 8), (3, 8)])
def test_skip_simplified_layer_normalization(sizes: tuple[int, ...], bias: bool) -> None:
    inputs = [_array(*sizes), _array(*sizes, seed=1), _array(8, seed=2), _array(8, seed=3) if bias else None]
    _check_first_and_last("SkipSimplifiedLayerNormalization", inputs)


def _check_first_and_last(operator: str, inputs: list[Array | None]) -> None:
    """With outputs 0 and 3 alone: the others belong to training."""
    while inputs[-1] is None:
        inputs.pop()
    model = one_node(operator, inputs, 4, opset=21, domain=_DOMAIN, epsilon=1e-3)
    model.graph.node[0].output[1:3] = ["", ""]
    del model.graph.output[1:3]
    assert_as_onnxruntime(model, feed(inputs), atol=2e-5)


@pytest.mark.parametrize(
    ("segments", "mask", "positions"),
    [
        (True, True, True),
        (True, True, False),
        (False, False, True),
        (False, True, False),
        (True, False, False),
    ],
)
def test_embed_layer_normalization(segments: bool, mask: bool, positions: bool) -> None:
    random = np.random.default_rng(4)
    ids = random.integers(0, 11, (2, 3)).astype(np.int32)
    inputs = [
        ids,
        random.integers(0, 2, (2, 3)).astype(np.int32) if segments else None,
        _array(11, 8),
        _array(5, 8, seed=1),
        _array(2, 8, seed=2) if segments else None,
        _array(8, seed=3),
        _array(8, seed=4),
        np.array([[1, 1, 0], [1, 0, 0]], np.int32) if mask else None,
        np.array([[2, 1, 0], [4, 0, 3]], np.int32) if positions else None,
    ]
    while inputs[-1] is None:
        inputs.pop()
    _check("EmbedLayerNormalization", inputs, outputs=3, epsilon=1e-3)


def _group_norm(x: Array, scale: Array, bias: Array, groups: int, last: bool, swish: bool) -> Array:
    wide = np.moveaxis(x, -1, 1) if last else x
    grouped = wide.reshape(len(x), groups, -1).astype(np.float64)
    normal = grouped - grouped.mean(-1, keepdims=True)
    normal /= np.sqrt((normal**2).mean(-1, keepdims=True) + 1e-5)
    spread = [1, -1] + [1] * (x.ndim - 2)
    y = normal.reshape(wide.shape) * scale.reshape(spread) + bias.reshape(spread)
    y = y / (1 + np.exp(-y)) if swish else y
    return np.asarray(np.moveaxis(y, 1, -1) if last else y, np.float32)


@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("swish", [True, False])
def test_group_norm(last: bool, swish: bool) -> None:
    x = _array(2, 4, 5, 6) if last else _array(2, 6, 4, 5)
    scale, bias = _array(6, seed=1), _array(6, seed=2)
    attributes = {"groups": 3, "channels_last": int(last), "activation": int(swish)}
    model = one_node("GroupNorm", [x, scale, bias], domain=_DOMAIN, **attributes)
    expected = _group_norm(x, scale, bias, 3, last, swish)
    assert_same(computed(model, feed([x, scale, bias])), [expected], atol=2e-5)


@pytest.mark.parametrize("skip", [(2, 4, 5, 6), (2, 1, 1, 6), (2, 6)])
def test_skip_group_norm(skip: tuple[int, ...]) -> None:
    x, scale, bias = _array(2, 4, 5, 6), _array(6, seed=1), _array(6, seed=2)
    inputs = [x, scale, bias, _array(*skip, seed=3), _array(6, seed=4)]
    model = one_node("SkipGroupNorm", inputs, 2, domain=_DOMAIN, groups=2, activation=1)
    total = x + (inputs[3] if len(skip) == 4 else inputs[3].reshape(2, 1, 1, 6)) + inputs[4]
    expected = [_group_norm(total, scale, bias, 2, True, True), total]
    assert_same(computed(model, feed(inputs)), expected, atol=2e-5)


_S, _T = np.array(0.02, np.float32), np.array(0.03, np.float32)


def _zero(type: Any, value: int) -> Array:
    return np.array(value, type)


@pytest.mark.parametrize("type", [np.uint8, np.int8])
@pytest.mark.parametrize("operator", ["QLinearAdd", "QLinearMul"])
@pytest.mark.parametrize("sizes", [((2, 3), (2, 3)), ((2, 3, 4), (3, 1)), ((4,), ())])
def test_quantized_sums_and_products(operator: str, sizes: tuple[Any, Any], type: Any) -> None:
    a, b = _bytes(*sizes[0], type=type), _bytes(*sizes[1], type=type, seed=1)
    zero = _zero(type, 5)
    inputs = [a, _S, zero, b, _T, _zero(type, 100), np.array(0.1, np.float32), zero]
    _check(operator, list(inputs), atol=1)


@pytest.mark.parametrize("type", [np.uint8, np.int8])
@pytest.mark.parametrize(
    ("operator", "attributes"),
    [("QLinearSigmoid", {}), ("QLinearLeakyRelu", {"alpha": 0.2}), ("QLinearSoftmax", {"axis": 1})],
)
def test_quantized_activations(operator: str, attributes: dict[str, Any], type: Any) -> None:
    x, scale = _bytes(2, 3, 4, type=type), np.array(1 / 256, np.float32)
    inputs = [x, _S, _zero(type, 7), scale, _zero(type, 0 if type == np.uint8 else -128)]
    known = [1, 2, 3, 4]
    model = one_node(operator, inputs, opset=21, domain=_DOMAIN, known=known, **attributes)
    if operator == "QLinearSoftmax":
        model.graph.node[0].attribute.append(onnx.helper.make_attribute("opset", 13))
    given = feed(inputs, known)
    assert_as_onnxruntime(model, given, atol=1)


@pytest.mark.parametrize("last", [0, 1])
def test_quantized_pooling(last: int) -> None:
    x, zero = _bytes(2, 3, 6, 7), _zero(np.uint8, 100)
    inputs = [x, _S, zero, _T, _zero(np.uint8, 10)]
    _check("QLinearGlobalAveragePool", list(inputs), atol=1, channels_last=last)
    window = {"kernel_shape": [2, 3], "strides": [2, 1], "pads": [0, 1, 0, 1], "count_include_pad": 1 - last}
    _check("QLinearAveragePool", list(inputs), atol=1, channels_last=last, **window)


def test_quantized_means() -> None:
    inputs = [_bytes(2, 3, 4), _S, _zero(np.uint8, 100), _T, _zero(np.uint8, 10)]
    zeros = inputs[2], inputs[4]
    for axes, kept in (([1], 1), ([-1, 0], 0)):
        model = one_node("QLinearReduceMean", inputs, domain=_DOMAIN, axes=axes, keepdims=kept)
        floats = (inputs[0].astype(np.float64) - zeros[0]) * _S
        mean = floats.mean(tuple(axes), keepdims=bool(kept)) / _T + zeros[1]
        expected = np.clip(np.rint(mean), 0, 255).astype(np.uint8)
        assert_same(computed(model, feed(inputs)), [expected], atol=1)


def test_quantized_concat() -> None:
    zero = _zero(np.uint8, 100)
    parts = [_bytes(2, 3), _S, zero, _bytes(2, 1, seed=1), _T, _zero(np.uint8, 5)]
    _check("QLinearConcat", [np.array(0.025, np.float32), zero, *parts], atol=1, axis=1)


@pytest.mark.parametrize("last", [0, 1])
def test_quantized_convolution(last: int) -> None:
    """Of weights of 7 bits: ONNX Runtime makes none of these unsigned, and without VNNI adds two products in
    16 bits."""
    x, w = _bytes(1, 5, 6, 4) if last else _bytes(1, 4, 5, 6), _bytes(3, 4, 3, 3, type=np.int8, seed=1) // 2
    scale = np.array([0.01, 0.02, 0.03], np.float32)
    inputs = [x, _S, _zero(np.uint8, 100), w, scale, np.zeros(3, np.int8)]
    inputs += [np.array(0.5, np.float32), _zero(np.uint8, 120), np.array([100, -200, 300], np.int32)]
    _check("QLinearConv", list(inputs), atol=1, channels_last=last, pads=[1, 1, 1, 1], known=[3, 4, 5, 8])


def test_pooling_with_channels_last() -> None:
    _check("NhwcMaxPool", [_bytes(1, 5, 6, 4, type=np.int8)], kernel_shape=[2, 2], strides=[2, 2])


@pytest.mark.parametrize("type", [np.int8, np.uint8])
@pytest.mark.parametrize(
    ("columns", "bias", "zeros"), [(1, True, True), (5, True, True), (5, False, False), (1, True, False)]
)
def test_products_of_quantized_matrices(type: Any, columns: int, bias: bool, zeros: bool) -> None:
    b, scale = _bytes(4, 5, type=type, seed=1), 0.01 * (1 + np.arange(columns, dtype=np.float32))
    scale = scale if columns > 1 else scale.reshape(())
    b_zero = (np.arange(columns, dtype=type) if columns > 1 else _zero(type, 3)) if zeros else None
    added = _array(5, seed=2) if bias else None
    tail: list[Array | None] = [b_zero, added]
    while tail and tail[-1] is None:
        tail.pop()
    for sizes in ((3, 4), (2, 3, 4)):
        _check("DynamicQuantizeMatMul", [_array(*sizes), b, scale, *tail], atol=1e-4)
        a_zero = _zero(np.uint8, 100) if zeros else None
        head: list[Array | None] = [_bytes(*sizes), b, _S, scale]
        rest: list[Array | None] = [a_zero, *tail]
        while rest and rest[-1] is None:
            rest.pop()
        _check("MatMulIntegerToFloat", [*head, *rest], atol=1e-4)


@pytest.mark.parametrize("quantized", [True, False])
@pytest.mark.parametrize("columns", [1, 5])
def test_quantized_gemm(columns: int, quantized: bool) -> None:
    scale = 0.01 * (1 + np.arange(columns, dtype=np.float32))
    zero: Array = np.arange(columns).astype(np.int8)
    added = np.array([100, -200, 300, -400, 0], np.int32)
    if columns == 1:
        scale, zero = scale.reshape(()), zero.reshape(())
    inputs = [_bytes(3, 4), _S, _zero(np.uint8, 100), _bytes(5, 4, type=np.int8, seed=1), scale, zero, added]
    inputs += [np.array(0.5, np.float32), _zero(np.uint8, 120)] if quantized else []
    known = [3, 4, 5, 6]
    _check("QGemm", list(inputs), atol=1 if quantized else 1e-4, transB=1, alpha=0.5, known=known)


@pytest.mark.parametrize(
    ("bits", "zeros"), [(4, "none"), (4, "packed"), (4, "floats"), (8, "none"), (8, "packed")]
)
@pytest.mark.parametrize(("depth", "bias"), [(64, True), (40, False)])
def test_matmul_nbits(bits: int, depth: int, zeros: str, bias: bool) -> None:
    columns, block = 6, 16
    blocks = -(-depth // block)
    b, scales = _bytes(columns, blocks, block * bits // 8, seed=1), 0.1 * _array(columns, blocks, seed=2)
    zero = {
        "none": None,
        "packed": _bytes(columns, -(-blocks * bits // 8), seed=3),
        "floats": 8 + _array(columns, blocks, seed=3),
    }[zeros]
    inputs = [_array(2, 3, depth), b, scales, zero, None, _array(columns, seed=4) if bias else None]
    while inputs[-1] is None:
        inputs.pop()
    known = [i for i, each in enumerate(inputs) if i and each is not None]
    _check("MatMulNBits", inputs, K=depth, N=columns, bits=bits, block_size=block, known=known, atol=1e-4)


@pytest.mark.parametrize("sizes", [(0, 3, 16), (2, 0, 16)])
def test_products_and_attention_of_no_rows_have_the_sizes_of_others(sizes: tuple[int, ...]) -> None:
    rows, keys = _array(*sizes), _array(sizes[0], 4, 16)
    weights = [_bytes(5, 1, 8), _array(5)]
    _check("MatMulNBits", [rows, *weights], known=(1, 2), K=16, N=5, bits=4, block_size=16)
    _check("Attention", [rows, _array(16, 48), _array(48)], num_heads=2)
    _check("MultiHeadAttention", [rows, keys, _array(sizes[0], 4, 8)], num_heads=2)
    heads = _array(sizes[0], 2, 4, 8)
    _check("MultiHeadAttention", [rows, heads, heads], num_heads=2)


@pytest.mark.parametrize("depth", [64, 40])
def test_weights_of_few_bits_are_never_written_as_floats(depth: int) -> None:
    inputs = [_array(1, depth), _bytes(6, -(-depth // 16), 8, seed=1), _array(6, -(-depth // 16), seed=2)]
    model = one_node("MatMulNBits", inputs, domain=_DOMAIN, known=[1, 2], bits=4, K=depth, N=6, block_size=16)
    (part,) = dml_onnx.load(model, "cpu").parts({"x0": inputs[0]})
    assert isinstance(part, dml.Model)
    assert part.temporary_bytes == 0


def test_quantization_along_an_axis() -> None:
    x, scale, zero = _array(2, 3), np.array([0.1, 0.2, 0.3], np.float32), np.array([1, 2, 3], np.uint8)
    _check("QuantizeLinear", [x, scale, zero], axis=1)
    _check("QuantizeLinear", [x, np.array(scale[0]), np.array(zero[0])])
    _check("DequantizeLinear", [_bytes(2, 3), scale, zero], axis=1)
    _check("DequantizeLinear", [_bytes(2, 3, type=np.int8), np.array(scale[0])])


def test_what_has_no_mapping_is_an_error_that_says_so() -> None:
    inputs = [np.eye(3, dtype=np.float32)]
    model = one_node("Inverse", inputs, domain=_DOMAIN)
    with pytest.raises(dml.Unsupported, match=r"Inverse-1\): neither opendml nor onnx's evaluator has"):
        dml_onnx.load(model)(*inputs)
    inputs = [_array(2, 3, 16), _bytes(4, 1, 4), _array(4, 1)]
    model = one_node("MatMulNBits", inputs, domain=_DOMAIN, bits=2, K=16, N=4, block_size=16)
    with pytest.raises(dml.Unsupported, match=r"MatMulNBits.*2 bits"):
        dml_onnx.load(model)(*inputs)
    for block in (0, -16, 8, 24):
        model = one_node("MatMulNBits", inputs, domain=_DOMAIN, bits=4, K=16, N=4, block_size=block)
        with pytest.raises(dml.Unsupported, match=rf"block_size {block}; it must be a power of 2 from 16 up"):
            dml_onnx.load(model)(*inputs)


_BATCH, _LENGTH, _HEADS, _SIZE = 2, 3, 2, 4
_WIDTH = _HEADS * _SIZE


def _array_attention(*sizes: int, seed: int = 0) -> Array:
    return np.random.default_rng([seed, *sizes]).standard_normal(sizes).astype(np.float32)


def _check_attention(
    operator: str, inputs: list[Array | None], *, atol: float = 2e-5, outputs: int = 1, **options: Any
) -> None:
    while inputs[-1] is None:
        inputs.pop()
    model = one_node(operator, inputs, outputs, opset=21, domain=_DOMAIN, **options)
    given = feed(inputs, options.get("known", ()))
    assert_as_onnxruntime(model, given, atol=atol)


def _masks(columns: int) -> dict[str, Array | None]:
    random = np.random.default_rng(columns)
    full = random.integers(0, 2, (_BATCH, _LENGTH, columns)).astype(np.int32)
    full[:, :, 0] = 1
    return {
        "none": None,
        "ends": np.array([columns, columns - 1], np.int32),
        "ends and starts": np.array([columns, columns - 1, 1, 0], np.int32),
        "keys": full[:, 0],
        "queries and keys": full,
    }


_ALL = ["none", "ends", "ends and starts", "keys", "queries and keys"]


@pytest.mark.parametrize("mask", _ALL)
@pytest.mark.parametrize(("past", "unidirectional"), [(0, 0), (0, 1), (2, 1)])
def test_attention_projects_and_remembers(mask: str, past: int, unidirectional: int) -> None:
    columns = past + _LENGTH
    inputs = [
        _array_attention(_BATCH, _LENGTH, 5),
        _array_attention(5, 3 * _WIDTH, seed=1),
        _array_attention(3 * _WIDTH, seed=2),
        _masks(columns)[mask],
        _array_attention(2, _BATCH, _HEADS, past, _SIZE, seed=3) if past else None,
        _array_attention(_BATCH, _HEADS, _LENGTH, columns, seed=4) if mask == "keys" and not past else None,
    ]
    attributes = {"num_heads": _HEADS, "unidirectional": unidirectional}
    _check_attention("Attention", inputs, outputs=2 if past else 1, **attributes)


def test_attention_with_values_of_another_size_and_a_scale() -> None:
    inputs = [
        _array_attention(_BATCH, _LENGTH, 5),
        _array_attention(5, 8 + 8 + 12, seed=1),
        _array_attention(28, seed=2),
    ]
    _check_attention("Attention", list(inputs), num_heads=2, qkv_hidden_sizes=[8, 8, 12], scale=0.3)


@pytest.mark.parametrize("columns", [1, 3 * _WIDTH])
@pytest.mark.parametrize("unidirectional", [0, 1])
def test_quantized_attention(columns: int, unidirectional: int) -> None:
    random = np.random.default_rng(1)
    scale = np.full(columns, 0.01, np.float32)
    inputs = [
        random.integers(0, 256, (_BATCH, _LENGTH, 5)).astype(np.uint8),
        random.integers(-128, 128, (5, 3 * _WIDTH)).astype(np.int8),
        _array_attention(3 * _WIDTH, seed=2),
        np.array(0.02, np.float32),
        scale if columns > 1 else scale.reshape(()),
        None,
        np.array(120, np.uint8),
        np.zeros(columns, np.int8) if columns > 1 else np.array(3, np.int8),
    ]
    _check_attention(
        "QAttention", list(inputs), num_heads=_HEADS, unidirectional=unidirectional, known=[1, 4, 7]
    )


@pytest.mark.parametrize("mask", ["none", "ends", "keys", "queries and keys"])
@pytest.mark.parametrize(("past", "bias"), [(0, True), (2, False)])
def test_multi_head_attention(mask: str, past: int, bias: bool) -> None:
    columns = past + _LENGTH
    inputs = [
        *(_array_attention(_BATCH, _LENGTH, _WIDTH, seed=seed) for seed in range(3)),
        _array_attention(3 * _WIDTH, seed=3) if bias else None,
        _masks(columns)[mask],
        _array_attention(1, _HEADS, _LENGTH, columns, seed=4) if mask == "none" else None,
        *(_array_attention(_BATCH, _HEADS, past, _SIZE, seed=seed) if past else None for seed in (5, 6)),
    ]
    _check_attention("MultiHeadAttention", inputs, outputs=3, num_heads=_HEADS, unidirectional=int(bias))


def test_multi_head_attention_of_other_keys_and_values() -> None:
    query, keys = _array_attention(_BATCH, _LENGTH, _WIDTH), _array_attention(_BATCH, 5, _WIDTH, seed=1)
    values = _array_attention(_BATCH, 5, 6, seed=2)
    _check_attention(
        "MultiHeadAttention", [query, keys, values, _array_attention(22, seed=3)], num_heads=_HEADS
    )
    made = [_array_attention(_BATCH, _HEADS, 5, _SIZE, seed=seed) for seed in (1, 2)]
    _check_attention("MultiHeadAttention", [query, *made], num_heads=_HEADS, scale=0.3)


@pytest.mark.parametrize("rows", [1, 5, 64, 300])
def test_multi_head_attention_to_one_key_repeats_its_value(rows: int) -> None:
    query, key = (_array_attention(_BATCH, length, 6, seed=length) for length in (rows, 1))
    value = _array_attention(1, 1, 6, seed=2)
    inputs = [query[:1], key[:1], value]
    model = one_node("MultiHeadAttention", inputs, domain=_DOMAIN, num_heads=1)
    (found,) = computed(model, feed(inputs))
    assert_same([found], [np.repeat(value, rows, axis=1)], atol=0)


def test_multi_head_attention_of_stacked_tensors_is_that_of_their_parts() -> None:
    stacked = _array_attention(_BATCH, _LENGTH, _HEADS, 3, _SIZE)
    apart: list[Array | None] = [
        np.ascontiguousarray(stacked[:, :, :, i]).reshape(_BATCH, _LENGTH, _WIDTH) for i in range(3)
    ]
    expected = run_by_onnxruntime(
        one_node("MultiHeadAttention", apart, opset=21, domain=_DOMAIN, num_heads=_HEADS), feed(apart)
    )
    for inputs in ([stacked], [apart[0], np.ascontiguousarray(stacked[:, :, :, 1:])]):
        model = one_node("MultiHeadAttention", inputs, domain=_DOMAIN, num_heads=_HEADS)
        assert_same(computed(model, feed(inputs)), expected, atol=2e-5)


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("positions", ["one", "all"])
@pytest.mark.parametrize("layout", ["3 dimensions", "4 dimensions", "a part"])
def test_rotary_embedding(layout: str, positions: str, interleaved: int) -> None:
    size, turned = 8, 4 if layout == "a part" else 8
    x = (
        _array_attention(_BATCH, _HEADS, _LENGTH, size)
        if layout == "4 dimensions"
        else _array_attention(_BATCH, _LENGTH, 2 * size)
    )
    tables = [_array_attention(9, turned // 2, seed=seed) for seed in (1, 2)]
    places = np.array([4], np.int64) if positions == "one" else np.array([[0, 2, 1], [8, 7, 3]], np.int64)
    attributes = {"num_heads": _HEADS, "rotary_embedding_dim": 4} if layout == "a part" else {}
    _check_attention("RotaryEmbedding", [x, places, *tables], interleaved=interleaved, **attributes)


def _grouped(
    length: int, past: int, total: int, ends: list[int], packed: bool = False, rotary: bool = False
) -> list[Array | None]:
    """Inputs of GroupQueryAttention for 4 heads of queries over 2 of keys and values, of 16 elements."""
    batch = len(ends)
    if packed:
        given: list[Array | None] = [_array_attention(batch, length, 128), None, None]
    else:
        given = [
            _array_attention(batch, length, 64),
            *(_array_attention(batch, length, 32, seed=seed) for seed in (1, 2)),
        ]
    states = [_array_attention(batch, 2, past, 16, seed=seed) if past else None for seed in (3, 4)]
    tables = [_array_attention(16, 8, seed=seed) for seed in (5, 6)] if rotary else [None, None]
    return [*given, *states, np.array(ends, np.int32), np.array(total, np.int32), *tables]


@pytest.mark.parametrize(("packed", "rotary"), [(True, True), (False, False)])
@pytest.mark.parametrize(
    ("length", "past", "total", "ends"),
    [(5, 0, 5, [4, 4]), (1, 5, 6, [5, 5]), (1, 5, 6, [5, 3]), (3, 4, 7, [6])],
)
def test_grouped_queries(
    length: int, past: int, total: int, ends: list[int], packed: bool, rotary: bool
) -> None:
    inputs = _grouped(length, past, total, ends, packed, rotary)
    while inputs[-1] is None:
        inputs.pop()
    attributes = {"num_heads": 4, "kv_num_heads": 2, "do_rotary": int(rotary)}
    model = one_node("GroupQueryAttention", inputs, 3, opset=21, domain=_DOMAIN, **attributes)
    output, *states = computed(model, feed(inputs))
    expected, *wanted = run_by_onnxruntime(model, feed(inputs))
    assert_same([output], [expected], atol=2e-5)
    for state, want in zip(states, wanted, strict=True):
        assert state.shape == want.shape
        for row, end in enumerate(ends):  # what is behind the end of a row is not defined
            assert_same([state[row, :, : end + 1]], [want[row, :, : end + 1]], atol=2e-5)


@pytest.mark.parametrize(
    "attributes",
    [{"softcap": 2.0}, {"local_window_size": 2}, {"scale": 0.3}, {"rotary_interleaved": 1, "do_rotary": 1}],
)
def test_group_query_attention_with_attributes(attributes: dict[str, Any]) -> None:
    inputs = _grouped(5, 0, 5, [4, 4], rotary="do_rotary" in attributes)
    _check_attention("GroupQueryAttention", inputs, outputs=3, num_heads=4, kv_num_heads=2, **attributes)


def test_group_query_attention_with_a_bias() -> None:
    inputs = [*_grouped(5, 0, 5, [4, 4]), None, _array_attention(2, 4, 5, 5, seed=9)]
    _check_attention("GroupQueryAttention", inputs, outputs=3, num_heads=4, kv_num_heads=2)


def test_the_page_about_adding_an_operator_adds_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of docs/design/adding_an_onnx_operator.md, in a registry of their own."""
    page = (Path(__file__).parents[2] / "docs" / "design" / "adding_an_onnx_operator.md").read_text("utf-8")
    converter, default, wide_name = re.findall(
        r"^```(?:python|text)\n(.*?)^```", page, re.MULTILINE | re.DOTALL
    )
    for name in ("_converters", "_operators"):
        monkeypatch.setattr(CONVERTERS, name, copy.copy(getattr(CONVERTERS, name)))
    names = vars(elementwise) | vars(registry)
    exec(converter, names)
    with pytest.raises(ValueError, match=r"^com\.microsoft: HalfSquare-1 is converted twice$"):
        exec(converter, names)
    with pytest.raises(ValueError, match=r"^HalfCube: DirectML has no operator ELEMENT_WISE_CUBE$"):
        registry.converts("HalfCube", to="ELEMENT_WISE_CUBE")
    defaults = attributes._WITHOUT_SCHEMA | eval(f"{{{default}}}", names)
    monkeypatch.setattr(attributes, "_WITHOUT_SCHEMA", defaults)
    monkeypatch.setattr(
        wide, "_SEVERAL_OPERATORS", wide._SEVERAL_OPERATORS | {*eval(f"({wide_name})", names)}
    )
    assert CONVERTERS.directml_names()["HalfSquare"] == {"ELEMENT_WISE_MULTIPLY"}
    x = np.array([300.0, -3.0], np.float16)
    for scale, given in ((0.5, {}), (0.25, {"scale": 0.25})):
        model = one_node("HalfSquare", [x], domain="com.microsoft", **given)
        (y,) = computed(model, feed([x]))
        np.testing.assert_array_equal(y, (scale * x.astype(np.float32) ** 2).astype(np.float16))


def test_every_operator_that_is_converted_is_one_of_onnx() -> None:
    unknown = [
        (domain, name)
        for domain, name in CONVERTERS.names()
        if domain not in ("com.microsoft", "opendml")
        and not onnx.defs.has(name, domain)
        and (domain, name) not in attributes._WITHOUT_SCHEMA
    ]
    assert unknown == []
    assert {*attributes._WITHOUT_SCHEMA} <= {*CONVERTERS.names()}
