"""The formulas and decisions in the docstrings of operators' definitions."""

from __future__ import annotations

from opendml.operators.registry import definition_of, implemented
from opendml.spec.docstrings import paragraphs


def definition_text(name: str) -> list[str]:
    """Return the paragraphs of a definition's docstring: its formula, then the decisions that it takes.

    There are none for an operator that cannot be run yet.

    Args:
        name: DirectML's name of the operator.
    """
    return paragraphs(definition_of(name).__doc__ or "") if name in implemented() else []
