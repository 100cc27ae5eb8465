"""Every conformance case of WebNN, run by DirectML's operators on every device that is here.

The cases and their tolerances were made with DirectML in mind: Chromium ran WebNN on it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml import FLOAT32, Device, TensorDesc, Unsupported, validate
from opendml.operators.registry import implemented
from opendml.runtime.memory.host_array import Array
from opendml.spec.facts import tolerance_facts
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.schema import operator
from tests.conftest import SHARED
from tests.running import device_kinds, elements
from tests.spec.made_outputs import check_made_outputs
from tools.distances import distances

from .webnn_case import WebnnCase, read_cases
from .webnn_operators import OPERATORS, Call
from .webnn_tolerance import tolerances, ulp_steps

Run = Callable[[Call, Sequence[Array], str], None]

FOLDER = SHARED / "webnn_conformance"


def _files() -> list[Any]:
    """One parameter for each file of cases: tests of their own would take longer than the cases do."""
    if not FOLDER.is_dir():
        skip = pytest.mark.skip(reason="WebNN's conformance cases are not beside the checkout")
        return [pytest.param(None, marks=skip, id="absent")]
    return [pytest.param(path, id=path.stem) for path in sorted(FOLDER.glob("*.json"))]


@cache
def _cases(path: Path) -> list[WebnnCase]:
    return list(read_cases(path))


@cache
def _device(kind: str) -> Device:
    return Device(kind)


def _with_objects(call: Call, outputs: Sequence[Array], kind: str) -> None:
    """DirectML's way: create, compile, bind, dispatch."""
    device = _device(kind)
    compiled = device.compile_operator(device.create_operator(call.desc))
    compiled.bind([each and each.array for each in call.inputs], outputs).dispatch()


def _with_function(call: Call, outputs: Sequence[Array], kind: str) -> None:
    """The immediate function, on arrays with the strides of the tensors."""
    validate(call.desc)
    if call.desc.operator not in implemented():
        raise Unsupported(
            f"{call.desc.operator}: cannot be run yet; `opendml ops` lists the operators that can"
        )
    facts = operator(call.desc.operator)
    attributes = {field.python_name: getattr(call.desc, field.python_name) for field in facts.attributes}
    inputs = _views(call.desc, "INPUT_TENSOR", [each and each.array for each in call.inputs])
    (out,) = _views(call.desc, "OUTPUT_TENSOR", outputs)
    getattr(dml, facts.function_name)(*inputs, **attributes, out=out, device=kind)


def _views(desc: OperatorDesc, kind: str, buffers: Sequence[Array | None]) -> list[Any]:
    """The memory of each field as an array with the tensor's strides; a list for an array of tensors."""
    memory = iter(buffers)

    def view(tensor: TensorDesc | None) -> Array | None:
        data = next(memory)
        return None if tensor is None or data is None else elements(data, tensor)

    fields = [field for field in operator(desc.operator).tensors if field.kind == kind]
    values = [getattr(desc, field.python_name) for field in fields]
    return [list(map(view, value)) if isinstance(value, tuple) else view(value) for value in values]


@pytest.mark.parametrize(
    ("run", "kind"),
    [*((_with_objects, kind) for kind in device_kinds()), (_with_function, "reference")],
    ids=[*device_kinds(), "function"],
)
@pytest.mark.parametrize("path", _files())
def test_cases(path: Path, run: Run, kind: str) -> None:
    unsupported = []
    for case in _cases(path):
        try:
            _check_case(case, run, kind)
        except Unsupported as error:
            unsupported.append(f"{case.name}: {error}")
        except AssertionError as error:
            error.add_note(case.name)
            raise
    if unsupported:
        pytest.skip("\n".join(unsupported))


def _check_case(case: WebnnCase, run: Run, kind: str) -> None:
    call = OPERATORS[case.operator](case)
    results = [np.empty(prod(each.sizes), each.numpy_type) for each in case.outputs]
    run(call, results, kind)
    table = tolerances(SHARED / "spec" / "webnn_tolerances.json")
    for result, output in zip(results, case.outputs, strict=True):
        expected = output.array
        if np.array_equal(result, expected):
            continue
        table.check(case.operator, result, expected, output.data_type, call.lengths)
        _check_own_promise(call.desc.operator, result, expected)


@pytest.mark.parametrize("path", _files())
def test_outputs_follow_from_the_rest(path: Path) -> None:
    for case in _cases(path):
        check_made_outputs(OPERATORS[case.operator](case).desc)


def _check_own_promise(operator: str, result: Array, expected: Array) -> None:
    """The accuracy that the operator promises, and half an ULP more, as the expectation is rounded itself."""
    promise = tolerance_facts().get(operator, {}).get(result.dtype.name.upper(), {})
    if promise and promise["unit"] != "terms":
        off = distances(promise["unit"], result, expected.astype(np.float64)).max()
        assert off <= promise["bound"] + 0.5, f"{off:g} in units of {promise['unit']}"


def test_every_operator_of_the_cases_is_mapped(shared: Path) -> None:
    found = {case.operator for path in FOLDER.glob("*.json") for case in _cases(path)}
    assert found == set(OPERATORS)


@pytest.mark.parametrize(
    ("a", "b", "steps"),
    [
        (1.0, 1.0, 0),
        (1.0, 1.0 + 2**-23, 1),
        (1.0, 1.0 - 2**-24, 1),
        (0.0, -0.0, 0),
        (2**-149, -(2**-149), 2),
        (-1.0, -1.0 - 2**-23, 1),
        (np.finfo(np.float32).max, np.inf, 1),
        (np.nan, np.nan, 0),
        (np.nan, 1.0, np.inf),
        (np.inf, np.nan, np.inf),
    ],
)
def test_ulp_steps_count_floats(a: float, b: float, steps: float) -> None:
    first, second = np.array([a], np.float32), np.array([b], np.float32)
    assert ulp_steps(first, second) == steps
    assert ulp_steps(second, first) == steps


def test_a_result_that_is_too_far_fails(shared: Path) -> None:
    table = tolerances(shared / "spec" / "webnn_tolerances.json")
    one = np.ones(3, np.float32)
    far = one + np.float32(3 * 2**-23)
    _check(table, "add", one, one)
    with pytest.raises(AssertionError, match="3 ULP, 1 allowed"):
        _check(table, "add", far, one)
    with pytest.raises(AssertionError, match="3 ULP, 0 allowed"):
        _check(table, "neg", far, one)
    _check(table, "reduceSum", far, one, n=3)
    with pytest.raises(AssertionError, match="3 ULP, 2 allowed"):
        _check(table, "reduceSum", far, one, n=2)
    _check(table, "log", far, one)
    with pytest.raises(AssertionError):
        _check(table, "log", far + np.float32(0.01), one)


def _check(table: Any, operator: str, result: Array, expected: Array, **lengths: int) -> None:
    table.check(operator, result, expected, FLOAT32, lengths)
