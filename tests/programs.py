"""Programs of nodes over NumPy arrays, run on a device or evaluated by the reference."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence

import numpy as np

from opendml.compiler.fuse import fuse
from opendml.compiler.kernel import Kernel
from opendml.compiler.simplify import simplify
from opendml.floating_point import default_mode
from opendml.program.carriers import carried
from opendml.program.node import Node, source
from opendml.program.program import Layout, Program, packed
from opendml.program.scalar_type import ScalarType
from opendml.runtime.memory.host_array import Array
from opendml.targets.executable import Executable
from opendml.targets.reference.evaluate import evaluate
from opendml.targets.registry import backend_of


def layout_of(array: Array) -> Layout:
    """How an array's elements lie."""
    return Layout(ScalarType[array.dtype.name.upper()], array.shape, array.strides)


def sources(*arrays: Array) -> list[Node]:
    """The inputs of a program that reads these arrays."""
    return [
        source(number, ScalarType[array.dtype.name.upper()], array.shape)
        for number, array in enumerate(arrays)
    ]


def initialize(executable: Executable, constants: Mapping[int, int], addresses: Sequence[int]) -> None:
    """Fill all that an executable keeps, at these addresses, of constants at others."""
    copy = getattr(getattr(executable, "device", None), "copy", ctypes.memmove)
    for place, each in enumerate(executable.kept):
        if each.copied_from is not None:
            (number,) = each.recipe.constants
            copy(addresses[place], constants[number] + each.copied_from, each.size)
    for step in sorted({each.step for each in executable.kept if each.copied_from is None}):
        filled = {place: addresses[place] for place, each in enumerate(executable.kept) if each.step == step}
        read = {number: constants[number] for number in executable.constants_of(step)}
        executable.initialize(step, read, filled)


def compile_program(program: Program, kind: str) -> Executable:
    """The program ready to run on a kind of device, over memory there."""
    with default_mode():
        return backend_of(kind).compile(carried(program), None)


def run_program(results: Sequence[Node], arrays: Sequence[Array], kind: str = "cpu") -> list[Array]:
    """What a device computes."""
    layouts = tuple(packed(result.type, result.sizes) for result in results)
    program = Program(tuple(map(layout_of, arrays)), layouts, tuple(results))
    outputs = [np.full(layout.sizes, 77, layout.type.numpy) for layout in layouts]
    instance = compile_program(program, kind).instantiate()
    for buffer, array in enumerate((*arrays, *outputs)):
        instance.bind(buffer, array.ctypes.data)
    instance.dispatch()
    return outputs


def assert_agrees(results: Sequence[Node], arrays: Sequence[Array], rtol: float = 0.0) -> None:
    """Checks the CPU against the reference, element by element."""
    wanted = evaluate(results, arrays)
    for found, exact in zip(run_program(results, arrays), wanted, strict=True):
        np.testing.assert_allclose(found.astype(float), exact.astype(float), rtol=rtol, atol=rtol)


def kernels_of(results: Sequence[Node], arrays: Sequence[Array]) -> tuple[Kernel, ...]:
    """The kernels that compute results."""
    layouts = tuple(packed(result.type, result.sizes) for result in results)
    program = Program(tuple(map(layout_of, arrays)), layouts, simplify(results))
    return fuse(program).kernels
