"""Source of opendml/outputs.py: a named tuple for each operator that may have several outputs."""

from __future__ import annotations

from opendml.spec.schema import Field, Operator, operators
from tools.generate.text import header

_HEAD = """
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")
"""


def output_source() -> str:
    """The whole module, with a class for each operator that may have several outputs, in DirectML's order."""
    chosen = [operator for operator in operators().values() if has_class(operator)]
    exported = "".join(f'    "{name}",\n' for name in sorted(map(class_name, chosen)))
    summary = "What the immediate functions of operators with several outputs return: named tuples of arrays."
    return header(summary) + _HEAD + f"\n__all__ = [\n{exported}]\n" + "".join(map(_class, chosen))


def _class(operator: Operator) -> str:
    docstring = f'    """What `opendml.{operator.function_name}` returns; its docstring says more."""'
    fields = "".join(
        f"    {output.argument_name}: T{' | None' if may_be_absent(operator, output) else ''}\n"
        for output in operator.outputs
    )
    return f"\n\nclass {class_name(operator)}(NamedTuple, Generic[T]):\n{docstring}\n\n{fields}"


def class_name(operator: Operator) -> str:
    """The name of the named tuple."""
    return f"{operator.class_name}Outputs"


def has_class(operator: Operator) -> bool:
    """Whether there may be several outputs."""
    return len(operator.outputs) > 1


def has_plain_result(operator: Operator) -> bool:
    """Whether its one required output is returned by itself where no other one is asked for."""
    return [output.optional for output in operator.outputs].count(False) == 1


def may_be_absent(operator: Operator, output: Field) -> bool:
    """Whether the named tuple may be without that output: not where it is there to hold it."""
    return output.optional and not (has_plain_result(operator) and len(operator.outputs) == 2)


def optional_outputs(operator: Operator) -> list[Field]:
    """The outputs that a call may ask for."""
    return [output for output in operator.outputs if output.optional]
