"""Immediate calls on arrays in CUDA memory: no copies, on the caller's stream, results of the caller's
kind.
"""

from __future__ import annotations

from typing import Any

from opendml.errors import InvalidArgument
from opendml.program.program import Program
from opendml.runtime.cuda_call import CudaCall
from opendml.runtime.device import Device, as_device
from opendml.runtime.host_array import check_outputs
from opendml.runtime.in_place import Placing
from opendml.runtime.operator_call import NOTHING, Output, input_names, output_names, program_of_call
from opendml.runtime.places import common_place, cuda_device_of, is_array, require_device
from opendml.runtime.plans import Plans
from opendml.spec.schema import operator
from opendml.targets.cuda.executable import CudaExecutable, StreamInstances


def call_on_cuda(
    first: Any,
    name: str,
    tensors: tuple[Any, ...],
    attributes: tuple[Any, ...],
    out: Any,
    device: str | Device | None,
    told: Output = NOTHING,
) -> Any:
    """Runs the operator `name` on arrays of which one, `first`, is on a CUDA device; as `immediate.call`.

    The work is on the stream of that array's library when this returns, like that library's own.

    Raises:
        InvalidArgument: as `immediate.call`; or the arrays are not all on one device, or not on `device`.
    """
    arrays = tensors if out is None else (*tensors, out)
    call = CudaCall(first)
    key = [name, attributes, device, told, call.device, out is None]
    addresses = []
    for number, array in enumerate(arrays):
        if array is None:
            key.append(None)
            continue
        try:
            form, address = call.seen(array)
        except BufferError as error:
            raise InvalidArgument(f"{name}.{_labels(name)[number]}: {error}") from error
        key.append(form)
        addresses.append(address)
    plan = _plans.find(tuple(key), _plan, name, tensors, out, device, call, told)
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
        self.instances = StreamInstances(CudaExecutable(program, index).instantiate)

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
        named = [
            None if tensor is None else (label, call.memory(tensor, f"{self.name}.{label}"))
            for label, tensor in zip(input_names(self.name), tensors, strict=True)
        ]
        label = output_names(self.name)[0]
        target = call.memory(out, f"{self.name}.{label}")
        check_outputs(self.name, named, [(label, target)], frozenset(operator(self.name).in_place))


_plans: Plans[_Plan] = Plans()


def _plan(
    attributes: tuple[Any, ...],
    name: str,
    tensors: tuple[Any, ...],
    out: Any,
    device: str | Device | None,
    call: CudaCall,
    told: Output,
) -> _Plan:
    """The plan of a call, validated and compiled."""
    labels = _labels(name)
    places = []
    for label, array in zip(labels, (*tensors, out), strict=True):
        if array is None:
            continue
        if not is_array(array):
            raise InvalidArgument(f"{name}.{label}: {type(array).__name__}; an array is needed")
        places.append((label, cuda_device_of(array)))
    index = common_place(name, places)
    where = as_device(device or f"cuda:{index}")
    where._require_present()
    require_device(name, places[0][0], index, where.kind)
    memories = [
        None if array is None else call.memory(array, f"{name}.{label}")
        for label, array in zip(labels, (*tensors, out), strict=True)
    ]
    layouts = [None if memory is None else memory.layout for memory in memories]
    program = program_of_call(name, layouts[:-1], attributes, layouts[-1], where.feature_level, told)
    return _Plan(name, tensors, program, where, call.device, memories[-1] is None or memories[-1].writable)


def _labels(name: str) -> list[str]:
    """What messages call the arrays of a call."""
    return [*input_names(name), output_names(name)[0]]
