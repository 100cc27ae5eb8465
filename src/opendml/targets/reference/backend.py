"""The reference as the runtime sees it."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from opendml.program.program import Program
from opendml.targets.executable import Instance
from opendml.targets.host import HostBackend
from opendml.targets.planned import Timer, on_the_clock
from opendml.targets.reference.executable import ReferenceExecutable


class ReferenceBackend(HostBackend):
    """NumPy in float64."""

    kind: ClassVar[str] = "reference"

    def compile(self, program: Program, threads: int | None) -> ReferenceExecutable:
        """The program as it is, for one thread."""
        return ReferenceExecutable(program)

    def compile_for_calls(self, program: Program, threads: int | None) -> Callable[[], Instance]:
        """Instances, which never have an arena."""
        return self.compile(program, threads).instantiate

    def plan(self, program: Program) -> None:
        """Every operation is one of NumPy."""

    def timers(self, instance: Instance) -> list[Timer]:
        """All of it."""
        return [on_the_clock(lambda: None), on_the_clock(instance.dispatch)]
