"""The errors that opendml raises for its callers' mistakes and for what it cannot do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from errno import ENOENT
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opendml.spec.enums import FeatureLevel


class Error(Exception):
    """Base class of every error that opendml raises on purpose."""

    def _within(self, where: object) -> Error:
        """Return the same error with `where` before its message."""
        return type(self)(f"{where}: {self}")


class Failure(str):
    """One broken rule: its message, which it is as a string, and the parts of it that are known. Immutable.

    Attributes:
        operator: DirectML's name of the operator that is wrong.
        field: DirectML's name of its field, with what of it is wrong, such as "InputTensor.Sizes[1]".
        value: what was given, as the message shows it.
        allowed: what is allowed or needed instead, and what that depends on.
        since: the feature level from which the value is allowed, where that is the reason.
        fix: an expression that mends the call, if there is one.
    """

    __slots__ = ("allowed", "field", "fix", "operator", "since", "value")

    operator: str | None
    field: str | None
    value: str | None
    allowed: str | None
    since: FeatureLevel | None
    fix: str | None

    def __new__(
        cls,
        message: str,
        operator: str | None = None,
        field: str | None = None,
        value: str | None = None,
        allowed: str | None = None,
        since: FeatureLevel | None = None,
        fix: str | None = None,
    ) -> Failure:
        failure = super().__new__(cls, message)
        parts = zip(cls.__slots__, (allowed, field, fix, operator, since, value), strict=True)
        for name, part in parts:
            object.__setattr__(failure, name, part)
        return failure

    def reworded(self, message: str, fix: str | None = None) -> Failure:
        """Return the same failure in the words of a caller, with what mends it."""
        return Failure(message, self.operator, self.field, self.value, self.allowed, self.since, fix)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Failure is immutable; {name} cannot be set")

    def __reduce__(self) -> tuple[type[Failure], tuple[object, ...]]:
        parts = self.operator, self.field, self.value, self.allowed, self.since, self.fix
        return type(self), (str(self), *parts)


class InvalidArgument(Error):  # noqa: N818 - DirectML's word
    """A description or an argument breaks DirectML's rules (DirectML's E_INVALIDARG).

    `failures` holds one for every broken rule, the first field first.
    """

    failures: tuple[Failure, ...]

    def __init__(self, failures: str | Iterable[str]) -> None:
        several = (failures,) if isinstance(failures, str) else failures
        self.failures = tuple(each if isinstance(each, Failure) else Failure(each) for each in several)
        super().__init__("\n".join(self.failures))

    def _within(self, where: object) -> InvalidArgument:
        return InvalidArgument(each.reworded(f"{where}: {each}", each.fix) for each in self.failures)

    def __reduce__(self) -> tuple[type[InvalidArgument], tuple[tuple[Failure, ...]]]:
        return type(self), (self.failures,)


class NoSuchFile(InvalidArgument, FileNotFoundError):  # noqa: N818 - as the other errors
    """A file is not there."""

    errno = ENOENT

    def _within(self, where: object) -> NoSuchFile:
        return NoSuchFile(each.reworded(f"{where}: {each}", each.fix) for each in self.failures)


class Unsupported(Error):  # noqa: N818 - DirectML's word
    """Valid in DirectML, but not something that opendml (or the chosen device) can run."""


class DeviceRemoved(Error):  # noqa: N818 - DirectML's word
    """The device was lost while it worked; everything that was created on it is void."""


class LimitExceeded(Error):  # noqa: N818 - as the other errors
    """A model needs more than its `Limits` allow.

    Attributes:
        limit: the field of `Limits`, such as "memory_bytes".
        needed: how much of it the model needs, at least.
        allowed: the value of the limit.
        where: what needs it: the file, the node and its output.
    """

    def __init__(self, limit: str, needed: float, allowed: float, where: str) -> None:
        super().__init__(limit, needed, allowed, where)
        self.limit, self.needed, self.allowed, self.where = limit, needed, allowed, where

    def __str__(self) -> str:
        needed, allowed = _number(self.needed), _number(self.allowed)
        return (
            f"{self.where}: {self.limit} {needed}; the limit is {allowed}; for a model that you trust, raise "
            f"it: limits=dml.Limits({self.limit}=...), or --limit {self.limit}=..."
        )

    def _within(self, where: object) -> LimitExceeded:
        if self.where == str(where) or self.where.startswith(f"{where}:"):
            return self
        return LimitExceeded(self.limit, self.needed, self.allowed, f"{where}: {self.where}")


@contextmanager
def located(where: object) -> Iterator[None]:
    """Put `where` before the message of an error that is raised inside."""
    try:
        yield
    except Error as error:
        raise error._within(where) from error


def _number(value: float) -> str:
    """Return a number as messages write it."""
    return f"{value:,}" if isinstance(value, int) and value < 10**24 else f"{value:.4g}"
