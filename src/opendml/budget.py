"""Limits on what a model may take, and the meter that counts it.

An entry point that loads or runs a model opens a meter for the block in which it works (`metered`). Code that
works for it finds the meter of its thread (`meter`), and asks it before it allocates, compiles or computes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field, fields
from reprlib import repr as shortened
from typing import Any

from opendml.errors import InvalidArgument, LimitExceeded, Unsupported
from opendml.host_memory import host_memory
from opendml.late_dataclass import dataclass

_OWN_SHARE = 0.9
"""Fraction of the memory that a model of one's own may take: the rest is for the program around it."""
_UNTRUSTED_SHARE = 0.5
"""Fraction of the memory that a stranger's model may take, at most."""


def _own_memory() -> int:
    return int(_OWN_SHARE * host_memory())


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """The most that a model may take while it is loaded, compiled and run.

    The defaults suit your own models: they stop only what this machine could not finish. `Limits.untrusted()`
    suits files from strangers. Every field takes `math.inf` for no limit.

    Args:
        memory_bytes: bytes that the model holds at once: its files, constants, results and temporary memory.
            By default 90 % of the memory that this process may use.
        tensor_elements: elements of one tensor.
        graph_parts: nodes of the model, with all functions, branches and bodies of loops written out, or
            steps of a recurrent network.
        kernel_steps: elementary operations of one run: each element of each primitive counts as one, and each
            product of a sum of products.
        compile_seconds: seconds to load and compile, in one load or one run. They are looked at between the
            stages of a compilation, so it may take a little longer.
        evaluator_steps: work in Python of one run: elements that nodes on onnx's evaluator read or write. An
            operator that its evaluator loops over in Python takes 1,000 for each, a trip of a loop 1,000.
        evaluator_seconds: seconds in Python of one load or one run.

    Raises:
        InvalidArgument: a field that is no number above zero.

    Examples:
        >>> import opendml as dml
        >>> dml.Limits(memory_bytes=2**30, compile_seconds=10.0).memory_bytes
        1073741824
        >>> dml.Limits.untrusted().tensor_elements
        268435456
    """

    memory_bytes: float = field(default_factory=_own_memory)
    tensor_elements: float = 2**40
    graph_parts: float = 1_000_000
    kernel_steps: float = 10**15
    compile_seconds: float = 3600
    evaluator_steps: float = 10**13
    evaluator_seconds: float = 3600

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if not is_number or math.isnan(value) or value <= 0:
                raise InvalidArgument(f"Limits.{each.name}: {shortened(value)}; a number above 0 is needed")

    @classmethod
    def untrusted(cls) -> Limits:
        """Return limits for files from strangers, which typical image models stay within.

        Returns:
            2 GiB of memory, or half of what this process may use if that is less; 2^28 elements; 50,000
            parts; 10^12 kernel steps; 120 seconds to compile; 10^9 steps and 10 seconds on the evaluator.
        """
        return cls(
            memory_bytes=min(2**31, int(_UNTRUSTED_SHARE * host_memory())),
            tensor_elements=2**28,
            graph_parts=50_000,
            kernel_steps=10**12,
            compile_seconds=120,
            evaluator_steps=10**9,
            evaluator_seconds=10,
        )


