"""Tensors that are known before the dispatches: an executable prepares them once, into persistent memory."""

from __future__ import annotations

from collections.abc import Mapping

from opendml.runtime.buffers import Range, copy_bytes
from opendml.targets.executable import Executable
from opendml.targets.memory import TensorMemory


def persistent_memory(executable: Executable, device: int | None) -> Range:
    """New memory for an executable's prepared constants. `device` is the number of its CUDA device, if it has
    one.

    Raises:
        Unsupported: out of memory.
    """
    room = executable.allocate(executable.persistent_bytes)
    return Range(room.address, executable.persistent_bytes, room, device)


def initialize(executable: Executable, constants: Mapping[int, TensorMemory], persistent: Range) -> None:
    """Prepares constants, if there are any, wherever they are, and waits; they are free again then.

    Raises:
        Unsupported: out of memory.
    """
    if not constants:
        return
    addresses, copies = {}, []
    for number, memory in constants.items():
        addresses[number] = memory.address
        if memory.device != persistent.device:
            first, last = memory.layout.span
            source = Range(memory.address + first, last - first, memory.owner, memory.device)
            room = executable.allocate(source.size)
            copy_bytes(source, Range(room.address, source.size, room, persistent.device))
            addresses[number] = room.address - first
            copies.append(room)
    executable.initialize(addresses, persistent.address)
