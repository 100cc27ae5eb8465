"""Devices, operators and compiled operators: DirectML's object model.

Here so far: creation, validation, compilation, direct binding and dispatch.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property
from typing import Any

import numpy as np

from opendml.errors import InvalidArgument
from opendml.runtime.bound import Bound, BoundOperator, Recording, record
from opendml.runtime.buffers import Range, buffer_range, check_overlap
from opendml.runtime.host_array import Array, layout_of_array
from opendml.runtime.places import common_place, require_device
from opendml.runtime.program import (
    compile_program,
    cuda_index,
    layout_of,
    on_device,
    program_of,
    tensors_of,
)
from opendml.spec import descs
from opendml.spec.enums import ExecutionFlags, FeatureLevel, TensorDataType
from opendml.spec.feature_level import as_feature_level
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.schema import operator
from opendml.spec.tensor_desc import TensorDesc
from opendml.spec.validator import validate


class Device:
    """Where operators are checked, compiled and run.

    Args:
        kind: "cpu" (machine code for this processor), "cuda" or "cuda:1" (a CUDA device: arrays that are
            there are used in place, host memory is copied there and back), or "reference" (NumPy in float64).
        feature_level: what operators are checked against: "2_0", a `FeatureLevel`, or None for the newest.
        threads: how many threads may share a dispatch on the CPU; None: all that the process may use. Results
            do not depend on it.

    Raises:
        InvalidArgument: no such kind, device or level, or a number of threads below 1.
        Unsupported: CUDA is not available; the message says what is missing.
    """

    def __init__(
        self,
        kind: str = "cpu",
        *,
        feature_level: FeatureLevel | str | None = None,
        threads: int | None = None,
    ) -> None:
        index = cuda_index(kind)
        if index is not None:
            from opendml.targets.cuda.driver import device

            device(index)
        if threads is not None and (not isinstance(threads, int) or not 1 <= threads <= 1024):
            raise InvalidArgument(f"threads: {threads!r}; 1 to 1024, or None for all")
        self.kind = kind
        self.cuda_index = index
        """The number of the CUDA device; None for the other kinds."""
        self.feature_level = as_feature_level(feature_level)
        self.threads = threads

    def __repr__(self) -> str:
        return f"Device({self.kind!r}, feature_level={self.feature_level.name.removeprefix('LEVEL_')!r})"

    def create_operator(self, desc: OperatorDesc) -> Operator:
        """The operator of a desc that is valid at this device's feature level.

        Raises:
            InvalidArgument: every rule that the desc breaks, one line each.
        """
        validate(desc, feature_level=self.feature_level)
        return Operator(self, desc)

    def compile_operator(self, op: Operator, flags: ExecutionFlags = ExecutionFlags.NONE) -> CompiledOperator:
        """The operator as machine code.

        Raises:
            InvalidArgument: an operator of another device, or unknown flags.
            Unsupported: this operator cannot be run yet.
        """
        if op.device is not self:
            raise InvalidArgument(f"{op.desc.operator}: created by another device")
        if not isinstance(flags, int) or flags & ~sum(ExecutionFlags):
            raise InvalidArgument(
                f"flags: {flags!r}; allowed are combinations of {[flag.name for flag in ExecutionFlags]}"
            )
        return CompiledOperator(self, op.desc)

    def empty(self, sizes: Sequence[int], data_type: TensorDataType = TensorDataType.FLOAT32) -> Any:
        """A packed array in the device's memory, with any values: a DeviceArray on a CUDA device (which
        PyTorch, CuPy and JAX take over with `from_dlpack`), a NumPy array elsewhere.

        Raises:
            InvalidArgument: sizes or a type that no such tensor has.
            Unsupported: out of memory.
        """
        tensor = TensorDesc(data_type, sizes)
        validate(descs.ElementWiseIdentity(tensor, tensor), self.feature_level)
        layout = layout_of(tensor)
        if self.cuda_index is None:
            return np.empty(layout.sizes, layout.type.numpy)
        from opendml.targets.cuda.device_array import DeviceArray
        from opendml.targets.cuda.driver import device

        owner = device(self.cuda_index)
        array = DeviceArray(owner, layout.sizes, layout.type)
        # From here on any stream may use it.
        owner.synchronize(owner.stream)
        return array

    def upload(self, array: Array) -> Any:
        """A packed copy of a host array in the device's memory, as `empty` makes it.

        Raises:
            InvalidArgument: no NumPy array, or of a type that DirectML does not have.
            Unsupported: out of memory.
        """
        if not isinstance(array, np.ndarray):
            raise InvalidArgument(f"upload: {type(array).__name__}; a NumPy array is needed")
        copy = self.empty(array.shape, layout_of_array(array, "upload").type.data_type)
        if isinstance(copy, np.ndarray):
            copy[...] = array
        else:
            copy.copy_from(array)
        return copy

    def download(self, array: Any) -> Array:
        """A copy in host memory of what `empty` or `upload` made, after all work on the device.

        Raises:
            InvalidArgument: an array of another device or of another library.
        """
        if self.cuda_index is None and isinstance(array, np.ndarray):
            return array.copy()
        if self.cuda_index is not None:
            from opendml.targets.cuda.device_array import DeviceArray

            if isinstance(array, DeviceArray) and array.device_index == self.cuda_index:
                return array.to_host()
        raise InvalidArgument(
            f"download: {type(array).__name__}; an array that empty or upload made on {self.kind!r} is needed"
        )

    def record(self, bound: Sequence[Bound]) -> Recording:
        """Several dispatches as one, in their order: what is bound must stay bound. On a CUDA device a
        recording is a CUDA graph, which costs the host one call.

        Raises:
            InvalidArgument: nothing, something of another device, or, on a CUDA device, host memory.
        """
        return record(self, bound)

    def synchronize(self) -> None:
        """Waits until all work on the device is done; on other devices than CUDA's a dispatch always is."""
        if self.cuda_index is not None:
            from opendml.targets.cuda.driver import device

            device(self.cuda_index).synchronize_all()


