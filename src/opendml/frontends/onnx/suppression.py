"""`NonMaxSuppression`, which DirectML has no operators for: on the host, in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from opendml.budget import meter
from opendml.errors import InvalidArgument
from opendml.frontends.onnx.node import Node
from opendml.frontends.onnx.values import Array
from opendml.spec.wording import shown


def suppression_of(node: Node) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """The node as a function of the contents of tensors by name.

    Raises (the function):
        InvalidArgument: boxes or scores of other sizes.
        LimitExceeded: more boxes than a run may go through.
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
    """The least and the greatest coordinates of boxes: [..., 4]."""
    if by_center:
        half = boxes[..., 2:] / 2
        return np.concatenate([boxes[..., :2] - half, boxes[..., :2] + half], -1)
    first, second = boxes[..., :2], boxes[..., 2:]
    return np.concatenate([np.minimum(first, second), np.maximum(first, second)], -1)


def _candidates(scores: Array, least: float | None) -> Array:
    """The numbers of the boxes with more than the least score, greatest first, equal ones in their order."""
    numbers = np.arange(len(scores))
    if least is not None:
        numbers = np.flatnonzero(scores > np.float32(least))
    order = np.argsort(-scores[numbers], kind="stable")
    found: Array = numbers[order]
    return found


def _chosen(corners: Array, candidates: Array, count: int, greatest: Any) -> list[int]:
    """Of the candidates each whose overlap with those that were chosen before it is not too great, up to so
    many."""
    # Each box that is chosen is compared with all that are left.
    meter().count("evaluator_steps", min(count, len(candidates)) * len(candidates), "NonMaxSuppression")
    chosen: list[int] = []
    while len(chosen) < count and len(candidates):
        best, candidates = int(candidates[0]), candidates[1:]
        chosen.append(best)
        candidates = candidates[_overlaps(corners[best], corners[candidates]) <= greatest]
    return chosen


def _overlaps(box: Array, boxes: Array) -> Array:
    """The part that a box and each of others share, of all that the two cover; 0 without an area."""
    sides = np.minimum(box[2:], boxes[:, 2:]) - np.maximum(box[:2], boxes[:, :2])
    shared = np.prod(np.maximum(sides, 0), -1)
    areas = np.prod(boxes[:, 2:] - boxes[:, :2], -1)
    own = np.prod(box[2:] - box[:2])
    covered = own + areas - shared
    result: Array = np.where((shared > 0) & (covered > 0), shared / np.where(covered > 0, covered, 1), 0)
    return result
