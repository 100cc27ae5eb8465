"""Graphs of operators that are compiled together."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from opendml.errors import InvalidArgument
from opendml.program.program import packed
from opendml.runtime.calls.arguments import validate_tensor
from opendml.runtime.graphs.base import GraphBase
from opendml.runtime.graphs.model import Model
from opendml.runtime.graphs.shared import SharedMemory
from opendml.runtime.graphs.steps import ConstantStep, InputStep
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.runtime.memory.host_array import Array, layout_in_graph
from opendml.runtime.objects.device import Device, as_device
from opendml.spec.element_types import is_bfloat16_type
from opendml.spec.enums import FeatureLevel, TensorDataType
from opendml.spec.feature_level import as_feature_level
from opendml.spec.tensor_desc import TensorDesc
from opendml.spec.values import DataTypeLike
from opendml.spec.wording import shown


class Graph(GraphBase):
    """Operators that are compiled, fused and run together.

    >>> import numpy as np, opendml as dml
    >>> graph = dml.Graph()
    >>> x = graph.input("x", dml.FLOAT32, [4])
    >>> model = graph.compile({"y": dml.activation_relu(dml.activation_linear(x, alpha=2.0, beta=-1.0))})
    >>> model(x=np.array([0, 1, 2, 3], np.float32))["y"]
    array([0., 1., 3., 5.], dtype=float32)

    Args:
        feature_level: what the operators are checked against; None is the newest.
    """

    def __init__(self, *, feature_level: FeatureLevel | str | None = None) -> None:
        super().__init__(as_feature_level(feature_level), in_buffers=False)
        self._identities: dict[int, Hashable] = {}
        self._deferred_constants: list[int] = []
        """The buffers of constants that have no values yet."""

    def input(
        self,
        name: str,
        data_type: DataTypeLike,
        sizes: Sequence[int],
        *,
        strides: Sequence[int] | None = None,
    ) -> GraphTensor:
        """Add an input, which every run is given.

        Args:
            name: the name that `Model` uses; an identifier makes it a keyword.
            data_type: type of its elements: a TensorDataType, its name, or NumPy's or PyTorch's type. Also
                "bfloat16", which DirectML lacks: operators read the tensor as FLOAT32.
            sizes: 1 to 8 sizes, outermost first.
            strides: elements from one index to the next, per dimension; None: packed.

        Raises:
            InvalidArgument: a name that is taken, or a tensor that DirectML does not allow.
        """
        if not isinstance(name, str) or name in self._inputs:
            problem = "already exists" if isinstance(name, str) else "not a name"
            raise InvalidArgument(f"graph input {shown(name)}: {problem}")
        is_bfloat16, tensor = self._tensor_of(f"graph input {shown(name)}", data_type, sizes, strides)
        return self._input(name, tensor, is_bfloat16)

    def compile(self, outputs: Mapping[str, GraphTensor], device: str | Device | None = None) -> Model:
        """Compile the graph up to `outputs`.

        Args:
            outputs: the tensors to compute, by the names that they get.
            device: a device, its kind, or None for the CPU.

        Raises:
            InvalidArgument: no outputs, or tensors of another graph.
        """
        if not isinstance(outputs, Mapping) or not all(isinstance(name, str) for name in outputs):
            raise InvalidArgument(f"outputs: {shown(outputs)}; a dict is needed, of tensors by their names")
        if not outputs:
            raise InvalidArgument("outputs: none; a model computes at least one tensor")
        for name, tensor in outputs.items():
            if not isinstance(tensor, GraphTensor) or tensor.graph is not self:
                raise InvalidArgument(f"outputs[{name!r}]: not a tensor of this graph")
        return self._compile(outputs, device)

    def _compile(
        self,
        outputs: Mapping[str, GraphTensor],
        device: str | Device | None,
        shared: SharedMemory | None = None,
    ) -> Model:
        """Compile the graph up to valid outputs, with memory that other models share."""
        values = [tensor._value for tensor in outputs.values()]
        known = {*self._constants, *self._deferred_constants}
        return Model(
            as_device(device),
            self._stages.work(values, known, only_needed=True),
            tuple(self._names),
            tuple(outputs),
            self._constants,
            None if self._deferred_constants else self._data(outputs, keep_inputs=True),
            tuple(self._deferred_constants),
            self._identities,
            shared,
        )

    def _deferred_constant(
        self, data_type: DataTypeLike, sizes: Sequence[int], strides: Sequence[int] | None
    ) -> GraphTensor:
        """Add a constant whose values `Model._prepare` is given."""
        is_bfloat16, tensor = self._tensor_of("graph constant", data_type, sizes, strides)
        self._deferred_constants.append(len(self._names))
        self._names.append(None)
        return self._source(InputStep(-1, tensor, is_bfloat16))

    def _tensor_of(
        self, name: str, data_type: DataTypeLike, sizes: Sequence[int], strides: Sequence[int] | None
    ) -> tuple[bool, TensorDesc]:
        """Return whether a tensor is BFLOAT16 in memory, and the valid tensor that operators read."""
        is_bfloat16 = is_bfloat16_type(data_type)
        tensor = TensorDesc(TensorDataType.FLOAT32 if is_bfloat16 else data_type, sizes, strides)
        validate_tensor(name, tensor, self.feature_level)
        return is_bfloat16, tensor

    def _unchanging(self, array: Array, identity: Hashable) -> GraphTensor:
        """Add a packed constant that nobody writes to; it need not be aligned.

        Args:
            array: the values.
            identity: models that share memory prepare constants of one identity once.
        """
        self._identities[len(self._names)] = identity
        type = layout_in_graph(np.empty(0, array.dtype), "constant").type
        return self._constant(ConstantStep(array, None, is_unchanging=True), packed(type, array.shape))
