"""One codec per kind of attribute: its check, its key, and its float32, JSON and serialized forms.

None stands for an absent optional attribute. Codecs check and write only attributes that are given.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Sequence
from enum import IntEnum
from functools import cache
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from opendml.across_forks import importing
from opendml.errors import InvalidArgument
from opendml.spec import enums
from opendml.spec.enums import FeatureLevel, TensorDataType
from opendml.spec.fault import Fault
from opendml.spec.feature_level import full_name, value_since
from opendml.spec.naming import camel_case
from opendml.spec.values import ScaleBias, Size2D, as_member, as_plain, as_truth, as_tuple, is_integer
from opendml.spec.wording import member_words, shown

if TYPE_CHECKING:
    from opendml.json_files.node import JsonNode

FLOAT32_MAX = float.fromhex("0x1.fffffep127")
UINT32_MAX = 2**32 - 1

Check = Callable[[Any], list[Fault]]
"""A function from any object to its faults."""

_AS_TUPLE = "as_tuple({})"
_EXACT_INTEGER_MAX = 2**53  # A float64 has every whole number up to here.


class ValueRange(NamedTuple):
    """The values that a number, or each of an array, may have; with `below`, only below that level.

    Attributes:
        min: the least value.
        above: what the value must be greater than.
        finite: no infinity and no NaN.
        nonzero: not 0.
        values: all values that are allowed, those of an enumeration by name.
        below: the level from which the range holds no longer.
    """

    min: float | None = None
    above: float | None = None
    finite: bool = False
    nonzero: bool = False
    values: tuple[int | str, ...] = ()
    below: FeatureLevel | None = None

    def has(self, value: Any) -> bool:
        """Return whether a number, or a member of an enumeration, is in the range. NaN is within no limit."""
        if self.values:
            return (value.name if isinstance(value, IntEnum) else value) in self.values
        return (
            (self.min is None or value >= self.min)
            and (self.above is None or value > self.above)
            and (not self.finite or isfinite(value))
            and (not self.nonzero or value != 0)
        )

    def words(self) -> str:
        """Return the demand on a number in words: "must be finite and at least 0"."""
        limits = [
            "finite" if self.finite else "",
            f"at least {self.min}" if self.min is not None else "",
            f"above {self.above}" if self.above is not None else "",
            "other than 0" if self.nonzero else "",
            " or ".join(map(str, self.values)),
        ]
        below = f" below {full_name(self.below)}" if self.below else ""
        return f"must be {' and '.join(filter(None, limits))}{below}"


class Demands(NamedTuple):
    """The demands on an attribute beyond its kind.

    Attributes:
        level: the feature level.
        range: the range of its numbers at that level.
        activation: the check of a desc that is part of another one.
    """

    level: FeatureLevel
    range: ValueRange | None
    activation: Check


class Codec:
    """The forms of one kind of field. This class itself serves tensors, which have only a type.

    Attributes:
        annotation: the type of the field, as source text.
        argument_annotation: the type of an argument.
        stored_annotation: the type of what a desc holds.
        conversion: how a constructor converts an argument "{}", as source text.
        variants: the members of a serialized graph's union of attributes that hold such a value.
    """

    variants: tuple[str, ...] = ()

    def __init__(
        self, annotation: str, *, argument: str = "", stored: str = "", conversion: str = "{}"
    ) -> None:
        self.annotation, self.conversion = annotation, conversion
        self.argument_annotation, self.stored_annotation = argument or annotation, stored or annotation

    def check(self, demands: Demands) -> Check:
        """Return the check of such a value."""
        if (range := demands.range) is None:
            return self._faults
        words, check = range.words(), self._check_at(demands.level)

        def check_range(value: Any) -> list[Fault]:
            faults = check(value)
            if faults or range.has(value):
                return faults
            given = value.name if isinstance(value, IntEnum) else shown(value)
            return [Fault(given, words, since=range.below, malformed=True)]

        return check_range

    def key(self, value: Any) -> Hashable:
        """Return a key that is equal only for values that the operator sees as equal.

        Python finds True, 1 and 1.0 equal, and 0.0 and -0.0, but no NaN equal to another. As a FLOAT 1 and
        1.0 are the same, True is none, zeros of different signs differ, and all NaNs are alike.

        Floats other than zero and NaN are their own keys. No other key equals a number.
        """
        raise NotImplementedError

    def rounded(self, value: Any) -> Any:
        """Return a value as DirectML's struct holds it: numbers of a FLOAT are float32."""
        return value

    def parse(self, node: JsonNode, activation: Callable[[JsonNode], Any]) -> Any:
        """Return the value of a JSON node that has DirectML's form.

        Args:
            node: the value, or its place in a document.
            activation: parses a desc that is part of another one.

        Raises:
            InvalidArgument: no such value.
        """
        raise NotImplementedError

    def read(self, value: Any, where: str, activation: Callable[[Any, str], Any]) -> Any:
        """Return the value that a serialized graph has as `value`.

        Args:
            value: what the graph's union of attributes holds.
            where: its place, for messages.
            activation: reads a desc that is part of another one.

        Raises:
            InvalidArgument: no such value.
        """
        return value

    def written(self, value: Any, data_type: TensorDataType | None, activation: Callable[[Any], Any]) -> Any:
        """Return the value as a serialized graph has it.

        Args:
            value: what a desc holds.
            data_type: the type of a scalar.
            activation: writes a desc that is part of another one.
        """
        return value

    def _faults(self, value: Any) -> list[Fault]:
        raise NotImplementedError

    def _other_key(self, value: Any) -> Hashable:
        """Return the key of None, of NumPy's values, and of values that the validator refuses."""
        if value is None:
            return None
        plain = as_tuple(as_plain(value))
        if type(plain) is not type(value):
            return self.key(plain)
        try:
            return type(value), repr(value)
        except Exception:  # whatever a foreign __repr__ raises
            return object()

    def _check_at(self, level: FeatureLevel) -> Check:
        return self._faults


