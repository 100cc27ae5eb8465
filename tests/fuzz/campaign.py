"""All fuzzers for some time: what was tried, what failed, and the line that shows it again."""

from __future__ import annotations

import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from math import inf
from shlex import quote
from threading import Lock
from time import monotonic

from tests.fuzz.attempts import Outcome, Worker
from tests.fuzz.shrink import shrunk

PROGRESS = 60.0
"""After how many seconds it is said how far the campaign is, again and again."""
SHRINKING = 500
"""How often a failure is tried to be made simpler."""
READERS = ("models", "onnx", "saved", "serialized")
"""Fuzzers of files that strangers wrote, which must not cost more than this."""
READING_SECONDS = 10.0
READING_BYTES = 2 << 30


@dataclass
class Campaign:
    """What some fuzzers try and find.

    Attributes:
        fuzzers: their names.
        seed: the first seed; the next ones follow.
        shrinking: how many simpler cases are tried for a failure.
        tried: how many cases of each fuzzer.
        seconds: how long they took.
        failed: how many of them failed.
        findings: the kinds of failures, by fuzzer and kind.
        end: when nothing more is tried, as `monotonic` has it.
    """

    fuzzers: Sequence[str]
    seed: int = 0
    shrinking: int = SHRINKING
    tried: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    failed: Counter[str] = field(default_factory=Counter)
    findings: dict[tuple[str, str], Finding] = field(default_factory=dict)
    end: float = inf
    _lock: Lock = field(default_factory=Lock)

    def run(self, seconds: float, processes: int) -> None:
        """Tries cases for that long, with that many processes; every fuzzer gets as much time as another."""
        start = monotonic()
        self.end = start + seconds
        with tempfile.TemporaryDirectory() as cache, ThreadPoolExecutor(processes) as pool:
            working = {pool.submit(self._work, cache) for _ in range(processes)}
            while working:
                done, working = wait(working, min(PROGRESS, seconds / 4))
                for future in done:
                    future.result()
                if working:
                    print(self.progress(monotonic() - start, seconds), file=sys.stderr, flush=True)

    def progress(self, elapsed: float, seconds: float) -> str:
        """How far a campaign of so many seconds is, in a line."""
        with self._lock:
            cases = ", ".join(f"{name} {self.tried[name]:,}" for name in self.fuzzers)
            kinds = len(self.findings)
        return f"{elapsed:.0f} of {seconds:.0f} seconds: {cases}; {kinds} kinds of failures"

    def try_seeds(self, worker: Worker, fuzzer: str, seeds: Sequence[int]) -> None:
        """Tries these cases, in one process where none fails."""
        for seed in seeds:
            self._try(worker, fuzzer, seed)

    def report(self) -> str:
        """A table of the fuzzers, then every failure with the line that shows it again."""
        lines = [f"{'fuzzer':10} {'cases':>9} {'seconds':>9} {'failed':>8}"]
        lines += [
            f"{name:10} {self.tried[name]:9,} {self.seconds[name]:9,.0f} {self.failed[name]:8,}"
            for name in self.fuzzers
        ]
        return "\n".join([*lines, *(str(each) for each in self.findings.values())])

    def _work(self, cache: str) -> None:
        worker = Worker(cache)
        try:
            while monotonic() < self.end:
                with self._lock:
                    fuzzer = min(self.fuzzers, key=self.seconds.__getitem__)
                    self.seconds[fuzzer] += (
                        1e-3  # so that processes that start together choose different ones
                    )
                    seed = self.seed + self.tried[fuzzer]
                    self.tried[fuzzer] += 1
                self._try(worker, fuzzer, seed, counted=True)
        finally:
            worker.close()

    def _try(self, worker: Worker, fuzzer: str, seed: int, *, counted: bool = False) -> None:
        start = monotonic()
        outcome = _judged(worker.attempt(fuzzer=fuzzer, seed=seed), fuzzer if counted else "")
        if outcome.failed is not None:
            worker.close()  # The failure may have left something behind.
        with self._lock:
            self.seconds[fuzzer] += monotonic() - start
            self.tried[fuzzer] += not counted
            if outcome.failed is None:
                return
            self.failed[fuzzer] += 1
            key = fuzzer, outcome.failed
            if key in self.findings:
                self.findings[key].count += 1
                return
            finding = self.findings[key] = Finding(fuzzer, seed, outcome)
        print(f"{fuzzer} {seed}: {outcome.failed}", file=sys.stderr, flush=True)
        alone = _judged(worker.attempt(fuzzer=fuzzer, seed=seed), fuzzer if counted else "")
        if alone.failed is not None:
            finding.outcome, finding.alone = shrunk(worker, fuzzer, alone, self.shrinking, self.end), True
        print(finding, file=sys.stderr, flush=True)


def _judged(outcome: Outcome, fuzzer: str) -> Outcome:
    """A case of a reader that costs too much is a failure too."""
    costs = outcome.seconds > READING_SECONDS or outcome.bytes > READING_BYTES
    if fuzzer not in READERS or outcome.failed is not None or not costs:
        return outcome
    cost = f"{outcome.seconds:.0f} seconds, {outcome.bytes >> 20} MiB"
    return replace(outcome, failed=f"{outcome.case[:60]} costs {cost}", message=outcome.case)


@dataclass
class Finding:
    """A kind of failure, with its simplest case.

    Attributes:
        alone: the case fails in a process of its own, not only after others.
        count: how many cases failed so.
    """

    fuzzer: str
    seed: int
    outcome: Outcome
    alone: bool = False
    count: int = 1

    def __str__(self) -> str:
        again = quote(self.outcome.case) if self.alone and self.outcome.case else f"{self.fuzzer} {self.seed}"
        remark = "" if self.alone else "   # fails only after others"
        message = self.outcome.message.replace("\n", "\n  ")
        return (
            f"\n{self.count} times {self.outcome.failed}\n  {message}\n  python -m tests.fuzz {again}{remark}"
        )
