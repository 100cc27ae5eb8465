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
