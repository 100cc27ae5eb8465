"""Kinds of model files."""

from __future__ import annotations

from enum import Enum
from pathlib import Path


class Kind(Enum):
    """A kind of model by the suffix of its files; None: other suffixes, and "-" for standard input."""

    ONNX = ".onnx"
    GRAPH = ".bin"
    JSON = None


def kind_of(path: Path) -> Kind:
    """Return the kind of a model file."""
    suffix = path.suffix.lower()
    return Kind(suffix) if suffix in (Kind.ONNX.value, Kind.GRAPH.value) else Kind.JSON
