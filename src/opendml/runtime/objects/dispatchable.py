"""Dispatchables, which recorders run: compiled operators and operator initializers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from opendml.late_dataclass import dataclass
from opendml.runtime.memory.ranges import MemoryRange
from opendml.runtime.objects.named import Named

if TYPE_CHECKING:
    from opendml.runtime.objects.compiled import CompiledOperator
    from opendml.runtime.objects.device import Device


@dataclass(frozen=True, slots=True)
class BindingProperties:
    """The memory that a binding table of a dispatchable must have (DML_BINDING_PROPERTIES).

    Args:
        required_descriptor_count: descriptors that DirectML needs: one for every tensor, and one for each
            resource of a size above 0. Tables here have no size, so it only informs.
        temporary_resource_size: bytes for intermediate tensors while it runs; 0: none is needed.
        persistent_resource_size: bytes for the constants that the initializer prepares; 0: none is needed.
    """

    required_descriptor_count: int
    temporary_resource_size: int
    persistent_resource_size: int


@dataclass(frozen=True, slots=True)
class Bindings:
    """Checked bindings in the dispatchable's order, None for absent tensors.

    Those of an initializer are pairs of an operator and its own bindings.
    """

    inputs: Sequence[Any] | None = None
    outputs: Sequence[Any] | None = None
    temporary: MemoryRange | None = None
    persistent: MemoryRange | None = None


class Command(ABC):
    """A dispatchable with its bindings, ready to run."""

    @abstractmethod
    def check(self, initialized: dict[CompiledOperator, MemoryRange | None], stream: int | None) -> None:
        """Check that the command may run after earlier ones, and add the operators that it initializes.

        Args:
            initialized: operators that earlier commands initialize, with their persistent resources.
            stream: what `run` will be given.

        Raises:
            InvalidArgument: it may not.
        """

    @abstractmethod
    def run(self, stream: int | None) -> None:
        """Run the command to the end, or add it to a stream."""


class Dispatchable(Named, ABC):
    """A compiled operator or an operator initializer."""

    device: Device
    _kind: str
    """The name of its operator, or of what it does."""
    _is_volatile: bool
    """Bindings may change between recording and execution."""

    @property
    def _title(self) -> str:
        """The name in messages."""
        return self._with_name(self._kind)

    @property
    @abstractmethod
    def binding_properties(self) -> BindingProperties:
        """The memory that its binding table must have."""

    @abstractmethod
    def _input_ranges(self, bindings: Sequence[Any]) -> list[Any]:
        """Return the memory of the inputs, or raise InvalidArgument for wrong bindings."""

    @abstractmethod
    def _output_ranges(self, bindings: Sequence[Any]) -> list[Any]:
        """Return the memory of the outputs, or raise InvalidArgument for wrong bindings."""

    @abstractmethod
    def _command(self, bindings: Bindings) -> Command:
        """Return a command with these bindings, or raise InvalidArgument if some are missing or overlap."""
