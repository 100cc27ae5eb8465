"""The type of a rule, and the tensors that rules read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.schema import Field
from opendml.spec.tensor_desc import TensorDesc

Broken = Iterator[tuple[str, str]]
"""What breaks a rule: the parameter to blame, and a message that continues the field's name."""


class Rule(NamedTuple):
    """A rule between fields.

    Attributes:
        name: what the facts call it, beside the statements that it checks.
        fields: what it reads; it is left out where one of them is malformed.
        check: from a desc to (field, message that continues its name) for everything that breaks the rule.
        basic: other rules build on it, so a field that breaks it is malformed for the rules after it.
        text: what it demands and why, for those that the facts of the operator do not say in full.
    """

    name: str
    fields: tuple[Field, ...]
    check: Callable[[OperatorDesc], Iterable[tuple[Field, str]]]
    basic: bool = False
    text: str = ""


def given_tensors(desc: OperatorDesc, field: Field) -> Iterator[tuple[str, TensorDesc]]:
    """The tensors of a field that are given, each with its index if the field is an array ("" or "[1]")."""
    value = getattr(desc, field.python_name)
    if field.type == "TENSOR_DESC_ARRAY":
        for i, tensor in enumerate(value or ()):
            yield f"[{i}]", tensor
    elif value is not None:
        yield "", value
