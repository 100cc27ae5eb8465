"""Activations that operators apply to their results."""

from __future__ import annotations

from typing import Any

from opendml.frontends.pydirectml.enumerations import OperatorType
from opendml.spec.descs import desc_class
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.schema import operator


class FusedActivation:
    """An activation that an operator applies to its result: an operator and its first two attributes.

    Args:
        activation: the operator; INVALID: none.
        param_1: its first attribute in DirectML's order, if it has one.
        param_2: its second attribute, if it has one.
    """

    def __init__(self, activation: Any, param_1: float = 0, param_2: float = 0) -> None:
        if not isinstance(activation, OperatorType):
            raise TypeError(f"FusedActivation.activation: {activation!r}; an OperatorType is needed")
        self._activation, self._parameters = activation, (float(param_1), float(param_2))

    def __repr__(self) -> str:
        return f"FusedActivation(OperatorType.{self._activation.name}, {self._parameters})"

    @staticmethod
    def none() -> FusedActivation:
        """Return no activation."""
        return FusedActivation(OperatorType.INVALID)


def activation_desc(activation: FusedActivation | None) -> OperatorDesc | None:
    """Return the desc of an activation, None for none. It is validated with the operator that has it."""
    if activation is None:
        return None
    if not isinstance(activation, FusedActivation):
        raise TypeError(f"fused_activation: {type(activation).__name__}; a FusedActivation is needed")
    name = activation._activation.name
    if name == "INVALID":
        return None
    attributes = [field.python_name for field in operator(name).attributes]
    return desc_class(name)(**dict(zip(attributes, activation._parameters, strict=False)))
