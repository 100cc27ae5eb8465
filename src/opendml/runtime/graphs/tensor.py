"""Tensors of a graph, with Python's operators, NumPy's indices and the usual methods of arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Never, TypeAlias, overload

import numpy as np

from opendml.errors import InvalidArgument
from opendml.program.scalar_type import ScalarType
from opendml.runtime.calls.arguments import validate_tensor
from opendml.runtime.described import sizes_text
from opendml.runtime.graphs.indexing import selection
from opendml.runtime.graphs.repeat import repeated
from opendml.runtime.graphs.stages import StagedValue
from opendml.runtime.graphs.steps import ViewStep
from opendml.spec.element_types import element_type
from opendml.spec.enums import DATA_TYPE_BITS, TensorDataType
from opendml.spec.four_bit import CARRIERS
from opendml.spec.schema import operator
from opendml.spec.tensor_desc import TensorDesc, common_sizes, packed_strides, reach
from opendml.spec.values import DataTypeLike, as_member, as_plain, as_tuple, is_integer
from opendml.spec.wording import counted, dimensions, shown

if TYPE_CHECKING:
    from opendml.runtime.graphs.base import GraphBase
    from opendml.runtime.memory.host_array import Array

    Operand: TypeAlias = "GraphTensor | Array | float"


def _binary(name: str, *, other_first: bool = False) -> Callable[[GraphTensor, Operand], GraphTensor]:
    """Return the method of an operator of two tensors."""

    def method(self: GraphTensor, other: Operand) -> GraphTensor:
        return self._with(name, other, other_first=other_first)

    return method


def _reduction(name: str, function: str, words: str) -> Callable[..., GraphTensor]:
    """Return the method of a reduction, which has this name in NumPy and PyTorch."""

    def method(
        self: GraphTensor,
        axis: Any = None,
        keepdims: bool = False,
        *,
        dim: Any = None,
        keepdim: bool = False,
    ) -> GraphTensor:
        axes = self._axes(name, axis, dim)
        tensor = self != 0 if name in ("any", "all") else self
        if name in ("sum", "prod") and not self._type.is_float:
            tensor = self.astype("INT64" if self._type.is_signed else "UINT64")
        result = self._call("REDUCE", (tensor,), function=function, axes=axes)
        return result._without(axes, keepdims or keepdim)

    method.__name__ = name
    method.__qualname__ = f"GraphTensor.{name}"
    method.__doc__ = f"""Return {words} along some dimensions.

        Args:
            axis: a dimension, or several; negative ones count from the end. None: all. `dim` is the same.
            keepdims: whether they stay, with size 1. `keepdim` is the same. A result has one dimension at
                least.

        Raises:
            InvalidArgument: a dimension that is not there, or a type that REDUCE does not have.
        """
    return method


def _extreme(name: str, words: str) -> Callable[..., GraphTensor]:
    """Return the method of the position of an extreme element."""

    def method(
        self: GraphTensor,
        axis: int | None = None,
        keepdims: bool = False,
        *,
        dim: int | None = None,
        keepdim: bool = False,
    ) -> GraphTensor:
        axes = self._axes(name, axis, dim)
        if len(axes) == self.ndim > 1:  # Positions count all elements.
            result = self._call(name.upper(), (self.flatten(),), output_type="INT64", axes=[0])
            return result.reshape([1] * self.ndim if keepdims or keepdim else [1])
        result = self._call(name.upper(), (self,), output_type="INT64", axes=axes)
        return result._without(axes, keepdims or keepdim)

    method.__name__ = name
    method.__qualname__ = f"GraphTensor.{name}"
    method.__doc__ = f"""Return the position of the {words} element, the first one of equal ones, as INT64.

        Args:
            axis: the dimension; None: all, whose elements are counted in row-major order. `dim` is the same.
            keepdims: whether it stays, with size 1. `keepdim` is the same.

        Raises:
            InvalidArgument: a dimension that is not there.
        """
    return method


class GraphTensor:
    """A symbolic tensor of a graph. Immediate functions that are called on such tensors return one.

    `+ - * / % ** @ & | ^ << >>`, unary `-` and `~`, and comparisons add operators of DirectML. The other
    operand is a tensor of the graph, a number or an array, which becomes a constant. Sizes are repeated by
    NumPy's rules; types are not promoted. `%` has the sign of the divisor, as in Python (MODULUS_FLOOR).
    Comparisons return tensors of UINT8, so a tensor has no truth value. `~` inverts all bits of one, and
    `dml.element_wise_logical_not` negates it. Tensors hash by identity.
    """

    __slots__ = ("_number", "_value", "data_type", "graph", "sizes")

    __array_ufunc__ = None
    """Tells NumPy's arrays to leave their operators to this class."""

    def __init__(self, graph: GraphBase, value: StagedValue, number: int) -> None:
        self.graph = graph
        self._value, self._number = value, number
        self.data_type = TensorDataType(value.tensor.data_type)
        self.sizes = value.tensor.sizes

    def __repr__(self) -> str:
        return f"<GraphTensor {self.data_type.name} {sizes_text(self.sizes)}>"

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes, outermost first."""
        return self.sizes

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.sizes)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements as NumPy has it."""
        return self._type.numpy

    @property
    def _type(self) -> ScalarType:
        return ScalarType.of(self.data_type)

    @property
    def is_rounded(self) -> bool:
        """True if the tensor has bfloat16 in memory: an input or a constant of it, or what was `rounded`."""
        return self._value.rounded is not None

    def rounded(self) -> GraphTensor:
        """Return the elements rounded to bfloat16, which the tensor has in memory.

        Operators read it as FLOAT32, and give tensors of FLOAT32. As an output of a model it is an array of
        bfloat16 (ml_dtypes). DirectML has no such type.

        >>> import ml_dtypes, numpy as np, opendml as dml
        >>> graph = dml.Graph()
        >>> x = graph.input("x", "bfloat16", [2])
        >>> model = graph.compile({"y": (x / 3.0).rounded()})
        >>> model(x=np.array([1, 2], ml_dtypes.bfloat16))["y"]
        array([0.333984, 0.667969], dtype=bfloat16)

        Raises:
            InvalidArgument: a tensor of another type than FLOAT32.
        """
        if self.data_type != TensorDataType.FLOAT32:
            raise InvalidArgument(f"rounded: {self!r}; a tensor of FLOAT32 is needed")
        return self.graph._rounded(self)

    @overload
    def reinterpret(self, sizes: Sequence[int], strides: Sequence[int] | None = None) -> GraphTensor: ...

    @overload
    def reinterpret(
        self,
        data_type: DataTypeLike,
        sizes: Sequence[int] | None = None,
        strides: Sequence[int] | None = None,
    ) -> GraphTensor: ...

    def reinterpret(self, *given: Any, **named: Any) -> GraphTensor:
        """Return the elements in other sizes, or their bytes as another type. No operator is added.

        Strides count elements of the packed tensor, whatever its own strides are. `dml.cast` converts values;
        this keeps the bits.

        >>> import opendml as dml
        >>> x = dml.Graph().input("x", dml.FLOAT32, [2, 3])
        >>> x.reinterpret([6]), x.reinterpret([3, 2], [1, 3])
        (<GraphTensor FLOAT32 [6]>, <GraphTensor FLOAT32 [3, 2]>)
        >>> x.reinterpret(dml.INT32), x.reinterpret(dml.UINT8, [2, 12])
        (<GraphTensor INT32 [2, 3]>, <GraphTensor UINT8 [2, 12]>)

        Args:
            data_type: the type that the bytes are read as; the tensor's own, if it is left out.
            sizes: 1 to 8 sizes, outermost first; those of the tensor, if only a type is given.
            strides: elements from one index to the next, per dimension; None: packed, and all of them.

        Raises:
            InvalidArgument: sizes of another number of bytes, or strides that reach past the last.
        """
        names = ("data_type", "sizes", "strides")
        first = given[0] if given else ()
        of_type = isinstance(first, TensorDataType | str) or element_type(first) is not None
        form = dict(zip(names if of_type else names[1:], given, strict=False)) | named
        if len(given) + len(named) != len(form) or not form or not form.keys() <= {*names}:
            twice = [name for name in (names if of_type else names[1:])[: len(given)] if name in named]
            if twice:
                raise TypeError(f"reinterpret() got {twice[0]} by position and as a keyword")
            problem = "reinterpret() takes a type, sizes or both, and then strides"
            arguments = counted(len(given), "argument", "arguments")
            raise TypeError(f"{problem}; {arguments} and {', '.join(named) or 'no keywords'} were given")
        data_type, strides = form.get("data_type", self.data_type), form.get("strides")
        tensor = TensorDesc(data_type, form.get("sizes", self.sizes), strides)
        validate_tensor("reinterpret", tensor, self.graph.feature_level)
        if tensor.data_type != self.data_type:
            return self._as_type(tensor)
        text = f"reinterpret: sizes {list(tensor.sizes)}"
        if strides is None and math.prod(tensor.sizes) != math.prod(self.sizes):
            raise InvalidArgument(f"{text}; must have as many elements as {list(self.sizes)}")
        view = self.graph._view(ViewStep(self._number, self.data_type, tensor.sizes, tensor.strides))
        if view is None:
            problem = f"must stay within the elements of {list(self.sizes)}"
            raise InvalidArgument(f"{text} with strides {list(tensor.effective_strides)}; {problem}")
        return view

    def _as_type(self, tensor: TensorDesc) -> GraphTensor:
        """Return the bytes of the packed tensor as a valid one of another type.

        An array has a byte for each element of 4 bits, so such a tensor has no bytes that others could read.
        """
        if CARRIERS.keys() & {self.data_type, tensor.data_type}:
            problem = "elements of 4 bits share no bytes here; dml.cast converts them"
            raise InvalidArgument(f"reinterpret: {self.data_type.name} as {tensor.data_type.name}; {problem}")
        needed = reach(tensor.sizes, tensor.effective_strides) * DATA_TYPE_BITS[tensor.data_type]
        has = math.prod(self.sizes) * DATA_TYPE_BITS[self.data_type]
        if needed > has or (tensor.strides is None and needed != has):
            given = f"{list(tensor.sizes)} of {tensor.data_type.name} are {needed // 8} bytes"
            raise InvalidArgument(f"reinterpret: {given}; {self!r} has {has // 8}")
        # Only a packed tensor has the bytes where `of_bytes` counts them. Plans for named dimensions read an
        # input in one way alone, so there the elements are moved within the program.
        is_read = self._value.tensor.strides is None and self.graph._trace is None
        packed = self if is_read else self.reinterpret(self.sizes)
        step = ViewStep(packed._number, tensor.data_type, tensor.sizes, tensor.strides, of_bytes=True)
        view = self.graph._view(step)
        assert view is not None
        return view

    def reshape(self, *sizes: Any) -> GraphTensor:
        """Return the elements, in row-major order, in other sizes. No operator is added.

        >>> import opendml as dml
        >>> x = dml.Graph().input("x", dml.FLOAT32, [2, 3, 4])
        >>> x.reshape(6, -1), x.reshape([24])
        (<GraphTensor FLOAT32 [6, 4]>, <GraphTensor FLOAT32 [24]>)

        Args:
            sizes: 1 to 8 sizes, one after the other or in one sequence. One may be -1, and follows from the
                others.

        Raises:
            InvalidArgument: sizes of another number of elements.
        """
        wanted = list(_integers("reshape", sizes))
        count, rest = math.prod(self.sizes), math.prod(size for size in wanted if size != -1)
        if wanted.count(-1) == 1 and rest > 0 and count % rest == 0:
            wanted[wanted.index(-1)] = count // rest
        if math.prod(wanted) != count or not wanted or any(size < 1 for size in wanted):
            asked, most = list(_integers("reshape", sizes)), "one of them may be -1"
            raise InvalidArgument(
                f"reshape: {asked}; sizes of {count} elements, as {list(self.sizes)} has, are needed; {most}"
            )
        return self.reinterpret(wanted)

    def permute(self, *order: Any) -> GraphTensor:
        """Return the tensor whose dimension d is dimension order[d] of this one. No operator is added.

        >>> import opendml as dml
        >>> dml.Graph().input("x", dml.FLOAT32, [2, 3, 4]).permute(0, -1, 1)
        <GraphTensor FLOAT32 [2, 4, 3]>

        Args:
            order: every dimension once, one after the other or in one sequence; negative ones count from
                the end.

        Raises:
            InvalidArgument: a dimension that is missing, listed twice or not there.
        """
        given = _integers("permute", order)
        axes = [axis + self.ndim if axis < 0 else axis for axis in given]
        if sorted(axes) != list(range(self.ndim)):
            needed = f"each of the {dimensions(self.ndim)} once is needed"
            raise InvalidArgument(f"permute: {list(given)}; {needed}")
        strides = packed_strides(self.sizes)
        return self.reinterpret([self.sizes[axis] for axis in axes], strides=[strides[axis] for axis in axes])

    def transpose(self, *order: Any) -> GraphTensor:
        """Permute the dimensions as `permute` and NumPy do, or reverse them without arguments.

        PyTorch's `transpose` of two dimensions is `swapaxes`.
        """
        return self.permute(*order) if order else self.permute(range(self.ndim - 1, -1, -1))

    @property
    def T(self) -> GraphTensor:  # noqa: N802 - NumPy's name
        """The dimensions in the opposite order."""
        return self.transpose()

    def swapaxes(self, first: int, second: int) -> GraphTensor:
        """Exchange two dimensions. No operator is added.

        Args:
            first, second: the dimensions; negative ones count from the end.

        Raises:
            InvalidArgument: a dimension that is not there.
        """
        (a,), (b,) = (self._axes("swapaxes", each, None) for each in (first, second))
        order = list(range(self.ndim))
        order[a], order[b] = b, a
        return self.permute(order)

    def flatten(self) -> GraphTensor:
        """Return the elements, in row-major order, in one dimension. No operator is added."""
        return self.reshape(math.prod(self.sizes))

    def squeeze(self, axis: Any = None, *, dim: Any = None) -> GraphTensor:
        """Remove dimensions of size 1. No operator is added. One dimension remains at least.

        Args:
            axis: a dimension, or several; None: all of size 1. `dim` is the same.

        Raises:
            InvalidArgument: a dimension that is not there, or has another size.
        """
        if axis is None and dim is None:
            return self.reshape([size for size in self.sizes if size != 1] or [1])
        axes = self._axes("squeeze", axis, dim)
        for each in axes:
            if self.sizes[each] != 1:
                raise InvalidArgument(f"squeeze: dimension {each} has size {self.sizes[each]}; must be 1")
        return self._without(axes, False)

    def unsqueeze(self, axis: int) -> GraphTensor:
        """Insert a dimension of size 1. No operator is added.

        >>> import opendml as dml
        >>> dml.Graph().input("x", dml.FLOAT32, [2, 3]).unsqueeze(-1)
        <GraphTensor FLOAT32 [2, 3, 1]>

        Args:
            axis: the number of the new dimension in the result; a negative one counts from its end.

        Raises:
            InvalidArgument: the result has no such dimension.
        """
        if not is_integer(axis, -self.ndim - 1, self.ndim):
            raise InvalidArgument(f"unsqueeze: {shown(axis)}; must be within [{-self.ndim - 1}, {self.ndim}]")
        place = axis % (self.ndim + 1)
        return self.reshape([*self.sizes[:place], 1, *self.sizes[place:]])

    def astype(self, data_type: DataTypeLike) -> GraphTensor:
        """Return the elements in another type, by CAST. Floats become integers by truncation.

        >>> import opendml as dml
        >>> dml.Graph().input("x", dml.FLOAT32, [2, 3]).astype(dml.INT32)
        <GraphTensor INT32 [2, 3]>

        Args:
            data_type: the type.

        Raises:
            InvalidArgument: no type, or one that CAST does not convert to.
        """
        type = as_member(TensorDataType, data_type)
        return self if type == self.data_type else self._call("CAST", (self,), output_type=data_type)

    sum = _reduction("sum", "SUM", "the sums, of integers in INT64 or UINT64,")
    prod = _reduction("prod", "MULTIPLY", "the products, of integers in INT64 or UINT64,")
    mean = _reduction("mean", "AVERAGE", "the means")
    max = _reduction("max", "MAX", "the greatest elements")
    min = _reduction("min", "MIN", "the least elements")
    any = _reduction("any", "MAX", "1 where an element is not 0, as UINT8,")
    all = _reduction("all", "MIN", "1 where no element is 0, as UINT8,")
    argmax = _extreme("argmax", "greatest")
    argmin = _extreme("argmin", "least")

    def _axes(self, function: str, axis: Any, dim: Any) -> list[int]:
        """Return dimensions counted from the front.

        Raises:
            InvalidArgument: one is not there, or is listed twice; or `axis` and `dim` are given.
        """
        if axis is not None and dim is not None:
            raise InvalidArgument(
                f"{function}: axis {shown(axis)} and dim {shown(dim)}; one of them is needed"
            )
        given = dim if axis is None else axis
        axes = list(range(self.ndim)) if given is None else list(_integers(function, (given,)))
        counted = [each + self.ndim if each < 0 else each for each in axes]
        if any(not 0 <= each < self.ndim for each in counted) or len({*counted}) < len(counted):
            allowed = f"within [{-self.ndim}, {self.ndim - 1}], and each once"
            raise InvalidArgument(f"{function}: axis {shown(given)}; must be {allowed}")
        return counted

    def _without(self, axes: Sequence[int], keeps: bool) -> GraphTensor:
        """Return the tensor without dimensions of size 1, unless it keeps them."""
        rest = [size for axis, size in enumerate(self.sizes) if axis not in axes]
        return self if keeps else self.reshape(rest or [1])

    def __getitem__(self, index: Any) -> GraphTensor:
        """Return the elements that an index selects, as NumPy does. No operator is added.

        An index has integers, slices with steps of any sign, `...` and None, a new dimension of size 1.

        >>> import opendml as dml
        >>> x = dml.Graph().input("x", dml.FLOAT32, [2, 3, 4])
        >>> x[0, ::-1, 1:3], x[..., None]
        (<GraphTensor FLOAT32 [3, 2]>, <GraphTensor FLOAT32 [2, 3, 4, 1]>)

        Raises:
            InvalidArgument: an index that is not there, no elements, no dimension left (DirectML's tensors
                have one at least), or indices of another kind: `dml.gather` takes tensors of them.
        """
        selected = selection(index, self.sizes)
        step = ViewStep(self._number, self.data_type, selected.sizes, selected.strides, selected.offset)
        is_whole = selected.sizes == self.sizes and selected.strides == packed_strides(self.sizes)
        view = self if is_whole else self.graph._view(step)
        assert view is not None
        is_same = len(view.sizes) == len(selected.result) and view.sizes == selected.result
        return view if is_same else view.reinterpret(selected.result)

    __add__ = _binary("ELEMENT_WISE_ADD")
    __radd__ = _binary("ELEMENT_WISE_ADD", other_first=True)
    __sub__ = _binary("ELEMENT_WISE_SUBTRACT")
    __rsub__ = _binary("ELEMENT_WISE_SUBTRACT", other_first=True)
    __mul__ = _binary("ELEMENT_WISE_MULTIPLY")
    __rmul__ = _binary("ELEMENT_WISE_MULTIPLY", other_first=True)
    __mod__ = _binary("ELEMENT_WISE_MODULUS_FLOOR")
    __rmod__ = _binary("ELEMENT_WISE_MODULUS_FLOOR", other_first=True)
    __and__ = _binary("ELEMENT_WISE_BIT_AND")
    __rand__ = _binary("ELEMENT_WISE_BIT_AND", other_first=True)
    __or__ = _binary("ELEMENT_WISE_BIT_OR")
    __ror__ = _binary("ELEMENT_WISE_BIT_OR", other_first=True)
    __xor__ = _binary("ELEMENT_WISE_BIT_XOR")
    __rxor__ = _binary("ELEMENT_WISE_BIT_XOR", other_first=True)
    __lshift__ = _binary("ELEMENT_WISE_BIT_SHIFT_LEFT")
    __rlshift__ = _binary("ELEMENT_WISE_BIT_SHIFT_LEFT", other_first=True)
    __rshift__ = _binary("ELEMENT_WISE_BIT_SHIFT_RIGHT")
    __rrshift__ = _binary("ELEMENT_WISE_BIT_SHIFT_RIGHT", other_first=True)
    __lt__ = _binary("ELEMENT_WISE_LOGICAL_LESS_THAN")
    __le__ = _binary("ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL")
    __gt__ = _binary("ELEMENT_WISE_LOGICAL_GREATER_THAN")
    __ge__ = _binary("ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL")

    def __truediv__(self, other: Operand) -> GraphTensor:
        return self._divided(other, other_first=False)

    def __rtruediv__(self, other: Any) -> GraphTensor:
        return self._divided(other, other_first=True)

    def _divided(self, other: Any, *, other_first: bool) -> GraphTensor:
        if not self._type.is_float:
            raise InvalidArgument(
                f"/ of {self.data_type.name}: a quotient of integers is a float in Python, and DirectML "
                "converts no types; dml.cast makes floats, and dml.element_wise_divide rounds towards 0"
            )
        return self._with("ELEMENT_WISE_DIVIDE", other, other_first=other_first)

    def __pow__(self, other: Operand) -> GraphTensor:
        number = as_plain(other)
        if isinstance(number, int | float) and self._type.is_float:
            return self._call("ELEMENT_WISE_CONSTANT_POW", (self,), exponent=float(number))
        return self._with("ELEMENT_WISE_POW", other)

    def __rpow__(self, other: Any) -> GraphTensor:
        return self._with("ELEMENT_WISE_POW", other, other_first=True)

    def __matmul__(self, other: GraphTensor | Array) -> GraphTensor:
        return self._times(other, other_first=False)

    def __rmatmul__(self, other: Any) -> GraphTensor:
        return self._times(other, other_first=True)

    def _times(self, other: Any, *, other_first: bool) -> GraphTensor:
        if not isinstance(other, GraphTensor) and not hasattr(other, "__dlpack__"):
            return NotImplemented  # type: ignore[no-any-return]
        tensor = other if isinstance(other, GraphTensor) else self.graph._constant_of(other, "@")
        return product(tensor, self) if other_first else product(self, tensor)

    def __neg__(self) -> GraphTensor:
        return self._call("ELEMENT_WISE_NEGATE", (self,))

    def __invert__(self) -> GraphTensor:
        return self._call("ELEMENT_WISE_BIT_NOT", (self,))

    def __pos__(self) -> GraphTensor:
        return self

    def __abs__(self) -> GraphTensor:
        return self._call("ELEMENT_WISE_ABS", (self,))

    def __eq__(self, other: object) -> GraphTensor:  # type: ignore[override]
        return self._with("ELEMENT_WISE_LOGICAL_EQUALS", other)

    def __ne__(self, other: object) -> GraphTensor:  # type: ignore[override]
        equal = self._with("ELEMENT_WISE_LOGICAL_EQUALS", other)
        return equal if equal is NotImplemented else self._call("ELEMENT_WISE_LOGICAL_NOT", (equal,))

    __hash__ = object.__hash__

    def __bool__(self) -> Never:
        raise TypeError(
            "the truth value of a tensor of a graph is not known before the graph runs; "
            "dml.element_wise_if chooses between elements"
        )

    def __len__(self) -> Never:
        raise TypeError("a tensor of a graph has no len(); .shape has its sizes")

    def __iter__(self) -> Never:
        raise TypeError("a tensor of a graph cannot be iterated over; dml.split makes several of one")

    def __array__(self, *_: Any, **__: Any) -> Never:
        raise TypeError("a tensor of a graph has no values before the graph is compiled and called")

    def _with(self, name: str, other: Any, *, other_first: bool = False) -> GraphTensor:
        """Return an operator of two tensors on this one and another operand; NotImplemented if it is none."""
        other = as_plain(other)
        if not isinstance(other, GraphTensor | int | float) and not hasattr(other, "__dlpack__"):
            return NotImplemented  # type: ignore[no-any-return]
        return self._call(name, (other, self) if other_first else (self, other))

    def _call(
        self, name: str, tensors: tuple[Any, ...], *, output_type: Any = None, **attributes: Any
    ) -> GraphTensor:
        result: GraphTensor = self.graph._call(name, tensors, attributes, output_type)
        return result


