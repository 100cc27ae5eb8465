"""Build the steps of a graph, and the programs that they become."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from opendml.errors import InvalidArgument, located
from opendml.program.atoms import Relation
from opendml.program.node import constant
from opendml.program.program import Layout, packed
from opendml.program.scalar_type import ScalarType
from opendml.program.sizes import are_same
from opendml.program.trace import Trace
from opendml.runtime.calls.arguments import CAST, validate_tensor
from opendml.runtime.calls.call import Call
from opendml.runtime.calls.operator_call import (
    desc_of_call,
    exact_number,
    repeated_sizes,
    requested_outputs,
    require_running,
    type_of_number,
)
from opendml.runtime.described import tensor_text
from opendml.runtime.graphs.stages import StagedValue, Stages
from opendml.runtime.graphs.steps import (
    ConstantStep,
    GraphData,
    InputStep,
    NumberStep,
    OperatorStep,
    RoundStep,
    Step,
    ViewStep,
    pruned,
)
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.runtime.memory.foreign import as_numpy
from opendml.runtime.memory.host_array import Array, layout_in_graph
from opendml.runtime.program import layout_of, tensors_of
from opendml.spec.enums import FeatureLevel, TensorDataType
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.outputs import NO_REQUESTS
from opendml.spec.schema import operator
from opendml.spec.tensor_desc import TensorDesc, same_strides
from opendml.spec.validator import validate
from opendml.spec.wording import counted, shown

_PACKAGE = str(Path(__file__).parents[2])
_MADE_AGAIN = tuple([str(Path(_PACKAGE, part)) for part in ("spec", "operators", "program")])


class GraphBase:
    """A list of steps: inputs, constants, views and operators.

    Args:
        feature_level: what its operators are checked against.
        in_buffers: elements of 4 bits share bytes in memory, as in DirectML's buffers; False: each has a
            byte, as in NumPy's arrays.
    """

    def __init__(self, feature_level: FeatureLevel, *, in_buffers: bool = True) -> None:
        self.feature_level = feature_level
        self._steps: list[Step] = []
        self._values: list[StagedValue] = []
        """The tensors by their numbers."""
        self._operator_count = 0
        self._stages = Stages(in_buffers)
        self._inputs: dict[str, GraphTensor | None] = {}
        """All inputs by name; None for one that is absent."""
        self._names: list[str | None] = []
        """The name of each input's buffer; None for a constant."""
        self._constants: dict[int, Array] = {}
        """The constants by the numbers of their buffers."""
        self._trace: Trace | None = None
        """The trace of named dimensions."""
        self._ranges: dict[str, tuple[int, int]] = {}
        """The least and the greatest size of each named dimension."""

    def __repr__(self) -> str:
        named = zip(self._names, self._stages.buffers, strict=True)
        inputs = [tensor_text(name, layout) for name, layout in named if name is not None]
        operators = counted(self._operator_count, "operator", "operators")
        return f"<Graph: {', '.join(inputs) or 'no inputs'}; {operators}>"

    def constant(self, array: Array) -> GraphTensor:
        """Add an array of known values. It is read when the graph is compiled, and not afterwards.

        Raises:
            InvalidArgument: no NumPy array, or of a type that DirectML does not have.
        """
        if not isinstance(array, np.ndarray):
            raise InvalidArgument(f"graph constant: {type(array).__name__}; a NumPy array is needed")
        return self._constant_of(array, "graph constant")

    def _input(self, name: str, tensor: TensorDesc, is_bfloat16: bool = False) -> GraphTensor:
        """Add an input of a valid TensorDesc, flags included; `is_bfloat16`: FLOAT32 that is stored so."""
        made = self._source(InputStep(len(self._inputs), tensor, is_bfloat16))
        self._inputs[name] = made
        self._names.append(name)
        return made

    def _source(self, step: InputStep) -> GraphTensor:
        """Add a tensor that the caller's memory has."""
        layout = _as_bfloat16(layout_of(step.tensor)) if step.is_bfloat16 else None
        return self._added(step, [self._stages.source(step.tensor, layout)])[0]

    def _constant_of(self, array: Any, label: str) -> GraphTensor:
        """Add an array of any library as a constant."""
        known = as_numpy(array, label)
        return self._constant(ConstantStep(known), layout_in_graph(known, label))

    def _constant(self, step: ConstantStep, memory: Layout) -> GraphTensor:
        """Add a constant, whose array has a layout."""
        self._constants[len(self._names)] = step.array
        self._names.append(None)
        if step.tensor is not None:
            return self._added(step, [self._stages.source(step.tensor, memory=memory)])[0]
        tensor = TensorDesc(memory.type.data_type, memory.sizes)
        return self._added(step, [self._stages.source(tensor, memory)])[0]

    def _number(self, value: float, data_type: TensorDataType) -> GraphTensor:
        """Add a number, which fills the tensors that operators read it as."""
        node, tensor = constant(value, ScalarType.of(data_type)), TensorDesc(data_type, ())
        return self._added(NumberStep(value, data_type), [StagedValue(node, tensor)])[0]

    def _view(self, step: ViewStep) -> GraphTensor | None:
        """Add a view. Return None if it leaves its tensor."""
        value = self._stages.view(self._values[step.of], step)
        return None if value is None else self._added(step, [value])[0]

    def _rounded(self, tensor: GraphTensor) -> GraphTensor:
        """Add the rounding of a tensor of FLOAT32 to BFLOAT16."""
        return self._added(RoundStep(tensor._number), [self._stages.rounded(tensor._value)])[0]

    def _add(self, desc: OperatorDesc, tensors: Sequence[GraphTensor | None], name: str) -> list[GraphTensor]:
        """Add a valid operator whose tensors have the types and the sizes of its inputs, or are repeated to
        them.

        Raises:
            Unsupported: the operator cannot be run yet.
        """
        values = self._stages.operator(
            desc, [None if each is None else each._value for each in tensors], name
        )
        self._operator_count += 1
        numbers = tuple(None if each is None else each._number for each in tensors)
        return self._added(OperatorStep(desc, numbers, name), values)

    def _operator(
        self, desc: OperatorDesc, tensors: Sequence[GraphTensor | None], name: str = ""
    ) -> list[GraphTensor]:
        """Add a valid operator, which reads the bytes of tensors as its desc says.

        Args:
            desc: the desc.
            tensors: for each input of the desc a tensor, or None if it is absent. Their bytes may have other
                sizes, strides and types than in the desc.
            name: a name for debugging; "": its number.

        Returns:
            The outputs that are present.

        Raises:
            InvalidArgument: an input that has more bytes than its tensor.
            Unsupported: the operator cannot be run yet.
        """
        read = [
            None if tensor is None or wanted is None else self._read(tensor, wanted, desc.operator)
            for tensor, wanted in zip(tensors, tensors_of(desc, "INPUT_TENSOR"), strict=True)
        ]
        return self._add(desc, read, name or f"nodes[{self._operator_count}]")

    def _read(self, tensor: GraphTensor, wanted: TensorDesc, reader: str) -> GraphTensor:
        """Return the bytes of a tensor as another one."""
        value = tensor._value
        own, other = layout_of(value.tensor), layout_of(wanted)
        is_alike = own.type is other.type and own.sizes == other.sizes
        same = value.tensor is wanted or (is_alike and same_strides(own.sizes, own.strides, other.strides))
        if same and (value.node.sizes or not value.tensor.sizes):  # else a number, which is stored first
            return tensor
        step = ViewStep(tensor._number, wanted.data_type, wanted.sizes, wanted.strides, of_bytes=True)
        view = self._view(step)
        if view is None:
            raise InvalidArgument(f"{reader}: reads {wanted} of {tensor!r}, which has fewer bytes")
        return view

    def _added(self, step: Step, values: Sequence[StagedValue]) -> list[GraphTensor]:
        """Add a step, and return its tensors."""
        first = len(self._values)
        self._steps.append(step)
        self._values += values
        return [GraphTensor(self, value, number) for number, value in enumerate(values, first)]

    def _data(self, outputs: Mapping[str, GraphTensor], keep_inputs: bool) -> GraphData:
        """Return the steps that lead to some outputs."""
        numbers = {name: tensor._number for name, tensor in outputs.items()}
        steps, names, trace = tuple(self._steps), tuple(self._inputs), self._trace
        data = GraphData(self.feature_level, names, steps, numbers)
        if trace is not None:
            # Checks and definitions are made again for each trace. What the caller has compared is not, and
            # sizes that became plain numbers of steps stay so.
            own = {
                (relation, size): place
                for (relation, size), place in trace.guards.items()
                if not place.startswith(_PACKAGE)
                or (relation is Relation.ZERO and not place.startswith(_MADE_AGAIN))
            }
            data = replace(data, dimensions=dict(self._ranges), choices=own)
        return pruned(data, keep_inputs)

    def _call(
        self, name: str, tensors: tuple[Any, ...], attributes: Mapping[str, Any], output_type: Any = None
    ) -> Any:
        """Call an operator on tensors of which at least one is of this graph."""
        requested = NO_REQUESTS if output_type is None else requested_outputs(name, output_type, None)
        return call_in_graph(Call(name, tensors, attributes, None, None, requested, CAST))


