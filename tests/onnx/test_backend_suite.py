"""ONNX's own backend suite on the CPU.

Cases that fail are in deviations.json with their reasons, those that need onnx's evaluator in evaluated.json;
`python -m tools.onnx_coverage --write` brings both up to date.
"""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("onnx")
from tools.onnx_coverage import DEVIATIONS, EVALUATED, cases, outcome_of, recorded

_DEVIATIONS, _EVALUATED = recorded(DEVIATIONS), recorded(EVALUATED)


def _parameter(name: str) -> Any:
    """A case, marked if it fails. What is drawn at random is not run: it might be what the suite expects."""
    reason = _DEVIATIONS.get(name)
    if reason is None:
        return name
    return pytest.param(name, marks=pytest.mark.xfail(reason=reason, run="at random" not in reason))


@pytest.mark.parametrize("name", [_parameter(each) for each in cases()])
def test_onnx_says_the_same(name: str) -> None:
    outcome = outcome_of(name)
    assert outcome.error is None
    assert outcome.evaluated == _EVALUATED.get(name, "")


def test_what_is_recorded_is_in_the_suite() -> None:
    assert set(cases()) >= {*_DEVIATIONS, *_EVALUATED}


def test_most_node_cases_pass() -> None:
    nodes = [name for name, group in cases().items() if "Node" in group.__name__]
    assert len(set(nodes) - set(_DEVIATIONS)) >= 0.95 * len(nodes)
