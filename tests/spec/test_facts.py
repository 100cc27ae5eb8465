"""The JSON files hold only keys that are known, miss none, and do not repeat what can be named."""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from opendml.spec import facts
from opendml.spec.facts import DATA_FOLDER, operator_facts
from opendml.spec.inherit import CompleteOperators
from tools.generate import __main__ as command
from tools.generate import schema
from tools.generate.schema import FILES, OPERATOR, Named, problems, problems_of_files

READ = {name: json.loads((DATA_FOLDER / name).read_text("utf-8")) for name in FILES}
OPERATORS, COMMON = READ["operators.json"], READ["common.json"]


def test_the_files_keep_to_their_schema() -> None:
    assert problems_of_files() == []


def test_every_file_has_a_schema() -> None:
    assert {path.name for path in DATA_FOLDER.glob("*.json")} == set(FILES)


@pytest.mark.parametrize(
    ("file", "change", "expected"),
    [
        (
            "operators.json",
            lambda f: f["GEMM"].update(sumary=""),
            "operators.json: GEMM: unknown key 'sumary'",
        ),
        (
            "operators.json",
            lambda f: f["GEMM"]["fields"][0].update(optinal=True),
            "operators.json: GEMM: fields[0]: unknown key 'optinal'",
        ),
        (
            "operators.json",
            lambda f: f["GEMM"]["support"][0]["tensors"][0].pop("dims"),
            "operators.json: GEMM: support[0]: tensors[0]: no 'dims'",
        ),
        (
            "operators.json",
            lambda f: f["GEMM"]["same"][0].update(what=["Types"]),
            "operators.json: GEMM: same[0]: what[0]: 'Types'; must be one of DataType, DimensionCount, Sizes",
        ),
        (
            "operators.json",
            lambda f: f["GEMM"].update(constraints=[{"text": "A is square"}]),
            "operators.json: GEMM: constraints[0]: {'text': 'A is square'}; must be str",
        ),
        (
            "common.json",
            lambda f: f["fields"]["any_input"].pop("description"),
            "common.json: fields: any_input: no 'description'",
        ),
        (
            "enums.json",
            lambda f: f["enums"]["PADDING_MODE"].update(EDGE="1"),
            "enums.json: enums: PADDING_MODE: EDGE: '1'; must be int",
        ),
        (
            "tolerances.json",
            lambda f: f["ACTIVATION_CELU"]["FLOAT32"].update(bound=True),
            "tolerances.json: ACTIVATION_CELU: FLOAT32: bound: True; must be int | float",
        ),
        (
            "peer_tolerances.json",
            lambda f: f["GRU"].update(bound="4"),
            "peer_tolerances.json: GRU: bound: '4'; must be int | float",
        ),
        (
            "examples.json",
            lambda f: f["GEMM"].update(code="dml.gemm()"),
            "examples.json: GEMM: code: 'dml.gemm()'; must be a list",
        ),
        ("aliases.json", lambda f: f.update(WebNN=[]), "aliases.json: WebNN: []; must be an object"),
    ],
)
def test_a_wrong_fact_is_named_with_its_place(
    file: str, change: Callable[[Any], None], expected: str
) -> None:
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