class FloatCodec(Codec):
    """A float32. Infinities and NaN are valid."""

    variants = ("Float32",)

    def key(self, value: Any) -> Hashable:
        kind = type(value)
        if kind is float:
            return value if value and value == value else repr(value)
        if kind is int and abs(value) <= _EXACT_INTEGER_MAX:
            return self.key(float(value))
        return self._other_key(value)

    def parse(self, node: JsonNode, activation: Callable[[JsonNode], Any]) -> Any:
        try:
            return self.rounded(node.number())
        except OverflowError:
            node.fail('a number within the range of FLOAT32 (or "inf")')

    def rounded(self, value: Any) -> Any:
        return float(struct.unpack("f", struct.pack("f", value))[0])

    def _faults(self, value: Any) -> list[Fault]:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return _malformed(value, "must be a number")
        if not (abs(value) <= FLOAT32_MAX or (isinstance(value, float) and not isfinite(value))):
            return _malformed(value, "must fit a 32-bit float")
        return []


class IntegerCodec(Codec):
    """A 32-bit integer."""

    def __init__(self, low: int, high: int, variant: str) -> None:
        super().__init__("int")
        self.low, self.high, self.variants = low, high, (variant,)

    def key(self, value: Any) -> Hashable:
        return (value,) if type(value) is int else self._other_key(value)

    def parse(self, node: JsonNode, activation: Callable[[JsonNode], Any]) -> int:
        return node.integer(self.low, self.high)

    def _faults(self, value: Any) -> list[Fault]:
        if is_integer(value, self.low, self.high):
            return []
        return _malformed(value, f"must be a whole number from {self.low} to {self.high}")


class BoolCodec(Codec):
    """A truth value, for which callers and serialized graphs may have 0 or 1."""

    variants = ("Bool", "UInt32")

    def __init__(self) -> None:
        super().__init__("bool", argument="bool | int", conversion="as_truth({})")

    def key(self, value: Any) -> Hashable:
        if type(value) is bool:
            return (value,)
        truth = as_truth(value)
        return (truth,) if type(truth) is bool else self._other_key(value)

    def parse(self, node: JsonNode, activation: Callable[[JsonNode], Any]) -> bool:
        return node.boolean()

    def read(self, value: Any, where: str, activation: Callable[[Any, str], Any]) -> bool:
        return bool(value)

    def _faults(self, value: Any) -> list[Fault]:
        return [] if isinstance(value, bool) else _malformed(value, "must be True or False (or 1 or 0)")


