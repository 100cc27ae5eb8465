"""Estimates the cycles of a kernel's work on a CUDA device: the terms by which candidates are compared.

The figures are rough rates of an H200. They are chosen so that candidates change places where measurements on
it put the limits between them.
"""

from __future__ import annotations

from opendml.targets.cuda.machine import CudaMachine

UNIT_INSTRUCTIONS = 8
"""Instructions to load a unit, of 16 bytes at most, and to add it up."""
SHARED_INSTRUCTIONS = 2
"""Instructions that a unit takes more which goes through shared memory."""
BLOCK_MEETING = 100
"""Cycles until the threads of a block have put their sums together."""
DEVICE_MEETING = 1000
"""Cycles until small blocks have met in global memory."""

SIDE_BY_SIDE = 8
"""Threads that share a group which lies beside others: a block has 32 neighbouring groups, whose elements
fill cache lines."""
PANEL = 512
"""Elements or lines side by side in a panel: what is gathered from or put to many rows of it finds what other
rows took from the same sectors in the L2 cache."""
ELEMENT_STEP = 20.0
"""Cycles of an element that a thread reads and takes in, while others wait for theirs."""


def thread_meeting(threads: int) -> float:
    """Cycles until so many threads, of a warp or a block, have put their states together. With ELEMENT_STEP
    they put the limits at 512 and 16384 elements, where measurements on an H200 found them."""
    return 60 + 1.25 * threads


def reading(machine: CudaMachine, bytes: float) -> float:
    """Return the cycles in which all multiprocessors read bytes from memory."""
    return machine.memory_cycles(bytes) / machine.cores


def instructions(machine: CudaMachine, count: float) -> float:
    """Return the cycles in which all multiprocessors run instructions of single threads."""
    return machine.operation_cycles(count) / machine.cores
