"""Run a model on a device: compile and bind everything, and then execute the commands."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from opendml.budget import meter
from opendml.errors import Error, Unsupported, located
from opendml.frontends.dxdispatch import files
from opendml.frontends.dxdispatch.foreign import CompiledOnnx, DeferredOutput
from opendml.frontends.dxdispatch.model import (
    Bindings,
    Dispatch,
    DispatchModel,
    NamedDispatchable,
    Print,
    Resource,
    ResourceBinding,
    WriteFile,
)
from opendml.frontends.dxdispatch.timing import Repetition, measure
from opendml.frontends.dxdispatch.values import Bytes, Elements, decode, encode
from opendml.json_files.node import Failures
from opendml.late_dataclass import dataclass
from opendml.runtime.memory.host_array import data_type_of
from opendml.runtime.objects.compiled import CompiledOperator
from opendml.runtime.objects.device import Device
from opendml.runtime.objects.operator import Operator
from opendml.spec.enums import TensorDataType
from opendml.spec.operator_desc import OperatorDesc
from opendml.targets.memory import aligned_bytes

_ONCE = Repetition()

Buffers = Mapping[str, Bytes]
Buffer = Bytes | DeferredOutput
Tensors = Mapping[str, list[Buffer | None]]
"""Name of a desc's tensor field to one buffer for each of its tensors, None for those bound elsewhere."""


class Dispatching(Protocol):
    """A compiled operator or ONNX model with its buffers."""

    @property
    def dispatch(self) -> Callable[[], object]:
        """A function that runs it to the end."""


@dataclass(frozen=True, slots=True)
class Dispatched:
    """A dispatch command was run: the seconds that one dispatch took, for each measurement."""

    dispatchable: str
    seconds: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Printed:
    """A print command was run: the resource as text."""

    resource: str
    text: str
    verbose: bool
    elements: Elements = field(compare=False, repr=False)
    """The printed elements, in an array of their own."""


@dataclass(frozen=True, slots=True)
class Written:
    """A writeFile command was run."""

    resource: str
    path: Path


@dataclass(frozen=True, slots=True)
class PreparedModel:
    """A model that is ready to run. Its buffers keep what the commands leave in them.

    Args:
        model: the model.
        buffers: the buffers of its resources.
        deferred: the resources that outputs of ONNX models become.
        bound: each dispatch command's operator with its buffers, by the command's path.
        initialization_seconds: the time that each dispatchable took to compile.
    """

    model: DispatchModel
    buffers: Buffers
    deferred: Mapping[str, DeferredOutput]
    bound: Mapping[str, Dispatching]
    initialization_seconds: Mapping[str, float]

    def run(self, repetition: Repetition = _ONCE) -> Iterator[Dispatched | Printed | Written]:
        """Execute the commands in order, and yield after each what it did.

        Args:
            repetition: how often each dispatch runs.
        """
        for command in self.model.commands:
            match command:
                case Dispatch():
                    seconds = measure(self.bound[command.path].dispatch, repetition)
                    yield Dispatched(command.dispatchable, seconds)
                case Print():
                    yield self._print(command)
                case WriteFile():
                    yield self._write_file(command)

    def _print(self, command: Print) -> Printed:
        """Print the part of the buffer that has initial values, without padding, or a whole output."""
        resource = self.model.resources[command.resource]
        if resource.is_deferred:
            elements = self._output(command)[0].reshape(-1)
        else:
            data = self.buffers[resource.name][resource.offset :]
            elements = decode(data, resource.data_type, resource.initializer.element_count)
        write = _one_element_a_line if command.verbose else _one_line
        try:
            return Printed(resource.name, write(elements), command.verbose, elements.copy())
        except MemoryError as error:
            count = f"{elements.size:,} elements"
            raise Error(f"{command.path}: cannot print {resource.name}: no memory for {count}") from error

    def _write_file(self, command: WriteFile) -> Written:
        resource = self.model.resources[command.resource]
        data_type, dimensions = resource.data_type, command.dimensions
        if resource.is_deferred:
            array, data_type = self._output(command)
            dimensions, data = array.shape or (1,), encode(array.reshape(-1), data_type)
            if problem := files.problem_of_picture(command.target, data_type, dimensions):
                raise Error(f"{command.path}: cannot write {command.target}: {problem}")
        else:
            data = self.buffers[resource.name][: resource.size_in_bytes]
        try:
            files.write(command.target, command.folder, data, data_type, dimensions)
        except (OSError, MemoryError) as error:
            reason = getattr(error, "strerror", None) or error or "not enough memory"
            raise Error(f"{command.path}: cannot write {command.target}: {reason}") from error
        return Written(resource.name, command.target)

    def _output(self, command: Print | WriteFile) -> tuple[Elements, TensorDataType]:
        """Return the output that a deferred resource has become, and its type.

        Raises:
            Error: the output is of a type that DirectML does not have.
        """
        array = self.deferred[command.resource].array
        array = array.view(np.uint8) if array.dtype == np.bool_ else array
        with located(command.path):
            return array, data_type_of(array, f"resource '{command.resource}'")


def _one_line(elements: Elements) -> str:
    """Return the elements as DxDispatch prints them: separated by commas, floats with six digits."""
    form = "g" if elements.dtype.kind == "f" else "d"
    return ", ".join([format(value, form) for value in elements.tolist()])


