"""The names, arguments and defaults of ONNX Runtime's module, which `opendml.onnx` has too."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
import onnx

import opendml as dml
from opendml import onnx as ours
from opendml.frontends.onnxruntime.refused import REFUSED

NAMES = """
AdapterFormat ExecutionMode ExecutionOrder GraphOptimizationLevel IOBinding InferenceSession LoraAdapter
ModelCompiler ModelMetadata NodeArg OrtAllocatorType OrtArenaCfg OrtCompileApiFlags OrtDevice
OrtDeviceMemoryType OrtDeviceVendorId OrtEpAssignedNode OrtEpAssignedSubgraph OrtEpContextData
OrtEpContextDataBuffer OrtEpDevice OrtExecutionProviderDevicePolicy OrtExternalInitializerInfo
OrtHardwareDevice OrtHardwareDeviceType OrtMemType OrtMemoryInfo OrtMemoryInfoDeviceType OrtSparseFormat
OrtSyncStream OrtValue RunOptions SessionIOBinding SessionOptions SparseTensor __author__ __version__ capi
copy_tensors create_and_register_allocator create_and_register_allocator_v2 cuda_version
disable_telemetry_events enable_telemetry_events get_all_providers get_available_providers get_build_info
get_device get_ep_devices get_version_string has_collective_ops package_name preload_dlls print_debug_info
register_execution_provider_library set_default_logger_severity set_default_logger_verbosity
set_global_thread_pool_sizes set_seed unregister_execution_provider_library version
"""
"""The public names of onnxruntime 1.31.1."""
ARTIFACTS = {"contextlib", "onnxruntime_validation", "import_capi_exception"}
"""Names that onnxruntime's own import leaves behind."""

ARGUMENTS = {
    "InferenceSession": """
        __init__(path_or_bytes, sess_options=None, providers=None, provider_options=None)
        create_ortvalue_from_shape_and_type(shape, element_type, device_type, device_id=0, vendor_id=-1)
        disable_fallback() enable_fallback() end_profiling() get_input_epdevices() get_input_memory_infos()
        get_inputs() get_modelmeta() get_output_memory_infos() get_outputs() get_overridable_initializers()
        get_profiling_start_time_ns() get_provider_graph_assignment_info() get_provider_options()
        get_providers() get_session_options() get_tuning_results() io_binding()
        release_captured_graph(graph_annotation_id=0) run(output_names, input_feed, run_options=None)
        run_async(output_names, input_feed, callback, user_data, run_options=None)
        run_with_iobinding(iobinding, run_options=None)
        run_with_ort_values(output_names, input_dict_ort_values, run_options=None)
        run_with_ortvaluevector(run_options, feed_names, feeds, fetch_names, fetches, fetch_devices)
        set_ep_dynamic_options(options) set_providers(providers=None, provider_options=None)
        set_tuning_results(results, error_on_invalid=False)
    """,
    "IOBinding": """
        __init__(session) bind_cpu_input(name, arr_on_cpu)
        bind_input(name, device_type, device_id, element_type, shape, buffer_ptr)
        bind_ortvalue_input(name, ortvalue) bind_ortvalue_output(name, ortvalue)
        bind_output(name, device_type='cpu', device_id=0, element_type=None, shape=None, buffer_ptr=None)
        clear_binding_inputs() clear_binding_outputs() copy_outputs_to_cpu() get_outputs()
        get_outputs_as_ortvaluevector() synchronize_inputs() synchronize_outputs()
    """,
    "OrtValue": """
        as_sparse_tensor() data_ptr() data_type() device_name() element_type() from_dlpack(data)
        has_value() is_sparse_tensor() is_tensor() is_tensor_sequence() numpy()
        ort_value_from_sparse_tensor(sparse_tensor)
        ortvalue_from_numpy(numpy_obj, device_type='cpu', device_id=0, vendor_id=-1)
        ortvalue_from_numpy_with_onnx_type(data, onnx_element_type)
        ortvalue_from_shape_and_type(shape, element_type, device_type='cpu', device_id=0, vendor_id=-1,
        memory_info=None)
        shape() tensor_size_in_bytes() update_inplace(data)
    """,
    "OrtDevice": """
        device_id() device_mem_type() device_type() device_vendor_id()
        make(ort_device_name, device_id, vendor_id=-1)
    """,
}
"""The methods of classes that are written in Python."""

