"""Scales and zero points, and other tensors of one element."""

from __future__ import annotations

import pytest

from opendml.spec.enums import QuantizationType, TensorDataType
from tests.spec.rules.breaking import Broken, Valid

BROKEN = [
    Broken(
        "filter_parameters",
        "CONVOLUTION_INTEGER",
        {"FilterZeroPointTensor": [1, 4, 1, 1]},
        [
            (
                ".FilterZeroPointTensor: sizes [1, 4, 1, 1]; "
                "must be [1, 1, 1, 1], or [1, 8, 1, 1], one for each output channel"
            )
        ],
    ),
    Broken(
        "filter_parameters",
        "QUANTIZED_LINEAR_CONVOLUTION",
        {"FilterScaleTensor": [1, 1, 8, 1]},
        [
            (
                ".FilterScaleTensor: sizes [1, 1, 8, 1]; "
                "must be [1, 1, 1, 1], or [1, 8, 1, 1], one for each output channel"
            )
        ],
    ),
    Broken(
        "filter_parameters",
        "QUANTIZED_LINEAR_CONVOLUTION",
        {"FilterScaleTensor": [8]},
        [".FilterScaleTensor: sizes [8]; must be [1]"],
    ),
    Broken(
        "channel_parameters",
        "QUANTIZED_LINEAR_AVERAGE_POOLING",
        {"InputScaleTensor": [1, 2, 1, 1, 1]},
        [
            (
                ".InputScaleTensor: sizes [1, 2, 1, 1, 1]; "
                "must be [1, 1, 1, 1, 1], or [1, 3, 1, 1, 1], one for each channel"
            )
        ],
    ),
    Broken(
        "channel_parameters",
        "QUANTIZED_LINEAR_AVERAGE_POOLING",
        {"InputZeroPointTensor": [2, 3, 1, 1, 1]},
        [
            (
                ".InputZeroPointTensor: sizes [2, 3, 1, 1, 1]; "
                "must be [1, 1, 1, 1, 1], or [1, 3, 1, 1, 1], one for each channel"
            )
        ],
    ),
    Broken(
        "channel_parameters",
        "QUANTIZED_LINEAR_AVERAGE_POOLING",
        {"OutputScaleTensor": [1, 3, 1, 1]},
        [
            (
                ".OutputScaleTensor: sizes [1, 3, 1, 1]; "
                "must be [1, 1, 1, 1], or [3, 1, 1, 1], one for each channel"
            )
        ],
    ),
    Broken(
        "channel_parameters",
        "QUANTIZED_LINEAR_AVERAGE_POOLING",
        {"OutputZeroPointTensor": [1, 1, 3]},
        [".OutputZeroPointTensor: sizes [1, 1, 3]; must be [1, 1, 1]"],
    ),
    Broken(
        "matrix_parameters",
        "MATRIX_MULTIPLY_INTEGER",
        {"AZeroPointTensor": [1, 1, 1, 3]},
        [(".AZeroPointTensor: sizes [1, 1, 1, 3]; must be [1, 1, 1, 1], or [1, 1, 3, 1], one for each row")],
    ),
    Broken(
        "matrix_parameters",
        "MATRIX_MULTIPLY_INTEGER",
        {"AZeroPointTensor": [3]},
        [".AZeroPointTensor: sizes [3]; must be [1]"],
    ),
    Broken(
        "matrix_parameters",
        "MATRIX_MULTIPLY_INTEGER_TO_FLOAT",
        {"BScaleTensor": [1, 1, 5, 1]},
        [(".BScaleTensor: sizes [1, 1, 5, 1]; must be [1, 1, 1, 1], or [1, 1, 1, 5], one for each column")],
    ),
    Broken(
        "matrix_parameters",
        "MATRIX_MULTIPLY_INTEGER_TO_FLOAT",
        {"AScaleTensor": [2, 1, 3, 1]},
        [(".AScaleTensor: sizes [2, 1, 3, 1]; must be [1, 1, 1, 1], or [1, 1, 3, 1], one for each row")],
    ),
    Broken(
        "matrix_parameters",
        "QUANTIZED_LINEAR_MATRIX_MULTIPLY",
        {"BZeroPointTensor": [1, 1, 1, 3]},
        [
            (
                ".BZeroPointTensor: sizes [1, 1, 1, 3]; "
                "must be [1, 1, 1, 1], or [1, 1, 1, 5], one for each column"
            )
        ],
    ),
    Broken(
        "matrix_parameters",
        "QUANTIZED_LINEAR_MATRIX_MULTIPLY",
        {"OutputScaleTensor": [1, 1, 1, 5]},
        [(".OutputScaleTensor: sizes [1, 1, 1, 5]; must be [1, 1, 1, 1], or [1, 1, 3, 1], one for each row")],
    ),
    Broken(
        "matrix_parameters",
        "QUANTIZED_LINEAR_MATRIX_MULTIPLY",
        {"OutputZeroPointTensor": [1, 1, 5, 1]},
        [
            (
                ".OutputZeroPointTensor: sizes [1, 1, 5, 1]; "
                "must be [1, 1, 1, 1], or [1, 1, 3, 1], one for each row"
            )
        ],
    ),
    Broken(
        "scale_type",
        "ELEMENT_WISE_QUANTIZE_LINEAR",
        {"ScaleTensor": TensorDataType.FLOAT16},
        [".ScaleTensor: FLOAT16; must be FLOAT32 for an InputTensor of FLOAT32"],
    ),
    Broken(
        "scale_type",
        "ELEMENT_WISE_QUANTIZE_LINEAR",
        {"InputTensor": TensorDataType.INT32, "ScaleTensor": TensorDataType.FLOAT16},
        [".ScaleTensor: FLOAT16; must be FLOAT32 for an InputTensor of INT32"],
    ),
    Broken(
        "quantization_tensors",
        "QUANTIZE",
        {"QuantizationType": QuantizationType.SCALE},
        [".QuantizationTensors: 2; must be 1 for SCALE"],
    ),
    Broken(
        "quantization_tensors",
        "DEQUANTIZE",
        {"QuantizationTensors": [[1] * 8]},
        [".QuantizationTensors: 1; must be 2 for SCALE_ZERO_POINT"],
    ),
    Broken(
        "quantization_tensors",
        "DEQUANTIZE",
        {"QuantizationTensors": [TensorDataType.FLOAT32, TensorDataType.UINT8]},
        [(".QuantizationTensors[1]: UINT8; the zero point must have the type of the integer tensor, INT8")],
    ),
    Broken(
        "quantization_tensors",
        "QUANTIZE",
        {"QuantizationTensors": [TensorDataType.FLOAT16, TensorDataType.INT8]},
        [
            (
                ".QuantizationTensors[0]: FLOAT16; "
                "the scale must have the type of the floating-point tensor, FLOAT32"
            )
        ],
    ),
    Broken(
        "quantization_tensors",
        "DEQUANTIZE",
        {"QuantizationTensors": [[4, 1, 1, 1, 1, 1, 1, 1], [1] * 8]},
        [
            (
                ".QuantizationTensors[0]: sizes [4, 1, 1, 1, 1, 1, 1, 1]; "
                "each must divide that of the quantized tensor, [6, 6, 6, 6, 6, 6, 6, 6]"
            )
        ],
    ),
    Broken(
        "one_element",
        "CONVOLUTION_INTEGER",
        {"InputZeroPointTensor": [1, 4, 1, 1]},
        [".InputZeroPointTensor: sizes [1, 4, 1, 1]; must be one element, [1, 1, 1, 1]"],
    ),
    Broken(
        "one_element",
        "QUANTIZED_LINEAR_CONVOLUTION",
        {"OutputScaleTensor": [1, 8, 1, 1]},
        [".OutputScaleTensor: sizes [1, 8, 1, 1]; must be one element, [1, 1, 1, 1]"],
    ),
    Broken(
        "one_element",
        "DYNAMIC_QUANTIZE_LINEAR",
        {"OutputScaleTensor": [2, 1, 1, 1, 1, 1, 1, 1]},
        [
            (
                ".OutputScaleTensor: sizes [2, 1, 1, 1, 1, 1, 1, 1]; "
                "must be one element, [1, 1, 1, 1, 1, 1, 1, 1]"
            )
        ],
    ),
    Broken(
        "one_element",
        "ELEMENT_WISE_QUANTIZED_LINEAR_ADD",
        {"BZeroPointTensor": [1, 1, 1, 1, 1, 1, 1, 2]},
        [
            (
                ".BZeroPointTensor: sizes [1, 1, 1, 1, 1, 1, 1, 2]; "
                "must be one element, [1, 1, 1, 1, 1, 1, 1, 1]"
            )
        ],
    ),
    Broken(
        "one_element",
        "NONZERO_COORDINATES",
        {"OutputCountTensor": [2]},
        [".OutputCountTensor: sizes [2]; must be one element, [1]"],
    ),
    Broken(
        "one_element",
        "ADAM_OPTIMIZER",
        {"TrainingStepTensor": [1, 1, 2, 1]},
        [".TrainingStepTensor: sizes [1, 1, 2, 1]; must be one element, [1, 1, 1, 1]"],
    ),
]

