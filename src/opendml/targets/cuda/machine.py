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
        """NVRTC's name of the compute capability, such as "sm_90"."""
        return f"sm_{self.capability}"

    @property
    def launches_early(self) -> bool:
        """Whether a kernel can be launched before the one before it has ended, and wait for it."""
        return self.capability >= 90
