"""A kernel's groups in units of up to 16 bytes: over which loops the units run, how many there are, and how
many groups lie side by side in a tile.

Where rows are not aligned, units run over their ends, or over groups that lie side by side. Then each thread
adds up columns that are not groups of their own but folded to groups.
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import replace
from functools import partial

from opendml.targets.common.candidates import Candidate, Estimate, Refusal
from opendml.targets.common.guards import guards_of
from opendml.targets.common.launch import power_of_two, power_of_two_within
from opendml.targets.common.pattern import Step
from opendml.targets.cuda.costs import UNIT_INSTRUCTIONS, instructions, reading
from opendml.targets.cuda.launch import CudaQuery, Table, UnitNest
from opendml.targets.cuda.parameters import launch_words
from opendml.targets.cuda.pattern import CudaAccess, CudaMode, Form, reduced

HELD_REGISTERS = 32
"""Registers, of 4 bytes, in which a thread holds the elements of its groups."""
_MOST_UNITS, _MOST_NARROW_UNITS = 16, 40
"""Greatest number of units that a thread holds: each costs instructions and registers; more of single
elements in columns, for which there is no better way."""
_HELD_THREADS = 512
"""Threads whose registers should hold the columns of a tile."""
_LEAST_NARROW = 8
"""Least number of single elements side by side in a tile."""
_LEAST_COLUMN_BYTES, _MOST_COLUMN_BYTES = 64, 256
"""Least and greatest bytes that the groups side by side in one tile have in each row."""
_COLUMN_TILE_BYTES = 8 * 1024
"""Bytes that a tile of groups side by side has, about."""
_RUN_GAIN, _FOLD_GAIN = 2, 4
"""Times as many instructions a unit takes that runs over the ends of rows, and of columns that are folded:
such units must be so many times as wide to be worth it."""
_FOLD_LANES = 4
"""Greatest number of columns that a thread has where they are folded, or have many rows: each takes
registers."""
_MANY_ROWS = 512
"""Greatest number of rows of groups side by side of which a thread has as many lanes as a unit of 16 bytes
has: more rows take so many threads that their registers do not suffice for more lanes."""
_LEAST_FOLD, _MOST_FOLD = 24, 256
"""Least and greatest number of threads side by side where columns are folded."""
_MOST_ROWS, _MOST_ABREAST = 32, 8
"""Greatest number of rows, or groups, side by side in folded columns; more only to make whole units."""
_ROWS_SHARE = 8
"""Values of rows go to shared memory if their bytes, times this, are at most those of the elements."""


def in_passes(query: CudaQuery) -> Groups | Refusal:
    """The groups of a nest that is reduced in any way, in the widest units."""
    nest = query.nest
    if guards_of(nest.kernel.values):
        return Refusal("loads are guarded")
    if any(access.step is Step.STRIDED and not access.counter for access in nest.accesses):
        return Refusal("elements do not follow each other")
    forms = [form for form in (nest.flat() if nest.inner_reduced else None, nest) if form is not None]
    return max((Groups(replace(query, nest=form)) for form in forms), key=lambda groups: groups.vector)


def _in_form(query: CudaQuery, form: Form) -> UnitNest | None:
    """Return the nest of a query in a form, if there is one."""
    forms = {Form.FLAT: query.nest.flat, Form.ABREAST: query.nest.abreast}
    return forms[form]() if form in forms else query.nest


def _price_form(query: CudaQuery, form: Form) -> Estimate[Form] | Refusal:
    """Price the loading of all elements in a form."""
    nest = _in_form(query, form)
    if nest is None:
        return Refusal("elements do not follow each other there, or other operands do not allow it")
    groups = Groups(replace(query, nest=nest))
    if not groups.across:
        return Refusal(f"whole units take more than {_MOST_FOLD} columns")
    gain = 1 if form is Form.PLAIN else _FOLD_GAIN if groups.folded else _RUN_GAIN
    return Estimate(form, {"units": gain * groups.loading()})


def normalizations(groups: Table) -> Table:
    """Return the loops over which the units of a normalization may run. `groups` are the ways to launch it
    then."""

    def then(query: CudaQuery, form: Form) -> tuple[Table, Groups]:
        nest = _in_form(query, form)
        assert nest is not None
        return groups, Groups(replace(query, nest=nest))

    return tuple(
        Candidate(name, partial(_price_form, form=form), then=then)
        for name, form in (
            ("units over rows", Form.FLAT),
            ("units over groups", Form.ABREAST),
            ("units within rows", Form.PLAIN),
        )
    )


class Groups:
    """The groups of a nest.

    `columns`: each lane of a thread adds up what lies below it; `folded`: those sums make no group alone;
    `narrowed`: memory would allow wider units. `units` are those of a group below each other (all of them,
    without columns), `row_units` those side by side, `across` those of a tile; `width` counts the groups of a
    tile.
    """

    def __init__(self, query: CudaQuery) -> None:
        nest, alignments = query.nest, query.alignments
        self.nest, self.machine, self.alignments = nest, query.machine, alignments
        self.columns = not nest.inner_reduced or nest.form is Form.ABREAST
        self.folded = self.columns and nest.form is not Form.PLAIN
        vector = nest.vector(alignments, whole_rows=True)
        long = self.columns and not self.folded and nest.row_count > _MANY_ROWS
        self.vector = min(vector, _FOLD_LANES) if self.folded or long else vector
        self.narrowed = long and self.vector < vector
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

    @property
    def inner_units(self) -> int:
        """Units of a row, or its elements where units run over its end."""
        return self.nest.inner.count // (1 if self.nest.form is Form.FLAT else self.vector)

    def words(self, mode: CudaMode, **chosen: int) -> dict[str, int]:
        """Return the words of a launch; those that are not chosen are for one block per group."""
        words = {
            "units": self.units,
            "elements": self.elements,
            "rows": self.nest.row_count,
            "row_length": self.inner_units,
            "columns": 0,
            "column_tiles": 1,
            "slice_units": 0,
            "team": 1,
        }
        return launch_words(mode, **{**words, **chosen})

    @property
    def loads(self) -> float:
        """Units of all groups."""
        return self.nest.group_count * self.nest.row_count * self.nest.inner.count / self.vector

    @property
    def bytes(self) -> float:
        """Bytes of all elements that are reduced."""
        return self.loads * self.unit_bytes

    def reading(self) -> float:
        """Cycles to read all elements from memory."""
        return reading(self.machine, self.bytes)

    def loading(self, more: int = 0) -> float:
        """Cycles to load all units, with so many instructions more for each."""
        return instructions(self.machine, self.loads * (UNIT_INSTRUCTIONS + more))

    def in_elements(self) -> Groups:
        """The same groups where each element is a unit."""
        result = copy(self)
        result.vector, result.units = 1, self.elements
        return result

    def held_accesses(self) -> list[CudaAccess]:
        """The loads of elements that are reduced."""
        return [self.nest.accesses[number] for number in self.nest.held]

    @property
    def copyable(self) -> bool:
        """Whether what is reduced can be copied to shared memory: aligned, unguarded, in at least 4 bytes."""
        held = self.held_accesses()
        sizes = {a.type.bytes * self.vector for a in held}
        contiguous = (Step.CONTIGUOUS, Step.FLAT)
        plain = all(a.step in contiguous and not a.guarded for a in held)
        return len(sizes) == 1 and min(sizes) >= 4 and plain

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
        across = power_of_two_within(_LEAST_COLUMN_BYTES // self.unit_bytes)
        most = _MOST_COLUMN_BYTES // self.unit_bytes
        while (
            across < most
            and across < self.row_units
            and 2 * across * self.units * self.unit_bytes <= _COLUMN_TILE_BYTES
        ):
            across *= 2
        if self.vector == 1:
            narrow = _HELD_THREADS * self.most_units() // self.units
            across = min(across, power_of_two_within(narrow)) if narrow >= _LEAST_NARROW else across
        return min(across, power_of_two(self.row_units))

    def most_units(self) -> int:
        """Units that a thread holds in registers, at most."""
        if self.columns and self.vector == self.registers == 1:
            return _MOST_NARROW_UNITS
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
