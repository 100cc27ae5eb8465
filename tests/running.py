"""Runs one operator on arrays, and makes the memory that tensors of any layout need."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from opendml import Device, TensorDataType, TensorDesc, Unsupported
from opendml.compiler.fuse import fuse
from opendml.compiler.simplify import simplify
from opendml.program.program import Program
from opendml.program.scalar_type import ScalarType
from opendml.runtime.host_array import Array
from opendml.runtime.program import program_of, tensors_of
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.tensor_desc import reach
from opendml.targets.cpu.launch import Launch
from opendml.targets.cpu.schedule import schedule


@cache
def device_kinds() -> tuple[str, ...]:
    """The kinds of devices that are here: "cuda" only with a GPU."""
    try:
        Device("cuda")
    except Unsupported:
        return ("cpu", "reference")
    return ("cpu", "reference", "cuda")


FLOATS = (TensorDataType.FLOAT32, TensorDataType.FLOAT16)


def numpy_type(tensor: TensorDesc) -> np.dtype[Any]:
    """The NumPy type of a tensor's elements."""
    return ScalarType.of(tensor.data_type).numpy


def run(desc: OperatorDesc, inputs: Sequence[Array | None], device: Device | str = "cpu") -> Array:
    """The first output of the operator: an array of its tensor's sizes over new memory of its layout.

    `inputs` are contiguous memory, in the desc's order, None for absent tensors.
    """
    where = device if isinstance(device, Device) else Device(device)
    (tensor,) = tensors_of(desc, "OUTPUT_TENSOR")
    assert tensor is not None
    memory = memory_for(tensor)
    where.compile_operator(where.create_operator(desc)).bind(inputs, [memory]).dispatch()
    return elements(memory, tensor)


def launches(desc: OperatorDesc) -> list[Launch]:
    """How the CPU runs the desc's kernels."""
    program = program_of(desc)
    kernels = fuse(Program(program.inputs, program.outputs, simplify(program.results))).kernels
    return [launch for kernel in kernels for launch in schedule(kernel)]


def memory_for(tensor: TensorDesc) -> Array:
    """Zeroed memory for a tensor: exactly the elements from its first to its last."""
    return np.zeros(reach(tensor.sizes, tensor.effective_strides), numpy_type(tensor))


def elements(memory: Array, tensor: TensorDesc) -> Array:
    """The tensor in its memory, as an array of its sizes."""
    strides = [stride * memory.itemsize for stride in tensor.effective_strides]
    return np.lib.stride_tricks.as_strided(memory, tensor.sizes, strides)


def laid_out(values: Array, tensor: TensorDesc) -> Array:
    """Memory of the tensor's layout (without strides of 0) that holds `values`."""
    memory = memory_for(tensor)
    elements(memory, tensor)[...] = values
    return memory


def same_bits(a: Array, b: Array) -> bool:
    """Whether two arrays have the same elements, bit by bit; all NaN are one."""
    both_nan = np.isnan(a) & np.isnan(b)
    unsigned = np.dtype(f"u{a.itemsize}")
    left, right = (np.ascontiguousarray(array).view(unsigned) for array in (a, b))
    return a.dtype == b.dtype and a.shape == b.shape and bool(np.all((left == right) | both_nan))
