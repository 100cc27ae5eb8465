"""Choose how a kernel is walked: the mode, the tiles and chunks, and what one thread takes at a time.

Each way is a candidate with an estimate of its cost, and the cheapest is taken. Choices depend on shapes and
caches. They depend on the number of threads only where all choices give the same bits, so that results do not
depend on it. They do not depend on addresses or numbers, so launches are kept by kernels' forms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

from opendml.budget import check_time
from opendml.compiler.kernel import Kernel
from opendml.compiler.loops import LONG, NumberedLoop
from opendml.compiler.sized import plain
from opendml.late_dataclass import dataclass
from opendml.program.sizes import hint_of, hints_of, is_traced
from opendml.program.trace import Answers, Trace
from opendml.targets.common.candidates import Decision, decide
from opendml.targets.common.forms import Memo, ValueBinding, form_of, key_of, recording, tensors_of, trace_of
from opendml.targets.common.kinds import KernelKind, kind_of
from opendml.targets.cpu.contraction.few_rows import ATTENTION
from opendml.targets.cpu.contraction.roles import Varying
from opendml.targets.cpu.contraction.schedule import CONTRACTIONS, ProductQuery
from opendml.targets.cpu.contraction.tiles import ITEMS, TileChoice
from opendml.targets.cpu.launch import (
    CLAIM_CYCLES,
    CpuLaunch,
    InterleavedLoops,
    Table,
    adds_as_for_hints,
    innermost_loop_of,
    loops_of,
    query_of,
)
from opendml.targets.cpu.machine import CpuMachine, machine
from opendml.targets.cpu.reach import Reach, reach_of_filters, reach_of_rows, windows_of
from opendml.targets.cpu.schedule_elements import ELEMENTS
from opendml.targets.cpu.schedule_groups import reductions
from opendml.targets.cpu.schedule_placing import POSITIONS, SCATTER, TOP, placing_query
from opendml.targets.cpu.schedule_scans import SCANNED_COLUMNS, SCANNED_ROWS
from opendml.targets.cpu.threads import available_threads

CpuDecision = Decision[list[CpuLaunch]]
Launches = Memo[list[CpuLaunch]]
Hints = Callable[[Any], Any]
"""Replaces traced sizes of kernels and their parts, as `compiler.sized.plain` does."""
_decisions = Memo["_Decided"]()
"""The choices for kernels whose sizes vary."""
_launches = Launches()
"""The launches of kernels of fixed sizes."""
_MOST_GROWTH = 20
"""The factor by which a size of a kernel may differ from the one for which its launches were chosen, at most.

