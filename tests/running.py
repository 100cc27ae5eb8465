"""Runs one operator on arrays, and makes the memory that tensors of any layout need."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from opendml import Device, TensorDataType, TensorDesc, Unsupported
from opendml.compiler.fuse import Abilities, fuse
from opendml.compiler.simplify import simplify
from opendml.program.program import Program
from opendml.program.scalar_type import ScalarType
from opendml.runtime.memory.host_array import Array
from opendml.runtime.program import program_of, tensors_of
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.schema import operator
from opendml.spec.tensor_desc import reach
from opendml.targets.cpu.contraction.chain import is_chained
from opendml.targets.cpu.launch import CpuLaunch
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
    """The only output of the operator; otherwise as `run_all`."""
    (result,) = run_all(desc, inputs, device)
    return result


def run_all(desc: OperatorDesc, inputs: Sequence[Array | None], device: Device | str = "cpu") -> list[Array]:
    """The outputs that the desc has: arrays of their tensors' sizes over new memory of their layouts.

    `inputs` are contiguous memory, in the desc's order, None for absent tensors.
    """
    where = device if isinstance(device, Device) else Device(device)
    tensors = tensors_of(desc, "OUTPUT_TENSOR")
    memory = [None if tensor is None else memory_for(tensor) for tensor in tensors]
    where.compile_operator(where.create_operator(desc)).bind(inputs, memory).dispatch()
    return [
        elements(data, tensor)
        for data, tensor in zip(memory, tensors, strict=True)
        if data is not None and tensor is not None
    ]


def on_arrays(
    desc: type[OperatorDesc],
    inputs: Sequence[Array | Sequence[Array] | None],
    outputs: Sequence[Array | Sequence[Array] | None],
    device: Device | str,
    **attributes: Any,
) -> list[Array]:
    """The outputs of an operator on arrays, all packed.

    Args:
        desc: its class.
        inputs: in the desc's order; several arrays for an array of tensors, None for absent ones.
        outputs: arrays of the types and sizes of the outputs, likewise.
        device: where it runs.
        attributes: by their Python names.
    """
    fields = operator(desc.operator).tensors
    given = dict(zip((f.python_name for f in fields if f.kind == "INPUT_TENSOR"), inputs, strict=True))
    made = dict(zip((f.python_name for f in fields if f.kind == "OUTPUT_TENSOR"), outputs, strict=True))
    tensors = {name: _described(value) for name, value in (given | made).items()}
    flat: list[Array | None] = []
    for value in inputs:
        flat.extend([value] if value is None or isinstance(value, np.ndarray) else value)
    memory = [None if array is None else np.ascontiguousarray(array).reshape(-1) for array in flat]
    return run_all(desc(**tensors, **attributes), memory, device)


def _described(value: Array | Sequence[Array] | None) -> Any:
    if value is None:
        return None
    if isinstance(value, np.ndarray):
        return TensorDesc(TensorDataType[value.dtype.name.upper()], value.shape)
    return [_described(each) for each in value]


def launches(desc: OperatorDesc) -> list[CpuLaunch]:
    """How the CPU runs the desc's kernels."""
    program = program_of(desc)
    program = Program(program.inputs, program.outputs, simplify(program.results))
    kernels = fuse(program, Abilities(True, True, is_chained)).kernels
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