MEMBERS = {
    "SessionOptions": """
        add_external_initializers/2 add_external_initializers_from_files_in_memory/3
        add_free_dimension_override_by_denotation/2 add_free_dimension_override_by_name/2 add_initializer/2
        add_provider/2 add_provider_for_devices/2 add_session_config_entry/2
        clear_ep_context_data_read_func/0 enable_cpu_mem_arena enable_mem_pattern enable_mem_reuse
        enable_profiling execution_mode execution_order get_session_config_entry/1 graph_optimization_level
        has_providers/0 inter_op_num_threads intra_op_num_threads log_severity_level log_verbosity_level
        logid optimized_model_filepath profile_file_prefix register_custom_ops_library/1
        set_ep_context_data_read_func/2 set_load_cancellation_flag/1 set_provider_selection_policy/1
        set_provider_selection_policy_delegate/1 use_deterministic_compute use_per_session_threads
    """,
    "RunOptions": """
        add_active_adapter/1 add_run_config_entry/2 get_run_config_entry/1 log_severity_level
        log_verbosity_level logid only_execute_path_to_fetches terminate
    """,
    "NodeArg": "name shape type",
    "ModelMetadata": """
        custom_metadata_map description domain graph_description graph_name producer_name version
    """,
    "OrtArenaCfg": """
        arena_extend_strategy initial_chunk_size_bytes initial_growth_chunk_size_bytes
        max_dead_bytes_per_chunk max_mem max_power_of_two_extend_bytes
    """,
    "OrtMemoryInfo": "allocator_type create_v2/7 device_id device_mem_type device_vendor_id mem_type name",
    "OrtEpDevice": "create_sync_stream/0 device ep_metadata ep_name ep_options ep_vendor memory_info/1",
    "OrtHardwareDevice": "device_id metadata type vendor vendor_id",
}
"""The members of classes that are written in C++: fields, and methods with the number of their arguments."""

_TEXT = (
    '<ir_version: 10, opset_import: ["" : 20]> g (float[n, 3] x, int64[n] k) => (float[n, 3] y, int64[n] l) \
{ y = Relu (x) l = Add (k, k) }'
)
_BYTES = onnx.parser.parse_model(_TEXT).SerializeToString()
_FEED = {"x": np.array([[1, -2, 3]], np.float32), "k": np.array([4])}


@pytest.fixture
def theirs() -> Any:
    return pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")


@pytest.fixture
def session() -> Any:
    return ours.InferenceSession(_BYTES)


def _arguments(method: Any) -> str:
    """The arguments of a method without `self`, by names and defaults."""
    found = []
    for each in inspect.signature(method).parameters.values():
        if each.name != "self" and each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL):
            default = each.default
            found.append(each.name if default is each.empty else f"{each.name}={default!r}")
    return ", ".join(found)


def _listed(text: str) -> dict[str, str]:
    return {name: " ".join(each.split()) for name, each in re.findall(r"(\w+)\(([^)]*)\)", text)}


@pytest.mark.parametrize("name", NAMES.split())
def test_every_name_is_there(name: str) -> None:
    value = getattr(ours, name)
    assert name in dir(ours)
    if name in REFUSED:
        with pytest.raises(dml.Unsupported, match=f"^{name}: "):
            value()
        with pytest.raises(dml.Unsupported, match=f"^{name}.some: "):
            value.some  # noqa: B018


def test_names_of_a_newer_onnxruntime_are_there_too(theirs: Any) -> None:
    modules = {name for name, value in vars(theirs).items() if isinstance(value, ModuleType)}
    public = {name for name in dir(theirs) if not name.startswith("_")} - ARTIFACTS - modules
    assert public <= set(NAMES.split()) - {"capi"}
    assert public >= {"InferenceSession", "disable_telemetry_events", "set_seed"}


