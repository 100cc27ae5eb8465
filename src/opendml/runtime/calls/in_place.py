"""Whether a call may write an output where it lies: the check of every call, by addresses alone."""

from __future__ import annotations

from collections.abc import Sequence

from opendml.program.program import Program
from opendml.runtime.calls.call import Call
from opendml.spec.schema import operator


class Placing:
    """The memory that an output of a call may share with the inputs: none, or all of an input that may be
    written in place and is laid out alike. With other outputs it shares none.

    Args:
        call: the call.
        program: what it compiles to.
        number: which of the outputs.
    """

    __slots__ = ("_high", "_inputs", "_low", "is_over_itself")

    def __init__(self, call: Call, program: Program, number: int = 0) -> None:
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
        self.is_over_itself = len(self._inputs) == 1 and self._inputs[0][2]
        """Whether the only input can be the output too."""

    def is_sound(self, addresses: Sequence[int]) -> bool:
        """Whether the output, the last of the addresses, can surely be written; before it are those of the
        inputs and of the outputs before. Where not, a closer look tells: ranges that overlap may have no
        element in common."""
        at = addresses[-1]
        start, end = at + self._low, at + self._high
        for address, (low, high, may_be_same) in zip(addresses, self._inputs, strict=False):
            if start < address + high and address + low < end and not (may_be_same and address == at):
                return False
        return True
