"""The pages that are made from data: the operators, the feature levels, the accuracies, the benchmarks."""

from __future__ import annotations

import ast
import inspect
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Any

import click
import numpy as np

import opendml
from opendml import functions
from opendml.cli import main
from opendml.reference.content import Code, Page, Section, Table
from opendml.reference.lists import (
    accuracy_table,
    coverage_table,
    enumeration_tables,
    families,
    family_table,
    level_table,
)
from opendml.reference.operator_page import operator_page
from opendml.spec.schema import Operator, operators
from tools.docs.markdown import block, document, page, path_of, table

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
_HELP: dict[str, Any] = {**main.context_settings, "terminal_width": 100}
_IMPORTS = "import numpy as np\nimport opendml as dml\n\n"


def generated_pages() -> dict[str, str]:
    """Every page by its path from the top of the documentation."""
    pages = {path_of(name): page(with_result(operator_page(each))) for name, each in operators().items()}
    for family, members in families().items():
        pages[f"operators/{family}/index.md"] = _family_page(family, members)
    pages["operators/index.md"] = _index()
    pages["operators/feature_levels.md"] = _listing("Feature levels", _LEVELS, level_table())
    pages["operators/accuracy.md"] = _listing("Accuracy", _ACCURACY, accuracy_table())
    pages["reference/python.md"] = _python()
    pages["reference/enumerations.md"] = _enumerations()
    pages["reference/command_line.md"] = _command_line()
    pages["benchmarks/index.md"] = _benchmarks()
    return pages


def with_result(content: Page) -> Page:
    """The page with what its example gives, which is run for this.

    Raises:
        ExampleError: the example fails.
    """
    return replace(content, sections=tuple(map(_run, content.sections)))


class ExampleError(Exception):
    """An example of opendml/spec/data/examples.json does not run."""


def _run(section: Section) -> Section:
    if section.title != "Example":
        return section
    (code,) = section.blocks
    assert isinstance(code, Code)
    shown = Code(_IMPORTS + code.text, "python")
    with np.printoptions(precision=4, suppress=True):
        return Section(section.title, (shown, "gives, to four digits,", Code(repr(evaluate(code.text)))))


def evaluate(code: str) -> Any:
    """The value of the last line, an expression, after those in front of it.

    Raises:
        ExampleError: the code fails.
    """
    *statements, last = ast.parse(code).body
    names: dict[str, Any] = {"np": np, "dml": opendml}
    try:
        exec(compile(ast.Module(statements, []), "<example>", "exec"), names)
        assert isinstance(last, ast.Expr)
        return eval(compile(ast.Expression(last.value), "<example>", "eval"), names)
    except Exception as error:
        raise ExampleError(f"{code}\n{type(error).__name__}: {error}") from error


_PYTHON = """\
All names of `opendml` (as `dml`, by custom) except for the immediate functions and the description classes in
`dml.descs`, which are on the pages of the [operators](../operators/index.md), and the
[enumerations](enumerations.md)."""

_ENUMERATIONS = """\
The members have DirectML's names without the enumeration's own in front, and DirectML's values. All are in
`opendml.spec.enums`."""

_INDEX = """\
Every operator of DirectML has a page: what it computes, its fields, the types and dimensions that each
feature level allows, how exact it is. `opendml ops NAME` prints the same page in a terminal."""

_LEVELS = """\
A device has a feature level, and its operators are checked against what DirectML allows at that level. A row
lists what is new there; all that an older level allows stays allowed."""

_ACCURACY = """\
The greatest distance of a result from the exact one, in units in the last place of the type (0.5 is correct
rounding): what is promised, which the tests hold, and what `tools/measure_accuracy.py` found."""


def _index() -> str:
    return document(
        [
            "# Operators",
            _INDEX,
            table(family_table()),
            _contents(["feature_levels", "accuracy", *(f"{family}/index" for family in families())]),
        ]
    )


def _family_page(family: str, members: list[Operator]) -> str:
    return document([f"# {family.capitalize()} operators", table(coverage_table(members))])


def _listing(title: str, introduction: str, content: Table) -> str:
    return document([f"# {title}", introduction, table(content)])


def _benchmarks() -> str:
    names = sorted((path.stem for path in RESULTS.glob("*.md")), reverse=True)
    return document(["# Benchmarks", "Measured by `make bench`, newest first.", _contents(names)])


def _python() -> str:
    """The public classes and functions, but for the operators, which have pages of their own."""
    names = [name for name in opendml.__all__ if name not in functions.__all__]
    classes = [name for name in names if isinstance(getattr(opendml, name), type) and not _is_enum(name)]
    others = [name for name in names if inspect.isfunction(getattr(opendml, name))]
    directives = [
        f".. autoclass:: opendml.{name}\n   :members:\n   :special-members: __call__\n" for name in classes
    ]
    directives += [f".. autofunction:: opendml.{name}\n" for name in others]
    return document(["# Python", _PYTHON, "```{eval-rst}\n" + "\n".join(directives) + "```"])


def _is_enum(name: str) -> bool:
    return issubclass(getattr(opendml, name), Enum)


def _enumerations() -> str:
    parts = ["# Enumerations", _ENUMERATIONS]
    for name, content in enumeration_tables().items():
        parts += [f"## {name}", table(content)]
    return document(parts)


def _command_line() -> str:
    """What `--help` prints, for the command and for each of its commands."""
    context = click.Context(main, info_name="opendml", **_HELP)
    parts = ["# Options of the command line", block(Code(context.get_help()))]
    for name, command in main.commands.items():
        inner = click.Context(command, context, info_name=name, **_HELP)
        parts += [f"## opendml {name}", block(Code(inner.get_help()))]
    return document(parts)


def _contents(names: list[str]) -> str:
    return "\n".join(["```{toctree}", ":maxdepth: 1", "", *names, "```"])
