"""Compare what `opendml run` prints, whatever the machine and the time."""

from __future__ import annotations

import re

_CHANGING = re.compile(r"Running on '.*'\n|Dispatch '.*': \d+ iterations, \d+\.\d{4} ms median \(CPU\)\n")


def results_in(printed: str) -> str:
    """Return the lines on resources: without the device's name, and without times."""
    return _CHANGING.sub("", printed)
