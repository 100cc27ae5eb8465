"""Models of one node for the tests, and what ONNX's evaluator and ONNX Runtime make of them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from opendml import onnx as dml_onnx

Array = np.ndarray[Any, Any]


def one_node(
    operator: str,
    inputs: Sequence[Array | None],
    outputs: int = 1,
    opset: int | None = None,
    domain: str = "",
    known: Sequence[int] = (),
    **attributes: Any,
) -> onnx.ModelProto:
    """A model of one node.

    Args:
        inputs: arrays, None for absent ones.
        outputs: how many.
        known: the numbers of the inputs that are initializers.
    """
    names = [f"x{number}" if array is not None else "" for number, array in enumerate(inputs)]
    results = [f"y{number}" for number in range(outputs)]
    node = helper.make_node(operator, names, results, domain=domain, **attributes)
    given = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for number, (name, array) in enumerate(zip(names, inputs, strict=True))
        if array is not None and number not in known
    ]
    weights = [onnx.numpy_helper.from_array(np.asarray(inputs[number]), names[number]) for number in known]
    graph = helper.make_graph(
        [node], "g", given, [onnx.ValueInfoProto(name=name) for name in results], weights
    )
    opset = opset or onnx.defs.onnx_opset_version()
    imports = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def feed(inputs: Sequence[Array | None], known: Sequence[int] = ()) -> dict[str, Array]:
    """The inputs by name."""
    chosen = enumerate(inputs)
    return {f"x{i}": array for i, array in chosen if array is not None and i not in known}


def computed(model: onnx.ModelProto, given: Mapping[str, Array], evaluator: bool = False) -> list[Any]:
    """What opendml computes; that a node runs on the evaluator is an error unless it is expected."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if evaluator else "error", dml_onnx.EvaluatorWarning)
        return list(dml_onnx.load(model, "cpu").run(given).values())


def evaluated(model: onnx.ModelProto, given: Mapping[str, Array]) -> list[Any]:
    """What ONNX's evaluator computes."""
    with np.errstate(all="ignore"):
        return list(ReferenceEvaluator(model).run(None, dict(given)))


def run_by_onnxruntime(model: onnx.ModelProto, given: Mapping[str, Array]) -> list[Any]:
    """What ONNX Runtime computes; skips where it is not installed."""
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    # Without VNNI two products of unsigned and signed bytes are else added in 16 bits, where they saturate.
    options.add_session_config_entry("session.x64quantprecision", "1")
    typed = onnx.ModelProto()
    typed.CopyFrom(onnx.shape_inference.infer_shapes(model))
    variable = _fix_signed_bytes(typed, given)
    session = runtime.InferenceSession(typed.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, variable))


def _fix_signed_bytes(model: onnx.ModelProto, given: Mapping[str, Array]) -> dict[str, Array]:
    """Makes inputs of signed bytes constants of the model: of these alone ONNX Runtime makes unsigned bytes,
    whose products it adds exactly. Returns the other inputs."""
    fixed = {name: array for name, array in given.items() if array.dtype == np.int8}
    variable = [each for each in model.graph.input if each.name not in fixed]
    del model.graph.input[:]
    model.graph.input.extend(variable)
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in fixed.items())
    return {name: array for name, array in given.items() if name not in fixed}


def assert_same(
    results: Sequence[Any], wanted: Iterable[Any], rtol: float = 1e-5, atol: float = 1e-5
) -> None:
    """Checks values, sizes and types."""
    for result, expected in zip(results, wanted, strict=True):
        assert result.dtype == expected.dtype
        assert result.shape == expected.shape
        np.testing.assert_allclose(result, expected, rtol, atol)


def check_node(
    operator: str,
    inputs: Sequence[Array | None],
    rtol: float = 1e-5,
    atol: float = 1e-5,
    evaluator: bool = False,
    **options: Any,
) -> None:
    """Check what opendml computes of one node against ONNX's evaluator."""
    model, given = one_node(operator, inputs, **options), feed(inputs, options.get("known", ()))
    assert_same(computed(model, given, evaluator), evaluated(model, given), rtol, atol)


def assert_as_onnxruntime(
    model: onnx.ModelProto,
    given: Mapping[str, Array],
    rtol: float = 1e-5,
    atol: float = 1e-5,
    evaluator: bool = False,
) -> None:
    """Checks what opendml computes against ONNX Runtime, which comes first: what cannot be compared need not
    be compiled."""
    wanted = run_by_onnxruntime(model, given)
    assert_same(computed(model, given, evaluator), wanted, rtol, atol)


def numbers(sizes: Sequence[int], type: Any = np.float32, seed: int = 0) -> Array:
    """Random numbers: normal ones, integers of all of 8 bits or below 100."""
    random = np.random.default_rng([seed, len(sizes), *sizes])
    wanted = np.dtype(type)
    if wanted.kind == "f":
        return random.standard_normal(sizes).astype(wanted)
    least, most = (np.iinfo(wanted).min, np.iinfo(wanted).max) if wanted.itemsize == 1 else (0, 100)
    return random.integers(least, most, sizes, endpoint=True).astype(wanted)
