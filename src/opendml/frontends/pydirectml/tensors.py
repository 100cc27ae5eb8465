"""Tensor descs as PyDirectML has them: several ways to make one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from opendml.frontends.pydirectml.data_types import as_data_type
from opendml.frontends.pydirectml.enumerations import TensorDataType, TensorFlags
from opendml.frontends.pydirectml.errors import Refused, refused
from opendml.spec import enums, tensor_desc
from opendml.spec.values import as_tuple

_TOTAL, _ALIGNMENT = "total_tensor_size_in_bytes", "guaranteed_base_offset_alignment"


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

    def __repr__(self) -> str:
        return f"dml.TensorPolicy.{'interleaved_channel' if self._channel_last else 'default'}"

    default = _ReadOnly(lambda: TensorPolicy())
    """Packed, in row-major order."""
    interleaved_channel = _ReadOnly(lambda: TensorPolicy(channel_last=True))
    """The second dimension, the channel, moves fastest: NCHW in sizes, NHWC in memory."""

    def applied(self, desc: tensor_desc.TensorDesc) -> tensor_desc.TensorDesc:
        """A packed tensor as it lies in memory."""
        strides = self._strides(desc.sizes)
        return desc if strides is None else tensor_desc.TensorDesc(desc.data_type, desc.sizes, strides)

    def _strides(self, sizes: tuple[int, ...]) -> tuple[int, ...] | None:
        if not self._channel_last or len(sizes) < 2:
            return None
        order = [0, *range(2, len(sizes)), 1]
        packed = tensor_desc.packed_strides([sizes[dimension] for dimension in order])
        strides = [0] * len(sizes)
        for dimension, stride in zip(order, packed, strict=True):
            strides[dimension] = stride
        return tuple(strides)


@dataclass(frozen=True)
class _Form:
    """One way to make a desc: the names of its arguments, how many of them are needed, and how many may be
    positional."""

    names: tuple[str, ...]
    needed: int
    positional: int = 6


_FORMS = (
    _Form(("data_type", "sizes", "tensor_policy"), 2),
    _Form(("data_type", "flags", "sizes", "tensor_policy"), 3),
    _Form(("data_type", "sizes", "strides"), 3),
    _Form(("data_type", "flags", "sizes", "strides", _TOTAL, _ALIGNMENT), 6),
    _Form(("data_type", "sizes", "flags", "strides", _TOTAL, _ALIGNMENT, "tensor_policy"), 2, positional=2),
)


class TensorDesc:
    """A tensor in a buffer: `TensorDesc(data_type, sizes)`, or in one of these ways.

    - `(data_type, sizes, *, flags=TensorFlags.NONE, strides=None, total_tensor_size_in_bytes=None,
      guaranteed_base_offset_alignment=0, tensor_policy=None)`, as `directml` has it now
    - `(data_type, sizes, tensor_policy=TensorPolicy.default)`
    - `(data_type, flags, sizes, tensor_policy=TensorPolicy.default)`
    - `(data_type, sizes, strides)`
    - `(data_type, flags, sizes, strides, total_tensor_size_in_bytes, guaranteed_base_offset_alignment)`

    Args:
        data_type: a TensorDataType, or NumPy's type.
        sizes: elements per dimension, outermost first.
        flags: OWNED_BY_DML: the tensor is handed over at initialization.
        strides: elements from one index to the next, per dimension; None: packed.
        total_tensor_size_in_bytes: the bytes of its buffer; None: those that follow.
        guaranteed_base_offset_alignment: what the offset of its buffer is a multiple of; 0: nothing is said.
        tensor_policy: what decides the strides.

    Raises:
        TypeError: other arguments.
        ValueError: sizes or strides that no tensor has, or strides beside a policy.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        given = next((found for form in _FORMS if (found := _matched(form, args, kwargs))), None)
        if given is None:
            forms = "; ".join(f"({', '.join(form.names)})" for form in _FORMS)
            raise TypeError(f"TensorDesc: the arguments fit none of its forms: {forms}")
        sizes, strides, policy = (as_tuple(given.get(name)) for name in ("sizes", "strides", "tensor_policy"))
        if policy is not None and strides is not None:
            raise Refused("TensorDesc: strides and tensor_policy, which decides them; one of them is needed")
        if policy is not None:
            strides = policy._strides(sizes)
        data_type = enums.TensorDataType(int(as_data_type(given["data_type"])))
        with refused():
            tensor_desc.calc_buffer_tensor_size(data_type, sizes, strides)
        self._desc = tensor_desc.TensorDesc(
            data_type,
            sizes,
            strides,
            enums.TensorFlags(int(given.get("flags", TensorFlags.NONE))),
            total_tensor_size_in_bytes=given.get(_TOTAL),
            guaranteed_base_offset_alignment=given.get(_ALIGNMENT, 0),
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


def _matched(form: _Form, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
    """The arguments by name, if they are those of this form."""
    names = form.names
    if len(args) > form.positional or kwargs.keys() & set(names[: len(args)]) or kwargs.keys() - set(names):
        return None
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    if len(args) > len(names) or any(name not in given for name in names[: form.needed]):
        return None
    return given if all(_KINDS[name](value) for name, value in given.items()) else None


def _is_type(value: Any) -> bool:
    try:
        as_data_type(value)
    except TypeError:
        return False
    return True


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _are_sizes(value: Any) -> bool:
    plain = as_tuple(value)
    return isinstance(plain, tuple) and all(map(_is_size, plain))


_KINDS: dict[str, Callable[[Any], bool]] = {
    "data_type": _is_type,
    "flags": lambda value: isinstance(value, TensorFlags),
    "sizes": _are_sizes,
    "strides": lambda value: value is None or _are_sizes(value),
    "tensor_policy": lambda value: value is None or isinstance(value, TensorPolicy),
    _TOTAL: lambda value: value is None or _is_size(value),
    _ALIGNMENT: _is_size,
}
