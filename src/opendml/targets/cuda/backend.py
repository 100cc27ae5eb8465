"""The backend of the CUDA target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from opendml.errors import InvalidArgument
from opendml.program.program import Layout, Program
from opendml.program.scalar_type import ScalarType
from opendml.targets.backend import Array, StreamBackend
from opendml.targets.cuda.arrays import ready_memory
from opendml.targets.cuda.call import CudaCall
from opendml.targets.cuda.device_array import DeviceArray
from opendml.targets.cuda.driver import CudaDevice, device
from opendml.targets.cuda.executable import CudaExecutable, CudaInstance
from opendml.targets.cuda.launcher import CapturedLaunches
from opendml.targets.cuda.stored_plan import (
    circumstances,
    executable_from_json,
    executable_to_json,
    known_executable,
)
from opendml.targets.cuda.streams import stream_handle
from opendml.targets.executable import Executable, Instance, Runnable, TracedProgram
from opendml.targets.memory import OwnMemory, Place, TensorMemory
from opendml.targets.object_cache import plans_are_kept
from opendml.targets.plan_files import traced_to_json
from opendml.targets.planned import Planned, Timer
from opendml.targets.staged import StagedInstance


class CudaBackend(StreamBackend):
    """The CUDA device of a number. The driver is asked for it when it is opened."""

    kind: ClassVar[str] = "cuda"
    has_plans: ClassVar[bool] = True
    keeps_plans: ClassVar[bool] = True
    hint_multiple: ClassVar[int] = 8

    def __init__(self, place: Place) -> None:
        self.place = place
        self.index: int = place.number

    @property
    def _device(self) -> CudaDevice:
        return device(self.index)

    def open(self) -> None:
        """Open the device, if it is not open."""
        device(self.index)

    def compile(self, program: Program, threads: int | None) -> CudaExecutable:
        """Compile a program to kernels, or load its plan from the cache."""
        return known_executable(program, self.index)

    def traced(self, program: Program, threads: int | None) -> TracedProgram:
        """Cut a program with traced sizes into kernels."""
        from opendml.targets.cuda.planning import CudaTracedProgram

        return CudaTracedProgram(program, self.index)

    def compile_for_calls(self, program: Program, threads: int | None) -> Callable[[], Instance]:
        """Compile a program, and return a function that makes instances.

        Each of their dispatches allocates temporary memory in the order of its stream.
        """
        return _compiled(program, self.index).instantiate_without_arena

    def circumstances(self) -> str:
        """Return the device, and the versions of its driver, of NVRTC and of the compiler."""
        return circumstances(self.index)

    def can_store(self, executable: Executable) -> bool:
        """Return whether plans are kept and the executable is not made of several."""
        return isinstance(executable, CudaExecutable) and plans_are_kept()

    def stored(self, executable: Executable, written: Callable[[Any], Any]) -> dict[str, Any] | None:
        """Return an executable as JSON with keys of machine code. None: it cannot be stored."""
        if not self.can_store(executable):
            return None
        assert isinstance(executable, CudaExecutable)
        return executable_to_json(executable, written)

    def from_stored(self, data: dict[str, Any], read: Callable[[Any], Any]) -> CudaExecutable | None:
        """Return the executable that `stored` has made JSON of. None: some machine code is not cached."""
        return executable_from_json(data, read, self.index) if plans_are_kept() else None

    def stored_traced(self, program: TracedProgram, written: Callable[[Any], Any]) -> dict[str, Any] | None:
        """Return the kernels of a traced program as JSON. None: a node has no form in JSON."""
        return traced_to_json(program, written)

    def traced_from_stored(
        self, data: dict[str, Any], read: Callable[[Any], Any], threads: int | None
    ) -> TracedProgram:
        """Return the traced program that `stored_traced` has made JSON of."""
        from opendml.compiler.stored_kernels import program_from_json
        from opendml.targets.cuda.planning import CudaTracedProgram

        program, kernels = program_from_json(data, read)
        return CudaTracedProgram(program, self.index, kernels)

    def allocate(self, size: int) -> OwnMemory:
        """Allocate device memory."""
        return self._device.allocate(size)

    def create_buffer(self, size: int) -> DeviceArray:
        """Allocate zeroed device memory that is ready for all streams."""
        return DeviceArray(self._device, [size], ScalarType.UINT8, cleared=True)

    def empty(self, layout: Layout) -> DeviceArray:
        """Return an array that any stream may use."""
        owner = self._device
        array = DeviceArray(owner, layout.sizes, layout.type)
        owner.synchronize(owner.stream)
        return array

    def is_own(self, array: Any) -> bool:
        """Return whether an array is opendml's own, on this device."""
        return isinstance(array, DeviceArray) and array.device_index == self.index

    def upload(self, array: Array, layout: Layout) -> DeviceArray:
        """Copy a host array to the device."""
        copy = self.empty(layout)
        copy.copy_from(array)
        return copy

    def download(self, array: DeviceArray) -> Array:
        """Copy an array to host memory."""
        return array.to_host()

    def copy(self, target: int, source: int, size: int) -> None:
        """Copy and wait. The driver knows which addresses are on the device."""
        self._device.copy(target, source, size)

    def memory(self, array: Any, name: str) -> TensorMemory:
        """Return the memory of an array, ready in the order of its library's stream."""
        return ready_memory(array, name)

    def over(self, address: int, layout: Layout) -> DeviceArray:
        """Return an array over memory of the caller."""
        return DeviceArray(self._device, layout.sizes, layout.type, address=address)

    def call(self, first: Any) -> CudaCall:
        """Return a call on the current stream of the array's library."""
        return CudaCall(first)

    def stream(self, stream: Any, name: str) -> int:
        """Return the driver's handle of a stream."""
        return stream_handle(stream)

    def record(self, several: Sequence[Runnable]) -> CapturedLaunches:
        """Record dispatches as one CUDA graph."""
        return CapturedLaunches(
            [each for number, work in enumerate(several) for each in _launching(number, work)]
        )

    def plan(self, program: Program) -> Planned:
        """Return the kernels of a program. Each is one launch."""
        from opendml.targets.cuda.planning import plan

        return plan(program, self._device.machine)

    def timers(self, instance: Instance) -> list[Timer]:
        """Return timers that measure launches between two events of the driver."""
        assert isinstance(instance, CudaInstance)
        return instance.timers()

    def synchronize(self) -> None:
        """Wait for all streams of the device."""
        self._device.synchronize_all()


def _compiled(program: Program, device_index: int) -> CudaExecutable:
    from opendml.targets.cuda.planning import compiled_program

    return compiled_program(program, device_index)


def _launching(number: int, work: Runnable) -> list[CudaInstance]:
    """Return the instances of bound work, which may only launch kernels."""
    stages = work.instances if isinstance(work, StagedInstance) else [work]
    launching = [stage for stage in stages if isinstance(stage, CudaInstance)]
    if len(launching) < len(stages):
        raise InvalidArgument(
            f"record: [{number}] is over host memory, a recording itself, or of a debug device; "
            "bind device arrays"
        )
    return launching
