"""Graphs of both interfaces, their inputs, and the operators and models that they are compiled to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from opendml.frontends.pydirectml.devices import (
    Buffer,
    Device,
    TensorData,
    downloaded,
    host_bytes,
    require_fit,
)
from opendml.frontends.pydirectml.enumerations import DataType, TensorDataType, as_data_type, numpy_type
from opendml.frontends.pydirectml.errors import Refused, refused
from opendml.frontends.pydirectml.expressions import Expression, InPlace, Scope, known, truth
from opendml.frontends.pydirectml.tensors import TensorDesc, TensorPolicy
from opendml.late_dataclass import dataclass
from opendml.locked import Locked
from opendml.runtime.memory.host_array import Array
from opendml.runtime.memory.packing import from_buffer
from opendml.runtime.objects import compiled
from opendml.runtime.objects.binding import BufferArrayBinding
from opendml.runtime.objects.dispatchable import Dispatchable
from opendml.spec.enums import ExecutionFlags, TensorFlags
from opendml.spec.tensor_desc import TensorDesc as Tensor

Data = npt.ArrayLike | Buffer
"""The data of an input."""
Bindings = Mapping[Any, Data]
"""The data of inputs by the inputs, or their names."""


@dataclass(frozen=True)
class Input:
    """An input of a graph."""

    index: int
    desc: Tensor
    name: str | None

    @property
    def is_owned(self) -> bool:
        """True if it is handed over at initialization."""
        return bool(self.desc.flags)

    def __str__(self) -> str:
        name = "" if self.name is None else f" {self.name!r}"
        return f"input {self.index}{name} ({numpy_type(self.desc.data_type).name} {list(self.desc.sizes)})"

    def memory(self, value: Data, device: Device) -> Any:
        """Return the memory of data for the input, a Buffer's or the host's, or raise Refused."""
        if not isinstance(value, Buffer):
            return host_bytes(self.desc, value, str(self))
        if value.device is not device:
            raise Refused(f"{self}: a Buffer of a different device is bound")
        if value.dtype != numpy_type(self.desc.data_type):
            raise Refused(f"{self}: a Buffer of {value.dtype.name} is bound; Buffers are not converted")
        require_fit(self.desc, value.size, value.nbytes, f"{self}: Buffer")
        return value._memory


class Binding:
    """An array for an input, copied and converted to the type of its tensor.

    Args:
        expr: the input.
        data: an array. Its elements count in row-major order, not its shape.

    Raises:
        ValueError: in `directml`, a cast that is neither safe in NumPy's sense nor within a kind, as float64
            to float32 is.
    """

    _is_strict: ClassVar[bool] = False
    """True to refuse arrays of other kinds."""

    def __init__(self, expr: Expression, data: Any) -> None:
        self._tensor = known(expr, "Binding.expr")._desc
        array = host_bytes(self._tensor, data, "Binding.data", is_strict=self._is_strict)
        self._data: Array | None = array.copy()

    def __repr__(self) -> str:
        released = ", released" if self._data is None else ""
        return f"<Binding {self._tensor!r}{released}>"

    def release_data(self) -> None:
        """Free the copy of the array. An initialized model does not need that of an OWNED_BY_DML input."""
        self._data = None


class Graph(Scope):
    """A graph that expressions are recorded for.

    Args:
        device: the device that it will run on.
        tensor_policy: the layout in memory of what its operators compute; None: packed.

    Raises:
        TypeError: an argument of another class.
    """

    expression = Expression

    def __init__(self, device: Device, *, tensor_policy: TensorPolicy | None = None) -> None:
        super().__init__(device)
        if tensor_policy is not None and not isinstance(tensor_policy, TensorPolicy):
            raise TypeError(f"Graph.tensor_policy: {type(tensor_policy).__name__}; a TensorPolicy is needed")
        self.policy = tensor_policy or self.policy
        self._inputs: dict[Any, Input] = {}
        """The inputs by their expressions."""
        self._constants: dict[int, Data] = {}
        """The data of the inputs that are constants, until they are compiled."""

    def input(
        self,
        sizes: Sequence[int] | None = None,
        dtype: DataType | None = None,
        *,
        owned: bool = False,
        strides: Sequence[int] | None = None,
        desc: TensorDesc | None = None,
        name: str | None = None,
    ) -> Expression:
        """Add an input, and return its expression.

        Args:
            sizes: elements per dimension.
            dtype: the type of its elements; None: float32.
            owned: True if it is handed over once, to `initialize`, and not to each dispatch.
            strides: elements from one index to the next, per dimension; None: packed.
            desc: a TensorDesc in place of the arguments before.
            name: another key for its data where it is bound.

        Raises:
            TypeError: neither sizes nor a desc, or both.
            ValueError: another input has the name.
        """
        if desc is None:
            if sizes is None:
                raise TypeError("Graph.input: neither sizes nor desc; one of them is needed")
            flags = TensorFlags.OWNED_BY_DML if owned else TensorFlags.NONE
            data_type = TensorDataType.FLOAT32 if dtype is None else dtype
            desc = TensorDesc(data_type, list(sizes), flags=flags, strides=strides)
        elif sizes is not None or dtype is not None or owned or strides is not None:
            raise TypeError("Graph.input: desc and other arguments about the tensor; desc says all of them")
        if not isinstance(desc, TensorDesc):
            raise TypeError(f"Graph.input.desc: {type(desc).__name__}; a TensorDesc is needed")
        return self._add(Input(len(self._inputs), desc._desc, name))

    def constant(
        self,
        array: Data,
        dtype: DataType | None = None,
        *,
        sizes: Sequence[int] | None = None,
        name: str | None = None,
    ) -> Expression:
        """Add an OWNED_BY_DML input with its data, which is kept until the graph is compiled.

        Args:
            array: a Buffer, or anything that `numpy.asarray` takes.
            dtype: the type of its elements; None: the array's.
            sizes: elements per dimension, as many as the array has; None: the array's.
            name: another key for its data where it is bound.

        Raises:
            ValueError: a cast that is neither safe nor within a kind, an array that does not fill the
                sizes, or a name that another input has.
            TypeError: DirectML does not have the type.
        """
        data = array if isinstance(array, Buffer) else np.asarray(array)
        shape = (list(data.shape) or [1]) if sizes is None else list(sizes)
        data_type = numpy_type(as_data_type(data.dtype if dtype is None else dtype))
        desc = TensorDesc(data_type, shape, flags=TensorFlags.OWNED_BY_DML)
        new = Input(len(self._inputs), desc._desc, name)
        new.memory(data, self._device)  # Checks the data.
        expression = self._add(new)
        self._constants[new.index] = data
        return expression

    def compile(
        self, outputs: Sequence[Expression], *, flags: ExecutionFlags = ExecutionFlags.NONE
    ) -> CompiledOperator:
        """Compile an operator that computes the expressions.

        It is initialized unless there are owned inputs that are no constants.

        Args:
            outputs: the expressions, in the order of the results.
            flags: DirectML's flags.

        Raises:
            ValueError: no outputs, or expressions of another graph.
        """
        return CompiledOperator(self, outputs, flags)

    def _add(self, new: Input) -> Expression:
        if new.name is not None and not isinstance(new.name, str):
            raise TypeError(f"the name of an input: {type(new.name).__name__}; a str is needed")
        if new.name is not None and any(each.name == new.name for each in self._inputs.values()):
            raise Refused(f"this graph already has an input named {new.name!r}")
        expression = self.add_input(new.index, new.desc)
        self._inputs[expression] = new
        return expression


class GraphBuilder(Scope):
    """A graph that expressions are recorded for, of the interface before.

    Args:
        device: the device of its models.

    Raises:
        TypeError: an argument of another class.
    """

    expression = InPlace
    data: ClassVar[type[TensorData]] = TensorData
    """The class of the outputs of its models."""
    keeps_weights: ClassVar[bool] = False
    """True to initialize a model once, not at each call."""

    def build(self, flags: ExecutionFlags, outputs: Sequence[Expression], /) -> Model:
        """Compile a model that computes `outputs`.

        Args:
            flags: DirectML's flags.
            outputs: the expressions, in the order of the results.

        Raises:
            ValueError: no outputs, or expressions of another graph.
        """
        return Model(self, outputs, flags)


class CompiledGraph(Locked):
    """A graph that is compiled for its device."""

    def __init__(self, graph: Scope, outputs: Sequence[Expression], flags: ExecutionFlags, what: str) -> None:
        super().__init__()
        if not isinstance(flags, ExecutionFlags):
            raise TypeError(f"{what}.flags: {type(flags).__name__}; ExecutionFlags are needed")
        require_list(outputs, f"{what}.outputs")
        results = [known(each, f"{what}.outputs") for each in outputs]
        if not results:
            raise Refused(f"{what}.outputs: none; a model computes at least one expression")
        if any(each._scope is not graph for each in results):
            raise Refused(f"{what}.outputs: an expression of another graph")
        self._graph, self._outputs, self._flags = graph, results, flags
        self._device = graph._device
        self._compiled = self._compile()

    def __repr__(self) -> str:
        return f"<dml.{type(self).__name__} of {self._compiled!r}>"

    @property
    def temporary_size(self) -> int:
        """The bytes that a dispatch needs for intermediate results."""
        return self._compiled.binding_properties.temporary_resource_size

    @property
    def persistent_size(self) -> int:
        """The bytes that hold the inputs of the initialization."""
        return self._compiled.binding_properties.persistent_resource_size

    @property
    def descriptor_count(self) -> int:
        """The number of descriptors that a dispatch of DirectML would bind."""
        return self._compiled.binding_properties.required_descriptor_count

    def _compile(self) -> compiled.CompiledOperator:
        with refused():
            tensors = list(map(self._graph.output, self._outputs))
            return self._device._device._compile_graph(self._graph.graph, tensors, self._flags)


def require_list(given: object, what: str) -> None:
    """Raise TypeError unless several expressions are given, as a list or a tuple."""
    if not isinstance(given, Sequence):
        raise TypeError(f"{what}: {type(given).__name__}; a list of expressions is needed")


class Model(CompiledGraph):
    """A compiled graph, made by `GraphBuilder.build`."""

    def __init__(self, graph: GraphBuilder, outputs: Sequence[Expression], flags: ExecutionFlags) -> None:
        super().__init__(graph, outputs, flags, "build")
        self._data, self._keeps_weights = graph.data, graph.keeps_weights
        self._tensors = dict(zip(graph.inputs, self._compiled.input_tensors, strict=True))
        self._memory = {
            number: None if each is None else _host_memory(each) for number, each in self._tensors.items()
        }
        self._results = [_host_memory(each) for each in self._compiled.output_tensors if each is not None]
        self._bound: Any = None

    def _initialize(self, bindings: Sequence[Any]) -> None:
        self._read(bindings, owned=True)
        self._bound = self._compiled.bind(list(self._memory.values()), self._results)

    def _dispatch(self, bindings: Sequence[Any], outputs: Sequence[Any]) -> list[TensorData]:
        require_list(outputs, "outputs")
        if self._bound is None:
            raise Refused("dispatch: the model is not initialized; Device.initialize does it")
        if len(outputs) != len(self._outputs):
            problem = f"the model was built for {len(self._outputs)}, in the order of `build`"
            raise Refused(f"outputs: {len(outputs)} expressions; {problem}")
        self._read(bindings, owned=False)
        self._bound.dispatch()
        results = zip(outputs, self._results, self._compiled.output_tensors, strict=True)
        return [
            from_buffer(data, tensor).view(self._data) for asked, data, tensor in results if asked and tensor
        ]

    def _read(self, bindings: Sequence[Any], *, owned: bool) -> None:
        """Copy the data of the inputs that are OWNED_BY_DML, or of the others."""
        count = max(self._tensors, default=-1) + 1
        if len(bindings) < count:
            problem = f"{len(bindings)} bindings; the graph has {count} inputs, in their order"
            raise Refused(f"inputs: {problem}")
        for number, tensor in self._tensors.items():
            memory, binding = self._memory[number], bindings[number]
            if tensor is None or memory is None or bool(tensor.flags) is not owned:
                continue
            if not isinstance(binding, Binding):
                raise TypeError(f"inputs[{number}]: {type(binding).__name__}; a Binding is needed")
            if binding._data is None:
                raise Refused(f"inputs[{number}]: its data was released")
            elements = binding._data.size // numpy_type(tensor.data_type).itemsize
            require_fit(tensor, elements, binding._data.size, f"inputs[{number}]")
            used = min(memory.size, binding._data.size)
            memory[:used] = binding._data[:used]


def _host_memory(tensor: Tensor) -> Array:
    return np.zeros(tensor.size_in_bytes, np.uint8)


class CompiledOperator(CompiledGraph):
    """A compiled graph, made by `Graph.compile`. Calling it dispatches it.

    Dispatches of several threads take turns.
    """

    def __init__(self, graph: Graph, outputs: Sequence[Expression], flags: ExecutionFlags) -> None:
        super().__init__(graph, outputs, flags, "compile")
        self._inputs: dict[Any, Input] = dict(graph._inputs)
        self._constants, graph._constants = graph._constants, {}
        self._persistent: Any = None
        self._temporary: Any = None
        if all(each.index in self._constants for each in self._inputs.values() if each.is_owned):
            self.initialize()

    @property
    def initialized(self) -> bool:
        """True once it has all OWNED_BY_DML inputs."""
        return self._compiled.is_initialized

    def initialize(self, weights: Bindings | None = None) -> None:
        """Hand over the inputs that are owned. A second call needs all of them again.

        Args:
            weights: the data by the inputs or their names: arrays, or buffers. Constants may be left out the
                first time.

        Raises:
            ValueError: an input that is unknown, not owned, bound twice or missing, or data of another type
                or size.
        """
        memory, device = self._bound(weights, "initialize", owned=True), self._device._device
        with refused(), self._lock:
            operator = self._compile() if self.initialized else self._compiled
            size = operator.binding_properties.persistent_resource_size
            persistent = device.create_buffer(size) if size else None
            initializer = device.create_operator_initializer([operator])
            self._execute(initializer, [BufferArrayBinding(self._in_order(memory, operator))], [persistent])
            self._compiled, self._persistent, self._constants = operator, persistent, {}

    def dispatch(self, inputs: Bindings | None = None, *, readback: bool = True) -> list[Any]:
        """Run the operator and return its outputs, in the order of `compile`.

        Args:
            inputs: the data by the inputs or their names, for all that are not owned. Arrays are cast if that
                is safe in NumPy's sense or narrows within a kind. Buffers are read where they are.
            readback: True for arrays; False for buffers in the memory of the device.

        Raises:
            ValueError: the operator is not initialized, an input is unknown, owned, bound twice or missing,
                or data has another type or size.
        """
        if not self.initialized:
            owned = ", ".join(str(each) for each in self._inputs.values() if each.is_owned)
            raise Refused(f"not initialized; initialize() takes {owned}")
        memory, device = self._bound(inputs, "dispatch", owned=False), self._device._device
        given, is_host = self._in_order(memory, self._compiled), device.kind == "cpu"
        if not is_host:
            given = [device.upload(each) if isinstance(each, np.ndarray) else each for each in given]
        tensors = [each for each in self._compiled.output_tensors if each is not None]
        sizes = [each.size_in_bytes for each in tensors]
        results = [np.empty(size, np.uint8) if is_host else device.empty([size], "UINT8") for size in sizes]
        with refused(), self._lock:
            # A dispatch within this one, by a handler of a signal, finds none and makes its own.
            temporary, self._temporary = self._temporary, None
            if temporary is None and self.temporary_size:
                temporary = device.create_buffer(self.temporary_size)
            self._execute(self._compiled, given, results, temporary, self._persistent)
            self._temporary = temporary
        pairs = zip(tensors, results, strict=True)
        if truth(readback, "dispatch.readback"):
            return [downloaded(device, *each) for each in pairs]
        return [Buffer._of(self._device, *each) for each in pairs]

    __call__ = dispatch

    def _in_order(self, memory: Mapping[int, Any], operator: compiled.CompiledOperator) -> list[Any]:
        """Return the memory of the inputs in the operator's order, None for those that it does not read."""
        pairs = zip(self._graph.inputs, operator.input_tensors, strict=False)  # The graph may have grown.
        return [None if tensor is None else memory.get(number) for number, tensor in pairs]

    def _execute(
        self,
        dispatchable: Dispatchable,
        inputs: Any,
        outputs: Any,
        temporary: Any = None,
        persistent: Any = None,
    ) -> None:
        device = self._device._device
        table = device.create_binding_table(dispatchable)
        table.bind_inputs(inputs)
        table.bind_outputs(outputs)
        table.bind_temporary_resource(temporary)
        table.bind_persistent_resource(persistent)
        recorder = device.create_command_recorder()
        recorder.record_dispatch(dispatchable, table)
        device.execute(recorder)

    def _bound(self, given: Bindings | None, verb: str, *, owned: bool) -> dict[int, Any]:
        """Return the memory of the inputs that are owned, or of the others, by their numbers."""
        if given is not None and not isinstance(given, Mapping):
            raise TypeError(f"{verb}: {type(given).__name__}; a dict of inputs, or their names, is needed")
        values: dict[int, Data] = {}
        for key, value in (given or {}).items():
            found = self._input(key, verb)
            if found.is_owned is not owned:
                problem = "owned; initialize" if found.is_owned else "not owned; dispatch"
                raise Refused(f"{verb}: {found} is {problem} takes it")
            if found.index in values:
                raise Refused(f"{verb}: {found} is bound twice")
            values[found.index] = value
        if owned:
            values = self._constants | values
        wanted = [each for each in self._inputs.values() if each.is_owned is owned]
        missing = ", ".join(str(each) for each in wanted if each.index not in values)
        if missing:
            raise Refused(f"{verb}: missing {missing}")
        return {each.index: each.memory(values[each.index], self._device) for each in wanted}

    def _input(self, key: Any, verb: str) -> Input:
        """Return the input that a key of bindings names."""
        if isinstance(key, str):
            for each in self._inputs.values():
                if each.name == key:
                    return each
            raise Refused(f"{verb}: this graph has no input named {key!r}")
        if not isinstance(key, Expression):
            raise TypeError(f"{verb}: {type(key).__name__}; an input, or its name, is needed")
        if key not in self._inputs:
            raise Refused(f"{verb}: {key!r} is not an input of this graph")
        return self._inputs[key]
