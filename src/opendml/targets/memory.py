"""Where a tensor's elements lie, in host memory or on a device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from opendml.program.program import Layout


@dataclass(frozen=True, slots=True)
class TensorMemory:
    """An array's elements: the address of the first, their layout, and whether they may be written.

    `device` is the number of the CUDA device that they are on, None for host memory. `owner` keeps them
    alive.
    """

    address: int
    layout: Layout
    writable: bool
    owner: Any
    device: int | None = None
