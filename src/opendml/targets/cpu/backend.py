"""The backend of the CPU target."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from opendml.across_forks import importing
from opendml.program.program import Program
from opendml.targets.cpu.threads import chosen_threads
from opendml.targets.executable import Instance
from opendml.targets.host import HostBackend
from opendml.targets.planned import Planned, Timer, on_the_clock

if TYPE_CHECKING:
    from opendml.targets.cpu.executable import CpuExecutable


class CpuBackend(HostBackend):
    """Machine code for this processor. LLVM is loaded when the first program is compiled."""

    kind: ClassVar[str] = "cpu"

    def open(self) -> None:
        """Check the setting of the number of threads."""
        chosen_threads()

    def compile(self, program: Program, threads: int | None) -> CpuExecutable:
        """Compile a program to machine code."""
        with importing:
            from opendml.targets.cpu.executable import CpuExecutable
        return CpuExecutable(program, threads)

    def compile_for_calls(self, program: Program, threads: int | None) -> Callable[[], Instance]:
        """Compile a program, and return a function that makes instances. All calls of a thread share
        memory."""
        return self.compile(program, threads).instantiate_without_arena

    def plan(self, program: Program) -> Planned:
        """Return the kernels of a program and their launches."""
        with importing:
            from opendml.targets.cpu.executable import plan
        return plan(program)

    def timers(self, instance: Instance) -> list[Timer]:
        """Return a timer for each launch, which runs as a job of its own."""
        from opendml.targets.cpu.executable import CpuInstance

        assert isinstance(instance, CpuInstance)
        return [on_the_clock(each.dispatch) for each in instance.alone()]
