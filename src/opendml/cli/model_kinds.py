"""Kinds of model files."""

from __future__ import annotations

from contextlib import suppress
from enum import Enum
from pathlib import Path

from opendml.errors import Unsupported
from opendml.runtime.saved.container import MAGIC


class Kind(Enum):
    """A kind of model by the suffix of its files; None: other suffixes, and "-" for standard input."""

    ONNX = ".onnx"
    GRAPH = ".bin"
    JSON = None


def kind_of(path: Path) -> Kind:
    """Return the kind of a model file.

    Raises:
        Unsupported: a saved or compiled model.
    """
    suffix = path.suffix.lower()
    if suffix in (Kind.ONNX.value, Kind.GRAPH.value):
        return Kind(suffix)
    with suppress(OSError), path.open("rb") as file:
        if file.read(len(MAGIC)) == MAGIC:
            problem = "a saved or compiled model, which opendml.load or opendml.onnx.load reads in Python"
            raise Unsupported(f"{path}: {problem}")
    return Kind.JSON
