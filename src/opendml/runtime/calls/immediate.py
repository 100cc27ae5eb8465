"""Immediate calls: arrays in, arrays out. A thread keeps a compiled call for later ones of the same form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np

from opendml.errors import DeviceRemoved
from opendml.program.program import Layout, Program
from opendml.runtime.calls.arguments import CAST, NUMPY_CAST
from opendml.runtime.calls.call import Call, call_of, returns_truth, returns_tuple
from opendml.runtime.calls.direct import Direct, Form, LatestCalls
from opendml.runtime.calls.operator_call import (
    exact_number,
    outputs_without_elements,
    program_of_call,
    requested_outputs,
    require_array,
    require_running,
    type_of_number,
    written,
)
from opendml.runtime.calls.plans import OutputPlace, Plans, check_outs
from opendml.runtime.calls.streams import call_on_stream
from opendml.runtime.graphs.base import GraphBase, call_in_graph
from opendml.runtime.graphs.compiled_work import call_maker
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.runtime.memory.foreign import as_numpy, as_truth, like
from opendml.runtime.memory.host_array import (
    Array,
    data_type_of,
    layout_of_array,
    memory_of,
    reject_truth_values,
    require_aligned,
)
from opendml.runtime.memory.torch_tensors import TorchTensors, known_readers, learn_reader
from opendml.runtime.objects.device import Device, as_device
from opendml.spec.kinds import sizes_key
from opendml.spec.outputs import NO_REQUESTS
from opendml.spec.schema import append_keys
from opendml.spec.values import DataTypeLike
from opendml.targets.memory import address_of, array_maker
from opendml.targets.registry import place_of


def call(
    name: str,
    tensors: tuple[Any, ...],
    attributes: Mapping[str, Any],
    out: Any,
    device: str | Device | None,
    output_type: DataTypeLike | None = None,
    sizes: Sequence[int] | None = None,
    wanted: Mapping[str, bool] | None = None,
    graph: GraphBase | None = None,
    form: Form | None = None,
) -> Any:
    """Run an operator on arrays, or add it to a graph.

    Args:
        name: DirectML's name of the operator.
        tensors: its inputs in the desc's order, None for absent ones, and a sequence for an array of tensors.
            They are NumPy arrays, or arrays of other libraries (through DLPack) in host memory or on a CUDA
            device. Or they are tensors of one graph, of which the call becomes a node. Beside arrays in host
            memory and tensors of a graph they may be numbers. Where all sizes must be equal, sizes of 1 and
            missing dimensions are repeated.
        attributes: all its attributes by their Python names, in the desc's order.
        out: an array for the output, a tuple with one for each of several outputs, or None for new ones. It
            may be an input where DirectML allows in-place execution.
        device: a device, its kind, or None for the device that the arrays are on. Arrays in host memory may
            be given with any device: "cuda" copies them there and the result back.
        output_type: the type of the output whose type the call may choose.
        sizes: the sizes of the first output, or along the axis those of the parts.
        wanted: for each of the optional outputs, by Python name, whether the call asks for it.
        graph: a graph that an operator without inputs is added to.
        form: the form of a call on tensors of PyTorch without `out` and `device`, of which `latest_calls`
            has no function, or one that did not run.

    Returns:
        The operator's one required output, where no optional one is asked for; of an array of outputs a
        tuple; else the operator's named tuple.

    Raises:
        InvalidArgument: what `validate` finds, an array that cannot be read or written as asked, or arrays
            that are not in the same memory.
        Unsupported: the operator cannot be run yet.
    """
    requested = NO_REQUESTS
    if output_type is not None or sizes is not None or wanted is not None:
        requested = requested_outputs(name, output_type, sizes, wanted)
    if device is not None and not isinstance(device, str):
        as_device(device)
    if graph is not None:
        return call_in_graph(call_of(name, tensors, attributes, out, device, requested, CAST), graph)
    key: list[Any] = [name, device, requested.type]
    if wanted is not None:
        key.append(requested.wanted)
    if attributes:
        append_keys(key, name, attributes)
    if sizes is not None:
        key.append(sizes_key(sizes))
    given = tensors if out is None else (*tensors, out)
    if known_readers and given and (reader := known_readers.get(type(given[0]))) is not None:
        length = len(key)
        addresses: list[int] = []
        if reader.read(given, key, addresses):
            whole = tuple(key)
            found = _torch_plans.find(whole)
            if found is None:
                call = call_of(name, tensors, attributes, out, device, requested, NUMPY_CAST)
                found = _torch_plans.keep(whole, _plan(_on_arrays(call, CAST), reader))
            if out is not None or not found.is_single:
                return found.run_at_addresses(addresses, tensors, out)
            if form is not None and found.program is not None:
                latest_calls.learn(form, found, reader, tensors)
            return found.run_new(addresses)
        del key[length:]
    for tensor in given:
        if type(tensor) is np.ndarray:
            key += tensor.dtype, tensor.shape, tensor.strides
        elif tensor is None:
            key.append(None)
        else:
            learn_reader(type(tensor))
            return _call_on_any(call_of(name, tensors, attributes, out, device, requested, NUMPY_CAST))
    plan = _plans.find(tuple(key))
    if plan is None:
        plan = _plans.keep(
            tuple(key), _plan(call_of(name, tensors, attributes, out, device, requested, NUMPY_CAST))
        )
    if plan.is_single:
        return plan.run_single(tensors, out)
    return plan.call.result(plan.run(tensors, None if out is None else (out,)))


class _Plan:
    """A compiled call: the arrays of every later call have the layouts that it was made for.

    Args:
        call: the call.
        program: its program; None: a tensor without elements leaves nothing to compute.
        outputs: the outputs.
        device: the device.
        reader: PyTorch's functions, if the call is on tensors of it.
    """

    def __init__(
        self,
        call: Call,
        program: Program | None,
        outputs: Sequence[Layout],
        device: Device,
        reader: TorchTensors | None,
    ) -> None:
        self.call, self.device, self.program, self.outputs = call.without_arrays(), device, program, outputs
        self.is_single = not returns_tuple(call.name, call.requested.wanted)
        self.direct: Direct | None = None
        self.fits: Callable[..., bool] | None = None
        self.is_running = False
        # Where no tensor has dimensions, the result has none.
        has_dimensions = any(each is not None and each.ndim for each in call.tensors) or not call.tensors
        sizes = [each.sizes if has_dimensions or each.sizes != (1,) else () for each in outputs]
        if reader is None:
            self.makers: list[Callable[[], Any]] = [
                array_maker(*each) for each in zip(sizes, [o.type.numpy for o in outputs], strict=True)
            ]
        else:
            is_truth = returns_truth(call.name)
            self.makers = [
                reader.maker(size, o.type, is_truth) for size, o in zip(sizes, outputs, strict=True)
            ]
        self.places = list[OutputPlace]()
        if program is not None:
            self.places = [OutputPlace(call, program, number) for number in range(len(outputs))]
            self._instantiate(program)

    def run_single(self, tensors: tuple[Array | None, ...], out: Array | None) -> Array:
        """Bind the arrays of a call with one output, dispatch, and return the output."""
        result = self.makers[0]() if out is None else out
        addresses = [address_of(tensor) for tensor in tensors if tensor is not None]
        addresses.append(address_of(result))
        if out is not None and not (out.flags.writeable and self._may_write(addresses)):
            check_outs(self.call, tensors, (out,), memory_of)
        self._dispatch(addresses)
        return result

    def run(self, tensors: tuple[Array | None, ...], outs: tuple[Array, ...] | None) -> tuple[Array, ...]:
        """Bind the arrays, dispatch, and return the outputs."""
        results = tuple([make() for make in self.makers]) if outs is None else outs
        addresses = [address_of(tensor) for tensor in tensors if tensor is not None]
        addresses += [address_of(result) for result in results]
        if outs is not None and not (
            all(each.flags.writeable for each in outs) and self._may_write(addresses)
        ):
            check_outs(self.call, tensors, outs, memory_of)
        self._dispatch(addresses)
        return results

    def run_new(self, addresses: list[int]) -> Any:
        """Run a call with one output on tensors at these addresses, and return a new tensor."""
        result = self.makers[0]()
        addresses.append(result.data_ptr())
        self._dispatch(addresses)
        return result

    def run_at_addresses(self, addresses: list[int], tensors: tuple[Any, ...], out: Any) -> Any:
        """Run the call on tensors at these addresses, and return the result.

        Args:
            addresses: those of the tensors, and of `out`.
            tensors, out: the tensors, for what is checked element by element.
        """
        if out is not None:
            if not self._may_write(addresses):
                given, labels = (*tensors, out), (*self.call.labels, *self.call.out_labels(1))
                arrays = [
                    None if each is None else as_numpy(each, label)
                    for each, label in zip(given, labels, strict=True)
                ]
                check_outs(self.call, arrays[:-1], arrays[-1:], memory_of)
            self._dispatch(addresses)
            return out
        results = [make() for make in self.makers]
        addresses += [result.data_ptr() for result in results]
        self._dispatch(addresses)
        return self.call.result(results)

    def _may_write(self, addresses: list[int]) -> bool:
        """Return whether the outputs, whose addresses are the last ones, surely share no memory."""
        first = len(addresses) - len(self.places) + 1
        return all(place.is_sound(addresses[: first + n]) for n, place in enumerate(self.places))

    def _instantiate(self, program: Program) -> None:
        """Make an instance of the program."""
        layouts, backend = (*program.inputs, *self.outputs), self.device._backend
        instance = call_maker(program, self.device)()
        instance = backend.over_host_memory(instance, layouts, len(program.inputs))
        self.bind, self.run_bound = backend.binder(instance, len(layouts)), instance.dispatch
        self.misaligned = max(each.type.bytes for each in layouts) - 1
        self.is_running = False

    def _dispatch(self, addresses: list[int]) -> None:
        """Bind addresses and run the call."""
        if self.is_running:
            # A call by the handler of a signal that came within this one.
            other = copy(self)
            assert self.program is not None
            other._instantiate(self.program)
            other._dispatch(addresses)
            return
        if self.program is None:
            return
        self.is_running = True
        try:
            misaligned = self.misaligned
            for address in addresses:
                if address & misaligned:
                    self._reject_misaligned(addresses)
            self.bind(*addresses)
            self.run_bound()
        except DeviceRemoved as error:
            self.device._lose(error)
            raise
        finally:
            self.is_running = False

    def _reject_misaligned(self, addresses: list[int]) -> None:
        call, outputs = self.call, self.outputs
        assert self.program is not None
        given = zip(call.labels, call.tensors, strict=True)
        labels = [label for label, tensor in given if tensor is not None] + [*call.out_labels(len(outputs))]
        layouts = (*self.program.inputs, *outputs)
        for label, layout, address in zip(labels, layouts, addresses, strict=True):
            require_aligned(address, layout.type, label)


_plans: Plans[_Plan] = Plans()
_torch_plans: Plans[_Plan] = Plans()
latest_calls = LatestCalls()


def _plan(call: Call, reader: TorchTensors | None = None) -> _Plan:
    """Validate and compile a call on NumPy arrays, which may be views of PyTorch's tensors."""
    where = as_device(call.device)
    where._require_present()
    inputs = [
        None if array is None else layout_of_array(array, label)
        for array, label in zip(call.tensors, call.labels, strict=True)
    ]
    outs = None if call.outs is None else _layouts_of_outs(call, call.outs)
    if any(each is not None and 0 in each.sizes for each in inputs):
        outputs = outputs_without_elements(call, inputs, where.feature_level)
        for label, given, wanted in zip(call.out_labels(len(outs or ())), outs or (), outputs, strict=False):
            require_array(label, given, wanted)
        return _Plan(call, None, outputs, where, reader)
    program = program_of_call(call, inputs, outs, where.feature_level)
    return _Plan(call, program, program.outputs, where, reader)


