"""Runs of ONNX models, in opendml's words and in ONNX Runtime's."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
import onnx

import opendml as dml
from opendml import onnx as dml_onnx
from tests.processes import has_fork, succeeds_in_child

_TEXT = """
<ir_version: 10, opset_import: ["" : 20], producer_name: "hand", model_version: 3,
 metadata_props: ["classes": "a,b"]>
example (float[n, 3] x, int64[n] picked, float[] scale) => (float[n, 3] y, bool[n, 3] positive, int64[n] same)
<float[3] bias = {1, 2, 3}, float scale = {2}>
{ sum = Add (x, bias)
  y = Mul (sum, scale)
  zero = Constant <value_float = 0.0> ()
  positive = Greater (y, zero)
  same = Identity (picked) }
"""
_X = np.array([[1, -2, 3], [-4, 5, -6]], np.float32)
_BIAS = np.array([1, 2, 3], np.float32)
_PICKED = np.array([4, 2], np.int64)


@pytest.fixture(params=["opendml", "onnxruntime"])
def ort(request: Any) -> Any:
    """The module that the program imports."""
    return dml_onnx if request.param == "opendml" else pytest.importorskip("onnxruntime")


@pytest.fixture
def path(tmp_path: Path) -> str:
    model = onnx.parser.parse_model(_TEXT)
    onnx.save(model, tmp_path / "model.onnx")
    return str(tmp_path / "model.onnx")


def _session(ort: Any, path: str) -> Any:
    return ort.InferenceSession(path, providers=["CPUExecutionProvider"])


def test_a_program_runs_with_either(ort: Any, path: str) -> None:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.set_denormal_as_zero", "0")
    session = ort.InferenceSession(path, sess_options=options, providers=["CPUExecutionProvider"])
    assert [(each.name, each.type, each.shape) for each in session.get_inputs()] == [
        ("x", "tensor(float)", ["n", 3]),
        ("picked", "tensor(int64)", ["n"]),
    ]
    assert [(each.name, each.type, each.shape) for each in session.get_outputs()] == [
        ("y", "tensor(float)", ["n", 3]),
        ("positive", "tensor(bool)", ["n", 3]),
        ("same", "tensor(int64)", ["n"]),
    ]
    assert [each.name for each in session.get_overridable_initializers()] == ["scale"]
    assert session.get_providers() == ["CPUExecutionProvider"]
    meta = session.get_modelmeta()
    assert (meta.producer_name, meta.graph_name, meta.version) == ("hand", "example", 3)
    assert meta.custom_metadata_map == {"classes": "a,b"}
    positive, y = session.run(["positive", "y"], {"x": _X, "picked": _PICKED})
    expected = (_X + _BIAS) * 2
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(positive, expected > 0)
    (same,) = session.run(
        ["same"], {"x": _X, "picked": _PICKED, "scale": np.array(3, np.float32)}, ort.RunOptions()
    )
    np.testing.assert_array_equal(same, _PICKED)
    assert len(session.run(None, {"x": _X, "picked": _PICKED})) == 3


def test_bindings_name_what_is_read_and_written(ort: Any, path: str) -> None:
    session = _session(ort, path)
    binding = session.io_binding()
    binding.bind_cpu_input("x", _X)
    binding.bind_input("picked", "cpu", 0, np.int64, _PICKED.shape, _PICKED.ctypes.data)
    written = np.zeros((2, 3), np.float32)
    binding.bind_output("y", "cpu", 0, np.float32, written.shape, written.ctypes.data)
    binding.bind_output("same")
    session.run_with_iobinding(binding)
    expected = (_X + _BIAS) * 2
    np.testing.assert_array_equal(written, expected)
    y, same = binding.copy_outputs_to_cpu()
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(same, _PICKED)
    assert [each.shape() for each in binding.get_outputs()] == [[2, 3], [2]]
    binding.clear_binding_outputs()
    value = ort.OrtValue.ortvalue_from_numpy(np.zeros((2, 3), np.float32))
    binding.bind_ortvalue_input("x", ort.OrtValue.ortvalue_from_numpy(2 * _X))
    binding.bind_ortvalue_output("y", value)
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(value.numpy(), (2 * _X + _BIAS) * 2)


def test_values_are_tensors(ort: Any, path: str) -> None:
    value = ort.OrtValue.ortvalue_from_numpy(_X.copy())
    assert (value.shape(), value.data_type(), value.element_type()) == ([2, 3], "tensor(float)", 1)
    assert (value.device_name(), value.is_tensor(), value.has_value()) == ("cpu", True, True)
    value.update_inplace(np.ones((2, 3), np.float32))
    np.testing.assert_array_equal(value.numpy(), np.ones((2, 3)))
    made = ort.OrtValue.ortvalue_from_shape_and_type([2, 2], np.int64)
    assert (made.shape(), made.data_type()) == ([2, 2], "tensor(int64)")
    feed = {"x": value, "picked": ort.OrtValue.ortvalue_from_numpy(_PICKED)}
    (same,) = _session(ort, path).run_with_ort_values(["same"], feed)
    np.testing.assert_array_equal(same.numpy(), _PICKED)


def test_symbolic_sizes_are_overridden(ort: Any, path: str) -> None:
    options = ort.SessionOptions()
    options.add_free_dimension_override_by_name("n", 2)
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    assert session.get_inputs()[0].shape == [2, 3]
    with pytest.raises(Exception, match="x"):
        session.run(None, {"x": _X[:1], "picked": _PICKED[:1]})


@pytest.mark.parametrize(
    ("text", "type"),
    [
        ("float16", "tensor(float16)"),
        ("double", "tensor(double)"),
        ("bfloat16", "tensor(bfloat16)"),
        ("string", "tensor(string)"),
        ("uint8", "tensor(uint8)"),
        ("bool", "tensor(bool)"),
    ],
)
def test_types_are_written_as_onnxruntime_does(ort: Any, text: str, type: str) -> None:
    model = onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 20]> g ({text}[2] x) => ({text}[2] y) {{ y = Identity (x) }}'
    )
    session = _session(ort, model.SerializeToString())
    assert (session.get_inputs()[0].type, session.get_outputs()[0].type) == (type, type)


def test_providers_that_are_not_here_are_passed_over(path: str) -> None:
    with pytest.warns(UserWarning, match="'QNNExecutionProvider' stands for no device of opendml") as told:
        session = dml_onnx.InferenceSession(path, providers=["QNNExecutionProvider", "CPUExecutionProvider"])
    assert session.get_providers() == ["CPUExecutionProvider"]
    with pytest.warns(UserWarning, match="'DnnlExecutionProvider' stands for no device") as told_again:
        session.set_providers(["DnnlExecutionProvider"])
    assert [each.filename for each in (*told, *told_again)] == [__file__, __file__]
    assert session.get_providers() == ["CPUExecutionProvider"]
    assert "CPUExecutionProvider" in dml_onnx.get_available_providers()
    assert dml_onnx.get_device() in ("CPU", "GPU")


def test_what_a_program_holds_says_what_it_is(path: str) -> None:
    session = _session(dml_onnx, path)
    assert repr(session) == f"<InferenceSession of {session.model!r}>"
    assert repr(dml_onnx.OrtValue.ortvalue_from_numpy(_X)) == "<OrtValue tensor(float) [2, 3]>"
    assert repr(dml_onnx.OrtValue([_X])) == "<OrtValue list>"
    options = dml_onnx.SessionOptions()
    options.intra_op_num_threads = 2
    assert repr(options) == "SessionOptions(intra_op_num_threads=2)"
    binding = session.io_binding()
    assert repr(binding) == "<IOBinding: nothing -> nothing>"
    binding.bind_cpu_input("x", _X)
    binding.bind_cpu_input("picked", _PICKED)
    binding.bind_output("y")
    assert repr(binding) == "<IOBinding: x, picked -> y>"
    prepared = dml_onnx.Backend.prepare(onnx.load(path))
    assert repr(prepared) == f"<BackendModel of {prepared.model!r}>"


def test_the_module_has_no_names_of_other_packages() -> None:
    assert "onnx" not in dir(dml_onnx)


def test_errors_say_what_is_allowed(path: str) -> None:
    session = _session(dml_onnx, path)
    with pytest.raises(dml.InvalidArgument, match=r"output 'z' is unknown; the model has 'y', 'positive'"):
        session.run(["z"], {"x": _X, "picked": _PICKED})
    with pytest.raises(dml.InvalidArgument, match="inputs: ndarray; a dict is needed, of arrays by their"):
        session.run(None, _X)
    with pytest.raises(dml.InvalidArgument, match=r"input 'picked' is missing"):
        session.run(None, {"x": _X})
    binding = session.io_binding()
    with pytest.raises(dml.InvalidArgument, match=r"input 'z' is unknown; the model has 'x', 'picked'"):
        binding.bind_cpu_input("z", _X)
    with pytest.raises(dml.InvalidArgument, match="device_type 'npu'; must be one of 'cpu', 'dml'"):
        binding.bind_input("x", "npu", 0, np.float32, [2, 3], 64)
    with pytest.raises(dml.InvalidArgument, match="no output is bound"):
        session.run_with_iobinding(binding)
    options = dml_onnx.SessionOptions()
    with pytest.raises(AttributeError, match="no field 'intra_op_threads'; it has enable_cpu_mem_arena"):
        options.intra_op_threads = 2
    options.enable_profiling = True
    with pytest.raises(dml.Unsupported, match="enable_profiling"):
        dml_onnx.InferenceSession(path, options)
    with pytest.raises(dml.InvalidArgument, match="provider_options: 1 for 0 providers"):
        dml_onnx.InferenceSession(path, provider_options=[{}])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("/no\0where.onnx",), "null byte"),
        ((["CPUExecutionProvider"],), "sess_options: .'CPUExecutionProvider'.; a SessionOptions is needed"),
        ((None, [3]), "providers: 3; a name, or a pair of a name and a dict of options"),
        ((None, ["CPUExecutionProvider"], [None]), "providers: .*; a name, or a pair"),
        ((None, [("CUDAExecutionProvider", {"device_id": "x"})]), "device_id 'x'; the number of a device"),
    ],
)
def test_arguments_of_sessions_are_checked(path: str, arguments: tuple[Any, ...], message: str) -> None:
    given = arguments if isinstance(arguments[0], str) else (path, *arguments)
    with pytest.raises(dml.InvalidArgument, match=message):
        dml_onnx.InferenceSession(*given)


def test_arguments_of_runs_are_what_they_must_be(path: str) -> None:
    session: Any = _session(dml_onnx, path)
    value: Any = dml_onnx.OrtValue
    options: Any = dml_onnx.SessionOptions()
    calls: list[tuple[Any, str]] = [
        (lambda: session.run("y", {"x": _X, "picked": _PICKED}), "output_names: 'y'; a list of names"),
        (lambda: session.run_with_iobinding(None), "None; what io_binding.. makes is needed"),
        (lambda: value.ortvalue_from_numpy([1]), r"\[1\]; a NumPy array is needed"),
        (lambda: options.add_free_dimension_override_by_name("n", "3"), "'n': '3'; a whole"),
        (lambda: session.run(3, {"x": _X, "picked": _PICKED}), "output_names: 3; a list of names"),
        (lambda: session.run(None, {"x": [[1e40] * 3], "picked": _PICKED}), "which float32 does not hold"),
        (lambda: session.run_async(None, {}, None, None), "callback: None; a function"),
        (lambda: dml_onnx.copy_tensors(3, []), "src: 3; a list of OrtValue"),  # type: ignore[arg-type]
        (lambda: value(3), "OrtValue: 3; a NumPy array"),
        (lambda: value([_X]).shape(), "OrtValue.shape: a list; a tensor"),
        (lambda: value(_frozen(_X)).update_inplace(_X), "update_inplace: a read-only array"),
        (lambda: value.ortvalue_from_shape_and_type([-1], np.float32), r"shape \[-1\]; a list of sizes"),
        (lambda: value.ortvalue_from_shape_and_type([2], "tensor(float)"), "'tensor.float.'; a NumPy type"),
        (lambda: value.ortvalue_from_numpy_with_onnx_type(_X, 777), "element_type: 777; a NumPy type"),
    ]
    for call, message in calls:
        with pytest.raises(dml.InvalidArgument, match=message):
            call()


def _frozen(array: Any) -> Any:
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def test_what_is_bound_is_memory_of_its_own(path: str) -> None:
    binding: Any = _session(dml_onnx, path).io_binding()
    address, value = _X.ctypes.data, dml_onnx.OrtValue

    def bind(type: Any = np.float32, shape: Any = (2, 3), at: Any = address) -> None:
        binding.bind_input("x", "cpu", 0, type, shape, at)

    calls: list[tuple[Any, str]] = [
        (lambda: bind(type=object), "element_type object; memory holds numbers"),
        (lambda: bind(type=None), "element_type: None; a NumPy type"),
        (lambda: bind(shape=6), "shape 6; a list of sizes"),
        (lambda: bind(shape=[2.5, 3]), r"shape \[2.5, 3\]; a list of sizes"),
        (lambda: bind(shape=[2**40, 2**40]), "address .* with sizes"),
        (lambda: bind(at="here"), "address 'here' with sizes"),
        (lambda: bind(at=-8), "address -8 with sizes"),
        (lambda: binding.bind_ortvalue_input("x", _X), "an OrtValue is needed"),
        (lambda: binding.bind_ortvalue_output("y", _X), "an OrtValue is needed"),
        (lambda: binding.bind_ortvalue_output("y", value([_X])), "a list; a tensor is needed"),
        (lambda: binding.bind_ortvalue_output("y", value(_frozen(_X))), "a read-only array"),
        (
            lambda: binding.bind_ortvalue_output(
                "y", value(np.lib.stride_tricks.as_strided(_X.copy(), (2, 3), (0, 4)))
            ),
            r"strides \[0, 4\] bytes; an output must not overlap itself",
        ),
    ]
    for call, message in calls:
        with pytest.raises(dml.InvalidArgument, match=message):
            call()
    # Tensors without elements have no address in PyTorch.
    empty = np.zeros((0, 3), np.float32)
    bind(shape=empty.shape, at=0)
    binding.bind_cpu_input("picked", np.zeros(0, np.int64))
    binding.bind_ortvalue_output("y", value(empty))
    _session(dml_onnx, path).run_with_iobinding(binding)
    assert binding.get_outputs()[0].shape() == [0, 3]


def test_outputs_share_no_memory(path: str) -> None:
    session = _session(dml_onnx, path)
    binding, memory = session.io_binding(), np.zeros((3, 3), np.float32)
    binding.bind_cpu_input("x", _X)
    binding.bind_cpu_input("picked", _PICKED)
    binding.bind_ortvalue_output("y", dml_onnx.OrtValue(memory[:2]))
    same = memory.reshape(-1)[4:8].view(np.int64)
    binding.bind_ortvalue_output("same", dml_onnx.OrtValue(same))
    with pytest.raises(dml.InvalidArgument, match="outputs 'y' and 'same' share memory"):
        session.run_with_iobinding(binding)


_ALONE = """
import sys
import numpy as np
from opendml import onnx
values = np.linspace(-1, 1, 40 * 48, dtype=np.float32)
model = onnx.load(sys.argv[1])
sys.stdout.buffer.write(model(values.reshape(40, 48))["y"].tobytes())
"""


def test_processes_load_a_model_into_one_empty_cache_at_once(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(
        """
        <ir_version: 10, opset_import: ["" : 20]> example (float[40, 48] x) => (float[40, 40] y)
        { across = Transpose (x)  products = MatMul (x, across)  y = Softmax (products) }
        """
    )
    onnx.save(model, tmp_path / "model.onnx")
    cache = tmp_path / "cache"
    command = [sys.executable, "-c", _ALONE, str(tmp_path / "model.onnx")]
    environment = os.environ | {"OPENDML_CACHE_DIRECTORY": str(cache)}
    processes = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) for _ in range(2)]
    one, other = (process.communicate(timeout=300)[0] for process in processes)
    assert [process.returncode for process in processes] == [0, 0]
    x = np.linspace(-1, 1, 40 * 48, dtype=np.float32).reshape(40, 48).astype(np.float64)
    weights = np.exp(x @ x.T)
    result = np.frombuffer(one, np.float32).reshape(40, 40)
    np.testing.assert_allclose(result, weights / weights.sum(1, keepdims=True), rtol=2e-5)
    assert one == other
    assert not list(cache.glob("*.tmp"))
    assert list(cache.glob("*.o"))


_HEAD = '<ir_version: 10, opset_import: ["" : 20]>'
_X_CALLS = np.array([1, -2, 3], np.float32)


def _loaded(text: str) -> dml_onnx.OnnxModel:
    return dml_onnx.load(onnx.parser.parse_model(f"{_HEAD} {text}"))


@pytest.fixture
def model() -> dml_onnx.OnnxModel:
    return _loaded("g (float[n] x, float[1] b) => (float[n] y) <float[1] b = {1}> { y = Add (x, b) }")


def test_an_input_is_given_once(model: dml_onnx.OnnxModel) -> None:
    with pytest.raises(dml.InvalidArgument, match="input 'x' is given by its place and by its name"):
        model(_X_CALLS, x=_X_CALLS)


class Refusing:
    """An array of another library, which gives nothing out, as those of PyTorch that need gradients."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("detach it first")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([[1.0], [2.0, 3.0]], "input 'x' is no array"),
        (None, "input 'x' is None, which float32 does not hold"),
        (Refusing(), "input 'x' is no array: detach it first"),
        (
            {"x": _X_CALLS},
            "input 'x' is a dict; an array is needed: `run` takes a dict of arrays by their names",
        ),
        (_X_CALLS.reshape(1, 3), r"input 'x' has sizes \[1, 3\]"),
    ],
)
def test_what_is_no_such_array_is_refused(model: dml_onnx.OnnxModel, given: Any, message: str) -> None:
    with pytest.raises(dml.InvalidArgument, match=message):
        model(given)


