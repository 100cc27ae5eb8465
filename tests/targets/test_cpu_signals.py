"""Signals that come during work that no handler may break into."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from types import FrameType

import pytest

from opendml.targets.cpu.signals import deferred_signals

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="the system has few signals")


class _FirstError(Exception):
    pass


class _SecondError(Exception):
    pass


@pytest.fixture
def handled() -> Iterator[list[str]]:
    """The handlers that ran; that of each of two signals raises an error."""
    ran: list[str] = []

    def handler(name: str, error: type[Exception]) -> Callable[[int, FrameType | None], None]:
        def handle(number: int, frame: FrameType | None) -> None:
            ran.append(name)
            raise error

        return handle

    before = [
        (number, signal.signal(number, handler(number.name, error)))
        for number, error in ((signal.SIGUSR1, _FirstError), (signal.SIGUSR2, _SecondError))
    ]
    yield ran
    for number, old in before:
        signal.signal(number, old)


def _raised_within(numbers: Sequence[signal.Signals], handled: list[str]) -> None:
    """Signals that come while two blocks defer them."""
    with deferred_signals(), deferred_signals():
        for number in numbers:
            signal.raise_signal(number)
        assert handled == []


def test_each_of_two_signals_is_handled_though_the_first_handler_raises(handled: list[str]) -> None:
    with pytest.raises(_SecondError) as raised:
        _raised_within([signal.SIGUSR1, signal.SIGUSR2], handled)
    assert handled == ["SIGUSR1", "SIGUSR2"]
    assert isinstance(raised.value.__context__, _FirstError)


def test_handlers_are_those_before_whatever_is_raised(handled: list[str]) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGUSR1, signal.SIGUSR2)]
    with pytest.raises(_FirstError):
        _raised_within([signal.SIGUSR1, signal.SIGUSR1], handled)
    assert handled == ["SIGUSR1"]
    assert [signal.getsignal(number) for number in (signal.SIGUSR1, signal.SIGUSR2)] == before


def test_other_threads_leave_handlers_alone(handled: list[str]) -> None:
    before = signal.getsignal(signal.SIGUSR1)
    seen = []

    def work() -> None:
        with deferred_signals():
            seen.append(signal.getsignal(signal.SIGUSR1))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]
    assert handled == []
