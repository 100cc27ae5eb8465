"""What nodes do with tensors of each type on DirectML's operators, and what on onnx's evaluator."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
import ml_dtypes
import onnx
from onnx import helper

from opendml import onnx as dml_onnx
from tests.onnx.models import Array, evaluated, one_node

_FOUR_BITS = (ml_dtypes.int4, ml_dtypes.uint4)
_SMALL = (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, np.complex64)
_USUAL = (np.float32, np.float16, np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.bool_)
_TYPES = (*_USUAL, np.float64, *_SMALL, *_FOUR_BITS)


def _is_on_evaluator(operator: str, inputs: list[Array], **attributes: Any) -> bool:
    """Whether a node of ONNX runs on the evaluator; its result is the evaluator's in either case."""
    model = one_node(operator, list(inputs), **attributes)
    given = {f"x{number}": array for number, array in enumerate(inputs)}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        (result,) = dml_onnx.load(model).run(given).values()
    (wanted,) = evaluated(model, given)
    assert (result.dtype, result.shape) == (wanted.dtype, wanted.shape)
    assert result.tobytes() == wanted.tobytes()
    return any(issubclass(each.category, dml_onnx.EvaluatorWarning) for each in caught)


def _array(type: Any) -> Array:
    return (np.arange(6).reshape(2, 3) % 4).astype(type)


@pytest.mark.parametrize("type", _TYPES)
def test_elements_of_every_type_are_moved(type: Any) -> None:
    assert not _is_on_evaluator("Transpose", [_array(type)])
    assert _is_on_evaluator("Gather", [_array(type), np.array([1, 0])]) is (type in _FOUR_BITS)


@pytest.mark.parametrize("type", _TYPES)
def test_some_types_are_cast(type: Any) -> None:
    is_known = type in (*_USUAL, np.float64)
    if type is not np.complex64:
        assert _is_on_evaluator("Cast", [_array(type)], to=onnx.TensorProto.FLOAT) is not is_known
        element = helper.np_dtype_to_tensor_dtype(np.dtype(type))
        assert _is_on_evaluator("Cast", [_array(np.float32)], to=element) is not is_known


@pytest.mark.parametrize("type", [np.float32, np.float16, np.int32, np.int64, np.float64, ml_dtypes.bfloat16])
def test_some_types_are_computed_with(type: Any) -> None:
    is_known = type not in (np.float64, ml_dtypes.bfloat16)
    assert _is_on_evaluator("Add", [_array(type), _array(type)]) is not is_known
