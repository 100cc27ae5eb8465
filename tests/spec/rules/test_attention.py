"""Multi-head attention."""

from __future__ import annotations

import pytest

from opendml.spec.enums import MultiheadAttentionMaskType, TensorDataType
from opendml.spec.tensor_desc import TensorDesc
from tests.spec.rules.breaking import Broken, Valid, wrong_sizes

ATTENDED = "the query, key, value, heads and mask type given"

BROKEN = [
    Broken(
        "one_source_each",
        "MULTIHEAD_ATTENTION",
        {"KeyTensor": None},
        [
            (
                ".KeyTensor: missing; the key must have one source of "
                "KeyTensor, StackedQueryKeyTensor, StackedKeyValueTensor, StackedQueryKeyValueTensor"
            )
        ],
    ),
    Broken(
        "one_source_each",
        "MULTIHEAD_ATTENTION",
        {"QueryTensor": None},
        [
            (
                ".QueryTensor: missing; the query must have one source of "
                "QueryTensor, StackedQueryKeyTensor, StackedQueryKeyValueTensor"
            )
        ],
    ),
    Broken(
        "one_source_each",
        "MULTIHEAD_ATTENTION1",
        {"ValueTensor": None},
        [
            (
                ".ValueTensor: missing; the value must have one source of "
                "ValueTensor, StackedKeyValueTensor, StackedQueryKeyValueTensor"
            )
        ],
    ),
    Broken(
        "one_source_each",
        "MULTIHEAD_ATTENTION",
        {"KeyTensor": None, "PastKeyTensor": None, "PastValueTensor": None},
        [
            (
                ".KeyTensor: missing; the key must have one source of "
                "KeyTensor, StackedQueryKeyTensor, StackedKeyValueTensor, StackedQueryKeyValueTensor"
            )
        ],
    ),
    Broken(
        "one_source_each",
        "MULTIHEAD_ATTENTION1",
        {
            "StackedQueryKeyValueTensor": TensorDesc(TensorDataType.FLOAT32, [2, 3, 2, 3, 2]),
            "QueryTensor": None,
            "KeyTensor": None,
        },
        [".StackedQueryKeyValueTensor: given; the value must have one source, and ValueTensor is one"],
    ),
    Broken(
        "one_source_each",
        "MULTIHEAD_ATTENTION",
        {"StackedQueryKeyTensor": TensorDesc(TensorDataType.FLOAT32, [2, 3, 2, 2, 2])},
        [
            ".StackedQueryKeyTensor: given; the query must have one source, and QueryTensor is one",
            ".StackedQueryKeyTensor: given; the key must have one source, and KeyTensor is one",
        ],
    ),
    Broken(
        "whole_heads",
        "MULTIHEAD_ATTENTION",
        {"HeadCount": 3},
        [".QueryTensor.Sizes[4]: 4; must be a multiple of 3, the head count"],
    ),
    Broken(
        "whole_heads",
        "MULTIHEAD_ATTENTION",
        {"ValueTensor": [1, 1, 2, 5, 7]},
        [".ValueTensor.Sizes[4]: 7; must be a multiple of 2, the head count"],
    ),
    Broken(
        "whole_heads",
        "MULTIHEAD_ATTENTION1",
        {"KeyValueHeadCount": 4},
        [
            ".ValueTensor.Sizes[4]: 6; must be a multiple of 4, the head count",
            ".KeyValueHeadCount: 4; must divide QueryHeadCount, 2",
        ],
    ),
    Broken(
        "whole_heads",
        "MULTIHEAD_ATTENTION1",
        {"KeyValueHeadCount": 1},
        [".KeyValueHeadCount: 1; must be QueryHeadCount, 2, where query and key are stacked"],
        having="StackedQueryKeyTensor",
    ),
    Broken(
        "typed_mask",
        "MULTIHEAD_ATTENTION",
        {"MaskType": MultiheadAttentionMaskType.NONE},
        [".MaskType: NONE; must be another type while MaskTensor is given"],
    ),
    Broken(
        "typed_mask",
        "MULTIHEAD_ATTENTION1",
        {"MaskType": MultiheadAttentionMaskType.NONE},
        [".MaskType: NONE; must be another type while MaskTensor is given"],
    ),
    Broken(
        "attention_sizes",
        "MULTIHEAD_ATTENTION",
        {"QueryTensor": [2, 2, 3, 4]},
        [wrong_sizes("QueryTensor", [2, 2, 3, 4], "[1, 2, 3, 4]", ATTENDED)],
    ),
    Broken(
        "attention_sizes",
        "MULTIHEAD_ATTENTION",
        {"KeyTensor": [2, 5, 6]},
        [wrong_sizes("KeyTensor", [2, 5, 6], "[2, 5, 4]", ATTENDED)],
    ),
    Broken(
        "attention_sizes",
        "MULTIHEAD_ATTENTION",
        {"ValueTensor": [2, 6, 6]},
        [wrong_sizes("ValueTensor", [2, 6, 6], "[2, 5, 6]", ATTENDED)],
    ),
    Broken(
        "attention_sizes",
        "MULTIHEAD_ATTENTION",
        {"BiasTensor": [12]},
        [wrong_sizes("BiasTensor", [12], "[14]", ATTENDED)],
    ),
    Broken(
        "attention_sizes",
        "MULTIHEAD_ATTENTION",
        {"MaskTensor": [2, 2, 3, 5]},
        [wrong_sizes("MaskTensor", [2, 2, 3, 5], "[1 or 2, 1 or 2, 1 or 3, 1 or 9]", ATTENDED)],
    ),
    Broken(
        "attention_sizes",
        "MULTIHEAD_ATTENTION",
        {"MaskType": MultiheadAttentionMaskType.KEY_SEQUENCE_LENGTH},
        [wrong_sizes("MaskTensor", [1, 2, 1, 1, 9], "[1, 1, 1, 1, 2]", ATTENDED)],
    ),
    Broken(
        "attention_sizes",
        "MULTIHEAD_ATTENTION",
        {"MaskType": MultiheadAttentionMaskType.KEY_SEQUENCE_END_START, "MaskTensor": [2]},
        [wrong_sizes("MaskTensor", [2], "[2, 2]", ATTENDED)],
    ),
    Broken(
        "attention_sizes",
        "MULTIHEAD_ATTENTION",
        {"MaskType": MultiheadAttentionMaskType.KEY_QUERY_SEQUENCE_LENGTH_START_END, "MaskTensor": [7]},
        [wrong_sizes("MaskTensor", [7], "[8]", ATTENDED)],
    ),
    Broken(
        "attention_sizes",
        "MULTIHEAD_ATTENTION",
        {"RelativePositionBiasTensor": [2, 3, 3, 9]},
        [
            wrong_sizes(
                "RelativePositionBiasTensor", [2, 3, 3, 9], "[1 or 2, 1 or 2, 1 or 3, 1 or 9]", ATTENDED
            )
        ],
    ),
    Broken(
        "attention_sizes",
        "MULTIHEAD_ATTENTION",
        {"PastKeyTensor": [2, 2, 4, 3]},
        [wrong_sizes("PastKeyTensor", [2, 2, 4, 3], "[2, 2, 4, 2]", ATTENDED)],
    ),
    Broken(
        "attention_sizes",
        "MULTIHEAD_ATTENTION",
        {"PastValueTensor": [2, 2, 5, 3]},
        [wrong_sizes("PastValueTensor", [2, 2, 5, 3], "[2, 2, 4, 3]", ATTENDED)],
    ),
    Broken(
        "attention_output_sizes",
        "MULTIHEAD_ATTENTION",
        {"OutputTensor": [2, 3, 4]},
        [".OutputTensor: sizes [2, 3, 4]; must be [2, 3, 6] for the query, key, value and heads given"],
    ),
    Broken(
        "attention_output_sizes",
        "MULTIHEAD_ATTENTION",
        {"OutputPresentKeyTensor": [2, 2, 5, 2]},
        [
            wrong_sizes(
                "OutputPresentKeyTensor",
                [2, 2, 5, 2],
                "[2, 2, 9, 2]",
                "the query, key, value and heads given",
            )
        ],
    ),
    Broken(
        "attention_output_sizes",
        "MULTIHEAD_ATTENTION1",
        {"OutputPresentValueTensor": [2, 2, 9, 2]},
        [
            wrong_sizes(
                "OutputPresentValueTensor",
                [2, 2, 9, 2],
                "[2, 2, any, 3]",
                "the query, key, value and heads given",
            )
        ],
    ),
    Broken(
        "attention_sizes",
        "MULTIHEAD_ATTENTION1",
        {"PastSequenceLengthsTensor": [3]},
        [wrong_sizes("PastSequenceLengthsTensor", [3], "[2]", ATTENDED)],
    ),
    Broken(
        "attention_sizes",
        "MULTIHEAD_ATTENTION",
        {"StackedQueryKeyTensor": [2, 3, 2, 3, 2]},
        [wrong_sizes("StackedQueryKeyTensor", [2, 3, 2, 3, 2], "[2, 3, 2, 2, 2]", ATTENDED)],
        having="StackedQueryKeyTensor",
    ),
    Broken(
        "attention_sizes",
        "MULTIHEAD_ATTENTION",
        {"StackedKeyValueTensor": [2, 3, 1, 2, 2]},
        [wrong_sizes("StackedKeyValueTensor", [2, 3, 1, 2, 2], "[2, 3, 2, 2, 2]", ATTENDED)],
        having="StackedKeyValueTensor",
    ),
    Broken(
        "attention_sizes",
        "MULTIHEAD_ATTENTION",
        {"StackedQueryKeyValueTensor": [2, 3, 2, 2, 2]},
        [wrong_sizes("StackedQueryKeyValueTensor", [2, 3, 2, 2, 2], "[2, 3, 2, 3, 2]", ATTENDED)],
        having="StackedQueryKeyValueTensor",
    ),
    Broken(
        "given_together",
        "MULTIHEAD_ATTENTION",
        {"PastKeyTensor": None},
        [".PastKeyTensor: missing; required with PastValueTensor"],
    ),
]

