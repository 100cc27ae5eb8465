"""Images of other sizes: any are valid, so no rule can be broken; test_outputs.py tests what calls take."""

from __future__ import annotations

from tests.spec.rules.breaking import Broken

BROKEN: list[Broken] = []