@pytest.mark.parametrize("kind", ARGUMENTS)
def test_methods_take_the_same_arguments(kind: str) -> None:
    for name, arguments in _listed(ARGUMENTS[kind]).items():
        own = _arguments(inspect.unwrap(getattr(getattr(ours, kind), name)))
        assert own.removesuffix(", limits=None") == arguments, name


@pytest.mark.parametrize("kind", ARGUMENTS)
def test_the_listed_arguments_are_those_of_onnxruntime(kind: str, theirs: Any) -> None:
    known = _listed(ARGUMENTS[kind])
    real = getattr(theirs, kind)
    methods = [name for name in dir(real) if not name.startswith("_")]
    assert set(methods) == set(known) - {"__init__"}
    for name, arguments in known.items():
        assert _arguments(getattr(real, name)) == arguments, name


@pytest.mark.parametrize("kind", MEMBERS)
def test_members_take_as_many_arguments(kind: str, session: Any) -> None:
    made = {
        "SessionOptions": ours.SessionOptions(),
        "RunOptions": ours.RunOptions(),
        "NodeArg": session.get_inputs()[0],
        "ModelMetadata": session.get_modelmeta(),
        "OrtArenaCfg": ours.OrtArenaCfg({"max_mem": 5}),
        "OrtMemoryInfo": session.get_input_memory_infos()[0],
        "OrtEpDevice": ours.get_ep_devices()[0],
        "OrtHardwareDevice": ours.get_ep_devices()[0].device,
    }[kind]
    for name, _, count in (each.partition("/") for each in MEMBERS[kind].split()):
        value = getattr(made, name)
        assert callable(value) is bool(count), name
        if count:
            assert len(inspect.signature(value).parameters) == int(count), name


@pytest.mark.parametrize("kind", MEMBERS)
def test_the_listed_members_are_those_of_onnxruntime(kind: str, theirs: Any) -> None:
    real = getattr(theirs, kind)
    known = dict(each.partition("/")[::2] for each in MEMBERS[kind].split())
    assert {name for name in dir(real) if not name.startswith("_")} == set(known)
    for name, count in known.items():
        if count:
            text = (getattr(real, name).__doc__ or "").splitlines()[0].rpartition(") ->")[0]
            assert len(re.findall(r"\b\w+: ", text.replace("self: ", ""))) == int(count), text


@pytest.mark.parametrize("name", ["SessionOptions", "RunOptions"])
def test_options_have_the_same_defaults(name: str, theirs: Any) -> None:
    own, real = getattr(ours, name)(), getattr(theirs, name)()
    for field in MEMBERS[name].split():
        if "/" not in field:
            default = getattr(real, field)
            assert getattr(own, field) == getattr(default, "value", default), field


_ENUMERATIONS = [
    name for name in NAMES.split() if name not in REFUSED and hasattr(getattr(ours, name), "__members__")
]


@pytest.mark.parametrize("name", _ENUMERATIONS)
def test_enumerations_have_the_same_members(name: str, theirs: Any) -> None:
    members = {key: int(value) for key, value in getattr(theirs, name).__members__.items()}
    assert {key: int(value) for key, value in getattr(ours, name).__members__.items()} == members


def test_devices_have_the_same_numbers(theirs: Any) -> None:
    for name in ("cpu", "cuda", "dml", "gpu", "npu", "webgpu", "cann"):
        numbers = [
            (made.device_type(), made.device_id(), made.device_vendor_id(), made.device_mem_type())
            for made in (module.OrtDevice.make(name, 2) for module in (ours, theirs))
        ]
        assert numbers[0] == numbers[1], name
    with pytest.raises(dml.InvalidArgument, match=r"'tpu'; must be one of 'cpu', 'cuda'"):
        ours.OrtDevice.make("tpu", 0)


def test_the_version_is_that_of_the_interface() -> None:
    assert ours.__version__ == ours.get_version_string() == "1.31.1"
    assert ours.get_build_info().startswith(f"opendml {dml.__version__}, interface of ONNX Runtime 1.31.1")


