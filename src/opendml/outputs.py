"""What the immediate functions of operators with several outputs return: named tuples of arrays.

Generated from opendml/spec/data by `python -m tools.generate`: change the data instead.
"""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")

__all__ = [
    "AdamOptimizerOutputs",
    "BatchNormalizationGradOutputs",
    "BatchNormalizationTrainingGradOutputs",
    "BatchNormalizationTrainingOutputs",
    "DynamicQuantizeLinearOutputs",
    "GruOutputs",
    "LstmOutputs",
    "MaxPooling1Outputs",
    "MaxPooling2Outputs",
    "MultiheadAttention1Outputs",
    "MultiheadAttentionOutputs",
    "NonzeroCoordinatesOutputs",
    "RandomGeneratorOutputs",
    "RnnOutputs",
    "RoiAlignGradOutputs",
    "TopK1Outputs",
    "TopKOutputs",
]


class MaxPooling1Outputs(NamedTuple, Generic[T]):
    """What `opendml.max_pooling1` returns; its docstring says more."""

    output: T
    output_indices: T


class TopKOutputs(NamedTuple, Generic[T]):
    """What `opendml.top_k` returns; its docstring says more."""

    output_value: T
    output_index: T


class BatchNormalizationGradOutputs(NamedTuple, Generic[T]):
    """What `opendml.batch_normalization_grad` returns; its docstring says more."""

    output_gradient: T
    output_scale_gradient: T
    output_bias_gradient: T


class BatchNormalizationTrainingGradOutputs(NamedTuple, Generic[T]):
    """What `opendml.batch_normalization_training_grad` returns; its docstring says more."""

    output_gradient: T
    output_scale_gradient: T
    output_bias_gradient: T


class RnnOutputs(NamedTuple, Generic[T]):
    """What `opendml.rnn` returns; its docstring says more."""

    output_sequence: T | None
    output_single: T | None


class LstmOutputs(NamedTuple, Generic[T]):
    """What `opendml.lstm` returns; its docstring says more."""

    output_sequence: T | None
    output_single: T | None
    output_cell_single: T | None


class GruOutputs(NamedTuple, Generic[T]):
    """What `opendml.gru` returns; its docstring says more."""

    output_sequence: T | None
    output_single: T | None


class MaxPooling2Outputs(NamedTuple, Generic[T]):
    """What `opendml.max_pooling2` returns; its docstring says more."""

    output: T
    output_indices: T


class TopK1Outputs(NamedTuple, Generic[T]):
    """What `opendml.top_k1` returns; its docstring says more."""

    output_value: T
    output_index: T


class RandomGeneratorOutputs(NamedTuple, Generic[T]):
    """What `opendml.random_generator` returns; its docstring says more."""

    output: T
    output_state: T


class NonzeroCoordinatesOutputs(NamedTuple, Generic[T]):
    """What `opendml.nonzero_coordinates` returns; its docstring says more."""

    output_count: T
    output_coordinates: T


class AdamOptimizerOutputs(NamedTuple, Generic[T]):
    """What `opendml.adam_optimizer` returns; its docstring says more."""

    output_parameters: T
    output_first_moment: T
    output_second_moment: T


class DynamicQuantizeLinearOutputs(NamedTuple, Generic[T]):
    """What `opendml.dynamic_quantize_linear` returns; its docstring says more."""

    output: T
    output_scale: T
    output_zero_point: T


class RoiAlignGradOutputs(NamedTuple, Generic[T]):
    """What `opendml.roi_align_grad` returns; its docstring says more."""

    output_gradient: T | None
    output_roi_gradient: T | None


class BatchNormalizationTrainingOutputs(NamedTuple, Generic[T]):
    """What `opendml.batch_normalization_training` returns; its docstring says more."""

    output: T
    output_mean: T
    output_variance: T


class MultiheadAttentionOutputs(NamedTuple, Generic[T]):
    """What `opendml.multihead_attention` returns; its docstring says more."""

    output: T
    output_present_key: T | None
    output_present_value: T | None


class MultiheadAttention1Outputs(NamedTuple, Generic[T]):
    """What `opendml.multihead_attention1` returns; its docstring says more."""

    output: T
    output_present_key: T | None
    output_present_value: T | None
