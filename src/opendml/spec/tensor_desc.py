"""The description of a tensor in a buffer (DML_BUFFER_TENSOR_DESC), and how many bytes it takes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

from opendml.errors import InvalidArgument
from opendml.spec.enums import DATA_TYPE_BITS, TensorDataType, TensorFlags
from opendml.spec.values import DataTypeLike, as_member, as_plain, as_tuple, text_of

_set = object.__setattr__


class TensorDesc:
    """A tensor of `sizes` elements in a buffer: immutable, hashable, equal by value.

    The constructor checks nothing: `opendml.validate` judges a tensor together with its operator.

    Args:
        data_type: type of the elements: a TensorDataType, its name, or NumPy's or PyTorch's type.
        sizes: elements per dimension, outermost first; 1 to 8 dimensions (5 below DML_FEATURE_LEVEL_3_0).
        strides: elements (not bytes) from one index to the next, per dimension. 0 repeats an input along
            the dimension. None: packed in row-major order.
        flags: `TensorFlags.OWNED_BY_DML` hands an input over to the operator when it is initialized.
        total_tensor_size_in_bytes: size of the buffer range, a multiple of 4 and at least the implied
            size, which None stands for.
        guaranteed_base_offset_alignment: 0, or a power of two in bytes (at least the size of an element)
            that the offset of the buffer range will be a multiple of.
    """

    __slots__ = (
        "_hash",
        "data_type",
        "flags",
        "guaranteed_base_offset_alignment",
        "sizes",
        "strides",
        "total_tensor_size_in_bytes",
    )

    data_type: TensorDataType
    sizes: tuple[int, ...]
    strides: tuple[int, ...] | None
    flags: TensorFlags
    total_tensor_size_in_bytes: int | None
    guaranteed_base_offset_alignment: int
    _hash: int

    def __init__(
        self,
        data_type: DataTypeLike,
        sizes: Sequence[int],
        strides: Sequence[int] | None = None,
        flags: TensorFlags | str = TensorFlags.NONE,
        *,
        total_tensor_size_in_bytes: int | None = None,
        guaranteed_base_offset_alignment: int = 0,
    ) -> None:
        _set(self, "data_type", as_member(TensorDataType, data_type))
        _set(self, "sizes", as_tuple(sizes))
        _set(self, "strides", as_tuple(strides))
        _set(self, "flags", as_member(TensorFlags, flags))
        _set(self, "total_tensor_size_in_bytes", as_plain(total_tensor_size_in_bytes))
        _set(self, "guaranteed_base_offset_alignment", as_plain(guaranteed_base_offset_alignment))

    @property
    def dimension_count(self) -> int:
        """The number of dimensions."""
        return len(self.sizes)

    @property
    def element_count(self) -> int:
        """The number of elements that an operator sees, repeated ones included."""
        return prod(self.sizes)

    @property
    def effective_strides(self) -> tuple[int, ...]:
        """The strides in elements, also when the tensor is packed."""
        return packed_strides(self.sizes) if self.strides is None else self.strides

    @property
    def size_in_bytes(self) -> int:
        """The bytes that a buffer range for this tensor must have at least.

        Raises:
            InvalidArgument: as `calc_buffer_tensor_size`.
        """
        if self.total_tensor_size_in_bytes is not None:
            return self.total_tensor_size_in_bytes
        return calc_buffer_tensor_size(self.data_type, self.sizes, self.strides)

    def _values(self) -> tuple[Any, ...]:
        return (
            self.data_type,
            self.sizes,
            self.strides,
            self.flags,
            self.total_tensor_size_in_bytes,
            self.guaranteed_base_offset_alignment,
        )

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return self._values() == other._values() if isinstance(other, TensorDesc) else NotImplemented

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            _set(self, "_hash", hash(self._values()))
            return self._hash

    def __repr__(self) -> str:
        data_type = self.data_type
        shown = [data_type.name if isinstance(data_type, TensorDataType) else text_of(data_type)]
        shown.append(_listed(self.sizes))
        if self.strides is not None:
            shown.append(f"strides={_listed(self.strides)}")
        for name, default in _DEFAULTS:
            value = getattr(self, name)
            if type(value) is not type(default) or value != default:
                shown.append(f"{name}={text_of(value)}")
        return f"TensorDesc({', '.join(shown)})"

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"TensorDesc is immutable; {name} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"TensorDesc is immutable; {name} cannot be deleted")

    def __reduce__(self) -> tuple[Any, ...]:
        *given, total, alignment = self._values()
        keywords = {"total_tensor_size_in_bytes": total, "guaranteed_base_offset_alignment": alignment}
        return partial(TensorDesc, **keywords), tuple(given)


_DEFAULTS = (
    ("flags", TensorFlags.NONE),
    ("total_tensor_size_in_bytes", None),
    ("guaranteed_base_offset_alignment", 0),
)


def _listed(values: object) -> str:
    return text_of(list(values) if isinstance(values, tuple) else values)


def packed_strides(sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the strides, in elements, of a row-major tensor without gaps.

    >>> packed_strides([2, 3, 4])
    (12, 4, 1)
    """
    strides = [1] * len(sizes)
    for dimension in range(len(sizes) - 1, 0, -1):
        strides[dimension - 1] = strides[dimension] * sizes[dimension]
    return tuple(strides)


