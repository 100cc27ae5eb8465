"""The contenders of one case, checked, then timed in turns.

A round gives every contender one turn, so that a disturbance of the machine meets all alike. A turn is one
untimed run, which wakes the library's threads and warms the caches, and one timed run.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from benchmarks.cases import Case
from benchmarks.contender import Contender, Mode, NotExpressible, Peer
from benchmarks.data import Data, make_data
from benchmarks.yardstick import Copy

SETTLE_SECONDS = 0.003  # lets the threads of the contender before stop spinning
LONG_RUN_SECONDS = 0.05  # from here on a turn needs no untimed run


@dataclass
class Outcome:
    """The times of one contender in one case, in milliseconds; `problem` says why there are none."""

    peer: str
    mode: Mode | None
    first_call: float | None = None  # building, compiling and the first run
    times: list[float] = field(default_factory=list)
    error: float | None = None  # the largest error as a multiple of the tolerance
    problem: str | None = None

    @property
    def median(self) -> float:
        return statistics.median(self.times)

    @property
    def spread(self) -> float:
        """The distance of the quartiles as a share of the median."""
        if len(self.times) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.times, n=4)
        return (high - low) / self.median


@dataclass(frozen=True)
class Result:
    """A case's outcomes and the time of its copy, in milliseconds."""

    case: Case
    copy: Outcome
    outcomes: list[Outcome]

    def find(self, peer: str, mode: Mode) -> Outcome | None:
        """The timed outcome of this contender, if it has one."""
        found = (o for o in self.timed() if (o.peer, o.mode) == (peer, mode))
        return next(found, None)

    def timed(self) -> Iterator[Outcome]:
        return (outcome for outcome in self.outcomes if outcome.times)

    def share_of_copy(self, outcome: Outcome) -> float:
        return self.copy.median / outcome.median


def measure(case: Case, peers: Sequence[Peer], rounds: int, threads: int) -> Result:
    """Runs `case` in every way that a peer has to say it; a wrong result is reported and not timed."""
    data = make_data(case)
    copy = Copy(case.traffic // 2, threads)
    result = Result(case, Outcome("copy", Mode.BOUND), [])
    ready: list[tuple[Contender, Outcome]] = []
    for peer in peers:
        for mode in peer.modes:
            outcome = Outcome(peer.name, mode)
            try:
                contender = _prepared(peer, data, mode, outcome)
            except NotExpressible:
                continue
            result.outcomes.append(outcome)
            if contender:
                ready.append((contender, outcome))
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            time.sleep(SETTLE_SECONDS)
            copy.seconds()
            result.copy.times.append(copy.seconds() * 1e3)
            for contender, outcome in ready:
                outcome.times.append(_turn(contender, outcome) * 1e3)
    finally:
        gc.enable()
    return result


def _prepared(peer: Peer, data: Data, mode: Mode, outcome: Outcome) -> Contender | None:
    """The contender after its first run, or None where it failed: `outcome.problem` says how."""
    begun = time.perf_counter()
    try:
        contender = peer.prepare(data, mode)
        product = contender.run()
    except NotExpressible:
        raise
    except Exception as failure:  # whatever a library raises belongs into the table
        lines = str(failure).strip().splitlines() or [""]
        outcome.problem = f"{type(failure).__name__}: {lines[-1][:160]}"
        return None
    outcome.first_call = (time.perf_counter() - begun) * 1e3
    outcome.error = data.error(contender.to_numpy(product))
    if outcome.error > 1:
        outcome.problem = f"wrong result: {outcome.error:.3g} times the tolerance"
        return None
    return contender


def _turn(contender: Contender, outcome: Outcome) -> float:
    """Seconds of one run."""
    is_long = bool(outcome.times) and outcome.times[-1] > LONG_RUN_SECONDS * 1e3
    time.sleep(SETTLE_SECONDS)
    for _ in range(1 if is_long else 2):
        if contender.reset:
            contender.reset()
        begun = time.perf_counter()
        product = contender.run()
        elapsed = time.perf_counter() - begun
        del product
    return elapsed
