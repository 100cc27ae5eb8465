"""Operators on tensors of odd sizes that are large for the caches: every schedule, outputs that bypass the
caches, and rows that begin anywhere.

The caches are said to be small, so that tensors need not be large to be large for them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from opendml.spec.schema import operator
from opendml.targets.cpu.machine import assumed, machine
from tests.fuzz.choices import Choices
from tests.fuzz.descs import OnDesc
from tests.fuzz.random_descs import OPERATORS, any_desc
from tests.fuzz.recipes import RECIPES

L2_BYTES, LAST_CACHE_BYTES = 16 * 1024, 64 * 1024
ROWS = (513, 517, 600, 1025, 2049, 4099, 8191, 16_384, 65_537)
"""Lengths of the innermost dimension: hardly any is whole vectors."""
COLUMNS = (1, 2, 3, 7, 16, 33, 100, 257, 1000, 2100, 5001)
MOST_ELEMENTS = 250_000


@dataclass(frozen=True, repr=False)
class OnLarge(OnDesc):
    """An operator where the caches are small."""

    def check(self) -> None:
        small = replace(machine(), l2_bytes=L2_BYTES, last_cache_bytes=LAST_CACHE_BYTES)
        with assumed(small):
            super().check()


def make(choices: Choices) -> OnLarge:
    """A case with long rows or long columns, packed or with gaps."""
    name = choices.of([name for name in OPERATORS if name not in RECIPES])
    low, high = _ranks(name)
    sizes = [choices.of(ROWS)]
    while len(sizes) < 3:
        fitting = [side for side in COLUMNS if side * sizes[0] * sizes[-1] <= MOST_ELEMENTS]
        sizes.append(choices.of(fitting or [1]))
    sizes = sizes[::-1] if choices.below(3) else choices.shuffled(sizes)
    sizes = [*[1] * (low - len(sizes)), *sizes[-high:]]
    return OnLarge(any_desc(choices, sizes, [name]), (choices.below(1 << 16),))


def _ranks(name: str) -> tuple[int, int]:
    """How few and how many dimensions the operator takes."""
    tensors = operator(name).support[0].tensors.values()
    return max(each.dims[0] for each in tensors), min(each.dims[1] for each in tensors)
