"""Whether results are as near to the exact ones as opendml/spec/data/tolerances.json has it."""

from __future__ import annotations

from typing import Any

import numpy as np

from opendml.runtime.memory.host_array import Array
from opendml.spec.facts import peer_tolerance_facts, tolerance_facts
from tools.distances import distances

ROUNDED_ONCE = {"unit": "ulp", "bound": 0.501}
"""The tolerance of an operator on floats that states none."""

OWN = 0.01
"""What the float64 of an expectation may be off itself, in any unit."""


def assert_within(
    operator: str,
    result: Array,
    exact: Array | Any,
    terms: Array | Any = None,
    *,
    peer: bool = False,
    what: str = "",
) -> None:
    """Fails where a float is further from what is expected than the operator's tolerance; anything else must
    be equal.

    Args:
        operator: whose tolerance it is.
        result: of any type.
        exact: the expectation, in float64.
        terms: what is added up for each result, signs aside, where the operator's tolerance is of that.
        peer: whether the expectation is another system's, which computes in FLOAT32 itself.
        what: is told of a failure.
    """
    exact = np.asarray(exact)
    assert result.shape == exact.shape
    if result.dtype.kind != "f":
        np.testing.assert_array_equal(result, exact, what)
        return
    own = tolerance_facts().get(operator, {}).get(result.dtype.name.upper(), ROUNDED_ONCE)
    row = peer_tolerance_facts()[operator] if peer else own
    off = distances(row["unit"], result, exact.astype(np.float64), terms)
    worst = np.unravel_index(int(off.argmax()), off.shape)
    assert off[worst] <= row["bound"] + OWN, (
        f"{operator}: {result[worst]!r} instead of {exact[worst]!r} at {tuple(map(int, worst))}: "
        f"{off[worst]:g} in units of {row['unit']}, {row['bound']:g} allowed {what}"
    )
