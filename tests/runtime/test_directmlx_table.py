"""The table of the guide "From DirectMLX": its calls exist, add the operators that it says, and run."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml.runtime.graphs.steps import OperatorStep

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "directmlx.md"
ROW = re.compile(r"\| `dml::(\w+)\(.*?\)` \| `(.+)` \| (\w*) \|")

FUNCTIONS = [
    "InputTensor",
    "ConstantData",
    "Identity",
    "Abs",
    "ACos",
    "Add",
    "ASin",
    "ATan",
    "ATanYX",
    "Ceil",
    "Clip",
    "ClipGrad",
    "Cos",
    "Divide",
    "Exp",
    "Floor",
    "Log",
    "LogicalAnd",
    "Equals",
    "GreaterThan",
    "GreaterThanOrEqual",
    "LessThan",
    "LessThanOrEqual",
    "LogicalNot",
    "LogicalOr",
    "LogicalXor",
    "Max",
    "Mean",
    "Min",
    "Multiply",
    "Pow",
    "Recip",
    "Sin",
    "Sqrt",
    "DifferenceSquare",
    "Subtract",
    "Tan",
    "Threshold",
    "QuantizeLinear",
    "DequantizeLinear",
    "Sign",
    "IsNaN",
    "Erf",
    "Sinh",
    "Cosh",
    "Tanh",
    "ASinh",
    "ACosh",
    "ATanh",
    "Negate",
    "If",
    "BitShiftLeft",
    "BitShiftRight",
    "BitAnd",
    "BitOr",
    "BitXor",
    "BitNot",
    "BitCount",
    "Round",
    "IsInfinity",
    "ModulusTruncate",
    "ModulusFloor",
    "ActivationElu",
    "ActivationHardmax",
    "ActivationHardSigmoid",
    "ActivationIdentity",
    "ActivationLeakyRelu",
    "ActivationLinear",
    "ActivationLogSoftmax",
    "ActivationParameterizedRelu",
    "ActivationParametricSoftplus",
    "ActivationRelu",
    "ActivationScaledElu",
    "ActivationScaledTanh",
    "ActivationSigmoid",
    "ActivationSoftmax",
    "ActivationGelu",
    "ActivationSoftplus",
    "ActivationSoftsign",
    "ActivationTanh",
    "ActivationThresholdedRelu",
    "ActivationShrink",
    "ActivationCelu",
    "Convolution",
    "Gemm",
    "Reduce",
    "AveragePooling",
    "MaxPooling",
    "Slice",
    "Cast",
    "Split",
    "Join",
    "Padding",
    "ValueScale2D",
    "Upsample2D",
    "Gather",
    "GatherElements",
    "GatherND",
    "ScatterElements",
    "ScatterND",
    "SpaceToDepth",
    "DepthToSpace",
    "Tile",
    "TopK",
    "BatchNormalization",
    "BatchNormalizationGrad",
    "BatchNormalizationTraining",
    "BatchNormalizationTrainingGrad",
    "MeanVarianceNormalization",
    "LocalResponseNormalization",
    "GRU",
    "OneHot",
    "Resample",
    "FillValueConstant",
    "FillValueSequence",
    "CumulativeSummation",
    "CumulativeProduct",
    "ReverseSubsequences",
    "RandomGenerator",
    "NonZeroCoordinates",
    "ResampleGrad",
    "SliceGrad",
    "RoiAlign",
    "RoiAlignGrad",
    "Dequantize",
    "Reinterpret",
]
"""The functions of DirectMLX.h for DML_TARGET_VERSION 0x6300."""


def rows() -> list[tuple[str, str, str]]:
    """Return the function, the call and the operator of each row."""
    return ROW.findall(PAGE.read_text("utf-8"))


def tensors() -> dict[str, Any]:
    """Return the names that the page defines before the table."""
    names: dict[str, Any] = {}
    text = PAGE.read_text("utf-8").replace("```", "")
    for example in doctest.DocTestParser().get_examples(text):
        if not example.want:
            exec(compile(example.source, str(PAGE), "exec"), names)
    return names


def test_the_table_has_every_function() -> None:
    assert len(set(FUNCTIONS)) == 126
    named = [name for name, _, _ in rows()]
    assert list(dict.fromkeys(named)) == FUNCTIONS
    assert {name: named.count(name) for name in ("Pow", "ActivationSoftmax", "Reinterpret")} == {
        "Pow": 2,
        "ActivationSoftmax": 2,
        "Reinterpret": 3,
    }


def test_every_call_adds_the_operator_that_the_table_says() -> None:
    names = tensors()
    graph = names["graph"]
    for _, call, operator in rows():
        before = len(graph._steps)
        eval(call, names)
        added = graph._steps[before:]
        if operator:
            # An array or a number beside a tensor is a step of its own.
            assert [each.desc.operator for each in added if isinstance(each, OperatorStep)] == [operator], (
                call
            )
        else:
            assert not any(isinstance(each, OperatorStep) for each in added), call


def test_the_calls_run() -> None:
    names = tensors()
    graph, outputs = names["graph"], dict[str, dml.GraphTensor]()
    for number, (_, call, _) in enumerate(rows()):
        result = eval(call, names)
        several = result if isinstance(result, tuple) else (result,)
        assert any(isinstance(each, dml.GraphTensor) for each in several), call
        outputs |= {f"{number}.{place}": each for place, each in enumerate(several) if each is not None}
    model = graph.compile(outputs, "reference")
    given = {
        name: np.ones(tensor.sizes, tensor.dtype)
        for name, tensor in graph._inputs.items()
        if tensor is not None
    }
    results = model(**given)
    assert results.keys() == outputs.keys()
    assert all(results[name].shape == tensor.sizes for name, tensor in outputs.items())


@pytest.mark.parametrize(
    ("cpp", "call", "expected"),
    [
        ("TopK", {"axis": 0, "k": 2, "axis_direction": "INCREASING"}, [1, 2]),
        ("TopK", {"axis": 0, "k": 2, "axis_direction": 1}, [3, 2]),
    ],
)
def test_the_suffixed_operator_does_what_the_function_of_cpp_does(
    cpp: str, call: dict[str, Any], expected: list[float]
) -> None:
    assert [function for function, _, operator in rows() if operator == "TOP_K1"] == [cpp]
    values = dml.top_k1(np.array([2, 3, 1], np.float32), **call).output_value
    assert values.tolist() == expected
