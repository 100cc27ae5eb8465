"""Models are loaded without the `onnx` package, with the same results, messages and limits as with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

import opendml as dml
from opendml.frontends.onnx import infer_shapes, load_checks, package, schemas
from opendml.frontends.onnx.attribute_values import value_of
from opendml.frontends.onnx.element_types import array_in, dtype_of, element_of
from opendml.frontends.onnx.evaluator_limits import most_elements, results_of
from opendml.frontends.onnx.load_checks import require_possible
from opendml.frontends.onnx.node import nodes_of
from opendml.frontends.onnx.values import Known
from tests.processes import has_fork
from tools.onnx_schemas import table, text

MODEL = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[n, 3, 8, 8] x) => (float[n, k] y)
<float[4, 3, 3, 3] w = {WEIGHTS}, int64[2] s = {0, -1}> {
    c = Conv <pads = [1, 1, 1, 1]> (x, w)
    r = Relu (c)
    p = MaxPool <kernel_shape = [2, 2]> (r)
    y = Reshape (p, s)
}
""".replace("WEIGHTS", ", ".join(["0.5"] * 108))
MISFIT = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[2, 3] x, float[4, 5] w) => (float[2, 5] y) { y = MatMul (x, w) }
"""

PROGRAM = """
import pickle, sys
order, path = sys.argv[1:]
if order == "before":
    import onnx
import numpy as np, opendml as dml
x = np.ones((2, 3, 8, 8), np.float32)
first = dml.onnx.load(path)(x)["y"]
assert ("onnx" in sys.modules) == (order == "before"), "imported"
import onnx
from opendml.frontends.onnx.package import onnx as late
assert late.ModelProto is onnx.ModelProto is onnx.onnx_ml_pb2.ModelProto
assert late.helper is onnx.helper
message = onnx.load(path)
onnx.checker.check_model(message)
assert pickle.loads(pickle.dumps(message)) == message
assert np.array_equal(dml.onnx.load(message)(x)["y"], first)
"""


def run(program: str, *arguments: str, cache: Path) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"OPENDML_CACHE_DIRECTORY": str(cache), "OPENDML_THREADS": "2"}
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)


@pytest.fixture
def path(tmp_path: Path) -> str:
    onnx.save(parser.parse_model(MODEL), tmp_path / "model.onnx")
    return str(tmp_path / "model.onnx")


@pytest.mark.parametrize("order", ["before", "after"])
@pytest.mark.parametrize("implementation", ["upb", "python"])
def test_the_package_has_the_same_classes_whether_it_is_imported_before_or_after(
    order: str, implementation: str, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION", implementation)
    found = run(PROGRAM, order, path, cache=tmp_path / "cache")
    assert found.returncode == 0, found.stderr


@pytest.mark.parametrize("function", ["find_spec", "module_from_spec"])
def test_without_its_module_of_messages_the_package_is_imported(
    function: str, path: str, tmp_path: Path
) -> None:
    program = """
import importlib.util, sys
import numpy as np, opendml as dml, opendml.frontends.onnx.model
kept = getattr(importlib.util, sys.argv[1])
def broken(given):
    if sys.argv[1] == "module_from_spec":
        raise ImportError(given)
setattr(importlib.util, sys.argv[1], broken)
import opendml.frontends.onnx.package
setattr(importlib.util, sys.argv[1], kept)
assert "onnx" in sys.modules
dml.onnx.load(sys.argv[2])(np.ones((2, 3, 8, 8), np.float32))
"""
    found = run(program, function, path, cache=tmp_path / "cache")
    assert found.returncode == 0, found.stderr


def test_a_process_without_the_package_says_what_is_missing(path: str, tmp_path: Path) -> None:
    program = "import sys; sys.modules['onnx'] = None; import opendml.frontends.onnx.package"
    found = run(program, cache=tmp_path / "cache")
    assert found.stderr.splitlines()[-1].startswith("ModuleNotFoundError: import of onnx halted")


def test_the_table_of_schemas_is_that_of_the_package() -> None:
    assert schemas.TABLE.read_text(encoding="utf-8") == text(table())


@pytest.mark.parametrize(
    ("operator", "version", "domain"),
    [("Conv", 22, ""), ("Selu", 1, ""), ("TreeEnsemble", 5, "ai.onnx.ml"), ("Abs", 0, "")],
)
def test_schemas_are_those_of_the_package(operator: str, version: int, domain: str) -> None:
    try:
        expected = schemas._of_package(onnx.defs.get_schema(operator, version, domain))
    except onnx.defs.SchemaError:
        expected = None
    assert schemas.schema_of(operator, version, domain) == expected


def test_unknown_operators_have_no_schema() -> None:
    for operator, version, domain in (("None", 17, ""), ("Conv", 17, "no.domain"), ("Conv", 2**40, "")):
        assert schemas.schema_of(operator, version, domain) is None


def test_schemas_that_a_program_registers_count() -> None:
    schema = onnx.defs.OpSchema("Registered", "opendml.test", 1)
    assert schemas.schema_of("Registered", 1, "opendml.test") is None
    onnx.defs.register_schema(schema)
    try:
        assert schemas.schema_of("Registered", 1, "opendml.test") is not None
    finally:
        onnx.defs.deregister_schema("Registered", 1, "opendml.test")


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Let another process check sizes, and note its answers."""
    monkeypatch.setattr(load_checks, "is_imported", lambda: False)
    found, answer = list[bytes](), load_checks.PossibleSizes._answer

    def noted(process: Any, content: bytes) -> bytes:
        found.append(answer(process, content))
        return found[-1]

    monkeypatch.setattr(load_checks.PossibleSizes, "_answer", staticmethod(noted))
    return found


