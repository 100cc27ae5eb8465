"""Weights of a softmax whose results are divided by their sum at the end."""

from __future__ import annotations

import math

from opendml.program.common_math import (
    EXP,
    EXPONENT_BIAS,
    LOG_2_LOW,
    UNITS,
    polynomial,
    power_of_two,
    reduced_by,
)
from opendml.program.functions import multiply_add, select
from opendml.program.node import Node

_LEAST_EXPONENT = -126
"""The exponent of the least FLOAT32 that is not denormal."""

WIDEST = 150 + _LEAST_EXPONENT
"""The exponent of the greatest weight from which on no weight is denormal: 2^-150 of it rounds to 0."""


def weight_by(exponent: Node) -> tuple[Node, Node]:
    """Return the units and the least argument that `weight` takes for weights of at most 2^exponent."""
    return exponent + (UNITS + EXPONENT_BIAS), (_LEAST_EXPONENT - exponent) * math.log(2)


def weight(score: Node, greatest: Node, units: Node, least: Node) -> Node:
    """Return exp(score - greatest) times a power of two, within 0.9 ULP; 0 where that would be denormal. The
    greatest is no less than the score; all are FLOAT32."""
    x = score - greatest
    bits, n, high = reduced_by(x, units)
    power = power_of_two(bits)
    return select(x < least, 0.0, polynomial((1.0, 1.0, *EXP), multiply_add(n, LOG_2_LOW, high)) * power)
