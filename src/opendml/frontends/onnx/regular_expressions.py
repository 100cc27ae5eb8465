"""Regular expressions of models, whose search ends in time.

Python's `re` goes back and tries again, which may take exponential time. A search that is known to be short
runs here; another one runs in a process of its own, which is ended when the time is up.
"""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from collections.abc import Sequence

from opendml.budget import meter
from opendml.errors import LimitExceeded, Unsupported

_MOST_HERE = 1_000_000
"""Steps of a search up to which it runs in this process. `re` makes about 50 million a second."""
_REPEATED_GROUP = re.compile(r"\)\s*[*+?{]|\\[1-9]|\(\?P=")
_PROGRAM = """
import json, re, sys
pattern, texts = json.load(sys.stdin)
search = re.compile(pattern).fullmatch
json.dump([search(text) is not None for text in texts], sys.stdout)
"""


def full_matches(pattern: str, texts: Sequence[str], where: object) -> list[bool]:
    """Return which texts a pattern matches as a whole.

    Raises:
        ValueError: the pattern is no regular expression.
        LimitExceeded: the search takes longer than `evaluator_seconds`.
        Unsupported: it takes a process of its own, and there is no Python to start.
    """
    if _most_steps(pattern, texts) <= _MOST_HERE:
        search = re.compile(pattern).fullmatch
        return [search(text) is not None for text in texts]
    if not sys.executable:
        raise Unsupported(f"{where}: a search of pattern {pattern!r} needs a process of its own")
    left = meter().seconds_left("evaluator_seconds")
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _PROGRAM],
            input=json.dumps([pattern, list(texts)]),
            capture_output=True,
            text=True,
            timeout=None if math.isinf(left) else max(left, 0),
        )
    except subprocess.TimeoutExpired as error:
        allowed = meter().limits.evaluator_seconds
        text = f"{where} (RegexFullMatch): a search of {pattern!r}"
        raise LimitExceeded("evaluator_seconds", allowed, allowed, text) from error
    if done.returncode:
        raise ValueError(f"pattern {pattern!r}: {done.stderr.strip().splitlines()[-1:]}")
    found: list[bool] = json.loads(done.stdout)
    return found


def _most_steps(pattern: str, texts: Sequence[str]) -> float:
    """Return an upper bound of the steps of a search.

    Each repetition may end at each character of a text, and each alternative doubles the ways. A group that
    is repeated, or referred to, may be split in exponentially many ways.
    """
    if _REPEATED_GROUP.search(pattern):
        return math.inf
    repetitions = sum(map(pattern.count, "*+?{"))
    ways: float = sum((len(text) + 1) ** repetitions for text in texts)
    return ways * len(pattern) * float(2 ** min(pattern.count("|"), 64))
