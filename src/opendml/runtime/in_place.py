"""Whether a call may write its output where it lies: the check of every call, by addresses alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opendml.program.program import Program
from opendml.runtime.operator_call import input_names
from opendml.spec.schema import operator


class Placing:
    """The memory that the output of a call may share with the inputs: none, or all of an input that may be
    written in place and is laid out alike.

    Args:
        name: DirectML's name of the operator.
        program: what the call compiles to.
        tensors: the inputs, None for absent ones.
    """

    __slots__ = ("_high", "_inputs", "_low", "is_over_itself")

    def __init__(self, name: str, program: Program, tensors: Sequence[Any]) -> None:
        (output,) = program.outputs
        self._low, self._high = output.span
        labels = [label for label, each in zip(input_names(name), tensors, strict=True) if each is not None]
        in_place = operator(name).in_place
        self._inputs = [
            (*layout.span, label in in_place and layout == output)
            for label, layout in zip(labels, program.inputs, strict=True)
        ]
        self.is_over_itself = len(self._inputs) == 1 and self._inputs[0][2]
        """Whether the only input can be the output too."""

    def is_sound(self, addresses: Sequence[int]) -> bool:
        """Whether the output, the last of the addresses, can surely be written. Where not, a closer look
        tells: ranges that overlap may have no element in common."""
        at = addresses[-1]
        start, end = at + self._low, at + self._high
        for address, (low, high, may_be_same) in zip(addresses, self._inputs, strict=False):
            if start < address + high and address + low < end and not (may_be_same and address == at):
                return False
        return True
