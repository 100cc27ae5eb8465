"""The goals of speed, judged from times that are given."""

from benchmarks.cases import CHEAP, TRANSCENDENTAL, Case, Goal, all_cases
from benchmarks.contender import Mode
from benchmarks.families import is_named, verdict
from benchmarks.goals import shortfalls
from benchmarks.timing import Outcome, Result


def result(**milliseconds: float) -> Result:
    """Return the result of one case; names are those of peers and modes, such as `torch_bound`."""
    case = Case("case", "activation", (4,), Goal(0.85, over_bound=1.1))
    outcomes = [
        Outcome(name.split("_")[0], Mode[name.split("_", 1)[1].upper()], times=[time])
        for name, time in milliseconds.items()
    ]
    return Result(case, Outcome("copy", Mode.BOUND, times=[4.5]), outcomes)


def test_pytorch_is_compared_where_it_writes_into_an_existing_output() -> None:
    found = shortfalls(result(opendml_bound=5.0, torch_bound=5.0, torch_new=50.0, torch_in_place=50.0))
    assert found == ["1.00 of 1.10 times torch bound"]
    assert shortfalls(result(opendml_bound=5.0, torch_bound=5.6, torch_new=1.0)) == []


def test_functions_have_a_goal_against_pytorch_and_cheap_activations_against_the_copy() -> None:
    goals = {case.activations[0].name: case.goal for case in all_cases() if case.group == "activation"}
    assert {goals[each.name].over_bound for each in CHEAP} == {None}
    float32 = [case for case in all_cases() if case.name.endswith("float32") and len(case.activations) == 1]
    names = {activation.name for activation in TRANSCENDENTAL}
    for case in (each for each in float32 if each.group == "activation"):
        assert (case.goal.over_bound == 1.1) == (case.activations[0].name in names)


def test_families_are_ahead_of_pytorch_by_a_tenth() -> None:
    row = {"goal": 0.85, "of_floor": 0.9, "over_torch": 1.05, "milliseconds": {"opendml": 5.0, "numpy": 4.0}}
    assert verdict(row) == "below 1.1 of torch; slower than numpy"
    assert verdict({**row, "over_torch": None, "milliseconds": {"opendml": 5.0}}) == ""


def test_cases_are_chosen_by_whole_words_or_by_texts() -> None:
    assert is_named("tanh float32", [], ["tanh", "exp"])
    assert not is_named("atanh float32", [], ["tanh", "exp"])
    assert is_named("atanh float32", ["tanh", "float32"], [])