def test_functions_without_an_effect_are_accepted(capsys: pytest.CaptureFixture[str]) -> None:
    ours.disable_telemetry_events()
    ours.enable_telemetry_events()
    ours.preload_dlls(cuda=True, cudnn=False, directory="")
    ours.set_default_logger_severity(3)
    ours.set_default_logger_verbosity(1)
    memory = ours.OrtMemoryInfo("Cpu", ours.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ours.OrtMemType.DEFAULT)
    ours.create_and_register_allocator(memory, ours.OrtArenaCfg(0, -1, -1, -1))
    ours.create_and_register_allocator_v2("CPUExecutionProvider", memory, {}, None)
    assert not ours.has_collective_ops()
    ours.print_debug_info()
    assert "CPUExecutionProvider: CPU" in capsys.readouterr().out


def test_functions_say_what_they_need() -> None:
    any_ours: Any = ours
    calls: list[tuple[Any, type[Exception], str]] = [
        (lambda: any_ours.set_seed("a"), dml.InvalidArgument, "set_seed: 'a'; a whole number"),
        (lambda: any_ours.set_seed(-1), dml.InvalidArgument, "set_seed: -1; must not be negative"),
        (lambda: any_ours.set_default_logger_severity(9), dml.InvalidArgument, "9; must be from 0"),
        (lambda: any_ours.OrtArenaCfg({"most": 1}), dml.InvalidArgument, "'most' is unknown; it has max_mem"),
        (lambda: any_ours.register_execution_provider_library("a", "b"), dml.Unsupported, "'a': has kernels"),
        (lambda: any_ours.unregister_execution_provider_library("a"), dml.Unsupported, "no library"),
        (lambda: any_ours.create_and_register_allocator(1, None), dml.InvalidArgument, "an OrtMemoryInfo"),
        (lambda: any_ours.RunOptions().add_active_adapter(1), dml.Unsupported, "merge the adapter"),
        (lambda: any_ours.RunOptions().get_run_config_entry("a"), dml.InvalidArgument, "no entry 'a'"),
        (lambda: any_ours.get_ep_devices()[0].create_sync_stream(), dml.Unsupported, "runs return"),
    ]
    for call, kind, message in calls:
        with pytest.raises(kind, match=re.escape(message)):
            call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("register_custom_ops_library('a.so')", "a.so has kernels"),
        ("add_initializer('a', None)", "'a'; give it to the model"),
        ("add_external_initializers([], [])", "a model's own folder"),
        ("add_external_initializers_from_files_in_memory([], [], [])", "a model's own folder"),
        ("set_provider_selection_policy_delegate(print)", "providers= of InferenceSession"),
        ("set_ep_context_data_read_func(print, 1)", "EPContext nodes"),
    ],
)
def test_options_that_cannot_be_obeyed_say_so(call: str, message: str) -> None:
    with pytest.raises(dml.Unsupported, match=f"SessionOptions.{call.partition('(')[0]}: {message}"):
        eval(f"options.{call}", {"options": ours.SessionOptions(), "print": print})


def test_options_are_checked_when_they_are_set() -> None:
    options = ours.SessionOptions()
    for name, value, needed in (
        ("intra_op_num_threads", "2", "int"),
        ("enable_profiling", "yes", "bool"),
        ("logid", 3, "str"),
        ("graph_optimization_level", 17, "GraphOptimizationLevel: ORT_DISABLE_ALL, ORT_ENABLE_BASIC"),
    ):
        with pytest.raises(dml.InvalidArgument, match=rf"SessionOptions.{name}: {value!r}; .* {needed}"):
            setattr(options, name, value)
    options.graph_optimization_level = 1
    assert options.graph_optimization_level is ours.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.set_load_cancellation_flag(True)
    with pytest.raises(dml.Error, match="loading is cancelled"):
        ours.InferenceSession(_BYTES, options)


