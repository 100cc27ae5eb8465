"""What a CUDA device offers."""

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
        """What NVRTC calls it."""
        return f"sm_{self.capability}"

    @property
    def cluster_blocks(self) -> int:
        """Blocks in the largest cluster; 1 where there are none."""
        # All devices with clusters take 8 blocks; the data center ones take 16, if asked to.
        return 1 if self.capability < 90 else 16 if self.capability in (90, 100, 103) else 8
