"""Compare plans with exact compilations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import opendml as dml
from opendml.compiler.sized import at_sizes
from opendml.runtime.graphs.named_model import NamedModel
from opendml.runtime.graphs.steps import resized
from opendml.runtime.graphs.traced_model import Plan, TracedModel, bucket_of
from opendml.targets.cpu.executable import CpuExecutable
from opendml.targets.cpu.native import PATIENCE, THREADS
from opendml.targets.cpu.planning import CpuTracedProgram, _parts

Array = np.ndarray[Any, Any]


def traces_of(model: dml.Model) -> list[TracedModel]:
    """Return all traces of a model with named dimensions."""
    assert isinstance(model, NamedModel)
    return [traced for traces in model._traces.values() for traced in traces]


def plans_of(model: dml.Model) -> list[Plan]:
    """Return all plans of a model with named dimensions."""
    return [plan for traced in traces_of(model) for plans in traced._plans.values() for plan in plans]


def check_words(model: dml.Model, **sizes: int) -> int:
    """Compare the words of all plans that serve some sizes with those of exact launches by the same choices.

    Return the number of plans.
    """
    open_sizes = {name: size for name, size in sizes.items() if size > 1}
    bucket, count = bucket_of(open_sizes.values()), 0
    every = [(each, plan) for each in traces_of(model) for plan in each._plans.get(bucket, ())]
    for traced, plan in every:
        is_alike = traced._dimensions == tuple(open_sizes)
        work = plan.at(open_sizes, traced.device) if is_alike else None
        if work is None:
            continue
        count += 1
        program = traced._traced
        assert isinstance(program, CpuTracedProgram)
        assert isinstance(work.executable, CpuExecutable)
        exact, hints = (at_sizes(program._kernels, each) for each in (open_sizes, plan.hints))
        job, wanted = work.executable._job, _parts(program._program, exact, None, hints).job
        # How many threads take part, and whether they look for signals, is decided for a bucket.
        for each in (job, wanted):
            each.words[[THREADS, PATIENCE]] = 0
        np.testing.assert_array_equal(job.words, wanted.words)
        assert job.arena_bytes == wanted.arena_bytes
    return count


def exactly(model: dml.Model, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return the results of a model that is compiled for the sizes of its inputs alone."""
    assert isinstance(model, NamedModel)
    found = model._build(resized(model._graph, model._sizes_of(inputs)), model._memory, None)
    assert isinstance(found, dml.Model)
    return found(dict(inputs))