def common_sizes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """Return the sizes to which NumPy repeats tensors of these sizes.

    >>> common_sizes([3, 1], [4])
    (3, 4)

    Raises:
        ValueError: sizes that do not fit together.
    """
    rank = max(map(len, shapes), default=0)
    result = [1] * rank
    for shape in shapes:
        for axis, size in enumerate(shape, rank - len(shape)):
            known = result[axis]
            if type(known) is int and known == 1:  # A traced size may be 1, too.
                result[axis] = size
            elif known is not size and size != 1 and known != size:
                if known != 1:
                    raise ValueError(f"sizes {list(shape)} do not fit {result}")
                result[axis] = size
    return tuple(result)


def same_strides(sizes: Sequence[int], strides: Sequence[int], others: Sequence[int]) -> bool:
    """Return whether strides are equal where a dimension has more than one element."""
    return all(size < 2 or a == b for size, a, b in zip(sizes, strides, others, strict=True))


def calc_buffer_tensor_size(
    data_type: DataTypeLike, sizes: Sequence[int], strides: Sequence[int] | None = None
) -> int:
    """Return the least bytes of a buffer for such a tensor (DirectML's DMLCalcBufferTensorSize).

    They end after the last element that an index reaches, rounded up to a multiple of 4.

    >>> calc_buffer_tensor_size(TensorDataType.FLOAT16, [2, 3])
    12
    >>> calc_buffer_tensor_size(TensorDataType.UINT8, [2, 3], [4, 1])
    8

    Raises:
        InvalidArgument: a data type without a size, a size below 1, or strides of another length.
    """
    data_type = as_member(TensorDataType, data_type)
    bits = DATA_TYPE_BITS.get(data_type) if isinstance(data_type, TensorDataType) else None
    if bits is None:
        raise InvalidArgument(f"DataType: {text_of(data_type)} has no size")
    sizes, strides = as_tuple(sizes), as_tuple(strides)
    if not _are_integers(sizes):
        raise InvalidArgument(f"Sizes: {text_of(sizes)}; must be a sequence of whole numbers")
    if min(sizes, default=0) < 1:
        raise InvalidArgument(f"Sizes: {_listed(sizes)}; every size must be at least 1")
    if strides is None:
        return byte_size(prod(sizes), bits)
    if not _are_integers(strides) or len(strides) != len(sizes) or min(strides) < 0:
        raise InvalidArgument(f"Strides: {_listed(strides)}; must be one stride of 0 or more per size")
    return byte_size(reach(sizes, strides), bits)


def _are_integers(values: object) -> bool:
    return isinstance(values, tuple) and all(isinstance(value, int) for value in values)


def reach(sizes: Sequence[int], strides: Sequence[int]) -> int:
    """Return the elements from the first one up to and including the last that an index reaches."""
    return 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))


def byte_size(element_count: int, bits: int) -> int:
    """Return the bytes of elements of `bits` each, rounded up to a multiple of 4."""
    return (element_count * bits + 31) // 32 * 4
