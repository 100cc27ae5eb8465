"""Options of ONNX Runtime's sessions and runs.

Options that could change results are obeyed or refused. The others are stored and have no effect.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, ClassVar

from opendml.errors import InvalidArgument, Unsupported
from opendml.frontends.onnx.sizes import Sizes
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


class _Options:
    """A set of fields with defaults that refuses unknown names."""

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
        object.__setattr__(self, name, value)


class SessionOptions(_Options):
    """Options of a session, as in ONNX Runtime.

    `intra_op_num_threads` is the number of CPU threads (0: all). `most_kept_bytes` is that of
    `opendml.onnx.load`; ONNX Runtime does not have it. `add_free_dimension_override_by_name` and
    `..._by_denotation` fix symbolic sizes. The other fields change no results. Options that would write
    files or add operators raise Unsupported when the session is made.
    """

    enable_profiling: bool
    optimized_model_filepath: str
    intra_op_num_threads: int
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

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Store an entry. It has no effect."""
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        """Return the entry that `add_session_config_entry` stored."""
        return self._entries[key]

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Fix the symbolic size of this name."""
        self._names[name] = _size(name, size)

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        """Fix the size of all dimensions with this denotation, such as "DATA_BATCH"."""
        self._denotations[denotation] = _size(denotation, size)

    def register_custom_ops_library(self, path: str) -> None:
        """Raise Unsupported: such libraries contain kernels for ONNX Runtime."""
        raise Unsupported(f"SessionOptions.register_custom_ops_library: {path}: made for ONNX Runtime alone")

    def add_initializer(self, name: str, ortvalue: Any) -> None:
        """Raise Unsupported: initializers belong to the model."""
        raise Unsupported(f"SessionOptions.add_initializer: {name!r}; give it to the model, or as an input")

    @property
    def sizes(self) -> Sizes:
        """The fixed sizes of free dimensions."""
        return Sizes(dict(self._names), dict(self._denotations))

    def require_supported(self) -> None:
        """Raise Unsupported if an option asks for something that a session cannot do."""
        if self.enable_profiling:
            raise Unsupported("SessionOptions.enable_profiling: opendml writes no profiles of ONNX Runtime")
        if self.optimized_model_filepath:
            raise Unsupported("SessionOptions.optimized_model_filepath: opendml rewrites no ONNX models")


def _size(name: str, size: Any) -> int:
    if not isinstance(size, int) or size < 0:
        raise InvalidArgument(
            f"SessionOptions: size of {shown(name)}: {shown(size)}; a whole number from 0 on is needed"
        )
    return size


class RunOptions(_Options):
    """Options of a run, as in ONNX Runtime. They have no effect."""

    _defaults: ClassVar[dict[str, Any]] = {
        "log_severity_level": -1,
        "log_verbosity_level": 0,
        "logid": "",
        "only_execute_path_to_fetches": False,
        "terminate": False,
        "training_mode": False,
    }

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Store an entry. It has no effect."""
        self._entries[key] = value
