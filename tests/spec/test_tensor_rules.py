"""What a tensor desc must fulfil by itself: each rule broken, its message read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opendml.spec.descs import ActivationCelu, DynamicQuantizeLinear, Quantize, Rnn
from opendml.spec.enums import FeatureLevel, QuantizationType, TensorDataType, TensorFlags
from opendml.spec.tensor_desc import TensorDesc
from opendml.spec.validator import failures
from tests.spec.valid_descs import F16, F32, celu, valid_desc

LARGEST = 2**32 - 1
ALIGNMENT = "must be 0 or a power of two of at least the element's 4 bytes, below 2^32"


def input_failures(tensor: Any) -> list[str]:
    """Failures of a CELU's input, which may repeat elements; its output is packed and of the same sizes."""
    desc = celu(tensor, TensorDesc(tensor.data_type, tensor.sizes))
    return [message for message in failures(desc) if ".InputTensor" in message]


def output_failures(tensor: Any) -> list[str]:
    desc = celu(TensorDesc(tensor.data_type, tensor.sizes), tensor)
    return [message for message in failures(desc) if ".OutputTensor" in message]


@pytest.mark.parametrize(
    "tensor",
    [
        TensorDesc(F32, [1]),
        TensorDesc(F16, [1, 2, 3, 4, 5, 6, 7, 8]),
        TensorDesc(F32, [LARGEST]),
        TensorDesc(F32, [65535, 65537]),
        TensorDesc(F32, [2, 3], [3, 1]),
        TensorDesc(F32, [2, 3], [1, 2]),
        TensorDesc(F32, [2, 3], [100, 7]),
        TensorDesc(F32, [2, 3], [3, 2]),
        TensorDesc(F32, [1, 3], [0, 1]),
        TensorDesc(F32, [2, 3], total_tensor_size_in_bytes=24),
        TensorDesc(F32, [2, 3], total_tensor_size_in_bytes=2**40),
        TensorDesc(F16, [3], total_tensor_size_in_bytes=8),
        TensorDesc(F16, [3], guaranteed_base_offset_alignment=2),
        TensorDesc(F32, [3], guaranteed_base_offset_alignment=2**31),
    ],
)
def test_accepts(tensor: TensorDesc) -> None:
    assert input_failures(tensor) == []
    assert output_failures(tensor) == []


@pytest.mark.parametrize("strides", [[0, 1], [0, 0], [1, 1], [2, 1]])
def test_an_input_may_repeat_elements(strides: list[int]) -> None:
    assert input_failures(TensorDesc(F32, [2, 3], strides)) == []


