"""Context variables that are set in a block."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Generic, TypeVar

T = TypeVar("T")

while_waiting: ContextVar[Callable[[], object]] = ContextVar("while_waiting", default=lambda: None)
"""A function that is called while another process tells what this one needs, and does what follows anyway."""


class variable_set(Generic[T]):  # noqa: N801 - it is used like a function; a generator takes three times as long
    """Set a context variable in a block."""

    __slots__ = ("_token", "_value", "_variable")

    def __init__(self, variable: ContextVar[T], value: T) -> None:
        self._variable, self._value = variable, value

    def __enter__(self) -> None:
        self._token = self._variable.set(self._value)

    def __exit__(self, *error: object) -> None:
        self._variable.reset(self._token)