class MemberCodec(Codec):
    """A member of an enumeration."""

    variants = ("UInt32",)

    def __init__(self, name: str) -> None:
        self.name = name
        self.members: type[IntEnum] = getattr(enums, camel_case(name))
        members = self.members.__name__
        argument = "DataTypeLike" if self.members is TensorDataType else f"{members} | str | int"
        super().__init__(members, argument=argument, conversion=f"as_member({members}, {{}})")

    def key(self, value: Any) -> Hashable:
        named = as_member(self.members, value)
        return (named,) if type(named) is self.members else self._other_key(value)

    def read(self, value: Any, where: str, activation: Callable[[Any, str], Any]) -> IntEnum:
        if value not in [int(each) for each in self.members]:
            allowed = ", ".join(f"{int(each)} ({each.name})" for each in self.members)
            raise InvalidArgument(f"{where}: {value}; allowed are {allowed}")
        return self.members(value)

    def written(self, value: Any, data_type: TensorDataType | None, activation: Callable[[Any], Any]) -> int:
        return int(value)

    def check(self, demands: Demands) -> Check:
        return super().check(demands) if demands.range else self._check_at(demands.level)

    def _check_at(self, level: FeatureLevel) -> Check:
        since = {member: value_since(self.name, member.name) for member in self.members}
        words = member_words(self.members, [member.name for member in since if since[member] <= level])

        def check(value: Any) -> list[Fault]:
            if not isinstance(value, self.members):
                return _malformed(value, words)
            if since[value] > level:
                exists = f"exists from {full_name(since[value])}, not in {full_name(level)}"
                return [Fault(value.name, exists, since=since[value])]
            return []

        return check


class ScalarCodec(FloatCodec):
    """A number whose type another attribute says."""

    variants = ("ScalarUnionData",)

    def key(self, value: Any) -> Hashable:
        return (value,) if type(value) is int else super().key(value)  # 1 and 1.0 are not the same INT64.

    def rounded(self, value: Any) -> Any:
        return value

    def read(self, value: Any, where: str, activation: Callable[[Any, str], Any]) -> Any:
        return value["data"]

    def written(self, value: Any, data_type: TensorDataType | None, activation: Callable[[Any], Any]) -> Any:
        with importing:
            from opendml.spec.four_bit import scalar_bytes  # Stubs are written where NumPy is not installed.
        assert data_type is not None
        return {"data": ("ByteArray", tuple(scalar_bytes(value, data_type).ljust(8, b"\0")))}

    def _faults(self, value: Any) -> list[Fault]:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return [] if is_number else _malformed(value, "must be a number")


class ActivationCodec(Codec):
    """The desc of an activation that is part of another operator."""

    variants = ("Activation",)

    def check(self, demands: Demands) -> Check:
        return demands.activation

    def key(self, value: Any) -> Hashable:
        """Return the desc, which is its own key. A desc that nests too deeply raises its error here."""
        if not hasattr(value, "operator"):
            return self._other_key(value)
        try:
            hash(value)
        except TypeError:  # no desc
            return object()
        return value  # type: ignore[no-any-return]

    def parse(self, node: JsonNode, activation: Callable[[JsonNode], Any]) -> Any:
        return activation(node)

    def read(self, value: Any, where: str, activation: Callable[[Any, str], Any]) -> Any:
        return activation(value, where)

    def written(self, value: Any, data_type: TensorDataType | None, activation: Callable[[Any], Any]) -> Any:
        return activation(value)


class ArrayCodec(Codec):
    """An array of numbers."""

    def __init__(self, item: Codec, variant: str) -> None:
        stored = f"tuple[{item.annotation}, ...]"
        super().__init__(f"Sequence[{item.annotation}]", stored=stored, conversion=_AS_TUPLE)
        self.item, self.variants = item, (variant,)

    def check(self, demands: Demands) -> Check:
        item_check = self.item.check(demands)

        def check(value: Any) -> list[Fault]:
            if not isinstance(value, tuple):
                example = "" if item_check(value) else f", such as [{shown(value)}]"
                return _malformed(value, f"must be a sequence of numbers{example}")
            return item_faults(value, item_check)

        return check

    def key(self, value: Any) -> Hashable:
        if type(value) is tuple or type(value) is list:
            return tuple(map(self.item.key, value))
        return self._other_key(value)

    def parse(self, node: JsonNode, activation: Callable[[JsonNode], Any]) -> Any:
        return node.each(lambda each: self.item.parse(each, activation))

    def rounded(self, value: Any) -> Any:
        return tuple(map(self.item.rounded, value))

    def read(self, value: Any, where: str, activation: Callable[[Any, str], Any]) -> Any:
        return () if value["data"] is None else tuple(value["data"].tolist())

    def written(self, value: Any, data_type: TensorDataType | None, activation: Callable[[Any], Any]) -> Any:
        return {"data": value}


