"""Named dimensions of a graph, each of which is added to the trace on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from opendml.across_forks import cached_property
from opendml.program.atoms import GREATEST, LEAST_TRACED, Dimension
from opendml.program.size_values import Conditions
from opendml.program.sizes import is_traced
from opendml.program.trace import Trace


class UsedDimensions(dict[str, int]):
    """The dimensions that a graph uses, as sizes of a trace of their own or as plain numbers.

    A dimension of 1 is plain, because operators repeat it. Larger ones are traced as sizes that may be 1.

    Args:
        dimensions: the values that dimensions are taken to have, by name.
        is_exact: whether they are plain numbers.
        ranges: the sizes that dimensions may have, where these are known.
    """

    def __init__(
        self,
        dimensions: Mapping[str, int],
        is_exact: bool = False,
        ranges: Mapping[str, tuple[int, int]] | None = None,
    ) -> None:
        super().__init__()
        self.trace = Trace({}, narrows=True)
        self._dimensions, self._is_exact, self._ranges = dimensions, is_exact, ranges or {}

    def __missing__(self, name: str) -> int:
        """Add a dimension when it is used first."""
        size = self._dimensions[name]
        if not self._is_exact and size >= LEAST_TRACED:
            size = self.trace.add(name, Dimension(size, *self._ranges.get(name, (1, GREATEST))))
        self[name] = size
        return size

    @property
    def exact(self) -> dict[str, int]:
        """The dimensions that must have the values of this run: those of 1, or all."""
        return {name: size for name, size in self.items() if not is_traced(size)}

    def serves(self, dimensions: Mapping[str, int]) -> bool:
        """Return whether the graph serves other values of the dimensions.

        The guards are read at the first call, so the trace must be complete then.
        """
        return self._conditions(dimensions)

    @cached_property
    def _conditions(self) -> Callable[[Mapping[str, int]], bool]:
        exact, guards = self.exact, Conditions(self.trace.guards)
        if not exact:
            return guards
        return lambda dimensions: (
            all(dimensions[name] == size for name, size in exact.items()) and guards(dimensions)
        )
