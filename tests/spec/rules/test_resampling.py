"""Images of other sizes: any are valid, so that no rule can be broken; test_outputs.py has what calls take."""

from __future__ import annotations

from tests.spec.rules.breaking import Broken

BROKEN: list[Broken] = []
