"""Options of ONNX Runtime's sessions and runs.

Options that could change results are obeyed or refused. The others are stored and have no effect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from enum import IntEnum
from operator import index
from typing import Any, ClassVar, NoReturn

from opendml.errors import Error, InvalidArgument, Unsupported
from opendml.frontends.onnx.sizes import Sizes
from opendml.frontends.onnxruntime.devices import OrtEpDevice, member_of
from opendml.frontends.onnxruntime.providers import BEST, CPU, Provider, require_provider
from opendml.spec.wording import shown


class GraphOptimizationLevel(IntEnum):
    """The extent of ONNX Runtime's graph rewrites. opendml compiles whole graphs at every level."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(IntEnum):
    """The order in which ONNX Runtime runs nodes. It has no effect."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(IntEnum):
    """The order in which ONNX Runtime sorts nodes. It has no effect."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


class OrtExecutionProviderDevicePolicy(IntEnum):
    """The device that a session prefers. Those with PREFER_GPU and MAX_PERFORMANCE take the best one here."""

    DEFAULT = 0
    PREFER_CPU = 1
    PREFER_NPU = 2
    PREFER_GPU = 3
    MAX_PERFORMANCE = 4
    MAX_EFFICIENCY = 5
    MIN_OVERALL_POWER = 6


class DefaultThreads:
    """The number of threads of sessions that share them, 0 for all."""

    count = 0


default_threads = DefaultThreads()


class _Options:
    """A set of fields with defaults that refuses unknown names and values of other types."""

    _defaults: ClassVar[dict[str, Any]]

    def __init__(self) -> None:
        for name, value in self._defaults.items():
            object.__setattr__(self, name, value)
        self._entries: dict[str, str] = {}

    def __repr__(self) -> str:
        """Return the fields that differ from their defaults."""
        fields = ((name, getattr(self, name), default) for name, default in self._defaults.items())
        changed = (f"{name}={value!r}" for name, value, default in fields if value != default)
        return f"{type(self).__name__}({', '.join(changed)})"

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_") and name not in self._defaults:
            names = ", ".join(self._defaults)
            raise AttributeError(f"{type(self).__name__} has no field {name!r}; it has {names}")
        if not name.startswith("_"):
            value = self._checked(name, value)
        object.__setattr__(self, name, value)

    def _checked(self, name: str, value: Any) -> Any:
        """Return a value in the type of the field's default. None stands for fields that users of it check.

        Raises:
            InvalidArgument: it is of another type, or no member of the field's enumeration.
        """
        default, label = self._defaults[name], f"{type(self).__name__}.{name}"
        if isinstance(default, IntEnum):
            return member_of(type(default), value, label)
        if default is None or (isinstance(default, str) and isinstance(value, str)):
            return value
        if isinstance(default, int):
            with suppress(TypeError):
                return type(default)(index(value))
        raise InvalidArgument(f"{label}: {shown(value)}; must be of type {type(default).__name__}")

    def _entry(self, key: str) -> str:
        if key not in self._entries:
            known = ", ".join(map(repr, self._entries)) or "none"
            raise InvalidArgument(f"{type(self).__name__}: no entry {shown(key)}; it has {known}")
        return self._entries[key]


