"""Shows the kernels of public operators and models on every target: `python -m tools.kernel_table [WORD
...]`.

A block has an operator or model and what it computes. Its lines have types of the first tensor, targets, and
for these the kernels, the bytes that they write for each other, and the units that multiply. Kernels are
fused and scheduled, but not compiled, so the machines need not be present. With words, the tool shows only
blocks whose first line has all of them. `--write` renews the table that the tests compare with.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from opendml.compiler.kernel import Kernel, KernelProgram, operations_of, placing_of
from opendml.program.node import SCANS, Operation
from opendml.program.program import Program
from opendml.program.scalar_type import ScalarType
from opendml.targets.cpu.contraction.tiling import Chaining, Tiling
from opendml.targets.cpu.launch import CpuLaunch as ProcessorLaunch
from opendml.targets.cpu.machine import assumed
from opendml.targets.cpu.pattern import CpuMode as ProcessorMode
from opendml.targets.cpu.schedule import schedule as schedule_on_processor
from opendml.targets.cuda.machine import CudaMachine as Device
from opendml.targets.cuda.planned_launch import VECTOR_BYTES
from opendml.targets.cuda.schedule import schedule as schedule_on_device
from opendml.targets.planned import Planned
from tools.machines import DEVICES, PROCESSORS, planned
from tools.model_cases import model_cases
from tools.operator_cases import all_forms

TABLE = Path(__file__).parents[1] / "tests" / "targets" / "kernel_table.txt"
COMMAND = "python -m tools.kernel_table --write"
TARGETS = (*DEVICES, *PROCESSORS)
MODEL = "MODEL"
"""The name of the operator in rows of models."""
TENSOR_CORES = ("mma", "imma", "wgmma")
"""The units of GPUs that multiply narrow types at the full rate."""
UNTILED = "FMA untiled"
"""The unit of a contraction that runs as an ordinary reduction."""
_DEVICE_UNITS = {"fma": "FMA", "few": "FMA", "short": "mma"} | {unit: unit for unit in TENSOR_CORES}
"""Units by the first word of the mode's name, for modes with tiles."""
_PACKED_UNITS = {
    ScalarType.INT8: "VNNI",
    ScalarType.UINT8: "VNNI",
    ScalarType.INT16: "PMADD",
    ScalarType.INT32: "integers",
}
"""Units of a processor's vectors, by the type in which operands are packed. Other types use FMA."""
_HEADER = f"""\
# The kernels of every public operator and of some models on every target. Renew the table with: {COMMAND}
# types | targets | kernels | bytes that they write for each other | units that multiply
"""


@dataclass(frozen=True)
class KernelSummary:
    """The kernels of a program on a target.

    Args:
        kernels: how many there are of each kind.
        between: the bytes that kernels write for other kernels, by type.
        packed: the bytes in which the CPU packs operands that are no constants, in each run.
        units: how many of the contractions each unit multiplies.
    """

    kernels: Mapping[str, int]
    between: Mapping[ScalarType, int]
    packed: int
    units: Mapping[str, int]

    @property
    def text(self) -> str:
        """Return the last columns of a line."""
        written = [f"{_size(count)} {type.name}" for type, count in self.between.items()]
        written += [f"{_size(self.packed)} packed"] * (self.packed > 0)
        return f"{_counted(self.kernels)} | {' + '.join(written) or '-'} | {_counted(self.units)}"


def _counted(counts: Mapping[str, int]) -> str:
    return " + ".join(f"{count} {name}" if count > 1 else name for name, count in counts.items()) or "-"


class Subject(NamedTuple):
    """A program of the table; `type` is that of its first tensor."""

    operator: str
    name: str
    type: str
    program: Program


class Row(NamedTuple):
    """The key of a cell of the table."""

    operator: str
    name: str
    type: str
    target: str

    def __str__(self) -> str:
        return " | ".join(self)


Table = dict[Row, str]


def operators() -> list[str]:
    """Return the operators of the table's blocks, in order; models come first."""
    return [MODEL, *sorted({form.operator for form in all_forms()})]


def subjects(operator: str) -> Iterator[Subject]:
    """Yield the programs of an operator, or of the models."""
    if operator == MODEL:
        for model in model_cases():
            yield Subject(MODEL, model.name, model.type, model.program)
    for form in all_forms():
        if form.operator == operator:
            for case in form.cases():
                yield Subject(operator, form.name, case.type, case.program)


def kernel_summary(program: Program, machine: str | Device) -> KernelSummary:
    """Return the kernels of a program on the target of a name, or on a device, for aligned tensors."""
    plan = planned(program, machine)
    if isinstance(machine, str) and machine in PROCESSORS:
        with assumed(PROCESSORS[machine]):
            return _on_processor(plan)
    return _on_device(plan, machine if isinstance(machine, Device) else DEVICES[machine])


def _on_device(plan: Planned, machine: Device) -> KernelSummary:
    units = Counter[str]()
    for kernel, times in _multiplying(plan):
        aligned = (VECTOR_BYTES,) * (len(kernel.loads) + len(kernel.stores))
        mode = schedule_on_device(kernel, machine, aligned).pattern.mode
        units[_DEVICE_UNITS.get(mode.value.split("_")[0], UNTILED)] += times
    return _summary(plan, units)


def _on_processor(plan: Planned) -> KernelSummary:
    units, packed = Counter[str](), 0
    for kernel, times in _multiplying(plan):
        launches = schedule_on_processor(kernel)
        units[_unit_of(launches[-1])] += times
        first = launches[0]
        if first.pattern.mode is ProcessorMode.CONTRACTION_PACK and not first.fixed:
            packed += first.partial_bytes * (1 if first.steady else times)
    return _summary(plan, units, packed)


