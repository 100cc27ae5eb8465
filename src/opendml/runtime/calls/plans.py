"""Plans: compiled calls, kept for later calls of the same form, and what all kinds of plans check."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from opendml.program.program import Program
from opendml.runtime.calls.call import Call, in_place_arguments
from opendml.runtime.memory.host_array import check_outputs
from opendml.spec.schema import operator
from opendml.targets.memory import TensorMemory

if TYPE_CHECKING:
    from opendml.runtime.objects.device import Device

MOST_PLANS = 4096


class CallPlan(Protocol):
    """A compiled call."""

    device: Device
    """Its device. When that is removed, a plan is made anew for the default device that takes its place."""


P = TypeVar("P", bound=CallPlan)


class Plans(threading.local, Generic[P]):
    """The plans of the calling thread. An instance runs one dispatch at a time, so threads share none."""

    def __init__(self) -> None:
        self._table: dict[Hashable, P] = {}

    def find(self, key: Hashable) -> P | None:
        """Return the plan of a key, which holds all that decides what a call compiles to."""
        plan = self._table.get(key)
        return None if plan is None or plan.device._removed is not None else plan

    def keep(self, key: Hashable, plan: P) -> P:
        """Keep a plan for later calls, and return it."""
        if len(self._table) >= MOST_PLANS:
            self._table.clear()
        self._table[key] = plan
        return plan


class OutputPlace:
    """The memory that an output of a call may share with the inputs, by addresses alone.

    It may share all of an input that may be written in place and has the same layout. It shares nothing with
    other outputs.

    Args:
        call: the call.
        program: the program of the call.
        number: the number of the output.
    """

    __slots__ = ("_high", "_inputs", "_low")

    def __init__(self, call: Call, program: Program, number: int) -> None:
        output = program.outputs[number]
        self._low, self._high = output.span
        given = zip(call.fields, call.tensors, strict=True)
        names = [field.name for field, tensor in given if tensor is not None]
        in_place = operator(call.name).in_place
        self._inputs = [
            (*layout.span, name in in_place and layout == output)
            for name, layout in zip(names, program.inputs, strict=True)
        ]
        self._inputs += [(*layout.span, False) for layout in program.outputs[:number]]

    def is_sound(self, addresses: Sequence[int]) -> bool:
        """Return whether the output can surely be written.

        Where it returns False, `check_outs` tells: ranges that overlap may have no element in common.

        Args:
            addresses: those of the inputs, of the outputs before this one, and of this one.
        """
        at = addresses[-1]
        start, end = at + self._low, at + self._high
        for address, (low, high, may_be_same) in zip(addresses, self._inputs, strict=False):
            if start < address + high and address + low < end and not (may_be_same and address == at):
                return False
        return True


def check_outs(
    call: Call,
    tensors: Sequence[Any],
    outs: Sequence[Any],
    memory: Callable[[Any, str], TensorMemory],
) -> None:
    """Check element by element that the outputs may be written, given the inputs.

    Args:
        call: the call.
        tensors: its tensors.
        outs: the arrays to write.
        memory: returns the memory of an array; its second argument names the array in messages.

    Raises:
        InvalidArgument: an output may not be written.
    """
    inputs = [
        None if tensor is None else (argument, memory(tensor, label))
        for argument, label, tensor in zip(call.arguments, call.labels, tensors, strict=True)
    ]
    names, labels = call.out_arguments(len(outs)), call.out_labels(len(outs))
    outputs = [(name, memory(out, label)) for name, label, out in zip(names, labels, outs, strict=True)]
    check_outputs(call.function, inputs, outputs, in_place_arguments(call.name))
