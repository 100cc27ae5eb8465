"""The facts, the schema that mirrors them, and the tables of each level."""

from __future__ import annotations

import copy
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import opendml as dml
from opendml import TensorDesc
from opendml.errors import InvalidArgument
from opendml.spec import facts
from opendml.spec.enums import FeatureLevel, TensorDataType
from opendml.spec.facts import DATA_FOLDER, CompleteOperators, enum_facts, operator_facts
from opendml.spec.feature_level import NEWEST, as_feature_level, full_name, value_since
from opendml.spec.naming import snake_case
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.rules import Rule, rules_of
from opendml.spec.schema import Field, operator, operators
from opendml.spec.validator import failures
from tests.for_each import for_each
from tests.spec.valid_descs import (
    LEVELS,
    NAMES,
    changed,
    functions,
    level_name,
    level_of,
    table_at,
    tables,
    tensor_of,
    valid_desc,
    with_tensor,
)
from tests.spec.valid_sizes import STACKED
from tools.generate import __main__ as command
from tools.generate import schema
from tools.generate.schema import FILES, OPERATOR, Named, problems, problems_of_files

READ = {name: json.loads((DATA_FOLDER / name).read_text("utf-8")) for name in FILES}
OPERATORS, COMMON = READ["operators.json"], READ["common.json"]


def test_operators_that_are_parsed_one_by_one_are_those_of_the_file() -> None:
    text = (DATA_FOLDER / "operators.json").read_text(encoding="utf-8")
    rows = facts._Rows(text)
    assert list(dict(rows).items()) == list(json.loads(text).items())
    assert len(rows) == len(operator_facts())


def test_the_files_keep_to_their_schema() -> None:
    assert problems_of_files() == []


def test_every_file_has_a_schema() -> None:
    assert {path.name for path in DATA_FOLDER.glob("*.json")} == set(FILES)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda f: f["GEMM"].update(sumary=""), "operators.json: GEMM: unknown key 'sumary'"),
        (
            lambda f: f["GEMM"]["fields"][0].update(optinal=True),
            "operators.json: GEMM: fields[0]: unknown key 'optinal'",
        ),
        (
            lambda f: f["GEMM"]["support"][0]["tensors"][0].pop("dims"),
            "operators.json: GEMM: support[0]: tensors[0]: no 'dims'",
        ),
        (
            lambda f: f["GEMM"]["same"][0].update(what=["Types"]),
            "operators.json: GEMM: same[0]: what[0]: 'Types'; must be one of DataType, DimensionCount, Sizes",
        ),
        (
            lambda f: f["GEMM"].update(constraints=[{"text": "A is square"}]),
            "operators.json: GEMM: constraints[0]: {'text': 'A is square'}; must be str",
        ),
        (
            lambda f: f["fields"]["any_input"].pop("description"),
            "common.json: fields: any_input: no 'description'",
        ),
        (
            lambda f: f["enums"]["PADDING_MODE"].update(EDGE="1"),
            "enums.json: enums: PADDING_MODE: EDGE: '1'; must be int",
        ),
        (
            lambda f: f["ACTIVATION_CELU"]["FLOAT32"].update(bound=True),
            "tolerances.json: ACTIVATION_CELU: FLOAT32: bound: True; must be int | float",
        ),
        (lambda f: f["GRU"].update(bound="4"), "peer_tolerances.json: GRU: bound: '4'; must be int | float"),
        (
            lambda f: f["GEMM"].update(code="dml.gemm()"),
            "examples.json: GEMM: code: 'dml.gemm()'; must be a list",
        ),
        (lambda f: f.update(WebNN=[]), "aliases.json: WebNN: []; must be an object"),
    ],
)
def test_a_wrong_fact_is_named_by_place(change: Callable[[Any], None], expected: str) -> None:
    file = expected.partition(":")[0]
    changed = copy.deepcopy(READ[file])
    change(changed)
    found = list(problems(changed, FILES[file], file))
    assert len(found) == 1
    assert found[0].startswith(expected)


