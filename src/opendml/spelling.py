"""Find the names that a misspelt name may stand for."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from opendml.across_forks import importing

MOST_COMPARED = 512
"""Names that a misspelt one is compared with, at most: more than there are operators and their aliases."""
LONGEST_COMPARED = 80
"""Characters of names that are compared, at most: it takes the product of two names' lengths."""


def close_matches(name: str, names: Iterable[str], count: int = 1, cutoff: float = 0.6) -> list[str]:
    """Return the names that are spelt like `name`, the nearest first.

    Files may have any number of names of any length, so only the first `MOST_COMPARED` are compared, and none
    that is longer than `LONGEST_COMPARED`.

    >>> close_matches("actvation", ["activation", "reduction"])
    ['activation']

    Args:
        name: a misspelt name.
        names: those that there are.
        count: how many names to return, at most.
        cutoff: how alike they are, from 0 to 1, at least.
    """
    if len(name) > LONGEST_COMPARED:
        return []
    compared = [each for each in islice(names, MOST_COMPARED) if len(each) <= LONGEST_COMPARED]
    with importing:
        from difflib import get_close_matches  # Takes 1 MB, which programs without errors need not.
    return get_close_matches(name, compared, count, cutoff)
