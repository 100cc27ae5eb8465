"""torchvision, also where its compiled operators were made for another PyTorch."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any
from warnings import catch_warnings, simplefilter

import pytest


@cache
def torchvision() -> Any:
    """The package; skips where it is not installed.

    Operators that do not fit get their names at least, which it asks for: those that are also written in
    Python run so.
    """
    if find_spec("torchvision") is None:
        pytest.skip("torchvision is not installed")
    torch = import_module("torch")
    try:
        return import_module("torchvision")
    except RuntimeError:
        library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _LIBRARIES.append(library)
        return import_module("torchvision")


def roi_align(x: Any, boxes: Any, size: tuple[int, int], scale: float, samples: int, aligned: bool) -> Any:
    """torchvision's function, of tensors. Where it runs as it is written in Python, nothing compiles it: that
    would take a compiler for C++. What it imports then is told to be old."""
    vision, torch = torchvision(), import_module("torch")
    with catch_warnings(), torch.compiler.set_stance("force_eager"):
        simplefilter("ignore", DeprecationWarning)
        return vision.ops.roi_align(x, boxes, size, scale, samples, aligned)


_LIBRARIES: list[Any] = []
"""Names hold as long as their libraries."""
