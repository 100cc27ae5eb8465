"""Programs on a device with memory of its own, over host memory: what is bound is copied there, and the
results back, at every dispatch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from opendml.program.program import Layout
from opendml.targets.executable import Instance
from opendml.targets.memory import OwnMemory


class HostedInstance:
    """An instance over memory of the device, `instance`, with copies of its tensors there, of which the first
    `input_count` are its inputs. `allocate` makes memory on the device.

    Raises:
        Unsupported: out of memory.
    """

    enqueue = None

    def __init__(
        self,
        instance: Instance,
        layouts: Sequence[Layout],
        input_count: int,
        allocate: Callable[[int], OwnMemory],
    ) -> None:
        self._instance, self._allocate = instance, allocate
        self._layouts, self._input_count = layouts, input_count
        self._copies: dict[int, _Copy] = {}
        self._memory: object = None

    def bind(self, buffer: int, address: int) -> None:
        """Set the address of a tensor's first element in host memory: inputs first, then outputs."""
        copy = self._copies.get(buffer)
        if copy is None:
            copy = self._copies[buffer] = _Copy(self._layouts[buffer], self._allocate)
            self._instance.bind(buffer, copy.address)
        copy.host = address

    def keep(self, memory: object) -> None:
        """Keep an object alive as long as `dispatch` itself."""
        self._memory = memory

    def dispatch(self) -> None:
        """Copy the tensors to the device, run the program, and copy the outputs back."""
        for buffer, copy in self._copies.items():
            # What lies between the elements of a strided output comes back as it was.
            if buffer < self._input_count or not copy.dense:
                copy.upload()
        self._instance.dispatch()
        for buffer, copy in self._copies.items():
            if buffer >= self._input_count:
                copy.download()


class _Copy:
    """The bytes of a tensor, from its lowest address to its highest, on the device."""

    def __init__(self, layout: Layout, allocate: Callable[[int], OwnMemory]) -> None:
        self._low, high = layout.span
        self._size = high - self._low
        self.dense = self._size == layout.element_count * layout.type.bytes
        self._memory = allocate(self._size)
        self.host = 0

    @property
    def address(self) -> int:
        """The address of the tensor's first element on the device."""
        return self._memory.address - self._low

    def upload(self) -> None:
        """Copy the bytes to the device."""
        self._memory.write(self.host + self._low, self._size)

    def download(self) -> None:
        """Copy the bytes back."""
        self._memory.read(self.host + self._low, self._size)
