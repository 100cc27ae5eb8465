"""Sessions as ONNX Runtime has them: `from opendml import onnx as ort`, and the program goes on."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from opendml.budget import Limits, metered
from opendml.errors import Error, InvalidArgument, Unsupported
from opendml.frontends.onnx.model import OnnxModel, require_by_name, tensor_info
from opendml.frontends.onnx.model_file import ModelLike, read_model
from opendml.frontends.onnx.session_options import RunOptions, SessionOptions
from opendml.frontends.onnx.session_values import IOBinding, OrtValue, type_text
from opendml.runtime.objects.device import Device
from opendml.spec.wording import shown
from opendml.targets.registry import backend_of

_DEVICES = {
    "CUDAExecutionProvider": "cuda",
    "TensorrtExecutionProvider": "cuda",
    "CPUExecutionProvider": "cpu",
}
"""The device that stands for a provider of ONNX Runtime."""


_WITHOUT_EFFECT = ("disabled_optimizers", "enable_fallback")


@dataclass(frozen=True)
class NodeArg:
    """An input or an output: its name, its type ("tensor(float)"), its sizes (names for symbolic ones)."""

    name: str
    type: str
    shape: list[int | str | None]


@dataclass(frozen=True)
class ModelMetadata:
    """What a model says about itself."""

    producer_name: str
    graph_name: str
    domain: str
    description: str
    graph_description: str
    version: int
    custom_metadata_map: dict[str, str]


class InferenceSession:
    """A model that runs, with the interface of ONNX Runtime's class of this name.

    Args:
        path_or_bytes: a path, the bytes of a file, or an onnx.ModelProto.
        sess_options: options; those that could not change results have no effect.
        providers: ONNX Runtime's names, or pairs of a name and its options; the first one that stands for
            a device that is here decides (CUDAExecutionProvider: "cuda", CPUExecutionProvider: "cpu"). None,
            or none of them: the CPU.
        provider_options: mappings for the providers, in their order; `device_id` alone counts.
        limits: what the session may take, as for `load`; ONNX Runtime has no such argument.

    Raises:
        InvalidArgument: no ONNX model.
        Unsupported: an option that cannot be obeyed, or an operator set that is too new.
        LimitExceeded: the model is larger than its limits allow.
    """

    def __init__(
        self,
        path_or_bytes: ModelLike,
        sess_options: SessionOptions | None = None,
        providers: Sequence[str | tuple[str, Mapping[str, Any]]] | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
        *,
        limits: Limits | None = None,
        **unused: Any,
    ) -> None:
        unused = {name: each for name, each in unused.items() if name not in _WITHOUT_EFFECT}
        if unused:
            raise InvalidArgument(f"InferenceSession: {', '.join(unused)}: unknown")
        if not isinstance(sess_options, SessionOptions | None):
            raise InvalidArgument(
                f"InferenceSession: sess_options: {shown(sess_options)}; a SessionOptions is needed"
            )
        self._options = sess_options or SessionOptions()
        self._options.require_supported()
        kind, self._providers = _chosen(providers, provider_options)
        threads = self._options.intra_op_num_threads or None
        with metered(limits) as limit, limit.timed("compile_seconds", "loading the model"):
            model, name, weights = read_model(path_or_bytes)
            self._proto = self._options.sizes.of(model)
            device, most = Device(kind, threads=threads), self._options.most_kept_bytes
            self.model = OnnxModel(self._proto, name, device, weights, most)

    def __repr__(self) -> str:
        return f"<InferenceSession of {self.model!r}>"

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None = None,
    ) -> list[Any]:
        """The outputs of these names (None: all), for inputs by name.

        Raises:
            InvalidArgument: an input that is missing or unknown or of another type or size than declared, an
                output that is unknown.
            Unsupported: a node that neither DirectML nor the evaluator of `onnx` can run.
        """
        require_by_name(input_feed)
        if isinstance(output_names, str):
            raise InvalidArgument(f"output_names: {output_names!r}; a list of names is needed")
        known = self.model.output_names
        wanted = known if output_names is None or len(output_names) == 0 else output_names
        unknown = [name for name in wanted if name not in known]
        if unknown:
            names = ", ".join(map(repr, known))
            raise InvalidArgument(f"output {unknown[0]!r} is unknown; the model has {names}")
        given = {
            name: each.numpy() if isinstance(each, OrtValue) else each for name, each in input_feed.items()
        }
        results = self.model.run(given)
        return [results[name] for name in wanted]

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: RunOptions | None = None,
    ) -> list[OrtValue]:
        """The same with values."""
        return [OrtValue(each) for each in self.run(output_names, input_dict_ort_values, run_options)]

    def io_binding(self) -> IOBinding:
        """A new binding for `run_with_iobinding`."""
        return IOBinding([each.name for each in self.get_inputs()], self.model.output_names)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        """Runs with what is bound; the results are the binding's outputs."""
        if not isinstance(iobinding, IOBinding):
            raise InvalidArgument(
                f"run_with_iobinding: {shown(iobinding)}; what io_binding() makes is needed"
            )
        names = iobinding.names()
        if not names:
            raise InvalidArgument("run_with_iobinding: no output is bound")
        results = self.run(names, iobinding.feed(), run_options)
        iobinding.take(dict(zip(names, results, strict=True)))

    def get_inputs(self) -> list[NodeArg]:
        """The inputs that every run needs."""
        initializers = {each.name for each in self._proto.graph.initializer}
        return [_argument(each) for each in self._proto.graph.input if each.name not in initializers]

    def get_outputs(self) -> list[NodeArg]:
        """The outputs."""
        return [_argument(each) for each in self._proto.graph.output]

    def get_overridable_initializers(self) -> list[NodeArg]:
        """The inputs that may be left out."""
        initializers = {each.name for each in self._proto.graph.initializer}
        return [_argument(each) for each in self._proto.graph.input if each.name in initializers]

    def get_modelmeta(self) -> ModelMetadata:
        """What the model says about itself."""
        model = self._proto
        return ModelMetadata(
            model.producer_name,
            model.graph.name,
            model.domain,
            model.doc_string,
            model.graph.doc_string,
            model.model_version,
            {each.key: each.value for each in model.metadata_props},
        )

    def get_providers(self) -> list[str]:
        """The providers that stand for the session's device, and the CPU's."""
        return list(self._providers)

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """For each provider the options that count."""
        index = {} if self.model.device.index is None else {"device_id": str(self.model.device.index)}
        return {name: index if _DEVICES[name] == "cuda" else {} for name in self._providers}

    def get_session_options(self) -> SessionOptions:
        """The options that the session was made with."""
        return self._options


