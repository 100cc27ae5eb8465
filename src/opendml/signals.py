"""Work that no handler of a signal may break into."""

from __future__ import annotations

import signal
import threading

# Makes no members of an enumeration: 4 us for all signals, not 90.
from _signal import getsignal  # type: ignore[import-not-found]
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache


@contextmanager
def deferred_signals() -> Iterator[None]:
    """Let handlers, which may raise, run only after the block: KeyboardInterrupt, say, between any two lines
    of a library would leave its locks locked. Only the main thread runs handlers."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pending: list[int] = []
    try:
        with ExitStack() as handlers:
            for number in _valid_signals():
                handler = getsignal(number)
                if callable(handler):
                    handlers.callback(signal.signal, number, handler)
                    signal.signal(number, lambda number, _: pending.append(number))
            yield
    finally:
        _raise_signals(list(dict.fromkeys(pending)))


@cache
def _valid_signals() -> tuple[int, ...]:
    """Return the numbers of all signals. Python makes 64 members of an enumeration in each call: 0.3 ms."""
    return tuple(signal.valid_signals())


def _raise_signals(numbers: Sequence[int]) -> None:
    """Let the handlers of signals run, each of them, though one before it raises."""
    if numbers:
        try:
            signal.raise_signal(numbers[0])
        finally:
            _raise_signals(numbers[1:])
