"""Immediate calls: arrays in, arrays out. What a call compiles to is kept, per thread, for the next call of
the same form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from opendml.program.program import Program
from opendml.program.scalar_type import ScalarType
from opendml.runtime.arguments import CAST, NUMPY_CAST, in_place_arguments, input_arguments, labels_of
from opendml.runtime.bound import BoundOperator
from opendml.runtime.device import Device, as_device
from opendml.runtime.foreign import as_numpy, like
from opendml.runtime.graph import GraphTensor, call_in_graph
from opendml.runtime.host_array import (
    Array,
    address_of,
    array_maker,
    check_outputs,
    data_type_of,
    layout_of_array,
    memory_of,
    reject_truth_values,
)
from opendml.runtime.in_place import Placing
from opendml.runtime.operator_call import (
    exact_number,
    input_names,
    output_of_call,
    program_of_call,
    type_of_number,
)
from opendml.runtime.places import cuda_device_of
from opendml.runtime.plans import Plans
from opendml.runtime.program import compile_program
from opendml.runtime.scratch import Scratch
from opendml.spec.exact import append_keys, sizes_key
from opendml.spec.outputs import NOTHING, Told
from opendml.spec.plain import DataTypeLike
from opendml.spec.schema import operator


def call(
    name: str,
    tensors: tuple[Any, ...],
    attributes: tuple[Any, ...],
    out: Any,
    device: str | Device | None,
    output_type: DataTypeLike | None = None,
    sizes: Sequence[int] | None = None,
    cast: str = NUMPY_CAST,
) -> Any:
    """Runs the operator `name`.

    Args:
        name: DirectML's name of the operator.
        tensors: its inputs in the desc's order, None for absent ones: NumPy arrays, arrays of other libraries
            (through DLPack), in host memory or on a CUDA device, or tensors of one graph, which make the
            call a node of that graph; beside arrays in host memory and tensors of a graph also numbers. Where
            all sizes must be equal, sizes of 1 and missing dimensions are repeated.
        attributes: its attributes in the desc's order, without counts.
        out: an array for the output, or None for a new one. It may be an input where DirectML allows in-place
        execution.
        device: a device, its kind, or None for the device that the arrays are on. Arrays in host memory may
            be given with any device: "cuda" copies them there and the result back.
        output_type: the type of the output, where the inputs do not say it.
        sizes: the sizes of the output of an operator without inputs.
        cast: how the caller makes an input have another type.

    Raises:
        InvalidArgument: what `validate` finds, an array that cannot be read or written as asked, or arrays
            that are not in the same memory.
        Unsupported: the operator cannot be run yet.
    """
    told = NOTHING
    if output_type is not None or sizes is not None:
        told = output_of_call(name, output_type, sizes)
    key: list[Any] = [name, device, told.type]
    if attributes:
        append_keys(key, name, attributes)
    if sizes is not None:
        key.append(sizes_key(sizes))
    if device is not None and not isinstance(device, str):
        as_device(device)
    for tensor in tensors if out is None else (*tensors, out):
        if type(tensor) is np.ndarray:
            key += tensor.dtype, tensor.shape, tensor.strides
        elif tensor is None:
            key.append(None)
        else:
            return _call_on_others(tensor, name, tensors, attributes, out, device, told)
    return _plans.find(tuple(key), _plan, name, attributes, tensors, out, device, told, cast).run(
        tensors, out
    )


class _Plan:
    """A compiled call: the arrays of every later call have the layouts that it was made for."""

    def __init__(
        self, name: str, tensors: tuple[Array | None, ...], program: Program, device: Device
    ) -> None:
        self.name, self.device = name, device
        (self.output,) = program.outputs
        self.make = array_maker(self.output)
        self.placing = Placing(name, program, tensors)
        executable = compile_program(program, device.kind, device.threads)
        self.scratch_bytes = executable.temporary_bytes if device.kind == "cpu" else 0
        self.instance: Any = executable.instantiate(0 if self.scratch_bytes else None)
        self.bound = BoundOperator(device, self.instance, name)
        self.program, self.is_running = program, False
        self.misaligned = self.output.type.bytes - 1

    def run(self, tensors: tuple[Array | None, ...], out: Array | None) -> Array:
        """Binds the arrays and dispatches."""
        if self.is_running:
            # A call by the handler of a signal that came within this one.
            return _Plan(self.name, tensors, self.program, self.device).run(tensors, out)
        result = self.make() if out is None else out
        addresses = [address_of(tensor) for tensor in tensors if tensor is not None]
        addresses.append(address_of(result))
        if out is not None and not (
            out.flags.writeable
            and ((self.placing.is_over_itself and out is tensors[0]) or self.placing.is_sound(addresses))
        ):
            self._check(tensors, out)
        bind = self.instance.bind
        self.is_running = True
        try:
            for number, address in enumerate(addresses):
                if address & self.misaligned:
                    self._reject_misaligned(tensors, result)
                bind(number, address)
            if self.scratch_bytes:
                self._dispatch_with_scratch()
            else:
                self.bound.dispatch()
        finally:
            self.is_running = False
        return result

    def _dispatch_with_scratch(self) -> None:
        memory = _scratch.take(self.scratch_bytes)
        self.instance.use_arena(memory.address)
        self.bound.dispatch()
        _scratch.give(memory)

    def _check(self, tensors: tuple[Array | None, ...], out: Array) -> None:
        """A closer look at whether `out` may be written, given the inputs."""
        name, labels = self.name, labels_of(self.name)
        named = [
            None if tensor is None else (argument, memory_of(tensor, label))
            for argument, label, tensor in zip(input_arguments(name), labels, tensors, strict=False)
        ]
        output = memory_of(out, labels[-1])
        check_outputs(operator(name).function_name, named, [("out", output)], in_place_arguments(name))

    def _reject_misaligned(self, tensors: tuple[Array | None, ...], out: Array) -> None:
        for label, array in zip(labels_of(self.name), (*tensors, out), strict=True):
            if array is not None:
                data_type_of(array, label)


_plans: Plans[_Plan] = Plans()
_scratch = Scratch()


def _plan(
    name: str,
    attributes: tuple[Any, ...],
    tensors: tuple[Array | None, ...],
    out: Array | None,
    device: str | Device | None,
    told: Told,
    cast: str,
) -> _Plan:
    """The plan of a call, validated and compiled."""
    where = as_device(device)
    where._require_present()
    reject_truth_values(out, labels_of(name)[-1])
    layouts = [
        None if array is None else layout_of_array(array, label)
        for array, label in zip((*tensors, out), labels_of(name), strict=True)
    ]
    program = program_of_call(name, layouts[:-1], attributes, layouts[-1], where.feature_level, told, cast)
    return _Plan(name, tensors, program, where)


def _call_on_others(
    other: Any,
    name: str,
    tensors: tuple[Any, ...],
    attributes: tuple[Any, ...],
    out: Any,
    device: str | Device | None,
    told: Told,
) -> Any:
    """A call with `other`, which is no NumPy array: on tensors of a graph, on arrays on a CUDA device, or on
    numbers and host arrays of other libraries, whose kind the result then has.
    """
    if cuda_device_of(other) is not None:
        return _cuda_call()(other, name, tensors, attributes, out, device, told)
    if any(isinstance(tensor, GraphTensor) for tensor in tensors):
        return call_in_graph(name, tensors, attributes, out, device, told)
    for array in (*tensors, out):
        if cuda_device_of(array) is not None:
            return _cuda_call()(array, name, tensors, attributes, out, device, told)
    target = None if out is None else as_numpy(out, labels_of(name)[-1], writable=True)
    arrays = _as_arrays(name, tensors, target, told)
    kind = next((tensor for tensor in tensors if not isinstance(tensor, int | float | None)), None)
    cast = NUMPY_CAST if isinstance(kind, np.ndarray) else CAST
    result = call(name, tuple(arrays), attributes, target, device, told.type, told.sizes, cast)
    return out if out is not None else like(kind, result)


def _as_arrays(name: str, tensors: tuple[Any, ...], out: Array | None, told: Told) -> list[Array | None]:
    """The tensors of a call as NumPy arrays, numbers in the type of what is beside them."""
    names, labels = input_names(name), labels_of(name)
    has_array = any(not isinstance(tensor, int | float | None) for tensor in tensors)
    arrays = [
        None if tensor is None or (has_array and isinstance(tensor, int | float)) else as_numpy(tensor, label)
        for tensor, label in zip(tensors, labels, strict=False)
    ]
    types = {
        each: data_type_of(array, label)
        for each, array, label in zip(names, arrays, labels, strict=False)
        if array is not None
    }
    if out is not None:
        told = told._replace(written=data_type_of(out, labels[-1]))
    for number, tensor in enumerate(tensors):
        if tensor is not None and arrays[number] is None:
            type = ScalarType.of(type_of_number(name, names[number], types, told))
            arrays[number] = np.asarray(exact_number(tensor, type, labels[number]), type.numpy)
    return arrays


@cache
def _cuda_call() -> Callable[..., Any]:
    """The function that runs calls on CUDA arrays; imported when there are such arrays."""
    from opendml.runtime.immediate_cuda import call_on_cuda

    return call_on_cuda