@pytest.mark.parametrize("key", ["kind", "optional", "description"])
def test_a_completed_field_lacks_nothing(key: str) -> None:
    changed = copy.deepcopy(OPERATORS)
    changed["GEMM"]["fields"][0].pop(key)
    if key == "kind":
        with pytest.raises(KeyError):
            dict(CompleteOperators(changed, COMMON))
        return
    completed = dict(CompleteOperators(changed, COMMON))
    found = list(problems(completed, Named(OPERATOR), "operators.json"))
    assert found == [f"operators.json: GEMM: fields[0]: no {key!r}"]


def test_no_stubs_are_written_from_wrong_facts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in READ.items():
        (tmp_path / name).write_text(json.dumps(text), "utf-8")
    (tmp_path / "examples.json").write_text('{"GEMM": {"kode": []}}', "utf-8")
    monkeypatch.setattr(schema, "DATA_FOLDER", tmp_path)
    assert command.main() == 1
    assert "examples.json: GEMM: unknown key 'kode'" in capsys.readouterr().out
    assert tmp_path != facts.DATA_FOLDER


def test_a_numbered_variant_extends_its_elder() -> None:
    for name, stated in OPERATORS.items():
        if name[-1].isdigit():
            number = int(name[-1]) - 1
            elder = name[:-1] + (str(number) if number else "")
            assert stated["extends"][0] == elder, name


def test_an_operator_takes_over_what_it_does_not_state() -> None:
    form = {"family": "f", "in_place": ["A"], "notes": "", "fields": [_field("A"), _field("B", usual=1)]}
    common = {
        "forms": {"form": form},
        "fields": {"c": _field("C")},
        "constraints": {},
        "corrections": {},
        "types": {},
    }
    row = {"dims": [1, 8], "types": "INT8"}
    table = {"level": "1_0", "tensors": [{"names": ["C", "A"], **row}, {"names": ["B"], **row}]}
    stated: dict[str, Any] = {
        "elder": {"extends": ["form"], "notes": "its own", "support": [table], "summary": "elder"},
        "variant": {
            "extends": ["elder"],
            "in_place": [],
            "fields": ["c", {"name": "B", "optional": None, "description": "new", "usual": 2}, "A"],
        },
    }
    stated["elder"]["fields"] = ["A", "B", "c"]
    complete = CompleteOperators(stated, common)
    assert [field["name"] for field in complete["elder"]["fields"]] == ["A", "B", "C"]
    assert list(complete["elder"]["support"][0]["tensors"]) == ["A", "B", "C"]
    variant = complete["variant"]
    assert [field["name"] for field in variant["fields"]] == ["C", "B", "A"]
    assert variant["fields"][1] == {"name": "B", "kind": "INPUT_TENSOR", "description": "new", "usual": 2}
    assert (variant["family"], variant["summary"], variant["in_place"]) == ("f", "elder", [])
    assert "notes" not in variant
    assert variant["support"] == []


def test_what_is_common_is_named_more_than_once() -> None:
    keys = ("extends", "fields", "constraints", "corrections")
    stated = [*OPERATORS.values(), *COMMON["forms"].values()]
    named = Counter(
        each for facts in stated for key in keys for each in facts.get(key, ()) if isinstance(each, str)
    )
    rows = [row for facts in stated for table in facts.get("support", ()) for row in table["tensors"]]
    named.update(row["types"] for row in rows)
    sections = [COMMON[key] for key in ("forms", "fields", "constraints", "corrections")]
    assert {name for section in sections for name in section if named[name] < 2} == set()
    assert {name for name in COMMON["types"] if not named[name]} == set()


def test_no_field_and_no_constraint_that_could_be_named_is_written_twice() -> None:
    written = Counter(
        json.dumps(each, sort_keys=True)
        for facts in [*OPERATORS.values(), *COMMON["forms"].values(), COMMON]
        for key in ("fields", "constraints", "corrections")
        for each in (facts.get(key, ()) if facts is not COMMON else COMMON[key].values())
        if isinstance(each, dict) and each.keys() & {"kind", "what"}
    )
    assert [each for each, count in written.items() if count > 1] == []


