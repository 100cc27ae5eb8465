"""Makes plans of a program with traced sizes: the hints for a bucket, and the guards that a plan meets."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from opendml.budget import meter
from opendml.floating_point import default_mode
from opendml.late_dataclass import dataclass
from opendml.logs import log, tell
from opendml.program.atoms import Dimension, Relation
from opendml.program.buckets import WIDE, ranges_of
from opendml.program.size_values import Conditions, Guard
from opendml.program.sizes import NotServedError, Size, is_met, names_of, value_at
from opendml.program.stored_sizes import WrittenSizes, guards_to_json
from opendml.runtime.graphs.refusals import Hints, Refusals, Refused
from opendml.targets.executable import TracedExecutable, TracedProgram

if TYPE_CHECKING:
    from opendml.program.trace import Guards, Trace
    from opendml.targets.backend import DeviceBackend

MOST_BUCKETS = 256
"""Buckets whose plans are kept, at most. Another one takes the place of the oldest."""
_MOST_ALIGNED = 32
"""The greatest power of two by which hints are chosen."""
UNTRACED = (ArithmeticError, IndexError, TypeError, ValueError)
"""Raised by code that needs plain integers and cannot take them. Then each size is compiled for itself."""

Known = TypeVar("Known")
New = TypeVar("New")
DimensionRanges = Mapping[str, tuple[int, int]]
"""The ranges of a bucket, by the names of dimensions."""


@dataclass(frozen=True)
class StoredPlan:
    """A plan as the cache keeps it.

    Args:
        executable: its executable.
        guards: those of the whole way from the graph to its launches.
        hints: the sizes for which its launches were chosen.
        refused: other hints that were tried before, with guards that must all hold for their plans.
    """

    executable: TracedExecutable
    guards: Sequence[Guard]
    hints: Hints
    refused: Refused

    def to_json(
        self, backend: DeviceBackend, facts: Callable[[WrittenSizes], dict[str, Any]] = lambda _: {}
    ) -> dict[str, Any] | None:
        """Return the plan as JSON. None: its executable cannot be stored.

        Args:
            backend: the device.
            facts: returns more as JSON, whose sizes are in the same table.
        """
        written = WrittenSizes()
        plan = backend.stored(self.executable, written)
        if plan is None:
            return None
        guards, refused = written.guards(self.guards), guards_to_json(self.refused)
        data = {"plan": plan, "guards": guards, "hints": dict(self.hints), "refused": refused}
        return {**data, **facts(written), "sizes": written.table()}


class PlanMaker:
    """Makes plans of a program with traced sizes.

    Args:
        trace: the trace of its sizes.
        guards: the guards of the program.
        multiple: hints are multiples of it where their ranges are large enough.
        traced: the program as kernels; None: it has not been fused, or cannot be.
        before_plan: is called before a plan is made; it may raise an error.
        only_sizes: the only size of each dimension so far; 0: it had several. None: there was no run yet.

    Attributes:
        trace: the trace.
        guards: the guards.
        dimensions: the names of its dimensions.
        traced: the program. None: it has no plans.
        has_one_size: False if plans in the cache are for other heights or widths of images.
        fuse: fuses the program, because no known plan serves some sizes. None: that was done, or tried.
    """

    def __init__(
        self,
        trace: Trace,
        guards: Guards,
        multiple: int,
        traced: TracedProgram | None,
        before_plan: Callable[[], None] | None = None,
        only_sizes: dict[str, int] | None = None,
    ) -> None:
        self.traced, self.has_one_size = traced, True
        self.fuse: Callable[[], None] | None = None
        self.trace, self._multiple, self._before_plan = trace, multiple, before_plan
        self.use_guards(guards)
        self.dimensions = tuple(trace.dimensions)
        self._only_sizes = {} if only_sizes is None else only_sizes
        self._fixed: tuple[TracedProgram, Mapping[str, int]] | None = None
        """The program for the only height and width of images so far, and these sizes by name."""
        self.refusals = Refusals()
        """The guards of plans that were given up, because they did not serve a call."""

    def use_guards(self, guards: Guards) -> None:
        """Use other guards of the program."""
        self.guards: Guards = dict(guards)
        self.serves = Conditions(self.guards)
        """Tells whether sizes meet the guards of the program."""
        self._known_equated: dict[Hashable, Hints] = {}
        """The results of `_equated`. Most sizes of a bucket have the same few hints."""
        self._known_failing: dict[Hashable, frozenset[str]] = {}
        """The dimensions of guards that hints do not meet."""

    def search(
        self,
        sizes: Mapping[str, int],
        known: Callable[[Hints], Known | None],
        new: Callable[[StoredPlan], New | None],
    ) -> Known | New | None:
        """Return what `known` or `new` returns for the first hints whose plan serves some sizes.

        Args:
            sizes: the sizes.
            known: uses a known plan of some hints. None: no such plan serves the sizes.
            new: uses a new plan. None: it does not serve the sizes.

        Returns:
            None: no plan serves the sizes.
        """
        if not self.serves(sizes):
            return None
        note_sizes(self._only_sizes, sizes)
        ranges, tried = self.ranges([sizes[name] for name in self.dimensions]), list[Hints]()
        for hints in self.candidates(ranges, sizes):
            found = known(hints)
            if found is not None:
                return found
            if self.fuse is not None and not self.refusals.cover(hints, sizes):
                self.fuse()
                return self.search(sizes, known, new)  # Guards of the fused program may leave other hints.
            plan = self.plan(ranges, hints, sizes)
            made = None if plan is None else new(StoredPlan(*plan, hints, self.refusals.of(tried)))
            if made is not None:
                return made
            tried.append(hints)
        return None

    def candidates(self, ranges: DimensionRanges, sizes: Mapping[str, int]) -> Iterator[Hints]:
        """Yield the hints of the plans that may serve some sizes, in the order in which they are tried.

        They follow from the sizes alone, so the plan of a size does not depend on which size came first. The
        odd hints of a bucket serve most of its sizes. The sizes themselves come last.
        """
        tried = list[Hints]()
        for wanted in self._wanted(ranges, sizes):
            hints = wanted
            # The graph is another one for hints that do not meet its guards.
            if not self.serves(hints):
                equated = self._equated(hints, ranges)
                hints = equated if self.serves(equated) else self._with_own(equated, sizes)
            if hints not in tried and self.serves(hints):
                yield hints
            tried.append(hints)
        if sizes not in tried:
            yield dict(sizes)

    def _wanted(self, ranges: DimensionRanges, sizes: Mapping[str, int]) -> Iterator[Hints]:
        """Yield hints for some sizes, which may not meet the guards of the graph.

        First come hints that are multiples, then those with the powers of two of the sizes. On a CUDA device,
        kernels also ask by what parts of a size can be divided. So at last a large size has a hint with the
        same remainder. Several large sizes, as of images, are compared with each other, and are hints
        themselves.
        """
        usual, aligned = hints_in(ranges, {}, self._multiple), hints_in(ranges, sizes, is_exact=True)
        yield usual
        yield aligned
        large = {name: sizes[name] for name in ranges if sizes[name] >= WIDE}
        if len(large) > 1:
            yield usual | large
            return
        for name, size in large.items():  # At most one.
            greatest = ranges[name][1]
            yield aligned | {name: greatest - (greatest - size) % _MOST_ALIGNED}

    def _equated(self, hints: Hints, ranges: DimensionRanges) -> Hints:
        """Return hints, some of them changed so that the equalities among the graph's guards hold."""
        key = tuple(hints.items()), tuple(ranges.items())
        if key in self._known_equated:
            return self._known_equated[key]
        found = dict(hints)
        for relation, size in self.guards:
            if relation is not Relation.ZERO or type(size) is not Size:
                continue
            try:
                excess = value_at(size, found)
                steps = {name: value_at(size, {**found, name: found[name] + 1}) - excess for name in ranges}
            except ArithmeticError:
                continue  # A divisor is 0 for these hints.
            for name, (least, greatest) in ranges.items():
                met = found[name] - steps[name] * excess
                if excess and abs(steps[name]) == 1 and least <= met <= greatest:
                    found[name] = met
                    break
        _keep(self._known_equated, key, found)
        return found

    def _with_own(self, hints: Hints, sizes: Mapping[str, int]) -> Hints:
        """Return hints that meet the graph's guards, with sizes of the call where other hints do not."""
        found = dict(hints)
        while found != sizes:
            key = tuple(found.items())
            names = self._known_failing.get(key)
            if names is None:
                failed = [size for relation, size in self.guards if not is_met(relation, size, found)]
                names = frozenset[str]().union(*map(names_of, failed))
                _keep(self._known_failing, key, names)
            if all(found[name] == sizes[name] for name in names):
                break
            found |= {name: sizes[name] for name in names}
        return found

    def ranges(self, sizes: Sequence[int]) -> DimensionRanges:
        """Return the ranges of the bucket of sizes of all dimensions."""
        named = zip(self.dimensions, ranges_of(sizes), strict=True)
        return {name: self._within(name, *range) for name, range in named}

    def _within(self, name: str, least: int, greatest: int) -> tuple[int, int]:
        """Return the part of a range that the dimension may have."""
        own = self.trace.range(self.trace.size(name).polynomial)
        return max(least, own[0]), min(greatest, own[1])

    def plan(
        self, ranges: DimensionRanges, hints: Hints, sizes: Mapping[str, int]
    ) -> tuple[TracedExecutable, list[Guard]] | None:
        """Return an executable for hints, and the guards of the whole way from the graph to its launches.

        As long as a model has run with one height and width of images, the plan serves only these. Its
        results have the same bits as those of a plan for all sizes.

        Args:
            ranges: the ranges of the bucket.
            hints: the sizes for which launches are chosen.
            sizes: the sizes of the call.

        Returns:
            None: its guards do not hold for the sizes, or the program has no plans.
        """
        if self.traced is None or not self.serves(sizes):
            return None
        if self.refusals.cover(hints, sizes):
            return None
        fixed = self._fixed_images()
        found = None if fixed is None else self._plan(*fixed, ranges, hints, sizes)
        if found is None and self.traced is not None:
            found = self._plan(self.traced, {}, ranges, hints, sizes)
        return found

    def _fixed_images(self) -> tuple[TracedProgram, Mapping[str, int]] | None:
        """Return the program for the only height and width of images so far, and these sizes by name.

        None: there were several sizes, or no images whose height and width are large and vary.
        """
        if self.traced is None or not self.has_one_size:
            return None
        only = {name: size for name, size in self._only_sizes.items() if size >= WIDE}
        if len(only) < 2:
            return None  # To look for images takes 2 % of the first run of a transformer.
        names = self.traced.image_dimensions
        if len(names) < 2 or not names <= only.keys():
            return None
        fixed = {name: only[name] for name in names}
        if self._fixed is None or self._fixed[1] != fixed:
            others = {name: self.trace.size(name) for name in self.dimensions}
            self._fixed = self.traced.at({**others, **fixed}), fixed
        return self._fixed

    def _plan(
        self,
        traced: TracedProgram,
        fixed: Mapping[str, int],
        ranges: DimensionRanges,
        hints: Hints,
        sizes: Mapping[str, int],
    ) -> tuple[TracedExecutable, list[Guard]] | None:
        """Return an executable and its guards as `plan` does. The first guard that does not hold ends the
        work.

        Args:
            traced: the program.
            fixed: the dimensions that are plain numbers in it.
            ranges, hints, sizes: those of `plan`.
        """
        if self._before_plan is not None:
            self._before_plan()
        dimensions = {name: Dimension(hints[name], *ranges[name]) for name in ranges}
        began = time.perf_counter()
        with self.trace.within(dimensions, sizes) as guards, meter().timed("compile_seconds", "a graph"):
            try:
                with default_mode():
                    executable = traced.compile()
            except NotServedError:
                self._refuse(guards, fixed, hints, sizes)
                return None
            except UNTRACED as error:
                log.warning("sizes cannot be traced through launches: %s: %s", type(error).__name__, error)
                executable = None
                if not fixed:
                    self.traced = None
            if executable is None:
                return None
            only = [(Relation.ZERO, self.trace.size(name) - size) for name, size in fixed.items()]
            every = [*self.guards, *guards, *only]
        tell(
            "planned a graph for sizes %s, which no plan served; now for %s with %d guards, in %.2f s",
            dict(sizes),
            ", ".join([f"{name} {first} to {last}" for name, (first, last) in ranges.items()]),
            len(every),
            time.perf_counter() - began,
        )
        return executable, every

    def _refuse(
        self, guards: Guards, fixed: Mapping[str, int], hints: Hints, sizes: Mapping[str, int]
    ) -> None:
        """Note the guards of a plan that does not serve some sizes. The arguments are those of `_plan`."""
        (relation, size), place = next(reversed(guards.items()))
        log.debug(
            "hints %s do not serve %s: %s %s at %s", dict(hints), dict(sizes), size, relation.name, place
        )
        if not fixed:
            self.refusals.note(hints, guards)


