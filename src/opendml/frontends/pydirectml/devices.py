"""Devices, bindings, and graphs that are compiled and run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

import opendml.runtime.objects.device as runtime
from opendml.errors import Unsupported
from opendml.frontends.pydirectml.data_types import is_castable, numpy_type
from opendml.frontends.pydirectml.enumerations import ExecutionFlags
from opendml.frontends.pydirectml.errors import Refused, refused
from opendml.frontends.pydirectml.expressions import Expression, Known, Node, Origin, Scope, Source, known
from opendml.runtime.graphs.desc import GraphDesc, InputEdge, IntermediateEdge, OperatorNode, OutputEdge
from opendml.runtime.memory.host_array import Array
from opendml.runtime.memory.packing import from_buffer
from opendml.runtime.objects.compiled import CompiledOperator
from opendml.runtime.objects.tensor_fields import tensor_fields
from opendml.runtime.program import tensors_of
from opendml.spec import descs, enums
from opendml.spec.schema import operator
from opendml.spec.tensor_desc import TensorDesc as Tensor


class TensorData(np.ndarray[Any, Any]):
    """The elements of a tensor, which `numpy.array(result)` copies: an array, and so anything with the buffer
    protocol takes it."""

    def __new__(cls, data: Any) -> TensorData:
        return np.array(data).view(cls)


class Binding:
    """An array for an input, copied, of the type of its tensor.

    Args:
        expr: the input.
        data: an array, of which only the elements in row-major order count, not the shape.
    """

    _is_strict: ClassVar[bool] = False
    """Whether arrays of other kinds are refused."""

    def __init__(self, expr: Expression, data: Any) -> None:
        tensor = known(expr, "Binding.expr").desc
        wanted, given = numpy_type(tensor.data_type), np.asarray(data)
        if self._is_strict and not is_castable(given.dtype, wanted):
            raise Refused(
                f"Binding.data: {given.dtype.name} for a tensor of {wanted.name}; "
                f"data.astype('{wanted.name}') converts it"
            )
        self._tensor = tensor
        self._data: Array | None = _bytes_of(given.astype(wanted), tensor)

    def __repr__(self) -> str:
        released = ", released" if self._data is None else ""
        return f"<Binding {self._tensor!r}{released}>"

    def release_data(self) -> None:
        """Frees the copy of the array. An input that is OWNED_BY_DML needs it no more once the model is
        initialized."""
        self._data = None


def _bytes_of(elements: Array, tensor: Tensor) -> Array:
    """The bytes of a packed array, as many as the tensor has.

    Raises:
        ValueError: it has fewer, or, for a packed tensor, more.
    """
    data, size = np.ascontiguousarray(elements).reshape(-1).view(np.uint8), tensor.size_in_bytes
    rounded = -(-data.size // 4) * 4
    if rounded < size or (rounded > size and tensor.strides is None):
        raise Refused(
            f"Binding.data: {elements.size} elements, {data.size} bytes; the tensor has sizes "
            f"{list(tensor.sizes)} and {size} bytes"
        )
    buffer = np.zeros(size, np.uint8)
    used = min(size, data.size)
    buffer[:used] = data[:used]
    return buffer


class Device:
    """Where models run: an NVIDIA GPU if there is one and it is not refused, the CPU otherwise.

    Args:
        use_gpu: False: the CPU.
        use_debug_layer: changes nothing: what the debug layers check is always checked.
    """

    def __init__(self, use_gpu: bool = True, use_debug_layer: bool = False) -> None:
        self._device = _device(bool(use_gpu))

    def __repr__(self) -> str:
        return f"dml.Device on {'CPU' if self._device.kind == 'cpu' else 'GPU'}"


def _device(use_gpu: bool) -> runtime.Device:
    if use_gpu:
        try:
            return runtime.Device("cuda")
        except Unsupported:  # there is none
            pass
    return runtime.Device("cpu")


class Model:
    """A compiled graph."""

    data: ClassVar[type[TensorData]] = TensorData
    """The class of its outputs."""

    def __init__(self, scope: GraphBuilder, flags: ExecutionFlags, outputs: Sequence[Expression]) -> None:
        recorded = Recorded(scope, outputs, "build.outputs")
        device = scope._device
        with refused():
            self._compiled: CompiledOperator = device.compile_graph(
                recorded.desc(device), enums.ExecutionFlags(int(flags))
            )
        self._tensors = self._compiled.input_tensors
        self._inputs = [
            None if each is None else np.zeros(each.size_in_bytes, np.uint8) for each in self._tensors
        ]
        self._outputs = [
            (each, np.zeros(each.size_in_bytes, np.uint8))
            for each in self._compiled.output_tensors
            if each is not None
        ]
        self._count = len(outputs)
        self._bound: Any = None

    def __repr__(self) -> str:
        return f"<Model of {self._compiled!r}>"

    def _initialize(self, bindings: Sequence[Any]) -> None:
        """Takes over the inputs that are OWNED_BY_DML."""
        self._read(bindings, owned=True)
        self._bound = self._compiled.bind(self._inputs, [buffer for _, buffer in self._outputs])

    def _dispatch(self, bindings: Sequence[Any], outputs: Sequence[Any]) -> list[TensorData]:
        """The outputs for the inputs that are not OWNED_BY_DML."""
        require_list(outputs, "outputs")
        if self._bound is None:
            raise Refused("dispatch: the model is not initialized; Device.initialize does it")
        if len(outputs) != self._count:
            problem = f"the model was built for {self._count}, in the order of `build`"
            raise Refused(f"outputs: {len(outputs)} expressions; {problem}")
        self._read(bindings, owned=False)
        self._bound.dispatch()
        pairs = zip(outputs, self._outputs, strict=False)
        return [
            from_buffer(buffer, tensor).view(self.data)
            for each, (tensor, buffer) in pairs
            if each is not None
        ]

    def _read(self, bindings: Sequence[Any], *, owned: bool) -> None:
        """Copies those bindings whose tensors are, or are not, OWNED_BY_DML."""
        if len(bindings) < len(self._inputs):
            problem = f"{len(bindings)} bindings; the graph has {len(self._inputs)} inputs, in their order"
            raise Refused(f"inputs: {problem}")
        for number, (tensor, buffer) in enumerate(zip(self._tensors, self._inputs, strict=True)):
            if tensor is None or buffer is None or bool(tensor.flags) is not owned:
                continue
            data = _data_of(bindings[number], number)
            if data.size != buffer.size:
                problem = (
                    f"{data.size} bytes are bound; the tensor of sizes {list(tensor.sizes)} has {buffer.size}"
                )
                raise Refused(f"inputs[{number}]: {problem}")
            buffer[:] = data


def require_list(given: object, what: str) -> None:
    """Raises TypeError unless several things are given, as a list or a tuple."""
    if not isinstance(given, Sequence):
        raise TypeError(f"{what}: {type(given).__name__}; a list of expressions is needed")


def _data_of(binding: Any, number: int) -> Array:
    if not isinstance(binding, Binding):
        raise TypeError(f"inputs[{number}]: {type(binding).__name__}; a Binding is needed")
    if binding._data is None:
        raise Refused(f"inputs[{number}]: its data was released")
    return binding._data


class GraphBuilder(Scope):
    """A graph that expressions are recorded for.

    Args:
        device: where its models run.
    """

    model: ClassVar[type[Model]] = Model

    def __init__(self, device: Device) -> None:
        super().__init__()
        if not isinstance(device, Device):
            raise TypeError(f"GraphBuilder.device: {type(device).__name__}; a Device is needed")
        self._device = device._device

    def build(self, flags: ExecutionFlags, outputs: Sequence[Expression], /) -> Model:
        """The model that computes `outputs`.

        Raises:
            ValueError: no outputs, or expressions of another graph.
        """
        if not isinstance(flags, ExecutionFlags):
            raise TypeError(f"build.flags: {type(flags).__name__}; ExecutionFlags are needed")
        return self.model(self, flags, outputs)


class Recorded:
    """What leads to some expressions, as a graph of DirectML."""

    def __init__(self, scope: Scope, outputs: Sequence[Expression], name: str) -> None:
        require_list(outputs, name)
        results = [known(each, name) for each in outputs]
        if not results:
            raise Refused(f"{name}: none; a model computes at least one expression")
        if any(each.scope is not scope for each in results):
            raise Refused(f"{name}: an expression of another graph")
        self._input_count = max(scope.sources, default=-1) + 1
        self._results = [_as_computed(each) for each in results]
        self._nodes: list[Node] = []
        self._numbers: dict[int, int] = {}
        for origin in self._results:
            self._add(origin)

    def _add(self, origin: Origin) -> None:
        """Adds what an origin depends on, each node after those that it reads."""
        waiting = [origin.of]
        while waiting:
            node = waiting[-1]
            if isinstance(node, Source) or id(node) in self._numbers:
                waiting.pop()
                continue
            missing = [
                each.of
                for each in node.inputs
                if each is not None and isinstance(each.of, Node) and id(each.of) not in self._numbers
            ]
            if missing:
                waiting += missing
                continue
            self._numbers[id(node)] = len(self._nodes)
            self._nodes.append(node)

    def desc(self, device: runtime.Device) -> GraphDesc:
        """The graph, with operators of the device. Behind the outputs asked for come those that operators
        cannot do without: DirectML wants an edge from each of them."""
        inputs, between = [], []
        for number, node in enumerate(self._nodes):
            for index, origin in enumerate(node.inputs):
                if origin is None:
                    continue
                if isinstance(origin.of, Source):
                    inputs.append(InputEdge(origin.of.index, number, index))
                else:
                    source = self._numbers[id(origin.of)]
                    between.append(IntermediateEdge(source, origin.output, number, index))
        sources = [(self._numbers[id(origin.of)], origin.output) for origin in self._results]
        used = {(edge.from_node_index, edge.from_node_output_index) for edge in between} | {*sources}
        sources += [
            each
            for number, node in enumerate(self._nodes)
            for each in _needed(number, node)
            if each not in used
        ]
        results = [OutputEdge(*source, index) for index, source in enumerate(sources)]
        nodes = [OperatorNode(device.create_operator(node.desc)) for node in self._nodes]
        return GraphDesc(self._input_count, len(results), nodes, inputs, results, between)


def _needed(number: int, node: Node) -> list[tuple[int, int]]:
    """The outputs that an operator always has, as (node, output)."""
    facts, slots = operator(node.desc.operator), tensor_fields(node.desc, "OUTPUT_TENSOR")
    return [(number, index) for index, slot in enumerate(slots) if not facts.field(slot.field).optional]


def _as_computed(expression: Known) -> Origin:
    """Where an expression comes from; one that is an input or reinterpreted is copied, since only what
    operators compute leaves a graph."""
    origin, tensor = expression.origin, expression.desc
    if isinstance(origin.of, Node) and tensors_of(origin.of.desc, "OUTPUT_TENSOR")[origin.output] == tensor:
        return origin
    packed = Tensor(tensor.data_type, tensor.sizes)
    return Origin(Node(descs.ElementWiseIdentity(tensor, packed), (origin,)))