def build(graph: GraphBase, data: GraphData) -> dict[str, GraphTensor]:
    """Add steps to an empty graph of the same feature level, and check each of them.

    Args:
        graph: the empty graph.
        data: the steps, from anywhere.

    Returns:
        The outputs.

    Raises:
        InvalidArgument: a step that is not valid after those before it.
        Unsupported: an operator that cannot be run yet.
    """
    tensors, positions = list[GraphTensor](), iter(range(len(data.inputs)))
    for number, step in enumerate(data.steps):
        with located(f"steps[{number}]"):
            if isinstance(step, InputStep):
                for position in positions:
                    if position == step.position:
                        break
                    graph._inputs[data.inputs[position]] = None
                else:
                    raise InvalidArgument(
                        f"input {step.position}; expected those of {data.inputs}, in their order"
                    )
            tensors += _built(graph, step, tensors, data)
    graph._inputs |= {data.inputs[position]: None for position in positions}
    return {name: _tensor(number, tensors, f"outputs.{name}") for name, number in data.outputs.items()}


def _built(
    graph: GraphBase, step: Step, tensors: Sequence[GraphTensor], data: GraphData
) -> list[GraphTensor]:
    """Add a step to a graph, and return its tensors."""
    match step:
        case InputStep():
            name = data.inputs[step.position]
            validate_tensor(f"graph input {shown(name)}", step.tensor, graph.feature_level)
            if step.is_bfloat16 and step.tensor.data_type != TensorDataType.FLOAT32:
                raise InvalidArgument(f"input {name}: {step.tensor}; BFLOAT16 is read as FLOAT32")
            return [graph._input(name, step.tensor, step.is_bfloat16)]
        case ConstantStep():
            if step.tensor is None:
                return [graph._constant(step, layout_in_graph(step.array, "constant"))]
            validate_tensor("constant", step.tensor, graph.feature_level)
            given, needed = step.array, step.tensor.size_in_bytes
            if given.dtype != np.uint8 or given.shape != (needed,):
                problem = f"{given.dtype} {list(given.shape)}; {needed} bytes are needed"
                raise InvalidArgument(f"constant: {problem}")
            return [graph._constant(step, packed(ScalarType.UINT8, given.shape))]
        case NumberStep():
            number = exact_number(step.value, ScalarType.of(step.data_type), "number")
            return [graph._number(number, step.data_type)]
        case ViewStep():
            of = _tensor(step.of, tensors, "view")
            strides = None if step.strides is None else [abs(stride) for stride in step.strides]
            validate_tensor("view", TensorDesc(step.data_type, step.sizes, strides), graph.feature_level)
            is_typed = step.of_bytes or of.data_type == step.data_type
            view = graph._view(step) if is_typed and step.offset >= 0 and of.sizes else None
            if view is None:
                raise InvalidArgument(f"view: {step}; a view of a tensor of sizes {list(of.sizes)} is needed")
            return [view]
        case RoundStep():
            return [_tensor(step.of, tensors, "round").rounded()]
        case OperatorStep():
            validate(step.desc, feature_level=graph.feature_level)
            require_running(step.desc.operator)
            wanted = tensors_of(step.desc, "INPUT_TENSOR")
            read = [None if each is None else _tensor(each, tensors, "inputs") for each in step.inputs]
            if len(wanted) != len(read) or not _fit(step.desc, read, wanted):
                raise InvalidArgument(f"inputs: {read}; the desc has {wanted}")
            return graph._add(step.desc, read, step.name)


