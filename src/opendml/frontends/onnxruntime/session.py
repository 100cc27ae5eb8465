"""Sessions with ONNX Runtime's API: `from opendml import onnx as ort`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from threading import Thread
from typing import TYPE_CHECKING, Any, NoReturn

from opendml.across_forks import importing
from opendml.budget import Limits
from opendml.errors import Error, InvalidArgument, Unsupported
from opendml.frontends.onnx.device_choice import DeviceChoice
from opendml.frontends.onnx.device_tensor import DeviceTensor
from opendml.frontends.onnx.model import load_model, require_by_name
from opendml.frontends.onnx.tensor_info import TensorInfo
from opendml.frontends.onnxruntime.devices import (
    OrtAllocatorType,
    OrtEpDevice,
    OrtMemoryInfo,
    OrtMemType,
    get_ep_devices,
)
from opendml.frontends.onnxruntime.options import RunOptions, SessionOptions
from opendml.frontends.onnxruntime.providers import DEVICES, Provider, choose_provider
from opendml.frontends.onnxruntime.values import IOBinding, OrtValue, element_type_of, type_text
from opendml.late_dataclass import dataclass
from opendml.spec.wording import shown
from opendml.targets.backend import require_threads

if TYPE_CHECKING:
    import onnx

    from opendml.frontends.onnx.model_file import ModelLike

_IGNORED_ARGUMENTS = ("disabled_optimizers", "enable_fallback", "read_config_from_model")

_NO_VERSION = 2**63 - 1
"""The version of a model that states none, as ONNX Runtime gives it."""


@dataclass(frozen=True)
class NodeArg:
    """An input or output of a model.

    Args:
        name: its name.
        type: its type as ONNX Runtime writes it, such as "tensor(float)".
        shape: its sizes; symbolic sizes are names.
    """

    name: str
    type: str
    shape: list[int | str | None]


@dataclass(frozen=True)
class ModelMetadata:
    """Metadata of a model file."""

    producer_name: str
    graph_name: str
    domain: str
    description: str
    graph_description: str
    version: int
    custom_metadata_map: dict[str, str]


class InferenceSession:
    """A loaded model with the interface of ONNX Runtime's InferenceSession.

    Args:
        path_or_bytes: a path, the bytes of a file, or an onnx.ModelProto.
        sess_options: options; those that cannot change results have no effect.
        providers: ONNX Runtime's names, or pairs of a name and its options. The first one whose device is
            available is used (CUDAExecutionProvider: "cuda", CPUExecutionProvider: "cpu",
            DmlExecutionProvider: "cuda" if there is one, else "cpu"), or else the CPU. None: those of
            `sess_options`.
        provider_options: a mapping for each provider, of which only `device_id` has an effect.
        limits: the limits of the session, as for `load`; ONNX Runtime has no such argument.

    Raises:
        InvalidArgument: the input is no ONNX model.
        Unsupported: an option has no equivalent, or the operator set is too new.
        LimitExceeded: the model is larger than its limits allow.
    """

    def __init__(
        self,
        path_or_bytes: ModelLike,
        sess_options: SessionOptions | None = None,
        providers: Sequence[Provider] | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
        *,
        limits: Limits | None = None,
        **unused: Any,
    ) -> None:
        unknown = [name for name in unused if name not in _IGNORED_ARGUMENTS]
        if unknown:
            raise InvalidArgument(f"InferenceSession: {', '.join(unknown)}: unknown")
        if not isinstance(sess_options, SessionOptions | None):
            raise InvalidArgument(
                f"InferenceSession: sess_options: {shown(sess_options)}; a SessionOptions is needed"
            )
        self._options = options = sess_options or SessionOptions()
        options.require_supported()
        if providers is None and provider_options is None:
            providers = options._providers
        self._source, self._limits = path_or_bytes, limits
        self._load(providers, provider_options)

    def _load(
        self, providers: Sequence[Provider] | None, provider_options: Sequence[Mapping[str, Any]] | None
    ) -> None:
        options = self._options
        kind, self._providers = choose_provider(providers, provider_options)
        device = DeviceChoice(kind, options.threads)
        require_threads(device.threads)
        sizes, most = options.sizes, options.most_kept_bytes
        self.model = load_model(self._source, device, sizes, self._limits, most)

    def __repr__(self) -> str:
        return f"<InferenceSession of {self.model!r}>"

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None = None,
    ) -> list[Any]:
        """Return the named outputs (None: all of them) for inputs by name.

        Raises:
            InvalidArgument: an input is missing, unknown, or of another type or size than declared; or an
                output is unknown.
            Unsupported: neither DirectML nor the evaluator of `onnx` can run a node.
        """
        require_by_name(input_feed)
        _require_options(run_options)
        if isinstance(output_names, str) or not isinstance(output_names, Collection | None):
            raise InvalidArgument(f"output_names: {shown(output_names)}; a list of names is needed")
        known = self.model.output_names
        names = known if output_names is None or len(output_names) == 0 else output_names
        unknown = [name for name in names if name not in known]
        if unknown:
            available = ", ".join(map(repr, known))
            raise InvalidArgument(f"output {unknown[0]!r} is unknown; the model has {available}")
        feed = {
            name: each.content if isinstance(each, OrtValue) else each for name, each in input_feed.items()
        }
        results = self._run(names, feed, {}, set())
        return [results[name] for name in names]

    def _run(
        self,
        names: Sequence[str],
        feed: Mapping[str, Any],
        bound: Mapping[str, DeviceTensor],
        on_device: Collection[str],
    ) -> dict[str, Any]:
        """Return outputs by name, for arrays or tensors on a device.

        Args:
            names: the names of the outputs.
            feed: the inputs by name.
            bound: the memory of outputs on a device.
            on_device: the names of outputs that are wanted there.
        """
        tensors = {name: each for name, each in feed.items() if isinstance(each, DeviceTensor)}
        # A known model on the host needs no object of a device.
        place = self.model.device._backend.place if tensors or bound or on_device else None
        if place is None:
            return self.model.run(_on_host(feed))
        for name, each in {**tensors, **bound}.items():
            if each.place != place:
                raise InvalidArgument(f"{name!r} lies on {each.place}; the session runs on {place}")
        return self.model._run_on_device(feed, names, bound, on_device)

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: RunOptions | None = None,
    ) -> list[OrtValue]:
        """Return the named outputs as OrtValues, for OrtValues by name."""
        return [OrtValue(each) for each in self.run(output_names, input_dict_ort_values, run_options)]

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callable[[list[Any], Any, str], Any],
        user_data: Any,
        run_options: RunOptions | None = None,
    ) -> None:
        """Run in another thread, which calls a function at the end.

        Args:
            output_names, input_feed, run_options: as of `run`.
            callback: takes the outputs (none after an error), `user_data`, and the message of an error or "".
            user_data: passed on.

        Raises:
            InvalidArgument: the callback is no function.
        """
        if not callable(callback):
            raise InvalidArgument(f"run_async: callback: {shown(callback)}; a function is needed")

        def work() -> None:
            try:
                results, message = self.run(output_names, input_feed, run_options), ""
            except Exception as error:  # Nobody waits for the thread, so the callback tells of all errors.
                results, message = [], str(error) or type(error).__name__
            callback(results, user_data, message)

        Thread(target=work, name="opendml-run-async", daemon=True).start()

    def run_with_ortvaluevector(
        self,
        run_options: Any,
        feed_names: Any,
        feeds: Any,
        fetch_names: Any,
        fetches: Any,
        fetch_devices: Any,
    ) -> NoReturn:
        """Raise Unsupported: vectors of values are ONNX Runtime's own objects."""
        raise Unsupported("run_with_ortvaluevector: run_with_ort_values takes values by name")

    def io_binding(self) -> IOBinding:
        """Return a new binding for `run_with_iobinding`."""
        return IOBinding(self)

    def create_ortvalue_from_shape_and_type(
        self,
        shape: Sequence[int],
        element_type: Any,
        device_type: str,
        device_id: int = 0,
        vendor_id: int = -1,
    ) -> OrtValue:
        """Return a tensor of zeros, as `OrtValue.ortvalue_from_shape_and_type`."""
        return OrtValue.ortvalue_from_shape_and_type(shape, element_type, device_type, device_id, vendor_id)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        """Run with the bound inputs, and write the bound outputs.

        An output may begin with an input, as a cache of keys and values does: both are bound to views of one
        buffer that is longer along one axis. Then only its new part is written, where the model allows it.

        On a CUDA device, tensors that lie there are used in place. Outputs are bound to memory there by
        `bind_output(name, "cuda")` or an OrtValue. Nothing but the other inputs and outputs is copied between
        host and device.

        Raises:
            InvalidArgument: as of `run`; or an output shares memory with an input in another way.
        """
        if not isinstance(iobinding, IOBinding):
            raise InvalidArgument(
                f"run_with_iobinding: {shown(iobinding)}; what io_binding() makes is needed"
            )
        _require_options(run_options)
        names = iobinding.names()
        if not names:
            raise InvalidArgument("run_with_iobinding: no output is bound")
        feed = iobinding.feed()
        memory = iobinding.memory()
        with importing:
            from opendml.runtime.graphs.caches import bound_caches
        caches = bound_caches(feed, memory)
        if caches is None:
            bound = {name: each for name, each in memory.items() if isinstance(each, DeviceTensor)}
            results = self._run(names, feed, bound, iobinding.on_device())
        else:
            results = self.model._run_with(_on_host(feed), caches)
        iobinding.take(results)

    def get_inputs(self) -> list[NodeArg]:
        """Return the inputs that every run needs."""
        return self._args(self.model.inputs)

    def get_outputs(self) -> list[NodeArg]:
        """Return the declarations of the outputs."""
        return self._args(self.model.outputs)

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Return the inputs that have a default, so that a run may omit them."""
        names = self.model.input_names
        return self._args([each for each in self.model._declared.values() if each.name not in names])

    def get_modelmeta(self) -> ModelMetadata:
        """Return the metadata of the model file."""
        model = self.model._proto
        return ModelMetadata(
            model.producer_name,
            model.graph.name,
            model.domain,
            model.doc_string,
            model.graph.doc_string,
            model.model_version if model.HasField("model_version") else _NO_VERSION,
            {each.key: each.value for each in model.metadata_props},
        )

    def get_providers(self) -> list[str]:
        """Return the provider of the session's device, and the CPU's."""
        return list(self._providers)

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """Return the options that have an effect, for each provider."""
        index = {} if self.model.device.index is None else {"device_id": str(self.model.device.index)}
        return {name: index if DEVICES[name] == "cuda" else {} for name in self._providers}

    def set_providers(
        self,
        providers: Sequence[Provider] | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        """Load the model again, on the device of other providers. The arguments are those of the class."""
        self._load(providers, provider_options)

    def enable_fallback(self) -> None:
        """Do nothing: a session stays on its device."""

    def disable_fallback(self) -> None:
        """Do nothing: a session stays on its device."""

    def end_profiling(self) -> str:
        """Return "", as ONNX Runtime does without a profile. `session.model.explain()` measures kernels."""
        return ""

    def get_profiling_start_time_ns(self) -> int:
        """Return 0: nothing is profiled."""
        return 0

    def get_input_memory_infos(self) -> list[OrtMemoryInfo]:
        """Return the memory that each input is read from, which is the host's."""
        return [_host_memory() for _ in self.get_inputs()]

    def get_output_memory_infos(self) -> list[OrtMemoryInfo]:
        """Return the memory that each output is written to, which is the host's."""
        return [_host_memory() for _ in self.get_outputs()]

    def get_input_epdevices(self) -> list[OrtEpDevice]:
        """Return the device of the session for each input."""
        kind = self.model.device.kind.partition(":")[0]
        (own,) = (each for each in get_ep_devices() if DEVICES[each.ep_name] == kind)
        return [own for _ in self.get_inputs()]

    def get_provider_graph_assignment_info(self) -> NoReturn:
        """Raise Unsupported: a model has one device."""
        raise Unsupported(
            "get_provider_graph_assignment_info: session.model.parts(inputs) tells what runs where"
        )

    def get_tuning_results(self) -> list[Any]:
        """Return an empty list: kernels are chosen by a cost model."""
        return []

    def set_tuning_results(self, results: Sequence[Any], *, error_on_invalid: bool = False) -> None:
        """Do nothing: kernels are chosen by a cost model."""

    def set_ep_dynamic_options(self, options: Mapping[str, str]) -> None:
        """Accept options without an effect."""

    def release_captured_graph(self, graph_annotation_id: int = 0) -> None:
        """Do nothing: graphs of launches belong to a model."""

    def get_session_options(self) -> SessionOptions:
        """Return the options of the session."""
        return self._options

    def _args(self, declared: Sequence[TensorInfo]) -> list[NodeArg]:
        """Return declarations. The model is parsed only for types that NumPy does not have."""
        return [NodeArg(each.name, self._type_of(each), list(each.sizes or ())) for each in declared]

    def _type_of(self, declared: TensorInfo) -> str:
        if declared.type is not None:
            return f"tensor({type_text(declared.type)})"
        graph = self.model._proto.graph
        every = {each.name: each.type for each in (*graph.input, *graph.output)}
        return _type_text(every[declared.name])