The hint of a wide bucket is about 4 times that of the one before. Launches of a detector for batches of 7
take 0.99 to 1.04 times as long as own ones for 1. Those of a recognizer of text for widths of 1023 take 1.02
to 1.04 times as long for 40. Those for 61 take 1.01 times as long for 320 (AVX2, one thread). With a limit of
5, 30 to 70 kernels were chosen anew for such sizes, in four to six times the time."""
_UNEVEN = 1.15
"""The factor by which items that threads cannot share evenly may prolong a launch; an estimate."""


@dataclass(frozen=True, slots=True)
class _Decided:
    """The choice for a kernel with sizes that vary.

    Args:
        decision: the choice.
        reach: the other sizes that may reuse it.
        windows: the windows of an image that it multiplies.
        serves_traced: it may be reused where all sizes that vary are traced, also if it was made for plain
            numbers of some.
        blocks: the blocks of a choice that `serves_traced`.
    """

    decision: CpuDecision
    reach: Reach | None
    windows: Hashable = None
    serves_traced: bool = False
    blocks: _Blocks | None = None

    def is_balanced_at(self, sizes: Sequence[int]) -> bool:
        """Return False if threads would not share the blocks of other sizes evenly."""
        return self.blocks is None or self.blocks.are_balanced_at(sizes)


@dataclass(frozen=True, slots=True)
class _Blocks:
    """The blocks of a product in tiles.

    Args:
        outer, rows, columns: the dimensions by their roles.
        choice: the tiles.
    """

    outer: tuple[int, ...]
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    choice: TileChoice

    def are_balanced_at(self, sizes: Sequence[int]) -> bool:
        """Return whether threads share the blocks evenly for sizes of the kernel's domain."""
        outer, m, n = (
            math.prod([sizes[each] for each in own]) for own in (self.outer, self.rows, self.columns)
        )
        items = outer * -(-m // self.choice.rows) * -(-n // self.choice.columns)
        return _are_shared_evenly(items, items * self.choice.item_cycles)


@dataclass(frozen=True, slots=True)
class _Choice:
    """The choice by which launches are constructed. Equal ones give launches with the same bits.

    Args:
        path: the chosen candidates with their choices in plain numbers.
        windows: the windows of an image that are multiplied.
        inner: the number of the innermost loop.
    """

    path: Hashable
    windows: Hashable
    inner: int


@dataclass(frozen=True, slots=True)
class _ConstructedLaunches:
    """The launches of a form that were constructed for some hints."""

    sizes: tuple[int, ...]
    """The hints of the domain."""
    launches: list[CpuLaunch]
    answers: Answers
    """The results of comparisons of sizes while the launches were constructed."""
    choice: _Choice
    reach: Reach | None
    """None: the launches serve their own sizes alone, and those with an equal choice."""
    construct: Callable[[], list[CpuLaunch]]
    """Constructs the launches for the present hints by the same choice."""


@dataclass(frozen=True, slots=True)
class _Earlier:
    """A choice that was made for other hints, or for plain numbers of some sizes."""

    sizes: tuple[int, ...]
    """The hints of the domain."""
    decided: _Decided
    loop: NumberedLoop | None
    """The innermost loop of traced sizes; None: the choice has no loops."""


@dataclass(frozen=True, slots=True)
class _TracedForm:
    """The form of a kernel with traced sizes, and what is the same for all buckets.

    Args:
        kernel: the kernel.
        form: its form.
        binding: what binds the form to it.
        usual: the form of the kernel with all sizes traced.
        key: a number that only kernels of equal forms have.
        usual_key: that of the usual form.
        trace: the trace of its sizes; None: all are plain numbers.
    """

    kernel: Kernel
    form: Kernel
    binding: ValueBinding
    usual: Kernel
    key: int
    usual_key: int
    trace: Trace | None


class PlanMemo:
    """Results that the kernels of a plan share, because their hints are the same.

    Attributes:
        launches: the traced launches by the keys of forms.
        tensors: the results of `tensors_of`.
    """

    def __init__(self) -> None:
        self.launches: dict[int, list[CpuLaunch]] = {}
        self.tensors: dict[Hashable, list[int]] = {}


class KnownLaunches:
    """The traced launches of a program's kernels for all buckets so far.

    A bucket reuses launches of another bucket under three conditions: its own launches would compute the same
    bits, sizes differ little, and all comparisons of sizes have the same results. The bucket then needs no
    choice, no construction and no new code. If the last condition is not met, it reuses the choice alone, as
    the first plan for all sizes does after one for a single height and width. Bound launches are the same
    objects in all buckets that reuse them, so what follows from them is recognized without a comparison
    (`planning`).

    Args:
        whole: the launches of the same program with all sizes traced, whose forms are found once for both;
            None: these are they.
    """

    def __init__(self, whole: KnownLaunches | None = None) -> None:
        self._whole = whole
        self._forms: dict[tuple[int, tuple[int, ...], int | None], _TracedForm] = {}
        """The forms of kernels by their identities, the tensors of their accesses and the usual form."""
        # Choices are shared by these numbers. Initializers are scheduled without a kernel of traced sizes.
        self._keys: dict[Hashable, int] = {} if whole is None else whole._keys
        self._known: dict[int, list[_ConstructedLaunches]] = {}
        self._earlier: dict[int, list[_Earlier]] = {} if whole is None else whole._earlier
        """Choices by the keys of usual forms."""
        self._bound: dict[tuple[int, int], list[CpuLaunch]] = {}

    def form_of(self, kernel: Kernel, whole: Kernel | None, memo: PlanMemo) -> _TracedForm:
        """Return the form of a kernel of the program, which is found once for all buckets in whose sizes the
        same accesses are of one tensor.

        Args:
            kernel: the kernel.
            whole: the kernel with all sizes traced; None: it is `kernel`.
            memo: that of the plan.
        """
        usual = None
        if whole is not None and self._whole is not None:
            usual = self._whole.form_of(whole, None, memo)
        # The form of another bucket would make choices depend on which bucket came first.
        tensors = tensors_of(kernel, memo.tensors)
        place = id(kernel), tensors, None if usual is None else usual.key
        known = self._forms.get(place)
        if known is None:
            if usual is not None and kernel is whole:
                form, binding = usual.form, usual.binding
            else:
                form, binding = form_of(kernel, tensors)
            others = None if usual is None else (usual.form.domain, usual.form.loads, usual.form.stores)
            number = self._keys.setdefault((*key_of(form), others), len(self._keys))
            usual_form, usual_key = (form, number) if usual is None else (usual.form, usual.key)
            known = _TracedForm(kernel, form, binding, usual_form, number, usual_key, trace_of(form))
            self._forms[place] = known
        return known

    def find(self, form: _TracedForm, sizes: tuple[int, ...]) -> _ConstructedLaunches | None:
        """Return launches that may serve sizes of the kernel's domain; None: there are none."""
        for known in self._known.get(form.key, ()):
            if _is_near(known, form, sizes) and (form.trace is None or form.trace.has_answers(known.answers)):
                return known
        return None

    def find_chosen(
        self, form: _TracedForm, sizes: tuple[int, ...], choice: _Choice
    ) -> _ConstructedLaunches | None:
        """Return launches of an equal choice that serve sizes of the kernel's domain; None: there are none.

        Constructing launches for these sizes would give ones with the same bits.
        """
        for known in self._known.get(form.key, ()):
            if known.choice != choice or not _differ_little(known.sizes, sizes):
                continue
            is_alike = all(map(adds_as_for_hints, known.launches))
            if is_alike and (form.trace is None or form.trace.has_answers(known.answers)):
                return known
        return None

    def find_earlier(self, form: _TracedForm, sizes: tuple[int, ...]) -> _Earlier | None:
        """Return a choice that gives sizes of the kernel's domain the bits of their own; None: there is none.

        All sizes of the kernel that vary must be traced.
        """
        for earlier in self._earlier.get(form.usual_key, ()):
            reach = earlier.decided.reach
            if reach is None or not _differ_little(earlier.sizes, sizes):
                continue
            if reach.covers(form.form, sizes):
                return earlier
        return None

    def add(self, form: _TracedForm, known: _ConstructedLaunches) -> None:
        """Add launches of a form, unless they are known."""
        every = self._known.setdefault(form.key, [])
        if not any(each is known for each in every):
            every.append(known)

    def add_earlier(self, form: _TracedForm, earlier: _Earlier) -> None:
        """Add a choice for a form."""
        self._earlier.setdefault(form.usual_key, []).append(earlier)

    def bound(self, form: _TracedForm, launches: list[CpuLaunch]) -> list[CpuLaunch]:
        """Return the launches of a kernel, made of added launches of its form."""
        key = id(form), id(launches)
        found = self._bound.get(key)
        if found is None:
            found = self._bound[key] = [launch.bound(form.binding) for launch in launches]
        return found


def _is_near(known: _ConstructedLaunches, form: _TracedForm, sizes: tuple[int, ...]) -> bool:
    """Return whether launches that were chosen for some sizes are good for others of their form."""
    if known.sizes == sizes:
        return True
    if known.reach is None or not _differ_little(known.sizes, sizes):
        return False
    if not known.reach.covers(form.form, sizes) or not all(map(_is_balanced, known.launches)):
        return False
    return bool(known.reach.limits) or _walks_alike(known, form, sizes)


def _walks_alike(known: _ConstructedLaunches, form: _TracedForm, sizes: tuple[int, ...]) -> bool:
    """Return whether the innermost loop of launches is that for other sizes of their form. Another one may be
    taken where short loops become long."""
    pairs = zip(known.sizes, sizes, strict=True)
    are_long = all(own == other or min(own, other) >= LONG for own, other in pairs)
    if are_long or not any(launch.pattern.groups for launch in known.launches):
        return True
    return known.choice.inner == innermost_loop_of(plain(form.form), loops_of(form.form)).number


def _differ_little(sizes: tuple[int, ...], others: tuple[int, ...]) -> bool:
    return all(max(a, b) <= _MOST_GROWTH * min(a, b) for a, b in zip(sizes, others, strict=True))


def _is_balanced(launch: CpuLaunch) -> bool:
    """Return whether threads share the items of a launch evenly, or one thread computes all of them."""
    return _are_shared_evenly(hint_of(launch.items), hint_of(launch.work))


def _are_shared_evenly(items: int, work: int) -> bool:
    """Return whether threads share items of some cycles in all evenly, or one thread computes all of them."""
    shares = work // CLAIM_CYCLES
    if shares < 2 or items >= ITEMS:
        return True
    joining = min(machine().threads or available_threads(), shares)
    return joining < 2 or -(-items // joining) * joining <= _UNEVEN * items


def schedule(
    kernel: Kernel,
    hints: Hints | None = None,
    memo: PlanMemo | None = None,
    whole: Kernel | None = None,
    known: KnownLaunches | None = None,
) -> list[CpuLaunch]:
    """Return the launches that run `kernel`, in order. Kernels of equal form are scheduled once.

    Args:
        kernel: the kernel. Its domain, strides and offsets may have traced sizes. Then those of launches are
            expressions, and the trace records for which sizes they are right.
        hints: returns a kernel with all sizes of the traced run, for which the launches are chosen. Constants
            are then packed in one layout for all sizes, also if nothing of the kernel is traced.
        memo: results that the kernels of a plan share.
        whole: the kernel with all sizes traced, if `kernel` has plain numbers for some of them. Launches are
            chosen for these numbers if results keep the bits that they have for traced sizes.
        known: the launches of the kernel's program for other hints.
    """
    check_time()
    if hints is None:
        form, binding = form_of(kernel)
        launches = _launches.get(form, _circumstances(), lambda: scheduled(form)[1])
        return [launch.bound(binding) for launch in launches]
    if known is None:
        known = KnownLaunches(None if whole is None else KnownLaunches())
    memo = PlanMemo() if memo is None else memo
    own = known.form_of(kernel, whole, memo)

    traced, usual, trace = own.form, own.usual, own.trace
    sizes = tuple(hints_of(traced.domain))

    asked: Answers = {}
    loops: InterleavedLoops | None = None

    def innermost_of(form: Kernel | None) -> NumberedLoop:
        nonlocal loops
        if loops is None:
            with recording(trace) as answers:
                loops = loops_of(traced)
            asked.update(answers)
        return innermost_loop_of(form, loops)

    def made(decided: _Decided, loop: NumberedLoop | None) -> _ConstructedLaunches:
        decision, inner = decided.decision, 0 if loop is None else loop.number
        choice = _Choice(decision.path, decided.windows, inner)
        found = known.find_chosen(own, sizes, choice)
        if found is not None:
            return found
        construct = partial(construct_traced, decision, traced, inner)
        with recording(trace) as answers:
            launches = construct(loops)
        return _ConstructedLaunches(sizes, launches, {**asked, **answers}, choice, decided.reach, construct)

    def constructed_now() -> list[CpuLaunch]:
        found = known.find(own, sizes)
        if found is not None:
            return found.launches
        varying, open_dimensions = _traced_dimensions(usual), _traced_dimensions(traced)
        form: Kernel | None = None
        earlier = known.find_earlier(own, sizes) if open_dimensions == varying else None
        if earlier is not None and earlier.decided.is_balanced_at(sizes):
            loop = None
            if earlier.loop is not None:
                # The loops of an element-wise kernel change no bits, so they need not be those of a choice.
                form = None if kind_of(traced) is KernelKind.ELEMENT_WISE else hints(traced)
                loop = innermost_of(form)
            if loop == earlier.loop:
                reused = made(earlier.decided, loop)
                if all(map(_is_balanced, reused.launches)):
                    known.add(own, reused)
                    return reused.launches
        form = form or hints(traced)
        table, query = table_of(form, None, varying, open_dimensions)
        if open_dimensions != varying and not keeps_bits(form, query):
            form, open_dimensions = hints(usual), varying
            table, query = table_of(form, None, varying, open_dimensions)
        decided = _decisions.get(
            form, (*_circumstances(), varying, open_dimensions), lambda: _decided(form, table, query)
        )
        # Tiles have no loop nest.
        has_loops = not isinstance(query, ProductQuery) or len(decided.decision.path) > 1
        loop = innermost_of(form) if has_loops else None
        if decided.serves_traced:
            known.add_earlier(own, _Earlier(sizes, decided, loop))
        new = made(decided, loop)
        known.add(own, new)
        return new.launches

    if own.key not in memo.launches:
        memo.launches[own.key] = constructed_now()
    return known.bound(own, memo.launches[own.key])


def _circumstances() -> tuple[CpuMachine, int]:
    """Return the machine and the number of threads, on which choices depend."""
    host = machine()
    return host, host.threads or available_threads()


def _decided(form: Kernel, table: Table, query: Any) -> _Decided:
    """Return the choice for a kernel with sizes that vary."""
    decision = decide(table, query)
    if not isinstance(query, ProductQuery):
        reach = Reach() if keeps_bits(form, query) else None
        return _Decided(decision, reach, serves_traced=reach is not None)
    tiles = decision.path[0][1]
    if not isinstance(tiles, TileChoice):
        return _Decided(decision, None)
    reach = reach_of_filters(query) if query.adds_one_way else reach_of_rows(query, tiles)
    serves_traced = reach is not None and query.serves_others(tiles)
    roles = query.roles[tiles.exchanged]
    blocks = _Blocks(roles.outer, roles.rows, roles.columns, tiles) if serves_traced else None
    return _Decided(decision, reach, windows_of(query, tiles), serves_traced, blocks)


def _traced_dimensions(kernel: Kernel) -> tuple[int, ...]:
    return tuple([number for number, size in enumerate(kernel.domain) if is_traced(size)])


def keeps_bits(kernel: Kernel, query: Any) -> bool:
    """Return whether all choices for a kernel with sizes that vary compute the same bits.

    Args:
        kernel: the kernel.
        query: its query.
    """
    return (
        query.adds_one_way if isinstance(query, ProductQuery) else kind_of(kernel) is KernelKind.ELEMENT_WISE
    )


def construct_traced(
    decision: CpuDecision, kernel: Kernel, inner: int, loops: InterleavedLoops | None = None
) -> list[CpuLaunch]:
    """Return the launches of a kernel with traced sizes, as they were chosen for its hints.

    Args:
        decision: the choice.
        kernel: the kernel.
        inner: the number of the innermost loop.
        loops: the loops of the kernel; None finds them.
    """
    return decision.construct(table_of(kernel, inner, loops=loops)[1])


def scheduled(kernel: Kernel, varying: Varying = None) -> tuple[CpuDecision, list[CpuLaunch]]:
    """Return the choice for a kernel and its launches, in order, without the memo.

    If sizes vary, the choice serves others too: constants have one layout, and few kinds of tiles are used.
    """
    table, query = table_of(kernel, varying=varying)
    decision = decide(table, query)
    return decision, decision.construct(query)


def table_of(
    kernel: Kernel,
    inner: int | None = None,
    varying: Varying = None,
    still_varying: Varying = None,
    loops: InterleavedLoops | None = None,
) -> tuple[Table, Any]:
    """Return the candidates for a kernel, and the query that they answer.

    Args:
        kernel: the kernel.
        inner: the number of the innermost loop, as of `innermost_loop_of`; None chooses it.
        varying: the dimensions whose sizes vary.
        still_varying: those of them that are traced in the chosen launches, too; None: all of them.
        loops: the loops of the kernel; None finds them.
    """
    kind = kind_of(kernel)
    if kind in (KernelKind.SCATTER, KernelKind.POSITIONS, KernelKind.TOP):
        return _TABLES[kind], placing_query(kernel)
    if kind in (KernelKind.CONTRACTION, KernelKind.ATTENTION):
        return _TABLES[kind], ProductQuery(kernel, machine(), inner, varying, still_varying)
    query = query_of(kernel, inner, loops)
    if kind is KernelKind.REDUCTION:
        return reductions(query)
    if kind is KernelKind.SCAN:
        return SCANNED_ROWS if query.nest.inner_reduced else SCANNED_COLUMNS, query
    return ELEMENTS, query


_TABLES = {
    KernelKind.SCATTER: SCATTER,
    KernelKind.POSITIONS: POSITIONS,
    KernelKind.TOP: TOP,
    KernelKind.CONTRACTION: CONTRACTIONS,
    KernelKind.ATTENTION: ATTENTION,
}
