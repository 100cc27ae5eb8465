"""Bindings: ranges of bytes in buffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opendml.errors import InvalidArgument
from opendml.late_dataclass import dataclass
from opendml.program.program import Layout
from opendml.program.scalar_type import ScalarType
from opendml.runtime.described import buffer_text
from opendml.runtime.memory.buffers import buffer_range, whole_buffer
from opendml.runtime.memory.ranges import MemoryRange
from opendml.spec.enums import MINIMUM_BUFFER_TENSOR_ALIGNMENT
from opendml.spec.tensor_desc import TensorDesc
from opendml.spec.values import as_plain, sequence_items
from opendml.spec.wording import shown
from opendml.targets.memory import Place


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class BufferBinding:
    """A range of bytes in a buffer (DML_BUFFER_BINDING).

    Args:
        buffer: a buffer of `Device.create_buffer`, an array in row-major order of the tensor's type or uint8,
            or any object with the buffer protocol; None: no binding.
        offset: the first byte, a multiple of 16 and of the TensorDesc's `guaranteed_base_offset_alignment`;
            for temporary and persistent resources a multiple of 256.
        size: bytes of the range; None: up to the end of the buffer.
    """

    buffer: Any
    offset: int = 0
    size: int | None = None

    def __repr__(self) -> str:
        size = "" if self.size is None else f", size={shown(self.size)}"
        return f"BufferBinding({buffer_text(self.buffer)}, offset={shown(self.offset)}{size})"


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class BufferArrayBinding:
    """Several bindings as one (DML_BUFFER_ARRAY_BINDING), for an array of tensors or all inputs of an
    operator.

    None binds nothing.
    """

    bindings: Sequence[Any]

    def __repr__(self) -> str:
        if not isinstance(self.bindings, list | tuple):
            return f"BufferArrayBinding({buffer_text(self.bindings)})"
        return f"BufferArrayBinding([{', '.join(map(buffer_text, self.bindings))}])"


def bindings_of(binding: BufferArrayBinding, name: str) -> tuple[Any, ...]:
    """Return the bindings of an array of them.

    Raises:
        InvalidArgument: no list of them.
    """
    several = sequence_items(binding.bindings)
    if several is None:
        raise InvalidArgument(
            f"{name}: a BufferArrayBinding of {shown(binding.bindings)}; a list of bindings is needed"
        )
    return several


def tensor_range(
    binding: Any, tensor: TensorDesc, layout: Layout, writable: bool, name: str
) -> MemoryRange | None:
    """Return the memory of a binding for a tensor, or None.

    A BufferBinding must have the size that DirectML demands, a multiple of 4. An array only needs the
    elements.

    Raises:
        InvalidArgument: no buffer, or not the right one for the tensor.
    """
    if binding is None or (isinstance(binding, BufferBinding) and binding.buffer is None):
        return None
    if not isinstance(binding, BufferBinding):
        return buffer_range(binding, layout, writable, name)
    alignment = max(MINIMUM_BUFFER_TENSOR_ALIGNMENT, tensor.guaranteed_base_offset_alignment)
    given = _part(binding, alignment, writable, name, layout.type)
    if given.size < tensor.size_in_bytes:
        raise InvalidArgument(
            f"{name}: {given.size} bytes; DirectML asks for {tensor.size_in_bytes} for the tensor"
        )
    if given.address % layout.type.bytes:
        raise InvalidArgument(
            f"{name}: address {given.address:#x}; {layout.type.name} needs a multiple of {layout.type.bytes}"
        )
    return MemoryRange(given.address, layout.span[1], given.owner, given.place)


def resource_range(
    binding: Any, size: int, alignment: int, place: Place | None, writable: bool, name: str
) -> MemoryRange | None:
    """Return the memory of a binding for a temporary or persistent resource, or None if none is needed.

    Args:
        binding: a BufferBinding, or an array as a whole.
        size: the bytes that are needed.
        alignment: the offset and the address must be multiples of it.
        place: the memory that it must be in; None: the host's.
        writable: it will be written.
        name: what messages call it.

    Raises:
        InvalidArgument: nothing where bytes are needed, or the wrong memory.
    """
    if binding is not None and not isinstance(binding, BufferBinding):
        binding = BufferBinding(binding)
    if binding is None or binding.buffer is None:
        if size:
            raise InvalidArgument(f"{name}: nothing is bound; {size} bytes are needed")
        return None
    given = _part(binding, alignment, writable, name)
    if given.size < size:
        raise InvalidArgument(f"{name}: {given.size} bytes; {size} are needed")
    if given.place != place:
        wanted = "host memory" if place is None else f"memory on {place}"
        raise InvalidArgument(f"{name}: must be in {wanted}; Device.create_buffer makes such buffers")
    if given.address % alignment:
        raise InvalidArgument(f"{name}: address {given.address:#x}; must be a multiple of {alignment}")
    return MemoryRange(given.address, size, given.owner, given.place)


def _part(
    binding: BufferBinding, alignment: int, writable: bool, name: str, held: ScalarType | None = None
) -> MemoryRange:
    """Return the bytes of a binding in its buffer, which holds elements of a type or raw bytes."""
    whole = whole_buffer(binding.buffer, writable, name, held)
    offset, size = as_plain(binding.offset), as_plain(binding.size)
    if type(offset) is not int or offset < 0 or offset % alignment:
        raise InvalidArgument(f"{name}: offset {shown(offset)}; must be a multiple of {alignment}")
    size = whole.size - offset if size is None else size
    if type(size) is not int or size < 1 or offset + size > whole.size:
        raise InvalidArgument(
            f"{name}: {shown(size)} bytes from offset {offset}; the buffer has {whole.size} bytes"
        )
    return MemoryRange(whole.address + offset, size, whole.owner, whole.place)