def test_a_run_takes_arrays_by_their_names(model: dml_onnx.OnnxModel) -> None:
    with pytest.raises(dml.InvalidArgument, match="inputs: ndarray; a dict is needed, of arrays by their"):
        model.run(_X_CALLS)  # type: ignore[arg-type]


def test_initializers_are_overridden_by_what_they_are_declared_as(model: dml_onnx.OnnxModel) -> None:
    np.testing.assert_array_equal(model(_X_CALLS, b=np.array([2], np.float32))["y"], _X_CALLS + 2)
    with pytest.raises(dml.InvalidArgument, match="input 'b' is of type float64; must be float32"):
        model(_X_CALLS, b=np.array([2.0]))
    with pytest.raises(dml.InvalidArgument, match=r"input 'b' has sizes \[3\]; must be \[1\]"):
        model(_X_CALLS, b=_X_CALLS)


def test_arrays_of_the_other_byte_order_are_read(model: dml_onnx.OnnxModel) -> None:
    np.testing.assert_array_equal(model(_X_CALLS.astype(_X_CALLS.dtype.newbyteorder()))["y"], _X_CALLS + 1)


@pytest.mark.filterwarnings("ignore::opendml.onnx.EvaluatorWarning")
def test_callers_may_write_into_outputs() -> None:
    model = _loaded(
        """g (float[n] x) => (seq(float[n]) s, float[n] y, float[n] z)
        <float[2] w = {1, 2}, int64 first = {1}>
        { s = SequenceConstruct (x, w)
          y = SequenceAt (s, first)
          z = Identity (y) }"""
    )
    x = _X_CALLS.copy()
    for _ in range(2):
        results = model(x)
        np.testing.assert_array_equal(results["s"][0], _X_CALLS)
        for each in (results["s"][1], results["y"], results["z"]):
            np.testing.assert_array_equal(each, [1, 2])
        for each in (*results["s"], results["y"], results["z"]):
            each[:] = 9
        np.testing.assert_array_equal(x, _X_CALLS)


