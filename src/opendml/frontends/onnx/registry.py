"""Which function converts which ONNX operator: by domain, name, and the version since which it means this."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from opendml.frontends.onnx.conversion import Conversion, Result

    Converter = Callable[[Conversion], Result]
    C = TypeVar("C", bound=Converter)

_converters: dict[tuple[str, str], dict[int, Converter]] = defaultdict(dict)


def converts(operator: str, since: int = 1, domain: str = "") -> Callable[[C], C]:
    """Registers the function below as what converts `operator` from that version of its domain on, up to the
    next one registered. Versions that only add types need no entry.

    Raises:
        ValueError: there is one already.
    """

    def register(converter: C) -> C:
        versions = _converters[domain, operator]
        if since in versions:
            raise ValueError(f"{domain or 'ai.onnx'}.{operator}-{since} is converted twice")
        versions[since] = converter
        return converter

    return register


def converter_of(domain: str, operator: str, version: int) -> Converter | None:
    """What converts an operator of that version; None: nothing does."""
    _load()
    versions = _converters.get((domain, operator), {})
    since = max((each for each in versions if each <= version), default=None)
    return None if since is None else versions[since]


@cache
def _load() -> None:
    """Imports the families of operators, which register their converters."""
    from opendml.frontends.onnx import operators

    for module in iter_modules(operators.__path__):
        import_module(f"{operators.__name__}.{module.name}")