def test_providers_of_options_choose_the_device() -> None:
    options = ours.SessionOptions()
    assert not options.has_providers()
    options.add_provider_for_devices(ours.get_ep_devices()[-1:], {})
    assert options.has_providers()
    assert ours.InferenceSession(_BYTES, options).get_providers() == ["CPUExecutionProvider"]
    options.set_provider_selection_policy(ours.OrtExecutionProviderDevicePolicy.PREFER_GPU)
    assert ours.InferenceSession(_BYTES, options).get_providers()[0] == "DmlExecutionProvider"
    with pytest.raises(dml.InvalidArgument, match="an OrtEpDevice is needed"):
        options.add_provider_for_devices([3], {})  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (
            lambda any_ours: any_ours.SessionOptions().set_provider_selection_policy(9),
            "SessionOptions.set_provider_selection_policy: 9; must be an .*DevicePolicy: DEFAULT, PREFER_CPU",
        ),
        (
            lambda any_ours: any_ours.OrtMemoryInfo("Cpu", 7, 0, 0),
            "OrtMemoryInfo.allocator_type: 7; must be an OrtAllocatorType: ORT_DEVICE_ALLOCATOR",
        ),
        (
            lambda any_ours: any_ours.OrtMemoryInfo("Cpu", 0, 0, "HOST"),
            "OrtMemoryInfo.mem_type: 'HOST'; must be an OrtMemType: CPU_INPUT",
        ),
        (
            lambda any_ours: any_ours.OrtMemoryInfo.create_v2("Cpu", 9, 0, 0, 0, 0, 0),
            "create_v2: device_type: 9; must be an OrtMemoryInfoDeviceType: CPU, GPU",
        ),
    ],
)
def test_numbers_that_an_enumeration_does_not_have_are_refused(call: Any, problem: str) -> None:
    with pytest.raises(dml.InvalidArgument, match=problem):
        call(ours)


def test_the_provider_of_directml_is_the_best_device() -> None:
    best = "cuda" if ours.get_device() == "GPU" else "cpu"
    session = ours.InferenceSession(_BYTES, providers=[("DmlExecutionProvider", {"device_id": 0})])
    assert session.get_providers() == ["DmlExecutionProvider", "CPUExecutionProvider"]
    assert session.model.device.kind.partition(":")[0] == best
    assert ours.get_available_providers()[-2:] == ["DmlExecutionProvider", "CPUExecutionProvider"]
    assert set(session.get_provider_options()) == set(session.get_providers())


def test_a_wrong_provider_names_the_right_ones(theirs: Any) -> None:
    here = ", ".join(ours.get_available_providers())
    with pytest.raises(
        dml.InvalidArgument, match=f"'CudaProvider' is unknown .did you mean CUDAEx.* has {here}"
    ):
        ours.InferenceSession(_BYTES, providers=["CudaProvider"])
    with pytest.warns(UserWarning, match=f"stands for no device of opendml; .* this machine has {here}"):
        ours.InferenceSession(_BYTES, providers=["QNNExecutionProvider"])
    assert set(theirs.get_all_providers()) <= set(ours.get_all_providers())


