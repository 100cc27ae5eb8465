"""Operators and graphs as they are compiled, without a device yet: their tensors and their work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from opendml.runtime.graphs.work import Watched, Work, work_of
from opendml.runtime.objects.slots import Slot, slots_of
from opendml.runtime.program import program_of
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.schema import operator

if TYPE_CHECKING:
    from opendml.runtime.graphs.desc import GraphDesc


@dataclass(frozen=True, slots=True)
class Compilable:
    """An operator or a graph.

    Args:
        name: what messages call it.
        inputs: its tensors; absent ones keep their place.
        outputs: likewise.
        work: over the inputs that are present, then the constants, then the outputs that are present.
        constants: the bytes of the constants.
        in_place: names of inputs that an output may lie on.
        source: what was described, with the constants as they are now.
    """

    name: str
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]
    work: Work
    constants: tuple[bytes, ...] = ()
    in_place: frozenset[str] = frozenset()
    source: OperatorDesc | GraphDesc | None = None


def compilable_of(desc: OperatorDesc) -> Compilable:
    """A single valid operator.

    Raises:
        Unsupported: it cannot be run yet.
    """
    name = desc.operator
    inputs, outputs = slots_of(desc, "INPUT_TENSOR"), slots_of(desc, "OUTPUT_TENSOR")
    program = program_of(desc)
    present = [slot for slot in outputs if slot.tensor is not None]
    watched = [
        Watched(f"{name}.{slot.name}", name, slot.name, node, layout.sizes)
        for slot, node, layout in zip(present, program.results, program.outputs, strict=True)
    ]
    return Compilable(
        name, inputs, outputs, work_of(program, watched), (), frozenset(operator(name).in_place), desc
    )
