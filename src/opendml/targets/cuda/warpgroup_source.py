"""Prints contractions that warpgroups multiply from tiles that the copy engine loads."""

from __future__ import annotations

from opendml.targets.cuda.contraction_source import TilePrinter, contraction_of
from opendml.targets.cuda.cxx import function
from opendml.targets.cuda.expression import TYPES

UNIT = 8
"""Neighbouring results that a thread makes at a time."""


class WarpgroupPrinter(TilePrinter):
    """Prints what kernels/sm90/contraction.cuh is written in."""

    def text(self) -> str:
        """All of it."""
        constants = dict(self.pattern.constants)
        instruction = product_of_warpgroup(
            constants["COLUMNS_OF_TILE"], not constants["A_ALONG_K"], not constants["B_ALONG_K"]
        )
        operands = [self._tensor(name, constants[f"{name}_LOAD"]) for name in "AB"]
        return "\n\n".join(
            [
                instruction,
                *self.head("m", "n"),
                *operands,
                self.unit_of_results(contraction_of(self.values), UNIT),
            ]
        )

    def _tensor(self, name: str, load: int) -> str:
        """An operand: its type, its order, and where it lies along the dimensions over matrices."""
        access = self.pattern.loads[load]
        lines, dimension = ["Index rest, index;"], 2
        for loop in reversed(range(self.pattern.group_loops)):
            lines += [
                f"rest = divide(at, p.group_count{loop});",
                f"index = at - rest * (Index)p.group_count{loop}.count;",
                "at = rest;",
            ]
            if access.groups[loop]:
                lines.append(f"to[{dimension}] = (int)index;")
                dimension += 1
        return "\n".join(
            [
                f"struct {name} {{",
                f"    typedef {TYPES[access.type]} Element;",
                f"    static constexpr int RANK = {dimension};",
                f"    static constexpr bool ALONG_K = {name}_ALONG_K;",
                "    DEVICE_MEMBER static void find_batch(const Parameters& p, Index at, int (&to)[RANK]) {",
                *(f"        {line}" for line in lines),
                "    }",
                "};",
            ]
        )


def product_of_warpgroup(columns: int, a_turned: bool, b_turned: bool) -> str:
    """The function that adds the products of 64 rows by so many columns, 16 along k, of FLOAT16; operands are
    turned where they lie along their rows rather than k. What each names them by is `descriptor` of
    kernels/sm90/contraction.cuh.
    """
    sums = columns // 2
    places = ", ".join(f"%{number}" for number in range(sums))
    outputs = ", ".join(f'"+f"(sums[{number}])' for number in range(sums))
    instruction = f"wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.f16.f16"
    arguments = f"float (&sums)[{sums}], unsigned long long a, unsigned long long b, bool adds"
    return function(
        f"void multiply_warpgroup({arguments})",
        [
            'asm volatile("{ .reg .pred adds;\\n"',
            f'             "setp.ne.b32 adds, %{sums + 2}, 0;\\n"',
            f'             "{instruction} {{{places}}}, "',
            f'             "%{sums}, %{sums + 1}, adds, 1, 1, {a_turned:d}, {b_turned:d}; }}"',
            f"             : {outputs}",
            '             : "l"(a), "l"(b), "r"((int)adds));',
        ],
    )
