"""Changes of type."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

import opendml as dml
from opendml.frontends.onnx.conversion import Conversion, NotExpressible, Result
from opendml.frontends.onnx.operators.shapes import reshaped
from opendml.frontends.onnx.registry import converts
from opendml.frontends.onnx.values import BOOLEAN, data_type_of


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
