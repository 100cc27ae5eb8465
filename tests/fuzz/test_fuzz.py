"""The fuzzers for a few seconds each, always on the same cases; `make fuzz MINUTES=60` tries others."""

from __future__ import annotations

import pytest

from tests.fuzz.attempts import Worker
from tests.fuzz.campaign import Campaign
from tests.fuzz.choices import Choices
from tests.fuzz.fuzzers import FUZZERS, evaluated, made

# A case of `growth` takes 20 seconds; tests/compiler/test_growth.py tests the same for a few chains.
CASES = {
    "descs": 15,
    "large": 10,
    "aliasing": 20,
    "expressions": 20,
    "graphs": 15,
    "neighbours": 8,
    "calls": 40,
    "models": 75,
    "nodes": 15,
    "onnx": 25,
    "peers": 20,
    "sizes": 2,
    "saved": 20,
    "serialized": 30,
    "faults": 10,
}
SHRINKING = 40


@pytest.mark.parametrize("fuzzer", CASES)
def test_fuzzers_find_nothing(fuzzer: str, worker: Worker) -> None:
    if fuzzer in ("nodes", "sizes"):
        pytest.importorskip("onnxruntime", reason="ONNX's evaluator alone is not trusted")
    campaign = Campaign([fuzzer], shrinking=SHRINKING)
    campaign.try_seeds(worker, fuzzer, range(CASES[fuzzer]))
    if campaign.findings:
        pytest.fail(campaign.report())


@pytest.mark.parametrize("fuzzer", FUZZERS)
def test_a_case_is_the_same_from_its_seed_its_choices_and_its_repr(fuzzer: str) -> None:
    for seed in range(20):
        choices = Choices(seed)
        case = made(fuzzer, choices)
        assert repr(made(fuzzer, Choices(seed))) == repr(case)
        assert repr(made(fuzzer, Choices(tape=choices.tape))) == repr(case)
        assert repr(evaluated(repr(case))) == repr(case)


@pytest.mark.parametrize("fuzzer", FUZZERS)
def test_the_simplest_choices_make_a_case(fuzzer: str) -> None:
    made(fuzzer, Choices(tape=[])).check()
