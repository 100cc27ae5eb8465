"""Facts about operators on onnx's evaluator: a row for each operator that needs one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from opendml.frontends.onnx import evaluator_rules as rules
from opendml.frontends.onnx.node import OnnxNode

Fault = tuple[Callable[[OnnxNode, Mapping[str, Any]], bool], str]


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts about one operator.

    Args:
        grows: whether results may be larger than the product of the inputs' element counts.
        in_python: whether the evaluator loops over elements in Python.
        copies_windows: whether the evaluator copies the window of each element.
        unreliable: whether the evaluator is wrong at times, so that DirectML is preferred even for known
            inputs.
        random: whether results differ from run to run.
        size: the size of the first result, where ONNX's inference knows too little or overflows.
        steps: the steps for each element of a result; None: one.
        fault: when the evaluator computes something else than ONNX says, and what.
    """

    grows: bool = False
    in_python: bool = False
    copies_windows: bool = False
    unreliable: bool = False
    random: bool = False
    size: Callable[[OnnxNode, rules.Sizes, rules.Contents], rules.ResultSize | None] | None = None
    steps: Callable[[OnnxNode, rules.Contents], int] | None = None
    fault: Fault | None = None


_PADDING: Fault = (rules.pads_otherwise, "does not pad such windows as ONNX says")
_LENGTHS: Fault = (rules.has_short_sequences, "does not read the lengths of sequences")
_ONE_PIXEL: Fault = (rules.resizes_to_one_pixel, "places one pixel of pytorch_half_pixel elsewhere")
_NONE = Facts()

_FACTS: Mapping[str, Facts] = {
    "AffineGrid": Facts(grows=True),
    "Attention": Facts(unreliable=True, steps=rules.attention_steps),
    "AveragePool": Facts(
        grows=True, in_python=True, unreliable=True, steps=rules.window_steps, fault=_PADDING
    ),
    "Bernoulli": Facts(random=True),
    "BlackmanWindow": Facts(grows=True),
    "Cast": Facts(size=rules.cast_strings_size),
    "CenterCropPad": Facts(grows=True),
    "Col2Im": Facts(grows=True, in_python=True),
    "ConcatFromSequence": Facts(size=rules.concatenated_size),
    "ConstantOfShape": Facts(grows=True),
    "Conv": Facts(grows=True, copies_windows=True, steps=rules.filter_steps),
    "ConvInteger": Facts(grows=True, copies_windows=True, steps=rules.filter_steps),
    "ConvTranspose": Facts(grows=True, steps=rules.filter_steps),
    "DFT": Facts(grows=True),
    "DeformConv": Facts(in_python=True, copies_windows=True, steps=rules.filter_steps),
    "Det": Facts(steps=rules.matrix_steps),
    "DictVectorizer": Facts(in_python=True),
    "Einsum": Facts(steps=rules.einsum_steps),
    "Expand": Facts(grows=True),
    "EyeLike": Facts(size=rules.square_size),
    "GRU": Facts(unreliable=True, steps=rules.recurrent_steps, fault=_LENGTHS),
    "GatherElements": Facts(unreliable=True),
    "GatherND": Facts(in_python=True),
    "Gemm": Facts(steps=rules.matrix_steps),
    "GlobalAveragePool": Facts(unreliable=True),
    "GlobalMaxPool": Facts(unreliable=True),
    "GridSample": Facts(in_python=True, unreliable=True),
    "HammingWindow": Facts(grows=True),
    "HannWindow": Facts(grows=True),
    "LSTM": Facts(unreliable=True, steps=rules.recurrent_steps, fault=_LENGTHS),
    "LabelEncoder": Facts(in_python=True),
    "LinearAttention": Facts(steps=rules.attention_steps),
    "LpPool": Facts(grows=True, in_python=True, unreliable=True, steps=rules.window_steps, fault=_PADDING),
    "MatMul": Facts(steps=rules.matrix_steps),
    "MatMulInteger": Facts(steps=rules.matrix_steps),
    "MaxPool": Facts(grows=True, in_python=True, unreliable=True, steps=rules.window_steps, fault=_PADDING),
    "MaxRoiPool": Facts(grows=True),
    "MaxUnpool": Facts(grows=True, in_python=True),
    "MeanVarianceNormalization": Facts(unreliable=True),
    "MelWeightMatrix": Facts(grows=True, in_python=True),
    "Multinomial": Facts(grows=True, random=True),
    "OneHot": Facts(grows=True),
    "Pad": Facts(grows=True, size=rules.padded_size),
    "QLinearConv": Facts(grows=True, copies_windows=True, steps=rules.filter_steps),
    "QLinearMatMul": Facts(steps=rules.matrix_steps),
    "RNN": Facts(unreliable=True, steps=rules.recurrent_steps, fault=_LENGTHS),
    "RandomNormal": Facts(grows=True, random=True),
    "RandomNormalLike": Facts(random=True),
    "RandomUniform": Facts(grows=True, random=True),
    "RandomUniformLike": Facts(random=True),
    "Range": Facts(grows=True, size=rules.range_size),
    "Resize": Facts(
        grows=True,
        in_python=True,
        unreliable=True,
        size=rules.resized_size,
        steps=rules.interpolated_steps,
        fault=_ONE_PIXEL,
    ),
    "RoiAlign": Facts(grows=True, in_python=True, steps=rules.sampled_steps),
    "RotaryEmbedding": Facts(unreliable=True),
    "SVMClassifier": Facts(in_python=True),
    "SVMRegressor": Facts(in_python=True),
    "ScatterElements": Facts(in_python=True),
    "ScatterND": Facts(in_python=True),
    "SequenceConstruct": Facts(in_python=True),
    "Shape": Facts(unreliable=True),
    "SplitToSequence": Facts(in_python=True, size=rules.sequence_size),
    "StringConcat": Facts(size=rules.joined_strings_size),
    "StringNormalizer": Facts(in_python=True),
    "StringSplit": Facts(in_python=True, size=rules.split_strings_size),
    "TfIdfVectorizer": Facts(in_python=True, size=rules.word_counts_size),
    "Tile": Facts(grows=True, size=rules.tiled_size),
    "TreeEnsemble": Facts(in_python=True, steps=rules.ensemble_steps),
    "TreeEnsembleClassifier": Facts(in_python=True, steps=rules.ensemble_steps),
    "TreeEnsembleRegressor": Facts(in_python=True, steps=rules.ensemble_steps),
    "Upsample": Facts(
        grows=True, in_python=True, unreliable=True, size=rules.resized_size, steps=rules.interpolated_steps
    ),
}


def facts_of(node: OnnxNode) -> Facts:
    """Return the facts about a node's operator. Operators of the same name in other domains share them."""
    return _FACTS.get(node.operator, _NONE)


def fault(node: OnnxNode, contents: Mapping[str, Any]) -> str | None:
    """Return what the evaluator does wrong with a node; None: no fault is known."""
    applies, reason = facts_of(node).fault or (None, "")
    return reason if applies is not None and not node.domain and applies(node, contents) else None
