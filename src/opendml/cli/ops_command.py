"""`opendml ops`: the operator reference, from the same data that the validator reads."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from opendml.cli.console import console
from opendml.errors import InvalidArgument
from opendml.operators.registry import implemented
from opendml.spec.attribute_rules import range_words
from opendml.spec.enums import FeatureLevel
from opendml.spec.facts import accuracy_facts
from opendml.spec.feature_level import as_feature_level, full_name
from opendml.spec.rules import rule_texts
from opendml.spec.schema import Field, Operator, Support, operators

_KINDS = {"INPUT_TENSOR": "input", "OUTPUT_TENSOR": "output"}


def list_operators(feature_level: str | None) -> None:
    """Prints a table of all operators that exist at the level."""
    level = as_feature_level(feature_level)
    runnable = implemented()
    shown = [operator for operator in operators().values() if operator.introduced <= level]
    table = _table("Operator", "Family", "Since", "Runs")
    for operator in shown:
        runs = "yes" if operator.name in runnable else "-"
        table.add_row(operator.name, operator.family, _short(operator.introduced), runs)
    out = console()
    out.print(table)
    count = sum(operator.name in runnable for operator in shown)
    out.print(f"\n{len(shown)} operators at {full_name(level)}; {count} run.")


def describe_operator(name: str, feature_level: str | None) -> None:
    """Prints all that is known of one operator. With a level, only the table that holds there.

    Raises InvalidArgument with the nearest names when there is no such operator.
    """
    operator = find_operator(name)
    out = console()
    since = full_name(operator.introduced)
    runs = operator.name in implemented()
    names = [f"dml.descs.{operator.class_name}", *([f"dml.{operator.function_name}"] if runs else [])]
    out.print(Text(operator.name, style="bold"), f"({operator.family}, from {since})")
    out.print(operator.summary)
    _section("Formula", [operator.formula, operator.semantics])
    _section("Python", [", ".join(names)])
    _section("Runs", ["yes" if runs else "not yet: it can be described and validated"])
    _section("Fields", [_fields(operator)])
    _section("Types and dimensions", [_support(operator, feature_level)])
    _section("In place", [_in_place(operator)])
    _section("Accuracy", _accuracy(operator))
    _section("Constraints", [*operator.constraints, *rule_texts(operator, as_feature_level(feature_level))])
    _section("Notes", [operator.notes, *(f"{item['what']}: {item['why']}" for item in operator.corrections)])


def _accuracy(operator: Operator) -> list[str]:
    return [
        f"{type}: within {fact['ulp']:g} ULP of the exact result; measured {fact['measured']:g} over "
        f"{fact['measured_over']}"
        for type, fact in accuracy_facts().get(operator.name, {}).items()
    ]


def find_operator(name: str) -> Operator:
    """The operator of that name in any of its spellings: ACTIVATION_CELU, DML_OPERATOR_ACTIVATION_CELU,
    activation_celu, ActivationCelu."""
    by_key = {_key(known): operator for known, operator in operators().items()}
    key = _key(name).removeprefix("DMLOPERATOR")
    if key not in by_key:
        raise InvalidArgument(f"no operator is named {name}; {_hint(key, by_key)}")
    return by_key[key]


def _hint(key: str, by_key: Mapping[str, Operator]) -> str:
    """The operators whose name contains `key`, else those with a similar name."""
    containing = [known for known in by_key if key in known] if key else []
    near = (containing or difflib.get_close_matches(key, by_key, cutoff=0.5))[:5]
    names = " or ".join(by_key[known].name for known in near)
    return f"did you mean {names}?" if names else "`opendml ops` lists them all"


def _key(name: str) -> str:
    return re.sub(r"[^A-Z0-9]", "", name.upper())


def _section(title: str, contents: Iterable[RenderableType]) -> None:
    """A heading and indented paragraphs; nothing when all of them are empty."""
    paragraphs = [content for content in contents if content]
    if paragraphs:
        out = console()
        out.print()
        out.print(Text(title, style="bold"))
        for paragraph in paragraphs:
            out.print(Padding(paragraph, (0, 0, 0, 2), expand=False))


def _fields(operator: Operator) -> Table:
    table = _table("Field", "Kind", "Default", "Meaning")
    for field in operator.fields:
        meaning = "; ".join(
            filter(None, [field.description, range_words(field.range) if field.range else ""])
        )
        table.add_row(field.name, _kind(field), _default(field), meaning)
    return table


def _kind(field: Field) -> str:
    kind = _KINDS.get(field.kind) or field.enum or field.type
    several = "s" if field.is_tensor and field.type.endswith("_ARRAY") else ""
    optional = ", optional" if field.optional else ""
    since = f" from {_short(field.optional_since)}" if field.optional_since else ""
    return kind + several + optional + since


def _default(field: Field) -> str:
    if field.is_count:
        return "derived"
    return str(field.default) if field.has_default else ""


def _support(operator: Operator, feature_level: str | None) -> RenderableType:
    """A row for each tensor of each table, newest level first."""
    level = as_feature_level(feature_level)
    supports = _at(operator, level) if feature_level else list(operator.support)
    if not supports:
        return f"none: the operator does not exist at {full_name(level)}"
    table = _table("From", "Tensor", "Dimensions", "Types")
    for support in supports:
        start = _short(support.level)
        if support.functions:
            table.add_row(start, "", "", f"with {', '.join(support.functions)}:")
            start = ""
        for name, tensor in support.tensors.items():
            low, high = tensor.dims
            dimensions = str(low) if low == high else f"{low} to {high}"
            table.add_row(start, name, dimensions, ", ".join(tensor.types))
            start = ""
    return table


def _at(operator: Operator, level: FeatureLevel) -> list[Support]:
    """The tables that hold at the level: one, or for REDUCE one for each group of functions."""
    functions = {function for support in operator.support for function in support.functions or (None,)}
    found = [operator.support_at(level, function) for function in functions]
    return [support for support in operator.support if support in found]


def _in_place(operator: Operator) -> str:
    if not operator.in_place:
        return "never: the output must not overlap an input"
    return f"the output may be the same buffer as {' or '.join(operator.in_place)}"


def _short(level: FeatureLevel) -> str:
    return level.name.removeprefix("LEVEL_")


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="underline")
    for index, column in enumerate(columns):
        table.add_column(column, no_wrap=index == 0, overflow="fold")
    return table
