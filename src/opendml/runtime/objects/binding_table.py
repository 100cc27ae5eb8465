"""Binding tables: the memory that a dispatchable reads and writes."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from opendml.errors import InvalidArgument
from opendml.runtime.objects.binding import resource_range
from opendml.runtime.objects.dispatchable import Bindings, Dispatchable
from opendml.runtime.objects.named import Named
from opendml.spec.enums import PERSISTENT_BUFFER_ALIGNMENT, TEMPORARY_BUFFER_ALIGNMENT

if TYPE_CHECKING:
    from opendml.runtime.objects.device import Device


class Descriptors:
    """The bindings of a table until its next reset. Recorded dispatches keep them, as in DirectML."""

    def __init__(self) -> None:
        self.bindings = Bindings()
        self.recorded: weakref.WeakSet[Any] = weakref.WeakSet()
        """The recorded dispatches that forbid changes."""


class BindingTable(Named):
    """The bindings of a compiled operator or an operator initializer (IDMLBindingTable): made by
    Device.create_binding_table.

    A binding is a BufferBinding, a whole array, or None. Every method checks its arguments at once; if it
    raises, the table remains as it was. The memory is kept alive, unlike in DirectML.

    After `record_dispatch` the bindings must not change until the recorder is reset. Operators that were
    compiled with DESCRIPTORS_VOLATILE are an exception: an execution uses what is bound then. `reset` is
    always allowed, and does not change what was recorded.

    Not safe to use from several threads at once, as in DirectML.
    """

    def __init__(self, device: Device, dispatchable: Dispatchable | None) -> None:
        self.device = device
        self.reset(dispatchable)

    def __repr__(self) -> str:
        head, what = self._with_name(f"BindingTable {self.device.kind}"), "empty"
        if self.dispatchable is not None:
            bindings = self._descriptors.bindings
            bound = [each.name for each in fields(bindings) if getattr(bindings, each.name) is not None]
            what = f"{self.dispatchable._title}; bound: {', '.join(bound) or 'nothing'}"
        return f"<{head}: {what}>"

    def reset(self, dispatchable: Dispatchable | None = None) -> None:
        """Empty the table, and use it for a dispatchable.

        Raises:
            InvalidArgument: no compiled operator or operator initializer of this device.
            DeviceRemoved: the device was removed.
        """
        self.device._require_present()
        if dispatchable is not None and (
            not isinstance(dispatchable, Dispatchable) or dispatchable.device is not self.device
        ):
            raise InvalidArgument(
                f"binding table: {type(dispatchable).__name__}; "
                "a compiled operator or an operator initializer of this device is needed"
            )
        self.dispatchable = dispatchable
        self._descriptors = Descriptors()

    def bind_inputs(self, bindings: Sequence[Any] | None) -> None:
        """Bind all input tensors in the desc's order; None or an empty list unbinds them.

        For an execution, OWNED_BY_DML tensors and absent ones have None. For an initialization, see
        OperatorInitializer.

        Raises:
            InvalidArgument: a binding that does not fit, too many or too few of them, or the table is
                recorded.
            DeviceRemoved: the device was removed.
        """
        dispatchable = self._open("bind_inputs")
        self._change(inputs=_unless_nothing(bindings, dispatchable._input_ranges))

    def bind_outputs(self, bindings: Sequence[Any] | None) -> None:
        """Bind all output tensors in the desc's order; None or an empty list unbinds them.

        The outputs of an initializer are the persistent resources of its operators.

        Raises:
            InvalidArgument, DeviceRemoved: as `bind_inputs`.
        """
        dispatchable = self._open("bind_outputs")
        self._change(outputs=_unless_nothing(bindings, dispatchable._output_ranges))

    def bind_temporary_resource(self, binding: Any) -> None:
        """Bind the memory for intermediate tensors, which may hold anything before and after; None unbinds
        it.

        It has at least `binding_properties.temporary_resource_size` bytes of the device's memory, at a
        multiple of 256.

        Raises:
            InvalidArgument, DeviceRemoved: as `bind_inputs`.
        """
        size = self._open("bind_temporary_resource").binding_properties.temporary_resource_size
        self._change(temporary=self._resource(binding, "temporary", size, TEMPORARY_BUFFER_ALIGNMENT, True))

    def bind_persistent_resource(self, binding: Any) -> None:
        """Bind the memory that the initializer has written, unchanged; None unbinds it.

        Raises:
            InvalidArgument, DeviceRemoved: as `bind_inputs`.
        """
        size = self._open("bind_persistent_resource").binding_properties.persistent_resource_size
        self._change(
            persistent=self._resource(binding, "persistent", size, PERSISTENT_BUFFER_ALIGNMENT, False)
        )

    def _resource(self, binding: Any, kind: str, size: int, alignment: int, writable: bool) -> Any:
        if binding is None or self.dispatchable is None:
            return None
        name = f"{self.dispatchable._title}: the {kind} resource"
        return resource_range(binding, size, alignment, self.device._backend.place, writable, name)

    def _open(self, method: str) -> Dispatchable:
        """Return the dispatchable, if bindings may change now."""
        self.device._require_present()
        if self.dispatchable is None:
            raise InvalidArgument(f"{method}: the binding table is empty; reset it for a dispatchable first")
        if self._descriptors.recorded:
            raise InvalidArgument(
                f"{method}: {self.dispatchable._title} was recorded with this table; reset the table or the "
                "recorder, or compile with DESCRIPTORS_VOLATILE"
            )
        return self.dispatchable

    def _change(self, **bindings: Any) -> None:
        self._descriptors.bindings = replace(self._descriptors.bindings, **bindings)


def _unless_nothing(bindings: Sequence[Any] | None, read: Callable[[Sequence[Any]], list[Any]]) -> Any:
    """Return the bindings that `read` has checked, or None for no bindings."""
    if bindings is None or (isinstance(bindings, Sequence) and not bindings):
        return None
    return read(bindings)
