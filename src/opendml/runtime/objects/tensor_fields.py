"""The tensors of a compiled operator, and the memory of their bindings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opendml.across_forks import cached_property
from opendml.errors import InvalidArgument
from opendml.late_dataclass import dataclass
from opendml.program.program import Layout
from opendml.runtime.memory.ranges import MemoryRange
from opendml.runtime.objects.binding import BufferArrayBinding, bindings_of, tensor_range
from opendml.runtime.program import buffer_layout_of
from opendml.spec.enums import TensorFlags
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.schema import operator
from opendml.spec.tensor_desc import TensorDesc
from opendml.spec.values import sequence_items
from opendml.spec.wording import shown

_FIX_WHEN_BOUND = (
    "; the tensor is OWNED_BY_DML: give its array here, or leave it to an operator initializer "
    "(device.create_operator_initializer) and execute with a binding table"
)
_FIX_WHEN_INITIALIZED = (
    "; the tensor is OWNED_BY_DML: the initializer's table binds it, with "
    "bind_inputs([dml.BufferArrayBinding([...])])"
)


@dataclass(frozen=True)
class TensorField:
    """An input or output. Tensors of an array share the desc's field. An absent tensor is None."""

    name: str
    field: str
    tensor: TensorDesc | None

    @cached_property
    def layout(self) -> Layout | None:
        """The layout in a buffer."""
        return None if self.tensor is None else buffer_layout_of(self.tensor)

    @cached_property
    def is_owned(self) -> bool:
        """True if the tensor is bound at initialization (OWNED_BY_DML)."""
        return self.tensor is not None and bool(self.tensor.flags & TensorFlags.OWNED_BY_DML)


def tensor_fields(desc: OperatorDesc, kind: str) -> tuple[TensorField, ...]:
    """Return the tensors of a desc of the kind INPUT_TENSOR or OUTPUT_TENSOR. Names in arrays have an
    index."""
    fields: list[TensorField] = []
    for field in operator(desc.operator).tensors:
        if field.kind != kind:
            continue
        value = getattr(desc, field.python_name)
        if isinstance(value, tuple):
            several = enumerate(value)
            fields += [TensorField(f"{field.name}[{index}]", field.name, tensor) for index, tensor in several]
        else:
            fields.append(TensorField(field.name, field.name, value))
    return tuple(fields)


def bound_ranges(
    owner: str, kind: str, fields: Sequence[TensorField], bindings: Sequence[Any], owned: bool | None = None
) -> list[MemoryRange | None]:
    """Return the memory of each tensor, None for absent ones.

    Args:
        owner: the operator, for messages.
        kind: "inputs" or "outputs", which are written.
        fields: the tensors.
        bindings: one for each, or a BufferArrayBinding for all of a field that is an array.
        owned: True: only tensors with OWNED_BY_DML are to be bound; False: only the others; None: all.

    Raises:
        InvalidArgument: too many or too few, or one that is not right for its tensor.
    """
    flat = _flat(owner, kind, fields, bindings)
    return [_bound_range(owner, kind, *pair, owned) for pair in zip(fields, flat, strict=True)]


def _bound_range(
    owner: str, kind: str, field: TensorField, binding: Any, owned: bool | None
) -> MemoryRange | None:
    label = f"{owner}.{field.name}"
    if field.tensor is None or field.layout is None:
        if binding is not None:
            raise InvalidArgument(f"{label}: a buffer is bound to a tensor that is absent")
        return None
    memory = tensor_range(binding, field.tensor, field.layout, kind == "outputs", label)
    if owned is not None and field.is_owned != owned:
        if memory is not None:
            which = (
                "OWNED_BY_DML tensors are bound only"
                if field.is_owned
                else "only OWNED_BY_DML tensors are bound"
            )
            raise InvalidArgument(f"{label}: a buffer is bound; {which} at initialization")
        return None
    if memory is None:
        fix = _FIX_WHEN_INITIALIZED if owned else _FIX_WHEN_BOUND
        raise InvalidArgument(f"{label}: nothing is bound{fix if field.is_owned else ''}")
    return memory


def _flat(owner: str, kind: str, fields: Sequence[TensorField], bindings: Sequence[Any]) -> list[Any]:
    """Return one binding for each tensor."""
    given = sequence_items(bindings)
    if given is None:
        raise InvalidArgument(
            f"{owner}: {kind}: {shown(bindings)}; a list with one binding per tensor is needed"
        )
    flat: list[Any] = []
    for binding in given:
        if not isinstance(binding, BufferArrayBinding):
            flat.append(binding)
            continue
        several = bindings_of(binding, f"{owner}: {kind}[{len(flat)}]")
        covered = [field.field for field in fields[len(flat) : len(flat) + len(several)]]
        whole = [field.field for field in fields if covered and field.field == covered[0]]
        is_array = bool(covered) and fields[len(flat)].name != covered[0]
        if len(several) != len(covered) or covered != whole or not is_array:
            raise InvalidArgument(
                f"{owner}: {kind}[{len(flat)}]: a BufferArrayBinding of {len(several)}; "
                "it must be for all tensors of a field that is an array of tensors"
            )
        flat += several
    if len(flat) != len(fields):
        names = ", ".join(field.name for field in fields)
        raise InvalidArgument(f"{owner}: {len(flat)} {kind}; there are {len(fields)}: {names}")
    return flat
