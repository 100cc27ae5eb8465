"""Masks of vectors for which the processor has no masked loads, stores or gathers.

LLVM makes a chain of branches of each of these, one branch for each lane. A tail of 32 bytes takes 5 times as
long to compile then, and longer to run.
"""

from __future__ import annotations

from opendml.targets.cpu import ir
from opendml.targets.cpu.machine import machine
from opendml.targets.cpu.values import intrinsic, vector_constant

PAGE = 4096
"""Bytes of the smallest page of memory: of each, all bytes can be read or none."""


def has_masks(bits: int) -> bool:
    """Return whether the processor loads and stores elements of some bits under a mask."""
    if not machine().triple.startswith("x86_64"):
        return False
    return machine().has("avx") if bits >= 32 else machine().has("avx512bw")


def stores_by_masks(bits: int) -> bool:
    """Return whether to store the first lanes of a vector under a mask. On processors of AMD without AVX-512
    that takes 14 cycles (Zen 3), and `store_first` takes 2."""
    return has_masks(bits) and not _is_early_amd()


def gathers_by_instruction() -> bool:
    """Return whether LLVM gathers by an instruction. On Zen 3 and older ones single loads are faster."""
    return (machine().has("avx2") or machine().has("avx512f")) and not _is_early_amd()


def _is_early_amd() -> bool:
    """Return whether the processor is one of AMD without AVX-512."""
    return machine().name.startswith("znver") and not machine().has("avx512f")


def store_first(builder: ir.IRBuilder, to: ir.Value, value: ir.Value, count: ir.Value) -> None:
    """Store the first `count` lanes of a vector of integers, at least one and not all, in parts of 1, 2, 4
    and more lanes."""
    type = value.type.element
    lanes = value.type.count
    while lanes > 1:
        lanes //= 2
        low, high = (
            builder.shuffle_vector(value, value, vector_constant(ir.I32, range(first, first + lanes)))
            for first in (0, lanes)
        )
        bit = builder.and_(count, ir.I64(lanes))
        before = builder.block
        with builder.if_then(builder.icmp_signed("!=", bit, ir.I64(0))):
            builder.store(low, to, align=type.width // 8)
            inside = builder.block
        value = builder.phi(low.type)
        value.add_incoming(low, before)
        value.add_incoming(high, inside)
        to = builder.gep(to, [bit], source_etype=type)


def copy_lanes(builder: ir.IRBuilder, to: ir.Value, source: ir.Value, mask: ir.Value, bytes: int) -> None:
    """Copy the lanes of a mask, of `bytes` each, from one address to another. Nothing else is touched.

    A function does it, which keeps all registers.
    """
    lanes = builder.zext(builder.bitcast(mask, ir.IntType(mask.type.count)), ir.I64)
    name = f"copy_lanes{bytes}"
    function = builder.module.function(name) or _copying(builder.module, name, ir.IntType(8 * bytes))
    builder.call(function, [to, source, lanes])


def _copying(module: ir.Module, name: str, type: ir.Type) -> ir.Function:
    """Return the function that copies the elements whose numbers are those of the bits of an integer."""
    function = ir.Function(module, ir.VOID, [ir.POINTER, ir.POINTER, ir.I64], name)
    function.linkage, function.convention = "internal", "preserve_allcc"
    function.attributes += ["nounwind", "noinline"]
    to, source, lanes = function.args
    entry, head, body, done = map(function.append_basic_block, ("entry", "head", "lane", "done"))
    builder = ir.IRBuilder(entry)
    rest = builder.alloca(ir.I64, align=8)
    builder.store(lanes, rest)
    builder.branch(head)
    builder.position_at_end(head)
    left = builder.load(rest)
    builder.cbranch(builder.icmp_signed("==", left, ir.I64(0)), done, body)
    builder.position_at_end(body)
    lane = intrinsic(builder, "llvm.cttz.i64", ir.I64, [left, ir.I1(1)])
    element = builder.load(builder.gep(source, [lane], source_etype=type), type, align=1)
    builder.store(element, builder.gep(to, [lane], source_etype=type), align=1)
    builder.store(builder.and_(left, builder.sub(left, ir.I64(1))), rest)
    builder.branch(head)
    builder.position_at_end(done)
    builder.ret_void()
    return function
