"""Immediate calls: arrays in, arrays out. What a call compiles to is kept, per thread, for the next call of
the same form."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from opendml.operators.registry import define
from opendml.program.node import source
from opendml.program.program import Layout, Program
from opendml.program.scalar_type import ScalarType
from opendml.runtime.device import Device, as_device
from opendml.runtime.foreign import as_numpy, like
from opendml.runtime.graph import GraphTensor, call_in_graph
from opendml.runtime.host_array import (
    Array,
    address_of,
    check_no_overlap_within,
    check_outputs,
    data_type_of,
    layout_of_array,
)
from opendml.runtime.operator_call import (
    NOTHING,
    Output,
    broadcast_sizes,
    desc_of_call,
    exact_number,
    input_names,
    output_names,
    require_array,
    type_of_number,
)
from opendml.runtime.program import compile_program, layout_of, tensors_of
from opendml.spec.enums import TensorDataType
from opendml.spec.operator_desc import ScaleBias
from opendml.spec.plain import as_tuple
from opendml.spec.schema import operator
from opendml.spec.tensor_desc import TensorDesc
from opendml.spec.validator import validate

_MOST_PLANS = 4096


class _Plans(threading.local):
    """The calling thread's plans: an instance runs one dispatch at a time, so no two threads may share
    one."""

    def __init__(self) -> None:
        self.table: dict[Any, _Plan | None] = {}


_plans = _Plans()


def call(
    name: str,
    tensors: tuple[Any, ...],
    attributes: tuple[Any, ...],
    out: Any,
    device: str | Device | None,
    output_type: TensorDataType | None = None,
    sizes: Sequence[int] | None = None,
) -> Any:
    """Runs the operator `name`.

    Args:
        name: DirectML's name of the operator.
        tensors: its inputs in the desc's order, None for absent ones: NumPy arrays, arrays of other libraries
            (through DLPack), or tensors of one graph, which make the call a node of that graph; beside them
            numbers. Where all sizes must be equal, sizes of 1 and missing dimensions are repeated.
        attributes: its attributes in the desc's order, without counts.
        out: an array for the output, or None for a new one. It may be an input where DirectML allows in-place
        execution.
        device: a device, its kind, or None for the CPU.
        output_type: the type of the output, where the inputs do not say it.
        sizes: the sizes of the output of an operator without inputs.

    Raises:
        InvalidArgument: what `validate` finds, or an array that cannot be read or written as asked.
        Unsupported: the operator cannot be run yet.
    """
    told = _told(output_type, sizes)
    key: list[Any] = [name, attributes, device]
    if told is not NOTHING:
        key.append(told)
    for tensor in tensors if out is None else (*tensors, out):
        if type(tensor) is np.ndarray:
            key += tensor.dtype, tensor.shape, tensor.strides
        elif tensor is None:
            key.append(None)
        else:
            return _call_on_others(name, tensors, attributes, out, device, told)
    try:
        plan = _plans.table.get(tuple(key))
    except TypeError:
        attributes = tuple(map(as_tuple, attributes))
        key[1] = repr(attributes)
        plan = _plans.table.get(tuple(key))
    if plan is None:
        plan = _plan(tuple(key), name, tensors, attributes, out, device, told)
    return plan.run(tensors, out)


class _Plan:
    """A compiled call: the arrays of every later call have the layouts that it was made for."""

    def __init__(self, name: str, program: Program, device: Device) -> None:
        self.name = name
        self.layouts = program.inputs
        (self.output,) = program.outputs
        check_no_overlap_within(f"{name}.{output_names(name)[0]}", self.output)
        self.sizes, self.dtype = self.output.sizes, self.output.type.numpy
        self.spans = [layout.span for layout in (*program.inputs, self.output)]
        self.instance = compile_program(program, device.kind, device.threads).instantiate()
        self.in_place = frozenset(operator(name).in_place)
        self.misaligned = self.dtype.itemsize - 1

    def run(self, tensors: tuple[Array | None, ...], out: Array | None) -> Array:
        """Binds the arrays and dispatches."""
        result = np.empty(self.sizes, self.dtype) if out is None else out
        addresses = [address_of(tensor) for tensor in tensors if tensor is not None]
        addresses.append(address_of(result))
        if out is not None and not (self.in_place and out is tensors[0] and out.flags.writeable):
            self._check(tensors, out, addresses)
        bind = self.instance.bind
        for number, address in enumerate(addresses):
            if address & self.misaligned:
                self._reject_misaligned(tensors, result)
            bind(number, address)
        self.instance.dispatch()
        return result

    def _check(self, tensors: tuple[Array | None, ...], out: Array, addresses: list[int]) -> None:
        """Whether `out` may be written, given the inputs. Arrays that lie apart need no closer look."""
        low, high = self.spans[-1]
        start, end = addresses[-1] + low, addresses[-1] + high
        inputs = zip(addresses, self.spans[:-1], strict=False)
        if out.flags.writeable and all(end <= at + low or at + high <= start for at, (low, high) in inputs):
            return
        layouts = iter(self.layouts)
        named = [
            None if tensor is None else (name, tensor, next(layouts))
            for name, tensor in zip(input_names(self.name), tensors, strict=True)
        ]
        check_outputs(self.name, named, [(output_names(self.name)[0], out, self.output)], self.in_place)

    def _reject_misaligned(self, tensors: tuple[Array | None, ...], out: Array) -> None:
        names = [*input_names(self.name), output_names(self.name)[0]]
        for name, array in zip(names, (*tensors, out), strict=True):
            if array is not None:
                data_type_of(array, f"{self.name}.{name}")


def _plan(
    key: tuple[Any, ...],
    name: str,
    tensors: tuple[Array | None, ...],
    attributes: tuple[Any, ...],
    out: Array | None,
    device: str | Device | None,
    told: Output,
) -> _Plan:
    """The plan of a call, validated and compiled, and kept."""
    # A key with a zero would be equal to one with a zero of the other sign: such calls go by the attributes'
    # text.
    if not isinstance(key[1], str) and any(map(_has_zero, attributes)):
        key = (key[0], repr(attributes), *key[2:])
        if (known := _plans.table.get(key)) is not None:
            return known
    where = as_device(device)
    labels = [f"{name}.{label}" for label in input_names(name)]
    layouts = [
        None if tensor is None else layout_of_array(tensor, label)
        for tensor, label in zip(tensors, labels, strict=True)
    ]
    layouts = _broadcast(name, layouts)
    given = None if out is None else layout_of_array(out, f"{name}.{output_names(name)[0]}")
    if given is not None:
        told = Output(told.type or given.type.data_type, told.sizes or given.sizes)
    desc = desc_of_call(name, [_desc(layout) for layout in layouts], attributes, told)
    validate(desc, where.feature_level)
    (output_desc,) = tensors_of(desc, "OUTPUT_TENSOR")
    assert output_desc is not None
    output = layout_of(output_desc)
    if given is not None:
        require_array(f"{name}.{output_names(name)[0]}", given, output)
        output = given
    present = [layout for layout in layouts if layout is not None]
    sources = iter([source(index, layout.type, layout.sizes) for index, layout in enumerate(present)])
    nodes = [None if layout is None else next(sources) for layout in layouts]
    program = Program(tuple(present), (output,), define(desc, nodes, [output.type]))
    plan = _Plan(name, program, where)
    if len(_plans.table) >= _MOST_PLANS:
        _plans.table.clear()
    _plans.table[key] = plan
    return plan


def _told(output_type: TensorDataType | None, sizes: Sequence[int] | None) -> Output:
    if output_type is None and sizes is None:
        return NOTHING
    return Output(output_type, None if sizes is None else as_tuple(sizes))


def _has_zero(value: Any) -> bool:
    return value == 0 if isinstance(value, float) else isinstance(value, ScaleBias) and 0 in value


def _broadcast(name: str, layouts: list[Layout | None]) -> list[Layout | None]:
    """The inputs repeated where sizes must be equal: a repeated dimension has a stride of 0."""
    sizes = broadcast_sizes(name, [None if layout is None else layout.sizes for layout in layouts])
    return [
        None
        if layout is None or wanted is None
        else replace(layout, sizes=wanted, strides=_repeating(layout, wanted))
        for layout, wanted in zip(layouts, sizes, strict=True)
    ]


def _repeating(layout: Layout, sizes: tuple[int, ...]) -> tuple[int, ...]:
    strides = [stride if size > 1 else 0 for size, stride in zip(layout.sizes, layout.strides, strict=True)]
    return (0,) * (len(sizes) - len(strides)) + tuple(strides) if sizes != layout.sizes else layout.strides


def _desc(layout: Layout | None) -> TensorDesc | None:
    """The logical tensor: the immediate functions take any strides, at every level."""
    return None if layout is None else TensorDesc(layout.type.data_type, layout.sizes)


def _call_on_others(
    name: str,
    tensors: tuple[Any, ...],
    attributes: tuple[Any, ...],
    out: Any,
    device: str | Device | None,
    told: Output,
) -> Any:
    """A call on tensors of a graph, on numbers, or on arrays of other libraries, whose kind the result then
    has."""
    if any(isinstance(tensor, GraphTensor) for tensor in tensors):
        return call_in_graph(name, tensors, attributes, out, device, told)
    arrays = _as_arrays(name, tensors)
    target = None if out is None else as_numpy(out, f"{name}.{output_names(name)[0]}", writable=True)
    result = call(name, tuple(arrays), attributes, target, device, told.type, told.sizes)
    kind = next((tensor for tensor in tensors if not isinstance(tensor, int | float | None)), None)
    return out if out is not None else like(kind, result)


def _as_arrays(name: str, tensors: tuple[Any, ...]) -> list[Array | None]:
    """The tensors of a call as NumPy arrays, numbers in the type of what is beside them."""
    labels = input_names(name)
    has_array = any(not isinstance(tensor, int | float | None) for tensor in tensors)
    arrays = {
        label: as_numpy(tensor, f"{name}.{label}")
        for label, tensor in zip(labels, tensors, strict=True)
        if tensor is not None and not (has_array and isinstance(tensor, int | float))
    }
    types = {label: data_type_of(array, f"{name}.{label}") for label, array in arrays.items()}
    for label, tensor in zip(labels, tensors, strict=True):
        if tensor is not None and label not in arrays:
            type = ScalarType.of(type_of_number(name, label, types))
            arrays[label] = np.asarray(exact_number(tensor, type, f"{name}.{label}"), type.numpy)
    return [arrays.get(label) for label in labels]
