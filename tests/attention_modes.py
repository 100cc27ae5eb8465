"""Records the kernels that a device of compute capability 9.0 has for programs compiled for the processor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from opendml.program.program import Program
from opendml.targets.cpu.backend import CpuBackend
from opendml.targets.cuda.planning import plan
from tests.cuda.compiled import MACHINES


@contextmanager
def planned_modes(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Record the modes of programs that are compiled within the context."""
    modes: list[str] = []
    with noted_programs(monkeypatch, lambda program: modes.extend(modes_on(program, 90))):
        yield modes


def modes_on(program: Program, capability: int) -> list[str]:
    """Return the modes of the kernels of a program on a device of a compute capability."""
    return [mode for (mode,) in plan(program, MACHINES[capability]).launches]


@contextmanager
def noted_programs(monkeypatch: pytest.MonkeyPatch, note: Callable[[Program], None]) -> Iterator[None]:
    """Within it, `note` is called with each program that is compiled."""

    def noting(compile: Callable[..., Any]) -> Callable[..., Any]:
        def noted(self: CpuBackend, program: Program, *rest: Any) -> Any:
            note(program)
            return compile(self, program, *rest)

        return noted

    with monkeypatch.context() as patch:
        for name in ("compile", "compile_for_calls"):
            patch.setattr(CpuBackend, name, noting(getattr(CpuBackend, name)))
        yield
