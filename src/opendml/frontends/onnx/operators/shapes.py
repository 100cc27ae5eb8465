"""Operators about sizes, and those that change sizes alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from opendml.frontends.onnx.conversion import Conversion, NotExpressible, Result
from opendml.frontends.onnx.registry import converts
from opendml.frontends.onnx.values import Computed, Known


def reshaped(node: Conversion, sizes: Sequence[int]) -> Computed:
    """Input 0 in other sizes."""
    return node.result(node.tensor(0), sizes, node.type(0))


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
        sizes = [given[i] if size == 0 else size for i, size in enumerate(sizes)]
    if -1 in sizes:
        rest = int(np.prod([size for size in sizes if size != -1]))
        sizes[sizes.index(-1)] = int(np.prod(given)) // rest if rest else 0
    if np.prod(sizes) != np.prod(given):
        raise NotExpressible(f"sizes {sizes} have not as many elements as {list(given)}")
    return reshaped(node, sizes)
