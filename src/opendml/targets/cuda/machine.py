"""The properties of a CUDA device that decide about schedules."""

from __future__ import annotations

from opendml.late_dataclass import dataclass
from opendml.targets.common.machine import Machine

_INSTRUCTIONS = 128
"""Instructions of single threads that a multiprocessor begins in a cycle: four schedulers begin one of a warp
each, from capability 8.0 to 10.0 (CUDA C++ Programming Guide)."""
_H200_MEMORY_RATE = 20.0
"""Bytes that a multiprocessor of an H200 moves in a cycle while all do. With this figure, candidates change
places where measurements on an H200 put the limits. A large copy moves 4.2 TB/s there."""
_H200_PEAK = 2 * 3_201_000 * 6144 / 8 / (132 * 1_980_000)
"""Peak of that rate from the attributes of an H200. Memory moves two words of the bus (bits) in each cycle of
its clock (kHz). They are shared by multiprocessors, whose highest clock (kHz) counts."""
_L2_RATE = 32.0
"""Bytes that a multiprocessor reads from the L2 cache in a cycle while all do; fitted on an H100."""


def memory_rate(memory_clock: int, bus_bits: int, multiprocessors: int, clock: int) -> float:
    """Return the bytes that a multiprocessor moves from or to memory in a cycle while all do.

    An H200 reaches `_H200_MEMORY_RATE`, and other devices the same part of their peak. The result is rounded,
    so that devices of a model have equal schedules. Clocks are the highest ones, in kHz. Drivers of some
    virtual devices give 0 for what they do not know; such a device counts as an H200.
    """
    if min(memory_clock, bus_bits, clock) <= 0:
        return _H200_MEMORY_RATE
    peak = 2 * memory_clock * bus_bits / 8 / (multiprocessors * clock)
    return round(2 * peak * _H200_MEMORY_RATE / _H200_PEAK) / 2


@dataclass(frozen=True, slots=True)
class CudaMachine(Machine):
    """The properties of a device that schedules depend on.

    Args:
        capability: the compute capability; 90 for 9.0.
        multiprocessors: the number of multiprocessors.
        shared_bytes: the bytes of shared memory that blocks on a multiprocessor may use together.
        l2_bytes: the bytes of the L2 cache.
        memory_rate: the bytes that a multiprocessor moves from or to memory in a cycle while all do.
    """

    capability: int
    multiprocessors: int
    shared_bytes: int
    l2_bytes: int = 50 * 1024**2
    memory_rate: float = _H200_MEMORY_RATE

    @property
    def cores(self) -> int:
        """The number of multiprocessors."""
        return self.multiprocessors

    @property
    def lanes(self) -> int:
        """The threads of a warp."""
        return 32

    @property
    def registers(self) -> int:
        """The registers of a multiprocessor, of 32 bits."""
        return 65536

    @property
    def cache_rate(self) -> float:
        """The bytes that a multiprocessor reads from the L2 cache in a cycle while all do."""
        return _L2_RATE

    @property
    def operation_rate(self) -> float:
        """The instructions of single threads that a multiprocessor begins in a cycle."""
        return float(_INSTRUCTIONS)

    @property
    def half_products(self) -> int:
        """The products of FLOAT16 that the tensor cores of a multiprocessor add up in a cycle. They are 1024
        for capability 8.0, and twice that for each next one (devices of data centers)."""
        return 1024 << (self.capability // 10 - 8)

    @property
    def architecture(self) -> str:
        """NVRTC's name of the compute capability, such as "sm_80"; 9.0 has instructions of its own, which
        only "sm_90a" allows."""
        return f"sm_{self.capability}{'a' * self.multiplies_by_warpgroups}"

    @property
    def multiplies_by_warpgroups(self) -> bool:
        """True if tensor cores take operands from shared memory (wgmma)."""
        return self.capability == 90

    @property
    def launches_early(self) -> bool:
        """True if a kernel can be launched before the one before it has ended, and wait for it."""
        return self.capability >= 90
