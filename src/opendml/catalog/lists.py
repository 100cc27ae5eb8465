"""Tables of all operators: families, coverage, feature levels, accuracy and decisions."""

from __future__ import annotations

from collections.abc import Iterable

from opendml.catalog.content import Table
from opendml.catalog.operator_page import decisions, runs_on
from opendml.operators.texts import definition_text
from opendml.spec.enums import FeatureLevel
from opendml.spec.facts import enum_facts, tolerance_facts
from opendml.spec.feature_level import as_feature_level, short_name, value_since
from opendml.spec.naming import camel_case
from opendml.spec.schema import OperatorSchema, operators


def operators_at(feature_level: str | None = None) -> list[OperatorSchema]:
    """Return the operators that exist at a level, in DirectML's order; None: the newest level.

    Raises:
        InvalidArgument: the level does not exist.
    """
    level = as_feature_level(feature_level)
    return [operator for operator in operators().values() if operator.introduced <= level]


def operator_table(shown: Iterable[OperatorSchema]) -> Table:
    """Return a row for each operator: its family, its first level, and whether it runs."""
    rows = tuple(
        (operator.name, operator.family, short_name(operator.introduced), "yes" if runs_on(operator) else "-")
        for operator in shown
    )
    return Table(("Operator", "Family", "Since", "Runs"), rows)


def families() -> dict[str, list[OperatorSchema]]:
    """Return the operators by family; families are sorted by name."""
    found: dict[str, list[OperatorSchema]] = {}
    for operator in operators().values():
        found.setdefault(operator.family, []).append(operator)
    return dict(sorted(found.items()))


def family_table() -> Table:
    """Return a row for each family: the numbers of its operators, and of those that run."""
    rows = tuple(
        (family, str(len(members)), str(sum(bool(runs_on(operator)) for operator in members)))
        for family, members in families().items()
    )
    return Table(("Family", "Operators", "Run"), rows)


def coverage_table(members: Iterable[OperatorSchema]) -> Table:
    """Return a row for each operator: its first level, the devices that run it, and its summary."""
    rows = tuple(
        (
            operator.name,
            short_name(operator.introduced),
            ", ".join(runs_on(operator)) or "-",
            operator.summary,
        )
        for operator in members
    )
    return Table(("Operator", "Since", "Runs on", "Computes"), rows)


def level_table() -> Table:
    """Return up to three rows for each feature level, newest first.

    They have the new operators, the older ones with more types or dimensions, and the new values of
    enumerations.
    """
    rows: list[tuple[str, str, str]] = []
    for level in sorted(FeatureLevel, reverse=True):
        news = {
            "new operators": _introduced(level),
            "more types or dimensions": _widened(level),
            "new values": _values(level),
        }
        found = [(what, ", ".join(names)) for what, names in news.items() if names]
        rows += [("" if index else short_name(level), *row) for index, row in enumerate(found)]
    return Table(("Level", "Brought", ""), tuple(rows))


def _introduced(level: FeatureLevel) -> list[str]:
    return [operator.name for operator in operators().values() if operator.introduced == level]


def _widened(level: FeatureLevel) -> list[str]:
    """Return the older operators with a support table for the level."""
    return [
        operator.name
        for operator in operators().values()
        if operator.introduced < level and any(table.level == level for table in operator.support)
    ]


def _values(level: FeatureLevel) -> list[str]:
    late: dict[str, dict[str, str]] = enum_facts()["enum_values_since_level"]
    return [
        f"{enum}.{value}"
        for enum, values in late.items()
        for value, since in values.items()
        if since == short_name(level)
    ]


def accuracy_table(unit: str) -> Table:
    """Return a row for each operator and type whose accuracy has this unit."""
    rows = tuple(
        (name, type, f"{fact['bound']:g}", f"{fact['measured']:g}")
        for name, types in tolerance_facts().items()
        for type, fact in types.items()
        if fact["unit"] == unit
    )
    return Table(("Operator", "Type", "At most", "Measured"), rows)


def decision_table() -> Table:
    """Return a row for each decision about an unclear or contradictory page of DirectML."""
    rows: list[tuple[str, str]] = []
    for operator in operators().values():
        rows += [(operator.name, text) for text in definition_text(operator.name)[1:]]
        rows += [(operator.name, text) for text in decisions(operator)]
    return Table(("Operator", "Decision"), tuple(rows))


def enumeration_tables() -> dict[str, Table]:
    """Return a table of values and first levels for each enumeration, by its Python name."""
    return {
        camel_case(name): Table(
            ("Member", "Value", "Since"),
            tuple(
                (member, f"{value:#x}" if name == "FEATURE_LEVEL" else str(value), _since(name, member))
                for member, value in members.items()
            ),
        )
        for name, members in enum_facts()["enums"].items()
    }


def _since(enum: str, member: str) -> str:
    return short_name(value_since(enum, member))
