"""From operator descs to tensor programs, and from tensor programs to what runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opendml.errors import InvalidArgument
from opendml.operators.registry import define
from opendml.program.node import source
from opendml.program.program import Layout, Program
from opendml.program.scalar_type import ScalarType
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.schema import operator
from opendml.spec.tensor_desc import TensorDesc
from opendml.targets.executable import Executable

if TYPE_CHECKING:
    from opendml.targets.cuda.executable import CudaExecutable

DEVICE_KINDS = ("cpu", "cuda", "reference")


def cuda_index(kind: str) -> int | None:
    """The number of the CUDA device that a kind names ("cuda" is the first, "cuda:1" the second), else None.

    Raises:
        InvalidArgument: no kind of device.
    """
    name, colon, number = kind.partition(":") if isinstance(kind, str) else ("", "", "")
    if name not in DEVICE_KINDS or (colon and not (name == "cuda" and number.isdecimal())):
        raise InvalidArgument(f"device: {kind!r}; opendml knows {', '.join(DEVICE_KINDS)}")
    return int(number or 0) if name == "cuda" else None


def tensors_of(desc: OperatorDesc, kind: str) -> list[TensorDesc | None]:
    """The tensors of a desc of the kind INPUT_TENSOR or OUTPUT_TENSOR, in the desc's order; arrays are
    flattened."""
    result: list[TensorDesc | None] = []
    for field in operator(desc.operator).tensors:
        if field.kind == kind:
            value = getattr(desc, field.python_name)
            result.extend(value if isinstance(value, tuple) else [value])
    return result


def layout_of(tensor: TensorDesc) -> Layout:
    """Where the elements of a valid tensor lie."""
    type = ScalarType.of(tensor.data_type)
    return Layout(type, tensor.sizes, tuple(stride * type.bytes for stride in tensor.effective_strides))


def program_of(desc: OperatorDesc) -> Program:
    """The program of one valid operator: its present inputs, its outputs.

    Raises:
        Unsupported: the operator cannot be run yet.
    """
    inputs = tensors_of(desc, "INPUT_TENSOR")
    outputs = [layout_of(tensor) for tensor in tensors_of(desc, "OUTPUT_TENSOR") if tensor is not None]
    present = [layout_of(tensor) for tensor in inputs if tensor is not None]
    sources = iter([source(index, layout.type, layout.sizes) for index, layout in enumerate(present)])
    nodes = [None if tensor is None else next(sources) for tensor in inputs]
    return Program(tuple(present), tuple(outputs), define(desc, nodes, [layout.type for layout in outputs]))


def compile_program(program: Program, kind: str, threads: int | None = None) -> Executable:
    """The program ready to run over host memory on a kind of device ("cpu", "cuda", "cuda:1", "reference").

    Raises:
        InvalidArgument: no such kind or device.
        Unsupported: CUDA is not available.
    """
    index = cuda_index(kind)
    # Targets are imported when first used: LLVM alone takes longer to load than all of opendml.
    if kind == "cpu":
        from opendml.targets.cpu.executable import CpuExecutable

        return CpuExecutable(program, threads)
    if index is not None:
        from opendml.targets.cuda.hosted import HostedExecutable

        return HostedExecutable(program, index)
    from opendml.targets.reference.executable import ReferenceExecutable

    return ReferenceExecutable(program)


def on_device(executable: Executable) -> CudaExecutable:
    """The same program, compiled by `compile_program` for a CUDA device, over memory on that device."""
    from opendml.targets.cuda.hosted import HostedExecutable

    assert isinstance(executable, HostedExecutable)
    return executable.on_device
