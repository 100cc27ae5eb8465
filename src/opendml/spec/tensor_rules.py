"""The rules that a tensor desc must fulfil by itself and by its operator's table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from opendml.spec.enums import DATA_TYPE_BITS, FeatureLevel, TensorDataType, TensorFlags
from opendml.spec.facts import enum_facts
from opendml.spec.feature_level import full_name
from opendml.spec.overlap import overlaps
from opendml.spec.schema import Field, Operator, Support, TensorSupport
from opendml.spec.tensor_desc import TensorDesc, byte_size, reach
from opendml.spec.wording import allowance, dimensions, ranks, shown

T = TypeVar("T")

UINT32_MAX = 2**32 - 1
UINT64_MAX = 2**64 - 1

_KNOWN_FLAGS = sum(TensorFlags)


class Problems(NamedTuple):
    """The problems of a field: messages that continue its name, and whether rules can still read it."""

    messages: list[str]
    usable: bool


@dataclass(frozen=True, eq=False)
class Slot:
    """A tensor field of an operator at a level, ready to be checked often."""

    operator: Operator
    field: Field
    level: FeatureLevel
    function: str | None
    table: Support | None
    dims: tuple[int, int]
    types: frozenset[TensorDataType]

    @property
    def is_output(self) -> bool:
        """An operator writes the tensor."""
        return self.field.kind == "OUTPUT_TENSOR"


def tensor_slot(
    operator: Operator, field: Field, level: FeatureLevel, function: str | None, has_table: bool
) -> Slot:
    """The slot of a tensor field; without a table (unknown reduce function) only the level's limits hold."""
    table = operator.support_at(level, function) if has_table else None
    if table is None:
        return Slot(
            operator, field, level, function, None, (1, _most_dimensions(level)), frozenset(TensorDataType)
        )
    support = table.tensors[field.name]
    types = frozenset(TensorDataType[name] for name in support.types)
    return Slot(operator, field, level, function, table, support.dims, types)


def tensor_problems(tensor: Any, slot: Slot) -> Problems | None:
    """The problems of a tensor desc in that slot; None when nothing is."""
    if not isinstance(tensor, TensorDesc):
        return Problems([f": {shown(tensor)}; must be a TensorDesc"], False)
    messages: list[str] = []
    typed = isinstance(tensor.data_type, TensorDataType)
    if not typed:
        messages.append(f".DataType: {shown(tensor.data_type)}; must be a TensorDataType")
    elif tensor.data_type not in slot.types:
        messages.append(f": {tensor.data_type.name}; {_types_allowed(tensor.data_type.name, slot)}")
    sized = _check_sizes(tensor.sizes, slot, messages)
    _check_flags(tensor.flags, slot, messages)
    strided = sized and _check_strides(tensor, slot, messages)
    bits = DATA_TYPE_BITS.get(tensor.data_type) if typed else None
    if tensor.total_tensor_size_in_bytes is not None:
        _check_total_size(tensor, bits if strided else None, messages)
    _check_alignment(tensor.guaranteed_base_offset_alignment, bits, messages)
    ranked = sized and slot.dims[0] <= len(tensor.sizes) <= slot.dims[1]
    return Problems(messages, typed and ranked) if messages else None


def is_integer(value: Any, low: int, high: int) -> bool:
    """Whether the value is a whole number of that range; True and False are none."""
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _check_sizes(sizes: Any, slot: Slot, messages: list[str]) -> bool:
    """Whether the sizes can be calculated with."""
    if not isinstance(sizes, tuple):
        messages.append(f".Sizes: {shown(sizes)}; must be a sequence of whole numbers")
        return False
    if not slot.dims[0] <= len(sizes) <= slot.dims[1]:
        messages.append(f": {dimensions(len(sizes))}; {_ranks_allowed(len(sizes), slot)}")
        if len(sizes) > _most_dimensions(max(FeatureLevel)):
            return False
    count = 1
    for i, size in enumerate(sizes):
        if not is_integer(size, 1, UINT32_MAX):
            messages.append(f".Sizes[{i}]: {shown(size)}; must be a whole number from 1 to {UINT32_MAX}")
            count = 0
        else:
            count *= size
    if count > UINT32_MAX:
        messages.append(f".Sizes: {list(sizes)} are {count} elements; a tensor has at most {UINT32_MAX}")
    return count > 0


