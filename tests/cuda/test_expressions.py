"""How single nodes are printed as CUDA C++."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from opendml.program.functions import select
from opendml.program.node import Node, source
from opendml.program.scalar_type import ScalarType
from opendml.targets.cuda.expression import expression


@pytest.mark.parametrize(
    ("bounded", "wanted"),
    [
        (lambda x: select(x < 2.0, 2.0, x), "maximum(x, bound)"),
        (lambda x: select(x > 2.0, 2.0, x), "minimum(x, bound)"),
        (lambda x: select(x < -0.0, -0.0, x), "maximum(x, bound)"),
        # -0 stays where 0 is the bound, and 0 stays where -0 is.
        (lambda x: select(x < 0.0, 0.0, x), "condition ? bound : x"),
        (lambda x: select(x > 0.0, 0.0, x), "condition ? bound : x"),
        (lambda x: select(x > -0.0, -0.0, x), "condition ? bound : x"),
        (lambda x: select(x <= 2.0, 2.0, x), "condition ? bound : x"),
        (lambda x: select(x < 2.0, 3.0, x), "condition ? bound : x"),
        (lambda x: select(x < 2.0, 2.0, x + 1.0), "condition ? bound : x"),
    ],
)
def test_a_bound_is_a_minimum_or_maximum_where_these_mean_the_same(
    bounded: Callable[[Node], Node], wanted: str
) -> None:
    node = bounded(source(0, ScalarType.FLOAT32, (7,)))
    assert expression(node, ["condition", "bound", "x"]) == wanted


def test_bounds_of_other_types_are_selections() -> None:
    for type in (ScalarType.INT32, ScalarType.FLOAT64):
        x = source(0, type, (7,))
        assert expression(select(x < 2, 2, x), ["c", "b", "x"]) == "c ? b : x"
