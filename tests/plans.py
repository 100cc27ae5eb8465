"""Compare plans with exact compilations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import opendml as dml
from opendml.compiler.sized import at_sizes
from opendml.program.atoms import Dimension
from opendml.program.buckets import bucket_of, ranges_of
from opendml.program.carriers import carried
from opendml.program.program import Program
from opendml.program.sizes import hint_of, value_at
from opendml.program.trace import Trace
from opendml.runtime.graphs.named_model import NamedModel
from opendml.runtime.graphs.steps import resized
from opendml.runtime.graphs.traced_model import Plan, TracedModel
from opendml.targets.cpu.engine import KernelCompiler
from opendml.targets.cpu.executable import CpuExecutable, CpuSizedInstance, Job
from opendml.targets.cpu.native import (
    _CLAIM_WORDS,
    _CLAIMED,
    _DONE,
    _NEXT_ITEM,
    _NEXT_LAUNCH,
    _STATE,
    HEADER,
    LAUNCH,
    PATIENCE,
    TABLE,
    THREADS,
)
from opendml.targets.cpu.planning import CpuTracedProgram, _parts, _ReusableParts, _scheduled
from opendml.targets.cpu.schedule import KnownLaunches
from opendml.targets.memory import address_of

Array = np.ndarray[Any, Any]


def traces_of(model: dml.Model) -> list[TracedModel]:
    """Return all traces of a model with named dimensions."""
    assert isinstance(model, NamedModel)
    return [traced for traces in model._traces.values() for traced in traces]


def plans_of(model: dml.Model) -> list[Plan]:
    """Return all plans of a model with named dimensions."""
    return [plan for traced in traces_of(model) for plans in traced._plans.values() for plan in plans]


class Chosen(KnownLaunches):
    """The launches of a plan's choices, constructed anew for other sizes, which the plan serves."""

    def __init__(
        self, known: KnownLaunches, plan: Plan, ranges: Mapping[str, Dimension], served: Mapping[str, int]
    ) -> None:
        super().__init__()
        self._served = served
        self._of_plan, self._keys = known, known._keys
        self._hints = {name: replace(each, hint=plan.hints[name]) for name, each in ranges.items()}

    def find(self, form: Any, sizes: tuple[int, ...]) -> Any:
        """Find the launches that the plan has."""
        if form.trace is None:
            return self._of_plan.find(form, sizes)
        # Launches of other buckets that do not serve the sizes were passed over when the plan was made.
        with form.trace.within(self._hints, self._served):
            found = self._of_plan.find(form, tuple(map(hint_of, form.form.domain)))
        if found is None:
            return None
        try:
            made = found.construct()
        except IndexError:
            return found  # Loops of these sizes merge that the choice tells apart.
        # The bucket of the choice decides, too, whether stores bypass the caches.
        is_alike = [each.pattern for each in made] == [each.pattern for each in found.launches]
        return replace(found, launches=made) if is_alike else found


def check_words(model: dml.Model, **sizes: int) -> int:
    """Compare the words of all plans that serve some sizes with those of launches that are constructed by the
    same choices for these sizes.

    Return the number of plans.
    """
    count = 0
    for traced in traces_of(model):
        open_sizes = {name: sizes[name] for name in traced.maker.dimensions}
        if all(size == 1 for name, size in sizes.items() if name not in open_sizes):
            count += check_words_of(traced, open_sizes)
    return count


def check_words_of(traced: TracedModel, open_sizes: Mapping[str, int]) -> int:
    """Compare the words of a traced graph's plans as `check_words` does."""
    bucket, count = bucket_of(open_sizes.values()), 0
    for plan in traced._plans.get(bucket, ()):
        values = plan.values(open_sizes)
        if values is None:
            continue
        work = plan.compiled(values, traced.device)
        count += 1
        if traced.maker.traced is None:  # The plan is a stored one.
            traced._fuse_later()
        if 1 in open_sizes.values():
            continue  # Launches of larger sizes keep a loop over one element.
        assert isinstance(work.executable, CpuExecutable)
        # All decisions are made for these sizes, except the choices.
        wanted, arena_bytes = _constructed(traced, plan, open_sizes, open_sizes)
        job = work.executable._job
        if not np.array_equal(_decided(job.words), _decided(wanted.words)):
            # A bucket decides, too, whether stores bypass the caches, whether short loops are unrolled, and
            # how many rows a block has.
            wanted, arena_bytes = _constructed(traced, plan, open_sizes, plan.hints)
        # How many threads take part, and whether they look for signals, is decided for a bucket.
        if job.words[THREADS] == wanted.words[THREADS]:
            assert job.arena_bytes == arena_bytes
        words = _decided(job.words)
        np.testing.assert_array_equal(words, _decided(wanted.words))
        np.testing.assert_array_equal(words_in_place(plan, open_sizes), words)
    return count