def test_an_input_may_be_owned() -> None:
    assert input_failures(TensorDesc(F32, [2], flags=TensorFlags.OWNED_BY_DML)) == []


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (TensorDesc(F32, [2, 0]), ".Sizes[1]: 0; must be a whole number from 1 to 4294967295"),
        (TensorDesc(F32, [-1]), ".Sizes[0]: -1; must be a whole number from 1 to 4294967295"),
        (TensorDesc(F32, [2**32]), ".Sizes[0]: 4294967296; must be a whole number from 1 to 4294967295"),
        (TensorDesc(F32, [2.0]), ".Sizes[0]: 2.0; must be a whole number from 1 to 4294967295"),  # type: ignore[list-item]
        (TensorDesc(F32, [True]), ".Sizes[0]: True; must be a whole number from 1 to 4294967295"),
        (TensorDesc(F32, "12"), ".Sizes: '12'; must be a sequence of whole numbers"),  # type: ignore[arg-type]
        (TensorDesc(F32, None), ".Sizes: None; must be a sequence of whole numbers"),  # type: ignore[arg-type]
        (
            TensorDesc(F32, np.ones((1, 2))),  # type: ignore[arg-type]
            ".Sizes[0]: [1.0, 1.0]; must be a whole number from 1 to 4294967295",
        ),
        (TensorDesc(F32, []), ": 0 dimensions; DML_FEATURE_LEVEL_3_0 and above allow 1 to 8"),
        (TensorDesc(F32, [1] * 1000), ": 1000 dimensions; DML_FEATURE_LEVEL_3_0 and above allow 1 to 8"),
        (
            TensorDesc(F32, [65536, 65536]),
            ".Sizes: [65536, 65536] are 4294967296 elements; a tensor has at most 4294967295",
        ),
        (
            TensorDesc(F32, [2**31] * 8),
            f".Sizes: {[2**31] * 8} are {2**248} elements; a tensor has at most 4294967295",
        ),
        (TensorDesc(F32, [2, 3], [1]), ".Strides: 1 strides for 2 dimensions; must be one for each"),
        (TensorDesc(F32, [2], 1), ".Strides: 1; must be a sequence of whole numbers, or None"),  # type: ignore[arg-type]
        (TensorDesc(F32, [2], [-1]), ".Strides[0]: -1; must be a whole number from 0 to 4294967295"),
        (
            TensorDesc(F32, [2], [2**32]),
            ".Strides[0]: 4294967296; must be a whole number from 0 to 4294967295",
        ),
        (TensorDesc(F32, [2], ["1"]), ".Strides[0]: '1'; must be a whole number from 0 to 4294967295"),  # type: ignore[list-item]
        (
            TensorDesc(F32, [3], [2**31]),
            ".Strides: [2147483648] reach over 4294967297 elements; a tensor spans at most 4294967295",
        ),
        (TensorDesc(F32, [2], flags=TensorFlags(2)), ".Flags: 0x2 are no known flags"),
        (TensorDesc(F32, [2], flags=TensorFlags(0x101)), ".Flags: 0x100 are no known flags"),
        (TensorDesc(F32, [2], flags=1), ".Flags: 1; must be TensorFlags"),  # type: ignore[arg-type]
        (
            TensorDesc(F32, [3], total_tensor_size_in_bytes=14),
            ".TotalTensorSizeInBytes: 14; must be a multiple of 4",
        ),
        (
            TensorDesc(F32, [3], total_tensor_size_in_bytes=8),
            ".TotalTensorSizeInBytes: 8; sizes, strides and type need at least 12",
        ),
        (
            TensorDesc(F16, [2, 2], [5, 1], total_tensor_size_in_bytes=12),
            ".TotalTensorSizeInBytes: 12; sizes, strides and type need at least 16",
        ),
        (
            TensorDesc(F32, [3], total_tensor_size_in_bytes=2**64),
            ".TotalTensorSizeInBytes: 18446744073709551616; must be a whole number from 0 to "
            "18446744073709551615, or None",
        ),
        (
            TensorDesc(F32, [3], total_tensor_size_in_bytes="12"),  # type: ignore[arg-type]
            ".TotalTensorSizeInBytes: '12'; must be a whole number from 0 to 18446744073709551615, or None",
        ),
        (
            TensorDesc(F32, [3], guaranteed_base_offset_alignment=24),
            ".GuaranteedBaseOffsetAlignment: 24; " + ALIGNMENT,
        ),
        (
            TensorDesc(F32, [3], guaranteed_base_offset_alignment=2),
            ".GuaranteedBaseOffsetAlignment: 2; " + ALIGNMENT,
        ),
        (
            TensorDesc(F16, [3], guaranteed_base_offset_alignment=2**32),
            ".GuaranteedBaseOffsetAlignment: 4294967296; " + ALIGNMENT.replace("4 bytes", "2 bytes"),
        ),
        (
            TensorDesc(F32, [3], guaranteed_base_offset_alignment=None),  # type: ignore[arg-type]
            ".GuaranteedBaseOffsetAlignment: None; " + ALIGNMENT,
        ),
        (TensorDesc(1, [3]), ".DataType: 1; must be a TensorDataType"),  # type: ignore[arg-type]
        (TensorDesc("FLOAT33", [3]), ".DataType: 'FLOAT33'; must be a TensorDataType"),
        (
            TensorDesc(TensorDataType.UNKNOWN, [3]),
            ": UNKNOWN; DML_FEATURE_LEVEL_3_0 and above allow FLOAT32, FLOAT16",
        ),
    ],
)
def test_refuses(tensor: TensorDesc, message: str) -> None:
    assert input_failures(tensor) == [f"ACTIVATION_CELU.InputTensor{message}"]