def _host_memory() -> OrtMemoryInfo:
    return OrtMemoryInfo("Cpu", OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, OrtMemType.DEFAULT)


def _require_options(options: Any) -> None:
    """Check the options of a run.

    Raises:
        InvalidArgument: they are no RunOptions.
        Error: the run is terminated.
    """
    if not isinstance(options, RunOptions | None):
        raise InvalidArgument(f"run_options: {shown(options)}; a RunOptions is needed")
    if options is not None and options.terminate:
        raise Error("run_options.terminate: the run ends before it begins")


def _on_host(feed: Mapping[str, Any]) -> dict[str, Any]:
    """Return inputs, those on a device as copies in host memory."""
    return {name: each.numpy() if isinstance(each, DeviceTensor) else each for name, each in feed.items()}


def _type_text(type: onnx.TypeProto) -> str:
    """Return a type as ONNX Runtime writes it."""
    match type.WhichOneof("value"):
        case "tensor_type":
            return f"tensor({_element_text(type.tensor_type.elem_type)})"
        case "sequence_type":
            return f"seq({_type_text(type.sequence_type.elem_type)})"
        case "map_type":
            key = _element_text(type.map_type.key_type)
            return f"map({key},{_type_text(type.map_type.value_type)})"
        case "optional_type":
            return f"optional({_type_text(type.optional_type.elem_type)})"
        case other:
            raise Unsupported(f"a value of {shown(other)}")


def _element_text(type: int) -> str:
    with importing:
        import onnx
    if type == onnx.TensorProto.STRING:
        return "string"
    return type_text(element_type_of(type))
