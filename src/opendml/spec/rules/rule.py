"""The type of a rule, the tensors that rules read, and the sizes that these must have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from opendml.spec.fault import Fault, wrong_sizes
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.schema import Field
from opendml.spec.tensor_desc import TensorDesc

Broken = Iterator[tuple[str, Fault]]
"""The faults that a rule finds, each with the parameter to blame."""


class Rule(NamedTuple):
    """A rule between fields.

    Attributes:
        name: what the facts call it, beside the statements that it checks.
        fields: what it reads; it is left out where one of them is malformed.
        check: from a desc to (field, fault) for everything that breaks the rule.
        basic: other rules build on it, so a field that breaks it is malformed for the rules after it.
        text: what it demands and why, for those that the facts of the operator do not say in full.
    """

    name: str
    fields: tuple[Field, ...]
    check: Callable[[OperatorDesc], Iterable[tuple[Field, Fault]]]
    basic: bool = False
    text: str = ""


def given_tensors(desc: OperatorDesc, field: Field) -> Iterator[tuple[tuple[int, ...], TensorDesc]]:
    """Yield the tensors of a field that are given, each with its path: (), or (1,) within an array."""
    value = getattr(desc, field.python_name)
    if field.is_array:
        for i, tensor in enumerate(value or ()):
            yield (i,), tensor
    elif value is not None:
        yield (), value


class Usual(NamedTuple):
    """A size that calls take, where any other is valid too."""

    size: int


class SizeSpan(NamedTuple):
    """The sizes from the least to the greatest, of which calls take the usual one."""

    usual: int
    least: int
    greatest: int

    def __contains__(self, size: object) -> bool:
        return isinstance(size, int) and (size is self.usual or self.least <= size <= self.greatest)


Size = int | tuple[int, ...] | SizeSpan | Usual | None
"""The demand on one size: a number, one of several with the usual one first, or (None) any."""

Sizes = Sequence[Size]
"""The demands on the sizes of a tensor."""


def expect(parameter: str, tensor: TensorDesc | None, expected: Sizes, reason: str) -> Broken:
    """Yield a fault where the tensor is given and its sizes are not the expected ones.

    Args:
        parameter: the rule's name for the tensor.
        tensor: what was given.
        expected: what each size must be. A calculated number below 1 means that no sizes are right.
        reason: what the sizes follow from, as in "must be [2, 3] for the input and axes given".
    """
    if tensor is not None and (fault := sizes_fault(tensor, expected, reason)):
        yield parameter, fault


def sizes_fault(tensor: TensorDesc, expected: Sizes, reason: str) -> Fault | None:
    """Return the fault of a tensor that has other sizes than the expected ones."""
    sizes = tensor.sizes
    if sizes == tuple(expected) or (len(sizes) == len(expected) and all(map(_fits, sizes, expected))):
        return None
    if any(not (size is None or isinstance(size, Usual)) and _most(size) < 1 for size in expected):
        return wrong_sizes(sizes, f"none are right, because {reason} would make them {_listed(expected)}")
    return wrong_sizes(sizes, f"must be {_listed(expected)} for {reason}")


def right_aligned(expected: Sizes, rank: int) -> tuple[Size, ...]:
    """Return the expected sizes with leading ones added, or left out, so that there are `rank` of them.

    Where too few of the leading ones can be 1 they stay, so that no tensor of that rank fits.
    """
    surplus = len(expected) - rank
    if surplus <= 0:
        return (*(1,) * -surplus, *expected)
    if all(_fits(1, size) for size in expected[:surplus]):
        return tuple(expected[surplus:])
    return tuple(expected)


def without_leading_ones(sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the sizes from the first that is not 1 on; their number is DirectML's effective rank.

    >>> without_leading_ones([1, 1, 2, 1])
    (2, 1)
    """
    first = next((i for i, size in enumerate(sizes) if size != 1), len(sizes))
    return tuple(sizes[first:])


def replaced(sizes: Sizes, axis: int, size: Size) -> tuple[Size, ...]:
    """Return the sizes with another one at an axis."""
    return (*sizes[:axis], size, *sizes[axis + 1 :])


def _fits(size: int, expected: Size) -> bool:
    if expected is None or isinstance(expected, Usual):
        return True
    return size == expected if isinstance(expected, int) else size in expected


def _most(size: int | tuple[int, ...] | SizeSpan) -> int:
    return size if isinstance(size, int) else max(size)


def _listed(expected: Sizes) -> str:
    return f"[{', '.join(map(_shown, expected))}]"


def _shown(size: Size) -> str:
    if size is None or isinstance(size, Usual):
        return "any"
    if isinstance(size, SizeSpan) and size.greatest - size.least > 1:
        return f"{size.least} to {size.greatest}"
    return str(size) if isinstance(size, int) else " or ".join(map(str, dict.fromkeys(size)))
