"""Declarations of functions for DirectML's operators: definitions, shapes and rules."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Generic, TypeVar

from opendml.across_forks import importing
from opendml.errors import Unsupported
from opendml.signals import deferred_signals
from opendml.spec.facts import operator_facts
from opendml.spec.naming import nearest

T = TypeVar("T")


class Declarations(Generic[T]):
    """The declarations that the modules of a package make for operators when they are imported.

    Args:
        package: the package. The first lookup imports its modules.
    """

    def __init__(self, package: str) -> None:
        self._package, self._is_loaded = package, False
        self._declared: dict[str, dict[str, T]] = defaultdict(dict)

    def add(self, operators: Iterable[str], name: str, value: T) -> None:
        """Declare `value` for operators.

        Args:
            operators: DirectML's names of the operators.
            name: what is declared, of which an operator has one: "definition", or the name of a rule.
            value: the declaration.

        Raises:
            ValueError: there is no such operator, or it has this declaration already.
        """
        for operator in operators:
            if operator not in operator_facts():
                near = nearest(operator, operator_facts())
                hint = f"; did you mean {near}?" if near else ""
                raise ValueError(f"{self._package}: {name} of {operator}, which is no operator{hint}")
            if name in self._declared[operator]:
                raise ValueError(f"{self._package}: {operator} has two declarations of {name}")
            self._declared[operator][name] = value

    def of(self, operator: str) -> Mapping[str, T]:
        """Return the declarations for an operator by their names, in the order in which they were made."""
        return self.all().get(operator, {})

    def all(self) -> Mapping[str, Mapping[str, T]]:
        """Return the declarations for all operators that have some.

        Raises:
            Unsupported: the modules cannot be listed.
        """
        if not self._is_loaded:
            import_modules(self._package)
            self._is_loaded = True
        return self._declared


def import_modules(package: str) -> None:
    """Import the modules of a package, without interruption: what they declare cannot be declared again.

    Raises:
        Unsupported: the system does not list the modules, as if the process may open no more files.
    """
    with deferred_signals(), importing:
        modules = list(iter_modules(import_module(package).__path__))
        if not modules:  # An error of the system is passed over.
            raise Unsupported(f"{package}: modules cannot be listed; may files be opened?")
        for module in modules:
            import_module(f"{package}.{module.name}")
