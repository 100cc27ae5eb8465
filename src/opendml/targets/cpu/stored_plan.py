"""Plans on disk, beside the machine code: a known program is neither fused nor scheduled again.

A plan is JSON: the words of jobs, with keys of machine code in place of addresses. Words that follow from
traced sizes are expressions (`stored_sizes`). It is found by a digest of the program, the machine, the number
of threads, and the sources of the compiler. The contents of constants do not count. What cannot be read, or
refers to machine code that is gone, is made anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from opendml.across_forks import importing
from opendml.compiler.recipe import Recipe
from opendml.digests import digest_of
from opendml.errors import Unsupported
from opendml.program.program import Layout, Program
from opendml.program.scalar_type import ScalarType
from opendml.targets import plan_files
from opendml.targets.compiled_files import recorder
from opendml.targets.cpu.executable import CpuParts, InitializationStep, Job
from opendml.targets.cpu.machine import machine
from opendml.targets.cpu.machine_code import (
    MachineCode,
    codes_of_keys,
    environment,
    forget_codes,
    note_runtime,
)
from opendml.targets.cpu.native import HEADER, LAUNCH
from opendml.targets.cpu.threads import available_threads
from opendml.targets.kept import Kept, KeptConstants
from opendml.targets.object_cache import plans_are_kept, read_object


def known_plan(program: Program, threads: int | None) -> CpuParts:
    """Return the plan of a program: from the cache, or made now and written there."""
    make = partial(_made, program, threads)
    plan = plan_files.known_plan(partial(plan_key, program, threads), plan_from_json, plan_to_json, make)
    lost = _lost_codes(plan) if plans_are_kept() else []
    if lost:
        forget_codes(lost)
        plan = make()
    return plan


def plan_key(program: Program, threads: int | None) -> str:
    """Return the key of a program's plan in the cache, which stands for all that the plan depends on."""
    with importing:
        from opendml.program.digest import program_digest  # A known model has no program.
    return digest_of(f"{circumstances()} {threads}\n{program_digest(program)}".encode()).hexdigest()


def circumstances() -> str:
    """Return all that a plan depends on beside its program, and the threads of its device."""
    return f"{environment()}\n{machine()}\n{available_threads()}"


def _made(program: Program, threads: int | None) -> CpuParts:
    """Fuse and schedule a program. A process that finds its plans does not pay for these imports."""
    with importing:
        from opendml.targets.cpu.planning import compile_plan
    return compile_plan(program, threads)


def _lost_codes(plan: CpuParts) -> list[str]:
    """Read the machine code of a plan for the recorder of this context, if there is one.

    Return the keys of what the cache has lost since this process linked it.
    """
    if recorder() is None:
        return []
    note_runtime()
    jobs = [plan.job, *(step.job for step in plan.steps)]
    keys = sorted({code.key for job in jobs for code in job.codes})
    return [key for key in keys if read_object(key) is None]


def _plain_number(number: int) -> int:
    """Return a number as it is, which is its JSON in plans of fixed sizes."""
    return number


Numbers = Callable[[Any], Any]
"""Makes JSON of numbers, or numbers of JSON."""


def plan_to_json(plan: CpuParts, written: Numbers = _plain_number) -> dict[str, Any]:
    """Return a plan as JSON, with keys of machine code. `written` makes JSON of traced numbers."""
    lost = _lost_codes(plan)
    if lost:
        problem = f"{lost[0]} is not in it (OPENDML_CACHE_BYTES=0 keeps nothing, and a small cache forgets)"
        raise Unsupported(f"a compiled file is made from the cache of machine code; {problem}")
    keys: dict[str, int] = {}
    return {
        "arena": plan.arena,
        "buffers": plan.buffers,
        "job": _job_to_json(plan.job, keys, written),
        "steps": [
            {
                "job": _job_to_json(step.job, keys),
                "constants": sorted(step.constants),
                "kept": [
                    [
                        each.size,
                        each.recipe.text,
                        each.recipe.constants,
                        each.is_computed,
                        each.reads_unaligned,
                    ]
                    for each in step.kept
                ],
                "buffers": step.buffers,
                "between": step.between,
            }
            for step in plan.steps
        ],
        "constants": [
            [number, layout.type.name, layout.sizes, layout.strides]
            for number, layout in plan.constants.layouts.items()
        ],
        "codes": list(keys),
    }


def _job_to_json(job: Job, keys: dict[str, int], written: Numbers = _plain_number) -> dict[str, Any]:
    words = job.words.copy()
    words[_addresses(words)] = words[job.positions] = 0
    return {
        "words": words.tolist(),
        "codes": [keys.setdefault(code.key, len(keys)) for code in job.codes],
        "arena_bytes": written(job.arena_bytes),
        "is_short": job.is_short,
        "positions": job.positions.tolist(),
        "sizes": [written(size) for size in job.sizes],
    }


def plan_from_json(data: dict[str, Any], read: Numbers = _plain_number) -> CpuParts | None:
    """Return a plan; None: some of its machine code is not in the cache. `read` makes traced numbers of
    JSON."""
    codes = codes_of_keys(data["codes"])
    if codes is None:
        return None
    steps = [
        InitializationStep(
            partial(_job_from_json, step["job"], codes),
            frozenset(step["constants"]),
            [
                Kept(size, Recipe(text, tuple(read)), number, is_computed, reads_unaligned=reads_unaligned)
                for size, text, read, is_computed, reads_unaligned in step["kept"]
            ],
            step["buffers"],
            [(buffer, size) for buffer, size in step["between"]],
        )
        for number, step in enumerate(data["steps"])
    ]
    layouts = {
        number: Layout(ScalarType[type], tuple(sizes), tuple(strides))
        for number, type, sizes, strides in data["constants"]
    }
    constants = KeptConstants(layouts, len(steps))
    job = _job_from_json(data["job"], codes, read)
    return CpuParts(job, steps, constants, data["buffers"], data["arena"])


def _job_from_json(data: dict[str, Any], codes: Sequence[MachineCode], read: Numbers = _plain_number) -> Job:
    own = [codes[number] for number in data["codes"]]
    words = np.array(data["words"], np.int64)
    words[_addresses(words)] = [code.address for code in own]
    job = Job.fixed(words, own, read(data["arena_bytes"]), data["is_short"])
    sizes = tuple([read(each) for each in data["sizes"]])
    return replace(job, positions=np.array(data["positions"], np.int64), sizes=sizes)


def _addresses(words: np.ndarray[tuple[int], np.dtype[np.int64]]) -> slice:
    """Return the positions of the addresses of machine code."""
    return slice(HEADER, HEADER + LAUNCH * int(words[0]), LAUNCH)
