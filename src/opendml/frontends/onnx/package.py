"""The `onnx` package, of which only the classes of messages are loaded until anything else is needed.

Importing it takes 0.1 s and 13 MB, and its schemas 8 MB more: a quarter of what the first run of a small
model takes. The classes take 0.01 s and 3 MB. A later import of the package finds the same classes: protobuf
has one for each message of its pool.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import TYPE_CHECKING, Any

from opendml.across_forks import importing
from opendml.signals import deferred_signals

_PACKAGE = "onnx"
_MESSAGES = "onnx.onnx_ml_pb2"


class _LatePackage:
    """The attributes of the `onnx` package. Anything but a class of messages imports it."""

    def __init__(self, classes: Mapping[str, Any]) -> None:
        self.__dict__.update(classes)

    def __getattr__(self, name: str) -> Any:
        with deferred_signals(), importing:  # Python does not repeat an interrupted import as a whole.
            package = import_module(_PACKAGE)
        return getattr(package, name)


def is_imported() -> bool:
    """Return whether this process has imported the package."""
    return _PACKAGE in sys.modules


def locations() -> list[str]:
    """Return the folders of the package; none: it is not installed."""
    spec = find_spec(_PACKAGE)
    return [] if spec is None else list(spec.submodule_search_locations or ())


def _classes() -> dict[str, Any]:
    """Return the classes of messages by name, without the package where that is possible."""
    found: dict[str, Any] = {}
    if not is_imported():
        with suppress(Exception):  # The import of the package says what is wrong.
            found = _classes_of_module()
    if "ModelProto" not in found:
        found = vars(import_module(_PACKAGE))
    return {name: each for name, each in found.items() if name.endswith("Proto")}


def _classes_of_module() -> dict[str, Any]:
    spec = PathFinder.find_spec(_MESSAGES, locations())
    if spec is None or spec.loader is None:
        return {}
    # It is none of `sys.modules`, so the package imports its own, as if this one were not there.
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return vars(module)


if TYPE_CHECKING:
    import onnx as onnx
else:
    with importing:
        onnx = _LatePackage(_classes())
