"""Devices, where DirectML's object model begins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from opendml.across_forks import importing, making
from opendml.errors import DeviceRemoved, InvalidArgument
from opendml.locked import Locked
from opendml.logs import log
from opendml.program.scalar_type import ScalarType
from opendml.runtime.objects.intermediates import Intermediate, debug_callback
from opendml.runtime.objects.named import Named
from opendml.spec.enums import ExecutionFlags, FeatureLevel, TensorDataType
from opendml.spec.feature_level import as_feature_level, full_name, short_name, value_since
from opendml.spec.values import DataTypeLike, as_member, as_plain
from opendml.spec.wording import shown
from opendml.targets.backend import require_threads
from opendml.targets.registry import backend_of

if TYPE_CHECKING:
    from opendml.runtime.graphs.base import GraphBase
    from opendml.runtime.graphs.desc import GraphDesc
    from opendml.runtime.graphs.tensor import GraphTensor
    from opendml.runtime.memory.host_array import Array
    from opendml.runtime.objects.binding_table import BindingTable
    from opendml.runtime.objects.bound import Bound, Recording
    from opendml.runtime.objects.compiled import CompiledOperator
    from opendml.runtime.objects.dispatchable import Dispatchable
    from opendml.runtime.objects.initializer import OperatorInitializer
    from opendml.runtime.objects.operator import Operator
    from opendml.runtime.objects.recorder import CommandRecorder
    from opendml.spec.operator_desc import OperatorDesc

# Methods import what they work with: half of a program's start, 0.1 s, which a known ONNX model that gets a
# device does not need.


class Device(Named, Locked):
    """A device, which checks, compiles and runs operators (IDMLDevice). It is safe to use from several
    threads.

    It has no `evict` and no `make_resident`, because compiled operators are small and free their memory.

    Args:
        kind: "cpu" (machine code for this processor), "cuda", "cuda:1" or "reference" (NumPy in float64). A
            CUDA device uses arrays that are there in place, and copies host memory there and back.
        feature_level: the newest level that the device has: "2_0", a `FeatureLevel`, or None for the newest
            of all. Operators are checked against it.
        threads: threads that may share a dispatch on the CPU; None: OPENDML_THREADS, or all that the process
            may use. Results do not depend on it.
        debug: a function that is called with an Intermediate for every output of every operator at every
            dispatch, or a folder for .npy files of them. It costs time, and changes no result. It sees what
            `compile_operator`, `compile_graph` and `Graph.compile` make. It is called in the dispatching
            thread, and must not run such work of the device. An error of it ends the dispatch, and outputs
            are undefined.

    Raises:
        InvalidArgument: no such kind, device or level, a number of threads below 1, or no function or folder.
        Unsupported: CUDA is not available; the message says what is missing.
    """

    def __init__(
        self,
        kind: str = "cpu",
        *,
        feature_level: FeatureLevel | str | None = None,
        threads: int | None = None,
        debug: Callable[[Intermediate], object] | str | PathLike[str] | None = None,
    ) -> None:
        self._backend = backend_of(kind)
        require_threads(threads)
        self._backend.open()
        super().__init__()
        self.kind = kind
        self._removed: DeviceRemoved | None = None
        self.index = self._backend.index
        """The number of the device among those of its kind, as of "cuda:1"; None where there is only one."""
        self.feature_level = as_feature_level(feature_level)
        self.threads = threads
        self._debug = debug_callback(debug)
        log.debug("device: %r", self)

    def __repr__(self) -> str:
        threads = "" if self.threads is None else f", threads={self.threads}"
        text = f"Device({self.kind!r}, feature_level={short_name(self.feature_level)!r}{threads})"
        if self._removed is not None:
            return f"<{self._with_name(text)}, removed: {self._removed}>"
        return f"<{self._with_name(text)}>" if self.name else text

    @property
    def removed_reason(self) -> DeviceRemoved | None:
        """The error that every later call raises, or None if the device is present."""
        return self._removed

    def remove(self, reason: str) -> None:
        """Remove the device, as if it was lost, so that programs can test what they do then.

        Running dispatches end normally, and later removals change nothing. A default device of calls and
        graphs is replaced by a new one in the next call.

        Raises:
            InvalidArgument: a reason that is no text.
        """
        if not isinstance(reason, str):
            raise InvalidArgument(f"remove: {shown(reason)}; a reason in words is needed")
        self._lose(DeviceRemoved(f"{self._with_name(self.kind)}: {reason}"))

    def _lose(self, error: DeviceRemoved) -> None:
        """Remove the device because of an error, unless it is removed."""
        with self._lock:
            self._removed = self._removed or error

    def _require_present(self) -> None:
        """Check that the device is not removed.

        Raises:
            DeviceRemoved: it is.
        """
        if self._removed is not None:
            raise self._removed.with_traceback(None)

    def check_feature_support(self, feature: DataTypeLike | Sequence[FeatureLevel | str]) -> Any:
        """Return whether the device supports a data type, or its newest of several levels
        (IDMLDevice::CheckFeatureSupport).

        Args:
            feature: a data type, for True or False (DML_FEATURE_TENSOR_DATA_TYPE_SUPPORT); or feature levels,
                for the newest supported one (DML_FEATURE_FEATURE_LEVELS).

        Raises:
            InvalidArgument: neither, or no level that is supported: the device has those up to its own.
            DeviceRemoved: the device was removed.
        """
        self._require_present()
        data_type = as_member(TensorDataType, feature)
        if isinstance(data_type, TensorDataType):
            since = value_since("TENSOR_DATA_TYPE", data_type.name)
            return data_type.name in ScalarType.__members__ and since <= self.feature_level
        if isinstance(feature, str) or not isinstance(feature, Sequence):
            raise InvalidArgument(
                f"check_feature_support: {shown(feature)}; "
                "a TensorDataType or a list of feature levels is needed"
            )
        supported = [level for each in feature if (level := as_feature_level(each)) <= self.feature_level]
        if not supported:
            raise InvalidArgument(
                f"check_feature_support: none of {shown(list(feature))} is supported; "
                f"the device has feature levels up to {full_name(self.feature_level)}"
            )
        return max(supported)

    def create_operator(self, desc: OperatorDesc) -> Operator:
        """Create an operator of a desc that is valid at this device's feature level.

        Raises:
            InvalidArgument: every rule that the desc breaks, one line each.
            DeviceRemoved: the device was removed.
        """
        self._require_present()
        with importing:
            from opendml.runtime.objects.operator import Operator
            from opendml.spec.validator import validate
        validate(desc, feature_level=self.feature_level)
        return Operator(self, desc)

    def compile_operator(self, op: Operator, flags: ExecutionFlags = ExecutionFlags.NONE) -> CompiledOperator:
        """Compile an operator.

        Args:
            op: an operator of this device.
            flags: DESCRIPTORS_VOLATILE allows bindings to change between recording and execution.
                ALLOW_HALF_PRECISION_COMPUTATION is not used: FLOAT16 is computed in FLOAT32 and rounded once.
                DISABLE_META_COMMANDS changes nothing, because no vendor's kernels are used.

        Raises:
            InvalidArgument: an operator of another device, or unknown flags.
            Unsupported: this operator cannot be run yet.
            DeviceRemoved: the device was removed.
        """
        self._require_present()
        with importing:
            from opendml.runtime.graphs.compilable import compilable_of
            from opendml.runtime.objects.compiled import CompiledOperator
            from opendml.runtime.objects.operator import Operator
        if not isinstance(op, Operator):
            raise InvalidArgument(f"compile_operator: {type(op).__name__}; create_operator makes operators")
        if op.device is not self:
            raise InvalidArgument(f"{op._title}: created by another device")
        return CompiledOperator(self, compilable_of(op.desc, self.feature_level), _checked(flags))

    def compile_graph(self, desc: GraphDesc, flags: ExecutionFlags = ExecutionFlags.NONE) -> CompiledOperator:
        """Compile a graph as one operator (IDMLDevice1::CompileGraph), fused as `Graph` is.

        Its inputs and outputs are the graph's.

        Args:
            desc: the nodes and the edges between them, of operators of this device.
            flags: as for `compile_operator`.

        Raises:
            InvalidArgument: everything that is wrong with the graph, one line each, a device below feature
                level 2_1, where graphs begin, constant nodes below 6_2, or unknown flags.
            Unsupported: one of the operators cannot be run yet.
            DeviceRemoved: the device was removed.
        """
        self._require_present()
        with importing:
            from opendml.runtime.graphs.wiring import graph_of_desc
        return self._compile_graph(*graph_of_desc(desc, self), flags)

    def _compile_graph(
        self, graph: GraphBase, outputs: Sequence[GraphTensor], flags: ExecutionFlags = ExecutionFlags.NONE
    ) -> CompiledOperator:
        """Compile a graph over buffers (`GraphBase(device.feature_level)`) as one operator. Inputs that the
        outputs do not need are absent.

        Raises:
            InvalidArgument: no outputs, or unknown flags.
        """
        self._require_present()
        with importing:
            from opendml.runtime.graphs.compilable import compilable_of_graph
            from opendml.runtime.objects.compiled import CompiledOperator
        return CompiledOperator(self, compilable_of_graph(graph, outputs), _checked(flags))

    def create_operator_initializer(self, operators: Sequence[CompiledOperator] = ()) -> OperatorInitializer:
        """Create an initializer of compiled operators. One without operators may be reset later.

        Raises:
            InvalidArgument, DeviceRemoved: as OperatorInitializer.reset.
        """
        with importing:
            from opendml.runtime.objects.initializer import OperatorInitializer
        return OperatorInitializer(self, operators)

    def create_binding_table(self, dispatchable: Dispatchable | None = None) -> BindingTable:
        """Create a binding table of a dispatchable. Without one it is empty, and must be reset.

        Raises:
            InvalidArgument, DeviceRemoved: as BindingTable.reset.
        """
        with importing:
            from opendml.runtime.objects.binding_table import BindingTable
        return BindingTable(self, dispatchable)

    def create_command_recorder(self) -> CommandRecorder:
        """Create a command recorder.

        Raises:
            DeviceRemoved: the device was removed.
        """
        self._require_present()
        with importing:
            from opendml.runtime.objects.recorder import CommandRecorder
        return CommandRecorder(self)

    def execute(self, recorder: CommandRecorder, stream: Any = None) -> None:
        """Execute recorded dispatches in their order, any number of times.

        A recorded initialization reads the OWNED_BY_DML tensors each time. All is checked first: if it raises
        InvalidArgument, nothing has been executed.

        Args:
            recorder: a recorder of this device.
            stream: None: return when the results are there. On a CUDA device, a stream as for
                `Bound.enqueue`: return when the work is on it. Initializers run at once, after all earlier
                work on the device.

        Raises:
            InvalidArgument: another device's recorder; an operator that is not initialized, or that another
                recorder has initialized; another persistent resource than the initialized one; a stream for
                host memory; or an error of `record_dispatch` for volatile bindings.
            DeviceRemoved: the device was removed.
        """
        self._require_ready()
        with importing:
            from opendml.runtime.objects.recorder import CommandRecorder
        if not isinstance(recorder, CommandRecorder) or recorder.device is not self:
            raise InvalidArgument(f"execute: {type(recorder).__name__}; a recorder of this device is needed")
        recorder._execute(stream)

    def create_buffer(self, size: int) -> Any:
        """Return zeros in the device's memory, at an address that suits every binding.

        The buffer is a DeviceArray of UINT8 on a CUDA device, and a NumPy array elsewhere.

        Raises:
            InvalidArgument: a size below 1.
            Unsupported: out of memory.
            DeviceRemoved: the device was removed.
        """
        self._require_present()
        size = as_plain(size)
        if type(size) is not int or size < 1:
            raise InvalidArgument(f"create_buffer: {shown(size)} bytes; 1 or more are needed")
        return self._backend.create_buffer(size)

    def empty(self, sizes: Sequence[int], data_type: DataTypeLike = TensorDataType.FLOAT32) -> Any:
        """Return a packed array of any values in the device's memory.

        It is a DeviceArray on a CUDA device, which PyTorch, CuPy and JAX import with `from_dlpack`, and a
        NumPy array elsewhere.

        Raises:
            InvalidArgument: sizes or a type that no such tensor has.
            Unsupported: out of memory.
        """
        self._require_present()
        with importing:
            from opendml.runtime.calls.arguments import validate_tensor
            from opendml.runtime.program import layout_of
            from opendml.spec.tensor_desc import TensorDesc
        tensor = TensorDesc(data_type, sizes)
        validate_tensor("empty", tensor, self.feature_level)
        return self._backend.empty(layout_of(tensor))

    def upload(self, array: Array) -> Any:
        """Return a packed copy of a host array in the device's memory, of the kind that `empty` returns.

        Raises:
            InvalidArgument: no NumPy array, or of a type that DirectML does not have.
            Unsupported: out of memory.
        """
        self._require_present()
        if not isinstance(array, np.ndarray):
            raise InvalidArgument(f"upload: {type(array).__name__}; a NumPy array is needed")
        with importing:
            from opendml.runtime.calls.arguments import validate_tensor
            from opendml.runtime.memory.host_array import layout_of_array
            from opendml.spec.tensor_desc import TensorDesc
        layout = layout_of_array(array, "upload")
        validate_tensor("upload", TensorDesc(layout.type.data_type, array.shape), self.feature_level)
        return self._backend.upload(array, layout)

    def download(self, array: Any) -> Array:
        """Return a copy in host memory of an array of `empty` or `upload`, after all work on the device.

        Raises:
            InvalidArgument: an array of another device or of another library.
        """
        self._require_present()
        if not self._backend.is_own(array):
            made = f"an array that empty or upload made on {self.kind!r}"
            raise InvalidArgument(f"download: {type(array).__name__}; {made} is needed")
        return self._backend.download(array)

    def record(self, bound: Sequence[Bound]) -> Recording:
        """Record several dispatches as one, in their order. Their bindings must stay.

        On a CUDA device a recording is a CUDA graph, which costs the host one call.

        Raises:
            InvalidArgument: nothing, something of another device, or, on a CUDA device, host memory.
        """
        self._require_present()
        with importing:
            from opendml.runtime.objects.bound import record
        return record(self, bound)

    def _require_ready(self) -> None:
        """Check that the device may run work that its debug function sees.

        Raises:
            DeviceRemoved: it was removed.
            InvalidArgument: its own debug function asks.
        """
        self._require_present()
        if self._debug is not None:
            self._debug.require_idle()

    def synchronize(self) -> None:
        """Wait until all work on the device is done. Only CUDA devices work asynchronously."""
        self._require_present()
        self._backend.synchronize()


def as_device(device: Device | str | None) -> Device:
    """Return the device itself, the default device of a kind, or that of the CPU.

    Raises:
        InvalidArgument: no such kind.
    """
    if isinstance(device, Device):
        return device
    kind = "cpu" if device is None else device
    backend_of(kind)
    with making:
        known = _defaults.get(kind)
        if known is None or known.removed_reason is not None:
            known = _defaults[kind] = Device(kind)
        return known


_defaults: dict[str, Device] = {}
"""The devices of calls that name a kind or nothing. A removed one is replaced."""


def _checked(flags: ExecutionFlags) -> ExecutionFlags:
    if not isinstance(flags, int) or flags & ~sum(ExecutionFlags):
        names = [flag.name for flag in ExecutionFlags]
        raise InvalidArgument(f"flags: {shown(flags)}; allowed are combinations of {names}")
    return ExecutionFlags(flags)
