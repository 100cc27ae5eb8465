"""PyTorch's symbolic sizes as sizes of a trace."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Any

import torch
from torch.fx import GraphModule, Node

from opendml.frontends.common.dimensions import UsedDimensions
from opendml.late_dataclass import dataclass
from opendml.program.atoms import GREATEST, LEAST_TRACED, Dimension
from opendml.program.size_values import Conditions, Values
from opendml.program.sizes import Size, as_number, greatest, is_traced, least, value_at
from opendml.program.trace import Trace

Getter = Callable[[Sequence[Any]], int]
"""A function from the inputs of a run to a number that one of them has."""


_HINT = 2**16
"""The hint of a symbol while PyTorch's expressions become traced sizes. It decides nothing for runs."""


class Untraceable(Exception):  # noqa: N818 - says a fact about a graph, caught where it is compiled
    """The sizes of a graph cannot be traced; the message says why.

    Args:
        dimension: the dimension that has to be plain; "": others too.
    """

    def __init__(self, message: str, dimension: str = "") -> None:
        super().__init__(message)
        self.dimension = dimension


@dataclass(frozen=True, slots=True)
class TracedTensor:
    """A tensor of PyTorch's graph, without content, with sizes of a trace.

    It has what converters ask of PyTorch's own tensors.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    dtype: torch.dtype
    device: torch.device
    layout: torch.layout

    def dim(self) -> int:
        """Return the number of dimensions."""
        return len(self.shape)

    def stride(self) -> tuple[int, ...]:
        """Return the elements from one index to the next, per dimension."""
        return self.strides

    def storage_offset(self) -> int:
        """Return the place of the first element in its memory."""
        return self.offset

    def numel(self) -> int:
        """Return the number of elements."""
        return math.prod(self.shape)

    def is_contiguous(self) -> bool:
        """Return whether the elements lie packed, in row-major order."""
        expected = 1
        for size, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if size != 1:
                if stride != expected:
                    return False
                expected *= size
        return True

    def at(self, dimensions: Mapping[str, int]) -> TracedTensor:
        """Return the tensor for other dimensions by name, which may be sizes of another trace."""
        shape, strides = (
            tuple([value_at(each, dimensions) for each in group]) for group in (self.shape, self.strides)
        )
        return replace(self, shape=shape, strides=strides, offset=value_at(self.offset, dimensions))


TENSORS = torch.Tensor | TracedTensor
"""The types of tensors of a graph: with exact sizes, and with traced sizes."""


def is_exact(value: Any) -> bool:
    """Return whether a tensor has plain sizes, strides and offset."""
    return not isinstance(value, TracedTensor) or not any(
        map(is_traced, (*value.shape, *value.strides, value.offset))
    )


def packed_like(value: Any, dtype: torch.dtype) -> Any:
    """Return a packed tensor without content that has the sizes of another one."""
    if isinstance(value, torch.Tensor):
        return value.new_empty(value.shape, dtype=dtype)
    strides = [math.prod(value.shape[axis + 1 :]) for axis in range(value.dim())]
    return replace(value, strides=tuple(strides), offset=0, dtype=dtype)


def values_at(value: Any, dimensions: Mapping[str, int]) -> Any:
    """Return the value of a node for other dimensions by name."""
    if isinstance(value, TracedTensor):
        return value.at(dimensions)
    if isinstance(value, tuple | list):
        return [values_at(each, dimensions) for each in value]
    return value_at(value, dimensions)


class Symbols:
    """The symbols of a graph, and its tensors with sizes that follow from them.

    Args:
        module: the graph, while PyTorch compiles it.

    Raises:
        Untraceable: a size is no integer expression, or no input has a symbol.

    Attributes:
        names: the dimensions from which the sizes of symbols follow, in order of first use.
        ranges: the sizes of these that PyTorch's guards allow, from 2 on.
        values: the value of each node, with traced sizes.
    """

    def __init__(self, module: GraphModule) -> None:
        self.ranges: dict[str, tuple[int, int]] = {}
        self._trace, self._known = Trace({}), dict[Any, Any]()
        self.values = {node: self._value(_value_of(module, node)) for node in module.graph.nodes}
        inputs = [node.meta.get("val") for node in module.graph.nodes if node.op == "placeholder"]
        getters = dict(self._getters(inputs))
        if missing := [name for name in self.ranges if name not in getters]:
            raise Untraceable(f"no input has {missing[0]} as a size")
        self.names, self._all = tuple(self.ranges), [getters[name] for name in self.ranges]

    def sizes_of(self, given: Sequence[Any]) -> tuple[int, ...]:
        """Return the values of the symbols for the inputs of a run, in the order of `names`."""
        return tuple([get(given) for get in self._all])

    def _value(self, value: Any) -> Any:
        """Return the value of a node with traced sizes."""
        if isinstance(value, torch.Tensor):
            is_strided = value.layout is torch.strided
            strides, offset = (value.stride(), value.storage_offset()) if is_strided else ((), 0)
            shape, strides = (tuple(map(self._number, each)) for each in (value.shape, strides))
            return TracedTensor(shape, strides, self._number(offset), value.dtype, value.device, value.layout)
        if isinstance(value, tuple | list):
            return [self._value(each) for each in value]
        return self._number(value)

    def _number(self, value: Any) -> Any:
        """Return a number of PyTorch's graph as one of the trace."""
        if isinstance(value, torch.SymBool):
            raise Untraceable(f"the graph computes {value}")
        if not isinstance(value, torch.SymInt | torch.SymFloat):
            return value
        return self._expressed(value.node.expr, value.node.shape_env)

    def _expressed(self, expression: Any, environment: Any) -> Any:
        if expression not in self._known:
            self._known[expression] = self._newly_expressed(expression, environment)
        return self._known[expression]

    def _newly_expressed(self, expression: Any, environment: Any) -> Any:
        if expression.is_Integer:
            return int(expression)
        if expression.is_Float:
            return float(expression)
        if expression.is_Symbol and expression.is_integer:
            return self._symbol(expression, environment)
        function = _FUNCTIONS.get(type(expression).__name__)
        if function is None:
            raise Untraceable(f"a size is {expression}")
        return function(*[self._expressed(each, environment) for each in expression.args])

    def _symbol(self, symbol: Any, environment: Any) -> int:
        """Return the size of a symbol: a dimension, or a multiple of one if PyTorch's guards say so."""
        divisors = [each.args[1] for each in environment.divisible if each.args[0] == symbol]
        factor = math.lcm(*[int(each) for each in divisors if each.is_Integer])
        known = environment.var_to_range[symbol]
        first, last = known.lower, known.upper
        lowest = max(-(-int(first) // factor) if first.is_Integer else 0, LEAST_TRACED)
        highest = min(int(last) // factor, GREATEST) if last.is_Integer else GREATEST
        name = str(symbol) if factor == 1 else f"{symbol}/{factor}"
        self.ranges[name] = lowest, max(lowest, highest)
        # Divisors that follow from symbols must not be 0 for the sizes that symbols are taken to have here.
        hint = min(max(lowest, _HINT), self.ranges[name][1])
        size: int = self._trace.add(name, Dimension(hint, *self.ranges[name])) * factor
        return size

    def _getters(self, inputs: Sequence[Any]) -> Iterator[tuple[str, Getter]]:
        """Yield functions that read the values of symbols, the preferred one of each symbol last."""
        simple = []
        for number, value in enumerate(inputs):
            for size, get in _numbers_of(number, value):
                found = self._number(size)
                if type(found) is not Size:
                    continue
                if found.name is not None:
                    simple.append((found.name, get))
                elif (solved := _solved(found)) is not None:
                    yield solved[0], partial(_read_linear, get, *solved[1:])
        yield from reversed(simple)


def _value_of(module: GraphModule, node: Node) -> Any:
    if node.op == "get_attr":
        return attrgetter(node.target)(module)
    return node.meta.get("val")


def _numbers_of(number: int, value: Any) -> Iterator[tuple[Any, Getter]]:
    """Yield the numbers that an input has, and how they are read."""
    if isinstance(value, torch.SymInt):
        yield value, lambda given: given[number]
    elif isinstance(value, torch.Tensor) and value.layout is torch.strided:
        for axis, size in enumerate(value.shape):
            yield size, partial(_read_size, number, axis)
        for axis, stride in enumerate(value.stride()):
            yield stride, partial(_read_stride, number, axis)
        yield value.storage_offset(), lambda given: given[number].storage_offset()


def _read_size(number: int, axis: int, given: Sequence[Any]) -> int:
    size: int = given[number].shape[axis]
    return size


def _read_stride(number: int, axis: int, given: Sequence[Any]) -> int:
    stride: int = given[number].stride(axis)
    return stride


def _read_linear(get: Getter, factor: int, added: int, given: Sequence[Any]) -> int:
    """Return x for an input that has factor * x + added."""
    return (get(given) - added) // factor


def _solved(size: Size) -> tuple[str, int, int] | None:
    """Return name, k and c of an expression k * name + c; None for others."""
    *rest, (monomial, factor) = size.polynomial
    if len(monomial) != 1 or len(rest) > 1 or (rest and rest[0][0]):
        return None
    name = size.trace.atoms[monomial[0]].name
    return (name, factor, rest[0][1] if rest else 0) if name in size.trace.dimensions else None


def _power(base: Any, exponent: Any) -> Any:
    if type(exponent) is not int or exponent < 0:
        raise Untraceable(f"a size has the exponent {exponent}")
    return math.prod([base] * exponent)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "Add": lambda *terms: sum(terms),
    "Mul": lambda *factors: math.prod(factors),
    "Pow": _power,
    "FloorDiv": operator.floordiv,
    "CleanDiv": operator.floordiv,
    "Mod": operator.mod,
    "PythonMod": operator.mod,
    "Max": greatest,
    "Min": least,
    "ToFloat": as_number,
    "IntTrueDiv": operator.truediv,
    "FloatTrueDiv": operator.truediv,
    "Identity": lambda value: value,
}
"""Functions of PyTorch's expressions by the names of their classes."""


class Tracing:
    """The traces of a graph and of its parts.

    Args:
        sizes: the dimensions of the run for which the graph is traced.
        hints: the sizes that the traces take them to have.
        ranges: the sizes that they may have.

    Attributes:
        used: the dimensions of the graph's own trace.
    """

    def __init__(
        self, sizes: Mapping[str, int], hints: Mapping[str, int], ranges: Mapping[str, tuple[int, int]]
    ) -> None:
        self._sizes, self._hints, self._ranges = sizes, hints, ranges
        self.used = self.of_part()

    def of_part(self) -> UsedDimensions:
        """Return the dimensions of a new trace."""
        return UsedDimensions(self._hints, ranges=self._ranges)

    def require(self, trace: Trace) -> None:
        """Check that a trace serves the run, and many sizes of each dimension.

        Raises:
            Untraceable: it does not.
        """
        if not Conditions(trace.guards)(self._sizes):
            failed = next(each for each in trace.guards if not Conditions([each])(self._sizes))
            place = trace.guards[failed]
            raise Untraceable(f"{failed[1]} is compared at {place}, with another result for {self._sizes}")
        for name in trace.dimensions:
            least, greatest = trace.range(trace.size(name).polynomial)
            if least == greatest:
                guards = [(each, place) for (_, each), place in trace.guards.items() if type(each) is Size]
                places = [place for each, place in guards if (_solved(each) or ("",))[0] == name]
                raise Untraceable(f"{name} is taken to be {least} at {places[-1]}", name)


class Expressions:
    """Nested tuples, lists and dicts with traced numbers, which are evaluated together.

    Args:
        structure: the tuple, list or dict; its sizes are of one trace.
    """

    def __init__(self, structure: Any) -> None:
        sizes, others, fixed = list[Size](), list[Any](), list[Any]()

        def source(value: Any) -> str:
            """Return the code of a value: numbers of a run by their places, and all else as it is."""
            if type(value) is Size:
                sizes.append(value)
                return f"s[{len(sizes) - 1}]"
            if is_traced(value):
                others.append(value)
                return f"o[{len(others) - 1}]"
            count = len(sizes) + len(others)
            text = ""
            if isinstance(value, dict):
                text = f"{{{', '.join([f'{key!r}: {source(each)}' for key, each in value.items()])}}}"
            elif isinstance(value, tuple | list):
                inner = "".join([f"{source(each)}, " for each in value])
                text = f"[{inner}]" if isinstance(value, list) else f"({inner})"
            if len(sizes) + len(others) > count:
                return text
            fixed.append(value)
            return f"f[{len(fixed) - 1}]"

        code = compile(f"lambda s, o: {source(structure)}", "<sizes of a run>", "eval")
        self._made: Callable[[Sequence[int], Sequence[Any]], Any] = eval(code, {"f": fixed})
        self._values, self._others = Values(sizes), others

    def at(self, dimensions: Mapping[str, int]) -> Any:
        """Return the structure with plain numbers. Parts without traced numbers are shared."""
        others = [value_at(each, dimensions) for each in self._others]
        return self._made(self._values(dimensions).tolist(), others)
