"""Tensor descs as PyDirectML makes them, and what tensors say of themselves."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, ClassVar

import numpy as np

from opendml.frontends.pydirectml.enumerations import DataType, TensorDataType, as_data_type, numpy_type
from opendml.frontends.pydirectml.errors import Refused, refused
from opendml.spec import tensor_desc
from opendml.spec.enums import TensorFlags
from opendml.spec.values import as_tuple
from opendml.spec.wording import shown

_TOTAL, _ALIGNMENT = "total_tensor_size_in_bytes", "guaranteed_base_offset_alignment"


class TensorPolicy:
    """A layout in memory for tensors whose descs have no strides."""

    default: ClassVar[TensorPolicy]
    """The packed layout, in row-major order."""
    interleaved_channel: ClassVar[TensorPolicy]
    """The layout in which the second dimension, the channel, moves fastest: NCHW in sizes, NHWC in memory."""

    def __init__(self, *, channel_last: bool = False) -> None:
        self._channel_last = channel_last

    def __repr__(self) -> str:
        return f"dml.TensorPolicy.{'interleaved_channel' if self._channel_last else 'default'}"

    def strides(self, sizes: tuple[int, ...]) -> tuple[int, ...] | None:
        """Return the strides of a tensor of these sizes; None for a packed one."""
        if not self._channel_last or len(sizes) < 2:
            return None
        batch, channels, *rest = sizes
        outer, *inner, channel = tensor_desc.packed_strides([batch, *rest, channels])
        return (outer, channel, *inner)


TensorPolicy.default, TensorPolicy.interleaved_channel = TensorPolicy(), TensorPolicy(channel_last=True)


class TensorDesc:
    """A tensor in a buffer: `TensorDesc(data_type, sizes)`, with the other arguments by keyword.

    The forms of the interface before are taken too. There flags are positional before the sizes. Behind the
    sizes comes a tensor policy, or strides, the total size and the alignment.

    Args:
        data_type: a TensorDataType, or NumPy's type.
        sizes: elements per dimension, outermost first.
        flags: OWNED_BY_DML if the tensor is handed over at initialization.
        strides: elements from one index to the next, per dimension; None: packed.
        total_tensor_size_in_bytes: the bytes of its buffer; None: as many as needed.
        guaranteed_base_offset_alignment: a divisor of the offset of its buffer; 0: unknown.
        tensor_policy: the layout that decides the strides.

    Raises:
        TypeError: other arguments.
        ValueError: sizes or strides that no tensor has, or strides beside a policy.
    """

    def __init__(self, data_type: DataType, *args: Any, **options: Any) -> None:
        names = ["flags"] * isinstance(next(iter(args), None), TensorFlags)
        names += ["sizes", "strides", _TOTAL, _ALIGNMENT]
        if args and isinstance(args[-1], TensorPolicy):
            names[len(args) - 1] = "tensor_policy"
        if len(args) > len(names) or options.keys() & set(names[: len(args)]):
            raise TypeError(
                f"TensorDesc: {len(args)} positional arguments after data_type; {names} are taken"
            )
        given: dict[str, Any] = {"sizes": None, **options, **dict(zip(names, args, strict=False))}
        for name, value in given.items():
            if name not in _KINDS or not _KINDS[name](value):
                raise TypeError(f"TensorDesc.{name}: {shown(value)}; {', '.join(_KINDS)} are taken")
        sizes, strides, policy = (as_tuple(given.get(name)) for name in ("sizes", "strides", "tensor_policy"))
        if policy is not None and strides is not None:
            raise Refused("TensorDesc: strides and tensor_policy, which decides them; one of them is needed")
        if policy is not None:
            strides = policy.strides(sizes)
        known_type, flags = as_data_type(data_type), given.get("flags", TensorFlags.NONE)
        with refused():
            tensor_desc.calc_buffer_tensor_size(known_type, sizes, strides)
        bytes_given = {_TOTAL: given.get(_TOTAL), _ALIGNMENT: given.get(_ALIGNMENT, 0)}
        self._desc = tensor_desc.TensorDesc(known_type, sizes, strides, flags, **bytes_given)

    @classmethod
    def _of(cls, desc: tensor_desc.TensorDesc) -> TensorDesc:
        made = object.__new__(cls)
        made._desc = desc
        return made

    @property
    def data_type(self) -> TensorDataType:
        """The type of the elements."""
        return TensorDataType(int(self._desc.data_type))

    @property
    def flags(self) -> TensorFlags:
        """The flags, OWNED_BY_DML if the tensor is handed over at initialization."""
        return TensorFlags(int(self._desc.flags))

    @property
    def sizes(self) -> list[int]:
        """The elements per dimension, outermost first."""
        return list(self._desc.sizes)

    @property
    def strides(self) -> list[int] | None:
        """The elements from one index to the next, per dimension; None: packed."""
        return None if self._desc.strides is None else list(self._desc.strides)

    @property
    def total_tensor_size_in_bytes(self) -> int:
        """The least number of bytes of a buffer for the tensor."""
        return self._desc.size_in_bytes

    @property
    def guaranteed_base_offset_alignment(self) -> int:
        """A divisor of the offset of its buffer in bytes; 0: unknown."""
        return self._desc.guaranteed_base_offset_alignment

    def __repr__(self) -> str:
        sizes = ",".join(map(str, self._desc.sizes))
        return (
            f"dml.TensorDesc of type {int(self.data_type)} and shape [{sizes}] with flags {int(self.flags)}"
        )


class Described:
    """A tensor of a graph or of a device, with a desc."""

    @property
    def desc(self) -> TensorDesc:
        """The desc of the tensor."""
        raise NotImplementedError

    @property
    def shape(self) -> tuple[int, ...]:
        """The elements per dimension."""
        return tuple(self.desc.sizes)

    @property
    def strides(self) -> tuple[int, ...] | None:
        """The elements from one index to the next, per dimension; None: packed."""
        return self.desc._desc.strides

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's type of the elements."""
        return numpy_type(self.desc.data_type)

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.desc.sizes)

    def __repr__(self) -> str:
        return f"<dml.{type(self).__name__} {self.dtype.name} {list(self.shape)}>"


class Size2D:
    """A width and a height in elements."""

    def __init__(self, width: int, height: int, /) -> None:
        self.width, self.height = width, height

    def __repr__(self) -> str:
        return f"dml.Size2D({self.width}, {self.height})"


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _are_sizes(value: Any) -> bool:
    plain = as_tuple(value)
    return isinstance(plain, tuple) and all(map(_is_size, plain))


_KINDS: dict[str, Callable[[Any], bool]] = {
    "sizes": _are_sizes,
    "flags": lambda value: isinstance(value, TensorFlags),
    "strides": lambda value: value is None or _are_sizes(value),
    "tensor_policy": lambda value: value is None or isinstance(value, TensorPolicy),
    _TOTAL: lambda value: value is None or _is_size(value),
    _ALIGNMENT: _is_size,
}
