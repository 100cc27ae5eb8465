"""Operators about sizes, and those that change sizes alone."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from opendml.frontends.onnx.conversion import Conversion, NotExpressible, Result
from opendml.frontends.onnx.registry import converts
from opendml.frontends.onnx.values import Computed, Known
from opendml.runtime.graphs.repeat import repeated


def reshaped(node: Conversion, sizes: Sequence[int]) -> Computed:
    """Input 0 in other sizes."""
    return node.result(node.moved(0), sizes, node.type(0))


@converts("Identity")
def identity(node: Conversion) -> Result:
    """The input."""
    return reshaped(node, node.sizes(0))


@converts("Shape")
def shape(node: Conversion) -> Result:
    """Sizes, known when the model is compiled."""
    sizes = node.sizes(0)
    return Known(np.array(sizes[slice(node.attribute("start", 0), node.attribute("end", None))], np.int64))


@converts("Size")
def size(node: Conversion) -> Result:
    """The number of elements."""
    return Known(np.array(np.prod(node.sizes(0), dtype=np.int64)))


@converts("Reshape", since=5)
def reshape(node: Conversion) -> Result:
    """0 keeps a size unless `allowzero` says that it means 0; -1 is what remains."""
    given, sizes = node.sizes(0), node.known_list(1)
    if not node.attribute("allowzero", 0):
        if any(size == 0 and axis >= len(given) for axis, size in enumerate(sizes)):
            raise NotExpressible(f"sizes {sizes} keep a size that {list(given)} has not")
        sizes = [given[i] if size == 0 else size for i, size in enumerate(sizes)]
    if -1 in sizes:
        rest = math.prod(size for size in sizes if size != -1)
        sizes[sizes.index(-1)] = math.prod(given) // rest if rest else 0
    if min(sizes, default=0) < 0 or math.prod(sizes) != math.prod(given):
        raise NotExpressible(f"sizes {sizes} have not as many elements as {list(given)}")
    return reshaped(node, sizes)


@converts("Flatten")
def flatten(node: Conversion) -> Result:
    """A matrix: the sizes in front of the axis, and those from it on."""
    sizes = node.sizes(0)
    given = node.attribute("axis", 1)
    axis = len(sizes) if given == len(sizes) else node.axis(given, max(1, len(sizes)))
    return reshaped(node, [int(np.prod(sizes[:axis])), int(np.prod(sizes[axis:]))])


@converts("Squeeze")
def squeeze(node: Conversion) -> Result:
    """Without the axes, or all axes, of size 1."""
    sizes, axes = node.sizes(0), axes_of(node, len(node.sizes(0)), input_since=13)
    gone = [axis for axis, size in enumerate(sizes) if size == 1] if axes is None else axes
    if any(sizes[axis] != 1 for axis in gone):
        raise NotExpressible(f"axes {gone} of sizes {list(sizes)} are not all of size 1")
    return reshaped(node, [size for axis, size in enumerate(sizes) if axis not in gone])


@converts("Unsqueeze")
def unsqueeze(node: Conversion) -> Result:
    """With new axes of size 1, counted in the output."""
    count = len(node.known(1).reshape(-1)) if node.version >= 13 else len(node.required("axes"))
    rank = len(node.sizes(0)) + count
    axes = axes_of(node, rank, input_since=13)
    rest = iter(node.sizes(0))
    return reshaped(node, [1 if axis in (axes or ()) else next(rest) for axis in range(rank)])


@converts("Expand", since=8)
def expand(node: Conversion) -> Result:
    """Repeated to common sizes with the ones given."""
    wanted = node.known_list(1)
    try:
        sizes = np.broadcast_shapes(node.sizes(0), tuple(wanted))
    except ValueError as error:
        raise NotExpressible(f"sizes {list(node.sizes(0))} do not broadcast to {wanted}") from error
    if 0 in sizes:
        return node.empty(sizes, node.type(0))
    return node.result(repeated(node.moved(0), sizes or (1,)), sizes, node.type(0))


@converts("Dropout", since=7)
def dropout(node: Conversion) -> Result:
    """In inference it does nothing, and keeps everything."""
    mask_type = node.type(0) if node.version < 10 else np.bool_
    return reshaped(node, node.sizes(0)), Known(np.ones(node.sizes(0), mask_type))


@converts("Dropout", since=12)
def dropout_in_training(node: Conversion) -> Result:
    """Training with a ratio above 0 draws random numbers, which DirectML draws otherwise."""
    training = node.has(2) and bool(node.known(2).any())
    if training and (not node.has(1) or bool(node.known(1).any())):
        raise NotExpressible("in training elements are dropped at random")
    return dropout(node)


def axes_of(node: Conversion, rank: int, input_since: int) -> list[int] | None:
    """Axes that are an attribute in old versions and input 1 in new ones, counted from the front.

    Args:
        input_since: the version from which on they are an input.

    Returns:
        None: there are none.

    Raises:
        NotExpressible: an axis out of range, or twice.
    """
    if node.version >= input_since:
        given = node.known_list(1) if node.has(1) else None
    else:
        given = node.attribute("axes", None)
    if given is None:
        return None
    axes = [node.axis(axis, rank) for axis in given]
    if len(set(axes)) != len(axes):
        raise NotExpressible(f"axes {list(given)}: one is there twice")
    return axes
