"""Dispatchables, which can be recorded: compiled operators and operator initializers, and their bindings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opendml.runtime.memory.ranges import MemoryRange
from opendml.runtime.objects.named import Named

if TYPE_CHECKING:
    from opendml.runtime.objects.compiled import CompiledOperator
    from opendml.runtime.objects.device import Device


@dataclass(frozen=True, slots=True)
class BindingProperties:
    """The needs of a dispatchable, which a binding table meets (DML_BINDING_PROPERTIES).

    Args:
        required_descriptor_count: descriptors that DirectML would need: one for every tensor, and for each
            resource of a size above 0. Tables here have no size, so it only informs.
        temporary_resource_size: bytes for intermediate tensors while it runs; 0: none is needed.
        persistent_resource_size: bytes for what the initializer makes of OWNED_BY_DML tensors and other
            constants; 0: none is needed.
    """

    required_descriptor_count: int
    temporary_resource_size: int
    persistent_resource_size: int


@dataclass(frozen=True, slots=True)
class Bindings:
    """Checked bindings: ranges in the dispatchable's order, None for absent tensors; of an
    initializer, each operator with those of its own."""

    inputs: Sequence[Any] | None = None
    outputs: Sequence[Any] | None = None
    temporary: MemoryRange | None = None
    persistent: MemoryRange | None = None


class Command(ABC):
    """A dispatchable with its bindings, ready to run."""

    @abstractmethod
    def check(self, initialized: dict[CompiledOperator, MemoryRange | None], stream: int | None) -> None:
        """Check that it may run after operators were `initialized`, each with its persistent resource, and
        adds those that it initializes itself.

        Args:
            initialized: operators that earlier commands initialize, with their persistent resources.
            stream: what `run` will be given.

        Raises:
            InvalidArgument: it may not.
        """

    @abstractmethod
    def run(self, stream: int | None) -> None:
        """Run it to the end, or adds it to a stream."""


class Dispatchable(Named, ABC):
    """A compiled operator or an operator initializer."""

    device: Device
    _kind: str
    """What it does: an operator's name, or what else stands for it."""
    _is_volatile: bool
    """Whether bindings may change between recording and execution."""

    @property
    def _title(self) -> str:
        """What messages call it."""
        return self._with_name(self._kind)

    @property
    @abstractmethod
    def binding_properties(self) -> BindingProperties:
        """Its needs, which a binding table meets."""

    @abstractmethod
    def _input_ranges(self, bindings: Sequence[Any]) -> list[Any]:
        """Return the memory of its inputs. Raises InvalidArgument for bindings that do not fit."""

    @abstractmethod
    def _output_ranges(self, bindings: Sequence[Any]) -> list[Any]:
        """Return the memory of its outputs. Raises InvalidArgument for bindings that do not fit."""

    @abstractmethod
    def _command(self, bindings: Bindings) -> Command:
        """Return the work over what is bound. Raises InvalidArgument where something is missing or
        overlaps."""
