"""Tensor descs as PyDirectML has them: four ways to make one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from opendml.frontends.pydirectml.enumerations import TensorDataType, TensorFlags
from opendml.spec import enums, tensor_desc
from opendml.spec.plain import as_tuple


class _ReadOnly:
    """An attribute of the class itself, as pybind11's static properties are."""

    def __init__(self, make: Callable[[], TensorPolicy]) -> None:
        self._make = make

    def __get__(self, instance: object, owner: type | None = None) -> TensorPolicy:
        return self._make()


class TensorPolicy:
    """How the elements of a tensor lie in memory where its desc does not say it by strides."""

    def __init__(self, *, channel_last: bool = False) -> None:
        self._channel_last = channel_last

    default = _ReadOnly(lambda: TensorPolicy())
    """Packed, in row-major order."""
    interleaved_channel = _ReadOnly(lambda: TensorPolicy(channel_last=True))
    """The second dimension, the channel, moves fastest: NCHW in sizes, NHWC in memory."""

    def _strides(self, sizes: tuple[int, ...]) -> tuple[int, ...] | None:
        if not self._channel_last or len(sizes) < 2:
            return None
        order = [0, *range(2, len(sizes)), 1]
        packed = tensor_desc.packed_strides([sizes[dimension] for dimension in order])
        strides = [0] * len(sizes)
        for dimension, stride in zip(order, packed, strict=True):
            strides[dimension] = stride
        return tuple(strides)


_OVERLOADS: tuple[tuple[str, ...], ...] = (
    ("data_type", "sizes", "tensor_policy"),
    ("data_type", "flags", "sizes", "tensor_policy"),
    ("data_type", "sizes", "strides"),
    (
        "data_type",
        "flags",
        "sizes",
        "strides",
        "total_tensor_size_in_bytes",
        "guaranteed_base_offset_alignment",
    ),
)


class TensorDesc:
    """A tensor in a buffer: `TensorDesc(data_type, sizes)`, or with one of these after the type.

    - `(data_type, sizes, tensor_policy=TensorPolicy.default)`
    - `(data_type, flags, sizes, tensor_policy=TensorPolicy.default)`
    - `(data_type, sizes, strides)`, where strides count elements and None is packed
    - `(data_type, flags, sizes, strides, total_tensor_size_in_bytes, guaranteed_base_offset_alignment)`

    Raises:
        TypeError: other arguments.
        InvalidArgument: sizes or strides that no tensor has.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        given = next((found for names in _OVERLOADS if (found := _matched(names, args, kwargs))), None)
        if given is None:
            forms = "; ".join(f"({', '.join(names)})" for names in _OVERLOADS)
            raise TypeError(f"TensorDesc: the arguments fit none of its forms: {forms}")
        sizes, policy = as_tuple(given["sizes"]), given.get("tensor_policy", TensorPolicy.default)
        strides = as_tuple(given["strides"]) if "strides" in given else policy._strides(sizes)
        data_type = enums.TensorDataType(int(given["data_type"]))
        tensor_desc.calc_buffer_tensor_size(data_type, sizes, strides)  # or say why there is no such tensor
        self._desc = tensor_desc.TensorDesc(
            data_type,
            sizes,
            strides,
            enums.TensorFlags(int(given.get("flags", TensorFlags.NONE))),
            total_tensor_size_in_bytes=given.get("total_tensor_size_in_bytes"),
            guaranteed_base_offset_alignment=given.get("guaranteed_base_offset_alignment", 0),
        )

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
        """Whether the tensor is handed over when the model is initialized."""
        return TensorFlags(int(self._desc.flags))

    @property
    def sizes(self) -> list[int]:
        """Elements per dimension, outermost first."""
        return list(self._desc.sizes)

    @property
    def strides(self) -> list[int] | None:
        """Elements from one index to the next, per dimension; None: packed."""
        return None if self._desc.strides is None else list(self._desc.strides)

    @property
    def total_tensor_size_in_bytes(self) -> int:
        """The bytes that a buffer for the tensor has at least."""
        return self._desc.size_in_bytes

    @property
    def guaranteed_base_offset_alignment(self) -> int:
        """What the offset of its buffer is a multiple of, in bytes; 0: nothing is said."""
        return self._desc.guaranteed_base_offset_alignment

    def __repr__(self) -> str:
        sizes = ",".join(map(str, self._desc.sizes))
        return (
            f"dml.TensorDesc of type {int(self.data_type)} and shape [{sizes}] with flags {int(self.flags)}"
        )


def _matched(names: Sequence[str], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
    """The arguments by name, if they are those of this form."""
    if len(args) > len(names) or kwargs.keys() & set(names[: len(args)]) or kwargs.keys() - set(names):
        return None
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    if any(name not in given for name in names if name != "tensor_policy"):
        return None
    return given if all(_KINDS[name](value) for name, value in given.items()) else None


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _are_sizes(value: Any) -> bool:
    plain = as_tuple(value)
    return isinstance(plain, tuple) and all(map(_is_size, plain))


_KINDS: dict[str, Callable[[Any], bool]] = {
    "data_type": lambda value: isinstance(value, TensorDataType),
    "flags": lambda value: isinstance(value, TensorFlags),
    "sizes": _are_sizes,
    "strides": lambda value: value is None or _are_sizes(value),
    "tensor_policy": lambda value: isinstance(value, TensorPolicy),
    "total_tensor_size_in_bytes": _is_size,
    "guaranteed_base_offset_alignment": _is_size,
}
