"""Results that are larger than the memory: refused before anything makes them.

A number in a tensor may ask for any size, and systems hand out memory that they have not; a process that then
writes into it is ended.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import onnx

from opendml.errors import InvalidArgument
from opendml.frontends.onnx.inference import inferred_outputs
from opendml.frontends.onnx.node import Node
from opendml.frontends.onnx.values import Known, Value
from opendml.targets.memory import physical_memory

_GROWING = frozenset(
    {
        "AffineGrid",
        "AveragePool",
        "BlackmanWindow",
        "CenterCropPad",
        "Col2Im",
        "ConstantOfShape",
        "Conv",
        "ConvInteger",
        "ConvTranspose",
        "DFT",
        "Expand",
        "HammingWindow",
        "HannWindow",
        "LpPool",
        "MaxPool",
        "MaxRoiPool",
        "MaxUnpool",
        "MelWeightMatrix",
        "Multinomial",
        "OneHot",
        "Pad",
        "QLinearConv",
        "RandomNormal",
        "RandomUniform",
        "Range",
        "Resize",
        "RoiAlign",
        "Tile",
        "Upsample",
    }
)
"""Operators whose results may be larger than all of their inputs by any factor: those of others have no more
elements than the product of what their inputs have, as a matrix product of two vectors does."""

_LARGE = 1 << 20
"""Bytes of results to which what is there already is added up."""


def require_memory(node: Node, values: Mapping[str, Value]) -> None:
    """Checks the sizes of what a node will make, where they are known.

    Raises:
        InvalidArgument: more bytes than the machine has.
    """
    if node.domain or not (node.operator in _GROWING or _may_exceed(node, values)):
        return
    for name, type in inferred_outputs(node, values).items():
        tensor = type.tensor_type
        sizes = [each.dim_value for each in tensor.shape.dim]
        if not tensor.elem_type or tensor.elem_type == onnx.TensorProto.STRING:
            continue
        size = math.prod(sizes) * onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type).itemsize
        free = physical_memory() - (_taken(values) if size > _LARGE else 0)
        if size > free:
            raise InvalidArgument(
                f"{node}: output {name!r} of sizes {sizes} takes {size:,} bytes; there are {free:,}"
            )


def _may_exceed(node: Node, values: Mapping[str, Value]) -> bool:
    """Whether as many numbers of 8 bytes as the product of what the inputs have need more than the memory."""
    given = [values.get(name) for name in node.inputs if name]
    counts = [math.prod(value.sizes) for value in given if value is not None and value.sizes is not None]
    return 8 * math.prod(count for count in counts if count) > physical_memory()


def _taken(values: Mapping[str, Value]) -> int:
    """Bytes of what is known."""
    contents = [value.content for value in values.values() if isinstance(value, Known)]
    return sum(content.nbytes for content in contents if isinstance(content, np.ndarray))