def test_tolerances_are_of_operators_in_units_that_are_counted() -> None:
    own, peers = READ["tolerances.json"], READ["peer_tolerances.json"]
    assert (own.keys() | peers.keys()) <= OPERATORS.keys()
    rows = [*peers.values(), *(row for types in own.values() for row in types.values())]
    assert {row["unit"] for row in rows} <= {"ulp", "greatest", "terms", "absolute"}
    assert all(row["measured"] <= row["bound"] for row in rows)
    assert {frozenset(types) for types in own.values()} == {frozenset({"FLOAT32", "FLOAT16"})}


def test_the_facts_of_an_operator_are_completed_once() -> None:
    assert operator_facts()["GEMM"] is operator_facts()["GEMM"]


def _field(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "kind": "INPUT_TENSOR", "optional": False, "description": name, **more}


@for_each("name", NAMES)
def test_operator_mirrors_its_facts(name: str) -> None:
    facts, view = operator_facts()[name], operators()[name]
    assert view.name == name
    assert view.introduced == level_of(facts["introduced"])
    assert [(field.name, field.kind, field.type, field.optional) for field in view.fields] == [
        (field["name"], field["kind"], field["type"], field["optional"]) for field in facts["fields"]
    ]
    assert view.in_place == tuple(facts["in_place"])


@for_each("name", [name for name in NAMES if name != "REDUCE"])
def test_support_at_is_the_newest_table_not_above_the_level(name: str) -> None:
    view = operator(name)
    for level in LEVELS:
        support = view.support_at(level)
        if level < view.introduced:
            assert support is None
        else:
            assert support is not None
            assert {key: (list(row.dims), list(row.types)) for key, row in support.tensors.items()} == {
                key: (row["dims"], row["types"]) for key, row in table_at(name, level).items()
            }


def test_support_of_reduce_depends_on_the_function() -> None:
    reduce = operator("REDUCE")
    argmax = reduce.support_at(FeatureLevel.LEVEL_2_0, "ARGMAX")
    average = reduce.support_at(FeatureLevel.LEVEL_2_0, "AVERAGE")
    assert argmax is not None
    assert average is not None
    assert argmax.tensors["OutputTensor"].types == ("UINT32",)
    assert average.tensors["OutputTensor"].types == ("FLOAT32", "FLOAT16")


def test_attributes_leave_counts_out() -> None:
    names = [field.name for field in operator("MEAN_VARIANCE_NORMALIZATION1").attributes]
    assert names == ["Axes", "NormalizeVariance", "Epsilon", "FusedActivation"]


def test_names_may_have_their_prefix() -> None:
    assert operator("DML_OPERATOR_GEMM").name == "GEMM"


def test_unknown_operator_and_field() -> None:
    with pytest.raises(InvalidArgument, match="ACTIVATION_SELU is no operator"):
        operator("ACTIVATION_SELU")
    with pytest.raises(KeyError, match="GEMM has no field DTensor"):
        operator("GEMM").field("DTensor")


@pytest.mark.parametrize(
    ("enum", "value", "level"),
    [
        ("PADDING_MODE", "WRAP", "6_4"),
        ("PADDING_MODE", "SYMMETRIC", "3_0"),
        ("PADDING_MODE", "EDGE", "1_0"),
        ("TENSOR_DATA_TYPE", "INT4", "6_3"),
        ("TENSOR_DATA_TYPE", "INT64", "3_0"),
        ("ROUNDING_MODE", "TOWARD_ZERO", "1_0"),
    ],
)
def test_levels_of_late_enumeration_values(enum: str, value: str, level: str) -> None:
    assert value_since(enum, value) == level_of(level)


@pytest.mark.parametrize("level", [FeatureLevel.LEVEL_2_1, "2_1", "DML_FEATURE_LEVEL_2_1", 0x2100])
def test_feature_levels_have_several_names(level: FeatureLevel | str | int) -> None:
    assert as_feature_level(level) is FeatureLevel.LEVEL_2_1
    assert full_name(as_feature_level(level)) == "DML_FEATURE_LEVEL_2_1"


def test_no_feature_level_is_the_newest() -> None:
    assert as_feature_level(None) is NEWEST is FeatureLevel.LEVEL_6_4


@pytest.mark.parametrize("level", ["2_2", "", "LEVEL_2_1", 7, 2.0, object(), [2], float("nan")])
def test_other_feature_levels_are_refused(level: object) -> None:
    with pytest.raises(InvalidArgument, match="1_0, 2_0, 2_1"):
        as_feature_level(level)  # type: ignore[arg-type]


