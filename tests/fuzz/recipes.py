"""Random sizes and attributes of the operators whose tensors are not all of one size: nearly all are valid.

A recipe takes choices and gives the sizes of the inputs (a list of them for an array of tensors) and the
attributes, by their Python names. Optional inputs may be absent, other attributes are as for any operator.
What it says of the outputs is under "sizes" and, for the optional ones that the desc has, "wanted". Under
"types" are, for an array of tensors, the tensors that have the types of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from opendml import PaddingMode, Size2D, descs
from opendml.spec.enums import (
    ConvolutionDirection,
    MatrixTransform,
    MultiheadAttentionMaskType,
    QuantizationType,
    RecurrentNetworkDirection,
    ReduceFunction,
)
from tests.fuzz.choices import Choices

Recipe = Callable[[Choices], dict[str, Any]]

SIDES = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 40)
"""Sizes on both sides of the vectors' lengths."""
MOST_ELEMENTS = 2000
SCALES = (1.0, 2.0, 0.5, 3.0, 1 / 3, 1.5, 0.7)


def _sizes(choices: Choices, rank: int, most: int = MOST_ELEMENTS) -> list[int]:
    sizes: list[int] = []
    for _ in range(rank):
        sizes.append(choices.of([side for side in SIDES if side <= max(most, 1)]))
        most //= sizes[-1]
    return choices.shuffled(sizes)


def _windows(choices: Choices, spatial: int) -> dict[str, Any]:
    """Windows that fit: sizes of what they go over, and attributes."""
    axes = range(spatial)
    extents = [choices.of((1, 2, 3, 5) if spatial < 3 else (1, 2, 3)) for _ in axes]
    dilations = [choices.between(1, 3) for _ in axes]
    start, end = ([choices.below(extent + 1) for extent in extents] for _ in range(2))
    needed = [
        max(1, (extent - 1) * dilation + 1 - first - last)
        for extent, dilation, first, last in zip(extents, dilations, start, end, strict=True)
    ]
    return {
        "sizes": [least + choices.of((0, 1, 4, 9, 15, 16, 33)[: 9 - 2 * spatial]) for least in needed],
        "extents": extents,
        "strides": [choices.between(1, 3) for _ in axes],
        "dilations": dilations,
        "start_padding": start,
        "end_padding": end,
    }


def _positions(sizes: list[int], extents: list[int], made: dict[str, Any]) -> list[int]:
    """How often the windows that were made fit along each of the sizes."""
    dilations = made.get("dilations", [1] * len(sizes))
    paddings = zip(made["start_padding"], made["end_padding"], strict=True)
    each = zip(sizes, extents, made["strides"], dilations, paddings, strict=True)
    return [
        (size + sum(padding) - (extent - 1) * dilation - 1) // stride + 1
        for size, extent, stride, dilation, padding in each
    ]


def _pooling(*, dilated: bool) -> Recipe:
    def recipe(choices: Choices) -> dict[str, Any]:
        made = _windows(choices, choices.between(2, 3))
        sizes, made["window_size"] = made.pop("sizes"), made.pop("extents")
        if not dilated:
            del made["dilations"]
        return made | {"input_tensor": [choices.between(1, 2), choices.between(1, 5), *sizes]}

    return recipe


def _pooling_grad(*, dilated: bool, of_maxima: bool) -> Recipe:
    def recipe(choices: Choices) -> dict[str, Any]:
        made = _pooling(dilated=dilated)(choices)
        sizes = made.pop("input_tensor")
        pooled = _positions(sizes[2:], made["window_size"], made)
        made["input_gradient_tensor"] = [*sizes[:2], *pooled]
        return made | {"input_tensor" if of_maxima else "sizes": sizes}

    return recipe


def _convolution(choices: Choices) -> dict[str, Any]:
    spatial = choices.between(1, 3)
    made = _windows(choices, spatial)
    sizes, extents = made.pop("sizes"), made.pop("extents")
    direction = choices.of(list(ConvolutionDirection))
    groups, inner, outer = choices.of((1, 2, 3, 8, 17)), choices.of((1, 2, 3, 5)), choices.of((1, 2, 3, 17))
    forward = direction is ConvolutionDirection.FORWARD
    made |= {
        "input_tensor": [choices.between(1, 2), groups * inner, *sizes],
        "filter_tensor": [groups * outer, inner, *extents] if forward else [groups * inner, outer, *extents],
        "direction": direction,
        "group_count": groups,
        "output_padding": [choices.below(stride) for stride in made["strides"]],
    }
    bias = {"bias_tensor": [1, groups * outer, *[1] * spatial]} if choices.below(2) else {}
    return made | bias


