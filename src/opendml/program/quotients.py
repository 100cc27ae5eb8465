"""How exact a quotient or a square root must be: the attributes of its node. Without one it is IEEE's."""

from __future__ import annotations

NEAR = 1
"""Within 1 ULP, of divisors and numbers from 2^-100 to 2^100."""
NARROW = 2
"""As FLOAT16 results need it; of roots IEEE's. Functions are marked by it too."""
BY_RECIPROCAL = 3
"""It may be a product with the divisor's reciprocal."""
ROUGH = 4
"""Within 2 ULP, of the same, for what makes up for the error."""
