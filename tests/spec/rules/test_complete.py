"""Every rule is broken by some desc of the tests beside this one, or tested over all operators elsewhere."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from opendml.operators.registry import defines, implemented
from opendml.spec.rules import declared, rules_of
from opendml.spec.schema import operators
from tests.spec.rules.breaking import NEWEST, Broken

FAMILIES = sorted(
    path.stem.removeprefix("test_")
    for path in Path(__file__).parent.glob("test_*.py")
    if "BROKEN" in path.read_text("utf-8") and path != Path(__file__)
)
TESTED: dict[str, list[Broken]] = {
    family: importlib.import_module(f"tests.spec.rules.test_{family}").BROKEN for family in FAMILIES
}
RULES = {
    (operator.name, rule.name)
    for operator in operators().values()
    for level in (operator.introduced, NEWEST)
    for rule in rules_of(operator, level)
}

# In test_field_rules.py.
ELSEWHERE = {
    "broadcastable",
    "counted_dimensions",
    "equal_ranks",
    "equal_sizes",
    "equal_types",
    "fitting_scalar",
    "type_of_tensor",
    "valid_axes",
}


def test_every_rule_is_broken_somewhere() -> None:
    tested = {broken.rule for family in TESTED.values() for broken in family}
    assert {rule for _, rule in RULES} == tested | ELSEWHERE


@pytest.mark.parametrize("family", FAMILIES)
def test_the_operators_have_the_rules_that_are_tested_on_them(family: str) -> None:
    for broken in TESTED[family]:
        assert (broken.operator, broken.rule) in RULES


def test_every_parameter_of_a_rule_is_a_field_of_some_operator() -> None:
    """A parameter with a default that no operator has would never be read: a slip of the pen."""
    read: dict[str, set[str]] = {}
    every: dict[str, set[str]] = {}
    for operator, declarations in declared._rules.all().items():
        fields = {field.python_name for field in operators()[operator].fields}
        for function, bound, *_ in declarations.values():
            parameters = inspect.signature(function).parameters.values()
            names = {each.name for each in parameters if each.kind is not each.VAR_KEYWORD}
            every[function.__name__] = names
            read.setdefault(function.__name__, set()).update(names & (fields | set(bound)))
    assert read == every


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda: defines("GEMM"), "GEMM has two declarations of definition"),
        (lambda: defines("GEM"), "definition of GEM, which is no operator; did you mean GEMM"),
        (lambda: declared.shape("TILE", reason=""), "TILE has two declarations of shape"),
        (lambda: declared.rule("SLICES"), "<lambda> of SLICES, which is no operator; did you mean SLICE"),
    ],
)
def test_duplicates_and_unknown_operators_are_refused(declare: Callable[[], Any], message: str) -> None:
    declared._rules.all()
    implemented()
    with pytest.raises(ValueError, match=message):
        declare()(lambda: None)
