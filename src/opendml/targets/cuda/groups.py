"""A kernel's groups in units of up to 16 bytes: over which loops the units run, how many there are, and how
many groups lie side by side in a tile.

Where rows are not aligned, units run over their ends, or over groups that lie side by side. Then each thread
adds up columns that are not groups of their own but folded to groups.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from opendml.targets.cuda.launch import Nest
from opendml.targets.cuda.pattern import AccessPattern, Form, Step, reduced

HELD_REGISTERS = 32
"""Registers, of 4 bytes, in which a thread holds the elements of its groups."""
_MOST_UNITS = 16
"""Greatest number of units that a thread holds: each costs instructions and registers."""
_LEAST_COLUMN_BYTES, _MOST_COLUMN_BYTES = 64, 256
"""Least and greatest bytes that the groups side by side in one tile have in each row."""
_COLUMN_TILE_BYTES = 8 * 1024
"""Bytes that a tile of groups side by side has, about."""
_FOLD_GAIN = 4
"""Least factor by which folding columns must widen the units to be worth it."""
_FOLD_LANES = 4
"""Greatest number of folded columns that a thread has: each takes registers."""
_LEAST_FOLD, _MOST_FOLD = 24, 256
"""Least and greatest number of threads side by side where columns are folded."""
_MOST_ROWS, _MOST_ABREAST = 32, 8
"""Greatest number of rows, or groups, side by side in folded columns; more only to make whole units."""
_ROWS_SHARE = 8
"""Values of rows go to shared memory if their bytes, times this, are at most those of the elements."""


def widest_units(nest: Nest, alignments: Sequence[int]) -> Nest:
    """The nest in the form in which a thread moves most at a time."""
    best = Groups(nest, alignments)
    for form in (nest.flat(), nest.abreast()):
        if form:
            groups = Groups(form, alignments)
            gain = _FOLD_GAIN if groups.folded else 2
            if groups.vector >= gain * best.vector and groups.across:
                best = groups
    return best.nest


class Groups:
    """The groups of a nest.

    `columns`: each lane of a thread adds up what lies below it; `folded`: those sums make no group alone.
    `units` are those of a group below each other (all of them, without columns), `row_units` those side by
    side, `across` those of a tile; `width` counts the groups of a tile.
    """

    def __init__(self, nest: Nest, alignments: Sequence[int]) -> None:
        self.nest = nest
        self.columns = not nest.inner_reduced or nest.form is Form.ABREAST
        self.folded = self.columns and nest.form is not Form.PLAIN
        vector = nest.vector(alignments, whole_rows=True)
        self.vector = min(vector, _FOLD_LANES) if self.folded else vector
        self.elements = nest.row_count * (nest.inner.count if nest.inner_reduced else 1)
        moved = [a.type.bytes * (1 if a.step is Step.NONE else self.vector) for a in self.held_accesses()]
        self.unit_bytes = max(1, sum(moved))
        self.registers = max(1, sum(-(-bytes // 4) for bytes in moved))
        self.reduced = len(reduced(nest.kernel.values))
        self.row_units = math.prod(loop.count for loop in nest.run) // self.vector
        self.units = nest.row_count
        if self.folded:
            self._fold()
            return
        if not self.columns:
            self.units = self.row_units * (1 if nest.form is Form.FLAT else nest.row_count)
        self.across = self._across()
        self.width = self.across * self.vector if self.columns else 1

    def held_accesses(self) -> list[AccessPattern]:
        """The loads of elements that are reduced."""
        return [self.nest.accesses[number] for number in self.nest.held]

    def _fold(self) -> None:
        """Puts as many rows of a group, or groups, side by side as make whole units; `across` is 0 if those
        are too many.
        """
        nest, run = self.nest, self.nest.inner.count
        flat = nest.form is Form.FLAT
        all_runs, most = (nest.row_count, _MOST_ROWS) if flat else (nest.groups[-1].count, _MOST_ABREAST)
        runs = self.vector // math.gcd(self.vector, run)
        while runs * run < _LEAST_FOLD * self.vector and 2 * runs <= most and all_runs % (2 * runs) == 0:
            runs *= 2
        self.width = run if flat else runs
        self.across = runs * run // self.vector
        if max(self.across, self.width) > _MOST_FOLD:
            self.across = 0
        elif flat:
            self.row_units, self.units = self.across, self.row_units // self.across

    def _across(self) -> int:
        """Threads side by side in a tile."""
        if not self.columns:
            return 1
        across = max(1, _LEAST_COLUMN_BYTES // self.unit_bytes)
        most = _MOST_COLUMN_BYTES // self.unit_bytes
        while (
            across < most
            and across < self.row_units
            and 2 * across * self.units * self.unit_bytes <= _COLUMN_TILE_BYTES
        ):
            across *= 2
        return min(across, 1 << (self.row_units - 1).bit_length())

    def most_units(self) -> int:
        """Units that a thread holds in registers, at most."""
        return min(_MOST_UNITS, max(1, HELD_REGISTERS // self.registers))

    def tiles(self) -> tuple[int, int]:
        """Tiles side by side, and all tiles."""
        tiles = -(-self.row_units // self.across) if self.columns else 1
        groups = self.nest.group_count
        if self.nest.form is Form.ABREAST:
            groups //= self.nest.groups[-1].count
        return tiles, groups * tiles

    def row_bytes(self) -> int:
        """Bytes of shared memory that a row needs, where units run over its end and all groups need the same;
        0 if that is too much to keep.
        """
        broken = [access for access in self.nest.accesses if access.step is Step.BROKEN]
        bytes = sum(access.type.bytes for access in broken)
        few = bytes * self.vector * _ROWS_SHARE <= self.unit_bytes * self.nest.inner.count
        return bytes if few and not any(any(access.groups) for access in broken) else 0