CHECKS: dict[str, Callable[[str, Field | None], bool]] = {
    "table": lambda operator, field: True,
    "type": lambda operator, field: True,
    "derived": lambda operator, field: field is not None and field.is_count,
    "enum": lambda operator, field: field is None or field.enum is not None,
    "range": lambda operator, field: field is None or field.range is not None,
    "fusion": lambda operator, field: field is not None and field.type == "OPERATOR_DESC",
    "optional": lambda operator, field: field is None or field.optional,
    "owned_by_dml": lambda operator, field: field is None or not field.owned_by_dml,
}
"""Checks of a field by itself: what must be true of the facts for the word to stand beside a statement."""


BEYOND = {
    "some_output": "the pages are silent; a dispatch without output does nothing, and ONNX Runtime's "
    "DirectML provider refuses it",
    "given_together": "every past key needs its value",
}
"""Rules that no statement asks for, and why they are there."""

EQUALITY = {"DataType": "equal_types", "DimensionCount": "equal_ranks", "Sizes": "equal_sizes"}
"""The rules of `same`, which says itself what it demands."""


class Statement(NamedTuple):
    field: Field | None
    text: str
    rules: tuple[str, ...]
    unchecked: str


@cache
def judged() -> CompleteOperators:
    """The completed facts with the rules of each statement beside its text."""
    operators, common = (
        json.loads((DATA_FOLDER / name).read_text("utf-8")) for name in ("operators.json", "common.json")
    )
    rules = json.loads((Path(__file__).parent / "statements.json").read_text("utf-8"))
    for section, owners in (("operators", operators), ("forms", common["forms"])):
        for name, owner in owners.items():
            stated = {"fields": {}, "constraints": [], **rules[section].get(name, {})}
            if "fields" in owner:
                owner["fields"] = [_judged(field, stated["fields"]) for field in owner["fields"]]
            for i, rule in enumerate(stated["constraints"]):
                if rule is not None:
                    owner["constraints"][i] = _entry(rule, text=owner["constraints"][i])
    for name, field in common["fields"].items():
        field |= _entry(rules["fields"].get(name, ""))
    common["constraints"] = {
        name: _entry(rules["constraints"][name], text=text) for name, text in common["constraints"].items()
    }
    return CompleteOperators(operators, common)


def _judged(field: Any, stated: Any) -> Any:
    """A field as it is stated. A new description does not take over who checks the elder's."""
    if isinstance(field, str):
        return field
    fresh = {"rules": None, "unchecked": None} if "description" in field else {}
    return field | fresh | (_entry(stated[field["name"]]) if field["name"] in stated else {})


def _entry(stated: Any, **more: Any) -> dict[str, Any]:
    """The rules of a statement, which stand as one text, or beside `unchecked`."""
    return more | (stated if isinstance(stated, dict) else {"rules": stated})


def statements(name: str) -> Iterator[Statement]:
    facts = judged()[name]
    for each in facts["constraints"]:
        yield Statement(None, each["text"], *_rules(each))
    for field in facts["fields"]:
        yield Statement(operator(name).field(field["name"]), field["description"], *_rules(field))


def _rules(stated: Any) -> tuple[tuple[str, ...], str]:
    return tuple((stated.get("rules") or "").split()), stated.get("unchecked") or ""


@cache
def rules(name: str) -> list[Rule]:
    """The rules of an operator at any level."""
    facts = operator(name)
    return [rule for level in FeatureLevel if level >= facts.introduced for rule in rules_of(facts, level)]


def verified(operator: str, field: Field | None, name: str) -> bool:
    """Whether what is named beside a statement exists for its operator and reads its field."""
    if name in CHECKS:
        return CHECKS[name](operator, field)
    return any(
        rule.name == name and (field is None or field.is_count or field in rule.fields)
        for rule in rules(operator)
    )


@for_each("name", NAMES)
def test_every_rule_that_a_statement_names_checks_its_operator_and_field(name: str) -> None:
    for statement in statements(name):
        for each in statement.rules:
            assert verified(name, statement.field, each), (statement.text, each)
        assert len(set(statement.rules)) == len(statement.rules), statement


