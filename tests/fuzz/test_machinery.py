"""Cases that fail, crash or hang are seen, and made simple."""

from __future__ import annotations

import re

import numpy as np
import pytest

from opendml import FLOAT32, INT32, TensorDesc, descs
from opendml.spec.enums import MultiheadAttentionMaskType
from opendml.spec.validator import failures
from tests.for_each import for_each
from tests.fuzz.attempts import SECONDS, Worker
from tests.fuzz.campaign import Campaign
from tests.fuzz.choices import Choices
from tests.fuzz.judgement import assert_right
from tests.fuzz.random_descs import OPERATORS, any_desc
from tests.fuzz.samples import make

ENDS = {
    "fails": "AssertionError in samples.py:check",
    "crashes": "Sample ended by SIGSEGV",
    "hangs": "Sample did not end",
    "ends": "Sample ended with 3",
}


@pytest.mark.parametrize("way", ENDS)
def test_every_way_to_fail_is_seen_and_the_next_case_runs(way: str, worker: Worker) -> None:
    failing, passing = f"Sample(way={way!r}, numbers=(1, 2, 10))", f"Sample(way={way!r}, numbers=(1, 2, 9))"
    outcome = worker.attempt(1 if way == "hangs" else SECONDS, case=failing)
    assert outcome.failed == ENDS[way]
    assert outcome.case == failing
    assert ("samples.py" in outcome.message) is (way in ("crashes", "hangs"))  # where it stood
    assert worker.attempt(case=passing).failed is None


@for_each("name", OPERATORS)
def test_descs_of_every_operator_are_mostly_valid(name: str) -> None:
    seeds = range(30)
    valid = [seed for seed in seeds if not failures(any_desc(Choices(seed), names=[name]))]
    assert len(valid) >= len(seeds) / 3


def test_masks_of_attention_have_any_number_of_dimensions() -> None:
    made = [any_desc(Choices(seed), names=["MULTIHEAD_ATTENTION"]) for seed in range(150)]
    masks = [
        each.mask_tensor
        for each in made
        if isinstance(each, descs.MultiheadAttention) and each.mask_type is MultiheadAttentionMaskType.BOOLEAN
    ]
    assert {len(mask.sizes) for mask in masks if mask is not None} == {1, 2, 3, 4, 5}


def test_integers_that_are_rounded_to_float32_may_be_off_by_that() -> None:
    a, b = (TensorDesc(INT32, sizes) for sizes in ([1, 1, 2], [1, 2, 1]))
    scale = TensorDesc(FLOAT32, [1, 1, 1])
    desc = descs.MatrixMultiplyIntegerToFloat(a, scale, None, b, scale, None, None, scale)
    memory = [np.array(each, np.int32) for each in ([2**31 - 1, 2**31 - 65], [1, -1])]
    unit, exact, rounded = (np.array([each], np.float32) for each in (1, 64, 0))
    inputs = [memory[0], unit, None, memory[1], unit, None, None]
    assert_right(desc, inputs, [rounded.reshape(1, 1, 1)], [exact.reshape(1, 1, 1)])


def test_each_place_of_a_repeated_number_may_be_off_by_a_rounding() -> None:
    x, group = TensorDesc(FLOAT32, [1, 2]), TensorDesc(FLOAT32, [1, 1])
    repeated = TensorDesc(FLOAT32, [1, 2], strides=[0, 0])
    desc = descs.BatchNormalizationTrainingGrad(
        x, repeated, group, group, group, x, group, group, epsilon=1.0
    )
    one, wide, none = (np.array(values, np.float32) for values in ([1], [0, 4e8], [[0, 0]]))
    # The difference of two products that is zero here, but not where each is rounded.
    rounded = np.array([[1e-2, -1e-2]], np.float32)
    sums = [np.full((1, 1), each, np.float32) for each in (4e8 / 2**0.5, 2)]
    assert_right(desc, [wide, one, one, one, one], [rounded, *sums], [none, *sums])


def test_places_of_a_repeated_number_are_one_where_no_sums_of_products_cancel() -> None:
    repeated, packed = TensorDesc(FLOAT32, [1, 4], strides=[0, 0]), TensorDesc(FLOAT32, [1, 4])
    desc = descs.MeanVarianceNormalization1(
        repeated, None, None, packed, axes=[1], normalize_variance=True, epsilon=1e-30
    )
    zero = np.zeros((1, 4), np.float32)
    with pytest.raises(AssertionError, match="4 of 4 wrong"):
        assert_right(desc, [np.full(1, 0.3, np.float32), None, None], [zero + 0.5], [zero])


def test_a_campaign_says_how_far_it_is(capfd: pytest.CaptureFixture[str]) -> None:
    campaign = Campaign(["samples"], shrinking=0)
    campaign.run(1.0, 1)
    (first, *_) = [line for line in capfd.readouterr().err.splitlines() if "seconds:" in line]
    assert re.fullmatch(r"\d+ of 1 seconds: samples \d+; \d kinds of failures", first)


def test_a_report_shows_each_failure_once_as_the_simplest_case_that_fails_so(worker: Worker) -> None:
    campaign = Campaign(["samples"])
    cases = {seed: make(Choices(seed)) for seed in range(100)}
    failing = [
        seed
        for seed, case in cases.items()
        if case.way == "fails" and len(case.numbers) > 2 and max(case.numbers) >= 10
    ][:2]
    campaign.try_seeds(worker, "samples", failing)
    assert campaign.tried["samples"] == len(failing)
    assert campaign.failed["samples"] == 2
    assert len(campaign.findings) == 1
    assert "python -m tests.fuzz 'Sample(way='\"'\"'fails'\"'\"', numbers=(0, 10, 0))'" in campaign.report()
