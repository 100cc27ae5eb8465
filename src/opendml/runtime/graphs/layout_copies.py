"""Copy arrays whose strides differ from those that a model was compiled for, and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from opendml.errors import InvalidArgument
from opendml.program.node import source
from opendml.program.program import Layout, Program, packed
from opendml.program.scalar_type import ScalarType
from opendml.runtime.graphs.compiled_work import call_maker
from opendml.runtime.memory.host_array import array_over
from opendml.spec.overlap import overlaps
from opendml.spec.tensor_desc import same_strides
from opendml.targets.backend import StreamCall
from opendml.targets.memory import HostMemory, TensorMemory
from opendml.targets.streams import StreamInstances

if TYPE_CHECKING:
    from opendml.runtime.objects.device import Device

Copy = Callable[[], object]


def lies_so(given: Layout, wanted: Layout) -> bool:
    """Return whether layouts of equal sizes have the same strides."""
    return same_strides(given.sizes, given.strides, wanted.strides)


def wrong_strides(name: str, given: Layout, wanted: Layout, fix: str) -> InvalidArgument:
    """Return the error of an array with wrong strides."""
    compiled = f"the graph was compiled for {list(wanted.strides)}"
    return InvalidArgument(f"{name}: strides {list(given.strides)} bytes; {compiled}{fix}")


class ArraysInLayout:
    """The arrays of a call, in the layouts that the model needs.

    Args:
        names: of the tensors, for messages.
        memories: of the arrays; None for constants.
        wanted: the layouts of the tensors.
        input_count: how many of them are inputs.
        new: makes memory of a layout.
        copy: a copy from one memory to the other.

    Raises:
        InvalidArgument: other strides for a tensor whose elements share memory.
    """

    def __init__(
        self,
        names: Sequence[str | None],
        memories: Sequence[TensorMemory | None],
        wanted: Sequence[Layout],
        input_count: int,
        new: Callable[[Layout], TensorMemory],
        copy: Callable[[TensorMemory, TensorMemory], Copy],
    ) -> None:
        self.addresses: list[int] = []
        """The addresses of all tensors but constants, in their order."""
        self.before: list[Copy] = []
        """Copies to make before the model runs."""
        self.after: list[Copy] = []
        for number, (name, memory, layout) in enumerate(zip(names, memories, wanted, strict=True)):
            if memory is not None and not lies_so(memory.layout, layout):
                if overlaps(layout.sizes, [abs(stride) for stride in layout.strides]):
                    raise wrong_strides(str(name), memory.layout, layout, ", where elements share memory")
                held = new(layout)
                if number < input_count:
                    self.before.append(copy(memory, held))
                else:
                    self.after.append(copy(held, memory))
                memory = held
            if memory is not None:
                self.addresses.append(memory.address)


def new_on_host(layout: Layout) -> TensorMemory:
    """Allocate host memory of a layout."""
    first, last = layout.span
    memory = HostMemory(last - first)
    return TensorMemory(memory.address - first, layout, True, memory)


def copy_on_host(from_: TensorMemory, to: TensorMemory) -> Copy:
    """Return a copy within host memory. It keeps both memories alive."""
    return lambda: np.copyto(array_over(to), array_over(from_))


class CopiesOnStream:
    """Copies on the stream of a call, by programs that are compiled once."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._programs: dict[tuple[Layout, Layout], StreamInstances] = {}

    def new(self, call: StreamCall, layout: Layout) -> TensorMemory:
        """Allocate memory of a layout with the library of the call."""
        first, last = layout.span
        array, address = call.empty([last - first], ScalarType.UINT8)
        return TensorMemory(address - first, layout, True, call.finished(array), call.place)

    def copy(self, call: StreamCall, from_: TensorMemory, to: TensorMemory) -> Copy:
        """Return a copy on the stream. One between packed arrays needs no program."""
        wanted = packed(from_.layout.type, from_.layout.sizes)
        if lies_so(from_.layout, wanted) and lies_so(to.layout, wanted):
            size = wanted.element_count * wanted.type.bytes
            return lambda: call.copy(to.address, from_.address, size)
        key = from_.layout, to.layout
        if key not in self._programs:
            read, written = key
            program = Program((read,), (written,), (source(0, read.type, read.sizes),))
            self._programs[key] = StreamInstances(call_maker(program, self._device))
        programs = self._programs[key]
        return lambda: programs.enqueue([from_.address, to.address], call.stream)
