"""Immediate calls on arrays in the memory of a device.

They copy nothing, run on the caller's stream, and return arrays of the caller's kind.
"""

from __future__ import annotations

from typing import Any

from opendml.errors import InvalidArgument
from opendml.program.program import Program
from opendml.runtime.calls.arguments import CAST
from opendml.runtime.calls.call import Call, returns_truth
from opendml.runtime.calls.operator_call import program_of_call
from opendml.runtime.calls.plans import OutputPlace, Plans, check_outs
from opendml.runtime.graphs.compiled_work import call_maker
from opendml.runtime.memory.foreign import as_truth
from opendml.runtime.memory.host_array import reject_truth_values
from opendml.runtime.memory.ranges import common_place, require_device
from opendml.runtime.objects.device import Device, as_device
from opendml.targets.backend import StreamCall
from opendml.targets.memory import Place
from opendml.targets.registry import backend_at, place_of
from opendml.targets.streams import StreamInstances


def call_on_stream(place: Place, first: Any, call: Call) -> Any:
    """Run a call on arrays of which one, `first`, is in the memory `place` of a device; see `immediate.call`.

    When this returns, the work is on the stream of that array's library, like that library's own.

    Raises:
        InvalidArgument: see `immediate.call`; or the arrays are not all on one device, or not on `device`.
    """
    on = backend_at(place).call(first)
    outs, addresses = call.outs, list[int]()
    key = [on.place, outs is None, *call.key()]
    for number, array in enumerate(call.tensors if outs is None else (*call.tensors, *outs)):
        if array is None:
            key.append(None)
            continue
        try:
            form, address = on.identify(array)
        except BufferError as error:
            labels = (*call.labels, *call.out_labels(len(outs or ())))
            raise InvalidArgument(f"{labels[number]}: {error}") from error
        key.append(form)
        addresses.append(address)
    plan = _plans.find(tuple(key))
    if plan is None:
        plan = _plans.keep(tuple(key), _plan(call, on))
    return plan.run(on, call, addresses)


class _Plan:
    """A compiled call: the arrays of every later call have the layouts that it was made for."""

    def __init__(self, call: Call, program: Program, device: Device, writable: bool) -> None:
        self.writable, self.device = writable, device
        self.is_truth = returns_truth(call.name)
        self.outputs = [(output.sizes, output.type) for output in program.outputs]
        self.places = [OutputPlace(call, program, number) for number in range(len(program.outputs))]
        self.instances = StreamInstances(call_maker(program, device))

    def run(self, on: StreamCall, call: Call, addresses: list[int]) -> Any:
        """Bind the arrays and add the work to the stream."""
        self.device._require_present()
        if call.outs is None:
            made = [on.empty(sizes, type) for sizes, type in self.outputs]
            addresses += [address for _, address in made]
            self.instances.enqueue(addresses, on.stream)
            on.end([])
            results = [on.finished(result) for result, _ in made]
            return call.result([as_truth(each) for each in results] if self.is_truth else results)
        first = len(addresses) - len(self.places) + 1
        sound = (place.is_sound(addresses[: first + number]) for number, place in enumerate(self.places))
        if not (self.writable and all(sound)):
            check_outs(call, call.tensors, call.outs, on.memory)
        self.instances.enqueue(addresses, on.stream)
        on.end(call.outs)
        return call.result(call.outs)


_plans: Plans[_Plan] = Plans()


def _plan(call: Call, on: StreamCall) -> _Plan:
    """Validate and compile a call."""
    outs = call.outs or ()
    labels = (*call.labels, *call.out_labels(len(outs)))
    arguments = (*call.arguments, *call.out_arguments(len(outs)))
    arrays = (*call.tensors, *outs)
    places = []
    for argument, label, array in zip(arguments, labels, arrays, strict=True):
        if array is None:
            continue
        place = place_of(array)
        if place is None and not hasattr(array, "__dlpack__"):
            raise InvalidArgument(f"{label}: {type(array).__name__}; an array is needed")
        places.append((argument, place))
    place = common_place(call.function, places)
    where = as_device(call.device or str(place))
    where._require_present()
    require_device(call.function, places[0][0], place, where)
    for out, label in zip(outs, call.out_labels(len(outs)), strict=True):
        if not returns_truth(call.name):
            reject_truth_values(out, label)
    memories = [
        None if array is None else on.memory(array, label)
        for label, array in zip(labels, arrays, strict=True)
    ]
    layouts = [None if memory is None else memory.layout for memory in memories]
    count = len(call.tensors)
    written = [layout for layout in layouts[count:] if layout is not None]
    program = program_of_call(
        call.on(call.tensors, call.outs, CAST),
        layouts[:count],
        None if call.outs is None else written,
        where.feature_level,
    )
    writable = all(memory is not None and memory.writable for memory in memories[count:])
    return _Plan(call, program, where, writable)