class ActivationArrayCodec(ArrayCodec):
    """One or more descs of activations."""

    def check(self, demands: Demands) -> Check:
        return desc_array_check(self.item.check(demands))

    def read(self, value: Any, where: str, activation: Callable[[Any, str], Any]) -> Any:
        return tuple(activation(each, f"{where}[{i}]") for i, each in enumerate(value["data"] or ()))

    def written(self, value: Any, data_type: TensorDataType | None, activation: Callable[[Any], Any]) -> Any:
        return {"data": list(map(activation, value))}


class RecordCodec(Codec):
    """A named tuple of numbers of one kind."""

    def __init__(self, record: type[Any], item: Codec) -> None:
        super().__init__(record.__name__, conversion=_AS_TUPLE)
        self.record, self.item, self.variants = record, item, (record.__name__,)

    def check(self, demands: Demands) -> Check:
        item_check = self.item.check(demands)
        form = f"must be a {self.record.__name__}({', '.join(self.record._fields)})"

        def check(value: Any) -> list[Fault]:
            if not isinstance(value, self.record):
                return _malformed(value, form)
            members = zip(self.record._fields, value, strict=True)
            return [fault.within(name.capitalize()) for name, item in members for fault in item_check(item)]

        return check

    def key(self, value: Any) -> Hashable:
        if hasattr(value, "_fields") and isinstance(value, tuple):
            return type(value), *map(self.item.key, value)
        return self._other_key(value)

    def parse(self, node: JsonNode, activation: Callable[[JsonNode], Any]) -> Any:
        names = [name.capitalize() for name in self.record._fields]
        node.members(names)
        return self.record(*(self.item.parse(node.member(name), activation) for name in names))

    def rounded(self, value: Any) -> Any:
        return self.record(*map(self.item.rounded, value))

    def read(self, value: Any, where: str, activation: Callable[[Any, str], Any]) -> Any:
        return self.record(*value)


def desc_array_check(check: Check) -> Check:
    """Return the check of a sequence of descs, of which there must be one at least."""

    def check_all(value: Any) -> list[Fault]:
        if not isinstance(value, tuple) or not value:
            return _malformed(value, "must be a sequence of one or more descs")
        return item_faults(value, check)

    return check_all


def item_faults(values: Sequence[Any], check: Check) -> list[Fault]:
    """Return the faults of the items of a sequence."""
    return [fault.within(i) for i, item in enumerate(values) for fault in check(item)]


def _malformed(value: Any, allowed: str) -> list[Fault]:
    return [Fault(shown(value), allowed, malformed=True)]


_FLOAT, _DESC = FloatCodec("float"), ActivationCodec("OperatorDesc")
_UINT, _INT = IntegerCodec(0, UINT32_MAX, "UInt32"), IntegerCodec(-(2**31), 2**31 - 1, "Int32")

CODECS: Final[dict[str, Codec]] = {
    "TENSOR_DESC": Codec("TensorDesc | None"),
    "TENSOR_DESC_ARRAY": Codec("Sequence[TensorDesc]", stored="tuple[TensorDesc, ...]", conversion=_AS_TUPLE),
    "OPERATOR_DESC": _DESC,
    "OPERATOR_DESC_ARRAY": ActivationArrayCodec(_DESC, "ActivationArray"),
    "UINT": _UINT,
    "INT": _INT,
    "BOOL": BoolCodec(),
    "FLOAT": _FLOAT,
    "UINT_ARRAY": ArrayCodec(_UINT, "UIntArray"),
    "INT_ARRAY": ArrayCodec(_INT, "IntArray"),
    "FLOAT_ARRAY": ArrayCodec(_FLOAT, "FloatArray"),
    "SCALE_BIAS": RecordCodec(ScaleBias, _FLOAT),
    "SIZE_2D": RecordCodec(Size2D, _UINT),
    "SCALAR_UNION": ScalarCodec("int | float"),
}
"""The codecs by the types of fields."""

member_codec = cache(MemberCodec)
"""Return the codec of the enumeration of that name, such as "PADDING_MODE"."""


def sizes_key(sizes: Any) -> Hashable:
    """Return the key of a tensor's sizes."""
    return CODECS["UINT_ARRAY"].key(sizes)