def _one_element_a_line(elements: Elements) -> str:
    """Return index, value and bits of each element. Floats have all digits that tell them apart."""
    width, digits = len(str(elements.size - 1)), elements.dtype.itemsize * 2
    bits = elements.view(f"u{elements.dtype.itemsize}").tolist()
    return "\n".join(
        f"[{index:{width}}] {value!s} (0x{pattern:0{digits}X})"
        for index, (value, pattern) in enumerate(zip(elements, bits, strict=True))
    )


def _silently(name: str) -> None:
    """Report nothing."""


def prepare(
    model: DispatchModel, device: Device, compiling: Callable[[str], object] = _silently
) -> PreparedModel:
    """Compile all dispatchables, fill all buffers, and bind all dispatches. Nothing runs and nothing is
    written.

    Args:
        model: the model.
        device: where it runs.
        compiling: is called with the name of each dispatchable before that is compiled.

    Raises:
        InvalidArgument: all that DirectML's rules forbid, with JSON paths.
        Unsupported: an operator that the device cannot run.
    """
    operators: dict[str, Operator] = {}
    compiled: dict[str, CompiledOperator | CompiledOnnx] = {}
    seconds = {}
    with Failures() as failures:
        for dispatchable in model.dispatchables.values():
            if isinstance(dispatchable.desc, OperatorDesc):
                with failures.collected(), located(dispatchable.path):
                    operators[dispatchable.name] = device.create_operator(dispatchable.desc)
        for dispatchable in model.dispatchables.values():
            compiling(dispatchable.name)
            start = time.perf_counter()
            with failures.collected(), located(dispatchable.path):
                if not isinstance(dispatchable.desc, OperatorDesc):
                    compiled[dispatchable.name] = dispatchable.desc.compile(device, dispatchable.flags)
                elif (operator := operators.get(dispatchable.name)) is not None:
                    compiled[dispatchable.name] = device.compile_operator(operator, dispatchable.flags)
            seconds[dispatchable.name] = time.perf_counter() - start
        buffers, deferred = dict[str, Bytes](), dict[str, DeferredOutput]()
        for resource in model.resources.values():
            if resource.is_deferred:
                deferred[resource.name] = DeferredOutput()
            else:
                buffers[resource.name] = _filled(resource)
        bound = _bind_all(model, compiled, {**buffers, **deferred}, failures)
    return PreparedModel(model, buffers, deferred, bound, seconds)


def _bind_all(
    model: DispatchModel,
    compiled: Mapping[str, CompiledOperator | CompiledOnnx],
    buffers: Mapping[str, Buffer],
    failures: Failures,
) -> dict[str, Dispatching]:
    """Return each dispatch of what is compiled with its buffers, by the command's path."""
    # DirectML keeps its own copies of the tensors that it owns.
    owned: dict[str, Tensors] = {
        name: {
            field: [_aligned_copy(data) if isinstance(data, np.ndarray) else None for data in several]
            for field, several in _tensors(dispatchable.initial_bindings, buffers).items()
        }
        for name, dispatchable in model.dispatchables.items()
    }
    bound: dict[str, Dispatching] = {}
    for command in model.commands:
        if not isinstance(command, Dispatch) or (work := compiled.get(command.dispatchable)) is None:
            continue
        dispatchable = model.dispatchables[command.dispatchable]
        tensors = owned[dispatchable.name], _tensors(command.bindings, buffers)
        inputs, outputs = (_in_order(dispatchable, *tensors, outputs=each) for each in (False, True))
        with failures.collected(), located(f"{command.path}.bindings"):
            shapes = (_shapes(command.bindings),) if isinstance(work, CompiledOnnx) else ()
            bound[command.path] = work.bind(inputs, outputs, *shapes)
    return bound


def _shapes(bindings: Bindings) -> dict[str, tuple[int, ...]]:
    """Return the shapes that bindings give to tensors of an ONNX model."""
    return {
        name: each.shape
        for name, several in bindings.items()
        for each in several
        if each is not None and each.shape is not None
    }


def _tensors(bindings: Bindings, buffers: Mapping[str, Buffer]) -> Tensors:
    def of(binding: ResourceBinding) -> Buffer:
        buffer = buffers[binding.resource]
        return buffer if isinstance(buffer, DeferredOutput) else buffer[binding.offset :]

    return {
        name: [None if each is None else of(each) for each in several] for name, several in bindings.items()
    }


def _in_order(
    dispatchable: NamedDispatchable, owned: Tensors, given: Tensors, *, outputs: bool
) -> Sequence[Any]:
    """Return the buffers in the order of the desc's tensors, None for a field without one."""
    ordered: list[Buffer | None] = []
    for point in dispatchable.bind_points:
        if point.is_output == outputs:
            none: list[Buffer | None] = [None] * max(len(point.tensors), 1)
            pairs = zip(owned.get(point.name, none), given.get(point.name, none), strict=True)
            ordered.extend(later if first is None else first for first, later in pairs)
    return ordered


def _filled(resource: Resource) -> Bytes:
    meter().hold(resource.allocated_bytes, resource.path)
    try:
        buffer = aligned_bytes(np.zeros, resource.allocated_bytes)
        start = resource.offset
        resource.initializer.write(buffer[start : start + resource.initializer.size_in_bytes])
    except (Unsupported, MemoryError, OverflowError, ValueError) as error:
        raise Error(f"{resource.path}: cannot allocate {resource.allocated_bytes} bytes") from error
    return buffer


def _aligned_copy(data: Bytes) -> Bytes:
    copy = aligned_bytes(np.empty, data.size)
    copy[:] = data
    return copy
