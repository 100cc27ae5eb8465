"""Prints contractions that warpgroups multiply from tiles that the copy engine loads."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from opendml.compiler.kernel import number_of
from opendml.program.node import Node
from opendml.program.scalar_type import ScalarType
from opendml.targets.common.differences import difference
from opendml.targets.common.pattern import Step
from opendml.targets.cuda.contraction_source import (
    POSITIONS,
    TilePrinter,
    contraction_of,
    loads_beside,
)
from opendml.targets.cuda.cxx import function
from opendml.targets.cuda.expression import TYPES
from opendml.targets.cuda.pattern import BFLOAT16_MODES, CudaAccess

UNIT = 8
"""Neighbouring results that a thread makes at a time: 16 bytes of FLOAT16."""


class ResidualKind(Enum):
    """A load beside a sum, by what moves it, if the results go through shared memory."""

    ROW = "rows alone, or nothing"
    COLUMNS = "columns alone, along which it is contiguous"
    RESULT = "both, along units of the type and size of those of the results"


def residual_kind(
    access: CudaAccess, type: ScalarType, row_loops: int, exchanged: bool = False
) -> ResidualKind | None:
    """Return what moves a load beside a sum, of which `row_loops` loops are over the rows of tiles; None if
    its results, of a type, cannot go through shared memory. Results are contiguous along columns, or along
    rows if these are `exchanged`."""
    if access.counter or access.guarded:
        return None
    if exchanged:
        if not any(access.rows[row_loops:]):
            return ResidualKind.ROW
        is_result = access.step is Step.CONTIGUOUS and access.type is type
        return ResidualKind.RESULT if is_result else None
    if access.step is Step.NONE:
        # The innermost loop over columns does not move it, but those around that may.
        return None if any(access.rows[row_loops:]) else ResidualKind.ROW
    if access.step is not Step.CONTIGUOUS:
        return None
    if not any(access.rows[:row_loops]):
        return ResidualKind.COLUMNS
    return ResidualKind.RESULT if access.type is type else None


class WarpgroupPrinter(TilePrinter):
    """A printer of the declarations that kernels/sm90/contraction.cuh uses."""

    def text(self) -> str:
        """Return all of the generated code."""
        constants = dict(self.pattern.constants)
        operands = [self.tensor(name, constants[f"{name}_LOAD"], 1 + constants["LOOPS_K"]) for name in "AB"]
        total = contraction_of(self.values)
        results = self._pairs(total) if constants["STAGED_BYTES"] else self.unit_of_results(total, UNIT)
        sums = f"typedef {TYPES[total.type]} Sum;"
        return "\n\n".join([self.products(), *self.head("m", "n"), sums, *operands, results])

    def products(self) -> str:
        """Print the function that adds products."""
        constants = dict(self.pattern.constants)
        turned = not constants["A_ALONG_K"], not constants["B_ALONG_K"]
        type = "bf16" if self.pattern.mode in BFLOAT16_MODES else "f16"
        return product_of_warpgroup(constants["COLUMNS_OF_TILE"], *turned, type)

    def _more_of(self, name: str, load: int) -> list[str]:
        """Return the lines that an operand has beside its type and its order."""
        return []

    def tensor(self, name: str, load: int, dimension: int = 2) -> str:
        """Print an operand: its type, its order, and where it lies along the dimensions over matrices, after
        `dimension` others."""
        access = self.pattern.loads[load]
        lines = ["Index rest, index;", *(f"to[{number}] = 0;" for number in range(2, dimension))]
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
                *(f"    {line}" for line in self._more_of(name, load)),
                "};",
            ]
        )

    def _pairs(self, total: Node) -> str:
        """Print the results of two neighbouring sums, and what they need: of their row, of their columns, and
        at each result."""
        roots = [root for _, _, root in self.stores]
        constants = dict(self.pattern.constants)
        rows, exchanged = constants["LOOPS_M"], bool(constants["EXCHANGED"])
        kinds = {
            number: residual_kind(self.pattern.loads[number], self.stores[0][1].type, rows, exchanged)
            for number in loads_beside(total, roots)
        }
        of_row, of_columns, residuals = (
            [number for number, kind in kinds.items() if kind is each] for each in ResidualKind
        )
        types = {number: TYPES[access.type] for number, access in enumerate(self.pattern.loads)}
        names = {number: f"row.l{number}" for number in of_row}
        names |= {number: f"columns.l{number}.data[lane]" for number in of_columns}
        names |= {number: f"residuals[{place}].data[lane]" for place, number in enumerate(residuals)}
        lines, name = self._compute(roots, {id(total): "sums[lane]"}, names.__getitem__)
        lines += [f"results[{place}].data[lane] = {name(root)};" for place, root in enumerate(roots)]
        position, pair = "const Parameters& p, const Offsets& at", "Vector<Narrow, 2>"
        arguments = (
            f"const Parameters& p, const OfRow& row, const OfColumns& columns, "
            f"const {pair} (&residuals)[RESIDUALS + 1], const Sum (&sums)[2], {pair} (&results)[RESULTS]"
        )
        loop = ["#pragma unroll", "for (int lane = 0; lane < 2; lane++) {", *lines, "}"]
        stores = [self._address(number) for number, _, _ in self.stores]
        return "\n\n".join(
            [
                f"typedef {TYPES[self.stores[0][1].type]} Narrow;",
                f"constexpr int RESIDUALS = {len(residuals)}, RESULTS = {len(roots)};",
                _structure("OfRow", [f"{types[number]} l{number};" for number in of_row]),
                _structure("OfColumns", [f"Vector<{types[number]}, 2> l{number};" for number in of_columns]),
                function(
                    f"OfRow of_row({position})",
                    [
                        "OfRow to;",
                        *(f"to.l{number} = {self._inline_load(number)};" for number in of_row),
                        "return to;",
                    ],
                ),
                function(
                    f"OfColumns of_columns({position})",
                    [
                        "OfColumns to;",
                        *(f"load(to.l{number}, {self._address(number)});" for number in of_columns),
                        "return to;",
                    ],
                ),
                _address_function("const char* residual_at", position, map(self._address, residuals)),
                _address_function("char* result_at", position, stores),
                function(f"void make_pair({arguments})", loop),
            ]
        )


class ConvolutionPrinter(WarpgroupPrinter):
    """A printer of convolutions, whose operands kernels/sm90/convolution.cuh loads."""

    def tensor(self, name: str, load: int, dimension: int = 2) -> str:
        """Print an operand: its type and its order."""
        return "\n".join(
            [
                f"struct {name} {{",
                f"    typedef {TYPES[self.pattern.loads[load].type]} Element;",
                f"    static constexpr bool ALONG_K = {name}_ALONG_K;",
                *(f"    {line}" for line in self._more_of(name, load)),
                "};",
            ]
        )


class BytesPrinter(WarpgroupPrinter):
    """A printer of products of integers of 8 bits, from whose sums kernels/sm90/shifts.cuh subtracts the
    products with zero points."""

    def products(self) -> str:
        """Print the function that adds products of bytes."""
        constants = dict(self.pattern.constants)
        types = [self.pattern.loads[constants[f"{name}_LOAD"]].type for name in "AB"]
        return product_of_bytes(constants["COLUMNS_OF_TILE"], *types)

    def _more_of(self, name: str, load: int) -> list[str]:
        """Return the function of the number that is subtracted from all elements of a row."""
        given = (difference(operand) for operand in contraction_of(self.values).operands)
        subtracted = next(rest for value, *rest in filter(None, given) if number_of(value) == load)
        place = "m" if name == "A" else "n"
        at_row = f"DEVICE_MEMBER static Offsets at_row({POSITIONS}) {{ return ::at_{place}(p, to, at); }}"
        return [*self._shift(subtracted), at_row]


class ByteConvolutionPrinter(ConvolutionPrinter, BytesPrinter):
    """A printer of convolutions of integers of 8 bits."""


class PartsPrinter(WarpgroupPrinter):
    """A printer of products of FLOAT32, whose TF32 parts kernels/sm90/tf32_parts.cuh multiplies."""

    def products(self) -> str:
        """Print the function that adds products of parts."""
        return product_of_registers(
            dict(self.pattern.constants)["COLUMNS_OF_TILE"], "m64n{}k8.f32.tf32.tf32", ""
        )


class PartConvolutionPrinter(ConvolutionPrinter, PartsPrinter):
    """A printer of convolutions of FLOAT32."""


def _structure(name: str, members: Iterable[str]) -> str:
    return "\n".join([f"struct {name} {{", *(f"    {member}" for member in members), "};"])


def _address_function(signature: str, position: str, addresses: Iterable[str]) -> str:
    """Print a function that returns one of some addresses, by its number."""
    cases = [f"if (number == {number}) return {address};" for number, address in enumerate(addresses)]
    return function(f"{signature}({position}, int number)", [*cases, "return nullptr;"])


def product_of_warpgroup(columns: int, a_turned: bool, b_turned: bool, type: str = "f16") -> str:
    """Return the function that adds the products of 64 rows by some columns of FLOAT16 or BFLOAT16, as the
    `type` of the instruction says, 16 along k.

    An operand is turned if it is contiguous along its rows rather than along k. The arguments `a` and `b` are
    made by `descriptor` of kernels/sm90/contraction.cuh.
    """
    sums = columns // 2
    places = ", ".join(f"%{number}" for number in range(sums))
    outputs = ", ".join(f'"+f"(sums[{number}])' for number in range(sums))
    instruction = f"wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.{type}.{type}"
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


def product_of_bytes(columns: int, a: ScalarType, b: ScalarType) -> str:
    """Return the function that adds the products of 64 rows by some columns of integers of 8 bits, 32 along
    k, along which both operands are contiguous."""
    sums = columns // 2
    places = ", ".join(f"%{number}" for number in range(sums))
    outputs = ", ".join(f'"+r"(sums[{number}])' for number in range(sums))
    types = ".".join("s8" if each is ScalarType.INT8 else "u8" for each in (a, b))
    instruction = f"wgmma.mma_async.sync.aligned.m64n{columns}k32.s32.{types}"
    arguments = f"int (&sums)[{sums}], unsigned long long a, unsigned long long b, bool adds"
    return function(
        f"void multiply_warpgroup({arguments})",
        [
            'asm volatile("{ .reg .pred adds;\\n"',
            f'             "setp.ne.b32 adds, %{sums + 2}, 0;\\n"',
            f'             "{instruction} {{{places}}}, %{sums}, %{sums + 1}, adds; }}"',
            f"             : {outputs}",
            '             : "l"(a), "l"(b), "r"((int)adds));',
        ],
    )


def product_of_registers(columns: int, form: str, turned: str) -> str:
    """Return the function that adds the products of 64 rows by some columns. The rows lie in registers as
    `multiply_matrices` takes them, the columns in shared memory.

    Args:
        columns: the columns of the products.
        form: the sizes and types in the name of the instruction.
        turned: the last argument of the instruction, which says that columns are contiguous, if it has one.
    """
    sums = columns // 2
    places = ", ".join(f"%{number}" for number in range(sums))
    rows = ", ".join(f"%{sums + number}" for number in range(4))
    outputs = ", ".join(f'"+f"(sums[{number}])' for number in range(sums))
    values = ", ".join(f'"r"(a[{number}])' for number in range(4))
    instruction = f"wgmma.mma_async.sync.aligned.{form.format(columns)}"
    arguments = f"float (&sums)[{sums}], const unsigned (&a)[4], unsigned long long b, bool adds"
    return function(
        f"void multiply_warpgroup({arguments})",
        [
            'asm volatile("{ .reg .pred adds;\\n"',
            f'             "setp.ne.b32 adds, %{sums + 5}, 0;\\n"',
            f'             "{instruction} {{{places}}}, "',
            f'             "{{{rows}}}, %{sums + 4}, adds, 1, 1{turned}; }}"',
            f"             : {outputs}",
            f'             : {values}, "l"(b), "r"((int)adds));',
        ],
    )
