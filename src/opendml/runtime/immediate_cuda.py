"""Immediate calls on arrays in CUDA memory: no copies, on the caller's stream, results of the caller's
kind.
"""

from __future__ import annotations

from typing import Any

from opendml.errors import InvalidArgument
from opendml.program.program import Program
from opendml.runtime.arguments import CAST, in_place_arguments, input_arguments, labels_of
from opendml.runtime.cuda_call import CudaCall
from opendml.runtime.device import Device, as_device
from opendml.runtime.host_array import check_outputs, reject_truth_values
from opendml.runtime.in_place import Placing
from opendml.runtime.operator_call import program_of_call
from opendml.runtime.places import common_place, cuda_device_of, is_array, require_device
from opendml.runtime.plans import Plans
from opendml.spec.exact import append_keys
from opendml.spec.outputs import NOTHING, Told
from opendml.spec.schema import operator
from opendml.targets.cuda.executable import CudaExecutable, StreamInstances


def call_on_cuda(
    first: Any,
    name: str,
    tensors: tuple[Any, ...],
    attributes: tuple[Any, ...],
    out: Any,
    device: str | Device | None,
    told: Told = NOTHING,
) -> Any:
    """Runs the operator `name` on arrays of which one, `first`, is on a CUDA device; as `immediate.call`.

    The work is on the stream of that array's library when this returns, like that library's own.

    Raises:
        InvalidArgument: as `immediate.call`; or the arrays are not all on one device, or not on `device`.
    """
    arrays = tensors if out is None else (*tensors, out)
    call = CudaCall(first)
    key: list[Any] = [name, device, told.type, call.device, out is None]
    append_keys(key, name, attributes)
    addresses = []
    for number, array in enumerate(arrays):
        if array is None:
            key.append(None)
            continue
        try:
            form, address = call.seen(array)
        except BufferError as error:
            raise InvalidArgument(f"{labels_of(name)[number]}: {error}") from error
        key.append(form)
        addresses.append(address)
    plan = _plans.find(tuple(key), _plan, name, attributes, tensors, out, device, call, told)
    return plan.run(call, tensors, out, addresses)


class _Plan:
    """A compiled call: the arrays of every later call have the layouts that it was made for."""

    def __init__(
        self,
        name: str,
        tensors: tuple[Any, ...],
        program: Program,
        device: Device,
        index: int,
        writable: bool,
    ) -> None:
        self.name, self.writable, self.device = name, writable, device
        (output,) = program.outputs
        self.sizes, self.type = output.sizes, output.type
        self.placing = Placing(name, program, tensors)
        self.instances = StreamInstances(CudaExecutable(program, index).instantiate_without_arena)

    def run(self, call: CudaCall, tensors: tuple[Any, ...], out: Any, addresses: list[int]) -> Any:
        """Binds the arrays and adds the work to the stream."""
        self.device._require_present()
        if out is None:
            result, address = call.library.empty(self.sizes, self.type, call.device)
            addresses.append(address)
            self.instances.enqueue(addresses, call.stream)
            call.end([])
            return call.library.finished(result)
        if not (self.writable and self.placing.is_sound(addresses)):
            self._check(call, tensors, out)
        self.instances.enqueue(addresses, call.stream)
        call.end([out])
        return out

    def _check(self, call: CudaCall, tensors: tuple[Any, ...], out: Any) -> None:
        """A closer look at whether `out` may be written, given the inputs."""
        name, labels = self.name, labels_of(self.name)
        named = [
            None if tensor is None else (argument, call.memory(tensor, label))
            for argument, label, tensor in zip(input_arguments(name), labels, tensors, strict=False)
        ]
        target = call.memory(out, labels[-1])
        check_outputs(operator(name).function_name, named, [("out", target)], in_place_arguments(name))


_plans: Plans[_Plan] = Plans()


def _plan(
    name: str,
    attributes: tuple[Any, ...],
    tensors: tuple[Any, ...],
    out: Any,
    device: str | Device | None,
    call: CudaCall,
    told: Told,
) -> _Plan:
    """The plan of a call, validated and compiled."""
    labels, arguments = labels_of(name), (*input_arguments(name), "out")
    places = []
    for argument, label, array in zip(arguments, labels, (*tensors, out), strict=True):
        if array is None:
            continue
        if not is_array(array):
            raise InvalidArgument(f"{label}: {type(array).__name__}; an array is needed")
        places.append((argument, cuda_device_of(array)))
    function = operator(name).function_name
    index = common_place(function, places)
    where = as_device(device or f"cuda:{index}")
    where._require_present()
    require_device(function, places[0][0], index, where.kind)
    reject_truth_values(out, labels[-1])
    memories = [
        None if array is None else call.memory(array, label)
        for label, array in zip(labels, (*tensors, out), strict=True)
    ]
    layouts = [None if memory is None else memory.layout for memory in memories]
    level = where.feature_level
    program = program_of_call(name, layouts[:-1], attributes, layouts[-1], level, told, CAST)
    return _Plan(name, tensors, program, where, call.device, memories[-1] is None or memories[-1].writable)
