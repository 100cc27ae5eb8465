"""From operator descs to tensor programs, and from tensor programs to what runs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from opendml.errors import InvalidArgument
from opendml.floating_point import default_mode
from opendml.operators.registry import define
from opendml.program.four_bit import in_bytes, in_halves, unpacked
from opendml.program.node import Node, source
from opendml.program.program import Layout, Program, packed
from opendml.program.scalar_type import ScalarType
from opendml.spec.enums import TensorFlags
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.schema import operator
from opendml.spec.tensor_desc import TensorDesc
from opendml.spec.wording import shown
from opendml.targets.executable import Executable
from opendml.targets.staged import Stage, StagedExecutable
from opendml.targets.watched import WatchedExecutable

if TYPE_CHECKING:
    from opendml.runtime.intermediates import Shower

DEVICE_KINDS = ("cpu", "cuda", "reference")


def cuda_index(kind: str) -> int | None:
    """The number of the CUDA device that a kind names ("cuda" is the first, "cuda:1" the second), else None.

    Raises:
        InvalidArgument: no kind of device.
    """
    name, colon, number = kind.partition(":") if isinstance(kind, str) else ("", "", "")
    if name not in DEVICE_KINDS or (colon and not (name == "cuda" and number.isdecimal())):
        raise InvalidArgument(f"device: {shown(kind)}; opendml knows {', '.join(DEVICE_KINDS)}")
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
    """Where the elements of a valid tensor lie; of those of 4 bits, where they do in an array."""
    type = ScalarType.of(tensor.data_type)
    return Layout(type, tensor.sizes, tuple(stride * type.bytes for stride in tensor.effective_strides))


def buffer_layout_of(tensor: TensorDesc) -> Layout:
    """Where the elements of a valid tensor lie in a buffer. Those of 4 bits share bytes, which alone have a
    place."""
    layout = layout_of(tensor)
    return packed(ScalarType.UINT8, [(layout.span[1] + 1) // 2]) if layout.type.is_four_bit else layout


def loaded(tensor: TensorDesc, source: Node) -> Node:
    """The elements of a tensor whose buffer is read as `buffer_layout_of` has it."""
    layout = layout_of(tensor)
    return unpacked(source, layout) if layout.type.is_four_bit else source


def stored(tensor: TensorDesc, value: Node) -> Node:
    """What a buffer of a tensor holds, as `buffer_layout_of` has it.

    Raises:
        Unsupported: elements of 4 bits with gaps between them.
    """
    layout = layout_of(tensor)
    return in_halves(value, layout) if layout.type.is_four_bit else value


def program_of(desc: OperatorDesc) -> Program:
    """The program of one valid operator: its present inputs, of which those with OWNED_BY_DML are constants,
    its outputs.

    Raises:
        Unsupported: the operator cannot be run yet.
    """
    inputs = tensors_of(desc, "INPUT_TENSOR")
    outputs = [tensor for tensor in tensors_of(desc, "OUTPUT_TENSOR") if tensor is not None]
    present = [buffer_layout_of(tensor) for tensor in inputs if tensor is not None]
    sources = iter([source(index, layout.type, layout.sizes) for index, layout in enumerate(present)])
    nodes = [None if tensor is None else loaded(tensor, next(sources)) for tensor in inputs]
    results = define(desc, nodes, [ScalarType.of(tensor.data_type) for tensor in outputs])
    written = tuple(stored(*pair) for pair in zip(outputs, results, strict=True))
    flags = [tensor.flags for tensor in inputs if tensor is not None]
    owned = frozenset(number for number, each in enumerate(flags) if each & TensorFlags.OWNED_BY_DML)
    return Program(tuple(present), tuple(map(buffer_layout_of, outputs)), written, owned)


@dataclass(frozen=True, slots=True)
class Watched:
    """A value that a debug device shows: the `output` of an operator, by the name of its field. A node
    without dimensions fills a tensor of these sizes."""

    name: str
    operator: str
    output: str
    node: Node
    sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """One program of some work: tensor `i` of it is buffer `buffers[i]` of the work."""

    program: Program
    buffers: tuple[int, ...]
    watched: tuple[Watched, ...] = ()


@dataclass(frozen=True, slots=True)
class Work:
    """Programs in their order, over a common table of buffers: the inputs, the outputs, then tensors of
    `between` bytes."""

    inputs: tuple[Layout, ...]
    outputs: tuple[Layout, ...]
    parts: tuple[Part, ...]
    between: tuple[int, ...] = ()


def work_of(program: Program, watched: Sequence[Watched] = ()) -> Work:
    """One program as work."""
    buffers = tuple(range(len(program.inputs) + len(program.outputs)))
    return Work(program.inputs, program.outputs, (Part(program, buffers, tuple(watched)),))


def compile_program(program: Program, kind: str, threads: int | None = None) -> Executable:
    """The program ready to run over host memory on a kind of device ("cpu", "cuda", "cuda:1", "reference").

    Raises:
        InvalidArgument: no such kind or device.
        Unsupported: CUDA is not available.
    """
    return compile_work(work_of(program), kind, threads)


@default_mode()
def compile_work(
    work: Work, kind: str, threads: int | None = None, shower: Shower | None = None
) -> Executable:
    """Work ready to run over host memory. `shower` is called with the values of all that is watched, at every
    dispatch.

    Raises:
        InvalidArgument, Unsupported: as `compile_program`.
    """
    tensor_count = len(work.inputs) + len(work.outputs)
    stages = [Stage(_compile_part(part, kind, threads, shower), part.buffers) for part in work.parts]
    if len(stages) == 1 and stages[0].buffers == tuple(range(tensor_count)):
        executable = stages[0].executable
    else:
        executable = StagedExecutable(stages, tensor_count, work.between)
    if cuda_index(kind) is None:
        return executable
    from opendml.targets.cuda.hosted import HostedExecutable

    return HostedExecutable((*work.inputs, *work.outputs), len(work.inputs), executable)


def _compile_part(part: Part, kind: str, threads: int | None, shower: Shower | None) -> Executable:
    if shower is None or not part.watched:
        return _compile_in_place(part.program, kind, threads)
    outputs = [packed(each.node.type, each.sizes) for each in part.watched]
    program = replace(
        part.program,
        outputs=(*part.program.outputs, *outputs),
        results=(*part.program.results, *(each.node for each in part.watched)),
    )
    shows = [partial(shower, each) for each in part.watched]
    executable = _compile_in_place(program, kind, threads)
    return WatchedExecutable(executable, len(part.buffers), outputs, shows, shower.require_idle)


def _compile_in_place(program: Program, kind: str, threads: int | None) -> Executable:
    """The program over memory of the device."""
    program, index = in_bytes(program), cuda_index(kind)
    # Targets are imported when first used: LLVM alone takes longer to load than all of opendml.
    if kind == "cpu":
        from opendml.targets.cpu.executable import CpuExecutable

        return CpuExecutable(program, threads)
    if index is not None:
        from opendml.targets.cuda.executable import CudaExecutable

        return CudaExecutable(program, index)
    from opendml.targets.reference.executable import ReferenceExecutable

    return ReferenceExecutable(program)


def on_device(executable: Executable) -> Any:
    """The program of an executable that was compiled by `compile_work` for a CUDA device, over memory on that
    device. Its instances have `enqueue`."""
    from opendml.targets.cuda.hosted import HostedExecutable

    return executable.on_device if isinstance(executable, HostedExecutable) else executable
