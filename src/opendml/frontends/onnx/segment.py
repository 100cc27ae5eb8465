"""A run of ONNX nodes that becomes one graph of DirectML operators."""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import repeat
from typing import Any

import numpy as np

from opendml.budget import meter
from opendml.compiler.sized import at_sizes
from opendml.errors import Error, LimitExceeded, Unsupported
from opendml.frontends.common.calls import dml
from opendml.frontends.common.dimensions import UsedDimensions
from opendml.frontends.common.types import NotExpressible, require_expressible
from opendml.frontends.onnx.conversion import NotRunnable, OnnxConversion, Result
from opendml.frontends.onnx.custom import converter_of, custom_of
from opendml.frontends.onnx.device_run import DeviceContents
from opendml.frontends.onnx.dimensions import KnownContents, SizesOfRun, value_with
from opendml.frontends.onnx.evaluate import evaluator_of
from opendml.frontends.onnx.evaluator_facts import facts_of
from opendml.frontends.onnx.evaluator_limits import require_memory
from opendml.frontends.onnx.forms import Dimensions
from opendml.frontends.onnx.inference import empty_of, inferred_outputs
from opendml.frontends.onnx.node import OnnxNode
from opendml.frontends.onnx.package import onnx
from opendml.frontends.onnx.size_arithmetic import follows_from_sizes, sizes_computed
from opendml.frontends.onnx.states import Values
from opendml.frontends.onnx.values import (
    FLOAT32,
    Array,
    Computed,
    Known,
    RuntimeValue,
    Type,
    Value,
    bfloat16,
    carrier_of,
    is_bfloat16,
    is_same,
    sizes_of_type,
    stored_type,
)
from opendml.late_dataclass import dataclass
from opendml.program.sizes import is_traced
from opendml.runtime.graphs.caches import CachedContents, Grown
from opendml.runtime.graphs.compiled_work import CompiledWork
from opendml.runtime.graphs.graph import Graph
from opendml.runtime.graphs.model import Model
from opendml.runtime.graphs.shared import SharedMemory
from opendml.runtime.graphs.steps import resized
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.runtime.graphs.traced_model import TracedModel
from opendml.runtime.objects.device import Device

_LEAST_WIDENED, _LEAST_TRANSPOSED = 1 << 14, 1 << 20
"""The fewest elements of a known matrix that is not widened, or transposed, ahead. Smaller ones may be sizes
or scales, or be read in place."""


