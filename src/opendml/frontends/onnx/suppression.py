"""`NonMaxSuppression` in NumPy, because DirectML has no operators for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from opendml.budget import meter
from opendml.errors import InvalidArgument
from opendml.frontends.onnx.node import OnnxNode
from opendml.frontends.onnx.values import Array
from opendml.spec.wording import shown


def suppression_of(node: OnnxNode) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return the node as a function of contents by name.

    Raises (the function):
        InvalidArgument: boxes, scores or limits have wrong sizes.
        LimitExceeded: a run may not compare so many boxes.
    """

    def run(contents: Mapping[str, Any]) -> dict[str, Any]:
        given: list[Any] = [contents[name] if name else None for name in node.inputs]
        if not all(each is None or isinstance(each, np.ndarray) for each in given):
            raise InvalidArgument(f"{node}: an input is no tensor")
        boxes, scores, *numbers = [*given, None, None, None][:5]
        if np.shape(boxes) != (*np.shape(scores)[::2], 4) or np.ndim(scores) != 3:
            sizes = f"boxes {shown(list(np.shape(boxes)))} and scores {shown(list(np.shape(scores)))}"
            raise InvalidArgument(f"{node}: {sizes}; must be [n, boxes, 4] and [n, classes, boxes]")
        if any(each is not None and np.size(each) != 1 for each in numbers):
            lengths = [np.shape(each) for each in numbers]
            raise InvalidArgument(f"{node}: limits of sizes {lengths}; each is one number")
        most, overlap, least = (None if each is None else np.asarray(each).item() for each in numbers)
        count, greatest = most or 0, np.float32(overlap or 0)
        corners = _corners(boxes, bool(node.attributes.get("center_point_box", 0)))
        chosen = [
            (sample, kind, box)
            for sample, of_sample in enumerate(scores)
            for kind, of_kind in enumerate(of_sample)
            for box in _chosen(corners[sample], _candidates(of_kind, least), count, greatest)
        ]
        return {node.outputs[0]: np.array(chosen, np.int64).reshape(-1, 3)}

    return run


def _corners(boxes: Array, by_center: bool) -> Array:
    """Return the least and the greatest coordinates of boxes, of sizes [..., 4]."""
    if by_center:
        half = boxes[..., 2:] / 2
        return np.concatenate([boxes[..., :2] - half, boxes[..., :2] + half], -1)
    first, second = boxes[..., :2], boxes[..., 2:]
    return np.concatenate([np.minimum(first, second), np.maximum(first, second)], -1)


def _candidates(scores: Array, least: float | None) -> Array:
    """Return the boxes above the least score by descending score; the order of equal ones stays."""
    numbers = np.arange(len(scores))
    if least is not None:
        numbers = np.flatnonzero(scores > np.float32(least))
    order = np.argsort(-scores[numbers], kind="stable")
    found: Array = numbers[order]
    return found


def _chosen(corners: Array, candidates: Array, count: int, greatest: Any) -> list[int]:
    """Choose up to `count` candidates whose overlap with each earlier choice is at most `greatest`."""
    # Each choice is compared with all remaining boxes.
    meter().count("evaluator_steps", min(count, len(candidates)) * len(candidates), "NonMaxSuppression")
    chosen: list[int] = []
    while len(chosen) < count and len(candidates):
        best, candidates = int(candidates[0]), candidates[1:]
        chosen.append(best)
        candidates = candidates[_overlaps(corners[best], corners[candidates]) <= greatest]
    return chosen


def _overlaps(box: Array, boxes: Array) -> Array:
    """Return intersection over union of a box and each of others; 0 without an area."""
    sides = np.minimum(box[2:], boxes[:, 2:]) - np.maximum(box[:2], boxes[:, :2])
    shared = np.prod(np.maximum(sides, 0), -1)
    areas = np.prod(boxes[:, 2:] - boxes[:, :2], -1)
    own = np.prod(box[2:] - box[:2])
    covered = own + areas - shared
    result: Array = np.where((shared > 0) & (covered > 0), shared / np.where(covered > 0, covered, 1), 0)
    return result
