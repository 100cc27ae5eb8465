"""The number of threads that may share a dispatch."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from opendml.control_groups import group_folders, text_of
from opendml.errors import InvalidArgument
from opendml.spec.wording import shown
from opendml.targets.backend import MOST_THREADS

VARIABLE = "OPENDML_THREADS"


def available_threads() -> int:
    """Return OPENDML_THREADS, or the number of processors that this process may use.

    These are the processors of its affinity, and no more than the quota of its control groups.

    Raises:
        InvalidArgument: OPENDML_THREADS is not an integer from 1 to 1024.
    """
    chosen = chosen_threads()
    if chosen is not None:
        return chosen
    has_affinity = hasattr(os, "sched_getaffinity")
    processors = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    # More threads than the quota would be stopped for the rest of each period, all at once.
    return max(1, min(processors, int(_own_quota() or processors)))


def chosen_threads() -> int | None:
    """Return OPENDML_THREADS, or None if it is not set.

    Raises:
        InvalidArgument: the variable is not an integer from 1 to 1024.
    """
    given = os.environ.get(VARIABLE)
    if not given:
        return None
    # Python refuses to convert thousands of digits.
    number = int(given) if given.isascii() and given.isdecimal() and len(given) < 20 else 0
    if not 1 <= number <= MOST_THREADS:
        raise InvalidArgument(
            f"{VARIABLE}: {shown(given)}; a whole number from 1 to {MOST_THREADS} is needed, or no such "
            "variable"
        )
    return number


@cache
def _own_quota() -> float | None:
    """Return the quota of this process. It is read once, because that takes as long as loading a kernel."""
    return quota(Path("/"))


def quota(root: Path) -> float | None:
    """Return the number of processors that the control groups of this process allow. None: any number.

    Args:
        root: the folder that holds proc and sys.
    """
    new, old = group_folders(root, "cpu")
    shares = [*map(_share, new), *map(_old_share, old)]
    return min((share for share in shares if share is not None), default=None)


def _share(folder: Path) -> float | None:
    """Return the share of a group of version 2: "QUOTA PERIOD" in microseconds, or "max PERIOD"."""
    words = text_of(folder / "cpu.max").split()
    return None if len(words) != 2 or words[0] == "max" else int(words[0]) / int(words[1])


def _old_share(folder: Path) -> float | None:
    """Return the share of a group of version 1, in which a quota of -1 is none."""
    quota, period = (text_of(folder / f"cpu.cfs_{name}_us") for name in ("quota", "period"))
    return None if not quota or not period or int(quota) <= 0 else int(quota) / int(period)
