"""A case of the checks of the CUDA target."""

from __future__ import annotations

from dataclasses import dataclass

from opendml.program.program import Program


@dataclass(frozen=True)
class Case:
    """A program; `offset` elements lie before each tensor, so that addresses may be misaligned. Inputs are
    normally distributed, or, if `special`, of all magnitudes, with infinities and NaN. FLOAT32
    results may be off by `ulps` units in the last place, and all floats by `absolute` more.
    """

    name: str
    program: Program
    offset: int = 0
    mean: float = 0.0
    deviation: float = 2.0
    special: bool = False
    ulps: float = 4
    absolute: float = 0.0
