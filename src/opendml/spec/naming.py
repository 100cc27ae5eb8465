"""DirectML's names in Python's spelling."""

from __future__ import annotations

import re
from collections.abc import Iterable

from opendml.spelling import close_matches

_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def snake_case(field: str) -> str:
    """Return the Python name of a field of a desc.

    >>> snake_case("InputTensor"), snake_case("ATensor"), snake_case("OutputROIGradientTensor")
    ('input_tensor', 'a_tensor', 'output_roi_gradient_tensor')
    """
    return _WORD_START.sub("_", field).lower()


def camel_case(name: str) -> str:
    """Return the class name of an operator or an enumeration.

    >>> camel_case("MEAN_VARIANCE_NORMALIZATION1"), camel_case("UPSAMPLE_2D")
    ('MeanVarianceNormalization1', 'Upsample2D')
    """
    return "".join(word.upper() if word[0].isdigit() else word.capitalize() for word in name.split("_"))


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the name that a misspelt one may stand for: in another case, as its end, or spelt alike.

    >>> nearest("celu", ["activation_elu", "activation_celu"]), nearest("qqq", ["activation_elu"])
    ('activation_celu', None)
    """
    wanted, known = snake_case(name), {snake_case(each): each for each in names}
    ends = sorted((each for each in known if f"_{each}".endswith(f"_{wanted}")), key=len)
    found = ends or close_matches(wanted, known)
    return known[found[0]] if found else None
