"""Registries of converters, by the operators of a framework."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Generic, TypeVar, cast

from opendml.spec.declarations import import_modules
from opendml.spec.facts import operator_facts

C = TypeVar("C", bound=Callable[..., Any])
F = TypeVar("F", bound=Callable[..., Any])


class Registry(Generic[C]):
    """The converters of a framework's operators, by domain, name and version.

    Args:
        package: the package whose modules register converters when they are imported. The first lookup
            imports them.
    """

    def __init__(self, package: str) -> None:
        self._package = package
        self._converters: dict[tuple[str, str], dict[int, C]] = defaultdict(dict)
        self._operators: dict[str, set[str]] = defaultdict(set)

    def converts(
        self, *names: str, since: int = 1, domain: str = "", to: str | Callable[..., Any] = ""
    ) -> Callable[[F], F]:
        """Register the decorated function as the converter of operators of the framework.

        Args:
            names: the operators that it converts.
            since: the first version of the domain that means this. The converter holds up to the next
                version that is registered, so versions that only add types need no entry.
            domain: the operator set.
            to: DirectML's operators that say the same, separated by spaces, or the function of one, perhaps
                partial. `opendml ops NAME` finds them. Empty: none does alone.

        Raises:
            ValueError: an operator has a converter of this version, or DirectML has no such operator.
        """
        meant = to.split() if isinstance(to, str) else [getattr(to, "func", to).__name__.upper()]
        if unknown := [each for each in meant if each not in operator_facts()]:
            raise ValueError(f"{', '.join(names)}: DirectML has no operator {', '.join(unknown)}")

        def register(converter: F) -> F:
            for name in names:
                versions = self._converters[domain, name]
                if since in versions:
                    raise ValueError(f"{domain or self._package}: {name}-{since} is converted twice")
                versions[since] = cast("C", converter)
                self._operators[name].update(meant)
            return converter

        return register

    def find(self, name: str, version: int = 1, domain: str = "") -> C | None:
        """Return the converter of a version of an operator; None if there is none."""
        self._load()
        versions = self._converters.get((domain, name), {})
        since = max((each for each in versions if each <= version), default=None)
        return None if since is None else versions[since]

    def names(self) -> Iterator[tuple[str, str]]:
        """Iterate over the domains and the names of the operators that have converters."""
        self._load()
        yield from self._converters

    def directml_names(self) -> dict[str, frozenset[str]]:
        """Return DirectML's operators by the names of the framework's operators that become them."""
        self._load()
        return {name: frozenset(meant) for name, meant in self._operators.items() if meant}

    @cache  # noqa: B019 - registries live as long as the process
    def _load(self) -> None:
        import_modules(self._package)
