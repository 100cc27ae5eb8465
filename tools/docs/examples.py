"""`python -m tools.docs.examples` runs the examples of operators and writes what they give beside them."""

from __future__ import annotations

import ast
import json
from typing import Any

import numpy as np

import opendml
from opendml.spec.facts import DATA_FOLDER, example_facts


class ExampleError(Exception):
    """An example of opendml/spec/data/examples.json does not run."""


def evaluate(code: str) -> Any:
    """Return the value of the last line, an expression, after running the lines in front of it.

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


def printed(code: str) -> list[str]:
    """Return the lines of the value's repr, with numbers to four digits; no line for None.

    Raises:
        ExampleError: the code fails.
    """
    value = evaluate(code)
    with np.printoptions(precision=4, suppress=True):
        return [] if value is None else repr(value).splitlines()


def main() -> None:
    """Write opendml/spec/data/examples.json with new values."""
    facts = {name: {"code": fact["code"]} for name, fact in example_facts().items()}
    for fact in facts.values():
        if result := printed("\n".join(fact["code"])):
            fact["result"] = result
    (DATA_FOLDER / "examples.json").write_text(json.dumps(facts, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