class SessionOptions(_Options):
    """Options of a session, as in ONNX Runtime.

    `intra_op_num_threads` is the number of CPU threads (0: all). `most_kept_bytes` is that of
    `opendml.onnx.load`; ONNX Runtime does not have it. `add_free_dimension_override_by_name` and
    `..._by_denotation` fix symbolic sizes. `add_provider` and the like choose the device of a session that
    is made without `providers`. The other fields change no results. Options that would write files raise
    Unsupported when the session is made.
    """

    enable_profiling: bool
    optimized_model_filepath: str
    intra_op_num_threads: int
    use_per_session_threads: bool
    most_kept_bytes: int | None
    _defaults: ClassVar[dict[str, Any]] = {
        "enable_cpu_mem_arena": True,
        "enable_mem_pattern": True,
        "enable_mem_reuse": True,
        "enable_profiling": False,
        "execution_mode": ExecutionMode.ORT_SEQUENTIAL,
        "execution_order": ExecutionOrder.DEFAULT,
        "graph_optimization_level": GraphOptimizationLevel.ORT_ENABLE_ALL,
        "inter_op_num_threads": 0,
        "intra_op_num_threads": 0,
        "log_severity_level": -1,
        "log_verbosity_level": 0,
        "logid": "",
        "most_kept_bytes": None,
        "optimized_model_filepath": "",
        "profile_file_prefix": "onnxruntime_profile_",
        "use_deterministic_compute": False,
        "use_per_session_threads": True,
    }

    def __init__(self) -> None:
        super().__init__()
        self._names: dict[str, int] = {}
        self._denotations: dict[str, int] = {}
        self._providers: list[Provider] = []
        self._is_cancelled = False

    def add_provider(self, name: str, options: Mapping[str, str]) -> None:
        """Append a provider for sessions that are made without `providers`.

        Raises:
            InvalidArgument: ONNX Runtime has no such provider.
        """
        require_provider(name)
        self._providers.append((name, dict(options)))

    def add_provider_for_devices(self, devices: Sequence[OrtEpDevice], options: Mapping[str, str]) -> None:
        """Append the provider of devices from `get_ep_devices`."""
        for each in devices:
            if not isinstance(each, OrtEpDevice):
                raise InvalidArgument(f"add_provider_for_devices: {shown(each)}; an OrtEpDevice is needed")
            self.add_provider(each.ep_name, {"device_id": str(each.device.device_id), **options})

    def has_providers(self) -> bool:
        """Return whether there are providers for sessions that are made without `providers`."""
        return bool(self._providers)

    def set_provider_selection_policy(self, policy: OrtExecutionProviderDevicePolicy) -> None:
        """Choose the device of sessions that are made without `providers`.

        Raises:
            InvalidArgument: no policy.
        """
        policies = OrtExecutionProviderDevicePolicy
        chosen = member_of(policies, policy, "SessionOptions.set_provider_selection_policy")
        is_fast = chosen in (policies.PREFER_GPU, policies.MAX_PERFORMANCE)
        self._providers = [BEST if is_fast else CPU]

    def set_provider_selection_policy_delegate(self, delegate: Any) -> NoReturn:
        """Raise Unsupported: `providers` of a session name its device."""
        raise _refused(
            "set_provider_selection_policy_delegate", "providers= of InferenceSession name a device"
        )

    def set_load_cancellation_flag(self, value: bool) -> None:
        """State whether sessions with these options are refused, as if their loading were cancelled."""
        self._is_cancelled = bool(value)

    def set_ep_context_data_read_func(self, read_func: Any, max_data_size: int) -> NoReturn:
        """Raise Unsupported: compiled parts of other providers are no operators of ONNX."""
        raise _refused("set_ep_context_data_read_func", "EPContext nodes hold code of other providers")

    def clear_ep_context_data_read_func(self) -> None:
        """Do nothing: there is no such function."""

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Store an entry. It has no effect."""
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        """Return the entry that `add_session_config_entry` stored."""
        return self._entry(key)

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Fix the symbolic size of this name."""
        self._names[name] = _size(name, size)

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        """Fix the size of all dimensions with this denotation, such as "DATA_BATCH"."""
        self._denotations[denotation] = _size(denotation, size)

    def register_custom_ops_library(self, path: str) -> NoReturn:
        """Raise Unsupported: such libraries contain kernels for ONNX Runtime."""
        raise _refused("register_custom_ops_library", f"{path} has kernels for ONNX Runtime's own memory")

    def add_initializer(self, name: str, ortvalue: Any) -> NoReturn:
        """Raise Unsupported: initializers belong to the model."""
        raise _refused("add_initializer", f"{name!r}; give it to the model, or as an input")

    def add_external_initializers(self, names: Sequence[str], values: Sequence[Any]) -> NoReturn:
        """Raise Unsupported: initializers belong to the model."""
        raise _refused("add_external_initializers", "a model's own folder has its external tensors")

    def add_external_initializers_from_files_in_memory(
        self, names: Sequence[str], buffers: Sequence[Any], lengths: Sequence[int]
    ) -> NoReturn:
        """Raise Unsupported: initializers belong to the model."""
        reason = "a model's own folder has its external tensors"
        raise _refused("add_external_initializers_from_files_in_memory", reason)

    @property
    def threads(self) -> int | None:
        """The threads that share a kernel; None: all."""
        count = self.intra_op_num_threads
        if not count and not self.use_per_session_threads:
            count = default_threads.count
        return count if count > 0 else None

    @property
    def sizes(self) -> Sizes:
        """The fixed sizes of free dimensions."""
        return Sizes(dict(self._names), dict(self._denotations))

    def require_supported(self) -> None:
        """Raise Unsupported if an option asks for something that a session cannot do."""
        if self.enable_profiling:
            raise _refused("enable_profiling", "session.model.explain() measures each kernel")
        if self.optimized_model_filepath:
            raise _refused("optimized_model_filepath", "`opendml compile` writes models with their code")
        if self._is_cancelled:
            raise Error("SessionOptions.set_load_cancellation_flag: loading is cancelled")


def _refused(name: str, reason: str) -> Unsupported:
    return Unsupported(f"SessionOptions.{name}: {reason}")


def _size(name: str, size: Any) -> int:
    if not isinstance(size, int) or size < 0:
        raise InvalidArgument(
            f"SessionOptions: size of {shown(name)}: {shown(size)}; a whole number from 0 on is needed"
        )
    return size


class RunOptions(_Options):
    """Options of a run, as in ONNX Runtime. `terminate` ends it before it begins; others have no effect."""

    terminate: bool
    _defaults: ClassVar[dict[str, Any]] = {
        "log_severity_level": -1,
        "log_verbosity_level": 0,
        "logid": "",
        "only_execute_path_to_fetches": False,
        "terminate": False,
    }

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Store an entry. It has no effect."""
        self._entries[key] = value

    def get_run_config_entry(self, key: str) -> str:
        """Return the entry that `add_run_config_entry` stored."""
        return self._entry(key)

    def add_active_adapter(self, adapter: Any) -> NoReturn:
        """Raise Unsupported: adapters are merged into the weights of a model."""
        raise Unsupported("RunOptions.add_active_adapter: merge the adapter into the weights of the model")
