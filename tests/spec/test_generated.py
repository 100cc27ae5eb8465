"""The generated files are what the facts give."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import opendml as dml
from opendml.catalog.definitions import definition_text
from opendml.spec import descs, enums
from opendml.spec.facts import enum_facts, operator_facts
from opendml.spec.naming import camel_case, snake_case
from opendml.spec.outputs import output_arguments
from opendml.spec.schema import operators
from tests.for_each import for_each
from tests.spec.valid_descs import NAMES
from tools.generate import __main__ as command
from tools.generate.files import PACKAGE, stale_files, write_files


def test_generated_files_are_up_to_date() -> None:
    assert stale_files() == []


def test_check_finds_a_changed_a_missing_and_a_superfluous_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_files(tmp_path)
    assert stale_files(tmp_path) == []
    changed, missing = tmp_path / "spec" / "enums.py", tmp_path / "spec" / "descs" / "activation.py"
    superfluous = tmp_path / "spec" / "descs" / "retired.py"
    changed.write_text(changed.read_text("utf-8") + "\n", "utf-8")
    missing.unlink()
    superfluous.touch()
    assert set(stale_files(tmp_path)) == {changed, missing, superfluous}

    monkeypatch.setattr(command, "stale_files", lambda: stale_files(tmp_path))
    assert command.main(["--check"]) == 1
    assert "enums.py differs from opendml/spec/data" in capsys.readouterr().out
    assert set(write_files(tmp_path)) == {missing, superfluous}  # the enumerations are always written
    assert stale_files(tmp_path) == []


def test_check_is_content_and_unknown_options_are_refused() -> None:
    assert command.main(["--check"]) == 0
    assert command.main(["--chekc"]) == 2


def test_every_operator_has_a_desc_class_with_its_fields() -> None:
    for name, facts in operator_facts().items():
        desc_class = descs.desc_class(name)
        assert desc_class.operator == name
        assert desc_class.__name__ == camel_case(name)
        assert getattr(descs, camel_case(name)) is desc_class
        expected = [snake_case(field["name"]) for field in facts["fields"] if "count_of" not in field]
        assert list(desc_class.fields) == expected
        for field in expected:
            assert f"        {field}: " in (desc_class.__doc__ or "")


def test_every_enumeration_has_its_values() -> None:
    for name, values in enum_facts()["enums"].items():
        members = getattr(enums, camel_case(name)).__members__
        assert {member.removeprefix("LEVEL_"): value for member, value in members.items()} == values


def test_desc_modules_are_read_on_first_use() -> None:
    code = "import sys, opendml.spec.descs as d; a = 'opendml.spec.descs.matrix' in sys.modules; d.Gemm; "
    code += (
        "print(a, 'opendml.spec.descs.matrix' in sys.modules, 'opendml.spec.descs.pooling' in sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.split() == ["False", "True", "False"]


def test_unknown_desc_class_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="ActivationSelu"):
        descs.desc_class("ACTIVATION_SELU")


def test_immediate_functions_take_tensors_then_attributes() -> None:
    """Every function: inputs, then keyword-only attributes, what the output needs, `out` and `device`."""
    tree = ast.parse((PACKAGE / "functions.py").read_text("utf-8"))
    by_function = {operator.function_name: operator for operator in operators().values()}
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert {function.name for function in functions} == set(by_function)
    last = {function.name: function for function in functions}
    for function in functions:
        operator = by_function[function.name]
        attributes = [field.python_name for field in operator.attributes]
        inputs = [re.sub(r"_tensor(s?)$", r"\1", field.python_name) for field in operator.inputs]
        assert [argument.arg for argument in function.args.args] == inputs
        optional = [output.argument_name for output in operator.outputs if output.optional]
        keywords = [*attributes, *optional, *output_arguments(operator), "out", "device"]
        assert [argument.arg for argument in function.args.kwonlyargs] == keywords
        is_overload = function is not last[function.name]
        assert bool(function.decorator_list) == is_overload
        assert bool(ast.get_docstring(function)) != is_overload


def test_functions_say_what_their_definitions_decide() -> None:
    for operator in operators().values():
        told = " ".join((getattr(dml, operator.function_name).__doc__ or "").split())
        _, *decisions = definition_text(operator)
        assert all(decision in told for decision in decisions), operator.name


@for_each("operator", NAMES)
def test_fields_of_the_facts_are_consistent(operator: str) -> None:
    """Names that one field gives of others exist; enumerations and defaults too."""
    facts = operator_facts()[operator]
    fields = {field["name"]: field for field in facts["fields"]}
    tensors = {name for name, field in fields.items() if field["kind"] != "ATTRIBUTE"}
    assert set(facts["in_place"]) <= tensors
    for rule in facts["same"] + facts.get("broadcast", []) + facts.get("together", []):
        assert set(rule["tensors"]) <= tensors
    for field in facts["fields"]:
        assert field["kind"] in {"INPUT_TENSOR", "OUTPUT_TENSOR", "ATTRIBUTE"}
        assert set(field.get("count_of", [])) <= set(fields)
        assert field.get("same_type_as") in tensors | {None}
        assert field.get("axis_of") in tensors | {None}
        if "enum" in field:
            members = enum_facts()["enums"][field["enum"]]
            assert field.get("default", next(iter(members))) in members
        if "data_type_field" in field:
            assert fields[field["data_type_field"]]["enum"] == "TENSOR_DATA_TYPE"
        assert ("default" in field) == (field.get("default_source") in {"page", "opendml"})
