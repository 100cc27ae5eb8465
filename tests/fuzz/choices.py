"""Random decisions as a list of integers: it makes the same case again, and a simpler list a simpler case."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


class Choices:
    """The decisions of a generator, which asks for one after the other; 0 is always the simplest answer.

    Args:
        seed: decides everything.
        tape: decides instead; beyond its end all answers are 0.
    """

    def __init__(self, seed: int = 0, tape: Sequence[int] | None = None) -> None:
        self._random, self._given = Random(seed), tape
        self.tape: list[int] = []
        """The answers up to now."""

    def below(self, count: int) -> int:
        """An integer from 0 to count - 1."""
        if self._given is None:
            answer = self._random.randrange(count)
        else:
            answer = min(self._given[len(self.tape)], count - 1) if len(self.tape) < len(self._given) else 0
        self.tape.append(answer)
        return answer

    def between(self, low: int, high: int) -> int:
        """An integer from `low`, which is the simplest, to `high`."""
        return low + self.below(high - low + 1)

    def of(self, values: Sequence[T]) -> T:
        """One of the values, the simplest of which stands first."""
        return values[self.below(len(values))]

    def rarely(self, one_in: int) -> bool:
        """True once in so many times; False is simpler."""
        return self.below(one_in) == one_in - 1

    def more(self) -> bool:
        """Whether a list goes on: asked before each element, so that one without the element is simpler."""
        return self.below(5) > 0

    def several(self, make: Callable[[], T], least: int, most: int) -> list[T]:
        """From `least` to `most` of what `make` makes."""
        values = [make() for _ in range(least)]
        while len(values) < most and self.more():
            values.append(make())
        return values

    def some(self, values: Sequence[T]) -> list[T]:
        """Any of the values, in their order; none is the simplest."""
        return [value for value in values if self.below(2)]

    def shuffled(self, values: Sequence[T]) -> list[T]:
        """The values in any order; their own is the simplest."""
        rest = list(values)
        return [rest.pop(self.below(len(rest))) for _ in values]
