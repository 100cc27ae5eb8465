"""A fuzzer to try the machinery with: its cases fail in every way there is."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass

from tests.fuzz.case import Case
from tests.fuzz.choices import Choices

WAYS = ("passes", "fails", "hangs", "crashes", "ends")


@dataclass(frozen=True, repr=False)
class Sample(Case):
    """Ends in that way where the numbers are many and one is large."""

    way: str
    numbers: tuple[int, ...]

    def check(self) -> None:
        if len(self.numbers) < 3 or max(self.numbers) < 10:
            return
        match self.way:
            case "fails":
                raise AssertionError("as asked for")
            case "crashes":
                ctypes.string_at(0)
            case "hangs":
                while True:
                    pass
            case "ends":
                os._exit(3)


def make(choices: Choices) -> Sample:
    """Any of the ways, with up to 20 numbers."""
    return Sample(choices.of(WAYS), tuple(choices.several(lambda: choices.below(1000), 0, 20)))
