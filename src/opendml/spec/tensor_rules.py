"""The rules that a tensor desc must fulfil by itself and by its operator's table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from opendml.late_dataclass import dataclass
from opendml.spec.enums import DATA_TYPE_BITS, FeatureLevel, TensorDataType, TensorFlags
from opendml.spec.facts import enum_facts
from opendml.spec.fault import Fault, wrong_rank, wrong_type
from opendml.spec.feature_level import full_name, level_named
from opendml.spec.kinds import UINT32_MAX
from opendml.spec.overlap import overlaps
from opendml.spec.schema import Field, OperatorSchema, Support, TensorSupport
from opendml.spec.tensor_desc import TensorDesc, byte_size, reach
from opendml.spec.values import is_integer
from opendml.spec.wording import allowance, dimensions, ranks, shown

T = TypeVar("T")

UINT64_MAX = 2**64 - 1

_KNOWN_FLAGS = sum(TensorFlags)


@dataclass(frozen=True, eq=False)
class TensorDemands:
    """The demands on a tensor field of an operator at a level."""

    operator: OperatorSchema
    field: Field
    level: FeatureLevel
    function: str | None
    table: Support | None
    dims: tuple[int, int]
    types: frozenset[TensorDataType]

    @property
    def is_output(self) -> bool:
        """Return whether the operator writes the tensor."""
        return self.field.kind == "OUTPUT_TENSOR"


def tensor_demands(
    operator: OperatorSchema, field: Field, level: FeatureLevel, function: str | None, has_table: bool
) -> TensorDemands:
    """Return the demands of a tensor field. Without a table only the level's limits hold."""
    table = operator.support_at(level, function) if has_table else None
    if table is None:
        return TensorDemands(
            operator, field, level, function, None, (1, _most_dimensions(level)), frozenset(TensorDataType)
        )
    support = table.tensors[field.name]
    types = frozenset(TensorDataType[name] for name in support.types)
    return TensorDemands(operator, field, level, function, table, support.dims, types)


def tensor_faults(tensor: Any, demands: TensorDemands) -> list[Fault]:
    """Return the faults of a tensor desc in that demands."""
    if not isinstance(tensor, TensorDesc):
        return [Fault(shown(tensor), "must be a TensorDesc", malformed=True)]
    faults: list[Fault] = []
    typed = isinstance(tensor.data_type, TensorDataType)
    if not typed:
        allowed = "must be a TensorDataType"
        faults.append(Fault(shown(tensor.data_type), allowed, ("DataType",), malformed=True))
    elif tensor.data_type not in demands.types:
        faults.append(_wrong_type(tensor.data_type, demands))
    sized = _check_sizes(tensor.sizes, demands, faults)
    _check_flags(tensor.flags, demands, faults)
    strided = sized and _check_strides(tensor, demands, faults)
    bits = DATA_TYPE_BITS.get(tensor.data_type) if typed else None
    if tensor.total_tensor_size_in_bytes is not None:
        _check_total_size(tensor, bits if strided else None, faults)
    _check_alignment(tensor.guaranteed_base_offset_alignment, bits, faults)
    return faults


def _check_sizes(sizes: Any, demands: TensorDemands, faults: list[Fault]) -> bool:
    """Return whether the sizes can be calculated with."""
    if not isinstance(sizes, tuple):
        allowed = "must be a sequence of whole numbers"
        faults.append(Fault(shown(sizes), allowed, ("Sizes",), malformed=True))
        return False
    if not demands.dims[0] <= len(sizes) <= demands.dims[1]:
        faults.append(_wrong_rank(len(sizes), demands)._replace(malformed=True))
        if len(sizes) > _most_dimensions(max(FeatureLevel)):
            return False
    count = 1
    for i, size in enumerate(sizes):
        if not is_integer(size, 1, UINT32_MAX):
            allowed = f"must be a whole number from 1 to {UINT32_MAX}"
            faults.append(Fault(shown(size), allowed, ("Sizes", i), malformed=True))
            count = 0
        else:
            count *= size
    if count > UINT32_MAX:
        given, allowed = f"{list(sizes)} are {count} elements", f"a tensor has at most {UINT32_MAX}"
        faults.append(Fault(given, allowed, ("Sizes",)))
    return count > 0


