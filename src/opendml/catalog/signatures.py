"""Signatures of functions and classes for the pages of the reference."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

_WIDTH = 92


def signature(name: str, function: Callable[..., Any]) -> str:
    """Return `name` with the function's parameters and result, on one line if it fits."""
    found = inspect.signature(function)
    arguments = list(_arguments(found))
    result = "" if inspect.isclass(function) else f" -> {found.return_annotation}"
    line = f"{name}({', '.join(arguments)}){result}"
    if len(line) <= _WIDTH:
        return line
    lines = "".join(f"    {argument},\n" for argument in arguments)
    return f"{name}(\n{lines}){result}"


def _arguments(found: inspect.Signature) -> Iterator[str]:
    keyword_only = False
    for parameter in found.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            yield "*"
        default = "" if parameter.default is parameter.empty else f" = {_value(parameter.default)}"
        yield f"{parameter.name}: {parameter.annotation}{default}"


def _value(default: object) -> str:
    return f"{type(default).__name__}.{default.name}" if isinstance(default, Enum) else repr(default)
