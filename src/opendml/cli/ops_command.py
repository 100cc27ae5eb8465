"""`opendml ops`: the operator reference in the terminal."""

from __future__ import annotations

import json
from math import isfinite

import click
from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from opendml.catalog.content import Block, CodeBlock, Items, Section, Table
from opendml.catalog.lists import operator_table, operators_at
from opendml.catalog.names import find_operators
from opendml.catalog.operator_page import operator_page
from opendml.cli.printing import console, table_of
from opendml.operators.registry import implemented
from opendml.spec.enums import FeatureLevel
from opendml.spec.feature_level import as_feature_level, full_name
from opendml.spec.limits import limits
from opendml.spec.schema import Field, OperatorSchema


def list_operators(feature_level: str | None) -> None:
    """Print a table of all operators that exist at the level."""
    shown = operators_at(feature_level)
    out = console()
    (table,) = _renderables(operator_table(shown))
    out.print(table)
    count = sum(operator.name in implemented() for operator in shown)
    out.print(f"\n{len(shown)} operators at {full_name(as_feature_level(feature_level))}; {count} run.")


def print_json(name: str | None, feature_level: str | None) -> None:
    """Print the operators of that name, or all that exist at the level, as JSON."""
    level = as_feature_level(feature_level)
    found = operators_at(feature_level) if name is None else find_operators(name)
    click.echo(json.dumps([_as_json(operator, level) for operator in found], indent=2, allow_nan=False))


def _as_json(operator: OperatorSchema, level: FeatureLevel) -> dict[str, object]:
    """Return an operator for JSON, with the limits of the level if it exists there."""
    found: dict[str, object] = {
        "name": operator.name,
        "function": operator.function_name,
        "family": operator.family,
        "introduced": full_name(operator.introduced),
        "runs": operator.name in implemented(),
        "summary": operator.summary,
        "formula": operator.formula,
        "fields": [_field_as_json(field) for field in operator.fields if not field.is_count],
        "feature_level": full_name(level),
    }
    if level >= operator.introduced:
        held = limits(operator.name, level)
        found["limits"] = {
            name: {
                "data_types": [type.name for type in tensor.data_types],
                "dimension_counts": [tensor.dimension_counts[0], tensor.dimension_counts[-1]],
            }
            for name, tensor in {**held.inputs, **held.outputs}.items()
        }
    return found


def _field_as_json(field: Field) -> dict[str, object]:
    default = field.default if field.has_default else None
    if isinstance(default, float) and not isfinite(default):
        default = str(default)
    return {
        "name": field.name,
        "argument": field.argument_name,
        "kind": field.kind,
        "type": field.type,
        "optional": field.optional,
        "has_default": field.has_default,
        "default": default,
        "description": field.description,
    }


def describe_operator(name: str, feature_level: str | None) -> None:
    """Print the page of an operator, or one line for each of several operators with that name.

    Args:
        name: the name in any spelling.
        feature_level: show only the types and dimensions of this level; None: of all levels.

    Raises:
        InvalidArgument: no operator has the name; the message has the nearest names.
    """
    found = find_operators(name)
    if len(found) > 1:
        click.echo(f"{name} may be one of {len(found)} operators:")
        for operator in found:
            click.echo(f"  {operator.name}: {operator.summary}")
        return
    page = operator_page(found[0], feature_level)
    subtitle, *lead = page.lead
    out = console()
    out.print(Text(page.title, style="bold"), f"({subtitle})")
    for paragraph in lead:
        out.print(paragraph)
    for section in page.sections:
        _print(section)


def _print(section: Section) -> None:
    """Print a heading and indented blocks."""
    out = console()
    out.print()
    out.print(Text(section.title, style="bold"))
    for index, block in enumerate(section.blocks):
        if index and isinstance(block, CodeBlock):
            out.print()
        for part in _renderables(block):
            out.print(Padding(part, (0, 0, 0, 2), expand=False))


def _renderables(block: Block) -> list[RenderableType]:
    match block:
        case Table(columns, rows):
            return [table_of(columns, rows, wrap_first=False)]
        case Items(texts):
            return list(texts)
        case CodeBlock(text):
            return [text]
        case _:
            return [block]
