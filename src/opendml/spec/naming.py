"""DirectML's names in Python's spelling."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice

_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def snake_case(field: str) -> str:
    """The Python name of a field of a desc.

    >>> snake_case("InputTensor"), snake_case("ATensor"), snake_case("OutputROIGradientTensor")
    ('input_tensor', 'a_tensor', 'output_roi_gradient_tensor')
    """
    return _WORD_START.sub("_", field).lower()


def camel_case(name: str) -> str:
    """The class name of an operator or an enumeration.

    >>> camel_case("MEAN_VARIANCE_NORMALIZATION1"), camel_case("UPSAMPLE_2D")
    ('MeanVarianceNormalization1', 'Upsample2D')
    """
    return "".join(word.upper() if word[0].isdigit() else word.capitalize() for word in name.split("_"))


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The name that a misspelt one may be for: itself in another case, one that ends so, or one spelt alike.

    >>> nearest("celu", ["activation_elu", "activation_celu"]), nearest("qqq", ["activation_elu"])
    ('activation_celu', None)
    """
    wanted, known = snake_case(name), {snake_case(each): each for each in names}
    ends = sorted((each for each in known if f"_{each}".endswith(f"_{wanted}")), key=len)
    found = ends or close_matches(wanted, known)
    return known[found[0]] if found else None


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
    return get_close_matches(name, compared, count, cutoff)