def test_a_session_moves_to_other_providers(session: Any) -> None:
    before = session.run(None, _FEED)
    session.set_providers(["DmlExecutionProvider"])
    assert session.get_providers() == ["DmlExecutionProvider", "CPUExecutionProvider"]
    for a, b in zip(before, session.run(None, _FEED), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.skipif(ours.get_device() == "GPU", reason="this machine has a GPU")
def test_memory_of_a_device_that_is_not_there_is_an_error(session: Any) -> None:
    value = ours.OrtValue
    binding = session.io_binding()
    for call in (
        lambda: value.ortvalue_from_numpy(_FEED["x"], "cuda"),
        lambda: value.ortvalue_from_numpy(_FEED["x"], "cuda", 0),
        lambda: value.ortvalue_from_shape_and_type([2], np.float32, "gpu"),
        lambda: session.create_ortvalue_from_shape_and_type([2], np.float32, "cuda"),
        lambda: binding.bind_output("y", "cuda"),
    ):
        with pytest.raises(dml.Unsupported, match="this machine has no such device; it has 'cpu', 'dml'"):
            call()
    with pytest.raises(dml.InvalidArgument, match="device_type 'tpu'; must be one of 'cpu', 'dml'"):
        value.ortvalue_from_numpy(_FEED["x"], "tpu")
    assert value.ortvalue_from_numpy(_FEED["x"], "dml").numpy() is not _FEED["x"]
    assert value.ortvalue_from_numpy(_FEED["x"]).numpy() is _FEED["x"]


@pytest.mark.parametrize(
    ("feed", "message"),
    [
        ({"x": [[1, -2, 3]], "k": [4]}, None),
        ({"x": [[1.0, -2.0, 3.0]], "k": [True]}, None),
        ({"x": [[1.0, -2.0, 3.0]], "k": [4.0]}, None),
        ({"x": [], "k": [4]}, "sizes .0.; must be"),
        ({"x": [["a", "b", "c"]], "k": [4]}, "'x' is .*'a', 'b', 'c'.*, which float32 does not hold"),
        ({"x": "a", "k": [4]}, "'x' is 'a', which float32 does not hold"),
        ({"x": [[1e300, 0, 0]], "k": [4]}, r"'x' is \[\[1e\+300, 0, 0\]\], which float32 does not hold"),
        ({"x": [[1.0], [2.0, 3.0]], "k": [4]}, "'x' is no array"),
        ({"x": [[1, 2, 3]], "k": [1.5]}, r"'k' is \[1.5\], which int64 does not hold"),
        ({"x": np.ones((1, 3)), "k": [4]}, "'x' is of type float64; must be float32"),
    ],
)
def test_lists_are_inputs(feed: dict[str, Any], message: str | None, session: Any, theirs: Any) -> None:
    if message is not None:
        with pytest.raises(dml.InvalidArgument, match=message):
            session.run(None, feed)
        return
    real = theirs.InferenceSession(_BYTES, providers=["CPUExecutionProvider"]).run(None, feed)
    for a, b in zip(session.run(None, feed), real, strict=True):
        np.testing.assert_array_equal(a, b)
        assert a.dtype == b.dtype


@pytest.mark.filterwarnings("ignore::opendml.onnx.EvaluatorWarning")
def test_a_list_of_texts_is_an_input(theirs: Any) -> None:
    text = '<ir_version: 10, opset_import: ["" : 20]> g (string[n] x) => (string[n] y) { y = Identity (x) }'
    content = onnx.parser.parse_model(text).SerializeToString()
    made = [
        module.InferenceSession(content).run(None, {"x": ["a", "bc"]})[0].tolist()
        for module in (ours, theirs)
    ]
    assert made[0] == made[1] == ["a", "bc"]


def test_a_missing_file_is_an_error_of_python_too(tmp_path: Path) -> None:
    for load in (ours.load, ours.InferenceSession, dml.load):
        for kind in (FileNotFoundError, dml.InvalidArgument, ours.capi.onnxruntime_pybind11_state.NoSuchFile):
            with pytest.raises(kind, match=r"none\.onnx: No such file or directory") as found:
                load(tmp_path / "none.onnx")
            assert isinstance(found.value, dml.Error)


def test_a_run_ends_in_another_thread(session: Any) -> None:
    for feed, count, message in ((_FEED, 2, ""), ({"x": _FEED["x"]}, 0, "input 'k' is missing")):
        found: list[Any] = []
        done = threading.Event()

        def finish(*given: Any) -> None:
            found.extend(given)  # noqa: B023
            done.set()  # noqa: B023

        session.run_async(None, feed, finish, "mine")
        assert done.wait(60)
        assert (len(found[0]), found[1]) == (count, "mine")
        assert message in found[2]
        assert bool(found[2]) is bool(message)


def test_run_options_end_runs(session: Any) -> None:
    options = ours.RunOptions()
    options.terminate = True
    with pytest.raises(dml.Error, match=r"run_options\.terminate"):
        session.run(None, _FEED, options)
    with pytest.raises(dml.InvalidArgument, match=r"run_options: \{\}; a RunOptions is needed"):
        session.run(None, _FEED, {})


def test_sessions_answer_as_onnxruntime_does(session: Any, theirs: Any) -> None:
    real = theirs.InferenceSession(_BYTES, providers=["CPUExecutionProvider"])
    for method in (
        "end_profiling",
        "get_profiling_start_time_ns",
        "get_tuning_results",
        "get_provider_options",
    ):
        assert getattr(session, method)() == getattr(real, method)(), method
    assert session.get_modelmeta().version == real.get_modelmeta().version
    for of_own, of_real in zip(session.get_input_memory_infos(), real.get_input_memory_infos(), strict=True):
        for name in ("device_id", "mem_type", "allocator_type", "device_mem_type", "device_vendor_id"):
            assert getattr(of_own, name) == getattr(of_real, name), name
    assert len(session.get_output_memory_infos()) == 2
    assert [each.ep_name for each in session.get_input_epdevices()] == ["CPUExecutionProvider"] * 2
    session.set_tuning_results([], error_on_invalid=True)
    session.set_ep_dynamic_options({"a": "b"})
    session.release_captured_graph()
    session.enable_fallback()
    session.disable_fallback()
    with pytest.raises(dml.Unsupported, match=r"session\.model\.parts"):
        session.get_provider_graph_assignment_info()


@pytest.mark.parametrize("module", ["opendml", "onnxruntime"])
def test_values_are_arrays_of_other_libraries(module: str, request: Any) -> None:
    ort: Any = ours if module == "opendml" else request.getfixturevalue("theirs")
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    value = ort.OrtValue.ortvalue_from_numpy(array)
    assert value.tensor_size_in_bytes() == 24
    assert not value.is_sparse_tensor()
    np.testing.assert_array_equal(np.asarray(value), array)
    assert np.array(value, np.float64).dtype == np.float64
    shared = np.from_dlpack(value)
    array[0, 0] = 7
    assert shared[0, 0] == 7
    assert value.__dlpack_device__() == (1, 0)
    assert ort.OrtValue.from_dlpack(array).data_type() == "tensor(float)"
    other = ort.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32)
    other.update_inplace(value)
    np.testing.assert_array_equal(other.numpy(), array)
    rounded = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(
        np.zeros(2, np.uint16), onnx.TensorProto.BFLOAT16
    )
    assert rounded.data_type() == "tensor(bfloat16)"


