"""Programs on a CUDA device over host memory: what is bound is copied there, and the results back, at every
dispatch."""

from __future__ import annotations

from opendml.program.program import Layout, Program
from opendml.targets.cuda.executable import CudaExecutable, CudaInstance


class HostedExecutable:
    """A program for the device `device_index`, over tensors in host memory.

    Raises:
        InvalidArgument: no such device.
        Unsupported: CUDA is not available; the message says what is missing.
    """

    def __init__(self, program: Program, device_index: int = 0) -> None:
        self._program = program
        self.on_device = CudaExecutable(program, device_index)
        """The same program over tensors in device memory."""

    @property
    def temporary_bytes(self) -> int:
        """The arena of each instance, without the copies of the tensors."""
        return self.on_device.temporary_bytes

    def instantiate(self) -> HostedInstance:
        """A new instance with device memory for all tensors."""
        return HostedInstance(self._program, self.on_device.instantiate(), self.on_device)


class HostedInstance:
    """A program with copies of its tensors on the device."""

    def __init__(self, program: Program, instance: CudaInstance, executable: CudaExecutable) -> None:
        self._inputs = len(program.inputs)
        layouts = (*program.inputs, *program.outputs)
        self._copies = [_Copy(layout, executable) for layout in layouts]
        self._instance = instance
        for buffer, copy in enumerate(self._copies):
            instance.bind(buffer, copy.address)
        self._memory: object = None
        self._constants: set[int] = set()

    def bind(self, buffer: int, address: int) -> None:
        """Sets the address of a tensor's first element in host memory: inputs first, then outputs."""
        self._copies[buffer].host = address

    def bind_constant(self, buffer: int, address: int) -> None:
        """Sets an input in host memory that never changes: it is copied now, and never again."""
        self.bind(buffer, address)
        self._copies[buffer].upload()
        self._constants.add(buffer)

    def keep(self, memory: object) -> None:
        """Keeps an object alive as long as `dispatch` itself."""
        self._memory = memory

    def dispatch(self) -> None:
        """Copies the tensors to the device, runs the program, and copies the outputs back."""
        for number, copy in enumerate(self._copies):
            # What lies between the elements of a strided output comes back as it was.
            if number not in self._constants and (number < self._inputs or not copy.dense):
                copy.upload()
        self._instance.dispatch()
        for copy in self._copies[self._inputs :]:
            copy.download()


class _Copy:
    """The bytes of a tensor, from its lowest address to its highest, on the device."""

    def __init__(self, layout: Layout, executable: CudaExecutable) -> None:
        self._low, high = layout.span
        self._size = high - self._low
        self.dense = self._size == layout.element_count * layout.type.bytes
        self._memory = executable.device.allocate(self._size)
        self.host = 0

    @property
    def address(self) -> int:
        """Of the tensor's first element, on the device."""
        return self._memory.address - self._low

    def upload(self) -> None:
        """Copies the bytes to the device."""
        self._memory.write(self.host + self._low, self._size)

    def download(self) -> None:
        """Copies the bytes back."""
        self._memory.read(self.host + self._low, self._size)
