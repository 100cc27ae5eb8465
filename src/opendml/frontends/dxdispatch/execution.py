"""Runs a model on a device: everything is created, compiled and bound first, then the commands follow."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from opendml.budget import meter
from opendml.errors import Error, InvalidArgument
from opendml.frontends.dxdispatch import files, printing
from opendml.frontends.dxdispatch.foreign import CompiledOnnx
from opendml.frontends.dxdispatch.model import (
    Bindings,
    Dispatch,
    Dispatchable,
    Model,
    Print,
    Resource,
    WriteFile,
)
from opendml.frontends.dxdispatch.timing import Repetition, measure
from opendml.frontends.dxdispatch.values import Bytes, Elements, decode
from opendml.json_files.node import Failures
from opendml.spec.enums import ExecutionFlags
from opendml.spec.operator_desc import OperatorDesc

_ALIGNMENT = 64  # a cache line, and the widest vector
_ONCE = Repetition()

Buffers = Mapping[str, Bytes]
Tensors = Mapping[str, list[Bytes | None]]
"""Name of a desc's tensor field to one buffer for each of its tensors, None for those bound elsewhere."""


class Bound(Protocol):
    """A compiled operator with its buffers."""

    @property
    def dispatch(self) -> Callable[[], object]:
        """Runs it to the end."""


class Compiled(Protocol):
    """A compiled operator."""

    def bind(self, inputs: Sequence[Bytes | None], outputs: Sequence[Bytes | None]) -> Bound:
        """Takes a buffer for each tensor, in the desc's order, None for absent ones."""


class Device(Protocol):
    """The part of a device that running a model needs."""

    def create_operator(self, desc: OperatorDesc) -> Any:
        """Judges the desc."""

    def compile_operator(self, op: Any, flags: ExecutionFlags) -> Compiled:
        """Compiles what `create_operator` returned."""


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
    """What the text says, in an array of its own."""


@dataclass(frozen=True, slots=True)
class Written:
    """A writeFile command was run."""

    resource: str
    path: Path


@dataclass(frozen=True, slots=True)
class Program:
    """A model that is ready to run. Its buffers keep what the commands leave in them."""

    model: Model
    buffers: Buffers
    bound: Mapping[str, Bound]
    """Path of a dispatch command to its operator with its buffers."""
    initialization_seconds: Mapping[str, float]
    """Name of a dispatchable to the time that its compilation took."""

    def run(self, repetition: Repetition = _ONCE) -> Iterator[Dispatched | Printed | Written]:
        """Executes the commands in order, each dispatch as `repetition` says; tells after each what it
        did."""
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
        """The part of the buffer that was given initial values: what pads it would only confuse."""
        resource = self.model.resources[command.resource]
        data = self.buffers[resource.name][resource.offset :]
        elements = decode(data, resource.data_type, resource.initializer.element_count)
        write = printing.one_element_a_line if command.verbose else printing.one_line
        try:
            return Printed(resource.name, write(elements), command.verbose, elements.copy())
        except MemoryError as error:
            count = f"{elements.size:,} elements"
            raise Error(f"{command.path}: cannot print {resource.name}: no memory for {count}") from error

    def _write_file(self, command: WriteFile) -> Written:
        resource = self.model.resources[command.resource]
        data = self.buffers[resource.name][: resource.size_in_bytes]
        try:
            files.write(command.target, command.folder, data, resource.data_type, command.dimensions)
        except (OSError, MemoryError) as error:
            reason = getattr(error, "strerror", None) or error or "not enough memory"
            raise Error(f"{command.path}: cannot write {command.target}: {reason}") from error
        return Written(resource.name, command.target)


def _silently(name: str) -> None:
    """Tells nobody what is compiled."""


