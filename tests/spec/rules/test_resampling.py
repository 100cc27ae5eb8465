"""Images of other sizes: any are valid, so that no rule can be broken. What calls take is in test_outputs.py."""

from __future__ import annotations

from tests.spec.rules.breaking import Broken

BROKEN: list[Broken] = []
