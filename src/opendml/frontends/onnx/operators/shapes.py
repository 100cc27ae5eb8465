"""Operators about sizes, and those that only change sizes."""

from __future__ import annotations

import math

import numpy as np

from opendml.frontends.common.tensors import broadcast_sizes
from opendml.frontends.common.types import NotExpressible
from opendml.frontends.onnx.conversion import OnnxConversion, Result
from opendml.frontends.onnx.registry import converts
from opendml.frontends.onnx.values import Known, known_numbers
from opendml.runtime.graphs.repeat import repeated

_IDENTITY = "ELEMENT_WISE_IDENTITY"


@converts("Identity", to=_IDENTITY)
def identity(node: OnnxConversion) -> Result:
    """Convert Identity to its input."""
    return node.reshaped(node.sizes(0))


@converts("Shape")
def shape(node: OnnxConversion) -> Result:
    """Convert Shape to its result, which is known when the model is compiled."""
    some = slice(node.attribute("start"), node.attribute("end"))
    sizes = node.sizes(0)[some]
    return known_numbers(sizes, [len(sizes)])


@converts("Size")
def size(node: OnnxConversion) -> Result:
    """Convert Size to its result, which is known when the model is compiled."""
    return known_numbers([math.prod(node.sizes(0))], [])


@converts("Reshape", since=5, to=_IDENTITY)
def reshape(node: OnnxConversion) -> Result:
    """Convert Reshape. 0 keeps a size unless `allowzero` says that it means 0; -1 is what remains."""
    given, sizes = node.sizes(0), node.known_list(1)
    if not node.flag("allowzero"):
        if any(size == 0 and axis >= len(given) for axis, size in enumerate(sizes)):
            raise NotExpressible(f"sizes {sizes} keep a size that {list(given)} has not")
        sizes = [given[axis] if size == 0 else size for axis, size in enumerate(sizes)]
    if -1 in sizes:
        place = sizes.index(-1)
        rest = math.prod(sizes[:place] + sizes[place + 1 :])
        sizes[place] = math.prod(given) // rest if rest > 0 else 0
    if any(size < 0 for size in sizes) or math.prod(sizes) != math.prod(given):
        raise NotExpressible(f"sizes {sizes} have not as many elements as {list(given)}")
    return node.reshaped(sizes)


@converts("Flatten", to=_IDENTITY)
def flatten(node: OnnxConversion) -> Result:
    """Convert Flatten to a matrix: the sizes in front of the axis, and those from it on."""
    sizes, axis = node.sizes(0), node.attribute("axis")
    axis = len(sizes) if axis == len(sizes) else node.axis(axis, max(1, len(sizes)))
    return node.reshaped([math.prod(sizes[:axis]), math.prod(sizes[axis:])])


@converts("Squeeze", to=_IDENTITY)
def squeeze(node: OnnxConversion) -> Result:
    """Convert Squeeze, which drops the axes that are given, or all of size 1."""
    sizes = node.sizes(0)
    gone = axes_of(node, len(sizes), input_since=13)
    if gone is None:
        gone = [axis for axis, size in enumerate(sizes) if size == 1]
    if any(sizes[axis] != 1 for axis in gone):
        raise NotExpressible(f"axes {gone} of sizes {list(sizes)} are not all of size 1")
    return node.reshaped([size for axis, size in enumerate(sizes) if axis not in gone])


@converts("Unsqueeze", to=_IDENTITY)
def unsqueeze(node: OnnxConversion) -> Result:
    """Convert Unsqueeze, which adds axes of size 1, counted in the output."""
    count = node.known(1).size if node.version >= 13 else len(node.required("axes"))
    rank = len(node.sizes(0)) + count
    axes, rest = axes_of(node, rank, input_since=13) or (), iter(node.sizes(0))
    return node.reshaped([1 if axis in axes else next(rest) for axis in range(rank)])


@converts("Expand", since=8, to=_IDENTITY)
def expand(node: OnnxConversion) -> Result:
    """Convert Expand, which repeats to common sizes with the ones given."""
    sizes = broadcast_sizes(node.sizes(0), node.known_list(1))
    return node.result(repeated(node.moved(0), sizes or (1,)), sizes, node.type(0))


@converts("Dropout", since=7, to="ACTIVATION_IDENTITY")
def dropout(node: OnnxConversion) -> Result:
    """Convert Dropout in inference, which keeps all elements.

    From version 12 on, an input tells training. Training with a ratio above 0 draws random numbers, which
    DirectML draws otherwise.
    """
    training = node.version >= 12 and node.has(2) and bool(node.known(2).any())
    if training and (not node.has(1) or bool(node.known(1).any())):
        raise NotExpressible("in training elements are dropped at random")
    mask_type = node.type(0) if node.version < 10 else np.bool_
    return node.reshaped(node.sizes(0)), Known(np.ones(node.sizes(0), mask_type))


def axes_of(node: OnnxConversion, rank: int, input_since: int) -> list[int] | None:
    """Return axes that are an attribute in old versions and input 1 in new ones, counted from the front.

    Args:
        input_since: the first version in which they are an input.

    Returns:
        None if the node states none.

    Raises:
        NotExpressible: an axis is out of range, or there twice.
    """
    given = node.listed("axes", 1, input_since)
    if given is None:
        return None
    axes = [node.axis(axis, rank) for axis in given]
    if len(set(axes)) != len(axes):
        raise NotExpressible(f"axes {list(given)}: one is there twice")
    return axes