def as_device(device: Device | str | None) -> Device:
    """A device, the device of a kind, or the CPU.

    Raises:
        InvalidArgument: no such kind.
    """
    return device if isinstance(device, Device) else _device_of(device or "cpu")


@cache
def _device_of(kind: str) -> Device:
    return Device(kind)


class Operator:
    """A valid operator of a device, not compiled yet."""

    def __init__(self, device: Device, desc: OperatorDesc) -> None:
        self.device = device
        self.desc = desc


class CompiledOperator:
    """An operator as code for its device. Safe to use from several threads; bound operators are not."""

    def __init__(self, device: Device, desc: OperatorDesc) -> None:
        self.device = device
        self.desc = desc
        self.input_tensors = tensors_of(desc, "INPUT_TENSOR")
        self.output_tensors = tensors_of(desc, "OUTPUT_TENSOR")
        self._executable = compile_program(program_of(desc), device.kind, device.threads)

    @cached_property
    def _names(self) -> tuple[list[str], list[str]]:
        """What messages call the inputs and the outputs."""
        names: tuple[list[str], list[str]] = ([], [])
        for field in operator(self.desc.operator).tensors:
            value = getattr(self.desc, field.python_name)
            many = (
                [f"{field.name}[{index}]" for index in range(len(value))]
                if isinstance(value, tuple)
                else [field.name]
            )
            names[field.kind == "OUTPUT_TENSOR"].extend(many)
        return names

    def bind(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> BoundOperator:
        """The operator on given memory.

        Args:
            inputs: a contiguous buffer for each input tensor in the desc's order, None for an absent one:
                NumPy arrays or any objects with the buffer protocol, or arrays of any library on the CUDA
                device of this operator, which are used in place. Only the memory counts: type and shape are
                the TensorDesc's. On "cuda", buffers in host memory are copied there and back by every
                dispatch.
            outputs: likewise for the output tensors.

        Raises:
            InvalidArgument: a missing, extra, small, misaligned, read-only or overlapping buffer, or buffers
                that are not in the same memory.
        """
        name = self.desc.operator
        input_names, output_names = self._names
        bound_inputs = self._ranges(input_names, self.input_tensors, inputs, False)
        bound_outputs = self._ranges(output_names, self.output_tensors, outputs, True)
        bound = [item for item in (*bound_inputs, *bound_outputs) if item]
        place = common_place(name, [(label, memory.device) for label, memory, _ in bound])
        require_device(name, bound[0][0], place, self.device.kind)
        in_place = frozenset(operator(name).in_place)
        check_overlap(name, bound_inputs, [item for item in bound_outputs if item], in_place)
        executable = self._executable if place is None else on_device(self._executable)
        instance = executable.instantiate()
        for index, (_, memory, _) in enumerate(bound):
            instance.bind(index, memory.address)
        instance.keep([memory for _, memory, _ in bound])
        return BoundOperator(self.device, instance)

    def _ranges(
        self, names: list[str], tensors: list[TensorDesc | None], buffers: Sequence[Any], writable: bool
    ) -> list[tuple[str, Range, Any] | None]:
        if len(buffers) != len(tensors):
            kind = "outputs" if writable else "inputs"
            raise InvalidArgument(
                f"{self.desc.operator}: {len(buffers)} {kind}; there are {len(tensors)}: {', '.join(names)}"
            )
        result: list[tuple[str, Range, Any] | None] = []
        for name, tensor, buffer in zip(names, tensors, buffers, strict=True):
            label = f"{self.desc.operator}.{name}"
            if (tensor is None) != (buffer is None):
                problem = (
                    "nothing is bound" if buffer is None else "a buffer is bound to a tensor that is absent"
                )
                raise InvalidArgument(f"{label}: {problem}")
            if tensor is None:
                result.append(None)
                continue
            layout = layout_of(tensor)
            result.append((name, buffer_range(buffer, layout, writable, label), layout))
        return result
