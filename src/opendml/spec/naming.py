"""DirectML's names in Python's spelling."""

from __future__ import annotations

import re

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
