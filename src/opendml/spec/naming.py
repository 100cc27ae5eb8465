"""DirectML's names in Python's spelling."""

from __future__ import annotations

import re
from collections.abc import Iterable

from opendml.spelling import close_matches

FAMILIES = ("", "activation_", "element_wise_")
"""The beginnings of operators' names that callers like to leave out."""

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


def operator_name(name: str) -> str:
    """Return the name of an operator for its member of DML_OPERATOR_TYPE or its desc in C.

    DML_SCATTER_ELEMENTS_OPERATOR_DESC is another name of DML_SCATTER_OPERATOR_DESC.

    >>> operator_name("DML_OPERATOR_GEMM"), operator_name("DML_GEMM_OPERATOR_DESC"), operator_name("GEMM")
    ('GEMM', 'GEMM', 'GEMM')
    """
    plain = name.removeprefix("DML_OPERATOR_")
    if name.startswith("DML_") and name.endswith("_OPERATOR_DESC"):
        plain = name.removeprefix("DML_").removesuffix("_OPERATOR_DESC")
    return "SCATTER" if plain == "SCATTER_ELEMENTS" else plain


def compared_part(name: str) -> str:
    """Return the part of an operator's name that spelling is compared by. The rest may be misspelt, too.

    >>> compared_part("DML_GEMM_OPERATOR_DES"), compared_part("DML_OPERATOR_GEM")
    ('GEMM', 'GEM')
    """
    return operator_name(name).removeprefix("DML_").partition("_OPERATOR_")[0]


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the name that a misspelt one may stand for: in another case, as its end, or spelt alike.

    >>> nearest("celu", ["activation_elu", "activation_celu"]), nearest("qqq", ["activation_elu"])
    ('activation_celu', None)
    """
    known = list(names)
    if (end := ending(name, known)) is not None:
        return end
    spelt = {snake_case(each): each for each in known}
    found = close_matches(snake_case(name), spelt)
    return spelt[found[0]] if found else None


def ending(name: str, names: Iterable[str]) -> str | None:
    """Return the name that has another one as its end, in any case.

    One of an operator's family counts first, then the shortest.

    >>> ending("Add", ["element_wise_quantized_linear_add", "element_wise_add"])
    'element_wise_add'
    """
    wanted, known = snake_case(name), {snake_case(each): each for each in names}
    ends = [each for each in known if f"_{each}".endswith(f"_{wanted}")]
    ends.sort(key=lambda each: (each not in [f"{family}{wanted}" for family in FAMILIES], len(each)))
    return known[ends[0]] if ends else None
