"""Functions that the code of many kernels calls: micro-kernels, and those that split numbers.

Each form is emitted once in a process, and compiled as an object of its own (`bundles.py`). They are a third
of the code of ResNet-50's kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from opendml.digests import digest_of
from opendml.late_dataclass import dataclass
from opendml.targets.cpu import ir
from opendml.targets.cpu.machine import CpuMachine, machine

_NAME = "function"
"""The name of a function before its name is known, which has the digest of its assembly."""


class SharedFunction(NamedTuple):
    """A function of other modules, as a module declares it.

    Args:
        function: the declaration.
        scratch_bytes: bytes of memory that a call needs.
    """

    function: ir.Function
    scratch_bytes: int


@dataclass(frozen=True, slots=True)
class _Emitted:
    """The assembly of a function."""

    digest: str
    text: str
    arguments: tuple[ir.Type, ...]
    scratch_bytes: int


def shared_function(
    module: ir.Module, name: str, emit: Callable[..., Any], *arguments: Any
) -> SharedFunction:
    """Declare a function that kernels share, and note its assembly for the module.

    Args:
        module: the module of a kernel.
        name: the beginning of the function's name.
        emit: `emit(module, name, *arguments)` emits the function, and returns it, or an object that has it
            and its `scratch_bytes`.
        arguments: those of `emit`. Equal ones give the same function.
    """
    emitted = _emitted(machine(), module.triple, emit, arguments)
    symbol = f"{name}.{emitted.digest}"
    module.shared_functions[symbol] = emitted.text.replace(f'@"{_NAME}', f'@"{symbol}')
    known = module.function(symbol)
    function = known or ir.Function(module, ir.VOID, emitted.arguments, symbol)
    return SharedFunction(function, emitted.scratch_bytes)


@lru_cache(maxsize=256)
def _emitted(_: CpuMachine, triple: str, emit: Callable[..., Any], arguments: tuple[Any, ...]) -> _Emitted:
    """Return the assembly of a function for a machine."""
    module = ir.Module(triple)
    made = emit(module, _NAME, *arguments)
    function = made if isinstance(made, ir.Function) else made.function
    function.linkage = ""
    text = str(module)
    types = tuple([each.type for each in function.args])
    module.clear()
    digest = digest_of(text.encode()).hexdigest()[:32]
    return _Emitted(digest, text, types, getattr(made, "scratch_bytes", 0))