def _gemm(choices: Choices) -> dict[str, Any]:
    leading = [choices.between(1, 3) for _ in range(choices.of((2, 1, 0)))]
    rows, columns, inner = (choices.of((*SIDES, 100, 257)) for _ in range(3))
    trans = [choices.of(list(MatrixTransform)) for _ in range(2)]
    a, b = (
        [n, m] if each is MatrixTransform.TRANSPOSE else [m, n]
        for each, m, n in zip(trans, (rows, inner), (inner, columns), strict=True)
    )
    made = {"a_tensor": [*leading, *a], "b_tensor": [*leading, *b], "trans_a": trans[0], "trans_b": trans[1]}
    return made | ({"c_tensor": [*leading, rows, columns]} if choices.below(2) else {})


def _slice(choices: Choices) -> dict[str, Any]:
    sizes = _sizes(choices, choices.between(4, 5))
    offsets = [choices.below(size) for size in sizes]
    strides = [choices.between(1, 3) for _ in sizes]
    counts = [
        choices.between(1, (size - 1 - offset) // stride + 1)
        for size, offset, stride in zip(sizes, offsets, strides, strict=True)
    ]
    return {"input_tensor": sizes, "offsets": offsets, "strides": strides, "sizes": counts}


def _slice1(choices: Choices) -> dict[str, Any]:
    sizes = _sizes(choices, choices.between(1, 8))
    offsets = [choices.below(size) for size in sizes]
    return {
        "input_tensor": sizes,
        "input_window_offsets": offsets,
        "input_window_sizes": [
            choices.between(1, size - offset) for size, offset in zip(sizes, offsets, strict=True)
        ],
        "input_window_strides": [choices.of((1, 2, -1, 3, -2, -7)) for _ in sizes],
    }


def _slice_grad(choices: Choices) -> dict[str, Any]:
    made = _slice1(choices)
    each = zip(made["input_window_sizes"], made["input_window_strides"], strict=True)
    return {
        "input_gradient_tensor": [(size - 1) // abs(stride) + 1 for size, stride in each],
        "sizes": made.pop("input_tensor"),
        **made,
    }


def _unfold(choices: Choices) -> dict[str, Any]:
    made = _windows(choices, choices.between(1, 3))
    made["window_sizes"] = made.pop("extents")
    return made | {"input_tensor": [choices.between(1, 2), choices.between(1, 5), *made.pop("sizes")]}


def _fold(choices: Choices) -> dict[str, Any]:
    made = _unfold(choices)
    sizes, extents = made.pop("input_tensor"), made["window_sizes"]
    columns = [sizes[0], sizes[1] * prod(extents), prod(_positions(sizes[2:], extents, made))]
    return made | {"input_tensor": columns, "sizes": sizes}


def _one_hot(choices: Choices) -> dict[str, Any]:
    sizes = _sizes(choices, choices.between(1, 8))
    axis = choices.below(len(sizes))
    values = [*[1] * (len(sizes) - 1), 2]
    indices = [*sizes[:axis], 1, *sizes[axis + 1 :]]
    return {"indices_tensor": indices, "values_tensor": values, "axis": axis, "sizes": sizes}


def _reverse(choices: Choices) -> dict[str, Any]:
    sizes = _sizes(choices, choices.between(1, 8))
    axis = choices.below(len(sizes))
    lengths = [*sizes[:axis], 1, *sizes[axis + 1 :]]
    return {"input_tensor": sizes, "sequence_lengths_tensor": lengths, "axis": axis}


def _parts(choices: Choices) -> tuple[list[int], int, list[int]]:
    """Sizes, an axis, and its size in parts."""
    sizes = _sizes(choices, choices.between(1, 8))
    parts = choices.several(lambda: choices.of(SIDES), 1, 5)
    return sizes, choices.below(len(sizes)), parts


def _split(choices: Choices) -> dict[str, Any]:
    sizes, axis, parts = _parts(choices)
    sizes[axis] = sum(parts)
    return {"input_tensor": sizes, "axis": axis, "sizes": parts}


def _join(choices: Choices) -> dict[str, Any]:
    sizes, axis, parts = _parts(choices)
    return {"input_tensors": [[*sizes[:axis], part, *sizes[axis + 1 :]] for part in parts], "axis": axis}


def _padding(choices: Choices) -> dict[str, Any]:
    mode = choices.of(list(PaddingMode))
    sizes = _sizes(choices, choices.between(1, 8), 200)
    spare = {PaddingMode.REFLECTION: -1, PaddingMode.SYMMETRIC: 0}.get(mode, 2)
    most = [min(size + spare, 2) for size in sizes]
    start, end = ([choices.below(margin + 1) for margin in most] for _ in range(2))
    return {"input_tensor": sizes, "padding_mode": mode, "start_padding": start, "end_padding": end}


def _tile(choices: Choices) -> dict[str, Any]:
    sizes = _sizes(choices, choices.between(1, 8), 200)
    return {"input_tensor": sizes, "repeats": [choices.between(1, 3) for _ in sizes]}


def _blocks(*, of_depth: bool) -> Recipe:
    def recipe(choices: Choices) -> dict[str, Any]:
        block = choices.between(1, 4)
        batch, channels, height, width = (choices.between(1, 9) for _ in range(4))
        if of_depth:
            return {"input_tensor": [batch, channels * block * block, height, width], "block_size": block}
        return {"input_tensor": [batch, channels, height * block, width * block], "block_size": block}

    return recipe


def _upsample(choices: Choices) -> dict[str, Any]:
    sizes = _sizes(choices, choices.between(4, 5), 300)
    return {"input_tensor": sizes, "scale_size": Size2D(choices.between(1, 4), choices.between(1, 4))}


def _value_scale(choices: Choices) -> dict[str, Any]:
    sizes = [choices.between(1, 3), choices.of((1, 3)), *_sizes(choices, 2)]
    return {"input_tensor": sizes, "bias": [choices.between(-2, 2) / 4 for _ in range(sizes[1])]}


def _resample(choices: Choices) -> dict[str, Any]:
    sizes = _sizes(choices, choices.between(1, 4), 300)
    scales = [choices.of(SCALES) for _ in sizes]
    return {
        "input_tensor": sizes,
        "scales": scales,
        "sizes": [max(1, int(size * scale)) for size, scale in zip(sizes, scales, strict=True)],
    }


def _resample_with_offsets(choices: Choices) -> dict[str, Any]:
    made = _resample(choices)
    return made | {
        f"{which}_pixel_offsets": [choices.between(-3, 3) / 4 for _ in made["scales"]]
        for which in ("input", "output")
    }


def _resample_grad(choices: Choices) -> dict[str, Any]:
    made = _resample_with_offsets(choices)
    return made | {"input_gradient_tensor": made["sizes"], "sizes": made.pop("input_tensor")}


def _batch_normalization(*sized: str, repeated: tuple[str, ...], optional: tuple[str, ...] = ()) -> Recipe:
    """Tensors of the sizes of the input, and others that are all repeated alike along the same dimensions."""

    def recipe(choices: Choices) -> dict[str, Any]:
        sizes = _sizes(choices, choices.between(1, 8))
        statistics = [size if choices.below(2) else 1 for size in sizes]
        made = dict.fromkeys(sized, sizes) | dict.fromkeys(repeated, statistics)
        return made | _optional(choices, **dict.fromkeys(optional, sizes))

    return recipe


_batch_normalization_grad = _batch_normalization(
    "input_tensor", "input_gradient_tensor", repeated=("mean_tensor", "variance_tensor", "scale_tensor")
)


def _random_generator(choices: Choices) -> dict[str, Any]:
    leading = [1] * choices.below(8)
    return {"input_state_tensor": [*leading, 6], "sizes": _sizes(choices, choices.between(1, 8))}


def _roi_pooling(choices: Choices) -> dict[str, Any]:
    return {
        "input_tensor": _sizes(choices, 4, 300),
        "roi_tensor": [1, 1, choices.between(1, 9), 5],
        "pooled_size": Size2D(choices.between(1, 5), choices.between(1, 5)),
    }


def _regions(choices: Choices) -> tuple[list[int], list[int], dict[str, Any]]:
    """Sizes of an image, and of what is made of its regions; their tensors and numbers of samples."""
    sizes, count = _sizes(choices, 4, 300), choices.between(1, 9)
    most = choices.between(1, 5)
    return (
        sizes,
        [count, sizes[1], choices.between(1, 5), choices.between(1, 5)],
        {
            "roi_tensor": [*[1] * choices.below(3), count, 4],
            "batch_indices_tensor": [*[1] * choices.below(4), count],
            "minimum_samples_per_output": choices.below(most + 1),
            "maximum_samples_per_output": most,
        },
    )


def _roi_align(choices: Choices) -> dict[str, Any]:
    sizes, aligned, made = _regions(choices)
    return made | {"input_tensor": sizes, "sizes": aligned}


def _roi_align_grad(choices: Choices) -> dict[str, Any]:
    sizes, aligned, made = _regions(choices)
    function = choices.of((ReduceFunction.AVERAGE, ReduceFunction.MAX))
    of_image, of_regions = "output_gradient_tensor", "output_roi_gradient_tensor"
    wanted = choices.of(({of_image}, {of_regions}, {of_image, of_regions}))
    made |= {"input_gradient_tensor": aligned, "reduction_function": function}
    if of_regions in wanted or function is ReduceFunction.MAX or choices.below(2):
        made["input_tensor"] = sizes
    return made | {"sizes": sizes, "wanted": wanted}


def _gather(choices: Choices) -> dict[str, Any]:
    rank = choices.between(1, 8)
    sizes, axis = _sizes(choices, rank), choices.below(rank)
    count = choices.between(1, 1 + min(axis, rank - 1))
    # Dimensions of the result beyond the rank must have size 1.
    sizes[: count - 1] = [1] * (count - 1)
    indices = [*[1] * (rank - count), *(choices.between(1, 4) for _ in range(count))]
    return {"input_tensor": sizes, "indices_tensor": indices, "axis": axis, "index_dimensions": count}


def _gather_elements(choices: Choices) -> dict[str, Any]:
    sizes = _sizes(choices, choices.between(1, 8))
    axis = choices.below(len(sizes))
    indices = [*sizes[:axis], choices.of(SIDES), *sizes[axis + 1 :]]
    return {"input_tensor": sizes, "indices_tensor": indices, "axis": axis}


def _gather_nd(*, batched: bool) -> Recipe:
    def recipe(choices: Choices) -> dict[str, Any]:
        batch = choices.below(3) if batched else 0
        length, rest, more = choices.between(1, 3), choices.below(3), choices.below(3)
        leading, own = [choices.between(1, 3) for _ in range(batch)], _sizes(choices, length + rest, 300)
        sizes, indices = [*leading, *own], [*leading, *(choices.between(1, 4) for _ in range(more)), length]
        rank = max(len(sizes), len(indices), len(leading) + more + rest)
        made = {
            "input_tensor": [*[1] * (rank - len(sizes)), *sizes],
            "indices_tensor": [*[1] * (rank - len(indices)), *indices],
            "input_dimension_count": len(sizes),
            "indices_dimension_count": len(indices),
        }
        return made | ({"batch_dimension_count": batch} if batched else {})

    return recipe


def _scatter(choices: Choices) -> dict[str, Any]:
    made = _gather_elements(choices)
    return made | {"updates_tensor": made["indices_tensor"]}


def _scatter_nd(choices: Choices) -> dict[str, Any]:
    made = _gather_nd(batched=False)(choices)
    sizes, indices = (
        made[f"{which}_tensor"][len(made[f"{which}_tensor"]) - made[f"{which}_dimension_count"] :]
        for which in ("input", "indices")
    )
    updates = [*indices[:-1], *sizes[indices[-1] :]]
    return made | {"updates_tensor": [*[1] * (len(made["input_tensor"]) - len(updates)), *updates]}


def _unpooling(choices: Choices) -> dict[str, Any]:
    sizes = _sizes(choices, 4, 300)
    return {"input_tensor": sizes, "indices_tensor": sizes, "sizes": _sizes(choices, 4, 400)}


def _top(choices: Choices) -> dict[str, Any]:
    sizes = _sizes(choices, choices.between(1, 8))
    axis = choices.below(len(sizes))
    return {"input_tensor": sizes, "axis": axis, "k": choices.between(1, sizes[axis])}


def _coordinates(choices: Choices) -> dict[str, Any]:
    return {"input_tensor": _sizes(choices, choices.between(2, 8), 300)}


def _diagonal(choices: Choices) -> dict[str, Any]:
    return {"offset": choices.between(-5, 5), "sizes": _sizes(choices, choices.between(2, 4))}


def _diagonal_fill(choices: Choices) -> dict[str, Any]:
    first = choices.between(-5, 5)
    sizes = _sizes(choices, choices.between(2, 4))
    return {
        "input_tensor": sizes,
        "diagonal_fill_begin": first,
        "diagonal_fill_end": first + choices.below(5),
    }


def _optional(choices: Choices, **sizes: list[int]) -> dict[str, Any]:
    """Some of these tensors."""
    return {name: each for name, each in sizes.items() if choices.below(2)}


def _parameters(choices: Choices, each: list[int], *names: str) -> dict[str, Any]:
    """A size for each of these scales or zero points: one for all, or as many as `each` says."""
    return {name: each if choices.below(2) else [1] * len(each) for name in names}


def _product_of_integers(*, scales: bool, requantized: bool) -> Recipe:
    def recipe(choices: Choices) -> dict[str, Any]:
        leading = [choices.between(1, 3) for _ in range(choices.of((2, 1, 0)))]
        rows, columns, inner = (choices.of(SIDES) for _ in range(3))
        ones = [1] * len(leading)
        a, b = [*ones, rows, 1], [*ones, 1, columns]
        made = {"a_tensor": [*leading, rows, inner], "b_tensor": [*leading, inner, columns]}
        made |= _optional(choices, **_parameters(choices, a, "a_zero_point_tensor"))
        made |= _optional(choices, **_parameters(choices, b, "b_zero_point_tensor"))
        if scales:
            made |= _parameters(choices, a, "a_scale_tensor") | _parameters(choices, b, "b_scale_tensor")
        if requantized:
            made |= _parameters(choices, a, "output_scale_tensor")
            made |= _optional(choices, **_parameters(choices, a, "output_zero_point_tensor"))
        elif scales:
            made |= _optional(choices, bias_tensor=[*leading, rows, columns])
        return made

    return recipe


def _convolution_of_integers(*, requantized: bool) -> Recipe:
    def recipe(choices: Choices) -> dict[str, Any]:
        spatial = choices.between(1, 2)
        made = _windows(choices, spatial)
        sizes, extents = made.pop("sizes"), made.pop("extents")
        groups, inner, outer = (choices.of((1, 2, 3)) for _ in range(3))
        ones = [1] * spatial
        one, channels = [1, 1, *ones], [1, groups * outer, *ones]
        made |= {
            "input_tensor": [choices.between(1, 2), groups * inner, *sizes],
            "filter_tensor": [groups * outer, inner, *extents],
            "group_count": groups,
        }
        made |= _optional(choices, input_zero_point_tensor=one)
        made |= _optional(choices, **_parameters(choices, channels, "filter_zero_point_tensor"))
        if requantized:
            made |= _parameters(choices, channels, "filter_scale_tensor")
            made |= {"input_scale_tensor": one, "output_scale_tensor": one}
            made |= _optional(choices, output_zero_point_tensor=one, bias_tensor=channels)
        return made

    return recipe


def _quantized_pooling(choices: Choices) -> dict[str, Any]:
    made = _pooling(dilated=True)(choices)
    sizes = made["input_tensor"]
    channels = [1, sizes[1], *[1] * (len(sizes) - 2)]
    made |= _parameters(choices, channels, "input_scale_tensor", "output_scale_tensor")
    zero_points = _parameters(choices, channels, "input_zero_point_tensor", "output_zero_point_tensor")
    return made | _optional(choices, **zero_points)


def _quantized_blocks(*, real: str, integers: str) -> Recipe:
    """A scale, and a zero point or none, for each block."""

    def recipe(choices: Choices) -> dict[str, Any]:
        blocks = [choices.of((1, 2, 3)) for _ in range(choices.between(1, 8))]
        type = choices.of((QuantizationType.SCALE, QuantizationType.SCALE_ZERO_POINT))
        sizes = [each * choices.of((1, 2, 5) if len(blocks) <= 4 else (1, 2)) for each in blocks]
        return {
            "input_tensor": sizes,
            "quantization_tensors": [blocks] * type.value,
            "quantization_type": type,
            "types": {"quantization_tensors": (real, integers)},
        }

    return recipe


_GATE_ACTIVATIONS = (
    descs.ActivationSigmoid(),
    descs.ActivationTanh(),
    descs.ActivationHardSigmoid(alpha=0.2, beta=0.5),
    descs.ActivationRelu(),
)


def _recurrent(*, gates: int, activations: int) -> Recipe:
    def recipe(choices: Choices) -> dict[str, Any]:
        direction = choices.of(list(RecurrentNetworkDirection))
        count = 2 if direction is RecurrentNetworkDirection.BIDIRECTIONAL else 1
        steps, batch = choices.between(1, 5), choices.between(1, 3)
        features, hidden = (choices.of((1, 2, 3, 8, 17)) for _ in range(2))
        made = {
            "input_tensor": [1, steps, batch, features],
            "weight_tensor": [1, count, gates * hidden, features],
            "recurrence_tensor": [1, count, gates * hidden, hidden],
            "direction": direction,
            "activation_descs": [choices.of(_GATE_ACTIVATIONS) for _ in range(activations * count)],
        }
        made |= _optional(
            choices,
            bias_tensor=[1, 1, count, 2 * gates * hidden],
            hidden_init_tensor=[1, count, batch, hidden],
            cell_mem_init_tensor=[1, count, batch, hidden],
            sequence_lengths_tensor=[1, 1, 1, batch],
            peephole_tensor=[1, 1, count, 3 * hidden],
        )
        return made

    return recipe


def _attention(*, grouped: bool) -> Recipe:
    def recipe(choices: Choices) -> dict[str, Any]:
        batch, shared, groups = choices.between(1, 2), choices.between(1, 3), choices.between(1, 2)
        heads = shared * groups if grouped else shared
        queries, new, past = choices.between(1, 9), choices.between(1, 17), choices.between(0, 5)
        size, value = choices.between(1, 9), choices.between(1, 9)
        stacked = choices.of(([], ["key", "value"], ["query", "key"], ["query", "key", "value"]))
        if "query" in stacked:
            heads, new = shared, queries
        if "value" in stacked:
            value = size
        tensors = {
            "query": [batch, queries, heads * size],
            "key": [batch, new, shared * size],
            "value": [batch, new, shared * value],
        }
        made: dict[str, Any] = {
            f"{name}_tensor": sizes for name, sizes in tensors.items() if name not in stacked
        }
        if stacked:
            made[f"stacked_{'_'.join(stacked)}_tensor"] = [batch, new, shared, len(stacked), size]
        made |= {
            "mask_type": choices.of(list(MultiheadAttentionMaskType)),
            "scale": choices.of((1.0, 0.25, -0.5, 0.0)),
        }
        scores = [batch, heads, queries, new + past]
        repeated = [each if choices.below(2) else 1 for each in scores]
        made |= _optional(
            choices,
            bias_tensor=[heads * size + shared * (size + value)],
            relative_position_bias_tensor=repeated,
        )
        masks: dict[MultiheadAttentionMaskType, list[int]] = {
            MultiheadAttentionMaskType.KEY_SEQUENCE_LENGTH: [1, batch],
            MultiheadAttentionMaskType.KEY_SEQUENCE_END_START: [2, batch],
            MultiheadAttentionMaskType.KEY_QUERY_SEQUENCE_LENGTH_START_END: [3 * batch + 2],
            MultiheadAttentionMaskType.BOOLEAN: [1, *repeated][choices.of((1, 2, 3, 4, 0)) :],
        }
        if made["mask_type"] in masks:
            made["mask_tensor"] = masks[made["mask_type"]]
        if past:
            made |= {
                "past_key_tensor": [batch, shared, past, size],
                "past_value_tensor": [batch, shared, past, value],
            }
        if grouped:
            made |= _optional(choices, past_sequence_lengths_tensor=[batch])
            return made | {"query_head_count": heads, "key_value_head_count": shared}
        return made | {"head_count": heads}

    return recipe


RECIPES: dict[str, Recipe] = {
    "MATRIX_MULTIPLY_INTEGER": _product_of_integers(scales=False, requantized=False),
    "MATRIX_MULTIPLY_INTEGER_TO_FLOAT": _product_of_integers(scales=True, requantized=False),
    "QUANTIZED_LINEAR_MATRIX_MULTIPLY": _product_of_integers(scales=True, requantized=True),
    "CONVOLUTION_INTEGER": _convolution_of_integers(requantized=False),
    "QUANTIZED_LINEAR_CONVOLUTION": _convolution_of_integers(requantized=True),
    "QUANTIZED_LINEAR_AVERAGE_POOLING": _quantized_pooling,
    "QUANTIZE": _quantized_blocks(real="InputTensor", integers="OutputTensor"),
    "DEQUANTIZE": _quantized_blocks(real="OutputTensor", integers="InputTensor"),
    "RNN": _recurrent(gates=1, activations=1),
    "LSTM": _recurrent(gates=4, activations=3),
    "GRU": _recurrent(gates=3, activations=2),
    "MULTIHEAD_ATTENTION": _attention(grouped=False),
    "MULTIHEAD_ATTENTION1": _attention(grouped=True),
    "AVERAGE_POOLING": _pooling(dilated=False),
    "AVERAGE_POOLING1": _pooling(dilated=True),
    "LP_POOLING": _pooling(dilated=False),
    "LP_POOLING1": _pooling(dilated=True),
    "MAX_POOLING": _pooling(dilated=False),
    "MAX_POOLING1": _pooling(dilated=False),
    "MAX_POOLING2": _pooling(dilated=True),
    "AVERAGE_POOLING_GRAD": _pooling_grad(dilated=False, of_maxima=False),
    "MAX_POOLING_GRAD": _pooling_grad(dilated=True, of_maxima=True),
    "ROI_POOLING": _roi_pooling,
    "ROI_ALIGN": _roi_align,
    "ROI_ALIGN1": _roi_align,
    "ROI_ALIGN_GRAD": _roi_align_grad,
    "BATCH_NORMALIZATION_TRAINING": _batch_normalization(
        "input_tensor", repeated=("scale_tensor", "bias_tensor"), optional=("fused_add_tensor",)
    ),
    "BATCH_NORMALIZATION_GRAD": _batch_normalization_grad,
    "BATCH_NORMALIZATION_TRAINING_GRAD": _batch_normalization_grad,
    "RANDOM_GENERATOR": _random_generator,
    "CONVOLUTION": _convolution,
    "GEMM": _gemm,
    "SLICE": _slice,
    "SLICE1": _slice1,
    "SLICE_GRAD": _slice_grad,
    "UNFOLD": _unfold,
    "FOLD": _fold,
    "ONE_HOT": _one_hot,
    "REVERSE_SUBSEQUENCES": _reverse,
    "SPLIT": _split,
    "JOIN": _join,
    "PADDING": _padding,
    "PADDING1": _padding,
    "TILE": _tile,
    "SPACE_TO_DEPTH": _blocks(of_depth=False),
    "SPACE_TO_DEPTH1": _blocks(of_depth=False),
    "DEPTH_TO_SPACE": _blocks(of_depth=True),
    "DEPTH_TO_SPACE1": _blocks(of_depth=True),
    "UPSAMPLE_2D": _upsample,
    "VALUE_SCALE_2D": _value_scale,
    "RESAMPLE": _resample,
    "RESAMPLE1": _resample_with_offsets,
    "RESAMPLE2": _resample_with_offsets,
    "RESAMPLE3": _resample_with_offsets,
    "RESAMPLE_GRAD": _resample_grad,
    "RESAMPLE_GRAD1": _resample_grad,
    "GATHER": _gather,
    "GATHER_ELEMENTS": _gather_elements,
    "GATHER_ND": _gather_nd(batched=False),
    "GATHER_ND1": _gather_nd(batched=True),
    "SCATTER": _scatter,
    "SCATTER_ND": _scatter_nd,
    "MAX_UNPOOLING": _unpooling,
    "TOP_K": _top,
    "TOP_K1": _top,
    "NONZERO_COORDINATES": _coordinates,
    "DIAGONAL_MATRIX": _diagonal,
    "DIAGONAL_MATRIX1": _diagonal_fill,
}