def _integers(function: str, given: tuple[Any, ...]) -> tuple[int, ...]:
    """Return integers that are given one after the other, or as one sequence.

    Raises:
        InvalidArgument: something else.
    """
    values = as_tuple(given[0]) if len(given) == 1 else as_tuple(given)
    values = values if isinstance(values, tuple) else as_tuple(given)
    if not all(isinstance(value, int) and type(value) is not bool for value in values):
        raise InvalidArgument(f"{function}: {shown(values)}; whole numbers are needed")
    return tuple(values)


def product(a: GraphTensor, b: GraphTensor) -> GraphTensor:
    """Multiply matrices as NumPy does.

    Leading dimensions number several matrices. A tensor with one dimension is a row on the left and a column
    on the right, which the result does not have.

    Raises:
        InvalidArgument: sizes that do not fit, two vectors (a number is no tensor), or types without GEMM.
    """
    if a.ndim == b.ndim == 1:
        raise InvalidArgument(
            f"@ of sizes {list(a.sizes)} and {list(b.sizes)}: a number, which is no tensor of DirectML; "
            "a[None] @ b keeps a dimension"
        )
    left = a.reshape(1, -1) if a.ndim == 1 else a
    right = b.reshape(-1, 1) if b.ndim == 1 else b
    result = _of_matrices(left, right, f"@ of sizes {list(a.sizes)} and {list(b.sizes)}")
    sizes = list(result.sizes)
    if a.ndim == 1:
        del sizes[-2]
    if b.ndim == 1:
        del sizes[-1]
    return result if tuple(sizes) == result.sizes else result.reshape(sizes)


