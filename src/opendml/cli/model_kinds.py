"""What kind of model a file is: one rule for all commands."""

from __future__ import annotations

from enum import Enum
from pathlib import Path


class Kind(Enum):
    """A kind of model, by the suffix of its files; None: all others, and "-", standard input."""

    ONNX = ".onnx"
    GRAPH = ".bin"
    JSON = None


def kind_of(path: Path) -> Kind:
    """The kind of the model in a file."""
    suffix = path.suffix.lower()
    return Kind(suffix) if suffix in (Kind.ONNX.value, Kind.GRAPH.value) else Kind.JSON
