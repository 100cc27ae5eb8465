"""The trigonometric functions and their inverses in FLOAT32, for results that are stored as FLOAT16.

As in `half_math`, relative errors are at most 2^-15; the coefficients come from tools/minimax.py.
"""

from __future__ import annotations

from opendml.program.angle_math import AngleFunctions

EXPANSIONS = AngleFunctions(
    parts=2,
    sin=(-0.166633889, 0.00816324446),
    cos=(-0.499760449, 0.0404581837),
    tan=(0.333154172, 0.136067018, 0.0413920507, 0.0430951528),
    asin=(0.166801259, 0.0718998089, 0.064107269),
    atan=(-0.333088994, 0.196183026, -0.122514792, 0.0587699786, -0.0139549831),
).expansions()
