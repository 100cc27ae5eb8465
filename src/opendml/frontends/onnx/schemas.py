"""Numbers of inputs and outputs of ONNX's operators, and their attributes, as its schemas have them.

The `onnx` package makes all of its schemas when one is asked for, which takes 21 MB with the package. So a
table has those of the operator sets that all supported versions of the package know. `python -m
tools.onnx_schemas --write` makes it of the package, and a test compares them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from opendml.frontends.onnx.attribute_values import value_of
from opendml.frontends.onnx.package import is_imported, onnx
from opendml.late_dataclass import dataclass

NEWEST_IN_TABLE = 22
"""The newest operator set in the table: that of onnx 1.17, the oldest supported version."""
TABLE = Path(__file__).with_name("schemas.json")
_ONNX_DOMAINS = "ai.onnx"
"""The beginning of the names of ONNX's own domains. One of them has no name."""


@dataclass(frozen=True)
class Attribute:
    """An attribute of an operator.

    Args:
        type: its type, of `AttributeProto.AttributeType`.
        is_required: whether nodes must have it.
        default: its value in nodes without it; None: it has none.
    """

    type: int
    is_required: bool
    default: Any = None


@dataclass(frozen=True)
class Schema:
    """The inputs, outputs and attributes that nodes of an operator may have.

    Args:
        min_input, max_input: the numbers of inputs.
        min_output, max_output: the numbers of outputs.
        attributes: by name.
    """

    min_input: int
    max_input: int
    min_output: int
    max_output: int
    attributes: Mapping[str, Attribute]


def schema_of(operator: str, version: int, domain: str) -> Schema | None:
    """Return what ONNX says of an operator in a version of its domain; None: it has no such operator.

    A program may register schemas for domains of its own at any time.
    """
    if not domain and version <= NEWEST_IN_TABLE and operator in _table():
        return _schema_in_table(operator, version)
    if domain and not domain.startswith(_ONNX_DOMAINS) and not is_imported():
        return None  # Only who imports the package registers schemas.
    found = whole_schema_of(operator, version, domain)
    return None if found is None else _of_package(found)


def whole_schema_of(operator: str, version: int, domain: str) -> onnx.defs.OpSchema | None:
    """Return the schema that the package has of an operator; None: it has no such operator."""
    try:
        return _registered(operator, version, domain)
    except (onnx.defs.SchemaError, TypeError):  # TypeError: the version is no 32-bit number.
        return None


@lru_cache(maxsize=4096)
def _registered(operator: str, version: int, domain: str) -> onnx.defs.OpSchema:
    return onnx.defs.get_schema(operator, version, domain)  # An error is not cached.


@lru_cache(maxsize=4096)
def newest_schema_of(operator: str) -> Schema:
    """Return what ONNX says of an operator of its own in the newest version that it knows.

    Raises:
        SchemaError: it has no such operator.
    """
    return _of_package(onnx.defs.get_schema(operator, ""))


@lru_cache(maxsize=4096)
def _schema_in_table(operator: str, version: int) -> Schema | None:
    versions = _table()[operator]
    since = [each for each in map(int, versions) if each <= version]
    return _from_json(versions[str(max(since))]) if since else None


@cache
def _table() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(TABLE.read_bytes())
    return found


def _from_json(row: Any) -> Schema:
    least, most, least_outputs, most_outputs, attributes = row
    declared = {name: Attribute(*each) for name, each in attributes.items()}
    return Schema(least, most, least_outputs, most_outputs, declared)


@lru_cache(maxsize=4096)
def _of_package(schema: onnx.defs.OpSchema) -> Schema:
    return _from_json(json_of(schema))


def json_of(schema: onnx.defs.OpSchema) -> list[Any]:
    """Return what a row of the table has of a schema."""
    counts = [schema.min_input, schema.max_input, schema.min_output, schema.max_output]
    return [*counts, {name: _attribute_to_json(each) for name, each in sorted(schema.attributes.items())}]


def _attribute_to_json(attribute: Any) -> list[Any]:
    given = attribute.default_value
    default = [value_of(given)] if given.name else []
    return [int(attribute.type.value), bool(attribute.required), *default]
