"""Graphs, as programs build them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from opendml.frontends.directml.buffers import Buffer
from opendml.frontends.directml.compiled import CompiledOperator
from opendml.frontends.directml.inputs import Data, Input
from opendml.frontends.directml.tensors import Expression
from opendml.frontends.pydirectml.data_types import DataType, as_data_type
from opendml.frontends.pydirectml.devices import Device, Recorded
from opendml.frontends.pydirectml.enumerations import ExecutionFlags, TensorDataType, TensorFlags
from opendml.frontends.pydirectml.errors import Refused, refused
from opendml.frontends.pydirectml.expressions import Scope
from opendml.frontends.pydirectml.tensors import TensorDesc, TensorPolicy
from opendml.runtime.objects.compiled import CompiledOperator as Compiled
from opendml.spec import enums


class Graph(Scope):
    """A graph that expressions are recorded for.

    Args:
        device: where it will run.
        tensor_policy: how what its operators compute lies in memory; None: packed.
    """

    expression = Expression

    def __init__(self, device: Device, *, tensor_policy: TensorPolicy | None = None) -> None:
        if not isinstance(device, Device):
            raise TypeError(f"Graph.device: {type(device).__name__}; a Device is needed")
        if tensor_policy is not None and not isinstance(tensor_policy, TensorPolicy):
            raise TypeError(f"Graph.tensor_policy: {type(tensor_policy).__name__}; a TensorPolicy is needed")
        super().__init__(tensor_policy)
        self._device = device
        self._inputs: dict[Expression, Input] = {}
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
        Input(len(self.sources), desc._desc, name).memory(
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
        self._inputs[expression] = Input(index, desc._desc, name)
        return expression
