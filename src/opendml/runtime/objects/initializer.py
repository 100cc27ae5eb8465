"""Operator initializers, which prepare the constants of compiled operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from opendml.errors import InvalidArgument
from opendml.runtime.memory.ranges import MemoryRange, as_bytes, check_overlap
from opendml.runtime.objects.binding import BufferArrayBinding, bindings_of, resource_range
from opendml.runtime.objects.compiled import CompiledOperator
from opendml.runtime.objects.dispatchable import BindingProperties, Bindings, Command, Dispatchable
from opendml.spec.enums import PERSISTENT_BUFFER_ALIGNMENT
from opendml.spec.values import sequence_items
from opendml.spec.wording import shown

if TYPE_CHECKING:
    from opendml.runtime.objects.device import Device


class OperatorInitializer(Dispatchable):
    """Initializes compiled operators (IDMLOperatorInitializer): made by Device.create_operator_initializer.

    Its binding table has one input for each operator, in order: None, or a BufferArrayBinding with an entry
    for every input of that operator. Entries are None except for OWNED_BY_DML tensors, which may be in host
    memory on every device. The table has one output for each operator: its persistent resource, or None if
    that has no bytes.

    It is not safe to use from several threads at once.
    """

    _kind = "operator initializer"
    _is_volatile = False

    def __init__(self, device: Device, operators: Sequence[CompiledOperator]) -> None:
        self.device = device
        self.reset(operators)

    def __repr__(self) -> str:
        head = self._with_name(f"OperatorInitializer {self.device.kind}")
        names = ", ".join(each._title for each in self.operators)
        return f"<{head}: {names or 'no operators'}>"

    def reset(self, operators: Sequence[CompiledOperator] = ()) -> None:
        """Replace the operators. Recorded dispatches remain as they are; binding tables must be reset.

        Raises:
            InvalidArgument: no compiled operator of this device, one that is initialized, or one twice.
            DeviceRemoved: the device was removed.
        """
        self.device._require_present()
        given = sequence_items(operators)
        if given is None:
            raise InvalidArgument(
                f"{self._title}: {shown(operators)}; a list of compiled operators is needed"
            )
        operators = given
        for number, each in enumerate(operators):
            if not isinstance(each, CompiledOperator) or each.device is not self.device:
                raise InvalidArgument(f"{self._title}: [{number}] was not compiled by this device")
            if each.is_initialized or each in operators[:number]:
                problem = "is initialized already" if each.is_initialized else "is given twice"
                raise InvalidArgument(f"{self._title}: [{number}] {each._title} {problem}")
        self.operators: tuple[CompiledOperator, ...] = operators

    @property
    def binding_properties(self) -> BindingProperties:
        """The descriptors that an initialization needs. It needs no resources."""
        owned = sum(field.is_owned for each in self.operators for field in each._inputs)
        persistent = sum(bool(each.binding_properties.persistent_resource_size) for each in self.operators)
        return BindingProperties(owned + persistent, 0, 0)

    def _input_ranges(
        self, bindings: Sequence[Any]
    ) -> list[tuple[CompiledOperator, list[MemoryRange | None]]]:
        """Return each operator with the memory of its OWNED_BY_DML tensors."""
        self._require_one_each(bindings, "inputs")
        return [
            (each, each._owned_ranges(self._bound_inputs(number, each, binding)))
            for number, (each, binding) in enumerate(zip(self.operators, bindings, strict=True))
        ]

    def _output_ranges(self, bindings: Sequence[Any]) -> list[tuple[CompiledOperator, MemoryRange | None]]:
        """Return each operator with the memory of its persistent resource."""
        self._require_one_each(bindings, "outputs")
        return [
            (each, self._persistent(number, each, binding))
            for number, (each, binding) in enumerate(zip(self.operators, bindings, strict=True))
        ]

    def _command(self, bindings: Bindings) -> Command:
        """Return an initialization with these bindings. Operators that need nothing may be unbound."""
        nothing = [None] * len(self.operators)
        inputs = self._input_ranges(nothing) if bindings.inputs is None else bindings.inputs
        outputs = self._output_ranges(nothing) if bindings.outputs is None else bindings.outputs
        if not [each for each, _ in inputs] == [each for each, _ in outputs] == list(self.operators):
            raise InvalidArgument(f"{self._title}: was reset after something was bound; bind again")
        read = [as_bytes(f"an input of {each._title}", memory) for each, some in inputs for memory in some]
        written = [as_bytes(f"outputs[{number}]", memory) for number, (_, memory) in enumerate(outputs)]
        check_overlap(self._title, read, [item for item in written if item], frozenset())
        return _Initialization(
            self.operators, [some for _, some in inputs], [memory for _, memory in outputs]
        )

    def _persistent(self, number: int, compiled: CompiledOperator, binding: Any) -> MemoryRange | None:
        return resource_range(
            binding,
            compiled.binding_properties.persistent_resource_size,
            PERSISTENT_BUFFER_ALIGNMENT,
            self.device._backend.place,
            True,
            f"{self._title}: outputs[{number}], the persistent resource of {compiled._title}",
        )

    def _bound_inputs(self, number: int, compiled: CompiledOperator, binding: Any) -> Sequence[Any]:
        if binding is None:
            return [None] * len(compiled._inputs)
        if not isinstance(binding, BufferArrayBinding):
            raise InvalidArgument(
                f"{self._title}: inputs[{number}]: {type(binding).__name__}; "
                f"a BufferArrayBinding for the inputs of {compiled._title}, or None, is needed"
            )
        several = bindings_of(binding, f"{self._title}: inputs[{number}]")
        return several or [None] * len(compiled._inputs)

    def _require_one_each(self, bindings: Sequence[Any], kind: str) -> None:
        if not isinstance(bindings, Sequence) or len(bindings) != len(self.operators):
            count = len(bindings) if isinstance(bindings, Sequence) else type(bindings).__name__
            raise InvalidArgument(
                f"{self._title}: {count} {kind}; one for each of {len(self.operators)} operators is needed"
            )


class _Initialization(Command):
    """The initialization of some operators."""

    def __init__(
        self,
        operators: Sequence[CompiledOperator],
        inputs: Sequence[Sequence[MemoryRange | None]],
        outputs: Sequence[MemoryRange | None],
    ) -> None:
        self._operators, self._inputs, self._outputs = operators, inputs, outputs
        self._identity = object()

    def check(self, initialized: dict[CompiledOperator, MemoryRange | None], stream: int | None) -> None:
        for compiled, persistent in zip(self._operators, self._outputs, strict=True):
            compiled._require_initializable(self._identity)
            if compiled in initialized:
                raise InvalidArgument(f"{compiled._title}: is initialized already, by the same recorder")
            initialized[compiled] = persistent

    def run(self, stream: int | None) -> None:
        for work in zip(self._operators, self._inputs, self._outputs, strict=True):
            compiled, owned, persistent = work
            compiled._initialize(self._identity, owned, persistent)
