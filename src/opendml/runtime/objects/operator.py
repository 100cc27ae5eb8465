"""Operators of a device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opendml.runtime.described import fields_text, signature
from opendml.runtime.objects.named import Named
from opendml.runtime.objects.tensor_fields import tensor_fields
from opendml.spec.operator_desc import OperatorDesc

if TYPE_CHECKING:
    from opendml.runtime.objects.device import Device


class Operator(Named):
    """A valid operator of a device, not compiled yet. It is safe to use from several threads."""

    def __init__(self, device: Device, desc: OperatorDesc) -> None:
        self.device = device
        self.desc = desc

    @property
    def _title(self) -> str:
        """The name in messages."""
        return self._with_name(self.desc.operator)

    def __repr__(self) -> str:
        inputs, outputs = (
            fields_text(tensor_fields(self.desc, f"{kind}_TENSOR")) for kind in ("INPUT", "OUTPUT")
        )
        return f"<Operator {self.device.kind}: {self._title}: {signature(inputs, outputs)}>"
