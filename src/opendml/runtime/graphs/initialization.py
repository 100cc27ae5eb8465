"""The initialization of executables: constants are copied and packed where the work runs."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from opendml.runtime.memory.mapped import copy_released, release
from opendml.targets.backend import DeviceBackend
from opendml.targets.executable import Executable
from opendml.targets.memory import Place, TensorMemory
from opendml.targets.registry import backend_at
from opendml.targets.shared_work import share_work


def initialize(
    executable: Executable,
    backend: DeviceBackend,
    constants: Mapping[int, TensorMemory],
    addresses: Sequence[int],
    wanted: Container[int],
) -> None:
    """Fill memory that an executable keeps with copies of constants, and by steps of its initialization.

    Constants that the steps cannot read where they lie are copied for one step at a time.

    Args:
        executable: the executable.
        backend: its device.
        constants: the constants by the numbers of their buffers. They may be on any device.
        addresses: the addresses of all memory in `executable.kept`.
        wanted: the positions of the memory that is filled.

    Raises:
        Unsupported: out of memory.
    """
    kept, place = executable.kept, backend.place
    steps, copied = dict[int, dict[int, int]](), dict[int, TensorMemory]()
    for number, each in enumerate(kept):
        if number in wanted and each.copied_from is not None:
            copied[number] = constants[each.recipe.constants[0]]
        elif number in wanted:
            steps.setdefault(each.step, {})[number] = addresses[number]

    def copy(number: int) -> None:
        each = kept[number]
        _copy(copied[number], each.copied_from or 0, each.size, addresses[number], place)

    if {place, *(each.place for each in copied.values())} == {None}:
        share_work(copy, {number: kept[number].size for number in copied})
    else:
        for number in copied:
            copy(number)
    unaligned = {each.step for each in kept if each.reads_unaligned}
    for step, filled in steps.items():
        given = {number: constants[number] for number in executable.constants_of(step)}
        for number, memory in given.items():
            is_aligned = step in unaligned or not memory.address % memory.layout.type.bytes
            if memory.place != place or not is_aligned:
                given[number] = _copied(memory, backend)
        executable.initialize(step, {number: memory.address for number, memory in given.items()}, filled)
        for number in given:
            release(constants[number].owner)


def _copied(memory: TensorMemory, backend: DeviceBackend) -> TensorMemory:
    """Return a copy of a tensor where programs of a device run, at an address that suits every tensor."""
    first, last = memory.layout.span
    made = backend.allocate(last - first)
    _copy(memory, first, last - first, made.address, backend.place)
    return TensorMemory(made.address - first, memory.layout, True, made, backend.place)


def _copy(source: TensorMemory, offset: int, size: int, address: int, place: Place | None) -> None:
    """Copy bytes of a tensor to an address, and wait. Pages of a mapped file are released.

    Args:
        source: the tensor.
        offset: the offset of the bytes from its first element.
        size: the number of bytes.
        address: the address.
        place: where the address is; None: in host memory.
    """
    device = source.place or place
    if device is None:
        copy_released(address, source.address + offset, size, source.owner)
    else:
        backend_at(device).copy(address, source.address + offset, size)
        release(source.owner)