def test_values_are_copied_into_others() -> None:
    a, b = (ours.OrtValue.ortvalue_from_numpy(np.full(3, value)) for value in (1.0, 2.0))
    ours.copy_tensors([a], [b])
    np.testing.assert_array_equal(b.numpy(), np.ones(3))
    with pytest.raises(dml.InvalidArgument, match="1 values into 2; must be as many"):
        ours.copy_tensors([a], [a, b])


@pytest.mark.filterwarnings("ignore::opendml.onnx.EvaluatorWarning")
def test_seeds_make_random_nodes_repeat() -> None:
    text = """
        <ir_version: 10, opset_import: ["" : 20]>
        g () => (float[8] y, float[8] z) { y = RandomNormal <shape = [8]> ()
        z = RandomUniform <shape = [8], seed = 3.0> () }
    """
    session: Any = ours.InferenceSession(onnx.parser.parse_model(text))
    drawn = []
    for seed in (5, 5, 6):
        ours.set_seed(seed)
        drawn.append([[each.tolist() for each in session.run(None, {})] for _ in range(2)])
    assert drawn[0] == drawn[1] != drawn[2]
    (first, own), (second, same) = drawn[0]
    assert first != second
    assert own == same


_LIBRARY = """
import sys
from opendml import onnx
sys.modules["onnxruntime"] = onnx
from magika import Magika
print(Magika().identify_bytes(b"import os\\n\\ndef main():\\n    print(os.name)\\n" * 9).output.label)
"""


def test_libraries_take_the_module_in_place_of_onnxruntime() -> None:
    pytest.importorskip("magika")
    found = subprocess.run([sys.executable, "-c", _LIBRARY], capture_output=True, text=True, check=False)
    assert found.stdout == "python\n", found.stderr
