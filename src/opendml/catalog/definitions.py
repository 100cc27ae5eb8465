"""The formulas and decisions in the docstrings of operators' definitions."""

from __future__ import annotations

import inspect
import re

from opendml.operators.registry import definition_of, implemented
from opendml.spec.schema import Operator


def definition_text(operator: Operator) -> list[str]:
    """The paragraphs of the definition's docstring: its formula, then the decisions that it takes.

    Empty for an operator that cannot be run yet.
    """
    text = inspect.getdoc(definition_of(operator.name)) if operator.name in implemented() else None
    return [" ".join(paragraph.split()) for paragraph in re.split(r"\n\s*\n", text)] if text else []