def _of_matrices(a: GraphTensor, b: GraphTensor, owner: str) -> GraphTensor:
    (*before_a, m, k), (*before_b, other_k, n) = a.sizes, b.sizes
    if k != other_k:
        raise InvalidArgument(f"{owner}: {k} columns and {other_k} rows; must be equally many")
    try:
        before = common_sizes(before_a, before_b)
    except ValueError:
        raise InvalidArgument(
            f"{owner}: {before_a} and {before_b} matrices cannot be repeated to equal numbers"
        ) from None
    if not before_b or math.prod(before_b) == 1:
        # One GEMM multiplies the rows of all matrices on the left by one matrix on the right.
        return _gemm(a, (math.prod(before) * m, k), b, (k, n)).reshape(*before, m, n)
    count = math.prod(before)
    a, b = (repeated(each, (*before, *each.sizes[-2:])) for each in (a, b))
    return _gemm(a, (1, count, m, k), b, (1, count, k, n)).reshape(*before, m, n)


def _gemm(a: GraphTensor, sizes_a: tuple[int, ...], b: GraphTensor, sizes_b: tuple[int, ...]) -> GraphTensor:
    """Multiply tensors in these sizes by GEMM, with the least number of dimensions that its table allows."""
    support = operator("GEMM").support_at(a.graph.feature_level)
    ones = (1,) * ((support.tensors["ATensor"].dims[0] if support else 2) - len(sizes_a))
    tensors = (a.reshape(ones + sizes_a), b.reshape(ones + sizes_b), None)
    result: GraphTensor = a.graph._call("GEMM", tensors, {})
    return result
