"""Programs on the reference target: evaluated by NumPy over the bound buffers."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

import numpy as np

from opendml.floating_point import default_mode
from opendml.program.program import Layout, Program
from opendml.targets.kept import KeptConstants
from opendml.targets.reference.evaluate import Array, evaluate


class ReferenceExecutable:
    """A program as it is."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._kept = KeptConstants(program.inputs, program.constants, 0)

    @property
    def temporary_bytes(self) -> int:
        """None is planned: NumPy allocates as it goes."""
        return 0

    @property
    def persistent_bytes(self) -> int:
        """Copies of the constants."""
        return self._kept.end

    def initialize(self, constants: Mapping[int, int], persistent: int) -> None:
        """Copies the constants: every dispatch evaluates all of the program."""
        self._kept.copy(constants, persistent, ctypes.memmove)

    def instantiate(self, arena: int | None = None, persistent: int = 0) -> ReferenceInstance:
        """A new instance with nothing bound but its constants, which needs no arena."""
        instance = ReferenceInstance(self._program)
        self._kept.bind(instance, persistent)
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
