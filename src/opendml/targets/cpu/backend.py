"""The backend of the CPU target."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, ClassVar

from opendml.across_forks import importing
from opendml.program.program import Program
from opendml.targets.cpu.threads import chosen_threads
from opendml.targets.executable import Executable, Instance, TracedProgram
from opendml.targets.host import HostBackend
from opendml.targets.object_cache import plans_are_kept
from opendml.targets.plan_files import traced_to_json
from opendml.targets.planned import Planned, Timer, on_the_clock

if TYPE_CHECKING:
    from opendml.targets.cpu.executable import CpuExecutable


class CpuBackend(HostBackend):
    """Machine code for this processor. LLVM is loaded when the first program is compiled."""

    kind: ClassVar[str] = "cpu"
    has_plans: ClassVar[bool] = True
    keeps_plans: ClassVar[bool] = True
    maps_constants: ClassVar[bool] = True
    joins_units: ClassVar[bool] = True

    def open(self) -> None:
        """Check the setting of the number of threads."""
        chosen_threads()

    def compile(self, program: Program, threads: int | None) -> CpuExecutable:
        """Compile a program to machine code, or load its plan from the cache."""
        with importing:
            from opendml.targets.cpu.executable import CpuExecutable
            from opendml.targets.cpu.stored_plan import known_plan
        return CpuExecutable(known_plan(program, threads))

    def expecting_code(self) -> AbstractContextManager[None]:
        """Start the processes that compile machine code."""
        with importing:
            from opendml.targets.cpu.engine import expecting_code
        return expecting_code()

    def traced(self, program: Program, threads: int | None) -> TracedProgram:
        """Cut a program with traced sizes into kernels."""
        with importing:
            from opendml.targets.cpu.planning import CpuTracedProgram
        return CpuTracedProgram(program, threads)

    def compile_for_calls(self, program: Program, threads: int | None) -> Callable[[], Instance]:
        """Compile a program, and return a function that makes instances. All calls of a thread share
        memory."""
        with importing:
            from opendml.targets.cpu.executable import CpuExecutable
            from opendml.targets.cpu.planning import compile_plan
        return CpuExecutable(compile_plan(program, threads)).instantiate_without_arena

    def binder(self, instance: Instance, count: int) -> Callable[..., object]:
        """Return a function that binds the first `count` tensors by one write."""
        with importing:
            from opendml.targets.cpu.executable import CpuInstance
        assert isinstance(instance, CpuInstance)
        return instance.binder(count)

    def circumstances(self) -> str:
        """Return the processor, the versions of LLVM and of the compiler, and the number of threads."""
        with importing:
            from opendml.targets.cpu.stored_plan import circumstances
        return circumstances()

    def can_store(self, executable: Executable) -> bool:
        """Return whether plans are kept and the executable is not made of several."""
        with importing:
            from opendml.targets.cpu.executable import CpuExecutable
        return isinstance(executable, CpuExecutable) and plans_are_kept()

    def stored(self, executable: Executable, written: Callable[[Any], Any]) -> dict[str, Any] | None:
        """Return an executable as JSON with keys of machine code. None: it is made of several."""
        with importing:
            from opendml.targets.cpu.executable import CpuExecutable
            from opendml.targets.cpu.stored_plan import plan_to_json
        if not self.can_store(executable):
            return None
        assert isinstance(executable, CpuExecutable)
        return plan_to_json(executable.parts, written)

    def from_stored(self, data: dict[str, Any], read: Callable[[Any], Any]) -> CpuExecutable | None:
        """Return the executable that `stored` has made JSON of. None: some machine code is not cached."""
        with importing:
            from opendml.targets.cpu.executable import CpuExecutable
            from opendml.targets.cpu.stored_plan import plan_from_json
        parts = plan_from_json(data, read) if plans_are_kept() else None
        return None if parts is None else CpuExecutable(parts)

    def stored_traced(self, program: TracedProgram, written: Callable[[Any], Any]) -> dict[str, Any] | None:
        """Return the kernels of a traced program as JSON. None: a node has no form in JSON."""
        return traced_to_json(program, written)

    def traced_from_stored(
        self, data: dict[str, Any], read: Callable[[Any], Any], threads: int | None
    ) -> TracedProgram:
        """Return the traced program that `stored_traced` has made JSON of."""
        with importing:
            from opendml.compiler.stored_kernels import program_from_json
            from opendml.targets.cpu.planning import CpuTracedProgram
        program, kernels = program_from_json(data, read)
        return CpuTracedProgram(program, threads, kernels)

    def plan(self, program: Program) -> Planned:
        """Return the kernels of a program and their launches."""
        with importing:
            from opendml.targets.cpu.planning import plan
        return plan(program)

    def timers(self, instance: Instance) -> list[Timer]:
        """Return a timer for each launch, which runs as a job of its own."""
        with importing:
            from opendml.targets.cpu.executable import CpuInstance
        assert isinstance(instance, CpuInstance)
        return [on_the_clock(each.dispatch) for each in instance.alone()]
