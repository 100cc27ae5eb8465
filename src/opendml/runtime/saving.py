"""The way from models to the front door that saves them, which knows the runtime, and not the other way
round."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def saving() -> Any:
    """The package `opendml.frontends.saved`, imported when something is saved first."""
    return import_module("opendml.frontends.saved")
