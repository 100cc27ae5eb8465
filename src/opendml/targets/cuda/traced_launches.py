"""Launches with traced sizes, which all buckets of sizes of a program share where they may."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import fields, replace

from opendml.across_forks import cached_property
from opendml.compiler.kernel import Kernel
from opendml.compiler.loops import innermost_loop
from opendml.compiler.sized import numbers_in, plain, with_numbers, with_plain_nodes
from opendml.late_dataclass import dataclass
from opendml.program.sizes import Answers, hint_of, is_traced
from opendml.targets.common.candidates import Decision
from opendml.targets.common.forms import form_of, key_of, recording, trace_of
from opendml.targets.cuda.launch import VECTOR_BYTES, CudaLaunch, alignment_of
from opendml.targets.cuda.machine import CudaMachine
from opendml.targets.cuda.parameters import ParameterStruct
from opendml.targets.cuda.schedule import chosen, construct_traced

_SIZED = ("grid", "maps", "shared_bytes", "counters_bytes", "scratch_bytes")
"""The fields of a launch, beside its words, that may be traced."""


class TracedLaunch:
    """A launch with traced sizes.

    Args:
        launch: the launch.
        alignments: of the accesses for which it is made.

    Attributes:
        launch: the launch.
        code: its machine code; empty: it is not compiled yet.
    """

    def __init__(self, launch: CudaLaunch, alignments: tuple[int, ...]) -> None:
        self.launch, self.alignments, self.code = launch, alignments, b""
        self.parameters = ParameterStruct(launch.pattern)
        self._words = [name for name, word in launch.values.items() if is_traced(word)]
        self._rest = {name: getattr(launch, name) for name in _SIZED}
        self.numbers = [*(launch.values[name] for name in self._words), *numbers_in(self._rest)]
        """The traced numbers: words, then those of other fields."""

    @cached_property
    def key(self) -> Hashable:
        """A key that is equal for launches that are equal for all sizes, once they are compiled."""
        # Equal expressions are one object. Comparing them would guard their values.
        words = {name: word for name, word in self.launch.values.items() if not is_traced(word)}
        return self.code, self.alignments, *map(id, self.numbers), repr((words, *self._plain()))

    def _plain(self) -> Iterator[object]:
        """Yield the fields of the launch, without traced numbers."""
        for each in fields(self.launch):
            if each.name not in ("pattern", "values", *_SIZED):
                yield getattr(self.launch, each.name)
        yield with_numbers(self._rest, [0] * len(numbers_in(self._rest)))
        yield self._words

    def sized(self, numbers: Sequence[int]) -> CudaLaunch:
        """Return the launch for values of its traced numbers."""
        words = dict(zip(self._words, numbers, strict=False))
        rest = with_numbers(self._rest, numbers[len(words) :])
        return replace(self.launch, values={**self.launch.values, **words}, **rest)


class TracedKernel:
    """A kernel with traced sizes, and what is the same for all buckets.

    Args:
        kernel: the kernel.
        keys: the numbers of forms, to which that of the kernel is added.

    Attributes:
        origin: the kernel.
        kernel: the kernel, whose values have no traced sizes.
        form, binding: its form, and what binds the form to it.
        key: the number of the form.
        trace: the trace of its sizes; None: all are plain numbers.
        numbers: its traced numbers.
        accesses: the buffers and the offsets of its accesses.
        offset_numbers: the traced offsets.
    """

    def __init__(self, kernel: Kernel, keys: dict[Hashable, int]) -> None:
        self.origin, self.kernel = kernel, with_plain_nodes(kernel)
        self.numbers = numbers_in(self.kernel)
        self.form, self.binding = form_of(self.kernel, plain(replace(kernel, values=(), numbers=())))
        self.key = keys.setdefault(key_of(self.form), len(keys))
        self.trace = trace_of(self.form)
        self.accesses = [(access.buffer, access.offset) for access in kernel.accesses]
        self.offset_numbers = [offset for _, offset in self.accesses if is_traced(offset)]

    def accesses_at(self, numbers: Sequence[int]) -> list[tuple[int | None, int]]:
        """Return the accesses for values of the traced offsets."""
        if not numbers:
            return self.accesses
        rest = iter(numbers)
        return [(buffer, next(rest) if is_traced(offset) else offset) for buffer, offset in self.accesses]

    def alignments(self) -> tuple[int, ...]:
        """Return the alignments of its accesses over tensors that are aligned, for the present hints."""
        return tuple(
            [
                VECTOR_BYTES if each.buffer is None else alignment_of(hint_of(each.offset))
                for each in self.kernel.accesses
            ]
        )


@dataclass(frozen=True, slots=True)
class _Known:
    """A launch of a form, and all that it depends on beside the form.

    Attributes:
        decision: the choice.
        inner: the number of the innermost loop.
        answers: the results of comparisons of sizes while it was constructed.
        launch: the launch.
    """

    decision: Decision[CudaLaunch]
    inner: int
    answers: Answers
    launch: CudaLaunch


class TracedLaunches:
    """The traced launches of a program's kernels for all buckets so far.

    A bucket reuses a launch of another bucket if the choices are equal, and all comparisons of sizes have the
    same results: it would construct the same one. The launch then needs no new code.
    """

    def __init__(self, machine: CudaMachine) -> None:
        self._machine = machine
        self._kernels: dict[int, TracedKernel] = {}
        self._keys: dict[Hashable, int] = {}
        self._known: dict[Hashable, list[_Known]] = {}
        self._bound: dict[tuple[int, int, tuple[int, ...]], tuple[CudaLaunch, TracedLaunch]] = {}

    def of(self, kernels: Iterable[Kernel]) -> list[tuple[TracedKernel, TracedLaunch]]:
        """Return kernels with their launches for the hints of the trace. The code of new ones is missing."""
        memo, found = dict[Hashable, CudaLaunch](), list[tuple[TracedKernel, TracedLaunch]]()
        for each in kernels:
            kernel = self._kernels.get(id(each))
            if kernel is None:
                kernel = self._kernels[id(each)] = TracedKernel(each, self._keys)
            alignments = kernel.alignments()
            key = kernel.key, alignments
            if key not in memo:
                memo[key] = self._launch(kernel, alignments)
            found.append((kernel, self._bound_to(kernel, memo[key], alignments)))
        return found

    def _launch(self, kernel: TracedKernel, alignments: tuple[int, ...]) -> CudaLaunch:
        """Return the launch of a kernel's form, perhaps that of another bucket."""
        form, trace = kernel.form, kernel.trace
        hints = plain(form)
        decision = chosen(hints, self._machine, alignments)
        with recording(trace):
            inner = innermost_loop(hints, traced=form).number
        known = self._known.setdefault((kernel.key, alignments), [])
        for each in known:
            is_equal = each.decision == decision and each.inner == inner
            if is_equal and (trace is None or trace.has_answers(each.answers)):
                return each.launch
        with recording(trace) as answers:
            launch = construct_traced(decision, form, self._machine, alignments, inner)
        if numbers_in(launch.pattern):  # The code is for the hints.
            return replace(launch, pattern=plain(launch.pattern))
        known.append(_Known(decision, inner, answers, launch))
        return launch

    def _bound_to(
        self, kernel: TracedKernel, launch: CudaLaunch, alignments: tuple[int, ...]
    ) -> TracedLaunch:
        """Return a launch of a kernel's form as that of the kernel."""
        key = id(kernel), id(launch), alignments
        if key not in self._bound:
            # The launch is kept, because another one could get its number.
            self._bound[key] = launch, TracedLaunch(launch.bound(kernel.binding), alignments)
        return self._bound[key][1]
