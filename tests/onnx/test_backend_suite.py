"""ONNX's own backend suite, a part of it on the CPU and the rest on the reference device.

Cases that fail are in deviations.json with their reasons, those that need onnx's evaluator in evaluated.json;
`python -m tools.onnx_coverage --write` brings both up to date.
"""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("onnx")
import onnx
from onnx.backend.test.loader import load_model_tests

from tools.onnx_coverage import DEVIATIONS, EVALUATED, cases, compiled, outcome_of, recorded

_PARTS = 40
"""The suite is made when a test needs it, which takes seconds, and not by everyone who lists the tests."""
_LIKE_OTHERS = {f"test_{name}_cpu" for name in ("inception_v1", "inception_v2", "vgg19", "zfnet512")}
"""Networks that take a third of the suite's time, of operators that its other networks have;
`python -m tools.onnx_coverage` runs them too."""


@pytest.mark.parametrize("part", range(_PARTS))
def test_onnx_says_the_same(part: int) -> None:
    """But where deviations are recorded. What is drawn at random is not run: it might be what is expected."""
    deviations, evaluated = recorded(DEVIATIONS), recorded(EVALUATED)
    names = [
        name
        for name in list(cases())[part::_PARTS]
        if name not in _LIKE_OTHERS and "at random" not in deviations.get(name, "")
    ]
    outcomes = {name: outcome_of(name) for name in names}
    wrong = {name: each for name, each in outcomes.items() if bool(each.error) != (name in deviations)}
    assert wrong == {}
    others = {name: each.evaluated for name, each in outcomes.items() if not each.error}
    assert others == {name: evaluated.get(name, "") for name in others}


def test_what_is_recorded_is_in_the_suite() -> None:
    assert set(cases()) >= {*recorded(DEVIATIONS), *recorded(EVALUATED)}


def test_cases_of_every_operator_are_compiled() -> None:
    def operators(names: frozenset[str]) -> set[str]:
        return {name.split("_")[1] for name in names if "_expanded" not in name}

    assert operators(compiled()) == operators(frozenset(cases()))


def test_networks_that_are_left_out_have_no_operator_that_others_lack() -> None:
    folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    left_out, others = set[str](), set[str]()
    for network in load_model_tests(kind="real"):
        nodes = onnx.load(folder / f"light_{network.name.removeprefix('test_')}.onnx").graph.node
        kinds = left_out if f"{network.name}_cpu" in _LIKE_OTHERS else others
        kinds |= {node.op_type for node in nodes}
    assert left_out <= others
    assert set(cases()) >= _LIKE_OTHERS


def test_most_node_cases_pass() -> None:
    nodes = [name for name, group in cases().items() if "Node" in group.__name__]
    assert len(set(nodes) - set(recorded(DEVIATIONS))) >= 0.95 * len(nodes)
