"""Launches with traced sizes, which all buckets of sizes of a program share where they may."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace

from opendml.compiler.kernel import Kernel
from opendml.compiler.loops import innermost_loop
from opendml.compiler.sized import numbers_in, plain, with_plain_nodes
from opendml.late_dataclass import dataclass
from opendml.program.sizes import hint_of
from opendml.program.trace import Answers
from opendml.targets.common.candidates import Decision
from opendml.targets.common.forms import form_of, key_of, recording, tensors_of, trace_of
from opendml.targets.cuda.launch import CudaLaunch, alignments_of
from opendml.targets.cuda.machine import CudaMachine
from opendml.targets.cuda.schedule import chosen, construct_traced


class TracedKernel:
    """A kernel with traced sizes, and what is the same for all buckets.

    Args:
        kernel: the kernel.
        tensors: the tensors of its accesses for the hints, as of `tensors_of`.
        keys: the numbers of forms, to which that of the kernel is added.

    Attributes:
        origin: the kernel.
        kernel: the kernel, whose values have no traced sizes.
        form, binding: its form, and what binds the form to it.
        key: the number of the form.
        trace: the trace of its sizes; None: all are plain numbers.
    """

    def __init__(self, kernel: Kernel, tensors: tuple[int, ...], keys: dict[Hashable, int]) -> None:
        self.origin, self.kernel = kernel, with_plain_nodes(kernel)
        self.form, self.binding = form_of(self.kernel, tensors)
        self.key = keys.setdefault(key_of(self.form), len(keys))
        self.trace = trace_of(self.form)


@dataclass(frozen=True, slots=True)
class _ConstructedLaunch:
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
        self._kernels: dict[tuple[int, tuple[int, ...]], TracedKernel] = {}
        self._keys: dict[Hashable, int] = {}
        self._known: dict[Hashable, list[_ConstructedLaunch]] = {}

    def of(self, kernels: Iterable[Kernel]) -> list[tuple[TracedKernel, CudaLaunch, tuple[int, ...]]]:
        """Return kernels with the launches of their forms for the hints of the trace, and the alignments of
        accesses for which these are made."""
        memo, known_tensors = dict[Hashable, CudaLaunch](), dict[Hashable, list[int]]()
        found = list[tuple[TracedKernel, CudaLaunch, tuple[int, ...]]]()
        for each in kernels:
            # A form of another bucket would make choices depend on which bucket came first.
            tensors = tensors_of(each, known_tensors)
            kernel = self._kernels.get((id(each), tensors))
            if kernel is None:
                made = TracedKernel(each, tensors, self._keys)
                kernel = self._kernels[id(each), tensors] = made
            alignments = alignments_of([kernel.kernel])
            key = kernel.key, alignments
            if key not in memo:
                memo[key] = self._launch(kernel, alignments)
            found.append((kernel, memo[key], alignments))
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
        traced = numbers_in(launch.pattern)
        if traced:
            # The code has the hints. So the plan serves the sizes alone for which the numbers are the same.
            assert all(number == hint_of(number) for number in traced)
            return replace(launch, pattern=plain(launch.pattern))
        known.append(_ConstructedLaunch(decision, inner, answers, launch))
        return launch
