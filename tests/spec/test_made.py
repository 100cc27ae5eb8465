"""Classes, functions and stubs that are made from the facts."""

from __future__ import annotations

import ast
import inspect
import os
import pickle
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from types import ModuleType

import pytest

import opendml as dml
from opendml import functions, outputs
from opendml.operators.texts import definition_text
from opendml.spec import descs, enums
from opendml.spec.facts import enum_facts, operator_facts
from opendml.spec.naming import camel_case, snake_case
from opendml.spec.outputs import output_arguments
from opendml.spec.parameters import is_source
from opendml.spec.schema import operators
from tests.for_each import for_each
from tests.spec.valid_descs import NAMES
from tests.test_project import ROOT
from tools.generate.stubs import stubs, write_stubs


def test_every_operator_has_a_desc_class_with_its_fields() -> None:
    for name, facts in operator_facts().items():
        desc_class = descs.desc_class(name)
        assert desc_class.operator == name
        assert desc_class.__name__ == camel_case(name)
        assert getattr(descs, camel_case(name)) is desc_class
        expected = [snake_case(field["name"]) for field in facts["fields"] if "count_of" not in field]
        assert list(desc_class.fields) == expected
        for field in expected:
            assert f"    {field}: " in (desc_class.__doc__ or "")


def test_every_enumeration_has_its_values() -> None:
    for name, values in enum_facts()["enums"].items():
        members = getattr(enums, camel_case(name)).__members__
        assert {member.removeprefix("LEVEL_"): value for member, value in members.items()} == values


def test_functions_and_classes_are_made_on_first_use() -> None:
    code = "import opendml as d; f = vars(d.functions), vars(d.descs); names = 'activation_relu', 'Gemm'; "
    code += "print(*(n in v for n, v in zip(names, f))); d.activation_relu, d.descs.Gemm; "
    code += "print(*(n in v for n, v in zip(names, f)))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.split() == ["False", "False", "True", "True"]


@pytest.mark.parametrize(
    ("module", "name"), [(functions, "gru"), (descs, "Gru"), (enums, "PaddingMode"), (outputs, "GruOutputs")]
)
def test_what_is_made_is_found_by_its_module_and_name(module: ModuleType, name: str) -> None:
    made = getattr(module, name)
    assert (made.__module__, made.__qualname__) == (module.__name__, name)
    assert made.__doc__
    assert pickle.loads(pickle.dumps(made)) is made


@pytest.mark.parametrize(("module", "name"), [(functions, "gru"), (descs, "Gru"), (outputs, "GruOutputs")])
def test_threads_making_one_share_it(module: ModuleType, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(vars(module), name, getattr(module, name))
    monkeypatch.delitem(vars(module), name)
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(lambda _: getattr(module, name), range(64)))) == 1


@pytest.mark.parametrize("name", ["ACTIVATION_SELU", "OPERATOR_DESC", "TENSOR_DATA_TYPE"])
def test_unknown_desc_class_is_an_attribute_error(name: str) -> None:
    with pytest.raises(AttributeError, match=camel_case(name)):
        descs.desc_class(name)


def test_immediate_functions_take_tensors_then_attributes() -> None:
    """Every function: inputs, then keyword-only attributes, what the output needs, `out` and `device`.

    Functions that may have no input take the graph."""
    assert functions.__all__ == sorted(operator.function_name for operator in operators().values())
    for operator in operators().values():
        made = getattr(functions, operator.function_name)
        inputs = [re.sub(r"_tensor(s?)$", r"\1", field.python_name) for field in operator.inputs]
        attributes = [field.python_name for field in operator.attributes]
        optional = [output.argument_name for output in operator.outputs if output.optional]
        keywords = [*attributes, *optional, *output_arguments(operator), "out", "device"]
        keywords += ["graph"] if is_source(operator) else []
        parameters = inspect.signature(made).parameters.values()
        assert [each.name for each in parameters] == [*inputs, *keywords]
        assert {each.name for each in parameters if each.kind is each.KEYWORD_ONLY} == set(keywords)


@for_each("name", NAMES)
def test_docstrings_explain_every_argument_in_pythons_names(name: str) -> None:
    facts = operators()[name]
    made = getattr(functions, facts.function_name)
    sections = re.split(r"\n(Args|Returns|Raises|Example):\n", inspect.getdoc(made) or "")
    assert sections[1::2] == ["Args", "Returns", "Raises", "Example"]
    assert re.findall(r"(?m)^    (\w+):", sections[2]) == list(inspect.signature(made).parameters)
    assert f"DML_{name}_OPERATOR_DESC, from DML_FEATURE_LEVEL_" in sections[0]
    fields = {each.name for each in facts.fields if "_" in each.python_name and not each.is_count}
    assert not fields & set(re.findall(r"\w+", " ".join(sections[:5])))


def test_stubs_have_the_parameters_and_docstrings_of_what_is_made() -> None:
    stub = ast.parse(stubs()["functions.pyi"])
    found = [node for node in stub.body if isinstance(node, ast.FunctionDef)]
    assert {node.name for node in found} == set(functions.__all__)
    documented = {node.name: ast.get_docstring(node) for node in reversed(found)}
    for node in found:
        made = getattr(functions, node.name)
        names = [each.arg for each in (*node.args.args, *node.args.kwonlyargs)]
        assert names == list(inspect.signature(made).parameters)
        assert documented[node.name] == inspect.getdoc(made)
    classes = [node for node in ast.parse(stubs()["spec/descs.pyi"]).body if isinstance(node, ast.ClassDef)]
    assert [ast.get_docstring(node) for node in classes] == [
        inspect.getdoc(getattr(descs, node.name)) for node in classes
    ]
    for name, text in stubs().items():
        module = ast.parse(text).body
        made = import_module(f"opendml.{name.removesuffix('.pyi').replace('/', '.')}")
        assert all(hasattr(made, node.name) for node in module if isinstance(node, ast.ClassDef))


def test_stubs_are_written_without_any_package() -> None:
    """Isolated builds have nothing that opendml depends on."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-S", "-m", "tools.generate"]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    assert write_stubs() == []


def test_functions_say_what_their_definitions_decide() -> None:
    """In their own words but for the names of fields."""
    for each in operators().values():
        told = " ".join((getattr(dml, each.function_name).__doc__ or "").split())
        _, *decisions = definition_text(each.name)
        names = {word for field in each.fields for word in (field.name, field.name.removesuffix("Tensor"))}
        for part in re.split(rf"\b(?:{'|'.join(sorted(names, reverse=True))})\b", "\n".join(decisions)):
            assert all(line in told for line in part.splitlines()), each.name


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
