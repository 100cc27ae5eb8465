"""The persistent resource: where tensors that DirectML owns lie after initialization."""

from __future__ import annotations

from collections.abc import Sequence

from opendml.runtime.buffers import Range, copy_bytes
from opendml.runtime.slots import Slot
from opendml.spec.enums import PERSISTENT_BUFFER_ALIGNMENT


class OwnedTensors:
    """The inputs with OWNED_BY_DML among `slots`, one behind the other in a resource of `size` bytes."""

    def __init__(self, slots: Sequence[Slot]) -> None:
        self.offsets: dict[int, int] = {}
        """Position of an input to its offset."""
        self.size = 0
        for position, slot in enumerate(slots):
            if slot.is_owned and slot.layout is not None:
                self.offsets[position] = self.size
                units = -(-slot.layout.span[1] // PERSISTENT_BUFFER_ALIGNMENT)
                self.size += units * PERSISTENT_BUFFER_ALIGNMENT

    def copy(self, inputs: Sequence[Range | None], persistent: Range) -> None:
        """Copies the tensors from their buffers into the resource, and waits."""
        for position, offset in self.offsets.items():
            source = inputs[position]
            if source is not None:
                target = Range(persistent.address + offset, source.size, persistent.owner, persistent.device)
                copy_bytes(source, target)
