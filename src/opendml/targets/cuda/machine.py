"""The properties of a CUDA device that decide about schedules."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Machine:
    """The facts that schedules depend on: compute capability (90 for 9.0), multiprocessors, and the bytes of
    shared memory that blocks on one of them may use together."""

    capability: int
    multiprocessors: int
    shared_bytes: int

    @property
    def architecture(self) -> str:
        """NVRTC's name of the compute capability, such as "sm_80"; 9.0 has instructions of its own, which
        only "sm_90a" allows."""
        return f"sm_{self.capability}{'a' * self.multiplies_by_warpgroups}"

    @property
    def multiplies_by_warpgroups(self) -> bool:
        """Whether tensor cores take operands from shared memory (wgmma)."""
        return self.capability == 90

    @property
    def half_products(self) -> int:
        """Products of FLOAT16 that the tensor cores of a multiprocessor add up in a cycle, in data centers'
        devices."""
        return 1024 << (self.capability // 10 - 8)

    @property
    def cached_bytes(self) -> int:
        """Return the bytes that a multiprocessor reads from the L2 cache in a cycle, when all of them do.
        Fitted on an H100."""
        return 32

    @property
    def launches_early(self) -> bool:
        """Whether a kernel can be launched before the one before it has ended, and wait for it."""
        return self.capability >= 90
