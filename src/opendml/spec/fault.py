"""Faults: what is wrong with a field, as values that become text where the audience is known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from opendml.spec.enums import FeatureLevel, TensorDataType
from opendml.spec.wording import dimensions, shown

SIZES = "sizes"
"""The subject of a fault of a tensor's sizes or number of dimensions."""

TYPE = "type"
"""The subject of a fault of a tensor's data type."""


class Fault(NamedTuple):
    """One thing that is wrong with a field of a desc.

    Attributes:
        given: what was given, in words, or a number.
        allowed: what is allowed or needed instead. "{InputTensor}" stands for the field of that name. A count
            such as "{DimensionCount}" stands for a remark behind what it counts.
        path: the place within the field: ("Sizes", 1) is ".Sizes[1]".
        since: the feature level from which the value is allowed, where that is the reason.
        subject: SIZES or TYPE, if the fault is one of a tensor's sizes or data type.
        needed: the data type that would do, if there is one.
        malformed: rules cannot read the field.
    """

    given: object
    allowed: str = ""
    path: tuple[str | int, ...] = ()
    since: FeatureLevel | None = None
    subject: str = ""
    needed: TensorDataType | None = None
    malformed: bool = False

    def within(self, *path: str | int) -> Fault:
        """Return the fault as one of a larger value, which has the faulty one at `path`."""
        return self._replace(path=(*path, *self.path))

    def is_about(self, subject: str) -> bool:
        """Return whether the fault is one of a tensor's SIZES or TYPE."""
        return self.subject == subject or (subject == SIZES and "Sizes" in self.path)

    def text(self, names: Mapping[str, str]) -> str:
        """Return what was given and what is allowed, with the fields called by `names`."""
        return "; ".join(filter(None, (self.given_text, self.allowed.format_map(names))))

    @property
    def given_text(self) -> str:
        """Return what was given as messages show it."""
        return self.given if isinstance(self.given, str) else shown(self.given)


class FieldNames(dict[str, str]):
    """The names of an operator's fields in messages. Fields of other operators keep DirectML's names."""

    def __missing__(self, name: str) -> str:
        return name


def path_text(path: tuple[str | int, ...]) -> str:
    """Return a place within a field as messages write it.

    >>> path_text((1, "Sizes", 0))
    '[1].Sizes[0]'
    """
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)


def wrong_sizes(sizes: tuple[int, ...], allowed: str) -> Fault:
    """Return the fault of a tensor that should have other sizes."""
    return Fault(f"sizes {list(sizes)}", allowed, subject=SIZES)


def wrong_rank(rank: int, allowed: str) -> Fault:
    """Return the fault of a tensor that should have another number of dimensions."""
    return Fault(dimensions(rank), allowed, subject=SIZES)


def wrong_type(given: TensorDataType, allowed: str, needed: TensorDataType | None = None) -> Fault:
    """Return the fault of a tensor that should have another data type."""
    return Fault(given.name, allowed, subject=TYPE, needed=needed)