def _unit_of(launch: ProcessorLaunch) -> str:
    """Return the unit that multiplies in a launch on a processor."""
    walk = launch.pattern.walk
    if not isinstance(walk, Tiling | Chaining):
        return UNTILED
    return "AMX" if walk.a.instructions.are_amx else _PACKED_UNITS.get(walk.a.packing.type, "FMA")


def _multiplying(plan: Planned) -> Iterator[tuple[Kernel, int]]:
    """Yield the kernels with contractions, and how often each runs."""
    for number, times in _runs(plan.kernels):
        kernel = plan.kernels.kernels[number]
        if Operation.CONTRACTION in operations_of(kernel.values):
            yield kernel, times


def _runs(kernels: KernelProgram) -> Iterator[tuple[int, int]]:
    """Yield the numbers of kernels, and how often each runs. Of a recurrence, only the first step counts."""
    times = [1] * len(kernels.kernels)
    for repeat in kernels.repeats:
        last = repeat.first + repeat.length * repeat.count
        times[repeat.first : last] = [repeat.count] * repeat.length + [0] * (
            repeat.length * (repeat.count - 1)
        )
    return ((number, count) for number, count in enumerate(times) if count)


def _summary(plan: Planned, units: Mapping[str, int], packed: int = 0) -> KernelSummary:
    kinds, between = Counter[str](), Counter[ScalarType]()
    for number, times in _runs(plan.kernels):
        kernel = plan.kernels.kernels[number]
        kinds[_kind(kernel, plan.launches[number])] += times
        placing = placing_of(kernel.values)
        for store in kernel.stores:
            if store.buffer == plan.kernels.arena:
                moving = zip(kernel.domain, store.strides, strict=True)
                sizes = [size for size, stride in moving if stride] if placing is None else placing.sizes
                between[store.type] += times * math.prod(sizes) * store.type.bytes
    return KernelSummary(kinds, between, packed, units)


def _kind(kernel: Kernel, modes: Iterable[str]) -> str:
    operations = operations_of(kernel.values)
    if Operation.CONTRACTION in operations:
        return "attention" if any("chain" in mode for mode in modes) else "contraction"
    if operations & SCANS:
        return "scan"
    if placing_of(kernel.values) is not None:
        return "placing"
    return "reduction" if kernel.axes else "pointwise"


def _size(count: int) -> str:
    """Return bytes with three digits, such as `25.7M`."""
    for unit, scale in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if count >= scale:
            return f"{float(f'{count / scale:.3g}'):g}{unit}"
    return str(count)


def rows(operator: str) -> Table:
    """Compute the rows of an operator, or of the models."""
    return {
        Row(*subject[:3], target): kernel_summary(subject.program, target).text
        for subject in subjects(operator)
        for target in TARGETS
    }


def rendered(table: Table) -> Iterator[str]:
    """Yield the lines of a table. Types and targets with equal cells share a line."""
    blocks: dict[tuple[str, str], dict[str, dict[str, str]]] = {}
    for (operator, name, type, target), text in table.items():
        blocks.setdefault((operator, name), {}).setdefault(type, {})[target] = text
    for (operator, name), by_type in blocks.items():
        yield f"{operator}: {name}"
        alike: dict[tuple[tuple[str, str], ...], list[str]] = {}
        for type, by_target in by_type.items():
            alike.setdefault(tuple(by_target.items()), []).append(type)
        for cells, types in alike.items():
            targets: dict[str, list[str]] = {}
            for target, text in cells:
                targets.setdefault(text, []).append(target)
            for text, names in targets.items():
                yield f"  {' '.join(types)} | {' '.join(names)} | {text}"


def parsed(lines: Iterable[str]) -> Table:
    """Read a table from its lines."""
    table: Table = {}
    operator = name = ""
    for line in lines:
        if line.startswith("  "):
            types, targets, text = line.strip().split(" | ", 2)
            for type in types.split():
                for target in targets.split():
                    table[Row(operator, name, type, target)] = text
        elif line.strip() and not line.startswith("#"):
            operator, name = line.rstrip().split(": ", 1)
    return table


def expected() -> Table:
    """Read the table that the tests compare with."""
    return parsed(TABLE.read_text("utf-8").splitlines())


def differences(before: Table, after: Table) -> Iterator[str]:
    """Describe each row that differs, before and after."""
    for row in dict.fromkeys(chain(before, after)):
        if before.get(row) != after.get(row):
            was, now = (table.get(row, "no such row") for table in (before, after))
            yield f"{row}\n  before: {was}\n  after:  {now}"


def main(arguments: Sequence[str]) -> int:
    """Print the table, or write it."""
    parser = argparse.ArgumentParser(prog="python -m tools.kernel_table", description=__doc__)
    parser.add_argument("words", nargs="*", help="only blocks whose first line has all of them")
    parser.add_argument("--write", action="store_true", help="renew the table that the tests compare with")
    options = parser.parse_args(arguments)
    if options.write:
        from tools.kernel_rules import remove_unneeded

        table = {row: text for operator in operators() for row, text in rows(operator).items()}
        TABLE.write_text(_HEADER + "".join(f"{line}\n" for line in rendered(table)), "utf-8")
        remove_unneeded(table)
        return 0
    for operator in operators():
        for subject in subjects(operator):
            if all(word in f"{subject.operator}: {subject.name}" for word in options.words):
                own = {
                    Row(*subject[:3], target): kernel_summary(subject.program, target).text
                    for target in TARGETS
                }
                print("\n".join(rendered(own)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