def _check_strides(tensor: TensorDesc, demands: TensorDemands, faults: list[Fault]) -> bool:
    """Return whether the tensor's extent in memory is known."""
    sizes, strides, path = tensor.sizes, tensor.strides, ("Strides",)
    if strides is None:
        return True
    if not isinstance(strides, tuple):
        faults.append(Fault(shown(strides), "must be a sequence of whole numbers, or None", path))
        return False
    if len(strides) != len(sizes):
        given = f"{len(strides)} strides for {dimensions(len(sizes))}"
        faults.append(Fault(given, "must be one for each", path))
        return False
    allowed = f"must be a whole number from 0 to {UINT32_MAX}"
    wrong = [
        Fault(shown(stride), allowed, (*path, i))
        for i, stride in enumerate(strides)
        if not is_integer(stride, 0, UINT32_MAX)
    ]
    if wrong:
        faults.extend(wrong)
        return False
    extent = reach(sizes, strides)
    if extent > UINT32_MAX:
        given = f"{list(strides)} reach over {extent} elements"
        faults.append(Fault(given, f"a tensor spans at most {UINT32_MAX}", path))
    elif demands.is_output and overlaps(sizes, strides):
        given = f"{list(strides)} put several elements of sizes {list(sizes)} at one place"
        faults.append(Fault(given, "an output must not overlap itself", path))
    return True


def _check_flags(flags: Any, demands: TensorDemands, faults: list[Fault]) -> None:
    path = ("Flags",)
    if not isinstance(flags, TensorFlags):
        faults.append(Fault(shown(flags), "must be TensorFlags", path))
    elif flags & ~_KNOWN_FLAGS:
        faults.append(Fault(f"0x{flags & ~_KNOWN_FLAGS:X} are no known flags", path=path))
    elif flags & TensorFlags.OWNED_BY_DML and not demands.field.owned_by_dml:
        why = (
            "only inputs can be owned"
            if demands.is_output
            else f"{demands.operator.name} takes no owned tensors"
        )
        faults.append(Fault("OWNED_BY_DML", why, path))


def _check_total_size(tensor: TensorDesc, bits: int | None, faults: list[Fault]) -> None:
    total: Any = tensor.total_tensor_size_in_bytes
    path = ("TotalTensorSizeInBytes",)
    if not is_integer(total, 0, UINT64_MAX):
        allowed = f"must be a whole number from 0 to {UINT64_MAX}, or None"
        faults.append(Fault(shown(total), allowed, path))
        return
    if total % 4:
        faults.append(Fault(total, "must be a multiple of 4", path))
    if bits is not None:
        needed = byte_size(reach(tensor.sizes, tensor.effective_strides), bits)
        if total < needed:
            faults.append(Fault(total, f"sizes, strides and type need at least {needed}", path))


def _check_alignment(alignment: Any, bits: int | None, faults: list[Fault]) -> None:
    if is_integer(alignment, 0, 0):
        return
    smallest = max(1, (bits or 8) // 8)
    if not is_integer(alignment, 0, UINT32_MAX) or alignment & (alignment - 1) or alignment < smallest:
        least = f" of at least the element's {smallest} bytes" if smallest > 1 else ""
        allowed = f"must be 0 or a power of two{least}, below 2^32"
        faults.append(Fault(shown(alignment), allowed, ("GuaranteedBaseOffsetAlignment",)))


def _wrong_type(given: TensorDataType, demands: TensorDemands) -> Fault:
    name = given.name
    allowed, since = _allowed(
        demands, lambda support: support.types, lambda types: name in types, ", ".join, lambda _: name
    )
    return wrong_type(given, allowed)._replace(since=since)


def _wrong_rank(rank: int, demands: TensorDemands) -> Fault:
    allowed, since = _allowed(
        demands, lambda support: support.dims, lambda dims: dims[0] <= rank <= dims[1], ranks, ranks
    )
    allowed = allowed or f"{full_name(demands.level)} allows {ranks(demands.dims)}"
    return wrong_rank(rank, allowed)._replace(since=since)


def _allowed(
    demands: TensorDemands,
    part: Callable[[TensorSupport], T],
    fits: Callable[[T], bool],
    says: Callable[[T], str],
    says_later: Callable[[T], str],
) -> tuple[str, FeatureLevel | None]:
    """Return what the demands's table allows, and the level of the first later table that fits the tensor."""
    if demands.table is None:
        return "", None
    name = demands.field.name
    tables = list(demands.operator.tables(demands.function))
    text = allowance(
        full_name(demands.level), tables, demands.table, lambda table: part(table.tensors[name]), says
    )
    later = [table for table in tables if table.level > demands.level and fits(part(table.tensors[name]))]
    if later:
        first = later[-1]
        return f"{text} ({says_later(part(first.tensors[name]))} from {full_name(first.level)})", first.level
    return text, None


def _most_dimensions(level: FeatureLevel) -> int:
    limits: list[dict[str, Any]] = enum_facts()["dimension_count_limits"]
    most: int = max(limit["max"] for limit in limits if level_named(limit["level"]) <= level)
    return most
