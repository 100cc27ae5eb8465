"""Results that are larger than the memory: refused before anything makes them.

A number in a tensor may ask for any size, and systems hand out memory that they have not; a process that then
writes into it is ended.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from functools import cache

import numpy as np
import onnx

from opendml.errors import InvalidArgument
from opendml.frontends.onnx.bodies import type_of
from opendml.frontends.onnx.node import ONNX_ERRORS, Node
from opendml.frontends.onnx.values import Known, Value

_GROWING = frozenset(
    {
        "BlackmanWindow",
        "CenterCropPad",
        "ConstantOfShape",
        "Expand",
        "HammingWindow",
        "HannWindow",
        "OneHot",
        "Pad",
        "RandomNormal",
        "RandomUniform",
        "Range",
        "Resize",
        "Tile",
        "Upsample",
    }
)
"""Operators whose results may be larger than all of their inputs by any factor."""


def require_memory(node: Node, values: Mapping[str, Value]) -> None:
    """Checks the sizes of what a node will make, where they are known.

    Raises:
        InvalidArgument: more bytes than the machine has.
    """
    if node.domain or node.operator not in _GROWING:
        return
    for name, type in _inferred(node, values).items():
        tensor = type.tensor_type
        sizes = [each.dim_value for each in tensor.shape.dim]
        if not tensor.elem_type or tensor.elem_type == onnx.TensorProto.STRING:
            continue
        size = math.prod(sizes) * onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type).itemsize
        if size > _memory():
            raise InvalidArgument(
                f"{node}: output {name!r} of sizes {sizes} takes {size:,} bytes; there are {_memory():,}"
            )


def _inferred(node: Node, values: Mapping[str, Value]) -> Mapping[str, onnx.TypeProto]:
    """What ONNX's inference knows of the outputs; nothing of those of a node that is not valid."""
    given = {name: value for name in node.inputs if name and (value := values.get(name)) is not None}
    try:
        types = {name: type_of(value.sizes, value.type) for name, value in given.items()}
        known = {
            name: onnx.numpy_helper.from_array(value.content, name)
            for name, value in given.items()
            if isinstance(value, Known) and isinstance(value.content, np.ndarray) and value.content.size <= 64
        }
        schema = onnx.defs.get_schema(node.operator, node.version, node.domain)
        imports = [onnx.helper.make_opsetid(domain, version) for domain, version in node.opsets.items()]
        typed = {name: each for name, each in types.items() if each is not None}
        inferred: Mapping[str, onnx.TypeProto] = onnx.shape_inference.infer_node_outputs(
            schema, node.message, typed, known, opset_imports=imports
        )
    except ONNX_ERRORS:
        return {}
    return inferred


@cache
def _memory() -> int:
    """Of the machine, in bytes."""
    if not hasattr(os, "sysconf"):
        return 2**46  # where no number is to be had, the system says that memory is short
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
