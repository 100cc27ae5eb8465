"""The reference as the runtime sees it: programs evaluated by NumPy over the bound buffers."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from opendml.program.program import Layout, Program
from opendml.targets.host import HostBackend, HostExecutable
from opendml.targets.reference.evaluate import Array, evaluate


class ReferenceBackend(HostBackend):
    """The backend of NumPy in float64."""

    kind: ClassVar[str] = "reference"

    def compile(self, program: Program, threads: int | None) -> HostExecutable:
        """Return the program as it is, for one thread."""
        return ReferenceExecutable(program)


class ReferenceExecutable(HostExecutable):
    """A program as it is."""

    def run(self, addresses: Sequence[int]) -> None:
        """Evaluate all results, then write them."""
        layouts = (*self.program.inputs, *self.program.outputs)
        tensors = [_tensor(address, layout) for address, layout in zip(addresses, layouts, strict=True)]
        count = len(self.program.inputs)
        results = evaluate(self.program.results, tensors[:count])
        for tensor, result in zip(tensors[count:], results, strict=True):
            tensor[...] = result


def _tensor(address: int, layout: Layout) -> Array:
    """Return the tensor at an address as an array over the same memory.

    A constant that no node reads is not bound: its address is 0.
    """
    if not address:
        return np.broadcast_to(np.zeros((), layout.type.numpy), layout.sizes)
    low, high = layout.span
    memory: Any = (ctypes.c_char * (high - low)).from_address(address + low)
    return np.ndarray(layout.sizes, layout.type.numpy, memory, -low, layout.strides)
