"""Estimates the cycles of a kernel's work on a CUDA device: the terms by which candidates are compared.

The figures are rough rates of an H200. They are chosen so that candidates change places where measurements on
it put the limits between them.
"""

from __future__ import annotations

from opendml.targets.cuda.machine import CudaMachine

SHARED_INSTRUCTIONS = 2
"""Further instructions of a unit that goes through shared memory; fitted, as all here, on an H200."""
DEVICE_MEETING = 1000
"""Cycles until small blocks have exchanged states in global memory."""

SIDE_BY_SIDE = 8
"""Threads that share a group which lies beside others. A block has 32 neighbouring groups, whose elements
fill cache lines."""
PANEL = 512
"""Elements or lines side by side in a panel. Gathers from many rows of a panel, and scatters to them, find
the sectors that other rows moved in the L2 cache."""
ELEMENT_STEP = 20.0
"""Cycles of an element that a thread reads and accumulates, while other threads wait for theirs."""


def thread_meeting(threads: int) -> float:
    """Return the cycles until threads of a warp or a block have merged their states. With ELEMENT_STEP they
    put the limits at 512 and 16384 elements, where measurements on an H200 found them."""
    return 60 + 1.25 * threads


def reading(machine: CudaMachine, bytes: float) -> float:
    """Return the cycles in which all multiprocessors read bytes from memory."""
    return machine.memory_cycles(bytes) / machine.cores


def read_by(machine: CudaMachine, bytes: float, blocks: int) -> float:
    """Return the cycles in which `blocks` blocks read bytes from memory.

    Each block has a multiprocessor of its own if there are enough.
    """
    return max(reading(machine, bytes), machine.cache_cycles(bytes) / min(blocks, machine.cores))


def instructions(machine: CudaMachine, count: float) -> float:
    """Return the cycles in which all multiprocessors run instructions of single threads."""
    return machine.operation_cycles(count) / machine.cores
