"""The native part of the runtime: dispatch, work sharing between threads, sleeping and waking. Its code is
LLVM assembly, in the files of `assembly`; here are the numbers that stand in it.

A job is an array of 64-bit words: HEADER words, of which the first is the number of launches, then LAUNCH
words for each of them, of which the first is the address of its function.

Threads claim items by adding to NEXT and report them by adding to DONE; a launch is over when DONE reaches
its items, whoever worked on them. So a thread that comes late, or never, delays nobody. A launch that is
claimed at once is the caller's: from one such launch to the next, data stays in the caches of its core.
Where launches that read the same, or what the one before has made, follow each other, as in the steps of a
recurrence, each thread begins with a share of its own, the same in all of them (KEPT), and claims of
another's only what is late. Who has done all of such a launch, since the others were late, takes the next
one as if there were none.

A pool holds one job at a time: a caller that finds it taken does its work alone. Workers spin for a while on
the pool's epoch, then sleep in the system until it changes.

A caller whose patience ends returns between two claims, so that the interpreter can handle signals, and goes
on with `go_on`; meanwhile the workers work on, and the pool stays taken. `cancel` instead claims all that is
left, the last launch first, and reports it as done: then every thread finds its way out by itself.

Kernels run in the default floating-point mode, whatever the caller's is: a mode belongs to a thread, and who
computes an item must not matter.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

_FOLDER = Path(__file__).parent / "assembly"

HEADER = 16
"""Words in front of a job's launches; those without a name are reserved."""
THREADS = 1
"""The word that holds how many threads may take part."""
PATIENCE = 2
"""The word that holds the milliseconds after which the caller pauses; 0: never."""
_NEXT_LAUNCH = 3
_NEXT_ITEM = 4
"""The words that hold where a lone caller goes on after a pause."""
_STATE = 5
"""The word that holds how the caller has paused: _ALONE, _SHARED, or 0."""
TABLE = 6
"""The word that holds the address of the buffers, for a caller that gives the job alone: to hand over one
argument more takes a tenth of the time of a short dispatch."""
ROOM = 8
"""The first of three words that hold a thread's room for values of its own: buffer, offset, bytes."""

LAUNCH = 24
"""Words of a launch. The counts of items claimed and done, which threads contend for, have cache lines of
their own."""
PARAMETERS = 1
"""The word that holds the address of the parameters."""
FIRST = 2
"""The first of three words: the first item, the number of items, the items that a thread claims at a time."""
BACKWARDS = 5
"""The word that holds whether the last items are claimed first: what a launch before has read last may still
be in a cache."""
KEPT = 6
"""The word that holds whether each thread begins with a share of its own."""
MOST_KEPT = 64
"""Claims of a launch of which each thread has a share of its own, at most: each is a bit of NEXT."""
_NEXT = 8
_DONE = 16

_ALONE = 1
_SHARED = 2

FINISHED = 0
"""Returned by `begin` and `go_on`: all is done."""
PAUSED = 1
"""Returned where the caller's patience is at its end."""
WORKERS_MISSING = 2
"""Returned by `begin` where the process is a fork's child that has to start workers first."""
WORK_LOST = 3
"""Returned by `go_on` where the process became a fork's child while the caller paused: what workers had
claimed is lost."""

POOL_WORDS = 64
"""Words of a pool: the first is a lock; each of the others that are used has a cache line of its own."""
MISSING = 56
"""The word of a pool that holds whether workers are missing."""

_SPINS = 6000
"""Turns for which an idle worker waits for new work before it sleeps: some tens of microseconds."""
_WAITING = 1000
"""Turns for which a thread waits for another that holds work before it offers its processor to it."""
_LATE = 50
"""Turns for which a thread waits before it claims what another has not yet claimed of its own share: it would
read what lies in the other's cache, in place of what lies in its own."""
_PROCESSORS = {"x86_64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}
_SYSTEMS = {"darwin": "darwin", "win32": "windows"}
"""The files of `assembly` that know a processor and a system; Linux's for all others."""
_FUTEX = {"x86_64": 202, "aarch64": 98}
"""The number of Linux's system call."""

_NUMBERS = {
    "HEADER": HEADER,
    "THREADS": THREADS,
    "PATIENCE": PATIENCE,
    "NEXT_LAUNCH": _NEXT_LAUNCH,
    "NEXT_ITEM": _NEXT_ITEM,
    "STATE": _STATE,
    "TABLE": TABLE,
    "ALONE": _ALONE,
    "SHARED": _SHARED,
    "ROOM": ROOM,
    "LAUNCH": LAUNCH,
    "PARAMETERS": PARAMETERS,
    "FIRST": FIRST,
    "ITEMS": FIRST + 1,
    "GRAIN": FIRST + 2,
    "BACKWARDS": BACKWARDS,
    "KEPT": KEPT,
    "NEXT": _NEXT,
    "DONE": _DONE,
    "BEYOND_ALL": 2**62,
    "EPOCH": 8,
    "JOB": 16,
    "VISITORS": 24,
    "SLEEPERS": 32,
    "STOP": 40,
    "BUFFERS": 48,
    "MISSING": MISSING,
    "FINISHED": FINISHED,
    "PAUSED": PAUSED,
    "WORKERS_MISSING": WORKERS_MISSING,
    "WORK_LOST": WORK_LOST,
    "SPINS": _SPINS,
    "WAITING": _WAITING,
    "LATE": _LATE,
    "MXCSR_CONTROLS": 0xFFC0,  # all but the flags of exceptions that were met
    "MXCSR_DEFAULT": 0x1F80,  # every exception masked
}
"""The numbers of the assembly, by their names there."""

FUNCTIONS = ("dispatch_alone", "begin", "go_on", "cancel", "work")


def runtime_assembly(triple: str) -> str:
    """The functions of FUNCTIONS: dispatch_alone(job) for a job without patience, begin(job,
    buffers, pool), go_on(job, buffers, pool), cancel(job, pool) and work(pool, index)."""
    architecture = triple.split("-")[0]
    numbers = _NUMBERS | {"FUTEX": _FUTEX.get(architecture, 0)}
    names = (_PROCESSORS[architecture], _SYSTEMS.get(sys.platform, "linux"), "items", "calls")
    text = "".join((_FOLDER / f"{name}.ll").read_text("utf-8") for name in names)
    return f'target triple = "{triple}"\n' + re.sub(r"\{(\w+)\}", lambda name: str(numbers[name[1]]), text)
