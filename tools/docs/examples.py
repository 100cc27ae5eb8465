"""Runs the examples of operators, whose values the pages show."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

import numpy as np

import opendml
from opendml.reference.content import Code, Page, Section

_IMPORTS = "import numpy as np\nimport opendml as dml\n\n"


class ExampleError(Exception):
    """An example of opendml/spec/data/examples.json does not run."""


def with_result(content: Page) -> Page:
    """The page with what its example gives, which is run for this.

    Raises:
        ExampleError: the example fails.
    """
    return replace(content, sections=tuple(map(_run, content.sections)))


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


def _run(section: Section) -> Section:
    if section.title != "Example":
        return section
    (code,) = section.blocks
    assert isinstance(code, Code)
    with np.printoptions(precision=4, suppress=True):
        result = repr(evaluate(code.text))
    shown = Code(_IMPORTS + code.text, "python")
    return Section(section.title, (shown, "gives, to four digits,", Code(result)))