def test_a_loop_without_trips_leaves_its_inputs_alone() -> None:
    model = _loaded(
        """g (float[n] x) => (float[n] y) <int64 trips = {0}>
        { y = Loop (trips, , x) <body = b (int64 i, bool c, float[n] v) => (bool d, float[n] w)
          { d = Identity (c)
            w = Neg (v) }> }"""
    )
    x = _X_CALLS.copy()
    model(x)["y"][:] = 9
    np.testing.assert_array_equal(x, _X_CALLS)


def test_models_say_that_they_are_not_pickled(model: dml_onnx.OnnxModel) -> None:
    with pytest.raises(dml.Unsupported, match="load it where it runs"):
        pickle.dumps(model)


@has_fork
def test_the_child_of_a_fork_compiles_though_a_thread_did(model: dml_onnx.OnnxModel) -> None:
    begun, done = threading.Event(), threading.Event()

    def compiling() -> None:
        with model._tracer._lock:
            begun.set()
            done.wait()

    thread = threading.Thread(target=compiling)
    thread.start()
    begun.wait()
    try:
        assert succeeds_in_child(lambda: np.array_equal(model(_X_CALLS)["y"], _X_CALLS + 1))
    finally:
        done.set()
        thread.join()


def test_indices_that_are_not_there_are_the_nearest_ones_or_nobodys() -> None:
    places = np.array([7, -9, 1])
    gathered = _loaded("g (float[n] x, int64[m] i) => (float[m] y) { y = Gather (x, i) }")
    assert gathered(_X_CALLS, places)["y"].tolist() == [_X_CALLS[-1], _X_CALLS[0], _X_CALLS[1]]
    scattered = _loaded(
        "g (float[n] x, int64[m] i, float[m] u) => (float[n] y) { y = ScatterElements <axis = 0> (x, i, u) }"
    )
    wanted = [_X_CALLS[0], 30.0, *_X_CALLS[2:].tolist()]
    assert scattered(_X_CALLS, places, np.array([10, 20, 30], np.float32))["y"].tolist() == wanted


_INTERRUPTED = """
import signal, sys
import numpy as np
import opendml as dml
from opendml import onnx

class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[2]:
            sys.meta_path.remove(self)
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Interrupts())
try:
    onnx.load(sys.argv[1])
    raise SystemExit("not interrupted")
except KeyboardInterrupt:
    pass
inputs = np.ones((2, 3), np.float32), np.ones(2, np.int64)
onnx.load(sys.argv[1])(*inputs)
"""


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize(
    ("opset", "module"), [(20, "google.protobuf.internal.builder"), (24, "onnx.checker")]
)
def test_a_model_is_loaded_again_after_ctrl_c_in_an_import(
    opset: int, module: str, path: str, tmp_path: Path
) -> None:
    """The package is imported for operator sets that the table of schemas has not."""
    model = onnx.load(path)
    if opset > onnx.defs.onnx_opset_version():
        pytest.skip("the onnx package does not know the operator set")
    model.opset_import[0].version = opset
    onnx.save(model, path)
    command = [sys.executable, "-c", _INTERRUPTED, path, module]
    environment = os.environ | {"OPENDML_CACHE_DIRECTORY": str(tmp_path / "cache")}
    subprocess.run(command, env=environment, check=True)
