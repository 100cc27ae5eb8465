"""Activations that operators apply to what they compute."""

from __future__ import annotations

from opendml.frontends.pydirectml.enumerations import OperatorType
from opendml.spec.descs import desc_class
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.schema import operator


class FusedActivation:
    """An activation and its parameters, which are its attributes in DirectML's order.

    Args:
        activation: its operator; INVALID: none.
        param_1: its first attribute, if it has one.
        param_2: its second attribute, if it has one.
    """

    def __init__(self, activation: OperatorType, param_1: float = 0, param_2: float = 0) -> None:
        if not isinstance(activation, OperatorType):
            raise TypeError(f"FusedActivation.activation: {activation!r}; an OperatorType is needed")
        self._activation, self._parameters = activation, (float(param_1), float(param_2))

    def __repr__(self) -> str:
        return f"FusedActivation(OperatorType.{self._activation.name}, {self._parameters})"

    @property
    def _desc(self) -> OperatorDesc | None:
        """The activation as DirectML has it; whether an operator may have it is its validation's matter."""
        if self._activation is OperatorType.INVALID:
            return None
        attributes = operator(self._activation.name).attributes
        values = dict(zip([field.python_name for field in attributes], self._parameters, strict=False))
        return desc_class(self._activation.name)(**values)


NO_ACTIVATION = FusedActivation(OperatorType.INVALID)


def activation_desc(activation: FusedActivation | None) -> OperatorDesc | None:
    """The desc of an activation, None for none.

    Raises:
        TypeError: something else.
    """
    if activation is None:
        return None
    if not isinstance(activation, FusedActivation):
        raise TypeError(f"fused_activation: {type(activation).__name__}; a FusedActivation is needed")
    return activation._desc