@for_each("name", NAMES)
def test_every_constraint_is_checked_or_says_why_not(name: str) -> None:
    for statement in statements(name):
        assert statement.field or statement.rules or statement.unchecked, statement.text
        assert re.match("(run time|advice|decision): |$", statement.unchecked), statement


def test_a_rule_of_another_operator_or_field_and_an_unknown_one_are_found() -> None:
    padding = operator("PADDING")
    assert verified("PADDING", padding.field("StartPadding"), "padded_sizes")
    assert not verified("PADDING", padding.field("PaddingValue"), "padded_sizes")
    assert not verified("TILE", None, "padded_sizes")
    assert not verified("PADDING", None, "paded_sizes")
    assert not verified("PADDING", padding.field("PaddingValue"), "range")


@for_each("name", NAMES)
def test_equal_tensors_are_demanded_once(name: str) -> None:
    """What `same` says is no constraint in words as well."""
    for constraint in operator(name).constraints:
        assert not re.fullmatch(r"(\w+(?:, \w+)*): same (\w+(?:(?:, | and )\w+)*)", constraint), constraint


@for_each("name", NAMES)
def test_every_rule_comes_from_a_statement_or_says_why_it_is_there(name: str) -> None:
    named = {each for statement in statements(name) for each in statement.rules}
    named |= {EQUALITY[what] for same in operator(name).same for what in same.what}
    assert {rule.name for rule in rules(name)} - named <= set(BEYOND), name


def test_rules_beyond_the_statements_exist() -> None:
    assert set(BEYOND) <= {rule.name for name in NAMES for rule in rules(name)}


every_operator = for_each("operator", NAMES)


def introduced(operator: str) -> FeatureLevel:
    return level_of(operator_facts()[operator]["introduced"])


def levels(operator: str) -> list[FeatureLevel]:
    return [level for level in LEVELS if level >= introduced(operator)]


def label(operator: str, tensor: str) -> str:
    fields = {field["name"]: field for field in operator_facts()[operator]["fields"]}
    index = "[0]" if fields[tensor]["type"] == "TENSOR_DESC_ARRAY" else ""
    return f"{operator}.{tensor}{index}"


