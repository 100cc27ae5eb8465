"""Immediate calls: arrays in, arrays out. What a call compiles to is kept, per thread, for the next call of
the same form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opendml.program.program import Layout, Program
from opendml.runtime.calls.arguments import CAST, NUMPY_CAST, in_place_arguments
from opendml.runtime.calls.call import Call, flattened, written_of
from opendml.runtime.calls.in_place import Placing
from opendml.runtime.calls.operator_call import (
    exact_number,
    program_of_call,
    require_running,
    told_of_call,
    type_of_number,
    written,
)
from opendml.runtime.calls.plans import Plans
from opendml.runtime.calls.streams import call_on_stream
from opendml.runtime.graphs.compiled_work import call_maker
from opendml.runtime.graphs.graph_call import call_in_graph
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.runtime.memory.foreign import as_numpy, like
from opendml.runtime.memory.host_array import (
    Array,
    address_of,
    array_maker,
    check_outputs,
    data_type_of,
    layout_of_array,
    memory_of,
    reject_truth_values,
    require_aligned,
)
from opendml.runtime.objects.bound import BoundOperator
from opendml.runtime.objects.device import Device, as_device
from opendml.spec.kinds import sizes_key
from opendml.spec.outputs import NOTHING, Told
from opendml.spec.schema import append_keys
from opendml.spec.values import DataTypeLike
from opendml.targets.registry import place_of


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
        told = told_of_call(name, output_type, sizes)
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
            outs = None if out is None else (out,)
            return _call_on_others(tensor, Call(name, tensors, attributes, outs, device, told, cast))
    plan = _plans.find(tuple(key), _plan_of_one, name, tensors, attributes, out, device, told, cast)
    return plan.run(tensors, out)


def call_several(
    name: str,
    tensors: tuple[Any, ...],
    attributes: tuple[Any, ...],
    out: Any,
    device: str | Device | None,
    output_type: DataTypeLike | None = None,
    sizes: Sequence[int] | None = None,
    wanted: tuple[bool, ...] = (),
) -> Any:
    """Runs the operator `name`, which has lists of tensors or may have several outputs.

    Args:
        name: as of `call`.
        tensors: as of `call`; for an array of tensors a sequence of them.
        attributes: as of `call`.
        out: as `call` for one output; for several a tuple with an array for each, or None for new arrays.
        device: as of `call`.
        output_type: the type of the output whose type the call may choose.
        sizes: the sizes of the first output, or along the axis those of the parts.
        wanted: for each of the optional outputs whether the call asks for it.

    Returns:
        The operator's one required output, where no optional one is asked for; of an array of outputs a
        tuple; else the operator's named tuple.

    Raises:
        InvalidArgument: as `call`; or an argument is no sequence of tensors.
        Unsupported: the operator cannot be run yet.
    """
    require_running(name)
    told = told_of_call(name, output_type, sizes, wanted)
    flat, lengths = flattened(name, tensors)
    outs = written_of(name, told.wanted, out)
    one = Call(name, flat, attributes, outs, device, told, NUMPY_CAST, lengths)
    if device is not None and not isinstance(device, str):
        as_device(device)
    for array in (*flat, *(outs or ())):
        if array is not None and type(array) is not np.ndarray:
            return _call_on_others(array, one)
    return one.result(_results(one))


class _Plan:
    """A compiled call: the arrays of every later call have the layouts that it was made for."""

    def __init__(self, call: Call, program: Program, device: Device) -> None:
        self.call, self.device, self.program = call.without_arrays(), device, program
        self.makers = [array_maker(output) for output in program.outputs]
        self.make = self.makers[0]
        self.placings = [Placing(call, program, number) for number in range(len(program.outputs))]
        self.placing = self.placings[0]
        layouts, instance = (*program.inputs, *program.outputs), call_maker(program, device)()
        self.instance = device._backend.over_host_memory(instance, layouts, len(program.inputs))
        self.bound = BoundOperator(device, self.instance, call.name)
        self.is_running = False
        self.misaligned = max(each.type.bytes for each in layouts) - 1

    def run(self, tensors: tuple[Array | None, ...], out: Array | None) -> Array:
        """Binds the arrays of a call with one output, and dispatches."""
        result = self.make() if out is None else out
        addresses = [address_of(tensor) for tensor in tensors if tensor is not None]
        addresses.append(address_of(result))
        if out is not None and not (
            out.flags.writeable
            and ((self.placing.is_over_itself and out is tensors[0]) or self.placing.is_sound(addresses))
        ):
            self._check(tensors, (out,))
        self._dispatch(addresses)
        return result

    def run_several(
        self, tensors: tuple[Array | None, ...], outs: tuple[Array, ...] | None
    ) -> tuple[Array, ...]:
        """Binds the arrays and dispatches."""
        results = tuple([make() for make in self.makers]) if outs is None else outs
        addresses = [address_of(tensor) for tensor in tensors if tensor is not None]
        for placing, result in zip(self.placings, results, strict=True):
            addresses.append(address_of(result))
            if outs is not None and not (result.flags.writeable and placing.is_sound(addresses)):
                self._check(tensors, outs)
        self._dispatch(addresses)
        return results

    def _dispatch(self, addresses: list[int]) -> None:
        if self.is_running:
            # A call by the handler of a signal that came within this one.
            _Plan(self.call, self.program, self.device)._dispatch(addresses)
            return
        bind, misaligned = self.instance.bind, self.misaligned
        self.is_running = True
        try:
            for number, address in enumerate(addresses):
                if address & misaligned:
                    self._reject_misaligned(addresses)
                bind(number, address)
            self.bound.dispatch()
        finally:
            self.is_running = False

    def _check(self, tensors: tuple[Array | None, ...], outs: tuple[Array, ...]) -> None:
        """A closer look at whether the outputs may be written, given the inputs."""
        call = self.call
        inputs = [
            None if tensor is None else (argument, memory_of(tensor, label))
            for argument, label, tensor in zip(call.arguments, call.labels, tensors, strict=True)
        ]
        outputs = [
            (argument, memory_of(out, label))
            for argument, label, out in zip(
                call.out_arguments(len(outs)), call.out_labels(len(outs)), outs, strict=True
            )
        ]
        check_outputs(call.function, inputs, outputs, in_place_arguments(call.name))

    def _reject_misaligned(self, addresses: list[int]) -> None:
        call, outputs = self.call, self.program.outputs
        labels = [
            label for label, tensor in zip(call.labels, call.tensors, strict=True) if tensor is not None
        ]
        labels += call.out_labels(len(outputs))
        layouts = (*self.program.inputs, *outputs)
        for label, layout, address in zip(labels, layouts, addresses, strict=True):
            require_aligned(address, layout.type, label)


_plans: Plans[_Plan] = Plans()


def _results(call: Call) -> tuple[Array, ...]:
    """The outputs of a call on NumPy arrays."""
    key: list[Any] = [(call.name, call.lengths, call.told.wanted), call.device, call.told.type]
    append_keys(key, call.name, call.attributes)
    if call.told.sizes is not None:
        key.append(sizes_key(call.told.sizes))
    for array in (*call.tensors, *(call.outs or ())):
        key += (None,) if array is None else (array.dtype, array.shape, array.strides)
    return _plans.find(tuple(key), _plan, call).run_several(call.tensors, call.outs)


def _plan_of_one(
    name: str,
    tensors: tuple[Any, ...],
    attributes: tuple[Any, ...],
    out: Any,
    device: str | Device | None,
    told: Told,
    cast: str,
) -> _Plan:
    """The plan of a call with one output and no lists."""
    return _plan(Call(name, tensors, attributes, None if out is None else (out,), device, told, cast))


def _plan(call: Call) -> _Plan:
    """The plan of a call, validated and compiled."""
    require_running(call.name)
    where = as_device(call.device)
    where._require_present()
    inputs = [
        None if array is None else layout_of_array(array, label)
        for array, label in zip(call.tensors, call.labels, strict=True)
    ]
    outs = None if call.outs is None else _layouts_of_outs(call, call.outs)
    return _Plan(call, program_of_call(call, inputs, outs, where.feature_level), where)


def _layouts_of_outs(call: Call, outs: tuple[Array, ...]) -> list[Layout]:
    layouts = []
    for array, label in zip(outs, call.out_labels(len(outs)), strict=True):
        reject_truth_values(array, label)
        layouts.append(layout_of_array(array, label))
    return layouts


def _call_on_others(other: Any, call: Call) -> Any:
    """A call with `other`, which is no NumPy array: on tensors of a graph, on arrays on a device, or on
    numbers and host arrays of other libraries, whose kind the results then have.
    """
    if (place := place_of(other)) is not None:
        return call_on_stream(place, other, call)
    if any(isinstance(tensor, GraphTensor) for tensor in call.tensors):
        return call_in_graph(call)
    require_running(call.name)
    for array in (*call.tensors, *(call.outs or ())):
        if (place := place_of(array)) is not None:
            return call_on_stream(place, array, call)
    outs = None
    if call.outs is not None:
        labels = call.out_labels(len(call.outs))
        outs = tuple([as_numpy(*pair, writable=True) for pair in zip(call.outs, labels, strict=True)])
    kind = next((tensor for tensor in call.tensors if not isinstance(tensor, int | float | None)), None)
    cast = NUMPY_CAST if isinstance(kind, np.ndarray) else CAST
    results = _results(call.on(_as_arrays(call, outs), outs, cast))
    return call.result([like(kind, result) for result in results] if call.outs is None else call.outs)


def _as_arrays(call: Call, outs: tuple[Array, ...] | None) -> tuple[Array | None, ...]:
    """The tensors of a call as NumPy arrays, numbers in the type of what is beside them."""
    has_array = any(not isinstance(tensor, int | float | None) for tensor in call.tensors)
    arrays = [
        None if tensor is None or (has_array and isinstance(tensor, int | float)) else as_numpy(tensor, label)
        for tensor, label in zip(call.tensors, call.labels, strict=True)
    ]
    numbers = [
        position
        for position, tensor in enumerate(call.tensors)
        if tensor is not None and arrays[position] is None
    ]
    if numbers:
        types = {
            position: data_type_of(array, call.labels[position])
            for position, array in enumerate(arrays)
            if array is not None
        }
        told = call.told if outs is None else written(call, _layouts_of_outs(call, outs))
        for position in numbers:
            type, label = type_of_number(call, told, position, types), call.labels[position]
            arrays[position] = np.asarray(exact_number(call.tensors[position], type, label), type.numpy)
    return tuple(arrays)