class Segment:
    """A graph under construction, and the values of all tensors so far.

    Args:
        values: the tensors before the segment.
        shared: the memory that the graphs of all sizes share.
        dimensions: the traced dimensions in this run, by name.
        is_exact: whether the graph is for these dimensions alone; otherwise sizes are traced.

    Attributes:
        own: the values that its nodes made.
        dimensions: the dimensions that sizes of the segment follow from.
    """

    def __init__(
        self,
        values: Values,
        shared: SharedMemory,
        dimensions: Mapping[str, int] | None = None,
        is_exact: bool = False,
    ) -> None:
        self.own: dict[str, Value] = {}
        self._taken: dict[str, Value] = {}
        self.values: Values = ChainMap(self.own, self._taken, *values.maps)
        self.dimensions = UsedDimensions(dimensions or {}, is_exact)
        self._graph, self._shared = Graph(), shared
        self._inputs: list[str] = []
        self._tensors: dict[str, GraphTensor] = {}
        self._sources: dict[str, frozenset[str]] = {}
        """The single numbers from before the segment that tensors follow from, if from nothing else."""

    def take(self, names: Iterable[str]) -> None:
        """State the sizes of values from before the segment by its own dimensions.

        Names are taken in their own order, so that all processes number the dimensions alike.
        """
        for name in sorted(names):
            value = self.values.get(name)
            if value is not None and name not in self.own and name not in self._taken:
                found = value_with(value, self.dimensions)
                if found is not value:
                    self._taken[name] = found

    def add(self, node: OnnxNode) -> None:
        """Convert a node, and add its operators to the graph.

        Raises:
            NotExpressible: DirectML cannot express it.
            ValueNeeded: it depends on the content of a tensor that is not known yet.
            LimitExceeded: its results are larger than the limits allow.
        """
        values = [self._value(node, name) for name in node.inputs]
        require_memory(node, self.values)
        is_converted = (
            facts_of(node).unreliable
            or custom_of(node) is not None
            or follows_from_sizes(node, values)
            or _is_read_by_products(node, values)
        )
        known = sizes_computed(node, values) if is_converted else self._folded(node)
        if known is None:
            try:
                known = self._converted(node, values)
            except (NotExpressible, NotRunnable) as error:
                # ONNX's inference rounds sizes that do not fit down, at times to 0.
                known = None if isinstance(error, NotRunnable) else self._empty(node)
                known = known or (self._folded(node) if is_converted else None)
                if known is None:
                    raise
        if all(map(self._is_of_numbers, node.reads)):
            sources = frozenset().union(*[self.sources_of(name) for name in node.reads])
            self._sources.update(dict.fromkeys(known, sources))
        self.values.update(known)

    def _is_of_numbers(self, name: str) -> bool:
        """Return whether a tensor follows from single numbers that runs have before the segment."""
        value = self.values.get(name)
        if isinstance(value, RuntimeValue):
            sizes = value.sizes
            # Comparing traced sizes would add guards.
            return sizes is not None and not any(map(is_traced, sizes)) and sizes in ((), (1,))
        return isinstance(value, Known) or name in self._sources

    def sources_of(self, name: str) -> frozenset[str]:
        """Return the single numbers from before the segment that a tensor follows from: none if it is known,
        the tensor itself if it follows from anything else."""
        if isinstance(self.values.get(name), Known):
            return frozenset()
        return self._sources.get(name, frozenset([name]))

    def compile(
        self, outputs: Iterable[str], device: Device, before_plan: Callable[[], None]
    ) -> CompiledSegment | None:
        """Compile the graph for those of the outputs that it computes; None: it computes none.

        Args:
            outputs: names of tensors.
            device: the device of the graph.
            before_plan: is called before constants are read for other sizes; it may raise an error.
        """
        computed = {name: value for name in outputs if isinstance(value := self.values[name], Computed)}
        if not computed:
            return None
        tensors, trace = {name: each.tensor for name, each in computed.items()}, self.dimensions.trace
        model: Model | TracedModel
        if trace.dimensions:
            model = self._graph._traced(tensors, device, self._shared, trace, before_plan)
        else:
            model = self._graph._compile(tensors, device, self._shared)
        types = tuple((name, value.type) for name, value in computed.items())
        sizes = SizesOfRun(value.sizes for value in computed.values())
        is_shaped = all(_is_same_shape(value.sizes, value.tensor) for value in computed.values())
        known = KnownContents({name: self.values[name] for name in self._inputs})
        plain = frozenset([name for name in self._inputs if _is_plain(self.values[name])])
        return CompiledSegment(model, tuple(self._inputs), types, sizes, is_shaped, known, plain)

    @property
    def is_empty(self) -> bool:
        """True if the graph computes nothing."""
        return not any(isinstance(value, Computed) for value in self.own.values())

    def _value(self, node: OnnxNode, name: str) -> Value | None:
        if not name:
            return None
        if name not in self.values:
            raise NotExpressible(f"tensor {name!r} is made by no node before it")
        return self.values[name]

    def _empty(self, node: OnnxNode) -> dict[str, Value] | None:
        """Return the outputs of a node if ONNX's inference says that all are empty."""
        types = inferred_outputs(node, self.values)
        if any(0 in (sizes_of_type(type) or ()) for type in types.values()):
            types = inferred_outputs(node, self.values, exact=True)
        found = {name: empty_of(type) for name, type in types.items()}
        known = {name: Known(array) for name, array in found.items() if array is not None}
        return {**known} if known and all(name in known for name in node.outputs if name) else None

    def _folded(self, node: OnnxNode) -> dict[str, Value] | None:
        """Evaluate a node whose inputs are all known; None: some are not, or the evaluator cannot."""
        reads = node.reads
        if facts_of(node).random or not all(isinstance(self.values.get(name), Known) for name in reads):
            return None
        contents = {name: value.content for name in reads if isinstance(value := self.values[name], Known)}
        try:
            results = evaluator_of(node).folded(contents)
        except LimitExceeded:
            raise
        except Error:
            return None
        return {name: Known(content) for name, content in results.items()}

    def _converted(self, node: OnnxNode, values: list[Value | None]) -> dict[str, Value]:
        converter = converter_of(node)
        if converter is None:
            raise NotExpressible("opendml has no mapping to DirectML's operators")
        conversion = OnnxConversion(
            node, self._graph, values, lambda number: self._tensor(node.inputs[number])
        )
        try:
            result = converter(conversion)
        except (LimitExceeded, NotExpressible):
            raise
        except NotRunnable as error:
            raise NotRunnable(f"{node}: {error}") from error
        except Error as error:
            raise NotExpressible(str(error)) from error
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:  # An invalid node.
            raise NotExpressible(f"{type(error).__name__}: {error}") from error
        except MemoryError as error:
            raise Unsupported(f"{node}: no memory: {error}") from error
        named = _named(node, conversion, result)
        types = [value.type for value in values if value is not None]
        if any(map(is_bfloat16, types)):
            named = self._with_bfloat16(node, named, types)
        return {name: _in_type(value) for name, value in named.items()}

    def _with_bfloat16(
        self, node: OnnxNode, named: Mapping[str, Value], types: Sequence[Type | None]
    ) -> dict[str, Value]:
        """Return the results of a node that reads bfloat16 with the types that ONNX has for them.

        Converters see float32. If ONNX's inference does not know the node, results of float32 are bfloat16
        if no input is float32.
        """
        inferred = inferred_outputs(node, self.values)
        found = dict(named)
        for name, value in named.items():
            element = inferred[name].tensor_type.elem_type if name in inferred else 0
            is_rounded = element == onnx.TensorProto.BFLOAT16 if element else FLOAT32 not in types
            if value.type != FLOAT32 or not is_rounded:
                continue
            if isinstance(value, Computed):
                found[name] = replace(value, type=bfloat16())
            elif isinstance(value, Known):
                found[name] = Known(value.content.astype(bfloat16()))
        return found

    def _tensor(self, name: str) -> GraphTensor:
        """Return the graph's tensor for a value, which becomes an input or a constant on first use."""
        value = self.values[name]
        if isinstance(value, Computed):
            return value.tensor
        if name not in self._tensors:
            self._tensors[name] = self._source(name, value)
        return self._tensors[name]

    def _source(self, name: str, value: Known | RuntimeValue) -> GraphTensor:
        if is_same(value):
            return self._graph._unchanging(*self._shared.unchanging(stored(value.unread), value.identity))
        self._inputs.append(name)
        sizes, type = value.sizes, value.type
        assert sizes is not None
        assert type is not None
        data_type = "bfloat16" if is_bfloat16(type) else stored_type(type)
        return self._graph.input(name, data_type, sizes or (1,))


