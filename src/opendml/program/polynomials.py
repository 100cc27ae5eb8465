"""Polynomials with integer coefficients over numbered atoms, and bounds of their values."""

from __future__ import annotations

import math
from collections.abc import Mapping

Monomial = tuple[int, ...]
"""Numbers of atoms of a trace, sorted, each as often as it is a factor."""
Polynomial = tuple[tuple[Monomial, int], ...]
"""Sorted monomials with their coefficients, none of which is 0."""
Interval = tuple[int, int]
"""The least and the greatest value."""


def constant_polynomial(value: int) -> Polynomial:
    return (((), value),) if value else ()


def plain_value(polynomial: Polynomial) -> int:
    """Return the value of a constant; 0 for others."""
    return polynomial[0][1] if len(polynomial) == 1 and not polynomial[0][0] else 0


def polynomial_sum(first: Polynomial, second: Polynomial) -> Polynomial:
    if not first or not second:
        return first or second
    if len(second) > 1 or second[0][0]:
        first, second = second, first
    if len(second) == 1 and not second[0][0]:  # A constant comes first.
        total = second[0][1]
        if first[0][0]:
            return (*second, *first)
        total += first[0][1]
        return (((), total), *first[1:]) if total else first[1:]
    terms = dict(first)
    for monomial, coefficient in second:
        terms[monomial] = terms.get(monomial, 0) + coefficient
    return from_terms(terms)


def scaled(polynomial: Polynomial, factor: int) -> Polynomial:
    if len(polynomial) == 1:
        return ((polynomial[0][0], polynomial[0][1] * factor),)
    return tuple([(monomial, coefficient * factor) for monomial, coefficient in polynomial])


def polynomial_product(first: Polynomial, second: Polynomial) -> Polynomial:
    terms: dict[Monomial, int] = {}
    for left, a in first:
        for right, b in second:
            monomial = tuple(sorted(left + right))
            terms[monomial] = terms.get(monomial, 0) + a * b
    return from_terms(terms)


def from_terms(terms: Mapping[Monomial, int]) -> Polynomial:
    if 0 in terms.values():
        terms = {monomial: coefficient for monomial, coefficient in terms.items() if coefficient}
    return tuple(sorted(terms.items())) if len(terms) > 1 else tuple(terms.items())


def divided(above: Polynomial, below: Polynomial) -> tuple[Polynomial, Polynomial]:
    """Return `whole` and `rest` with above = whole * below + rest."""
    if above == below:
        return constant_polynomial(1), ()
    if len(below) != 1:
        whole = _multiple(above, below)
        return ((), above) if whole is None else (whole, ())
    ((divisor, factor),) = below
    terms, rest = dict[Monomial, int](), dict[Monomial, int]()
    for monomial, coefficient in above:
        left = without(monomial, divisor)
        if left is None:
            rest[monomial] = coefficient
            continue
        # The rest of a constant lies between 0 and the divisor, other rests have the sign of their term.
        quotient, over = divmod(coefficient, factor)
        if over and monomial and coefficient < 0 < factor:
            quotient, over = quotient + 1, over - factor
        if over and monomial and divisor:
            rest[monomial] = coefficient
            continue
        terms[left] = quotient
        if over:
            rest[monomial] = over
    return from_terms(terms), from_terms(rest)


def _multiple(above: Polynomial, below: Polynomial) -> Polynomial | None:
    """Return a polynomial divided by one of several terms; None: the quotient is no polynomial."""
    rest, whole = above, Polynomial()
    lead, factor = below[-1]
    while rest:
        left, (quotient, over) = without(rest[-1][0], lead), divmod(rest[-1][1], factor)
        if left is None or over or len(whole) > len(above):
            return None
        term: Polynomial = ((left, quotient),)
        whole, rest = (
            polynomial_sum(whole, term),
            polynomial_sum(rest, scaled(polynomial_product(term, below), -1)),
        )
    return whole


def without(monomial: Monomial, divisor: Monomial) -> Monomial | None:
    """Return a monomial without the factors of another; None if it lacks one."""
    left = list(monomial)
    for atom in divisor:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left)


def never_zero(polynomial: Polynomial) -> bool:
    """Return whether a constant that no common divisor of the other coefficients divides rules out zero."""
    constant = sum([coefficient for monomial, coefficient in polynomial if not monomial])
    divisor = math.gcd(*[coefficient for monomial, coefficient in polynomial if monomial])
    return divisor != 0 and constant % divisor != 0


def product_range(first: Interval, second: Interval) -> Interval:
    ends = [a * b for a in first for b in second]
    return min(ends), max(ends)


def quotient_range(above: Interval, below: Interval) -> Interval:
    """Return bounds of a quotient, rounded down, by a divisor that is not 0.

    In other ranges the divisor may always be 0. The quotient is not used there, so any bounds are right.
    """
    divisors = [each for each in (*below, -1, 1) if each and below[0] <= each <= below[1]] or [1]
    ends = [a // b for a in above for b in divisors]
    return min(ends), max(ends)
