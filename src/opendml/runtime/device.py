"""Devices, operators and compiled operators: DirectML's object model.

Here so far: creation, validation, compilation, direct binding and dispatch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, cached_property
from typing import Any

from opendml.errors import InvalidArgument
from opendml.runtime.buffers import Range, buffer_range, check_overlap
from opendml.runtime.program import compile_program, cuda_index, layout_of, program_of, tensors_of
from opendml.spec.enums import ExecutionFlags, FeatureLevel
from opendml.spec.feature_level import as_feature_level
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.schema import operator
from opendml.spec.tensor_desc import TensorDesc
from opendml.spec.validator import validate


class Device:
    """Where operators are checked, compiled and run.

    Args:
        kind: "cpu" (machine code for this processor), "cuda" or "cuda:1" (a CUDA device, to which host memory
            is copied and back), or "reference" (NumPy in float64).
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
            inputs: a contiguous buffer (NumPy array, or any object with the buffer protocol) for each input
            tensor in the
                desc's order, None for an absent one. Only its memory counts: type and shape are the
                TensorDesc's.
            outputs: likewise for the output tensors.

        Raises:
            InvalidArgument: a missing, extra, small, misaligned, read-only or overlapping buffer.
        """
        input_names, output_names = self._names
        bound_inputs = self._ranges(input_names, self.input_tensors, inputs, False)
        bound_outputs = self._ranges(output_names, self.output_tensors, outputs, True)
        in_place = frozenset(operator(self.desc.operator).in_place)
        check_overlap(self.desc.operator, bound_inputs, [item for item in bound_outputs if item], in_place)
        instance = self._executable.instantiate()
        ranges = [item[1] for item in (*bound_inputs, *bound_outputs) if item]
        for index, memory in enumerate(ranges):
            instance.bind(index, memory.address)
        instance.keep(ranges)
        return BoundOperator(instance.dispatch)

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


class BoundOperator:
    """A compiled operator with its memory, which it keeps alive. One dispatch at a time."""

    def __init__(self, dispatch: Callable[[], object]) -> None:
        self.dispatch: Callable[[], object] = dispatch
        """Runs the operator and returns when the outputs are written."""