def _constructed(
    traced: TracedModel, plan: Plan, sizes: Mapping[str, int], hints: Mapping[str, int]
) -> tuple[Job, int]:
    """Return the launches that a plan's choices construct with hints in the bucket of some sizes, and the
    bytes of their arena."""
    program = traced.maker.traced
    assert isinstance(program, CpuTracedProgram)
    chosen = partial(at_sizes, sizes=plan.hints)
    ranges = zip(sizes, ranges_of(sizes.values()), strict=True)
    dimensions = {name: Dimension(hints[name], *range) for name, range in ranges}
    with traced._trace.within(dimensions):
        known = Chosen(program._known.launches, plan, dimensions, sizes)
        scheduled = _scheduled(program.kernels, chosen, known=known)
        with KernelCompiler() as compiler:
            made = _parts(program.program, program.kernels, None, compiler, scheduled, _ReusableParts())
        made.job.words[made.job.positions] = [value_at(size, sizes) for size in made.job.sizes]
        return made.job, value_at(made.job.arena_bytes, sizes)


def _decided(words: Array) -> Array:
    """Return the words of a job without those that are decided for a bucket."""
    found = words.copy()
    found[[THREADS, PATIENCE]] = 0
    return found


def words_in_place(plan: Plan, sizes: Mapping[str, int]) -> Array:
    """Return the words of an instance of a plan whose sizes were changed, without what runs write."""
    values, others = plan.values(sizes), plan.values(plan.hints)
    assert values is not None
    instance = plan.instances_on(None).take(values if others is None else others)
    assert isinstance(instance, CpuSizedInstance)
    instance.resize(values)
    words = instance._words.copy()
    words[instance._job.pointers] -= address_of(instance._words)
    written = [*range(_CLAIMED, _CLAIMED + _CLAIM_WORDS), _DONE]
    own = np.array(written)[:, np.newaxis] + np.arange(HEADER, HEADER + words[0] * LAUNCH, LAUNCH)
    words[[THREADS, PATIENCE, TABLE, _NEXT_LAUNCH, _NEXT_ITEM, _STATE, *own.flat]] = 0
    return words


def exactly(model: dml.Model, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return the results of a model that is compiled for the sizes of its inputs alone."""
    assert isinstance(model, NamedModel)
    found = model._build(resized(model._graph, model._sizes_of(inputs)), model._memory, None)
    assert isinstance(found, dml.Model)
    return found(dict(inputs))


def rows(x: Any, y: Any) -> dict[str, Any]:
    centred = dml.mean_variance_normalization1(x, None, None, axes=[3])
    sums = dml.cumulative_summation(dml.activation_tanh(x), axis=2)
    return {"softmax": dml.activation_softmax1(x, axes=[3]), "centred": centred, "sums": sums}


def attention(x: Any, y: Any) -> dict[str, Any]:
    scores = dml.gemm(x, y, trans_b="TRANSPOSE")
    return {"attention": dml.gemm(dml.activation_softmax1(scores, axes=[3]), y)}


def cache(x: Any, y: Any) -> dict[str, Any]:
    keys = dml.join([x, y], axis=2)
    return {"keys": keys, "scores": dml.gemm(y, keys, trans_b="TRANSPOSE")}


def windows(x: Any, y: Any) -> dict[str, Any]:
    weights = np.ones((32, 4, 3, 3), np.dtype(x.data_type.name.lower()))
    padded = {"start_padding": [1, 1], "end_padding": [1, 1]}
    return {"y": dml.activation_relu(dml.convolution(x, weights, strides=[1, 1], dilations=[1, 1], **padded))}


NETWORKS = (rows, attention, cache, windows)
"""Graphs with the dimensions batch, length and keys."""


def traced_program(make: Any, type: str, hints: Mapping[str, int]) -> tuple[Program, Trace]:
    """Return the program of one of NETWORKS with traced sizes, and their trace."""
    graph = dml.Graph()
    x = graph.input("x", type, ["batch", 4, "length", 64])
    y = graph.input("y", type, ["batch", 4, "keys", 64])
    model = graph.compile(make(x, y), "cpu")
    model._at({name: hint for name, hint in hints.items() if name in repr(model)})
    (traced,) = traces_of(model)
    return carried(traced._work.stages[0].program), traced._trace