def _layouts_of_outs(call: Call, outs: tuple[Array, ...]) -> list[Layout]:
    layouts = []
    for array, label in zip(outs, call.out_labels(len(outs)), strict=True):
        if not returns_truth(call.name):
            reject_truth_values(array, label)
        layouts.append(layout_of_array(array, label))
    return layouts


def _call_on_any(call: Call) -> Any:
    """Run a call on arrays of any kind in any memory, on tensors of a graph, or on lists of these.

    New arrays are of the kind of the first one that is given.
    """
    arrays = (*call.tensors, *(call.outs or ()))
    other = next((each for each in arrays if each is not None and type(each) is not np.ndarray), None)
    if other is not None and (place := place_of(other)) is not None:
        return call_on_stream(place, other, call)
    if any(isinstance(tensor, GraphTensor) for tensor in call.tensors):
        return call_in_graph(call)
    require_running(call.name)
    for array in arrays:
        if (place := place_of(array)) is not None:
            return call_on_stream(place, array, call)
    kind = next((tensor for tensor in call.tensors if not isinstance(tensor, int | float | None)), None)
    cast = NUMPY_CAST if other is None or isinstance(kind, np.ndarray) else CAST
    results = _results(_on_arrays(call, cast))
    if call.outs is not None:
        return call.result(call.outs)
    made = [like(kind, result) for result in results]
    return call.result([as_truth(each) for each in made] if returns_truth(call.name) else made)