def _named(node: OnnxNode, conversion: OnnxConversion, result: Result) -> dict[str, Value]:
    """Return a converter's results by the names of the node's outputs."""
    results = result if isinstance(result, tuple) else (result,)
    named: dict[str, Value] = {}
    for index, name in enumerate(node.outputs):
        if not name:
            continue
        each = results[index] if index < len(results) else None
        if each is None:
            raise NotExpressible(f"output {index} has no mapping to DirectML's operators")
        named[name] = conversion.result(each) if isinstance(each, GraphTensor) else each
    return named


def _in_type(value: Value) -> Value:
    """Return a value whose tensor is rounded to bfloat16 in memory if that is its type, and only then."""
    if not isinstance(value, Computed) or value.tensor.is_rounded is is_bfloat16(value.type):
        return value
    if is_bfloat16(value.type):
        return replace(value, tensor=value.tensor.rounded())
    return replace(value, tensor=dml.cast(value.tensor, output_type=value.tensor.data_type))


@dataclass(frozen=True)
class CompiledSegment:
    """A compiled graph, and the tensors that it reads and computes.

    Args:
        model: the graph, compiled for traced or for exact sizes.
        inputs: the names of the tensors that it reads.
        results: the names and types of those that it computes.
        sizes: the sizes of these.
        is_shaped: whether these are the sizes of the graph's tensors.
        known: the tensors among its inputs that follow from sizes.
        plain: the tensors among its inputs that the graph reads as they are if they are packed.
    """

    model: Model | TracedModel
    inputs: tuple[str, ...]
    results: tuple[tuple[str, Type], ...]
    sizes: SizesOfRun
    is_shaped: bool
    known: KnownContents
    plain: frozenset[str]

    def model_at(self, dimensions: Mapping[str, int]) -> Model | None:
        """Return the model for the dimensions of a run; None: it does not serve them."""
        return self.model.at(dimensions) if isinstance(self.model, TracedModel) else self.model

    def serves(self, dimensions: Mapping[str, int], contents: Mapping[str, Any]) -> bool:
        """Return whether there is a model for the dimensions of a run."""
        return self._in_place(dimensions, contents) is not None or self.model_at(dimensions) is not None

    def _in_place(self, dimensions: Mapping[str, int], contents: Mapping[str, Any]) -> Grown | None:
        """Return the model whose results lie in the memory of inputs; None: there is none."""
        if not isinstance(contents, CachedContents) or not isinstance(self.model, TracedModel):
            return None
        return contents.grown(self.model, dimensions)

    @property
    def plan_count(self) -> int:
        """The number of plans that the model has made so far."""
        return self.model.all_plan_count if isinstance(self.model, TracedModel) else 0

    def part_at(self, dimensions: Mapping[str, int]) -> Model | None:
        """Return the model for the dimensions of a run, compiled for the graph of these sizes alone."""
        model = self.model_at(dimensions)
        if model is None or model._data is None or model is self.model:
            return model
        return Model(
            model.device,
            CompiledWork(at_sizes(model._work.work, dimensions), model.device),
            model._names,
            model.output_names,
            model._arrays,
            resized(model._data, dimensions),
            identities=model._identities,
            shared=model._shared,
        )

    def __call__(self, contents: dict[str, Any], dimensions: Dimensions) -> None:
        """Compute the results for the dimensions of a run, and add them to `contents`."""
        in_place, known = self._in_place(dimensions, contents), self.known(dimensions)
        if isinstance(contents, DeviceContents):
            model = self.model_at(dimensions) if in_place is None else in_place.model
            assert model is not None
            meter().count("kernel_steps", model._kernel_steps, "one run")
            given = {name: (known if name in known else contents)[name] for name in self.inputs}
            shapes = repeat(None) if self.is_shaped else self.sizes(dimensions)
            results = [(*each, shape) for each, shape in zip(self.results, shapes, strict=False)]
            contents.start(model, given, in_place, results)
            return
        outputs, given = None, {}
        for name in self.inputs:
            if in_place is None or name not in in_place.inputs:
                array = (known if name in known else contents)[name]
                given[name] = array if name in self.plain and array.flags.c_contiguous else _packed(array)
        if in_place is not None:
            meter().count("kernel_steps", in_place.model._kernel_steps, "one run")
            outputs = in_place(given)
            given |= {name: _packed(array) for name, array in in_place.inputs.items() if outputs is None}
        if outputs is None:
            model = self.model_at(dimensions)
            assert model is not None
            meter().count("kernel_steps", model._kernel_steps, "one run")
            outputs = model(**given)
        for (name, type), array in zip(self.results, outputs.values(), strict=True):
            contents[name] = array if array.dtype == type else array.view(type)
        if not self.is_shaped:
            for (name, _), sizes in zip(self.results, self.sizes(dimensions), strict=True):
                contents[name] = contents[name].reshape(sizes)


