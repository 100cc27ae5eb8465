"""Runs element-wise nodes as machine code, without the rest of the CPU target."""

from __future__ import annotations

import ctypes
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from opendml.program.node import Node, Operation, ordered
from opendml.targets.cpu import ir
from opendml.targets.cpu.expression import emit, llvm_type
from tests.program.evaluate import Array, evaluate
from tests.running import same_bits


def run_compiled(root: Node, lanes: int, x: Array) -> Array:
    """`root` of every element, by this processor."""
    engine = llvm.create_mcjit_compiler(*compiled(root, lanes))
    engine.finalize_object()
    kernel_type = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    result = np.empty_like(x)
    kernel_type(engine.get_function_address("kernel"))(x.ctypes.data, result.ctypes.data, x.size)
    return result


def compiled(root: Node, lanes: int) -> tuple[Any, Any]:
    """A loop over vectors as an optimized module, and the machine that it is for."""
    index, pointer = ir.I64, ir.POINTER
    module = ir.Module()
    function = ir.Function(module, ir.VOID, [pointer, pointer, index], "kernel")
    entry, loop, done = (function.append_basic_block() for _ in range(3))
    ir.IRBuilder(entry).branch(loop)
    builder = ir.IRBuilder(loop)
    position = builder.phi(index)
    position.add_incoming(index(0), entry)
    vector = llvm_type(root.type, lanes)
    addresses = [builder.gep(array, [position], source_etype=ir.FLOAT) for array in function.args[:2]]
    values: dict[int, ir.Value] = {}
    for node in ordered([root]):
        if node.operation is Operation.SOURCE:
            values[id(node)] = builder.load(addresses[0], align=4, typ=vector)
        else:
            values[id(node)] = emit(builder, node, lanes, [values[id(operand)] for operand in node.operands])
    builder.store(values[id(root)], addresses[1], align=4)
    following = builder.add(position, index(lanes))
    position.add_incoming(following, loop)
    builder.cbranch(builder.icmp_signed("<", following, function.args[2]), loop, done)
    ir.IRBuilder(done).ret_void()
    return optimized(str(module))


def optimized(assembly: str) -> tuple[Any, Any]:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(assembly)
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=2
    )
    passes = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
    passes.getModulePassManager().run(module, passes)
    return module, machine


def assert_same_bits(root: Node, lanes: int, x: Array) -> None:
    """Require machine code and NumPy to compute the same bits; all NaN are one."""
    x = x[: len(x) // 32 * 32]
    with np.errstate(all="ignore"):
        assert same_bits(run_compiled(root, lanes, x), evaluate(root, x))