VALID = [
    Valid(
        "QUANTIZED_LINEAR_AVERAGE_POOLING",
        {"OutputScaleTensor": [3, 1, 1, 1], "InputZeroPointTensor": None},
    ),
    Valid(
        "QUANTIZED_LINEAR_CONVOLUTION",
        {"FilterScaleTensor": [1], "FilterZeroPointTensor": [8, 1, 1]},
    ),
    Valid(
        "MATRIX_MULTIPLY_INTEGER",
        {"AZeroPointTensor": [3, 1], "BZeroPointTensor": [5]},
    ),
    Valid(
        "ELEMENT_WISE_QUANTIZE_LINEAR",
        {"InputTensor": TensorDataType.INT32},
    ),
    Valid(
        "ELEMENT_WISE_QUANTIZE_LINEAR",
        {"InputTensor": TensorDataType.FLOAT16, "ScaleTensor": TensorDataType.FLOAT16},
    ),
    Valid(
        "QUANTIZE",
        {"QuantizationType": QuantizationType.SCALE, "QuantizationTensors": [[6] * 8]},
    ),
]


@pytest.mark.parametrize("broken", BROKEN, ids=str)
def test_one_rule_is_broken(broken: Broken) -> None:
    broken.check()


@pytest.mark.parametrize("valid", VALID, ids=str)
def test_another_form_is_valid(valid: Valid) -> None:
    valid.check()