def _keep(known: dict[Any, Any], key: Hashable, value: object) -> None:
    """Add a value to a dict, in place of the oldest if there are many."""
    known[key] = value
    if len(known) > MOST_BUCKETS:
        del known[next(iter(known))]


def note_sizes(only_sizes: dict[str, int], sizes: Mapping[str, int]) -> None:
    """Note the sizes of a run among the only sizes of all dimensions. A dimension of several sizes has 0."""
    for name, size in sizes.items():
        if only_sizes.setdefault(name, size) != size:
            only_sizes[name] = 0


def _has_room(step: int, least: int, greatest: int, is_exact: bool) -> bool:
    """Return whether a hint may be an odd multiple of a step, which is near the end of its range unless it
    is exact."""
    return _last_odd_multiple(step, greatest) >= least if is_exact else greatest - least >= 2 * step


def _last_odd_multiple(step: int, greatest: int) -> int:
    """Return the greatest odd multiple of a step up to a number; a negative one if there is none."""
    return ((greatest // step - 1) | 1) * step


def hints_in(
    ranges: DimensionRanges,
    aligned_as: Mapping[str, int] = MappingProxyType({}),
    multiple: int = 1,
    is_exact: bool = False,
) -> dict[str, int]:
    """Return hints within ranges that differ from each other where the ranges allow it.

    Hints are odd, unless `aligned_as` has sizes, because schedules ask whether vectors fill rows and strides
    halve sizes. Then a hint is a multiple of the same power of two as its size, up to 32.

    Args:
        ranges: the ranges.
        aligned_as: sizes whose powers of two the hints have.
        multiple: hints are multiples of it where their ranges are large enough.
        is_exact: hints have the powers of two of sizes also where only the first part of a range has such.
    """
    hints: dict[str, int] = {}
    for name, (least, greatest) in ranges.items():
        size = aligned_as.get(name, 1)
        step = max(multiple, min(size & -size, _MOST_ALIGNED))
        while step > 1 and not _has_room(step, least, greatest, is_exact):
            step //= 2
        wanted = max(_last_odd_multiple(step, greatest), least)
        free = (each for each in range(wanted, least - 1, -2 * step) if each not in hints.values())
        hints[name] = next(free, wanted)
    return hints
