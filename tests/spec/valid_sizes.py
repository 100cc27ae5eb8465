"""Sizes and attributes of valid descs, for the operators whose tensors are not all of one size.

Worked out by hand, so that they test the validator's arithmetic and do not repeat it. A recipe is a function
from the number of dimensions to sizes by DirectML's names (None: the tensor is absent) and attributes by
Python's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opendml.spec.enums import MultiheadAttentionMaskType, QuantizationType, ReduceFunction
from opendml.spec.operator_desc import Size2D

Recipe = Callable[[int], dict[str, Any]]


def convolution(n: int) -> dict[str, Any]:
    """A window of 3 over 6 + 2 has 3 positions in steps of 2."""
    spatial = n - 2
    return {
        "InputTensor": [2, 4, *[6] * spatial],
        "FilterTensor": [8, 2, *[3] * spatial],
        "BiasTensor": [1, 8, *[1] * spatial],
        "OutputTensor": [2, 8, *[3] * spatial],
        "FilterScaleTensor": [1, 8, *[1] * spatial],
        "FilterZeroPointTensor": [1] * n,
        "strides": [2] * spatial,
        "dilations": [1] * spatial,
        "start_padding": [1] * spatial,
        "end_padding": [1] * spatial,
        "output_padding": [0] * spatial,
        "group_count": 2,
    }


def pooling(n: int, dilation: int = 1) -> dict[str, Any]:
    """A window of 3 over 6 + 2 has 3 positions in steps of 2; with dilation 2 it spans 5 and has 2."""
    spatial = n - 2
    channels = [1, 3, *[1] * spatial]
    return {
        "InputTensor": [2, 3, *[6] * spatial],
        "OutputTensor": [2, 3, *[4 - dilation] * spatial],
        "OutputIndicesTensor": [2, 3, *[4 - dilation] * spatial],
        "InputGradientTensor": [2, 3, *[4 - dilation] * spatial],
        "OutputGradientTensor": [2, 3, *[6] * spatial],
        "InputScaleTensor": channels,
        "InputZeroPointTensor": channels,
        "OutputScaleTensor": [1] * n,
        "OutputZeroPointTensor": [1] * n,
        "strides": [2] * spatial,
        "window_size": [3] * spatial,
        "start_padding": [1] * spatial,
        "end_padding": [1] * spatial,
        "dilations": [dilation] * spatial,
        "p": 2,
    }


def dilated_pooling(n: int) -> dict[str, Any]:
    return pooling(n, 2)


def folding(image: str, columns: str) -> Recipe:
    """A window of 2 over 3 has 2 positions; in the first spatial dimension alone."""

    def recipe(n: int) -> dict[str, Any]:
        spatial = n - 2
        return {
            image: [2, 3, 3, *[1] * (spatial - 1)],
            columns: [*[1] * (n - 3), 2, 6, 2],
            "window_sizes": [2, *[1] * (spatial - 1)],
            "strides": [1] * spatial,
            "dilations": [1] * spatial,
            "start_padding": [0] * spatial,
            "end_padding": [0] * spatial,
        }

    return recipe


def matrices(n: int) -> dict[str, Any]:
    leading, ones = [2] * (n - 2), [1] * (n - 2)
    return {
        "ATensor": [*leading, 3, 4],
        "BTensor": [*leading, 4, 5],
        "CTensor": [*leading, 3, 5],
        "BiasTensor": [*leading, 3, 5],
        "OutputTensor": [*leading, 3, 5],
        "AScaleTensor": [*ones, 3, 1],
        "AZeroPointTensor": [*ones, 1, 1],
        "BScaleTensor": [*ones, 1, 5],
        "BZeroPointTensor": [*ones, 1, 5],
        "OutputScaleTensor": [*ones, 3, 1],
        "OutputZeroPointTensor": [*ones, 1, 1],
    }


def attention(n: int) -> dict[str, Any]:
    """2 sequences of 3 queries in 2 heads of 2; 4 past and 5 new keys; values of 3."""
    leading = [1] * (n - 4)
    return {
        "QueryTensor": [*leading, 1, 2, 3, 4],
        "KeyTensor": [*leading, 1, 2, 5, 4],
        "ValueTensor": [*leading, 1, 2, 5, 6],
        "StackedQueryKeyTensor": None,
        "StackedKeyValueTensor": None,
        "StackedQueryKeyValueTensor": None,
        "BiasTensor": [*leading, 1, 1, 1, 14],
        "MaskTensor": [*leading, 2, 1, 1, 9],
        "RelativePositionBiasTensor": [*leading, 2, 2, 3, 9],
        "PastKeyTensor": [*leading, 2, 2, 4, 2],
        "PastValueTensor": [*leading, 2, 2, 4, 3],
        "PastSequenceLengthsTensor": [*leading, 1, 1, 1, 2],
        "OutputTensor": [*leading, 1, 2, 3, 6],
        "OutputPresentKeyTensor": [*leading, 2, 2, 9, 2],
        "OutputPresentValueTensor": [*leading, 2, 2, 9, 3],
        "head_count": 2,
        "query_head_count": 2,
        "key_value_head_count": 2,
        "mask_type": MultiheadAttentionMaskType.BOOLEAN,
    }


def stacked_attention(source: str) -> Recipe:
    """The same with a stacked source: its values have heads of 2, and its keys are as many as queries."""

    def recipe(n: int) -> dict[str, Any]:
        leading = [1] * (n - 4)
        stack = {"StackedQueryKeyTensor": 2, "StackedKeyValueTensor": 2, "StackedQueryKeyValueTensor": 3}
        changes = {
            source: [2, 3, 2, stack[source], 2],
            "KeyTensor": None,
            "BiasTensor": [*leading, 1, 1, 1, 12],
            "MaskTensor": [*leading, 2, 1, 1, 7],
            "RelativePositionBiasTensor": [*leading, 2, 2, 3, 7],
            "PastValueTensor": [*leading, 2, 2, 4, 2],
            "OutputTensor": [*leading, 1, 2, 3, 4],
            "OutputPresentKeyTensor": [*leading, 2, 2, 7, 2],
            "OutputPresentValueTensor": [*leading, 2, 2, 7, 2],
        }
        others: dict[str, dict[str, Any]] = {
            "StackedQueryKeyTensor": {"QueryTensor": None, "ValueTensor": [*leading, 1, 2, 3, 4]},
            "StackedKeyValueTensor": {"ValueTensor": None},
            "StackedQueryKeyValueTensor": {"QueryTensor": None, "ValueTensor": None},
        }
        return attention(n) | changes | others[source]

    return recipe


def recurrent(gates: int) -> Recipe:
    """5 steps of 2 sequences with 3 features, hidden size 4, one direction."""

    def recipe(_: int) -> dict[str, Any]:
        return {
            "InputTensor": [1, 5, 2, 3],
            "WeightTensor": [1, 1, gates * 4, 3],
            "RecurrenceTensor": [1, 1, gates * 4, 4],
            "BiasTensor": [1, 1, 1, 2 * gates * 4],
            "HiddenInitTensor": [1, 1, 2, 4],
            "CellMemInitTensor": [1, 1, 2, 4],
            "SequenceLengthsTensor": [1, 1, 1, 2],
            "PeepholeTensor": [1, 1, 1, 12],
            "OutputSequenceTensor": [5, 1, 2, 4],
            "OutputSingleTensor": [1, 1, 2, 4],
            "OutputCellSingleTensor": [1, 1, 2, 4],
        }

    return recipe


def regions(_: int) -> dict[str, Any]:
    return {
        "InputTensor": [2, 3, 8, 8],
        "ROITensor": [1, 1, 5, 4],
        "BatchIndicesTensor": [1, 1, 1, 5],
        "OutputTensor": [5, 3, 4, 6],
        "InputGradientTensor": [5, 3, 4, 6],
        "OutputGradientTensor": [2, 3, 8, 8],
        "OutputROIGradientTensor": [1, 1, 5, 4],
        "reduction_function": ReduceFunction.AVERAGE,
        "minimum_samples_per_output": 1,
        "maximum_samples_per_output": 8,
    }


def padding(n: int) -> dict[str, Any]:
    return {"OutputTensor": [5] * n, "start_padding": [1] * n, "end_padding": [2] * n}


def window(large: str, small: str) -> Recipe:
    """4 elements from 1 on, every third backward, are 2."""

    def recipe(n: int) -> dict[str, Any]:
        return {
            large: [5, *[2] * (n - 1)],
            small: [2] * n,
            "input_window_offsets": [1, *[0] * (n - 1)],
            "input_window_sizes": [4, *[2] * (n - 1)],
            "input_window_strides": [-3, *[1] * (n - 1)],
        }

    return recipe


def resampling(n: int) -> dict[str, Any]:
    return {
        "OutputTensor": [3] * n,
        "scales": [1.5] * n,
        "input_pixel_offsets": [0.5] * n,
        "output_pixel_offsets": [-0.5] * n,
    }


def gathering_tuples(elements: str) -> Recipe:
    """(3, 4) of tuples of 2 in (5, 6, 7)."""

    def recipe(n: int) -> dict[str, Any]:
        return {
            "InputTensor": [*[1] * (n - 3), 5, 6, 7],
            "IndicesTensor": [*[1] * (n - 3), 3, 4, 2],
            elements: [*[1] * (n - 3), 3, 4, 7],
            "OutputTensor": [*[1] * (n - 3), *([3, 4, 7] if elements == "OutputTensor" else [5, 6, 7])],
            "input_dimension_count": 3,
            "indices_dimension_count": 3,
            "batch_dimension_count": 0,
        }

    return recipe


def parts(several: str, whole: str) -> Recipe:
    def recipe(n: int) -> dict[str, Any]:
        others = [2] * (n - 1)
        return {several: [[1, *others], [3, *others]], whole: [4, *others]}

    return recipe


def one_at_axis(n: int) -> list[int]:
    return [1, *[2] * (n - 1)]


def top(n: int) -> dict[str, Any]:
    return {
        "InputTensor": [3, *[2] * (n - 1)],
        "OutputValueTensor": [2] * n,
        "OutputIndexTensor": [2] * n,
        "k": 2,
    }


def depth(deep: str, wide: str) -> Recipe:
    return lambda _: {deep: [2, 12, 3, 5], wide: [2, 3, 6, 10], "block_size": 2}


def rows(n: int) -> dict[str, Any]:
    return {"InputTensor": [*[1] * (n - 2), 2, 3], "OutputTensor": [*[1] * (n - 2), 2, 3]}


def quantization(n: int) -> dict[str, Any]:
    return {
        "InputTensor": [6] * n,
        "QuantizationTensors": [[1, *[3] * (n - 1)]] * 2,
        "OutputTensor": [6] * n,
        "quantization_type": QuantizationType.SCALE_ZERO_POINT,
    }


RECIPES: dict[str, Recipe] = {
    "CONVOLUTION": convolution,
    "CONVOLUTION_INTEGER": convolution,
    "QUANTIZED_LINEAR_CONVOLUTION": convolution,
    "AVERAGE_POOLING": pooling,
    "AVERAGE_POOLING1": dilated_pooling,
    "AVERAGE_POOLING_GRAD": pooling,
    "LP_POOLING": pooling,
    "LP_POOLING1": dilated_pooling,
    "MAX_POOLING": pooling,
    "MAX_POOLING1": pooling,
    "MAX_POOLING2": dilated_pooling,
    "MAX_POOLING_GRAD": dilated_pooling,
    "QUANTIZED_LINEAR_AVERAGE_POOLING": dilated_pooling,
    "FOLD": folding("OutputTensor", "InputTensor"),
    "UNFOLD": folding("InputTensor", "OutputTensor"),
    "GEMM": matrices,
    "MATRIX_MULTIPLY_INTEGER": matrices,
    "MATRIX_MULTIPLY_INTEGER_TO_FLOAT": matrices,
    "QUANTIZED_LINEAR_MATRIX_MULTIPLY": matrices,
    "MULTIHEAD_ATTENTION": attention,
    "MULTIHEAD_ATTENTION1": attention,
    "RNN": recurrent(1),
    "GRU": recurrent(3),
    "LSTM": recurrent(4),
    "ROI_POOLING": lambda _: {
        "InputTensor": [2, 3, 8, 8],
        "ROITensor": [1, 1, 5, 5],
        "OutputTensor": [5, 3, 4, 6],
        "pooled_size": Size2D(width=6, height=4),
    },
    "ROI_ALIGN": regions,
    "ROI_ALIGN1": regions,
    "ROI_ALIGN_GRAD": regions,
    "SLICE": lambda n: {"InputTensor": [4] * n, "offsets": [1] * n, "sizes": [2] * n, "strides": [2] * n},
    "SLICE1": window("InputTensor", "OutputTensor"),
    "SLICE_GRAD": window("OutputGradientTensor", "InputGradientTensor"),
    "JOIN": parts("InputTensors", "OutputTensor"),
    "SPLIT": parts("OutputTensors", "InputTensor"),
    "PADDING": padding,
    "PADDING1": padding,
    "TILE": lambda n: {"OutputTensor": [6] * n, "repeats": [3] * n},
    "UPSAMPLE_2D": lambda n: {
        "InputTensor": [2] * n,
        "OutputTensor": [*[2] * (n - 2), 6, 4],
        "scale_size": Size2D(width=2, height=3),
    },
    "SPACE_TO_DEPTH": depth("OutputTensor", "InputTensor"),
    "SPACE_TO_DEPTH1": depth("OutputTensor", "InputTensor"),
    "DEPTH_TO_SPACE": depth("InputTensor", "OutputTensor"),
    "DEPTH_TO_SPACE1": depth("InputTensor", "OutputTensor"),
    "RESAMPLE": resampling,
    "RESAMPLE1": resampling,
    "RESAMPLE2": resampling,
    "RESAMPLE3": resampling,
    "RESAMPLE_GRAD": resampling,
    "RESAMPLE_GRAD1": resampling,
    "GATHER": lambda n: {
        "InputTensor": [5, *[2] * (n - 1)],
        "IndicesTensor": [*[1] * (n - 1), 3],
        "OutputTensor": [3, *[2] * (n - 1)],
        "index_dimensions": 1,
    },
    "GATHER_ND": gathering_tuples("OutputTensor"),
    "GATHER_ND1": gathering_tuples("OutputTensor"),
    "SCATTER_ND": gathering_tuples("UpdatesTensor"),
    "ONE_HOT": lambda n: {"IndicesTensor": one_at_axis(n)},
    "REVERSE_SUBSEQUENCES": lambda n: {"SequenceLengthsTensor": one_at_axis(n)},
    "TOP_K": top,
    "TOP_K1": top,
    "NONZERO_COORDINATES": lambda n: {"OutputCoordinatesTensor": [*[1] * (n - 2), 2**n, n]},
    "REDUCE": lambda n: {"OutputTensor": one_at_axis(n), "axes": [0]},
    "ARGMIN": lambda n: {"OutputTensor": one_at_axis(n), "axes": [0]},
    "ARGMAX": lambda n: {"OutputTensor": one_at_axis(n), "axes": [0]},
    "ACTIVATION_SOFTMAX": rows,
    "ACTIVATION_LOG_SOFTMAX": rows,
    "ACTIVATION_HARDMAX": rows,
    "VALUE_SCALE_2D": lambda _: {
        "InputTensor": [2, 3, 4, 5],
        "OutputTensor": [2, 3, 4, 5],
        "bias": [0.0] * 3,
    },
    "QUANTIZE": quantization,
    "DEQUANTIZE": quantization,
    "RANDOM_GENERATOR": lambda n: {
        "InputStateTensor": [*[1] * (n - 1), 6],
        "OutputStateTensor": [*[1] * (n - 1), 6],
    },
}

STACKED: dict[str, Recipe] = {
    name: stacked_attention(name)
    for name in ("StackedQueryKeyTensor", "StackedKeyValueTensor", "StackedQueryKeyValueTensor")
}
"""Recipes of the attentions that have that tensor."""
