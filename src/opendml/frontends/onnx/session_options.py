"""Options of ONNX Runtime's sessions and runs: those that could change results are obeyed or refused, those
that could not are kept and have no effect."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, ClassVar

from opendml.errors import InvalidArgument, Unsupported
from opendml.frontends.onnx.sizes import Sizes
from opendml.spec.wording import shown


class GraphOptimizationLevel(IntEnum):
    """How much ONNX Runtime rewrites a graph. opendml compiles whole graphs at every level."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(IntEnum):
    """In which order ONNX Runtime runs nodes; of no effect."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(IntEnum):
    """How ONNX Runtime sorts nodes; of no effect."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


class _Options:
    """Fields with defaults, no others."""

    _defaults: ClassVar[dict[str, Any]]

    def __init__(self) -> None:
        for name, value in self._defaults.items():
            object.__setattr__(self, name, value)
        self._entries: dict[str, str] = {}

    def __repr__(self) -> str:
        """The fields that are not as they were."""
        changed = {name: getattr(self, name) for name in self._defaults}
        told = (f"{name}={each!r}" for name, each in changed.items() if each != self._defaults[name])
        return f"{type(self).__name__}({', '.join(told)})"

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_") and name not in self._defaults:
            names = ", ".join(self._defaults)
            raise AttributeError(f"{type(self).__name__} has no field {name!r}; it has {names}")
        object.__setattr__(self, name, value)


class SessionOptions(_Options):
    """Options of a session (ONNX Runtime's class of this name).

    `intra_op_num_threads` (0: all) is how many threads share the work on the CPU. `most_kept_bytes`, which
    ONNX Runtime does not have, is that of `opendml.onnx.load`. Sizes that
    `add_free_dimension_override_by_name` and `..._by_denotation` give hold for symbolic sizes. The other
    fields change no results. What would write files or bring operators along raises Unsupported when the
    session is made.
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
        """Keeps an entry; of no effect."""
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        """An entry."""
        return self._entries[key]

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Says the size that a symbolic size always has."""
        self._names[name] = _size(name, size)

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        """Says the size of the dimensions that the model says stand for something, as "DATA_BATCH"."""
        self._denotations[denotation] = _size(denotation, size)

    def register_custom_ops_library(self, path: str) -> None:
        """Raises Unsupported: operators of a library that was made for ONNX Runtime."""
        raise Unsupported(f"SessionOptions.register_custom_ops_library: {path}: made for ONNX Runtime alone")

    def add_initializer(self, name: str, ortvalue: Any) -> None:
        """Raises Unsupported: initializers are the model's."""
        raise Unsupported(f"SessionOptions.add_initializer: {name!r}; give it to the model, or as an input")

    @property
    def sizes(self) -> Sizes:
        """What was said of sizes."""
        return Sizes(dict(self._names), dict(self._denotations))

    def require_supported(self) -> None:
        """Raises Unsupported for what a session would have to do and does not."""
        if self.enable_profiling:
            raise Unsupported("SessionOptions.enable_profiling: opendml writes no profiles of ONNX Runtime")
        if self.optimized_model_filepath:
            raise Unsupported("SessionOptions.optimized_model_filepath: opendml rewrites no ONNX models")


def _size(name: str, size: Any) -> int:
    """A size that a symbolic one always has."""
    if not isinstance(size, int) or size < 0:
        raise InvalidArgument(
            f"SessionOptions: size of {shown(name)}: {shown(size)}; a whole number from 0 on is needed"
        )
    return size


class RunOptions(_Options):
    """Options of a run (ONNX Runtime's class of this name): of no effect."""

    _defaults: ClassVar[dict[str, Any]] = {
        "log_severity_level": -1,
        "log_verbosity_level": 0,
        "logid": "",
        "only_execute_path_to_fetches": False,
        "terminate": False,
        "training_mode": False,
    }

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Keeps an entry; of no effect."""
        self._entries[key] = value
