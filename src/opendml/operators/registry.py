"""The table from DirectML's operator names to definitions. Holds no definition itself."""

from __future__ import annotations

import importlib
import struct
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeVar

from opendml.errors import Unsupported
from opendml.program.functions import compute_type
from opendml.program.node import Node, convert
from opendml.program.scalar_type import ScalarType
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.schema import operator

FAMILIES = ("activation", "normalization")

_COMPUTED = frozenset({ScalarType.FLOAT16, ScalarType.FLOAT32})

Definition = TypeVar("Definition", bound=Callable[..., Node | tuple[Node, ...]])

_definitions: dict[str, Callable[..., Node | tuple[Node, ...]]] = {}


def defines(name: str) -> Callable[[Definition], Definition]:
    """Registers a function from the operator's inputs and attributes to its output, or to a tuple of outputs.

    The inputs come positionally in the desc's order, in their compute type, None where an optional one is
    absent; the attributes
    as keywords with their Python names. The results are converted to the output tensors' types by the caller.
    """

    def register(definition: Definition) -> Definition:
        _definitions[name] = definition
        return definition

    return register


def implemented() -> frozenset[str]:
    """The names of the operators that can be run."""
    return frozenset(_all())


def definition_of(name: str) -> Callable[..., Node | tuple[Node, ...]]:
    """The function that defines an operator that can be run."""
    return _all()[name]


def define(
    desc: OperatorDesc, inputs: Sequence[Node | None], output_types: Sequence[ScalarType]
) -> tuple[Node, ...]:
    """The outputs of `desc` over its `inputs` (in the desc's order, None for absent ones).

    Raises:
        Unsupported: the operator, or the operator on these types, cannot be run yet.
    """
    if desc.operator not in implemented():
        raise Unsupported(f"{desc.operator}: cannot be run yet; `opendml ops` lists the operators that can")
    for tensor in inputs:
        if tensor is not None and tensor.type not in _COMPUTED:
            raise Unsupported(f"{desc.operator}: cannot be run on {tensor.type.name} yet")
    values = [None if tensor is None else convert(tensor, compute_type(tensor.type)) for tensor in inputs]
    results = _all()[desc.operator](*values, **_attributes(desc))
    results = results if isinstance(results, tuple) else (results,)
    return tuple(convert(result, type) for result, type in zip(results, output_types, strict=True))


def fused(activation: OperatorDesc | None, value: Node) -> Node:
    """`value` after the fused activation, if there is one: the same definition as the activation alone."""
    return value if activation is None else define(activation, [value], [value.type])[0]


def _attributes(desc: OperatorDesc) -> dict[str, Any]:
    """The attributes as DirectML has them: a FLOAT is a float32."""
    fields = operator(desc.operator).attributes
    values = {field.python_name: getattr(desc, field.python_name) for field in fields}
    for field in fields:
        if field.type == "FLOAT":
            values[field.python_name] = _float32(values[field.python_name])
    return values


def _float32(value: float) -> float:
    return float(struct.unpack("f", struct.pack("f", value))[0])


@cache
def _all() -> dict[str, Callable[..., Node | tuple[Node, ...]]]:
    for family in FAMILIES:
        importlib.import_module(f"opendml.operators.{family}")
    return _definitions
