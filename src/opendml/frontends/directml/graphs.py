"""Graphs, as programs build them, and what they are compiled to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from opendml.frontends.directml.buffers import (
    Buffer,
    bytes_of,
    downloaded,
    require_castable,
    reserved,
    uploaded,
)
from opendml.frontends.directml.tensors import Expression
from opendml.frontends.pydirectml.data_types import DataType, as_data_type, numpy_type
from opendml.frontends.pydirectml.devices import Device, Recorded
from opendml.frontends.pydirectml.enumerations import ExecutionFlags, TensorDataType, TensorFlags
from opendml.frontends.pydirectml.errors import Refused, refused
from opendml.frontends.pydirectml.expressions import Scope
from opendml.frontends.pydirectml.tensors import TensorDesc, TensorPolicy
from opendml.runtime.objects.binding import BufferArrayBinding
from opendml.runtime.objects.compiled import CompiledOperator as Compiled
from opendml.runtime.objects.dispatchable import Dispatchable
from opendml.spec import enums
from opendml.spec.tensor_desc import TensorDesc as Tensor

Data = npt.ArrayLike | Buffer
Bindings = Mapping[Any, Data]
"""Inputs, or their names, and what is bound to them."""


@dataclass(frozen=True)
class _Input:
    """An input of a graph."""

    index: int
    desc: Tensor
    name: str | None

    @property
    def is_owned(self) -> bool:
        """Whether it is handed over at initialization."""
        return bool(self.desc.flags)

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's type of its elements."""
        return numpy_type(self.desc.data_type)

    def __str__(self) -> str:
        name = "" if self.name is None else f" {self.name!r}"
        return f"input {self.index}{name} ({self.dtype.name} {list(self.desc.sizes)})"

    def memory(self, value: Data, device: Device, *, stays: bool) -> Any:
        """Data for it, as memory: of arrays, unless they `stay` in the host's memory, of the device.

        Raises:
            ValueError: another type or size, or a buffer of another device.
        """
        if isinstance(value, Buffer):
            if value.device is not device:
                raise Refused(f"{self}: a Buffer of a different device is bound")
            if value.dtype != self.dtype:
                raise Refused(f"{self}: a Buffer of {value.dtype.name} is bound; Buffers are not converted")
            self._require_fit(value.size, value.nbytes, "Buffer")
            return value._memory
        array = np.asarray(value)
        require_castable(array, self.dtype, str(self))
        self._require_fit(array.size, array.size * self.dtype.itemsize, "array")
        data = bytes_of(array, self.dtype)
        return data if stays else uploaded(device._device, data)

    def _require_fit(self, count: int, size: int, kind: str) -> None:
        """Checks that data has an element for each of a packed tensor, or the bytes that strides reach."""
        if self.desc.strides is None:
            if count != prod(self.desc.sizes):
                raise Refused(f"{self}: {kind} of {count} elements does not fill it")
        elif -(-size // 4) * 4 < (needed := self.desc.size_in_bytes):
            raise Refused(f"{self}: {kind} of {size} bytes does not fill it; its strides reach {needed}")


class Graph(Scope):
    """A graph that expressions are recorded for.

    Args:
        device: where it will run.
        tensor_policy: how what its operators compute lies in memory; None: packed.
    """

    expression = Expression

    def __init__(self, device: Device, *, tensor_policy: TensorPolicy | None = None) -> None:
        super().__init__(tensor_policy)
        if not isinstance(device, Device):
            raise TypeError(f"Graph.device: {type(device).__name__}; a Device is needed")
        self._device = device
        self._inputs: dict[Expression, _Input] = {}
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
        """An input of the graph.

        Args:
            sizes: elements per dimension.
            dtype: the type of its elements; None: float32.
            owned: whether it is handed over once, to `initialize`, and not to each dispatch.
            strides: elements from one index to the next, per dimension; None: packed.
            desc: all of this as a TensorDesc, and none of it then.
            name: what it may be called where it is bound.

        Raises:
            TypeError: neither sizes nor a desc, or both.
            ValueError: another input has the name.
        """
        if desc is None:
            if sizes is None:
                raise TypeError("Graph.input: neither sizes nor desc; one of them is needed")
            flags = TensorFlags.OWNED_BY_DML if owned else TensorFlags.NONE
            type_given = TensorDataType.FLOAT32 if dtype is None else dtype
            desc = TensorDesc(type_given, list(sizes), flags=flags, strides=strides)
        elif sizes is not None or dtype is not None or owned or strides is not None:
            raise TypeError("Graph.input: desc and other arguments about the tensor; desc says all of them")
        if not isinstance(desc, TensorDesc):
            raise TypeError(f"Graph.input.desc: {type(desc).__name__}; a TensorDesc is needed")
        return self._add(desc, name)

    def constant(
        self,
        array: Data,
        dtype: DataType | None = None,
        *,
        sizes: Sequence[int] | None = None,
        name: str | None = None,
    ) -> Expression:
        """An input that is handed over at initialization, with its data, which is kept until the graph is
        compiled.

        Args:
            array: what `numpy.asarray` takes, or a Buffer.
            dtype: the type of its elements; None: the array's.
            sizes: elements per dimension, as many as the array has; None: the array's.
            name: what it may be called where it is bound.

        Raises:
            ValueError: an array that would be cast with surprise or does not fill the sizes, or another input
                has the name.
            TypeError: a type that DirectML does not have.
        """
        data = array if isinstance(array, Buffer) else np.asarray(array)
        wanted = as_data_type(data.dtype if dtype is None else dtype)
        shape = (list(data.shape) or [1]) if sizes is None else list(sizes)
        desc = TensorDesc(wanted, shape, flags=TensorFlags.OWNED_BY_DML)
        _Input(len(self.sources), desc._desc, name).memory(
            data, self._device, stays=True
        )  # or say what is wrong
        expression = self._add(desc, name)
        self._constants[self._inputs[expression].index] = data
        return expression

    def compile(
        self, outputs: Sequence[Expression], *, flags: ExecutionFlags = ExecutionFlags.NONE
    ) -> CompiledOperator:
        """What computes the expressions. It is initialized, and the constants are its own, unless other
        inputs are to be handed over at initialization.

        Args:
            outputs: the expressions, in the order of the results.
            flags: DirectML's.

        Raises:
            ValueError: no outputs, or expressions of another graph.
        """
        if not isinstance(flags, ExecutionFlags):
            raise TypeError(f"compile.flags: {type(flags).__name__}; ExecutionFlags are needed")
        recorded = Recorded(self, outputs, "compile.outputs")
        device = self._device._device

        def compiled() -> Compiled:
            with refused():
                return device.compile_graph(recorded.desc(device), enums.ExecutionFlags(int(flags)))

        constants, self._constants = self._constants, {}
        return CompiledOperator(self._device, dict(self._inputs), constants, len(outputs), compiled)

    def _add(self, desc: TensorDesc, name: str | None) -> Expression:
        if name is not None and not isinstance(name, str):
            raise TypeError(f"the name of an input: {type(name).__name__}; a str is needed")
        if name is not None and any(each.name == name for each in self._inputs.values()):
            raise Refused(f"this graph already has an input named {name!r}")
        index = len(self.sources)
        expression = self.add_input(index, desc)
        assert isinstance(expression, Expression)
        self._inputs[expression] = _Input(index, desc._desc, name)
        return expression


class CompiledOperator:
    """A compiled graph: calling it is dispatching it. `Graph.compile` makes it."""

    def __init__(
        self,
        device: Device,
        inputs: dict[Expression, _Input],
        constants: dict[int, Data],
        count: int,
        compiled: Callable[[], Compiled],
    ) -> None:
        self._device, self._compile, self._inputs = device, compiled, inputs
        self._count = count
        """How many outputs were asked for: those behind them are needed by operators only."""
        self._names = {each.name: each for each in inputs.values() if each.name is not None}
        self._compiled, self._constants = compiled(), constants
        self._persistent: Any = None
        self._temporary: Any = None
        if all(each.index in constants for each in inputs.values() if each.is_owned):
            self.initialize()

    def __repr__(self) -> str:
        return f"<dml.CompiledOperator of {self._compiled!r}>"

    @property
    def initialized(self) -> bool:
        """Whether it has all that is handed over at initialization."""
        return self._compiled.is_initialized

    @property
    def temporary_size(self) -> int:
        """The bytes that a dispatch needs for what it computes on the way."""
        return self._compiled.binding_properties.temporary_resource_size

    @property
    def persistent_size(self) -> int:
        """The bytes that what was handed over at initialization takes."""
        return self._compiled.binding_properties.persistent_resource_size

    @property
    def descriptor_count(self) -> int:
        """The descriptors that a dispatch of DirectML would bind."""
        return self._compiled.binding_properties.required_descriptor_count

    def initialize(self, weights: Bindings | None = None) -> None:
        """Hands over the inputs that are owned. Done again, it wants all of them again.

        Args:
            weights: the data by the inputs or their names: arrays, or buffers. Constants may be left out the
                first time.

        Raises:
            ValueError: no such input, one that is not owned, is bound twice or is missing, or data of another
                type or size.
        """
        memory = self._bound(weights or {}, "initialize", owned=True)
        compiled = self._compile() if self.initialized else self._compiled
        device = self._device._device
        with refused():
            initializer = device.create_operator_initializer([compiled])
            size = compiled.binding_properties.persistent_resource_size
            persistent = device.create_buffer(size) if size else None
            self._execute(initializer, [BufferArrayBinding(_given(compiled, memory))], [persistent])
        self._compiled, self._persistent, self._constants = compiled, persistent, {}

    def dispatch(self, inputs: Bindings | None = None, *, readback: bool = True) -> list[Any]:
        """The outputs, in the order of `compile`.

        Args:
            inputs: the data by the inputs or their names, for all that are not owned: arrays, which are cast
                as NumPy calls it safe and narrowed within a kind, or buffers, which are read where they are.
            readback: True: arrays; False: buffers, which stay in the memory of the device.

        Raises:
            ValueError: it is not initialized; no such input, one that is owned, is bound twice or is missing,
                or data of another type or size.
        """
        if not self.initialized:
            owned = ", ".join(str(each) for each in self._inputs.values() if each.is_owned)
            raise Refused(f"not initialized; initialize() takes {owned}")
        memory = self._bound(inputs or {}, "dispatch", owned=False)
        device, tensors = self._device._device, [each for each in self._compiled.output_tensors if each]
        results = [reserved(device, each) for each in tensors]
        if self._temporary is None and self.temporary_size:
            self._temporary = device.create_buffer(self.temporary_size)
        with refused():
            self._execute(
                self._compiled, _given(self._compiled, memory), results, self._temporary, self._persistent
            )
        pairs = list(zip(tensors, results, strict=True))[: self._count]
        if readback:
            return [downloaded(device, tensor, data) for tensor, data in pairs]
        return [Buffer._of(self._device, tensor, data) for tensor, data in pairs]

    __call__ = dispatch

    def _execute(
        self,
        dispatchable: Dispatchable,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
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

    def _bound(self, given: Bindings, verb: str, *, owned: bool) -> dict[int, Any]:
        """The memory of the inputs that are, or are not, owned, by their numbers. All is checked first."""
        values: dict[int, Data] = {}
        for key, value in given.items():
            found = self._input(key, verb)
            if found.is_owned is not owned:
                problem = "owned; initialize" if found.is_owned else "not owned; dispatch"
                raise Refused(f"{verb}: {found} is {problem} takes it")
            if found.index in values:
                raise Refused(f"{verb}: {found} is bound twice")
            values[found.index] = value
        wanted = [each for each in self._inputs.values() if each.is_owned is owned]
        if owned:
            values = self._constants | values
        missing = ", ".join(str(each) for each in wanted if each.index not in values)
        if missing:
            raise Refused(f"{verb}: missing {missing}")
        return {each.index: each.memory(values[each.index], self._device, stays=owned) for each in wanted}

    def _input(self, key: Any, verb: str) -> _Input:
        """The input that a key of bindings stands for."""
        if isinstance(key, str):
            if key not in self._names:
                raise Refused(f"{verb}: this graph has no input named {key!r}")
            return self._names[key]
        if not isinstance(key, Expression):
            raise TypeError(f"{verb}: {type(key).__name__}; an input, or its name, is needed")
        if key not in self._inputs:
            raise Refused(f"{verb}: {key!r} is not an input of this graph")
        return self._inputs[key]


def _given(compiled: Compiled, memory: Mapping[int, Any]) -> list[Any]:
    """Memory for each input that the compiled graph reads."""
    return [
        None if tensor is None else memory.get(number) for number, tensor in enumerate(compiled.input_tensors)
    ]
