"""Do two elements of a strided tensor share an address? Decided exactly and without looking at the elements.

Two indices meet where the sum of d[i] * strides[i] is 0 for some d other than 0 with |d[i]| < sizes[i]. What
cannot be part of such a sum is removed first, which decides every layout of practice, interleaved ones too.
What is left is searched from both ends, in at most about a million steps for a tensor of 2^32 elements.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import combinations
from math import gcd, prod

# A dimension as (bound, stride): d ranges from -bound to bound.
_Step = tuple[int, int]


def overlaps(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    """Return whether two indices reach the same element.

    >>> overlaps([2, 3], [3, 1]), overlaps([2, 3], [3, 2]), overlaps([2, 3], [2, 1])
    (False, False, True)
    """
    steps = [(size - 1, stride) for size, stride in zip(sizes, strides, strict=True) if size > 1]
    if _nested(steps):
        return False
    if any(stride == 0 for _, stride in steps) or prod(sizes) > 1 + sum(
        bound * stride for bound, stride in steps
    ):
        return True
    steps = _essential(steps)
    if any(_pair_meets(one, other) for one, other in combinations(steps, 2)):
        return True
    return len(steps) > 2 and _meets(steps)


def _nested(steps: list[_Step]) -> bool:
    """Return whether every dimension steps over all that the finer ones reach, as in the usual layouts."""
    reached = 0
    for stride, bound in sorted((stride, bound) for bound, stride in steps):
        if stride <= reached:
            return False
        reached += bound * stride
    return True


def _essential(steps: list[_Step]) -> list[_Step]:
    """Return the dimensions that a sum of 0 can use, with the values that it can use them with.

    d * stride must be a multiple of the other strides' common divisor, and at most what they reach together.
    """
    while True:
        changed = False
        for i, (bound, stride) in enumerate(steps):
            others = steps[:i] + steps[i + 1 :]
            divisor = gcd(*(other for _, other in others))
            if divisor == 0:
                return []
            factor = divisor // gcd(divisor, stride)
            reached = sum(b * s for b, s in others)
            fewer = min(bound // factor, reached // (factor * stride))
            if fewer < bound:
                steps = others if fewer == 0 else [*others, (fewer, factor * stride)]
                changed = True
                break
        if not changed:
            return steps


def _pair_meets(one: _Step, other: _Step) -> bool:
    """Return whether d * stride of the one equals that of the other for some d other than 0."""
    divisor = gcd(one[1], other[1])
    return one[0] >= other[1] // divisor and other[0] >= one[1] // divisor


def _meets(steps: list[_Step]) -> bool:
    """Search in three dimensions and more: all sums of two halves, the longest dimension by division."""
    *rest, (bound, stride) = sorted(steps)
    halves: list[list[_Step]] = [[], []]
    for step in reversed(rest):
        min(halves, key=lambda half: prod(2 * b + 1 for b, _ in half)).append(step)
    left, right = (_sums(half) for half in halves)
    if left.count(0) > 1 or right.count(0) > 1:
        return True
    by_residue: dict[int, list[int]] = {}
    for total in sorted(left):
        by_residue.setdefault(total % stride, []).append(total)
    for total in right:
        if total < 0:  # the mirror image of another solution
            continue
        candidates = by_residue.get(-total % stride, [])
        first = bisect_left(candidates, -total - bound * stride)
        last = bisect_right(candidates, -total + bound * stride)
        if last - first > (1 if total == 0 else 0):  # all zeros are one
            return True
    return False


def _sums(steps: list[_Step]) -> list[int]:
    """Return the sum of d * stride for all values of all d."""
    sums = [0]
    for bound, stride in steps:
        sums = [total + d * stride for total in sums for d in range(-bound, bound + 1)]
    return sums
