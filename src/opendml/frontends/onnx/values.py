"""Values of an ONNX model's tensors during a trace.

A `Known` value is an array that is the same in every run. A `RuntimeValue` is an array that exists before the
current graph runs. A `Computed` value is a tensor of that graph. ONNX's sizes and types may differ from those
of the graph's tensor, because DirectML has no tensors without dimensions and no booleans.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import field
from functools import cache
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from opendml.across_forks import importing
from opendml.errors import InvalidArgument
from opendml.frontends.common.types import computed_type_of
from opendml.late_dataclass import dataclass
from opendml.program.sizes import is_traced
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.spec.enums import TensorDataType

if TYPE_CHECKING:
    import onnx

Array = np.ndarray[Any, Any]
Type = np.dtype[Any]

BOOLEAN = np.dtype(np.bool_)
FLOAT32 = np.dtype(np.float32)

_CARRIERS: dict[str, Type] = {
    "bool": np.dtype(np.uint8),
    "complex64": np.dtype(np.uint64),
    "float8_e4m3fn": np.dtype(np.uint8),
    "float8_e4m3fnuz": np.dtype(np.uint8),
    "float8_e5m2": np.dtype(np.uint8),
    "float8_e5m2fnuz": np.dtype(np.uint8),
    "float8_e8m0fnu": np.dtype(np.uint8),
}


@cache
def carrier_of(type: Type) -> Type:
    """Return the type that carries elements of `type` through operators that only move them."""
    return _CARRIERS.get(type.name, type)


def is_bfloat16(type: Type | None) -> bool:
    """Return whether a type is bfloat16: one of tensors in memory, for which converters see float32."""
    return type is not None and type.name == "bfloat16"


@cache
def bfloat16() -> Type:
    """Return bfloat16 as a type of NumPy."""
    with importing:
        import ml_dtypes  # Few models have it, and it takes 2 MB.
    found: Type = np.dtype(ml_dtypes.bfloat16)
    return found


def stored_type(type: Type) -> TensorDataType:
    """Return DirectML's type that carries elements of `type`; FLOAT32 for bfloat16.

    Raises:
        NotExpressible: DirectML has none, as for strings.
    """
    return computed_type_of(carrier_of(type))


def array_of(tensor: onnx.TensorProto) -> Array:
    """Return the content of a tensor in a message.

    Raises:
        InvalidArgument: the type is unknown, or the data do not fit the sizes.
    """
    with importing:
        from opendml.frontends.onnx.element_types import array_in  # Names of converters need no messages.
        from opendml.frontends.onnx.package import onnx
    try:
        if tensor.data_type == onnx.TensorProto.STRING:
            # All strings of a NumPy string array take as much as the longest.
            texts = np.empty(len(tensor.string_data), object)
            texts[:] = [each.decode() for each in tensor.string_data]
            return texts.reshape(tensor.dims)
        return array_in(tensor)
    except (LookupError, TypeError, ValueError) as error:
        raise InvalidArgument(f"tensor {tensor.name!r}: {error}") from error


def strings_of(array: Array) -> list[str]:
    """Return the elements of a tensor of strings."""
    return [str(each) for each in array.flat]


def sizes_of_type(type: onnx.TypeProto) -> tuple[int | str | None, ...] | None:
    """Return the sizes of a tensor type: numbers, symbolic names, or None (any); None: any rank."""
    if not type.tensor_type.HasField("shape"):
        return None
    dimensions = type.tensor_type.shape.dim
    return tuple(
        int(each.dim_value) if each.HasField("dim_value") else each.dim_param or None for each in dimensions
    )


@dataclass(frozen=True)
class Known:
    """A value that is the same in every run of the trace.

    Args:
        content: an array, or a sequence or optional value, which only nodes outside of DirectML read.
        identity: equal for values that are the same, such as an initializer's name; None: unknown.
    """

    content: Any
    identity: Hashable = field(default=None, compare=False)

    @property
    def sizes(self) -> tuple[int, ...] | None:
        return tuple(self.content.shape) if isinstance(self.content, np.ndarray) else None

    @property
    def type(self) -> Type | None:
        return self.content.dtype if isinstance(self.content, np.ndarray) else None

    @property
    def unread(self) -> Any:
        """The content, for graphs that hold it as a constant whatever its elements are."""
        return self.content


class Weight(Known):
    """An initializer that stays in the model's file. Reading its content is noted.

    Args:
        array: the content.
        name: its name.
        read: receives the name when the content is read.
    """

    def __init__(self, array: Array, name: str, read: set[str]) -> None:
        object.__setattr__(self, "unread", array)
        object.__setattr__(self, "identity", name)
        object.__setattr__(self, "_read", read)

    if TYPE_CHECKING:
        unread: Array
        _read: set[str]
    else:
        unread = None

        @property
        def content(self) -> Array:
            """The array, on which the trace depends from now on."""
            self._read.add(self.identity)
            return self.unread

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(self.unread.shape)

    @property
    def type(self) -> Type:
        found: Type = self.unread.dtype
        return found


class KnownSizes(Known):
    """Numbers that follow from sizes which change between runs.

    Reading `content` guards that each has its value of the present run.

    Args:
        elements: numbers and sizes, in an array of objects.
        type: their type.
    """

    def __init__(self, elements: Array, type: Any) -> None:
        object.__setattr__(self, "elements", elements)
        object.__setattr__(self, "_type", np.dtype(type))
        object.__setattr__(self, "identity", None)

    if TYPE_CHECKING:
        elements: Array
        _type: Type
    else:

        @property
        def content(self) -> Array:
            """The numbers, from now on the same in all runs."""
            convert = float if self._type.kind == "f" else int
            return np.array([convert(each) for each in self.elements.flat], self._type).reshape(self.sizes)

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(self.elements.shape)

    @property
    def type(self) -> Type:
        return self._type


def known_numbers(elements: Iterable[float], sizes: Sequence[int], type: Any = np.int64) -> Known:
    """Return numbers, of which some may follow from sizes, as a value of some sizes."""
    listed = list(elements)
    if not any(map(is_traced, listed)):
        return Known(np.array(listed, type).reshape(tuple(sizes)))
    array = np.empty(len(listed), object)
    array[:] = listed
    return KnownSizes(array.reshape(tuple(sizes)), type)


@dataclass(frozen=True)
class RuntimeValue:
    """A value whose content each run has before the current graph begins.

    Args:
        sizes, type: those of an array; None for a sequence.
        is_own: whether nothing else has its memory.
    """

    sizes: tuple[int, ...] | None
    type: Type | None
    is_own: bool = False


@dataclass(frozen=True)
class Computed:
    """A tensor of the current graph, with ONNX's sizes and type."""

    tensor: GraphTensor
    sizes: tuple[int, ...]
    type: Type


Value = Known | RuntimeValue | Computed


def is_same(value: Value | None) -> TypeGuard[Known]:
    """Return whether a value is the same in every run, whatever the sizes are."""
    return isinstance(value, Known) and not isinstance(value, KnownSizes)
