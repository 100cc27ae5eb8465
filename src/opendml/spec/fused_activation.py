"""The operators that may be given to another one as its activation, and from which level."""

from __future__ import annotations

from functools import cache

from opendml.spec.enums import FeatureLevel
from opendml.spec.facts import enum_facts
from opendml.spec.fault import Fault
from opendml.spec.feature_level import full_name
from opendml.spec.schema import operator


@cache
def fusable_since(outer: str, activation: str) -> FeatureLevel | None:
    """Return the level from which `outer` takes `activation`; None where it never does."""
    facts = enum_facts()["fused_activation"]
    if activation in facts["activations"]:
        return max(operator(activation).introduced, operator(outer).introduced)
    for extra in facts["extra"]:
        if activation == extra["activation"] and outer in extra["operators"]:
            return FeatureLevel[f"LEVEL_{extra['level']}"]
    return None


def fusion_fault(outer: str, activation: str, level: FeatureLevel) -> Fault | None:
    """Return why `outer` cannot take `activation` at that level, if it cannot."""
    since = fusable_since(outer, activation)
    if since is None:
        names = [
            name for name in fused_activations() if (first := fusable_since(outer, name)) and first <= level
        ]
        given, allowed = f"{activation} cannot be fused", f"{full_name(level)} allows {', '.join(names)}"
        return Fault(given, allowed, malformed=True)
    if since > level:
        allowed = f"can be fused from {full_name(since)}, not in {full_name(level)}"
        return Fault(activation, allowed, since=since, malformed=True)
    return None


@cache
def fused_activations() -> tuple[str, ...]:
    """Return every operator that some other one may take as its activation."""
    facts = enum_facts()["fused_activation"]
    return (*facts["activations"], *(extra["activation"] for extra in facts["extra"]))
