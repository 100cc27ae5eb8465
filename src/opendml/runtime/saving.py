"""The way from models to the front door that saves them, which knows the runtime, and not the other way
round."""

from __future__ import annotations

from importlib import import_module
from os import PathLike
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opendml.budget import Limits
    from opendml.runtime.graphs.model import Model
    from opendml.runtime.objects.compiled import CompiledOperator
    from opendml.runtime.objects.device import Device


def saving() -> Any:
    """The package `opendml.frontends.saved`, imported when something is saved or read first."""
    return import_module("opendml.frontends.saved")


def load(
    path: str | PathLike[str], device: str | Device | None = None, *, limits: Limits | None = None
) -> Model | CompiledOperator:
    """The model, or the compiled operator, that `save` has written, compiled for this machine.

    A file holds no code: everything in it is checked as if a caller had said it, so files from anywhere may
    be tried.

    Args:
        path: the file.
        device: where it is to run; None: on a device as it was saved for.
        limits: what loading and compiling it may take; `dml.Limits.untrusted()` for a file from a stranger.
            None: the defaults of `dml.Limits`.

    Raises:
        InvalidArgument: no such file, no saved model, or a damaged one.
        Unsupported: of a newer version, or for a device that is not there.
        LimitExceeded: the model takes more than its limits allow.
    """
    found: Model | CompiledOperator = saving().load(path, device, limits=limits)
    return found
