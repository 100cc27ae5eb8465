"""`python -m tools.schedules`: how typical kernels are scheduled, on machines that need not be here.

For each kernel it prints all candidates: the cycles that each costs and what takes them, or why it is
refused; `*` marks the one that is taken. `--write` renews the table of these that the tests compare with.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from opendml.compiler.kernel import Kernel
from opendml.compiler.loops import loop_nest
from opendml.program.node import Operation, ordered
from opendml.targets.common.candidates import Candidate, Considered, Refusal, considered
from opendml.targets.cpu import schedule as cpu
from opendml.targets.cpu.contraction import schedule as cpu_contraction
from opendml.targets.cpu.contraction.patterns import Tiling
from opendml.targets.cpu.launch import query_of
from opendml.targets.cpu.machine import assumed
from opendml.targets.cpu.pattern import CpuMode, Header
from opendml.targets.cuda import schedule as cuda
from opendml.targets.cuda import schedule_contraction as cuda_contraction
from opendml.targets.cuda.groups import FORMS
from opendml.targets.cuda.launch import CudaQuery, nest_of
from opendml.targets.cuda.machine import Machine as Device
from opendml.targets.cuda.schedule_groups import GROUPS
from tools.machines import DEVICES, PROCESSORS
from tools.schedule_cases import kernels

TABLE = Path(__file__).parents[1] / "tests" / "targets" / "schedules.json"
MACHINES = {"cpu": tuple(PROCESSORS), "cuda": tuple(DEVICES)}
_KINDS = {
    CpuMode.CONTRACTION_DOTS: "dots",
    CpuMode.CONTRACTION_MATRICES: "matrices",
    CpuMode.CONTRACTION_MATRICES_IMAGE: "matrices",
}
"""How candidates are called whose code is not that of tiles in vectors."""
_ALIGNMENT = 256
"""Bytes to which the tensors of typical kernels are aligned."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the candidates for a kernel, as it is shown; `why` are the terms of its cost, or why it is
    refused."""

    name: str
    parameters: str
    cycles: float
    why: str = ""

    @property
    def text(self) -> str:
        """Its name and parameters."""
        return f"{self.name} {self.parameters}".strip()


@dataclass(frozen=True, slots=True)
class Schedule:
    """The candidates for a kernel, and those of them that are taken together."""

    choices: tuple[Choice, ...]
    taken: tuple[Choice, ...]

    @property
    def text(self) -> str:
        """What is taken."""
        return ", ".join(choice.text for choice in self.taken)


def schedule_on(machine: str, kernel: Kernel) -> Schedule:
    """How a machine of that name runs a kernel."""
    multiplies = any(node.operation is Operation.CONTRACTION for node in ordered(kernel.values))
    if machine in PROCESSORS:
        with assumed(PROCESSORS[machine]):
            products = _products_on_processor(kernel) if multiplies else Schedule((), ())
            query = query_of(kernel)
            return products if products.taken else _from(cpu.table(query), query, products.choices)
    device = DEVICES[machine]
    alignments = [_ALIGNMENT] * (len(kernel.loads) + len(kernel.stores))
    products = _products_on_device(kernel, device, alignments) if multiplies else Schedule((), ())
    if products.taken:
        return products
    table, query = cuda.ways(kernel, device, alignments)
    if table is not GROUPS:
        return _from(table, query, products.choices)
    forms = _from(FORMS, CudaQuery(nest_of(kernel, loop_nest(kernel)), device, alignments))
    groups = _from(table, query)
    return Schedule((*forms.choices, *groups.choices), (*groups.taken, *forms.taken))


def _products_on_processor(kernel: Kernel) -> Schedule:
    """The cheapest blocks of each tile. Nothing is taken if no tiles are."""
    ways = sorted(cpu_contraction.candidates(kernel), key=lambda way: way.order, reverse=True)
    cycles = {way.name: way.cycles for way in ways}
    choices = tuple(Choice(name, "", cycles[name]) for name in reversed(cycles))
    launch = cpu.schedule(kernel)[-1]
    tiling = launch.pattern.walk
    if not isinstance(tiling, Tiling):
        return Schedule(choices, ())
    header = Header(*launch.parameters[: len(Header._fields)])
    kind = _KINDS.get(launch.pattern.mode, "tiles")
    name = f"{kind} of {tiling.micro.rows}x{tiling.micro.vectors}"
    name += " of an image" * (tiling.image is not None)
    name += " exchanged" * ways[-1].name.count(" exchanged")
    name += " packed ahead" * (tiling.ahead or tiling.b_ahead)
    name += " in place" * tiling.a.in_place + " by rows" * tiling.b_in_place
    taken = Choice(name, f"blocks={header.chunk}x{header.block}", cycles[name])
    return Schedule(tuple(taken if each.name == name else each for each in choices), (taken,))


def _products_on_device(kernel: Kernel, machine: Device, alignments: Sequence[int]) -> Schedule:
    """All tiles. Nothing is taken if none of them is."""
    shape = cuda_contraction.Shape(kernel, alignments)
    tiles = [
        Choice(
            f"{way.tile.mode.value} {way.tile.rows}x{way.tile.columns}", f"splits={way.splits}", way.cycles
        )
        for way in cuda_contraction.candidates(shape, machine)
    ]
    whole = Choice("as any reduction", "", shape.reduced_cycles(machine))
    best = min([whole, *tiles], key=lambda choice: choice.cycles)
    return Schedule((whole, *tiles), () if best is whole else (best,))


def _from(
    table: Iterable[Candidate[Any, Any, Any]], query: object, others: tuple[Choice, ...] = ()
) -> Schedule:
    """The candidates of a table, of which the cheapest is taken, after others."""
    answers = [_choice(each) for each in considered(table, query)]
    return Schedule((*others, *answers), (min(answers, key=lambda choice: choice.cycles),))


def _choice(one: Considered) -> Choice:
    answer = one.answer
    if isinstance(answer, Refusal):
        return Choice(one.name, "", one.cycles, answer.reason)
    terms = ", ".join(f"{name} {cycles:,.0f}" for name, cycles in answer.terms.items())
    return Choice(one.name, " ".join(_numbers(answer.parameters)), one.cycles, terms)


def _numbers(parameters: object) -> Iterator[str]:
    """The numbers of parameters by name, those of the block that is one of them too."""
    for field in fields(parameters) if is_dataclass(parameters) else ():
        value = getattr(parameters, field.name)
        if isinstance(value, int) and not isinstance(value, Enum):
            yield f"{field.name}={value}"
        elif field.name == "block":
            yield from _numbers(value)


def taken(machine: str) -> dict[str, str]:
    """Return what a machine of that name takes for each typical kernel."""
    return {name: schedule_on(machine, kernel).text for name, kernel in kernels(machine)}


def report(machine: str) -> Iterator[str]:
    """Yield the lines that show all candidates on a machine of that name."""
    for name, kernel in kernels(machine):
        schedule = schedule_on(machine, kernel)
        yield f"{machine}: {name}: {schedule.text}"
        for choice in schedule.choices:
            mark = "*" if choice in schedule.taken else " "
            cost = "refused" if choice.cycles == float("inf") else f"{choice.cycles:,.0f}"
            why = f"  ({choice.why})" if choice.why else ""
            yield f"  {mark} {cost:>14}  {choice.text}{why}"


def main(arguments: Sequence[str]) -> int:
    """Prints, or writes the table."""
    parser = argparse.ArgumentParser(prog="python -m tools.schedules", description=__doc__)
    parser.add_argument("--device", choices=sorted(MACHINES), help="only its machines")
    parser.add_argument("--machine", choices=[*PROCESSORS, *DEVICES], help="only this one")
    parser.add_argument("--write", action="store_true", help="renew the table that the tests compare with")
    options = parser.parse_args(arguments)
    if options.write:
        table = {machine: taken(machine) for machine in (*PROCESSORS, *DEVICES)}
        TABLE.write_text(json.dumps(table, indent=2) + "\n", "utf-8")
        return 0
    machines = MACHINES.get(options.device, (*PROCESSORS, *DEVICES))
    for machine in [options.machine] if options.machine else machines:
        print("\n".join(report(machine)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
