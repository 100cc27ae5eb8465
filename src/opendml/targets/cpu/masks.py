"""Masks of vectors for which the processor has no masked loads, stores or gathers.

LLVM makes a chain of branches of each of these, one branch for each lane. A tail of 32 bytes takes 5 times as
long to compile then, and longer to run.
"""

from __future__ import annotations

from opendml.targets.cpu import ir
from opendml.targets.cpu.machine import machine
from opendml.targets.cpu.values import intrinsic

PAGE = 4096
"""Bytes of the smallest page of memory: of each, all bytes can be read or none."""


def has_masks(bits: int) -> bool:
    """Return whether the processor loads and stores elements of some bits under a mask."""
    if not machine().triple.startswith("x86_64"):
        return False
    return machine().has("avx") if bits >= 32 else machine().has("avx512bw")


def gathers_by_instruction() -> bool:
    """Return whether LLVM gathers by an instruction. On Zen 3 and older ones single loads are faster."""
    if machine().has("avx512f"):
        return True
    return machine().has("avx2") and not machine().name.startswith("znver")


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
