"""The sentences of generated docstrings: types, ranks and levels in words."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from opendml.spec.enums import FeatureLevel
from opendml.spec.feature_level import full_name, short_name
from opendml.spec.schema import Field, Operator
from opendml.spec.wording import join, meaning, ranks
from tools.generate.text import first_lines, wrap


def types_since(operator: Operator, tensor: str) -> str:
    """The types of a tensor at the newest level, each group with the level that added it."""
    groups: dict[FeatureLevel, list[str]] = {}
    seen: set[str] = set()
    for table in sorted(operator.support, key=lambda table: table.level):
        for name in table.tensors[tensor].types:
            if name not in seen:
                seen.add(name)
                groups.setdefault(table.level, []).append(name)
    first = min(groups)
    return "; ".join(
        ", ".join(names) + ("" if level == first else f" from {short_name(level)}")
        for level, names in groups.items()
    )


def ranks_since(operator: Operator, tensor: str) -> str:
    """The dimension counts of a tensor at the newest level, and what they were below."""
    steps: list[tuple[FeatureLevel, tuple[int, int]]] = []
    for table in sorted(operator.support, key=lambda table: table.level):
        dims = table.tensors[tensor].dims
        if not steps or steps[-1][1] != dims:
            steps.append((table.level, dims))
    newest = ranks(steps[-1][1])
    words = f"{newest} dimension{'s' if newest != '1' else ''}"
    older = [
        f"{ranks(before[1])} below {short_name(after[0])}" for before, after in itertools.pairwise(steps)
    ]
    return f"{words} ({', '.join(reversed(older))})" if older else words


def aliases(operator: Operator) -> str:
    """The sentence on execution in place."""
    outputs = [field.name for field in operator.outputs]
    if not operator.in_place:
        return "Not in place."
    return f"{outputs[0]} may be the same memory as {join(operator.in_place, 'or')}."


def docstring_head(operator: Operator) -> Iterator[str]:
    """Summary, formula, levels and aliasing: the lines that a docstring begins with."""
    yield first_lines(operator.summary)
    yield ""
    yield wrap(operator.formula, "        ", "    ")
    yield ""
    level = full_name(operator.introduced)
    yield wrap(f"DML_{operator.name}_OPERATOR_DESC, from {level}. {aliases(operator)}", "    ")
    yield ""


def tensor_line(operator: Operator, field: Field) -> str:
    """Types, ranks and meaning of a tensor."""
    since = f" from {short_name(field.optional_since)}" if field.optional_since else ""
    optional = f"optional{since}; " if field.optional else ""
    kind = "input" if field.kind == "INPUT_TENSOR" else "output"
    plural = "s" if field.type == "TENSOR_DESC_ARRAY" else ""
    facts = f"{types_since(operator, field.name)}; {ranks_since(operator, field.name)}"
    return f"{kind}{plural}, {optional}{facts}. {meaning(field)}".rstrip()
