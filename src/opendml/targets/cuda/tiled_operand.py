"""How the operands of sums of products go to shared memory, in tiles, and how loops move accesses there."""

from __future__ import annotations

import math
from collections.abc import Sequence

from opendml.compiler.kernel import Kernel, number_of
from opendml.compiler.loops import Loop
from opendml.program.node import Node, Operation, ordered
from opendml.program.scalar_type import ScalarType
from opendml.targets.common.differences import BYTES
from opendml.targets.common.guards import guards_of
from opendml.targets.cuda.launch import VECTOR_BYTES
from opendml.targets.cuda.pattern import AccessPattern, Step

_LOAD_INSTRUCTIONS, _GUARD_INSTRUCTIONS = 8, 10
"""Instructions for each unit of an operand that is loaded, and more where it is guarded or computed."""
_NEAR = 4
"""Greatest distance, in elements, of rows of an operand that neighbouring threads load rather than
neighbours along several loops."""

_QUAD = 4
"""Bytes of a word: neighbours along k, which are stored together, and neighbours that are loaded together
where these lie along the rows."""


class TiledOperand:
    """An operand whose `rows` lie beside what is summed, `k`; tensor cores take what is a load of FLOAT16,
    and integers of 8 bits, which then lie along k.
    """

    def __init__(
        self,
        value: Node,
        kernel: Kernel,
        alignments: Sequence[int],
        batch: Sequence[Loop],
        rows: Sequence[Loop],
        k: Sequence[Loop],
    ) -> None:
        self.element_bytes = value.type.bytes
        half, self._bytes = value.type is ScalarType.FLOAT16, value.type in BYTES
        self._alignments, self._batch = alignments, batch
        self._loaded = value.operation is Operation.SOURCE
        self._load = _data_load(value, kernel)
        self._loops = {"k": k, "rows": rows}
        by_rows = len(k) > 1 and self._step("rows") <= _NEAR * self.element_bytes
        self.along_k = self._step("k") < self._step("rows") and not by_rows
        self._plain = self._loaded and not value.operands
        self.by_row = self._bytes or (self.along_k and half)
        turned = self.along_k is not self.by_row
        widest = self._widest() if self._plain and (self._bytes or not turned) else 1
        turned_bytes = turned and self._bytes
        self.copied = self._loaded and widest * self.element_bytes >= 4 and not turned_bytes
        in_words = turned_bytes and widest >= _QUAD and math.prod(loop.count for loop in rows) % _QUAD == 0
        self.unit = widest if self.copied else _QUAD if in_words else 1

    def constants(self) -> dict[str, int]:
        """The constants of the code."""
        flags = {"ALONG_K": int(self.along_k), "COPIED": int(self.copied), "BY_ROW": int(self.by_row)}
        return {**flags, "UNIT": self.unit, "QUAD": _QUAD if self._bytes and not self.copied else 1}

    def bytes(self, rows: int, depth: int) -> int:
        """Bytes of shared memory of one tile of the operand."""
        padding = VECTOR_BYTES // self.element_bytes
        if self.by_row:
            return rows * (depth + padding) * self.element_bytes
        return depth * (rows + padding) * self.element_bytes

    def loading(self, rows: int, depth: int) -> float:
        """Instructions of single threads that load one tile of the operand, about."""
        each = _LOAD_INSTRUCTIONS if self._plain else _LOAD_INSTRUCTIONS + _GUARD_INSTRUCTIONS
        return rows * depth / self.unit * each

    def _step(self, direction: str) -> int:
        """Bytes between neighbours along a direction."""
        loops = self._loops[direction]
        return (abs(loops[-1].strides[self._load]) if loops else 0) or 2**62

    def _widest(self) -> int:
        """Elements that can be copied at once."""
        number = self._load
        fast, slow = self._loops["k"], self._loops["rows"]
        fast, slow = (fast, slow) if self.along_k else (slow, fast)
        # The loops that are one in memory, innermost first.
        run, rest = 1, list(fast)
        while rest and rest[-1].strides[number] == run * self.element_bytes:
            run *= rest.pop().count
        unit = VECTOR_BYTES // self.element_bytes
        while unit > 1:
            needed = unit * self.element_bytes
            aligned = self._alignments[number] % needed == 0
            outer = (*self._batch, *slow, *rest)
            aligned = aligned and all(loop.strides[number] % needed == 0 for loop in outer)
            # A unit runs over the end of all loops alone.
            if aligned and (run % unit == 0 or (run > 1 and not rest)):
                break
            unit //= 2
        return unit


def _data_load(value: Node, kernel: Kernel) -> int:
    """The load whose place decides how an operand is read: the largest tensor that it is made of."""
    numbers = [
        number_of(node)
        for node in ordered([value])
        if node.operation is Operation.SOURCE and kernel.loads[number_of(node)].buffer is not None
    ]

    def moved(number: int) -> int:
        strides = zip(kernel.loads[number].strides, kernel.domain, strict=True)
        return math.prod(count for stride, count in strides if stride)

    return max(numbers, key=moved)


def access_patterns(
    kernel: Kernel, groups: Sequence[Loop], rows: Sequence[Loop]
) -> tuple[AccessPattern, ...]:
    """How the loops over tiles, `groups`, and those within them, `rows`, move the accesses of a kernel, each
    of which stands alone."""
    guards = guards_of(kernel.values)
    return tuple(
        AccessPattern(
            access.type,
            Step.NONE,
            tuple(loop.strides[number] != 0 for loop in groups),
            tuple(loop.strides[number] != 0 for loop in rows),
            counter=access.buffer is None,
            guarded=number in guards,
        )
        for number, access in enumerate((*kernel.loads, *kernel.stores))
    )