def _as_bfloat16(layout: Layout) -> Layout:
    """Return the layout of elements of FLOAT32 that are BFLOAT16 in memory."""
    ratio = layout.type.bytes // ScalarType.BFLOAT16.bytes
    return Layout(ScalarType.BFLOAT16, layout.sizes, tuple(stride // ratio for stride in layout.strides))


def _tensor(number: int, tensors: Sequence[GraphTensor], where: str) -> GraphTensor:
    if not 0 <= number < len(tensors):
        raise InvalidArgument(f"{where}: {number}; expected one of the {len(tensors)} tensors before it")
    return tensors[number]


def _fit(
    desc: OperatorDesc, given: Sequence[GraphTensor | None], wanted: Sequence[TensorDesc | None]
) -> bool:
    """Return whether tensors have the types and the sizes of a desc's inputs, or a call repeats them to
    these."""
    types = [None if each is None else each.data_type for each in given]
    sizes = [None if each is None else each.sizes for each in given]
    needed = [None if each is None else each.sizes for each in wanted]
    if types != [None if each is None else each.data_type for each in wanted]:
        return False
    values = [getattr(desc, field.python_name) for field in operator(desc.operator).inputs]
    lengths = tuple((place, len(each)) for place, each in enumerate(values) if isinstance(each, tuple))
    call = Call(desc.operator, tuple(given), {}, None, None, NO_REQUESTS, CAST, lengths)
    return any(are_same(tuple(needed), tuple(each)) for each in (sizes, repeated_sizes(call, sizes)))


def call_in_graph(call: Call, graph: GraphBase | None = None) -> Any:
    """Add a call's operator to a graph. Numbers and arrays become constants.

    Args:
        call: the call.
        graph: the graph; None: that of its tensors.

    Raises:
        InvalidArgument: what `validate` finds, no graph, tensors of several graphs, `out` or a device.
        Unsupported: the operator cannot be run yet.
    """
    if call.outs is not None or call.device is not None:
        raise InvalidArgument(
            f"{call.function}: out and device belong to the compiled graph, not to its operators"
        )
    require_running(call.name)
    if graph is None:
        graph = next(tensor.graph for tensor in call.tensors if isinstance(tensor, GraphTensor))
    elif not isinstance(graph, GraphBase):
        raise InvalidArgument(f"{call.function}.graph: {shown(graph)}; a Graph is needed")
    call = call.on(tuple(map(partial(_as_operand, graph), call.tensors, call.labels)), None, CAST)
    tensors = _operands(graph, call)
    sizes = repeated_sizes(call, [None if each is None else each.sizes for each in tensors])
    inputs = call.grouped(
        [
            None if tensor is None or wanted is None else TensorDesc(tensor.data_type, wanted)
            for tensor, wanted in zip(tensors, sizes, strict=True)
        ]
    )
    desc = desc_of_call(call.name, inputs, call.attributes, graph.feature_level, call.requested, CAST)
    return call.result(graph._add(desc, tensors, f"nodes[{graph._operator_count}]"))


def _as_operand(graph: GraphBase, tensor: Any, label: str) -> Any:
    """Return a tensor of the graph for an operand. Numbers stay."""
    if tensor is None or isinstance(tensor, int | float):
        return tensor
    if not isinstance(tensor, GraphTensor):
        return graph._constant_of(tensor, label)
    if tensor.graph is not graph:
        raise InvalidArgument(f"{label}: not a tensor of this graph; it is one of another graph")
    return tensor


def _operands(graph: GraphBase, call: Call) -> list[GraphTensor | None]:
    """Return the operands of a call. Numbers get the types that the call gives them."""
    types = {
        position: tensor.data_type
        for position, tensor in enumerate(call.tensors)
        if isinstance(tensor, GraphTensor)
    }
    operands: list[GraphTensor | None] = []
    for position, (label, tensor) in enumerate(zip(call.labels, call.tensors, strict=True)):
        if isinstance(tensor, int | float):
            type = type_of_number(call, call.requested, position, types)
            operands.append(graph._number(exact_number(tensor, type, label), type.data_type))
        else:
            operands.append(tensor)
    return operands
