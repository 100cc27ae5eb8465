"""Rules for every row of the table of kernels, and the listed exceptions with their reasons.

An exception that is no longer needed fails the tests, and `python -m tools.kernel_table --write` removes it.
Only a person who knows the reason adds one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from opendml.program.program import Program
from opendml.program.scalar_type import ScalarType
from tools.kernel_table import Row, Table, operators, subjects
from tools.machines import DEVICES

EXCEPTIONS = Path(__file__).parents[1] / "tests" / "targets" / "kernel_exceptions.json"
NARROW = frozenset(("FLOAT16", "INT8", "UINT8", "INT4", "UINT4"))
"""The types that tensor cores multiply."""
_MOST_WIDE = 0.01
"""Most bytes of wide temporaries without a reason, as a fraction of those of inputs and outputs. Statistics
and counts stay below it."""
_SMALL = 64
"""An input with so many times fewer elements than the largest one does not count for the type of the inputs:
a network of INT8 may have scales of FLOAT32."""
Exceptions = Mapping[str, Mapping[str, list[str]]]
"""The subjects that break a rule, by rule and reason."""


def subject_of(row: Row) -> str:
    """Return the name that exceptions have for the rows of a program, on all targets."""
    return f"{row.operator}: {row.name} | {row.type}"


def without_tensor_cores(table: Table) -> set[str]:
    """Find subjects of narrow types that a device multiplies without tensor cores, at least in part."""
    return {
        subject_of(row)
        for row, text in table.items()
        if row.target in DEVICES and row.type in NARROW and "FMA" in text.split(" | ")[2]
    }


def with_wide_temporaries(table: Table) -> set[str]:
    """Find subjects whose kernels write many bytes for each other in a wider type than the inputs have."""
    wide: dict[str, dict[ScalarType, float]] = {}
    for row, text in table.items():
        for type, count in _between(text):
            own = wide.setdefault(subject_of(row), {})
            own[type] = max(own.get(type, 0), count)
    found = set[str]()
    for operator in operators():
        for each in subjects(operator):
            name = subject_of(Row(*each[:3], ""))
            if name in wide:
                bits, most = _input_bits(each.program), _MOST_WIDE * _bytes(each.program)
                if any(type.bits > bits and count > most for type, count in wide[name].items()):
                    found.add(name)
    return found


RULES = {"tensor cores": without_tensor_cores, "narrow temporaries": with_wide_temporaries}
"""The functions that find the subjects that break a rule, by its name."""


def exceptions() -> Exceptions:
    """Read the listed exceptions."""
    found: Exceptions = json.loads(EXCEPTIONS.read_text("utf-8"))
    return found


def remove_unneeded(table: Table) -> None:
    """Remove the exceptions that a table does not need from the list."""
    listed = exceptions()
    kept = {
        rule: {
            reason: left
            for reason, names in listed[rule].items()
            if (left := [name for name in names if name in broken])
        }
        for rule, broken in ((rule, find(table)) for rule, find in RULES.items())
    }
    EXCEPTIONS.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", "utf-8")


def _between(text: str) -> Iterator[tuple[ScalarType, float]]:
    """Yield the types and bytes of temporaries in a cell."""
    for part in text.split(" | ")[1].split(" + "):
        size, _, name = part.partition(" ")
        if name in ScalarType.__members__:
            scale = {"k": 1e3, "M": 1e6, "G": 1e9}.get(size[-1])
            yield ScalarType[name], float(size[:-1]) * scale if scale else float(size)


def _input_bits(program: Program) -> int:
    """Return the bits of the widest type of inputs that are not small."""
    most = max((layout.element_count for layout in program.inputs), default=0)
    return max((each.type.bits for each in program.inputs if each.element_count * _SMALL >= most), default=0)


def _bytes(program: Program) -> int:
    return sum(each.element_count * each.type.bytes for each in (*program.inputs, *program.outputs))
