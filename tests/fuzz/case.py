"""What all cases have in common: they are values, shown as the Python expression that makes them again."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from enum import Enum, Flag
from typing import Any

import numpy as np

import opendml as dml
from opendml.spec import descs
from opendml.spec.facts import operator_facts
from opendml.spec.naming import camel_case


@dataclass(frozen=True, repr=False)
class Case:
    """Something to try: `check` fails where a rule of opendml is broken."""

    def check(self) -> None:
        """Raises whatever a sound opendml does not raise."""
        raise NotImplementedError

    @property
    def subject(self) -> str:
        """What failures are counted by: the operator, where there is one."""
        return ""

    def __repr__(self) -> str:
        return python(self)


def python(value: Any) -> str:
    """A Python expression for the value, in `vocabulary`."""
    match value:
        case dml.OperatorDesc():
            given = ((name, getattr(value, name)) for name in value.fields)
            shown = [f"{name}={python(each)}" for name, each in given if each is not None]
            return f"{type(value).__name__}({', '.join(shown)})"
        case dml.TensorDesc():
            shown = [python(value.data_type), python(list(value.sizes))]
            shown += [f"strides={list(value.strides)}"] if value.strides is not None else []
            return f"TensorDesc({', '.join(shown)})"
        case Flag():
            return f"{type(value).__name__}({int(value)})"
        case Enum():
            return f"{type(value).__name__}.{value.name}"
        case tuple() if hasattr(value, "_fields"):
            return f"{type(value).__name__}({', '.join(python(each) for each in value)})"
        case tuple():
            return f"({', '.join(python(each) for each in value)}{',' * (len(value) == 1)})"
        case list():
            return f"[{', '.join(python(each) for each in value)}]"
        case dict():
            return f"{{{', '.join(f'{python(key)}: {python(each)}' for key, each in value.items())}}}"
    if is_dataclass(value):
        shown = [f"{field.name}={python(getattr(value, field.name))}" for field in fields(value)]
        return f"{type(value).__name__}({', '.join(shown)})"
    return repr(value)


def vocabulary() -> dict[str, Any]:
    """The names that `python` uses."""
    classes = {camel_case(name): descs.desc_class(name) for name in operator_facts()}
    public = {name: getattr(dml, name) for name in dml.__all__}
    others = {"inf": float("inf"), "nan": float("nan"), "array": np.array, "dml": dml}
    return public | classes | others
