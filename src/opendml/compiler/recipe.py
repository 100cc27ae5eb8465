"""The description of prepared constants, the only part of the compiler that a known plan needs."""

from __future__ import annotations

from opendml.late_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Recipe:
    """A description of how memory is made of constants; equal recipes make equal bytes.

    Args:
        text: the computation, with constants numbered from 0 on; None: no text describes it.
        constants: the numbers of the constants in the program, in the order of the text.
    """

    text: str | None
    constants: tuple[int, ...]