VALID = [
    Valid(
        "MULTIHEAD_ATTENTION",
        {},
        having="StackedQueryKeyTensor",
    ),
    Valid(
        "MULTIHEAD_ATTENTION",
        {},
        having="StackedKeyValueTensor",
    ),
    Valid(
        "MULTIHEAD_ATTENTION1",
        {},
        having="StackedQueryKeyValueTensor",
    ),
    Valid(
        "MULTIHEAD_ATTENTION",
        {
            "KeyTensor": None,
            "ValueTensor": None,
            "MaskTensor": [2, 1, 1, 4],
            "RelativePositionBiasTensor": [1, 2, 3, 4],
            "OutputPresentKeyTensor": None,
            "OutputPresentValueTensor": None,
        },
    ),
    Valid(
        "MULTIHEAD_ATTENTION",
        {"MaskType": MultiheadAttentionMaskType.KEY_SEQUENCE_LENGTH, "MaskTensor": [1, 2]},
    ),
    Valid(
        "MULTIHEAD_ATTENTION",
        {"MaskType": MultiheadAttentionMaskType.KEY_SEQUENCE_END_START, "MaskTensor": [1, 2, 2]},
    ),
    Valid(
        "MULTIHEAD_ATTENTION",
        {"MaskType": MultiheadAttentionMaskType.KEY_QUERY_SEQUENCE_LENGTH_START_END, "MaskTensor": [8]},
    ),
    Valid(
        "MULTIHEAD_ATTENTION",
        {"MaskTensor": None},
    ),
    Valid(
        "MULTIHEAD_ATTENTION1",
        {
            "QueryHeadCount": 4,
            "KeyValueHeadCount": 2,
            "QueryTensor": [2, 3, 8],
            "BiasTensor": [18],
            "RelativePositionBiasTensor": [2, 4, 3, 9],
            "OutputTensor": [2, 3, 12],
        },
    ),
    Valid(
        "MULTIHEAD_ATTENTION1",
        {
            "PastKeyTensor": None,
            "PastValueTensor": None,
            "MaskTensor": None,
            "RelativePositionBiasTensor": None,
            "OutputPresentKeyTensor": [2, 2, 64, 2],
            "OutputPresentValueTensor": [2, 2, 64, 3],
        },
    ),
]


@pytest.mark.parametrize("broken", BROKEN, ids=str)
def test_one_rule_is_broken(broken: Broken) -> None:
    broken.check()


@pytest.mark.parametrize("valid", VALID, ids=str)
def test_another_form_is_valid(valid: Valid) -> None:
    valid.check()