def test_another_process_checks_sizes(processes: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    require_possible(parser.parse_model(MODEL))
    with pytest.raises(dml.InvalidArgument, match="sizes and types do not fit") as elsewhere:
        require_possible(parser.parse_model(MISFIT))
    assert processes[0] == infer_shapes.FITS
    assert processes[1].startswith(infer_shapes.WRONG)
    monkeypatch.setattr(load_checks, "is_imported", lambda: True)
    with pytest.raises(dml.InvalidArgument) as here:
        require_possible(parser.parse_model(MISFIT))
    assert str(here.value) == str(elsewhere.value)


@pytest.mark.parametrize(
    "program", ["", "print('fits and more')", "raise SystemExit(1)", "import os; os.abort()"]
)
def test_sizes_are_checked_here_if_the_process_is_lost(
    program: str, processes: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lost.py").write_text(program)
    monkeypatch.setattr(infer_shapes, "__file__", str(tmp_path / "lost.py"))
    require_possible(parser.parse_model(MODEL))
    with pytest.raises(dml.InvalidArgument, match="sizes and types do not fit"):
        require_possible(parser.parse_model(MISFIT))
    assert len(processes) == 2


def test_sizes_are_checked_here_if_the_process_does_not_answer(
    processes: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slow.py").write_text("import time; time.sleep(600)")
    monkeypatch.setattr(infer_shapes, "__file__", str(tmp_path / "slow.py"))
    monkeypatch.setattr(load_checks, "_LONGEST", 0.2)
    with load_checks.PossibleSizes(parser.parse_model(MISFIT)) as possible:
        with pytest.raises(dml.InvalidArgument, match="sizes and types do not fit"):
            possible.require()
        process = possible._process
    assert processes == [b""]
    assert process is not None
    assert process.returncode is not None


@has_fork
def test_the_check_of_sizes_does_not_wait_for_the_child_of_a_fork(processes: list[bytes]) -> None:
    with load_checks.PossibleSizes(parser.parse_model(MODEL)) as possible:
        child = os.fork()
        if child == 0:
            time.sleep(20)  # It has the pipes to the process meanwhile.
            os._exit(0)
        try:
            possible.require()
            assert os.waitpid(child, os.WNOHANG) == (0, 0), "the child had to end first"
        finally:
            with suppress(OSError):
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
    assert processes == [infer_shapes.FITS]


TYPES = {name for name, number in TensorProto.DataType.items() if 0 < number <= TensorProto.BFLOAT16}
NUMBERS = sorted(TYPES - {"STRING", "COMPLEX64", "COMPLEX128"})


@pytest.mark.parametrize("name", NUMBERS)
def test_contents_and_types_of_messages_are_those_of_the_package(name: str) -> None:
    element = TensorProto.DataType.Value(name)
    type = helper.tensor_dtype_to_np_dtype(element)
    assert dtype_of(element) == type
    assert element_of(type) == element
    values = np.array([[0, 1, 2], [3, 100, 5]]).astype(type)
    for raw in (False, True):
        data = values.tobytes() if raw else values.ravel()
        tensor = helper.make_tensor("t", element, values.shape, data, raw)
        found, expected = array_in(tensor), numpy_helper.to_array(tensor)
        assert found.dtype == expected.dtype
        assert found.tobytes() == expected.tobytes()
        assert found.shape == expected.shape
    short = helper.make_tensor("t", element, values.shape, values.tobytes(), raw=True)
    short.dims.append(2)
    with pytest.raises(ValueError, match="reshape"):
        array_in(short)


def test_unknown_element_types_are_errors() -> None:
    with pytest.raises(KeyError):
        dtype_of(1000)


@pytest.mark.parametrize(
    "value",
    [1, 2.5, "text", [1, 2], [0.5], ["a", "b"], helper.make_tensor("t", TensorProto.FLOAT, [1], [1.0])],
)
def test_values_of_attributes_are_those_of_the_package(value: Any) -> None:
    assert value_of(helper.make_attribute("a", value)) == value


def test_an_attribute_that_refers_to_another_has_no_value() -> None:
    with pytest.raises(ValueError, match="has the value of 'other'"):
        value_of(onnx.AttributeProto(name="a", ref_attr_name="other", type=onnx.AttributeProto.INT))


@pytest.mark.parametrize(
    ("call", "sizes"),
    [
        ("Conv <pads = [2, 3, 1, 4]> (a, b)", [(2, 3, 8, 9), (5, 3, 1, 1)]),
        ('Conv <group = 3, strides = [2, 1], auto_pad = "SAME_UPPER"> (a, b)', [(1, 3, 7, 9), (6, 1, 3, 3)]),
        ("MaxPool <kernel_shape = [2, 2], ceil_mode = 1> (a)", [(1, 3, 7, 9)]),
        ("AveragePool <kernel_shape = [1, 2], pads = [0, 1, 0, 1]> (a)", [(2, 3, 7, 9)]),
        ("MatMul (a, b)", [(4, 1, 2, 3), (5, 3, 6)]),
        ("MatMul (a, b)", [(3,), (5, 3, 6)]),
        ("MatMul (a, b)", [(5, 2, 3), (3,)]),
        ("MatMul (a, b)", [(3,), (3,)]),
        ("Gemm <transA = 1> (a, b)", [(3, 50), (3, 70)]),
        ("Gather (a, i)", [(9, 5), (2, 40)]),
        ("Gather <axis = 1> (a, i)", [(9, 5), (2, 40)]),
        ("Where (c, a, b)", [(3, 1), (1, 4), (2, 1, 1)]),
        ("Add (a, b)", [(3, 1), (1, 400)]),
        ("Sum (a, b)", [(3, 0), (1, 1)]),
        ("Concat <axis = 1> (a, b)", [(3, 40, 5), (3, 2, 5)]),
        ("LayerNormalization (a, b)", [(3, 40), (40,)]),
    ],
)
def test_bounds_of_results_hold(call: str, sizes: list[tuple[int, ...]]) -> None:
    names = ["c", "a", "b"] if call.startswith("Where") else ["a", "i" if "i)" in call else "b"]
    types = {"a": "float", "b": "float", "c": "bool", "i": "int64"}
    declared = ", ".join(
        f"{types[name]}{list(each)} {name}" for name, each in zip(names, sizes, strict=False)
    )
    head = '<ir_version: 8, opset_import: ["" : 17]>'
    model = parser.parse_model(f"{head} g ({declared}) => (float y) {{ y = {call} }}")
    model.graph.output[0].type.tensor_type.ClearField("shape")
    inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True).graph.output[0]
    count = np.prod([each.dim_value for each in inferred.type.tensor_type.shape.dim], dtype=int)
    (node,) = nodes_of(model.graph.node, {"": 17})
    assert count <= most_elements(node, sizes) <= 40 * max(1, count)


@pytest.mark.parametrize("operator", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("directions", [1, 2])
def test_bounds_of_recurrences_hold(operator: str, directions: int) -> None:
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[operator]
    sizes = [(7, 3, 5), (directions, gates * 6, 5), (directions, gates * 6, 6)]
    names = ["x", "w", "r"]
    (node,) = nodes_of([helper.make_node(operator, names, ["y"], hidden_size=6)], {"": 17})
    assert 7 * directions * 3 * 6 <= most_elements(node, sizes) <= 40 * 7 * directions * 3 * 6


@pytest.mark.parametrize(
    ("operator", "contents", "wanted"),
    [
        ("ConstantOfShape", [np.array([3, 0, 5])], (3, 0, 5)),
        ("Expand", [np.zeros((3, 1, 4), np.float32), np.array([2, 1, 5, 1])], (2, 3, 5, 4)),
        ("Expand", [np.zeros((3, 1), np.float32), np.array([4])], (3, 4)),
        ("Pad", [np.zeros((3, 1), np.float32), np.array([1, 0, 2, 3])], (6, 4)),
        ("Range", [np.array(3), np.array(9), np.array(2)], (3,)),
    ],
)
def test_sizes_that_contents_tell_need_no_inference(
    operator: str, contents: list[np.ndarray[Any, Any]], wanted: tuple[int, ...]
) -> None:
    names = [f"i{number}" for number in range(len(contents))]
    (node,) = nodes_of([helper.make_node(operator, names, ["y"])], {"": 17})
    values = dict(zip(names, map(Known, contents), strict=True))
    assert results_of(node, values, {})["y"][0] == wanted == results_of(node, values)["y"][0]


def test_whoever_imports_the_package_is_known() -> None:
    assert package.is_imported()
    assert package.locations() == [str(Path(onnx.__file__).parent)]
