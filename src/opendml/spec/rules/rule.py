"""The type of a rule, and the tensors that rules read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from opendml.spec.fault import Fault
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.schema import Field
from opendml.spec.tensor_desc import TensorDesc

Broken = Iterator[tuple[str, Fault]]
"""The faults that a rule finds, each with the parameter to blame."""


class Rule(NamedTuple):
    """A rule between fields.

    Attributes:
        name: what the facts call it, beside the statements that it checks.
        fields: what it reads; it is left out where one of them is malformed.
        check: from a desc to (field, fault) for everything that breaks the rule.
        basic: other rules build on it, so a field that breaks it is malformed for the rules after it.
        text: what it demands and why, for those that the facts of the operator do not say in full.
    """

    name: str
    fields: tuple[Field, ...]
    check: Callable[[OperatorDesc], Iterable[tuple[Field, Fault]]]
    basic: bool = False
    text: str = ""


def given_tensors(desc: OperatorDesc, field: Field) -> Iterator[tuple[tuple[int, ...], TensorDesc]]:
    """Yield the tensors of a field that are given, each with its path: (), or (1,) within an array."""
    value = getattr(desc, field.python_name)
    if field.is_array:
        for i, tensor in enumerate(value or ()):
            yield (i,), tensor
    elif value is not None:
        yield (), value