class Meter:
    """Counts what one load or one run takes, and raises LimitExceeded before it is more than allowed.

    Args:
        limits: what is allowed.
        held: bytes that the model holds already.
    """

    def __init__(self, limits: Limits, held: int = 0) -> None:
        self.limits, self.held = limits, held
        self._counts: dict[str, float] = {}
        self._running: list[tuple[str, str, float]] = []

    def require(self, limit: str, needed: float, where: object) -> None:
        """Check a number against the limit of that name.

        Raises:
            LimitExceeded: it is more.
        """
        allowed = getattr(self.limits, limit)
        if allowed != math.inf and needed > allowed:
            raise LimitExceeded(limit, needed, allowed, str(where))

    def count(self, limit: str, amount: float, where: object) -> None:
        """Add to what was counted so far, and check the sum."""
        self._counts[limit] = total = self._counts.get(limit, 0) + amount
        self.require(limit, total, where)

    def require_memory(self, size: int, where: object) -> None:
        """Check that `size` more bytes are within the limit on memory."""
        self.require("memory_bytes", self.held + size, where)

    def allows(self, more_bytes: int, elements: int, steps: int) -> bool:
        """Return whether more bytes, the elements of a tensor and kernel steps are within the limits."""
        limits = self.limits
        return (
            self.held + more_bytes <= limits.memory_bytes
            and elements <= limits.tensor_elements
            and steps <= limits.kernel_steps
        )

    def hold(self, size: int, where: object) -> None:
        """Add bytes that the model holds from now on."""
        self.require_memory(size, where)
        self.held += size

    def require_tensor(self, sizes: Iterable[int], width: float, where: object) -> None:
        """Check the elements of a tensor, and its bytes at `width` for each element.

        Raises:
            InvalidArgument: sizes below 0, as ONNX's inference says where they are too large for it.
            LimitExceeded: it is larger than allowed.
        """
        sizes = tuple(sizes)
        if any(size < 0 for size in sizes):
            raise InvalidArgument(f"{where}: sizes must not be negative")
        count = math.prod(sizes)
        self.require("tensor_elements", count, where)
        self.require_memory(count * width if isinstance(width, int) else math.ceil(count * width), where)

    @contextmanager
    def timed(self, limit: str, where: object) -> Iterator[None]:
        """Add the time of the block to a limit on seconds, which `check_time` checks.

        Time of a block within the block counts for the limit of the inner one alone.
        """
        self._stop()
        self._running.append((limit, str(where), time.perf_counter()))
        try:
            yield
            self.check_time()
        finally:
            self._stop()
            self._running.pop()
            self._resume()

    def check_time(self) -> None:
        """Check the seconds of the innermost block that is timed."""
        if self._running:
            limit, where, _ = self._running[-1]
            left = self.seconds_left(limit)
            if left < 0:
                allowed = getattr(self.limits, limit)
                raise LimitExceeded(limit, round(allowed - left, 3), allowed, where)

    def seconds_left(self, limit: str) -> float:
        """Return the seconds that a limit still allows."""
        spent = self._counts.get(limit, 0)
        if self._running and self._running[-1][0] == limit:
            spent += time.perf_counter() - self._running[-1][2]
        return float(getattr(self.limits, limit)) - spent

    def _stop(self) -> None:
        """Count the time of the innermost block so far."""
        if self._running:
            limit, _, start = self._running[-1]
            self._counts[limit] = self._counts.get(limit, 0) + time.perf_counter() - start

    def _resume(self) -> None:
        """Let the time of the innermost block go on from now."""
        if self._running:
            limit, where, _ = self._running.pop()
            self._running.append((limit, where, time.perf_counter()))


NO_LIMITS = Limits(**{each.name: math.inf for each in fields(Limits)})
_current: ContextVar[Meter | None] = ContextVar("opendml_meter", default=None)


def meter() -> Meter:
    """Return the meter of the load or run that this thread works for; outside of one it has no limits."""
    return _current.get() or Meter(NO_LIMITS)


def check_time() -> None:
    """Check the time that the load or run of this thread takes, between two stages of its work."""
    found = _current.get()
    if found is not None:
        found.check_time()


class metered:  # noqa: N801 - it is used like a function, and a generator would double the time of a run
    """Open a meter for the block.

    Args:
        limits: of the new meter; None: those of the meter around it, or the defaults.
        held: bytes that the model holds already.
        name: of the model, for errors.

    Raises:
        InvalidArgument: `limits` is something else than a `Limits` or None, or the model nests deeper than
            Python can follow.
        Unsupported: the system has less memory than the limits allow.
    """

    def __init__(self, limits: Limits | None = None, *, held: int = 0, name: str = "model") -> None:
        self._meter, self._name = Meter(limits_of(limits), held), name

    def __enter__(self) -> Meter:
        self._token = _current.set(self._meter)
        return self._meter

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        _current.reset(self._token)
        if isinstance(error, MemoryError):
            reason = str(error) or "the system has no more"
            raise Unsupported(f"{self._name}: no memory: {reason}") from error
        if isinstance(error, RecursionError):
            raise InvalidArgument(f"{self._name}: it nests too deeply") from error


def limits_of(given: Any) -> Limits:
    """Return the limits that an argument `limits` stands for: None for those around, or the defaults.

    Raises:
        InvalidArgument: it is something else.
    """
    if given is None:
        around = _current.get()
        return Limits() if around is None else around.limits
    if not isinstance(given, Limits):
        raise InvalidArgument(f"limits: {shortened(given)}; a dml.Limits is needed")
    return given
