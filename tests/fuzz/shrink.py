"""Failing cases made simpler: fewer and smaller choices that still fail in the same way."""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic

from tests.fuzz.attempts import Outcome, Worker

PATIENCE = 5.0
"""How many seconds a simpler case may take."""


def shrunk(worker: Worker, fuzzer: str, failure: Outcome, attempts: int, end: float) -> Outcome:
    """The simplest failure of the same kind found in so many attempts and until the time `end`, which a new
    process shows too."""
    best = _simplest(worker, fuzzer, failure, attempts, end)
    worker.close()
    again = worker.attempt(fuzzer=fuzzer, tape=best.tape)
    worker.close()
    return again if again.failed is not None else failure


def _simplest(worker: Worker, fuzzer: str, failure: Outcome, attempts: int, end: float) -> Outcome:
    best, tried = failure, set[tuple[int, ...]]()
    progress = True
    while progress:
        progress = False
        for tape in map(_trimmed, _simpler(_trimmed(best.tape))):
            if tuple(tape) in tried:
                continue
            tried.add(tuple(tape))
            if len(tried) > attempts or monotonic() > end:
                return best
            outcome = worker.attempt(PATIENCE, fuzzer=fuzzer, tape=tape)
            if outcome.failed == failure.failed and _order(outcome.tape) < _order(best.tape):
                best, progress = outcome, True
                break
    return best


def _trimmed(tape: list[int]) -> list[int]:
    """Without the zeros at the end, which go without saying."""
    while tape and tape[-1] == 0:
        tape = tape[:-1]
    return tape


def _order(tape: list[int]) -> tuple[int, list[int]]:
    """Shorter is simpler, then smaller from the first choice on."""
    tape = _trimmed(tape)
    return len(tape), tape


def _simpler(tape: list[int]) -> Iterator[list[int]]:
    """Simpler lists, the boldest first."""
    length = len(tape)
    width = length
    while width:
        for start in range(0, length, width):
            yield tape[:start] + tape[start + width :]
        if width > 1:
            for start in range(0, length, width):
                yield tape[:start] + [0] * len(tape[start : start + width]) + tape[start + width :]
        width //= 2
    for position, choice in enumerate(tape):
        for smaller in dict.fromkeys((0, choice // 2, choice - 1)):
            if 0 <= smaller < choice:
                yield [*tape[:position], smaller, *tape[position + 1 :]]
