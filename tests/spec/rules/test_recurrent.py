"""Recurrent networks."""

from __future__ import annotations

import pytest

from opendml.spec.descs import ActivationRelu
from opendml.spec.enums import RecurrentNetworkDirection
from tests.spec.rules.breaking import Broken, Valid, wrong_sizes

RECURRENT = "the input, hidden size and direction given"

BROKEN = [
    Broken(
        "recurrent_sizes",
        "RNN",
        {"InputTensor": [2, 5, 2, 3]},
        [wrong_sizes("InputTensor", [2, 5, 2, 3], "[1, any, any, any]", RECURRENT)],
    ),
    Broken(
        "recurrent_sizes",
        "RNN",
        {"WeightTensor": [1, 1, 5, 3]},
        [wrong_sizes("WeightTensor", [1, 1, 5, 3], "[1, 1, 4, 3]", RECURRENT)],
    ),
    Broken(
        "recurrent_sizes",
        "GRU",
        {"RecurrenceTensor": [1, 1, 11, 4]},
        [wrong_sizes("RecurrenceTensor", [1, 1, 11, 4], "[1, 1, 12, 4]", RECURRENT)],
    ),
    Broken(
        "recurrent_sizes",
        "LSTM",
        {"BiasTensor": [1, 1, 1, 16]},
        [wrong_sizes("BiasTensor", [1, 1, 1, 16], "[1, 1, 1, 32]", RECURRENT)],
    ),
    Broken(
        "recurrent_sizes",
        "GRU",
        {"HiddenInitTensor": [1, 1, 4, 2]},
        [wrong_sizes("HiddenInitTensor", [1, 1, 4, 2], "[1, 1, 2, 4]", RECURRENT)],
    ),
    Broken(
        "recurrent_sizes",
        "LSTM",
        {"CellMemInitTensor": [1, 2, 2, 4]},
        [wrong_sizes("CellMemInitTensor", [1, 2, 2, 4], "[1, 1, 2, 4]", RECURRENT)],
    ),
    Broken(
        "recurrent_sizes",
        "RNN",
        {"SequenceLengthsTensor": [1, 1, 2, 1]},
        [wrong_sizes("SequenceLengthsTensor", [1, 1, 2, 1], "[1, 1, 1, 2]", RECURRENT)],
    ),
    Broken(
        "recurrent_sizes",
        "LSTM",
        {"PeepholeTensor": [1, 1, 1, 16]},
        [wrong_sizes("PeepholeTensor", [1, 1, 1, 16], "[1, 1, 1, 12]", RECURRENT)],
    ),
    Broken(
        "recurrent_output_sizes",
        "RNN",
        {"OutputSequenceTensor": [1, 1, 2, 4]},
        [wrong_sizes("OutputSequenceTensor", [1, 1, 2, 4], "[5, 1, 2, 4]", RECURRENT)],
    ),
    Broken(
        "recurrent_output_sizes",
        "GRU",
        {"OutputSingleTensor": [5, 1, 2, 4]},
        [wrong_sizes("OutputSingleTensor", [5, 1, 2, 4], "[1, 1, 2, 4]", RECURRENT)],
    ),
    Broken(
        "recurrent_output_sizes",
        "LSTM",
        {"OutputCellSingleTensor": [1, 1, 2, 5]},
        [wrong_sizes("OutputCellSingleTensor", [1, 1, 2, 5], "[1, 1, 2, 4]", RECURRENT)],
    ),
    Broken(
        "activations_of_gates",
        "RNN",
        {"ActivationDescs": [ActivationRelu()] * 2},
        [".ActivationDescs: 2 activations; must be 1 for FORWARD"],
    ),
    Broken(
        "activations_of_gates",
        "GRU",
        {"ActivationDescs": [ActivationRelu()]},
        [".ActivationDescs: 1 activation; must be 2 for FORWARD"],
    ),
    Broken(
        "activations_of_gates",
        "LSTM",
        {"ActivationDescs": [ActivationRelu()] * 4},
        [".ActivationDescs: 4 activations; must be 3 for FORWARD"],
    ),
    Broken(
        "some_output",
        "RNN",
        {"OutputSequenceTensor": None, "OutputSingleTensor": None},
        [".OutputSequenceTensor: missing, as are the other outputs; at least one is required"],
    ),
    Broken(
        "some_output",
        "LSTM",
        {"OutputSequenceTensor": None, "OutputSingleTensor": None, "OutputCellSingleTensor": None},
        [".OutputSequenceTensor: missing, as are the other outputs; at least one is required"],
    ),
]

VALID = [
    Valid(
        "GRU",
        {
            "Direction": RecurrentNetworkDirection.BIDIRECTIONAL,
            "WeightTensor": [1, 2, 12, 3],
            "RecurrenceTensor": [1, 2, 12, 4],
            "BiasTensor": [1, 1, 2, 24],
            "HiddenInitTensor": None,
            "OutputSequenceTensor": [5, 2, 2, 4],
            "OutputSingleTensor": [1, 2, 2, 4],
            "ActivationDescs": [ActivationRelu()] * 4,
        },
    ),
    Valid(
        "LSTM",
        {"OutputSequenceTensor": None, "OutputSingleTensor": None},
    ),
    Valid(
        "RNN",
        {"Direction": RecurrentNetworkDirection.BACKWARD},
    ),
]


@pytest.mark.parametrize("broken", BROKEN, ids=str)
def test_one_rule_is_broken(broken: Broken) -> None:
    broken.check()


@pytest.mark.parametrize("valid", VALID, ids=str)
def test_another_form_is_valid(valid: Valid) -> None:
    valid.check()