@pytest.mark.parametrize("strides", [[0, 1], [0, 0], [1, 1], [2, 1]])
def test_an_output_must_not_overlap_itself(strides: list[int]) -> None:
    expected = (
        f"ACTIVATION_CELU.OutputTensor.Strides: {strides} put several elements of sizes [2, 3] at one place; "
        "an output must not overlap itself"
    )
    assert output_failures(TensorDesc(F32, [2, 3], strides)) == [expected]


def test_an_output_cannot_be_owned() -> None:
    expected = "ACTIVATION_CELU.OutputTensor.Flags: OWNED_BY_DML; only inputs can be owned"
    assert output_failures(TensorDesc(F32, [2], flags=TensorFlags.OWNED_BY_DML)) == [expected]


def test_some_operators_take_no_owned_tensors() -> None:
    desc = valid_desc("RNN", FeatureLevel.LEVEL_6_4)
    assert isinstance(desc, Rnn)
    assert desc.weight_tensor is not None
    weight = TensorDesc(F32, desc.weight_tensor.sizes, flags=TensorFlags.OWNED_BY_DML)
    expected = "RNN.WeightTensor.Flags: OWNED_BY_DML; RNN takes no owned tensors"
    assert failures(desc.replace(weight_tensor=weight)) == [expected]


def test_all_failures_of_a_tensor_are_listed() -> None:
    tensor = TensorDesc(
        TensorDataType.INT8,
        [0, 2],
        [1],
        TensorFlags(4),
        total_tensor_size_in_bytes=3,
        guaranteed_base_offset_alignment=3,
    )
    found = failures(ActivationCelu(tensor, TensorDesc(F32, [1])))
    assert [message.split(";")[0].removeprefix("ACTIVATION_CELU.InputTensor") for message in found] == [
        ": INT8",
        ".Sizes[0]: 0",
        ".Flags: 0x4 are no known flags",
        ".TotalTensorSizeInBytes: 3",
        ".GuaranteedBaseOffsetAlignment: 3",
    ]


@pytest.mark.parametrize("value", [1, "x", [TensorDesc(F32, [1])], object])
def test_something_else_than_a_tensor(value: Any) -> None:
    [message] = failures(celu(value, TensorDesc(F32, [1])))
    assert message.startswith("ACTIVATION_CELU.InputTensor: ")
    assert message.endswith("; must be a TensorDesc")


def test_four_bit_tensors_pack_two_elements_a_byte() -> None:
    output = TensorDesc(TensorDataType.UINT4, [9], total_tensor_size_in_bytes=4)
    scale = TensorDesc(F32, [9])
    quantization = QuantizationType.SCALE
    desc = Quantize(scale, [scale], output, quantization_type=quantization)
    expected = "QUANTIZE.OutputTensor.TotalTensorSizeInBytes: 4; sizes, strides and type need at least 8"
    assert failures(desc) == [expected]


def test_a_tensor_of_an_array_is_named_by_its_index() -> None:
    output = TensorDesc(TensorDataType.UINT4, [9])
    scale = TensorDesc(F32, [9])
    desc = Quantize(scale, [scale, TensorDesc(F32, [0])], output, quantization_type=QuantizationType.SCALE)
    expected = "QUANTIZE.QuantizationTensors[1].Sizes[0]: 0; must be a whole number from 1 to 4294967295"
    assert failures(desc) == [expected]


def test_dynamic_quantize_output_types_are_independent() -> None:
    """No rule of equal types binds tensors that the page leaves free."""
    number = TensorDesc(F32, [1])
    byte = TensorDesc(TensorDataType.UINT8, [1])
    assert failures(DynamicQuantizeLinear(number, byte, number, byte)) == []