def prepare(model: Model, device: Device, compiling: Callable[[str], object] = _silently) -> Program:
    """Creates and compiles all dispatchables, fills all buffers and binds all dispatches.

    `compiling` is called with the name of each dispatchable before that is compiled.

    Raises InvalidArgument with all that DirectML's rules forbid, and Unsupported for an operator that
    `device` cannot run; messages start with the JSON path. Nothing has been dispatched or written then.
    """
    failures = Failures()
    operators = {}
    for dispatchable in model.dispatchables.values():
        if isinstance(dispatchable.desc, OperatorDesc):
            with failures.collected(), _located(dispatchable.path):
                operators[dispatchable.name] = device.create_operator(dispatchable.desc)
    failures.raise_any()
    compiled, seconds = {}, {}
    for dispatchable in model.dispatchables.values():
        compiling(dispatchable.name)
        start = time.perf_counter()
        with _located(dispatchable.path):
            if isinstance(dispatchable.desc, OperatorDesc):
                operator = operators[dispatchable.name]
                compiled[dispatchable.name] = device.compile_operator(operator, dispatchable.flags)
            else:
                compiled[dispatchable.name] = dispatchable.desc.compile(device, dispatchable.flags)
        seconds[dispatchable.name] = time.perf_counter() - start
    buffers = {resource.name: _filled(resource) for resource in model.resources.values()}
    return Program(model, buffers, _bind_all(model, compiled, buffers), seconds)


def _bind_all(model: Model, compiled: Mapping[str, Compiled], buffers: Buffers) -> dict[str, Bound]:
    initial = {
        name: _initial_tensors(dispatchable, buffers) for name, dispatchable in model.dispatchables.items()
    }
    failures = Failures()
    bound = {}
    for command in model.commands:
        if isinstance(command, Dispatch):
            dispatchable = model.dispatchables[command.dispatchable]
            tensors = initial[dispatchable.name], _tensors(command.bindings, buffers)
            inputs = _in_order(dispatchable, *tensors, outputs=False)
            outputs = _in_order(dispatchable, *tensors, outputs=True)
            with failures.collected(), _located(f"{command.path}.bindings"):
                work = compiled[dispatchable.name]
                if isinstance(work, CompiledOnnx):
                    work = work.shaped(_shapes(command.bindings))
                bound[command.path] = work.bind(inputs, outputs)
    failures.raise_any()
    return bound


def _shapes(bindings: Bindings) -> dict[str, tuple[int, ...]]:
    """The shapes that bindings give to tensors of an ONNX model."""
    return {
        name: each.shape
        for name, several in bindings.items()
        for each in several
        if each is not None and each.shape is not None
    }


def _tensors(bindings: Bindings, buffers: Buffers) -> Tensors:
    return {
        name: [
            None if binding is None else buffers[binding.resource][binding.offset :] for binding in several
        ]
        for name, several in bindings.items()
    }


def _initial_tensors(dispatchable: Dispatchable, buffers: Buffers) -> Tensors:
    """Copies of the tensors that initialization reads: DirectML keeps its own copy of tensors that it
    owns."""
    owned = _tensors(dispatchable.initial_bindings, buffers)
    return {
        name: [None if data is None else _aligned_copy(data) for data in several]
        for name, several in owned.items()
    }


def _in_order(
    dispatchable: Dispatchable, initial: Tensors, given: Tensors, *, outputs: bool
) -> list[Bytes | None]:
    """The buffers in the order of the desc's tensors, None for a field without one."""
    ordered: list[Bytes | None] = []
    for point in dispatchable.bind_points:
        if point.is_output == outputs:
            none: list[Bytes | None] = [None] * max(len(point.tensors), 1)
            pairs = zip(initial.get(point.name, none), given.get(point.name, none), strict=True)
            ordered.extend(late if early is None else early for early, late in pairs)
    return ordered


def _filled(resource: Resource) -> Bytes:
    meter().hold(resource.allocated_bytes, resource.path)
    try:
        buffer = _aligned(resource.allocated_bytes)
        start = resource.offset
        resource.initializer.write(buffer[start : start + resource.initializer.size_in_bytes])
    except (MemoryError, OverflowError, ValueError) as error:
        raise Error(f"{resource.path}: cannot allocate {resource.allocated_bytes} bytes") from error
    return buffer


def _aligned(size: int) -> Bytes:
    """`size` zero bytes whose address is a multiple of 64, as a device's buffers are."""
    raw = np.zeros(size + _ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % _ALIGNMENT
    return raw[start : start + size]


def _aligned_copy(data: Bytes) -> Bytes:
    copy = _aligned(data.size)
    copy[:] = data
    return copy


@contextmanager
def _located(path: str) -> Iterator[None]:
    """Puts `path` before what is raised inside."""
    try:
        yield
    except InvalidArgument as error:
        raise InvalidArgument(f"{path}: {failure}" for failure in error.failures) from error
    except Error as error:
        raise error._within(path) from error
