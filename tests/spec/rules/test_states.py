"""The state of a random generator."""

from __future__ import annotations

import pytest

from tests.spec.rules.breaking import Broken, Valid, wrong_sizes

BROKEN = [
    Broken(
        "counter_and_key",
        "RANDOM_GENERATOR",
        {"InputStateTensor": [1, 1, 1, 1, 1, 1, 1, 5], "OutputStateTensor": [1, 1, 1, 1, 1, 1, 1, 5]},
        [
            wrong_sizes(
                "InputStateTensor",
                [1, 1, 1, 1, 1, 1, 1, 5],
                "[1, 1, 1, 1, 1, 1, 1, 6]",
                "a counter of 4 words and a key of 2",
            )
        ],
    ),
    Broken(
        "counter_and_key",
        "RANDOM_GENERATOR",
        {"InputStateTensor": [1, 1, 1, 1, 1, 1, 2, 6], "OutputStateTensor": None},
        [
            wrong_sizes(
                "InputStateTensor",
                [1, 1, 1, 1, 1, 1, 2, 6],
                "[1, 1, 1, 1, 1, 1, 1, 6]",
                "a counter of 4 words and a key of 2",
            )
        ],
    ),
]

VALID = [
    Valid(
        "RANDOM_GENERATOR",
        {"InputStateTensor": [6], "OutputStateTensor": [6], "OutputTensor": [7, 1]},
    ),
]


@pytest.mark.parametrize("broken", BROKEN, ids=str)
def test_one_rule_is_broken(broken: Broken) -> None:
    broken.check()


@pytest.mark.parametrize("valid", VALID, ids=str)
def test_another_form_is_valid(valid: Valid) -> None:
    valid.check()
