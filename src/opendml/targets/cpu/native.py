"""The native runtime: dispatch, work sharing between threads, sleeping and waking.

Its code is LLVM assembly in the folder `assembly`. This module has the numbers that the code contains.

A job is an array of 64-bit words. It begins with HEADER words; the first is the number of launches. LAUNCH
words for each launch follow; the first is the address of its function.

Threads claim items by setting bits of CLAIMED, and report them by adding to DONE. A launch is complete when
DONE reaches its number of items. Each thread begins with its own share, in the order of the items, and claims
items of other shares if these are late. So a late thread delays no other. Most of what a thread reads of the
launch before lies in its core's cache. From the cache of another core it reads 5 times as slowly, and writes
3 times (Sapphire Rapids). A thread that ran a whole launch has the whole next launch for its share. The
caller runs a launch of a single claim itself.

A pool has one job at a time. A caller that finds it occupied runs its job alone. Workers spin for a while on
the pool's epoch, then sleep in the system until it changes.

A caller whose patience ends returns between two claims, so that the interpreter can handle signals. `go_on`
continues the job. In the meantime the workers continue, and the pool stays occupied. `cancel` instead claims
all remaining items, the last launch first, and reports them as done. Then each thread leaves the job.

Kernels run in the default floating-point mode. A mode belongs to a thread, and results must not depend on the
thread that computes an item.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

_FOLDER = Path(__file__).parent / "assembly"

SCRATCH_SYMBOL = "scratch_bytes"
"""The name of the constant beside a kernel that holds the bytes of scratch that a thread needs for it."""

HEADER = 16
"""Words before the launches of a job. Words without a name are reserved."""
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
"""The word that holds the address of the buffers, for callers that pass only the job. A second argument takes
a tenth of the time of a short dispatch."""
SCRATCH = 8
"""The first of three words that describe the scratch memory of each thread: buffer, offset, bytes."""

LAUNCH = 24
"""Words of a launch. The bits of claims and the count of items done, which threads contend for, have cache
lines of their own."""
PARAMETERS = 1
"""The word that holds the address of the parameters."""
FIRST = 2
"""The first of three words: the first item, the number of items, the items that a thread claims at a time."""
BACKWARDS = 5
"""The word that holds whether the last items are claimed first: what a launch before has read last may still
be in a cache."""
_CLAIMED = 8
"""The first of the words with a bit for each claim, which is set when a thread has made the claim."""
_CLAIM_WORDS = 8
"""The number of these words: a cache line of 64 bytes."""
MOST_CLAIMS = 64 * _CLAIM_WORDS
"""Claims of a launch, at most: each is a bit. A job enlarges the grain of a launch that would have more."""
_DONE = 16  # The word that counts the items that are done, in another cache line.

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
"""Turns for which a thread waits for another one that holds work, before it yields its processor."""
_LATE = 50
"""Turns for which a thread waits before it claims items of another thread's share, whose data lie in the
cache of the other core."""
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
    "SCRATCH": SCRATCH,
    "LAUNCH": LAUNCH,
    "PARAMETERS": PARAMETERS,
    "FIRST": FIRST,
    "ITEMS": FIRST + 1,
    "GRAIN": FIRST + 2,
    "BACKWARDS": BACKWARDS,
    "CLAIMED": _CLAIMED,
    "CLAIM_WORDS": _CLAIM_WORDS,
    "DONE": _DONE,
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
    """Return the assembly of the functions in FUNCTIONS.

    They are dispatch_alone(job) for a job without patience, begin(job, buffers, pool), go_on(job, buffers,
    pool), cancel(job, pool) and work(pool, index).
    """
    architecture = triple.split("-")[0]
    numbers = _NUMBERS | {"FUTEX": _FUTEX.get(architecture, 0)}
    names = (_PROCESSORS[architecture], _SYSTEMS.get(sys.platform, "linux"), "items", "calls")
    text = "".join((_FOLDER / f"{name}.ll").read_text("utf-8") for name in names)
    return f'target triple = "{triple}"\n' + re.sub(r"\{(\w+)\}", lambda name: str(numbers[name[1]]), text)
