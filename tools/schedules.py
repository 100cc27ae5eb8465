"""`python -m tools.schedules`: how typical kernels are scheduled, on machines that need not be here.

For each kernel it prints all candidates: the cycles that each costs and what takes them, or why it is
refused; `*` marks the one that is taken. `--write` renews the table of these that the tests compare with.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from opendml.compiler.kernel import Kernel
from opendml.targets.common.candidates import Estimate, Query, Refusal, Table, cheapest_estimate
from opendml.targets.cpu import schedule as cpu
from opendml.targets.cpu.contraction.chain import Way
from opendml.targets.cpu.contraction.tiles import TileChoice
from opendml.targets.cpu.machine import assumed
from opendml.targets.cuda import schedule as cuda
from tools.machines import DEVICES, PROCESSORS
from tools.schedule_cases import kernels

TABLE = Path(__file__).parents[1] / "tests" / "targets" / "schedules.json"
MACHINES = {"cpu": tuple(PROCESSORS), "cuda": tuple(DEVICES)}
_ALIGNMENT = 256
"""Bytes to which the tensors of typical kernels are aligned."""


@dataclass(frozen=True, slots=True)
class Considered:
    """The answer of a candidate, for people and tests to read."""

    name: str
    answer: Estimate[Any] | Refusal

    @property
    def cycles(self) -> float:
        """The estimated cycles; infinity if the candidate refuses."""
        return self.answer.cycles if isinstance(self.answer, Estimate) else float("inf")


def considered(table: Table[Query, Any], query: Query) -> Iterator[Considered]:
    """Yield the answers of all candidates; for one that searches, the best estimate of each name."""
    for candidate in table:
        if candidate.alternatives is None:
            yield Considered(candidate.name, candidate.estimate(query))
            continue
        found: dict[str, Estimate[Any]] = {}
        for each in candidate.alternatives(query):
            if each.name not in found or each.order < found[each.name].order:
                found[each.name] = each
        for name, each in found.items():
            yield Considered(name, each)
        if not found:
            yield Considered(candidate.name, candidate.estimate(query))


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
    """Return how a machine of that name runs a kernel."""
    if machine in PROCESSORS:
        with assumed(PROCESSORS[machine]):
            return _schedule(*cpu.table_of(kernel))
    alignments = [_ALIGNMENT] * (len(kernel.loads) + len(kernel.stores))
    return _schedule(*cuda.table_of(kernel, DEVICES[machine], alignments))


def _schedule(table: Table[Any, Any], query: Any) -> Schedule:
    """Return the candidates of a table, of which the cheapest is taken, and those of the tables after it."""
    answers = list(considered(table, query))
    best, estimate = cheapest_estimate(table, query)
    taken = _choice(Considered(estimate.name or best.name, estimate))
    choices = tuple(taken if each.name == taken.name else each for each in map(_choice, answers))
    if best.then is None:
        return Schedule(choices, (taken,))
    rest = _schedule(*best.then(query, estimate.choice))
    return Schedule((*choices, *rest.choices), (*rest.taken, taken))


def _choice(one: Considered) -> Choice:
    answer = one.answer
    if isinstance(answer, Refusal):
        return Choice(one.name, "", one.cycles, answer.reason)
    terms = ", ".join(f"{name} {cycles:,.0f}" for name, cycles in answer.terms.items())
    return Choice(one.name, " ".join(_numbers(answer.choice)), one.cycles, terms)


def _numbers(choice: object) -> Iterator[str]:
    """Yield the numbers of a choice by name, except those that are defaults."""
    if isinstance(choice, TileChoice | Way):
        yield (
            f"blocks={choice.rows}x{choice.columns}"
            if isinstance(choice, TileChoice)
            else f"rows={choice.rows}"
        )
        return
    for field in fields(choice) if is_dataclass(choice) else ():
        value = getattr(choice, field.name)
        if isinstance(value, int) and not isinstance(value, Enum) and value != field.default:
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
