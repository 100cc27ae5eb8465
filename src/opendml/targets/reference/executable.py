"""Programs on the reference target: evaluated by NumPy over the bound buffers."""

from __future__ import annotations

import ctypes
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from opendml.floating_point import default_mode
from opendml.program.program import Layout, Program
from opendml.targets.arenas import Arenas
from opendml.targets.kept import KeptConstants
from opendml.targets.reference.evaluate import Array, evaluate


class ReferenceExecutable:
    """A program as it is."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._constants = KeptConstants(program.inputs, program.constants, 0)
        self.kept = self._constants.kept
        """Copies of the constants: every dispatch evaluates all of the program."""

    @property
    def temporary_bytes(self) -> int:
        """None is planned: NumPy allocates as it goes."""
        return 0

    def constants_of(self, step: int) -> Collection[int]:
        """Return the numbers of the constants that a step of the initialization reads."""
        return self._constants.constants_of(step)

    def initialize(self, step: int, constants: Mapping[int, int], addresses: Mapping[int, int]) -> None:
        """Copy a constant."""
        (address,) = addresses.values()
        self._constants.copy(step, constants, address, ctypes.memmove)

    def instantiate(
        self, arena: int | None = None, kept: Sequence[int] = (), arenas: Arenas | None = None
    ) -> ReferenceInstance:
        """Return a new instance with nothing bound but its constants, which needs no arena."""
        instance = ReferenceInstance(self._program)
        self._constants.bind(instance, kept)
        return instance


class ReferenceInstance:
    """A program with its buffers."""

    enqueue = None

    def __init__(self, program: Program) -> None:
        self._program = program
        self._addresses = [0] * (len(program.inputs) + len(program.outputs))
        self._memory: object = None

    def bind(self, buffer: int, address: int) -> None:
        """Sets the address of a tensor's first element: inputs first, then outputs."""
        self._addresses[buffer] = address

    def keep(self, memory: object) -> None:
        """Keeps an object alive as long as `dispatch` itself."""
        self._memory = memory

    @default_mode()
    def dispatch(self) -> None:
        """Evaluates all results, then writes them."""
        layouts = (*self._program.inputs, *self._program.outputs)
        tensors = [_tensor(address, layout) for address, layout in zip(self._addresses, layouts, strict=True)]
        count = len(self._program.inputs)
        results = evaluate(self._program.results, tensors[:count])
        for tensor, result in zip(tensors[count:], results, strict=True):
            tensor[...] = result


def _tensor(address: int, layout: Layout) -> Array:
    """The tensor at an address as an array over the same memory."""
    low, high = layout.span
    memory: Any = (ctypes.c_char * (high - low)).from_address(address + low)
    return np.ndarray(layout.sizes, layout.type.numpy, memory, -low, layout.strides)
