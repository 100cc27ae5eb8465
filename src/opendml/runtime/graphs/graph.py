"""Graphs of operators that are compiled together."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from opendml.errors import InvalidArgument
from opendml.program.atoms import GREATEST, Dimension
from opendml.program.program import packed
from opendml.program.trace import Trace
from opendml.runtime.calls.arguments import validate_tensor
from opendml.runtime.graphs.base import GraphBase, build
from opendml.runtime.graphs.compiled_work import CompiledWork
from opendml.runtime.graphs.model import Model
from opendml.runtime.graphs.named_model import NamedModel
from opendml.runtime.graphs.shared import SharedMemory
from opendml.runtime.graphs.steps import ConstantStep, GraphData, InputStep, Step
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.runtime.graphs.traced_model import TracedModel
from opendml.runtime.graphs.work import Work
from opendml.runtime.memory.host_array import Array, layout_in_graph
from opendml.runtime.objects.device import Device, as_device
from opendml.spec.element_types import is_bfloat16_type
from opendml.spec.enums import FeatureLevel, TensorDataType
from opendml.spec.feature_level import as_feature_level
from opendml.spec.tensor_desc import TensorDesc
from opendml.spec.values import DataTypeLike, is_integer
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
        sizes: Sequence[int | str],
        *,
        strides: Sequence[int] | None = None,
    ) -> GraphTensor:
        """Add an input, which every run is given.

        A name among the sizes is a named dimension: every call of the model may have another size there. All
        dimensions of one name are equal in a call.

        >>> import numpy as np, opendml as dml
        >>> graph = dml.Graph()
        >>> x = graph.input("x", dml.FLOAT32, ["batch", 3])
        >>> model = graph.compile({"y": x * 2.0})
        >>> model
        <Model cpu: x FLOAT32 [batch, 3] -> y FLOAT32 [batch, 3]>
        >>> [model(np.ones((batch, 3), np.float32))["y"].shape for batch in (1, 5)]
        [(1, 3), (5, 3)]

        Args:
            name: the name that `Model` uses; an identifier makes it a keyword.
            data_type: type of its elements: a TensorDataType, its name, or NumPy's or PyTorch's type. Also
                "bfloat16", which DirectML lacks: operators read the tensor as FLOAT32.
            sizes: 1 to 8 sizes or names of dimensions, outermost first.
            strides: elements from one index to the next, per dimension; None: packed.

        Raises:
            InvalidArgument: a name that is taken, or a tensor that DirectML does not allow.
        """
        if not isinstance(name, str) or name in self._inputs:
            problem = "already exists" if isinstance(name, str) else "not a name"
            raise InvalidArgument(f"graph input {shown(name)}: {problem}")
        if isinstance(sizes, list | tuple):
            sizes = [self._size(each) if isinstance(each, str) else each for each in sizes]
        label = f"graph input {shown(name)}"
        is_bfloat16, tensor = self._tensor_of(label, data_type, sizes, strides)  # type: ignore[arg-type]
        return self._input(name, tensor, is_bfloat16)

    def dimension(self, name: str, *, least: int = 1, greatest: int = GREATEST) -> int:
        """Add a named dimension that has a range, and return its size for `input`.

        Names that `input` meets first have no range. A range lets a graph use what only some sizes allow.

        >>> import numpy as np, opendml as dml
        >>> graph = dml.Graph()
        >>> length = graph.dimension("length", greatest=100)
        >>> x = graph.input("x", dml.FLOAT32, [length, 8])
        >>> positions = graph.constant(np.ones((100, 8), np.float32))
        >>> graph.compile({"y": x + positions[:length]})
        <Model cpu: x FLOAT32 [length, 8] -> y FLOAT32 [length, 8]>

        Args:
            name: the name in messages, which inputs may use too.
            least, greatest: the sizes that calls may have.

        Raises:
            InvalidArgument: a name that is taken, or no range of sizes.
        """
        if not isinstance(name, str) or not name.strip() or name in self._ranges:
            problem = "already exists" if isinstance(name, str) and name in self._ranges else "not a name"
            raise InvalidArgument(f"graph dimension {shown(name)}: {problem}")
        if not is_integer(least, 1, GREATEST) or not is_integer(greatest, max(least, 1) + 1, GREATEST):
            given = f"least={shown(least)}, greatest={shown(greatest)}"
            raise InvalidArgument(
                f"graph dimension {shown(name)}: {given}; whole numbers from 1 to {GREATEST} are needed, the "
                "greatest more than the least"
            )
        self._ranges[name] = int(least), int(greatest)
        self._trace = self._trace or Trace({})
        return self._trace.add(name, Dimension(self._hint(*self._ranges[name]), max(least, 2), greatest))

    def _hint(self, least: int, greatest: int) -> int:
        """Return a size that a dimension is taken to have while the graph is built."""
        known = [] if self._trace is None else [each.hint for each in self._trace.dimensions.values()]
        if greatest > _MOST_HINT:
            return next(each for each in _primes() if each >= least and each not in known)
        # The ends of a range are likely to be constants of the graph.
        wanted = (least + 7 * (greatest - least) // 8) | 1
        return next((each for each in range(wanted, least, -2) if each not in known), greatest)

    def _size(self, name: str) -> int:
        """Return the size of a named dimension, which may be new."""
        if self._trace is not None and name in self._ranges:
            return self._trace.size(name)
        return self.dimension(name)

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
        return self._compile(outputs, device) if self._trace is None else self._compile_named(outputs, device)

    def _compile_named(self, outputs: Mapping[str, GraphTensor], device: str | Device | None) -> Model:
        """Compile a graph with named dimensions: for each size when it is first called."""
        device = as_device(device)
        given = self._data(outputs, keep_inputs=True)
        data = replace(given, steps=tuple(map(_with_own_array, given.steps)))

        def build_for(data: GraphData, shared: SharedMemory, trace: Trace | None) -> Model | TracedModel:
            graph = Graph(feature_level=data.feature_level)
            tensors = build(graph, data)
            graph._identities = {number: place for place, number in enumerate(graph._constants)}
            if trace is None:
                return graph._compile(tensors, device, shared)
            return graph._traced(tensors, device, shared, trace)

        named = zip(self._names, self._stages.buffers, strict=True)
        inputs = {name: layout for name, layout in named if name is not None}
        layouts = dict(zip(outputs, self._work(outputs).outputs, strict=True))
        return NamedModel(device, data, (inputs, layouts), build_for)

    def _compile(
        self,
        outputs: Mapping[str, GraphTensor],
        device: str | Device | None,
        shared: SharedMemory | None = None,
    ) -> Model:
        """Compile the graph up to valid outputs, with memory that other models share."""
        device = as_device(device)
        return self._maker(outputs, device, shared)(CompiledWork(self._work(outputs), device))

    def _traced(
        self,
        outputs: Mapping[str, GraphTensor],
        device: str | Device | None,
        shared: SharedMemory,
        trace: Trace,
        before_plan: Callable[[], None] | None = None,
    ) -> TracedModel:
        """Compile a graph with the sizes of a trace, for a device that has plans."""
        device = as_device(device)
        make = self._maker(outputs, device, shared)
        names = tuple(self._names), tuple(outputs)
        return TracedModel(device, self._work(outputs), trace, make, names, before_plan)

    def _work(self, outputs: Mapping[str, GraphTensor]) -> Work:
        values = [tensor._value for tensor in outputs.values()]
        return self._stages.work(values, {*self._constants, *self._deferred_constants}, only_needed=True)

    def _maker(
        self, outputs: Mapping[str, GraphTensor], device: Device, shared: SharedMemory | None
    ) -> Callable[[CompiledWork], Model]:
        """Return a function that makes the model of this graph's compiled work."""
        names, data = tuple(self._names), None
        if not self._deferred_constants:
            data = self._data(outputs, keep_inputs=True)
        deferred, identities = tuple(self._deferred_constants), dict(self._identities)

        def make(work: CompiledWork) -> Model:
            return Model(
                device, work, names, tuple(outputs), self._constants, data, deferred, identities, shared
            )

        return make

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


_MOST_HINT = 4093
"""The greatest of `_primes`. Ranges that end above it have a prime as their hint."""


@cache
def _primes() -> list[int]:
    """Return sizes that dimensions are taken to have while a graph is built: primes, which few rules treat
    alone.

    They suit pictures of 224 pixels that are halved five times, and tables of 512 positions.
    """
    return [each for each in range(227, _MOST_HINT + 1) if all(each % divisor for divisor in range(2, 64))]


def _with_own_array(step: Step) -> Step:
    """Return a step whose constant nobody writes to: sizes that are called later read it later."""
    if not isinstance(step, ConstantStep) or step.is_unchanging or step.checksum is None:
        return step
    return replace(step, array=step.array.copy("K"), is_unchanging=True, checksum=None)
