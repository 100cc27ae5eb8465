"""Command recorders, which execute dispatches in their order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opendml.errors import InvalidArgument
from opendml.locked import Locked
from opendml.runtime.memory.ranges import MemoryRange
from opendml.runtime.objects.binding_table import BindingTable, Descriptors
from opendml.runtime.objects.compiled import CompiledOperator
from opendml.runtime.objects.dispatchable import Bindings, Command, Dispatchable
from opendml.runtime.objects.named import Named
from opendml.spec.wording import counted

if TYPE_CHECKING:
    from opendml.runtime.objects.device import Device


class CommandRecorder(Named, Locked):
    """Records dispatches of operator initializers and compiled operators (IDMLCommandRecorder, with the
    command list that it records to): made by Device.create_command_recorder, executed by Device.execute.

    Each dispatch sees what earlier ones wrote, so no barriers are needed. Recording is not safe from several
    threads at once. Executions of one recorder take turns.
    """

    def __init__(self, device: Device) -> None:
        super().__init__()
        self.device = device
        self._recorded: list[_Recorded] = []

    def __repr__(self) -> str:
        head = self._with_name(f"CommandRecorder {self.device.kind}")
        recorded = counted(len(self), "dispatch", "dispatches")
        return f"<{head}: {recorded} recorded>"

    def __len__(self) -> int:
        """Return the number of recorded dispatches."""
        return len(self._recorded)

    def record_dispatch(self, dispatchable: Dispatchable, table: BindingTable) -> None:
        """Add a dispatch with the bindings of a table. Nothing is executed.

        Everything needed must be bound, and overlap only where DirectML allows it. Bindings of operators with
        DESCRIPTORS_VOLATILE are checked at execution.

        Raises:
            InvalidArgument: not a dispatchable of this device with a table for it, or a missing or forbidden
                binding.
            DeviceRemoved: the device was removed.
        """
        self.device._require_present()
        if not isinstance(dispatchable, Dispatchable) or dispatchable.device is not self.device:
            raise InvalidArgument(
                f"record_dispatch: {type(dispatchable).__name__}; "
                "a compiled operator or an operator initializer of this device is needed"
            )
        if not isinstance(table, BindingTable) or table.dispatchable is not dispatchable:
            raise InvalidArgument(
                f"record_dispatch: the binding table is not for this {dispatchable._title}; reset it first"
            )
        recorded = _Recorded(dispatchable, table._descriptors)
        if not dispatchable._is_volatile:
            recorded.prepare()
            table._descriptors.recorded.add(recorded)
        self._recorded.append(recorded)

    def reset(self) -> None:
        """Drop all recorded dispatches. Their tables may change again."""
        for recorded in self._recorded:
            recorded.release()
        self._recorded = []

    def _execute(self, stream: Any) -> None:
        """Execute all dispatches; see Device.execute."""
        handle = None if stream is None else self.device._backend.stream(stream, "execute")
        with self._lock:
            commands = [recorded.prepare() for recorded in self._recorded]
            initialized: dict[CompiledOperator, MemoryRange | None] = {}
            for command in commands:
                command.check(initialized, handle)
            for command in commands:
                command.run(handle)


class _Recorded:
    """A dispatchable with the descriptors of its table."""

    def __init__(self, dispatchable: Dispatchable, descriptors: Descriptors) -> None:
        self._dispatchable, self._descriptors = dispatchable, descriptors
        self._bindings: Bindings | None = None
        self._command: Command | None = None

    def prepare(self) -> Command:
        """Return the command with the current bindings."""
        if self._command is None or self._bindings is not self._descriptors.bindings:
            self._bindings = self._descriptors.bindings
            self._command = self._dispatchable._command(self._bindings)
        return self._command

    def release(self) -> None:
        """Allow the table to change again."""
        self._descriptors.recorded.discard(self)
