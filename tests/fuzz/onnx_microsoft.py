"""Random nodes of the operators that ONNX Runtime adds."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.fuzz.onnx_draft import Draft, Made, Tensor

_FLOAT = np.dtype(np.float32)
_DOMAIN = "com.microsoft"


def _made(
    operator: str, inputs: list[str], attributes: dict[str, Any] | None = None, outputs: int = 1
) -> Made:
    return Made(operator, inputs, attributes or {}, False, outputs, _DOMAIN)


def _given(draft: Draft, least: int, most: int) -> Tensor:
    """A tensor of floats with elements."""
    x = draft.pick((_FLOAT,), least, most)
    return draft.new([size or 1 for size in x.sizes]) if 0 in x.sizes else x


def activation(draft: Draft) -> Made:
    """A function of each element, perhaps of a sum with a bias."""
    operator, x = draft.choices.of(("Gelu", "BiasGelu", "FastGelu", "QuickGelu")), _given(draft, 1, 4)
    bias = draft.new(x.sizes[-1:]).name
    if operator == "BiasGelu":
        return _made(operator, [x.name, bias])
    if operator == "FastGelu":
        return _made(operator, [x.name, bias][: draft.choices.between(1, 2)])
    return _made(
        operator, [x.name], {"alpha": draft.choices.of((1.702, 0.5))} if operator == "QuickGelu" else {}
    )


def product(draft: Draft) -> Made:
    """Products of matrices with more to them."""
    operator = draft.choices.of(
        (
            "FusedMatMul",
            "FusedGemm",
            "FusedConv",
            "MatMulNBits",
            "DynamicQuantizeMatMul",
            "MatMulIntegerToFloat",
        )
    )
    chosen = draft.choices.of(("Relu", "Sigmoid", "Tanh"))
    if operator == "FusedConv":
        x = _given(draft, 4, 4)
        w = draft.new([draft.choices.between(1, 3), x.sizes[1], 1, 1])
        inputs = [x.name, w.name, draft.new(w.sizes[:1]).name][: draft.choices.between(2, 3)]
        return _made(operator, inputs, {"activation": chosen})
    x, columns = _given(draft, 2, 2 if operator == "FusedGemm" else 3), draft.choices.between(1, 5)
    inner = x.sizes[-1]
    if operator == "FusedMatMul":
        turned = draft.choices.below(2)
        y = draft.new([*x.sizes[:-2], *([columns, inner] if turned else [inner, columns])])
        return _made(operator, [x.name, y.name], {"transB": turned, "alpha": draft.choices.of((1.0, 0.5))})
    if operator == "FusedGemm":
        inputs = [x.name, draft.new([inner, columns]).name, draft.new([columns]).name]
        return _made(operator, inputs[: draft.choices.between(2, 3)], {"activation": chosen})
    if operator == "MatMulNBits":
        size = 16
        blocks, random = -(-inner // size), np.random.default_rng(draft.choices.below(99))
        packed = random.integers(0, 256, [columns, blocks, size // 2]).astype(np.uint8)
        scales = draft.new([columns * blocks], np.float32, 1).name
        inputs = [x.name, draft.stored_one(packed).name, scales]
        if draft.choices.below(2):
            zeros = random.integers(0, 256, [columns * -(-blocks // 2)]).astype(np.uint8)
            inputs.append(draft.stored_one(zeros).name)
        return _made(operator, inputs, {"K": inner, "N": columns, "bits": 4, "block_size": size})
    type = draft.choices.of((np.uint8, np.int8))
    weights = draft.new([inner, columns], type)
    scale = draft.new([columns] if draft.choices.below(2) else [1], np.float32, 1).name
    if operator == "DynamicQuantizeMatMul":
        inputs = [x.name, weights.name, scale, "", draft.new([columns]).name]
        return _made(operator, inputs[: draft.choices.of((3, 5))])
    left = draft.new(x.sizes, np.uint8, 0, 20)
    inputs = [left.name, weights.name, draft.new([1], np.float32, 1).name, scale]
    return _made(operator, [*inputs, draft.new([1], np.uint8, 0, 9).name][: draft.choices.between(4, 5)])


def normalization(draft: Draft) -> Made:
    """Normalizations of sums."""
    operator = draft.choices.of(("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"))
    x = _given(draft, 3, 3)
    inputs = [x.name, draft.new(x.sizes).name, draft.new(x.sizes[-1:]).name]
    if operator == "SkipLayerNormalization":
        inputs += [draft.new(x.sizes[-1:]).name for _ in range(draft.choices.between(1, 2))]
    return _made(operator, inputs, {"epsilon": 1e-5})


def attention(draft: Draft) -> Made:
    """Attention of a few heads."""
    batch, length, heads, size = (draft.choices.between(1, most) for most in (2, 4, 2, 3))
    if draft.choices.below(2):
        keys, width = draft.choices.between(1, 4), heads * size * 2
        inputs = [draft.new([batch, each, width]).name for each in (length, keys, keys)]
        return _made("MultiHeadAttention", inputs, {"num_heads": heads})
    width = draft.choices.between(2, 5)
    inputs = [
        draft.new(sizes).name for sizes in ([batch, length, width], [width, 3 * heads * 4], [3 * heads * 4])
    ]
    return _made("Attention", inputs, {"num_heads": heads, "unidirectional": draft.choices.below(2)})


def quantized(draft: Draft) -> Made:
    """Arithmetic of quantized numbers."""
    operator = draft.choices.of(
        (
            "QLinearAdd",
            "QLinearMul",
            "QLinearSigmoid",
            "QLinearLeakyRelu",
            "QLinearGlobalAveragePool",
            "QGemm",
        )
    )
    type = draft.choices.of((np.uint8, np.int8))

    def parameters() -> list[str]:
        scale = draft.given(np.asarray(draft.choices.of((0.25, 0.5, 0.1)), np.float32))
        return [scale.name, draft.new([], type, 0, 20).name]

    sizes = [draft.choices.between(1, 4) for _ in range(4 if operator == "QLinearGlobalAveragePool" else 2)]
    x = draft.new(sizes, type, -100, 100)
    if operator in ("QLinearAdd", "QLinearMul"):
        y = draft.new(sizes[draft.choices.below(2) :], type, -100, 100)
        return _made(operator, [x.name, *parameters(), y.name, *parameters(), *parameters()])
    if operator == "QGemm":
        y = draft.new([sizes[1], draft.choices.between(1, 4)], type, -100, 100)
        inputs = [x.name, *parameters(), y.name, *parameters(), ""]
        return _made(operator, [*inputs, *parameters()] if draft.choices.below(2) else inputs)
    if operator == "QLinearGlobalAveragePool":
        return _made(operator, [x.name, *parameters(), *parameters()], {"channels_last": 0})
    return _made(
        operator, [x.name, *parameters(), *parameters()], {"alpha": 0.1} if "Leaky" in operator else {}
    )
