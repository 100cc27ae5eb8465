"""Calls of functions that tests watch."""

from __future__ import annotations

from typing import Any

import pytest


def note_calls(monkeypatch: pytest.MonkeyPatch, events: list[str], owner: Any, name: str) -> None:
    """Add the name of a function to `events` whenever it is called.

    Args:
        monkeypatch: replaces the function for the time of a test.
        events: receives the name.
        owner: the class or module with the function.
        name: its name.
    """
    function = getattr(owner, name)

    def call(*arguments: Any) -> Any:
        events.append(name)
        return function(*arguments)

    monkeypatch.setattr(owner, name, call)
