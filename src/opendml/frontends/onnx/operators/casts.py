"""Changes of type."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

import opendml as dml
from opendml.frontends.onnx.conversion import Conversion, NotExpressible, Result
from opendml.frontends.onnx.node import OWN
from opendml.frontends.onnx.operators.shapes import reshaped
from opendml.frontends.onnx.registry import converts
from opendml.frontends.onnx.values import BOOLEAN, Known, data_type_of

_MOST_WIDENED = 1024
"""Elements of a weight that is stored as float32 rather than converted in every run."""


@converts("Cast", since=6)
def cast(node: Conversion) -> Result:
    """To the attribute's type."""
    try:
        type = onnx.helper.tensor_dtype_to_np_dtype(node.required("to"))
    except KeyError as error:
        raise NotExpressible(f"to: {node.required('to')} is no type") from error
    return _cast(node, type)


@converts("CastLike")
def cast_like(node: Conversion) -> Result:
    """To the type of the second input."""
    return _cast(node, node.type(1))


def _cast(node: Conversion, type: np.dtype[Any]) -> Result:
    """A truth value says whether a number is not 0, which 0.5 is not either."""
    sizes = node.sizes(0)
    if type == node.type(0):
        return reshaped(node, sizes)
    data_type = data_type_of(type)
    if data_type is None or type.kind == "O":
        raise NotExpressible(f"to type {type.name}")
    x = node.tensor(0)
    if type == BOOLEAN:
        equals = dml.element_wise_logical_equals(x, 0, output_type=dml.UINT8)
        return node.truth(dml.element_wise_logical_not(equals), sizes)
    return node.result(dml.cast(x, output_type=data_type), sizes, type)


@converts("Widen", domain=OWN)
def widen(node: Conversion) -> Result:
    """float32 of float16, for `wide_nodes`. Large weights stay as they are, and are converted where they are
    read.
    """
    if node.is_known(0) and node.known(0).size <= _MOST_WIDENED:
        return Known(node.known(0).astype(np.float32))
    return (
        _cast(node, np.dtype(np.float32)) if 0 not in node.sizes(0) else node.empty(node.sizes(0), np.float32)
    )


@converts("Narrow", domain=OWN)
def narrow(node: Conversion) -> Result:
    """float16 of the float32 that a node in float32 made."""
    type = np.dtype(np.float16)
    if node.is_known(0):
        return Known(node.known(0).astype(type))
    return _cast(node, type) if 0 not in node.sizes(0) else node.empty(node.sizes(0), type)
