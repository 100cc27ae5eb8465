"""The pages that are made from data: one for each operator and family, and parts of written pages."""

from __future__ import annotations

import inspect
from enum import Enum
from typing import Any

import click

import opendml
from opendml import functions
from opendml.catalog import lists
from opendml.catalog.content import CodeBlock
from opendml.catalog.operator_page import operator_page
from opendml.cli import main
from opendml.spec.schema import operators
from tools.docs.markdown import block, document, page, path_of, table

_HELP: dict[str, Any] = {**main.context_settings, "terminal_width": 100}


def generated_pages() -> dict[str, str]:
    """Return every page that is generated as a whole, by its path from the top of the documentation."""
    pages = {path_of(name): page(operator_page(each)) for name, each in operators().items()}
    for family, members in lists.families().items():
        title = f"# {family.capitalize()} operators"
        pages[f"operators/{family}/index.md"] = document([title, table(lists.coverage_table(members))])
    return pages


def generated_parts() -> dict[str, str]:
    """Return the texts that replace `<!-- generated: NAME -->` in written pages, by that name."""
    return {
        "families": table(lists.family_table()),
        "levels": table(lists.level_table()),
        "accuracy": table(lists.accuracy_table("ulp")),
        "accuracy_of_sums": table(lists.accuracy_table("greatest")),
        "accuracy_by_terms": table(lists.accuracy_table("terms")),
        "decisions": table(lists.decision_table()),
        "enumerations": _enumerations(),
        "python": _python(),
        "commands": _commands(),
    }


def _enumerations() -> str:
    tables = lists.enumeration_tables().items()
    return "\n\n".join(f"## {name}\n\n{table(content)}" for name, content in tables)


def _python() -> str:
    """Return the public classes and functions without the operators, which have pages of their own."""
    names = [name for name in opendml.__all__ if name not in functions.__all__]
    directives = []
    for name in names:
        value = getattr(opendml, name)
        if isinstance(value, type) and not issubclass(value, Enum):
            directives.append(f".. autoclass:: opendml.{name}\n   :members:\n   :special-members: __call__\n")
        elif inspect.isfunction(value):
            directives.append(f".. autofunction:: opendml.{name}\n")
    return "```{eval-rst}\n" + "\n".join(directives) + "```"


def _commands() -> str:
    """Return the output of `--help`, for the command and for each of its commands."""
    context = click.Context(main, info_name="opendml", **_HELP)
    parts = [block(CodeBlock(context.get_help()))]
    for name, command in main.commands.items():
        inner = click.Context(command, context, info_name=name, **_HELP)
        parts += [f"## opendml {name}", block(CodeBlock(inner.get_help()))]
    return "\n\n".join(parts)
