"""The goals of speed, and those that a result misses.

Where PyTorch can write into an existing output (`out=`), that form is compared with opendml's bound run: the
page faults of a new output take longer than most operators.
"""

from __future__ import annotations

from benchmarks.contender import Mode
from benchmarks.timing import Result

SLOW_SHARE = 0.25  # a peer below this share of the copy's speed should be beaten three times


def fastest_new(result: Result) -> tuple[str, float] | None:
    """The fastest peer that returns a new array, and its milliseconds."""
    peers = [(o.median, o.peer) for o in result.timed() if o.mode is Mode.NEW and o.peer != "opendml"]
    return (min(peers)[1], min(peers)[0]) if peers else None


def shortfalls(result: Result) -> list[str]:
    """Return one short text for each goal that opendml's bound run misses; none when it meets all."""
    ours = result.find("opendml", Mode.BOUND)
    if ours is None:
        return ["not run"]
    goal, found = result.case.goal, []

    def require(least: float, reached: float, of: str) -> None:
        if reached < least:
            found.append(f"{reached:.2f} of {least:.2f} {of}")

    require(goal.of_copy, result.share_of_copy(ours), "times copy")
    bound = result.find("torch", Mode.BOUND)
    if goal.over_bound and bound:
        require(goal.over_bound, bound.median / ours.median, "times torch bound")
    if goal.over_all:
        for peer in (outcome for outcome in result.timed() if outcome.peer != "opendml"):
            least = 3.0 if result.share_of_copy(peer) < SLOW_SHARE else 1.0
            require(least, peer.median / ours.median, f"times {peer.peer} {peer.mode}")
    return found