class Place(NamedTuple):
    """A tensor of an operator at a level, in a desc that is valid there."""

    operator: str
    function: str | None
    level: FeatureLevel
    desc: OperatorDesc
    tensor: str
    support: dict[str, Any]

    def failures_with(self, **changes: Any) -> Sequence[str]:
        """What the validator says when the tensor has other values."""
        wrong = changed(tensor_of(self.desc, self.tensor), **changes)
        return failures(with_tensor(self.desc, self.tensor, wrong), self.level)

    def later(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Level and row for the tensor of the tables above the place's level, oldest first."""
        for table in reversed(tables(self.operator, self.function)):
            if level_of(table["level"]) > self.level:
                yield table["level"], table["tensors"][self.tensor]


def places(operator: str) -> Iterator[Place]:
    for function in functions(operator):
        for level in levels(operator):
            desc = valid_desc(operator, level, function)
            for tensor, support in table_at(operator, level, function).items():
                if tensor in STACKED:
                    desc = valid_desc(operator, level, having=tensor)
                yield Place(operator, function, level, desc, tensor, support)


@every_operator
def test_valid_at_every_level_from_its_introduction(operator: str) -> None:
    for function in functions(operator):
        for level in levels(operator):
            assert failures(valid_desc(operator, level, function), level) == [], (function, level)


@every_operator
def test_unknown_below_its_introduction(operator: str) -> None:
    first = introduced(operator)
    for level in LEVELS:
        if level < first:
            expected = f"{operator}: not in {level_name(level)}; exists from {level_name(first)}"
            assert failures(valid_desc(operator, first), level) == [expected]


@every_operator
def test_type_outside_the_table(operator: str) -> None:
    """Try all other types where a level changes the table, and there alone.

    At another level, one type that no level has and those of later levels show that the row is read.
    """
    before: dict[tuple[str | None, str], list[str]] = {}
    for place in places(operator):
        types, key = place.support["types"], (place.function, place.tensor)
        wrong = [each for each in TensorDataType if each.name not in types]
        if before.get(key) == types:
            coming = {name for _, row in place.later() for name in row["types"]}
            never = [each for each in wrong if each.name not in coming]
            wrong = [*never[:1], *[each for each in wrong if each.name in coming]]
        before[key] = types
        for data_type in wrong:
            name = data_type.name
            start = f"{label(operator, place.tensor)}: {name}; DML_FEATURE_LEVEL_"
            message = _only(place.failures_with(data_type=data_type), start)
            later = [level for level, row in place.later() if name in row["types"]]
            allowed = f" {', '.join(place.support['types'])}"
            if later:
                assert message.endswith(f"{allowed} ({name} from DML_FEATURE_LEVEL_{later[0]})")
            else:
                assert message.endswith(allowed)


@every_operator
def test_rank_outside_the_table(operator: str) -> None:
    for place in places(operator):
        low, high = place.support["dims"]
        for rank in (low - 1, high + 1):
            count = "1 dimension" if rank == 1 else f"{rank} dimensions"
            start = f"{label(operator, place.tensor)}: {count}; DML_FEATURE_LEVEL_"
            message = _only(place.failures_with(sizes=[1] * rank), start)
            later = [
                (level, row["dims"])
                for level, row in place.later()
                if row["dims"][0] <= rank <= row["dims"][1]
            ]
            allowed = f" {_ranks(low, high)}"
            if later:
                since, dims = later[0]
                assert message.endswith(f"{allowed} ({_ranks(*dims)} from DML_FEATURE_LEVEL_{since})")
            else:
                assert message.endswith(allowed)


@every_operator
def test_required_tensor_missing(operator: str) -> None:
    for level in levels(operator):
        desc = valid_desc(operator, level)
        for field in operator_facts()[operator]["fields"]:
            if field["kind"] == "ATTRIBUTE" or field["name"] in STACKED:
                continue
            found = failures(desc.replace(**{snake_case(field["name"]): None}), level)
            name = f"{operator}.{field['name']}"
            since = field.get("optional_since")
            if field["type"] == "TENSOR_DESC_ARRAY":
                assert found == [f"{name}: None; must be a sequence of one or more descs"]
            elif not field["optional"]:
                assert found == [f"{name}: missing; required"]
            elif since and level < level_of(since):
                assert found == [f"{name}: missing; required below DML_FEATURE_LEVEL_{since}"]
            else:
                assert all(": missing" in message for message in found)


@every_operator
def test_tables_are_sound(operator: str) -> None:
    """Newer tables only add, name every tensor, and stay within the level's number of dimensions."""
    limits = enum_facts()["dimension_count_limits"]
    late_types = enum_facts()["enum_values_since_level"]["TENSOR_DATA_TYPE"]
    facts = operator_facts()[operator]
    tensors = [field["name"] for field in facts["fields"] if field["kind"] != "ATTRIBUTE"]
    for function in functions(operator):
        newest_first = tables(operator, function)
        assert newest_first[-1]["level"] == facts["introduced"]
        for table in newest_first:
            level = level_of(table["level"])
            most = max(limit["max"] for limit in limits if level_of(limit["level"]) <= level)
            assert list(table["tensors"]) == tensors
            for support in table["tensors"].values():
                assert 1 <= support["dims"][0] <= support["dims"][1] <= most
                assert support["types"]
                for name in support["types"]:
                    assert level_of(late_types.get(name, "1_0")) <= level
        for newer, older in pairwise(newest_first):
            assert level_of(newer["level"]) > level_of(older["level"])
            for name in tensors:
                new, old = newer["tensors"][name], older["tensors"][name]
                assert set(new["types"]) >= set(old["types"])
                assert new["dims"][0] <= old["dims"][0]
                assert new["dims"][1] >= old["dims"][1]


def test_allowance_names_the_first_level_that_allows_the_same() -> None:
    """RELU's ranks are the same from 3_0 on although 5_1 has a table of its own."""
    desc = valid_desc("ACTIVATION_RELU", FeatureLevel.LEVEL_6_4)
    wrong = with_tensor(desc, "InputTensor", changed(tensor_of(desc, "InputTensor"), sizes=[1] * 9))
    expected = "ACTIVATION_RELU.InputTensor: 9 dimensions; DML_FEATURE_LEVEL_3_0 and above allow 1 to 8"
    assert failures(wrong)[0] == expected


def _ranks(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} to {high}"


def _only(found: list[str], start: str) -> str:
    """The one message that begins so."""
    matching = [message for message in found if message.startswith(start)]
    assert len(matching) == 1, (start, found)
    return matching[0]


@for_each("name", NAMES)
def test_limits_are_those_of_the_tables_at_every_level(name: str) -> None:
    facts = operators()[name]
    for level in LEVELS:
        if level < facts.introduced:
            with pytest.raises(InvalidArgument, match=f"{name}: not in DML_FEATURE_LEVEL_"):
                dml.limits(name, level)
            continue
        for function in functions(name):
            found = dml.limits(name, level, function=function)
            tensors = {**found.inputs, **found.outputs}
            table = table_at(name, level, function)
            assert {each: [type.name for type in limit.data_types] for each, limit in tensors.items()} == {
                each: table[each]["types"] for each in tensors
            }
            for each, limit in tensors.items():
                first, last = table[each]["dims"]
                assert limit.dimension_counts == range(first, last + 1)
            assert found.since <= level
            assert (found.operator, found.feature_level, found.introduced) == (name, level, facts.introduced)


@pytest.mark.parametrize("name", ["CONVOLUTION", "GEMM", "MEAN_VARIANCE_NORMALIZATION1", "JOIN", "ROI_ALIGN"])
def test_the_validator_refuses_what_limits_leave_out(name: str) -> None:
    for level in (operators()[name].introduced, max(LEVELS)):
        desc, found = valid_desc(name, level), dml.limits(name, level)
        for field in operators()[name].inputs:
            limit, value = found.inputs[field.name], getattr(desc, field.python_name)
            if value is None:
                continue
            first = value[0] if limit.is_array else value
            for type in (each for each in TensorDataType if each not in limit.data_types):
                changed = TensorDesc(type, first.sizes)
                wrong = desc.replace(**{field.python_name: (changed,) if limit.is_array else changed})
                assert any(f".{field.name}" in message for message in failures(wrong, level))


def test_names_are_found_in_any_case_and_misspelt_ones_corrected() -> None:
    assert dml.limits("dml_operator_gemm") == dml.limits("gemm") == dml.limits("GEMM", "6_4")
    assert dml.limits("DML_GEMM_OPERATOR_DESC") == dml.limits("gemm")
    assert dml.limits("DML_OPERATOR_SCATTER_ELEMENTS") == dml.limits("scatter")
    with pytest.raises(
        InvalidArgument, match=r"CONVOLUTON is no operator of DirectML; did you mean CONVOLUTION\?"
    ):
        dml.limits("CONVOLUTON")
    with pytest.raises(InvalidArgument, match="3; the name of an operator is needed"):
        dml.limits(3)
    with pytest.raises(InvalidArgument, match=r"^DML_OPERATOR_GEM is no .*; did you mean GEMM\?"):
        dml.limits("DML_OPERATOR_GEM")
    with pytest.raises(InvalidArgument, match=r"^DML_GEMM_OPERATOR_DES is no .*; did you mean GEMM\?"):
        dml.limits("DML_GEMM_OPERATOR_DES")


def test_types_of_reduce_depend_on_the_function() -> None:
    every = dml.limits("REDUCE").inputs["InputTensor"].data_types
    some = dml.limits("REDUCE", function="AVERAGE").inputs["InputTensor"].data_types
    assert set(some) < set(every)
    with pytest.raises(InvalidArgument, match="REDUCE: function 'MEAN'; must be a ReduceFunction"):
        dml.limits("REDUCE", function="MEAN")
    with pytest.raises(InvalidArgument, match="GEMM: function 'SUM'; has none"):
        dml.limits("GEMM", function="SUM")


def test_limits_say_since_when_they_hold() -> None:
    assert dml.limits("ELEMENT_WISE_ADD", "4_0").since is FeatureLevel.LEVEL_3_0
    found = dml.limits("MEAN_VARIANCE_NORMALIZATION1", "2_1")
    assert found.inputs["ScaleTensor"].optional
    assert not found.inputs["InputTensor"].optional
