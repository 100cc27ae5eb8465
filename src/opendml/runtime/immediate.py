"""Immediate calls: arrays in, arrays out. What a call compiles to is kept, per thread, for the next call of
the same form."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from opendml.operators.registry import define
from opendml.program.node import source
from opendml.program.program import Layout, Program, packed
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
from opendml.runtime.operator_call import desc_of_call, input_names, output_names, require_array
from opendml.runtime.program import compile_program
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
    name: str, tensors: tuple[Any, ...], attributes: tuple[Any, ...], out: Any, device: str | Device | None
) -> Any:
    """Runs the operator `name`.

    Args:
        name: DirectML's name of the operator.
        tensors: its inputs in the desc's order, None for absent ones: NumPy arrays, arrays of other libraries
        (through DLPack),
            or tensors of one graph, which make the call a node of that graph.
        attributes: its attributes in the desc's order, without counts.
        out: an array for the output, or None for a new one. It may be an input where DirectML allows in-place
        execution.
        device: a device, its kind, or None for the CPU.

    Raises:
        InvalidArgument: what `validate` finds, or an array that cannot be read or written as asked.
        Unsupported: the operator cannot be run yet.
    """
    key: list[Any] = [name, attributes, device]
    for tensor in tensors if out is None else (*tensors, out):
        if type(tensor) is np.ndarray:
            key += tensor.dtype, tensor.shape, tensor.strides
        elif tensor is None:
            key.append(None)
        else:
            return _call_on_others(name, tensors, attributes, out, device)
    try:
        plan = _plans.table.get(tuple(key))
    except TypeError:
        attributes = tuple(map(as_tuple, attributes))
        key[1] = repr(attributes)
        plan = _plans.table.get(tuple(key))
    if plan is None:
        plan = _plan(tuple(key), name, tensors, attributes, out, device)
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
        if out is not None and not (out is tensors[0] and self.in_place and out.flags.writeable):
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
) -> _Plan:
    """The plan of a call, validated and compiled, and kept."""
    # A key with a zero would be equal to one with a zero of the other sign: such calls go by the attributes'
    # text.
    if not isinstance(key[1], str) and any(value == 0 for value in attributes if isinstance(value, float)):
        key = (key[0], repr(attributes), *key[2:])
        if (known := _plans.table.get(key)) is not None:
            return known
    where = as_device(device)
    labels = [f"{name}.{label}" for label in input_names(name)]
    layouts = [
        None if tensor is None else layout_of_array(tensor, label)
        for tensor, label in zip(tensors, labels, strict=True)
    ]
    desc = desc_of_call(name, [_desc(layout) for layout in layouts], attributes)
    validate(desc, where.feature_level)
    first = next(layout for layout in layouts if layout is not None)
    output = packed(first.type, first.sizes)
    if out is not None:
        given = layout_of_array(out, f"{name}.{output_names(name)[0]}")
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


def _desc(layout: Layout | None) -> TensorDesc | None:
    """The logical tensor: the immediate functions take any strides, at every level."""
    return None if layout is None else TensorDesc(layout.type.data_type, layout.sizes)


def _call_on_others(
    name: str, tensors: tuple[Any, ...], attributes: tuple[Any, ...], out: Any, device: str | Device | None
) -> Any:
    """A call on tensors of a graph, or on arrays of other libraries, whose kind the result then has."""
    if any(isinstance(tensor, GraphTensor) for tensor in tensors):
        return call_in_graph(name, tensors, attributes, out, device)
    arrays = [
        None if tensor is None else as_numpy(tensor, f"{name}.{label}")
        for tensor, label in zip(tensors, input_names(name), strict=True)
    ]
    target = None if out is None else as_numpy(out, f"{name}.{output_names(name)[0]}", writable=True)
    result = call(name, tuple(arrays), attributes, target, device)
    kind = next((tensor for tensor in tensors if tensor is not None), None)
    return out if out is not None else like(kind, result)
