"""Random nodes that sum: reductions, products, windows, normalizations, networks with a state."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.fuzz.onnx_draft import FLOATS, Draft, Made

_REDUCTIONS = ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare")


def running_sum(draft: Draft) -> Made:
    """Sums of all that stands before."""
    x = draft.pick((*FLOATS, np.dtype(np.int32), np.dtype(np.int64)), 1)
    attributes = {"exclusive": draft.choices.below(2), "reverse": draft.choices.below(2)}
    axis = draft.given(np.asarray(draft.axis(len(x.sizes)), np.int64))
    return Made("CumSum", [x.name, axis.name], attributes)


def reduction(draft: Draft) -> Made:
    """Sums and the like over axes."""
    name = draft.choices.of(_REDUCTIONS)
    x = draft.pick(
        FLOATS
        if name.startswith("Log") or name == "L2"
        else (*FLOATS, np.dtype(np.int32), np.dtype(np.int64))
    )
    axes = [axis - len(x.sizes) * draft.choices.below(2) for axis in draft.choices.some(range(len(x.sizes)))]
    attributes: dict[str, Any] = {"keepdims": draft.choices.below(2)}
    if name == "Sum" or draft.opset >= 18:
        if draft.choices.rarely(3):
            attributes["noop_with_empty_axes"] = draft.choices.below(2)
        return Made(
            f"Reduce{name}",
            [x.name, draft.stored_list(axes)] if axes or draft.choices.below(2) else [x.name],
            attributes,
        )
    return Made(f"Reduce{name}", [x.name], {**attributes, **({"axes": axes} if axes else {})})


def softmax(draft: Draft) -> Made:
    """Weights along an axis."""
    operator = draft.choices.of(("Softmax", "LogSoftmax", "Hardmax", "LpNormalization"))
    x = draft.pick(FLOATS, 1, exact=operator == "Hardmax")
    return Made(operator, [x.name], {"axis": draft.axis(len(x.sizes))})


def product(draft: Draft) -> Made:
    """Products of matrices."""
    x = draft.pick((*FLOATS, np.dtype(np.int32)), 1, 4)
    inner, outer = x.sizes[-1], draft.size()
    if draft.choices.rarely(3) and len(x.sizes) == 2 and x.type.kind == "f":
        across = draft.choices.below(2)
        y = draft.new([outer, inner] if across else [inner, outer], x.type)
        inputs = [x.name, y.name]
        if draft.choices.below(2):
            inputs.append(
                draft.new(draft.choices.of(([outer], [1], [x.sizes[0], 1], [x.sizes[0], outer])), x.type).name
            )
        return Made(
            "Gemm",
            inputs,
            {"transB": across, "alpha": draft.choices.of((1.0, 0.5)), "beta": draft.choices.of((1.0, 2.0))},
        )
    if len(x.sizes) >= 2 and draft.choices.rarely(3):
        y = draft.new([x.sizes[-2]] if draft.choices.below(2) else [outer, x.sizes[-2]], x.type)
        return Made("MatMul", [y.name, x.name], {})
    batch = [1 if draft.choices.rarely(3) else size for size in x.sizes[:-2]]
    y = draft.new(
        [*batch[draft.choices.below(len(batch) + 1) :], inner, *([outer] if draft.choices.below(6) else [])],
        x.type,
    )
    if len(y.sizes) < 1:
        y = draft.new([inner], x.type)
    return Made("MatMul", [x.name, y.name], {})


def einsum(draft: Draft) -> Made:
    """Sums of products over letters."""
    x = draft.pick((np.dtype(np.float32),), 2, 3)
    a = "abc"[: len(x.sizes)]
    equation, letters = draft.choices.of(
        (
            (f"{a},{a[-1]}d->{a[:-1]}d", a[-1] + "d"),
            (f"{a},{a}->{a[0]}", a),
            (f"{a}->{a[::-1]}", ""),
            (f"...{a[-1]}->...", ""),
            (f"{a},{a[0]}->{a[1:]}", a[0]),
        )
    )
    sizes = dict(zip(a, x.sizes, strict=True)) | {"d": 3}
    more = [draft.new([sizes[each] for each in letters]).name] if letters else []
    return Made("Einsum", [x.name, *more], {"equation": equation})


def window(draft: Draft) -> Made:
    """Convolutions and pooling."""
    operator = draft.choices.of(
        ("Conv", "MaxPool", "AveragePool", "ConvTranspose", "LpPool", "GlobalAveragePool", "GlobalMaxPool")
    )
    x = draft.pick(FLOATS[:1] if draft.choices.below(4) else FLOATS[:2], 3, 4)
    spatial = x.sizes[2:]
    if operator.startswith("Global"):
        return Made(operator, [x.name], {})
    extents = [draft.choices.between(1, min(3, max(size, 1))) for size in spatial]
    attributes: dict[str, Any] = {"strides": [draft.choices.between(1, 2) for _ in spatial]}
    if operator not in ("Conv", "ConvTranspose") or draft.choices.below(2):
        attributes["kernel_shape"] = extents
    if draft.choices.rarely(4) and operator != "ConvTranspose":
        attributes["auto_pad"] = draft.choices.of(("SAME_UPPER", "SAME_LOWER", "VALID"))
    elif draft.choices.below(2):
        most = [min(1, extent - 1) for extent in extents]
        attributes["pads"] = [draft.choices.between(0, each) for each in (*most, *most)]
    if operator == "Conv":
        groups = draft.choices.of([each for each in (1, 2, 3, x.sizes[1]) if each and x.sizes[1] % each == 0])
        w = draft.new([groups * draft.choices.between(1, 2), x.sizes[1] // groups, *extents], x.type)
        inputs = [x.name, w.name] + ([draft.new(w.sizes[:1], x.type).name] if draft.choices.below(2) else [])
        return Made(operator, inputs, {**attributes, "group": groups})
    if operator == "ConvTranspose":
        w = draft.new([x.sizes[1], draft.choices.between(1, 2), *extents], x.type)
        return Made(operator, [x.name, w.name], attributes)
    if operator != "LpPool" and "auto_pad" not in attributes:
        attributes["ceil_mode"] = draft.choices.below(2)
    if operator == "AveragePool":
        attributes["count_include_pad"] = draft.choices.below(2)
    return Made(operator, [x.name], attributes)


def normalization(draft: Draft) -> Made:
    """Means and variances."""
    operator = draft.choices.of(
        (
            "LayerNormalization",
            "BatchNormalization",
            "InstanceNormalization",
            "LRN",
            "MeanVarianceNormalization",
            "RMSNormalization",
            "GroupNormalization",
        )
    )
    least = {"LayerNormalization": 1, "BatchNormalization": 2, "RMSNormalization": 1}.get(operator, 3)
    x = draft.pick(
        (np.dtype(np.float32),), 4 if operator in ("LRN", "MeanVarianceNormalization") else least, 4
    )
    channels = x.sizes[1:2]
    if operator in ("LayerNormalization", "RMSNormalization"):
        axis = draft.axis(len(x.sizes))
        weights = [draft.new(x.sizes[axis:]).name for _ in range(draft.choices.between(1, 2))]
        return Made(operator, [x.name, *weights[: 2 if operator[0] == "L" else 1]], {"axis": axis})
    if operator == "BatchNormalization":
        return Made(
            operator,
            [x.name, *(draft.new(channels).name for _ in range(3)), draft.new(channels, np.float32, 1).name],
            {},
        )
    if operator == "LRN":
        return Made(operator, [x.name], {"size": 3})
    if operator == "MeanVarianceNormalization":
        return Made(operator, [x.name], {"axes": draft.choices.some(range(4)) or [0]})
    if operator == "GroupNormalization":
        return Made(
            operator,
            [x.name, *(draft.new(channels).name for _ in range(2))],
            {"num_groups": draft.choices.of([each for each in (1, 2, 3) if channels[0] % each == 0])},
        )
    return Made(operator, [x.name, *(draft.new(channels).name for _ in range(2))], {})


def resize(draft: Draft) -> Made:
    """Other resolutions."""
    x = draft.pick((np.dtype(np.float32),), 4, 4)
    mode = draft.choices.of(("nearest", "linear", "cubic"))
    coordinates = draft.choices.of(("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"))
    attributes = {"mode": mode, "coordinate_transformation_mode": coordinates}
    if mode == "nearest":
        attributes["nearest_mode"] = draft.choices.of(
            ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")
        )
    if draft.choices.below(2):
        whole = coordinates == "align_corners"  # evaluators divide by different sizes elsewhere
        scales = [1.0, 1.0, draft.choices.of((2.0,) if whole else (2.0, 1.5, 0.5))]
        scales.append(draft.choices.of((1.0, 2.0) if whole else (1.0, 2.0, 0.75)))
        return Made("Resize", [x.name, "", draft.stored_list(scales, np.float32)], attributes)
    return Made(
        "Resize",
        [x.name, "", "", draft.stored_list([*x.sizes[:2], draft.choices.between(1, 7), draft.size() or 1])],
        attributes,
    )


def quantized(draft: Draft) -> Made:
    """To and from integers of 8 bits."""
    type = draft.choices.of((np.uint8, np.int8))
    operator = draft.choices.of(
        ("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "MatMulInteger", "QLinearMatMul")
    )
    scale = draft.given(np.asarray(draft.choices.of((0.25, 0.5, 2.0)), np.float32)).name
    point = draft.new([], type, 0, 8).name
    if operator == "QuantizeLinear":
        return Made(operator, [draft.pick((np.dtype(np.float32),), exact=True).name, scale, point], {}, True)
    if operator == "DynamicQuantizeLinear":
        return Made(operator, [draft.pick((np.dtype(np.float32),), 1, exact=True).name], {}, False, 3)
    x = draft.pick((np.dtype(type),), 0 if operator == "DequantizeLinear" else 2, 3)
    if operator == "DequantizeLinear":
        return Made(operator, [x.name, scale, point], {}, x.is_exact)
    y = draft.new([x.sizes[-1], draft.size()], type)
    if operator == "MatMulInteger":
        return Made(operator, [x.name, y.name, point, draft.new([], type, 0, 8).name], {}, True)
    return Made(operator, [x.name, scale, point, y.name, scale, point, scale, point], {}, False)


def recurrent(draft: Draft) -> Made:
    """Networks with a state."""
    operator = draft.choices.of(("LSTM", "GRU", "RNN"))
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[operator]
    x = draft.pick((np.dtype(np.float32),), 3, 3)
    hidden = draft.choices.between(1, 4)
    way = draft.choices.of(("forward", "reverse", "bidirectional"))
    count = 2 if way == "bidirectional" else 1
    inputs = [
        x.name,
        draft.new([count, gates * hidden, x.sizes[2]]).name,
        draft.new([count, gates * hidden, hidden]).name,
    ]
    inputs.append(draft.new([count, 2 * gates * hidden]).name if draft.choices.below(2) else "")
    has_lengths = draft.choices.rarely(3)
    inputs.append(draft.new([x.sizes[1]], np.int32, 1, max(1, x.sizes[0])).name if has_lengths else "")
    inputs.append(draft.new([count, x.sizes[1], hidden]).name if draft.choices.rarely(3) else "")
    attributes: dict[str, Any] = {"hidden_size": hidden, "direction": way}
    if operator == "GRU":
        attributes["linear_before_reset"] = draft.choices.below(2)
    return Made(operator, inputs, attributes, False, 3 if operator == "LSTM" else 2)


def attention(draft: Draft) -> Made:
    """Values by how much their keys agree with queries."""
    batch, heads, length, keys, size = (draft.choices.between(1, most) for most in (2, 2, 4, 5, 4))
    groups = heads * draft.choices.between(1, 2)
    q, k, v = (
        draft.new(sizes)
        for sizes in ([batch, groups, length, size], [batch, heads, keys, size], [batch, heads, keys, size])
    )
    mask = (
        draft.new([length, keys], draft.choices.of((np.float32, np.bool_))).name
        if draft.choices.below(2)
        else ""
    )
    attributes: dict[str, Any] = {"is_causal": draft.choices.below(2)} if not mask else {}
    if draft.choices.rarely(3):
        attributes["softcap"] = 2.0
    return Made("Attention", [q.name, k.name, v.name, mask], attributes)


def sampling(draft: Draft) -> Made:
    """Elements between others, and convolutions of integers."""
    operator = draft.choices.of(("GridSample", "ConvInteger", "QLinearConv", "MaxUnpool"))
    batch, channels, height, width = (draft.choices.between(1, most) for most in (2, 3, 5, 5))
    if operator == "GridSample":
        x = draft.new([batch, channels, height, width])
        grid = draft.new([batch, draft.choices.between(1, 4), 3, 2], np.float32, -5, 5)
        modes = ("linear", "nearest", "cubic") if draft.opset >= 20 else ("bilinear", "nearest", "bicubic")
        attributes = {"mode": draft.choices.of(modes), "align_corners": draft.choices.below(2)}
        attributes["padding_mode"] = draft.choices.of(("zeros", "border", "reflection"))
        return Made(operator, [x.name, grid.name], attributes)
    if operator == "MaxUnpool":
        x = draft.new([batch, channels, 2 * height, 2 * width])
        pooled = draft.new([batch, channels, height, width])
        count = 4 * height * width
        places = np.random.default_rng(draft.choices.below(99)).permutation(count * batch * channels)
        places = np.sort(places)[::4].reshape(pooled.sizes)
        return Made(
            operator, [pooled.name, draft.given(places).name], {"kernel_shape": [2, 2], "strides": [2, 2]}
        )
    type = draft.choices.of((np.uint8, np.int8))
    x = draft.new([batch, channels, height + 2, width + 2], type, -100, 100)
    w = draft.new([draft.choices.between(1, 3), channels, draft.choices.between(1, 3), 2], type, -100, 100)
    point, other = (draft.new([], type, 0, 9).name for _ in range(2))
    attributes = {"pads": [0, 1, 1, 0]} if draft.choices.below(2) else {}
    if operator == "ConvInteger":
        return Made(operator, [x.name, w.name, *[point, other][: draft.choices.below(3)]], attributes, True)
    scales = [draft.given(np.asarray(each, np.float32)).name for each in (0.25, 0.5, 16.0)]
    inputs = [x.name, scales[0], point, w.name, scales[1], other, scales[2], point]
    if draft.choices.below(2):
        inputs.append(draft.new(w.sizes[:1], np.int32, -99, 99).name)
    return Made(operator, inputs, attributes)