def get_available_providers() -> list[str]:
    """The providers whose devices are here."""
    return [name for name, kind in _DEVICES.items() if name != "TensorrtExecutionProvider" and _is_here(kind)]


def get_device() -> str:
    """ "GPU" if a CUDA device is here, else "CPU"."""
    return "GPU" if _is_here("cuda") else "CPU"


def set_default_logger_severity(severity: int) -> None:
    """Of no effect: warnings are Python's."""


def _is_here(kind: str) -> bool:
    try:
        backend_of(kind).open()
    except Error:
        return False
    return True


def _chosen(
    providers: Sequence[str | tuple[str, Mapping[str, Any]]] | None,
    options: Sequence[Mapping[str, Any]] | None,
) -> tuple[str, tuple[str, ...]]:
    """The device's kind for what a program asks for, and what `get_providers` says then."""
    given = [_provider(each) for each in ([providers] if isinstance(providers, str) else providers or ())]
    if options is not None:
        if len(options) != len(given):
            raise InvalidArgument(f"provider_options: {len(options)} for {len(given)} providers")
        given = [_provider((name, each)) for (name, _), each in zip(given, options, strict=True)]
    for name, each in given:
        kind = _DEVICES.get(name)
        if kind == "cuda" and "device_id" in each:
            kind = f"cuda:{_device_id(each['device_id'])}"
        if kind is not None and _is_here(kind):
            both = (name,) if name == "CPUExecutionProvider" else (name, "CPUExecutionProvider")
            return kind, both
        reason = "stands for no device of opendml" if kind is None else f"needs the device {kind!r}"
        warnings.warn(f"provider {name!r} {reason}; the next one is taken", UserWarning, stacklevel=3)
    return "cpu", ("CPUExecutionProvider",)


def _provider(given: Any) -> tuple[str, Mapping[str, Any]]:
    """A provider's name and its options."""
    match given:
        case str():
            return given, {}
        case (str(name), Mapping() as options):
            return name, options
        case _:
            raise InvalidArgument(
                f"providers: {shown(given)}; a name, or a pair of a name and a dict of options"
            )


def _device_id(given: Any) -> int:
    """The number of a device, which ONNX Runtime takes as text too."""
    if not str(given).isdecimal():
        raise InvalidArgument(f"provider_options: device_id {shown(given)}; the number of a device is needed")
    return int(given)


def _argument(value: onnx.ValueInfoProto) -> NodeArg:
    info = tensor_info(value)
    return NodeArg(value.name, _type_text(value.type), [] if info.sizes is None else list(info.sizes))


def _type_text(type: onnx.TypeProto) -> str:
    """A type as ONNX Runtime writes it."""
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
    if type == onnx.TensorProto.STRING:
        return "string"
    return type_text(np.dtype(onnx.helper.tensor_dtype_to_np_dtype(type)))