def _check_strides(tensor: TensorDesc, slot: Slot, messages: list[str]) -> bool:
    """Whether the tensor's extent in memory is known."""
    sizes, strides = tensor.sizes, tensor.strides
    if strides is None:
        return True
    if not isinstance(strides, tuple):
        messages.append(f".Strides: {shown(strides)}; must be a sequence of whole numbers, or None")
        return False
    if len(strides) != len(sizes):
        messages.append(
            f".Strides: {len(strides)} strides for {dimensions(len(sizes))}; must be one for each"
        )
        return False
    wrong = [
        f".Strides[{i}]: {shown(stride)}; must be a whole number from 0 to {UINT32_MAX}"
        for i, stride in enumerate(strides)
        if not is_integer(stride, 0, UINT32_MAX)
    ]
    if wrong:
        messages.extend(wrong)
        return False
    extent = reach(sizes, strides)
    if extent > UINT32_MAX:
        messages.append(
            f".Strides: {list(strides)} reach over {extent} elements; a tensor spans at most {UINT32_MAX}"
        )
    elif slot.is_output and overlaps(sizes, strides):
        messages.append(
            f".Strides: {list(strides)} put several elements of sizes {list(sizes)} at one place; "
            "an output must not overlap itself"
        )
    return True


def _check_flags(flags: Any, slot: Slot, messages: list[str]) -> None:
    if not isinstance(flags, TensorFlags):
        messages.append(f".Flags: {shown(flags)}; must be TensorFlags")
    elif flags & ~_KNOWN_FLAGS:
        messages.append(f".Flags: 0x{flags & ~_KNOWN_FLAGS:X} are no known flags")
    elif flags & TensorFlags.OWNED_BY_DML and not slot.field.owned_by_dml:
        why = "only inputs can be owned" if slot.is_output else f"{slot.operator.name} takes no owned tensors"
        messages.append(f".Flags: OWNED_BY_DML; {why}")


def _check_total_size(tensor: TensorDesc, bits: int | None, messages: list[str]) -> None:
    total: Any = tensor.total_tensor_size_in_bytes
    name = ".TotalTensorSizeInBytes"
    if not is_integer(total, 0, UINT64_MAX):
        messages.append(f"{name}: {shown(total)}; must be a whole number from 0 to {UINT64_MAX}, or None")
        return
    if total % 4:
        messages.append(f"{name}: {total}; must be a multiple of 4")
    if bits is not None:
        needed = byte_size(reach(tensor.sizes, tensor.effective_strides), bits)
        if total < needed:
            messages.append(f"{name}: {total}; sizes, strides and type need at least {needed}")


def _check_alignment(alignment: Any, bits: int | None, messages: list[str]) -> None:
    if is_integer(alignment, 0, 0):
        return
    name = ".GuaranteedBaseOffsetAlignment"
    smallest = max(1, (bits or 8) // 8)
    if not is_integer(alignment, 0, UINT32_MAX) or alignment & (alignment - 1) or alignment < smallest:
        least = f" of at least the element's {smallest} bytes" if smallest > 1 else ""
        messages.append(f"{name}: {shown(alignment)}; must be 0 or a power of two{least}, below 2^32")


def _types_allowed(name: str, slot: Slot) -> str:
    return _allowed(
        slot, lambda support: support.types, lambda types: name in types, ", ".join, lambda _: name
    )


def _ranks_allowed(rank: int, slot: Slot) -> str:
    return (
        _allowed(slot, lambda support: support.dims, lambda dims: dims[0] <= rank <= dims[1], ranks, ranks)
        or f"{full_name(slot.level)} allows {ranks(slot.dims)}"
    )


def _allowed(
    slot: Slot,
    part: Callable[[TensorSupport], T],
    fits: Callable[[T], bool],
    says: Callable[[T], str],
    says_later: Callable[[T], str],
) -> str:
    """The allowance of the slot's table, and the first later table that fits the tensor; "" without one."""
    if slot.table is None:
        return ""
    name = slot.field.name
    tables = list(slot.operator.tables(slot.function))
    text = allowance(full_name(slot.level), tables, slot.table, lambda table: part(table.tensors[name]), says)
    later = [table for table in tables if table.level > slot.level and fits(part(table.tensors[name]))]
    if later:
        first = later[-1]
        text += f" ({says_later(part(first.tensors[name]))} from {full_name(first.level)})"
    return text


def _most_dimensions(level: FeatureLevel) -> int:
    limits: list[dict[str, Any]] = enum_facts()["dimension_count_limits"]
    most: int = max(limit["max"] for limit in limits if FeatureLevel[f"LEVEL_{limit['level']}"] <= level)
    return most
