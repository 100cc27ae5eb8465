"""Arrays whose length one count field tells."""

from __future__ import annotations

from collections.abc import Iterator

from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.rules.rule import Rule
from opendml.spec.schema import Field, Operator


def equal_lengths(operator: Operator, count: Field) -> Rule:
    """All arrays that the field `count` counts are as long as the first of them."""
    first, *others = (operator.field(name) for name in count.count_of)

    def check(desc: OperatorDesc) -> Iterator[tuple[Field, str]]:
        length = len(getattr(desc, first.python_name))
        for field in others:
            given = len(getattr(desc, field.python_name))
            if given != length:
                yield field, f": {given} elements; must be as many as {first.name}, {length} ({count.name})"

    return Rule((first, *others), check)