def _on_arrays(call: Call, cast: str) -> Call:
    """Return the same call on NumPy arrays over the same memory."""
    outs = None
    if call.outs is not None:
        labels = call.out_labels(len(call.outs))
        outs = tuple([as_numpy(*pair, writable=True) for pair in zip(call.outs, labels, strict=True)])
    return call.on(_as_arrays(call, outs), outs, cast)


def _results(call: Call) -> tuple[Array, ...]:
    """Return the outputs of a call on NumPy arrays."""
    key: list[Any] = call.key()
    for array in (*call.tensors, *(call.outs or ())):
        key += (None,) if array is None else (array.dtype, array.shape, array.strides)
    plan = _plans.find(tuple(key))
    if plan is None:
        plan = _plans.keep(tuple(key), _plan(call))
    return plan.run(call.tensors, call.outs)


def _as_arrays(call: Call, outs: tuple[Array, ...] | None) -> tuple[Array | None, ...]:
    """Return the tensors of a call as NumPy arrays. Numbers get the type of the arrays beside them."""
    has_array = any(not isinstance(tensor, int | float | None) for tensor in call.tensors)
    numbers = [has_array and isinstance(tensor, int | float) for tensor in call.tensors]
    arrays = [
        None if tensor is None or is_number else as_numpy(tensor, label)
        for tensor, label, is_number in zip(call.tensors, call.labels, numbers, strict=True)
    ]
    if not any(numbers):
        return tuple(arrays)
    types = {
        position: data_type_of(array, call.labels[position])
        for position, array in enumerate(arrays)
        if array is not None
    }
    requested = call.requested if outs is None else written(call, _layouts_of_outs(call, outs))
    for position, is_number in enumerate(numbers):
        if is_number:
            type, label = type_of_number(call, requested, position, types), call.labels[position]
            arrays[position] = np.asarray(exact_number(call.tensors[position], type, label), type.numpy)
    return tuple(arrays)