def _is_plain(value: Value) -> bool:
    """Return whether packed contents of a value are tensors of DirectML as they are."""
    if not isinstance(value, RuntimeValue) or not value.sizes or value.type is None:
        return False
    return carrier_of(value.type) == value.type


def _is_same_shape(sizes: Sequence[int], tensor: GraphTensor) -> bool:
    """Return whether sizes are those of a tensor for all dimensions. Equal expressions are one object."""
    return len(sizes) == len(tensor.shape) and all(
        a is b or (type(a) is type(b) is int and a == b) for a, b in zip(sizes, tensor.shape, strict=True)
    )


def stored(array: Array) -> Array:
    """Return an array in the form of a DirectML tensor: of its types, packed, with a dimension.

    Raises:
        NotExpressible: DirectML has no such tensor.
    """
    stored_type(array.dtype)
    require_expressible(array.shape, "the tensor")
    return _packed(array)


def _packed(array: Array) -> Array:
    """Return an expressible array in the form of a DirectML tensor."""
    carrier = carrier_of(array.dtype)
    if not array.ndim or not array.flags.c_contiguous:
        array = np.ascontiguousarray(np.atleast_1d(array))
    return array if array.dtype == carrier else array.view(carrier)


def _is_read_by_products(node: OnnxNode, values: Sequence[Value | None]) -> bool:
    """Return whether products can compute a node while they pack its known matrix: floats of numbers of 16
    bits or less, or the transposed matrix. Folding the node would put a second matrix in memory."""
    is_cast = node.operator == "Cast" and node.attributes.get("to") == onnx.TensorProto.FLOAT
    widens = is_cast or node.operator == "DequantizeLinear"
    if not values or not (widens or node.operator == "Transpose"):
        return False
    matrix = values[0]
    if not isinstance(matrix, Known) or not all(each is None or isinstance(each, Known) for each in values):
        return False
    sizes, type = matrix.sizes, matrix.type
    if sizes is None or type is None or len(sizes) != 2:
        return False
    if widens:
        return math.prod(sizes) >= _LEAST_WIDENED and type.itemsize <= 2
    return math.prod(sizes) >= _LEAST_TRANSPOSED
