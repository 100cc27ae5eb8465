"""Each rule is broken by a desc of `broken.txt`, or is tested over all operators elsewhere."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from opendml import FLOAT32, INT32, Size2D, TensorDesc, descs
from opendml.operators.registry import defines, implemented
from opendml.spec.enums import FeatureLevel, TensorDataType
from opendml.spec.naming import snake_case
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.rules import declared, rules_of
from opendml.spec.rules.rule import SizeSpan, sizes_fault
from opendml.spec.schema import operators
from opendml.spec.validator import failures
from tests.spec.valid_descs import changed, valid_desc

NEWEST = FeatureLevel.LEVEL_6_4
NAMES = {"FLOAT32": FLOAT32, "INT32": INT32, "Size2D": Size2D, "TensorDesc": TensorDesc}
NAMES |= {"RELU": descs.ActivationRelu()}


@dataclass
class Case:
    """A rule of an operator, or "valid", and pairs of changes of its valid desc and their messages."""

    rule: str
    operator: str
    level: FeatureLevel = NEWEST
    having: str | None = None
    reason: str = ""
    pairs: list[tuple[dict[str, Any], list[str]]] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.rule}-{self.operator}-{self.having or self.level.name}"

    def check(self) -> None:
        """Check that the desc is valid before each change, and gets only the expected messages after it."""
        before = valid_desc(self.operator, self.level, having=self.having)
        assert failures(before, self.level) == []
        for changes, messages in self.pairs:
            found = failures(_changed(before, changes), self.level)
            assert found == [self._message(changes, text) for text in messages]

    def _message(self, changes: dict[str, Any], text: str) -> str:
        if text.startswith("["):
            name, given = next(iter(changes.items()))
            text = f".{name}: sizes {given}; must be {text} for {{}}"
        return self.operator + text.replace("{}", self.reason)


def _cases() -> list[Case]:
    cases: list[Case] = []
    for line in Path(__file__).with_name("broken.txt").read_text(encoding="utf-8").splitlines():
        text = line.strip()
        if line.startswith("        "):
            cases[-1].pairs[-1][1].append(text)
        elif line.startswith("    "):
            changes = {} if text == "nothing" else eval(f"dict({text})", NAMES)
            cases[-1].pairs.append((changes, []))
        elif text.startswith("because of "):
            cases[-1].reason = text.removeprefix("because of ")
        elif text and not text.startswith("#"):
            rule, operator, *rest = text.split()
            more = dict(zip(rest[::2], rest[1::2], strict=True))
            level = FeatureLevel[more.get("at", NEWEST.name)]
            cases.append(Case(rule, operator, level, more.get("with")))
    return cases


CASES = _cases()
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


def _changed(desc: OperatorDesc, changes: dict[str, Any]) -> OperatorDesc:
    values = {snake_case(name): value for name, value in changes.items()}
    return desc.replace(**{name: _value(getattr(desc, name), value) for name, value in values.items()})


def _value(before: Any, value: Any) -> Any:
    if isinstance(before, tuple) and before and isinstance(before[0], TensorDesc) and isinstance(value, list):
        pairs = zip((*before, *before[-1:] * len(value)), value, strict=False)
        return [_value(tensor, each) for tensor, each in pairs]
    if isinstance(before, TensorDesc) and isinstance(value, list):
        return changed(before, sizes=value)
    if isinstance(before, TensorDesc) and isinstance(value, str):
        return changed(before, data_type=TensorDataType[value])
    return type(before)[value] if isinstance(before, Enum) else value


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_desc_that_breaks_a_rule_gets_its_message_alone(case: Case) -> None:
    assert case.rule == "valid" or (case.operator, case.rule) in RULES
    case.check()


def test_every_rule_is_broken_somewhere() -> None:
    assert {rule for _, rule in RULES} == {case.rule for case in CASES} - {"valid"} | ELSEWHERE


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


@pytest.mark.parametrize(("elements", "fits"), [(2**31, True), (2**31 + 1, False)])
def test_indices_must_fit_the_output(elements: int, fits: bool) -> None:
    given = TensorDesc(TensorDataType.INT8, [1, elements], [0, 0])
    for type in (TensorDataType.INT32, TensorDataType.UINT32, TensorDataType.INT64):
        output = TensorDesc(type, [1, 1])
        found = [
            failures(descs.Argmax(given, output, axes=[1])),
            failures(descs.Argmin(given, output, axes=[0, 1])),
        ]
        if type is TensorDataType.INT32 and not fits:
            message = ".OutputTensor: INT32; must hold 2147483648, the last index of the reduced axes"
            assert found == [["ARGMAX" + message], ["ARGMIN" + message]]
        else:
            assert found == [[], []]


def test_many_allowed_sizes_are_named_without_counting_them() -> None:
    allowed = SizeSpan(10**18, 1, 10**18)
    fault = sizes_fault(TensorDesc(FLOAT32, [0]), [allowed], "the window given")
    assert fault is not None
    assert fault.text({}) == "sizes [0]; must be [1 to 1000000000000000000] for the window given"
