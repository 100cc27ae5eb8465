"""The operators as array formulas: the judge of every contender (in float64), and the peers NumPy and JAX.

They are written from DirectML's documentation and share nothing with opendml, so that a mistake there cannot
hide. A formula takes the array namespace first (`numpy`, `jax.numpy`, `EXACT`) and keeps the array's type.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

EPSILON = 1e-5


def _erf(x: Any) -> Any:
    return np.frompyfunc(math.erf, 1, 1)(x).astype(x.dtype)


# NumPy with the error function that it lacks: exact, and slow, so that it only ever sees samples.
EXACT = SimpleNamespace(
    **{name: getattr(np, name) for name in ("abs", "clip", "exp", "expm1", "log1p", "maximum", "minimum")},
    **{name: getattr(np, name) for name in ("sqrt", "tanh", "where")},
    erf=_erf,
)


def softplus(xp: Any, x: Any) -> Any:
    """`log(1 + exp(x))` without overflow."""
    return xp.maximum(x, 0) + xp.log1p(xp.exp(-xp.abs(x)))


ACTIVATIONS: dict[str, Callable[..., Any]] = {
    "LINEAR": lambda xp, x, alpha, beta: alpha * x + beta,
    "SIGMOID": lambda xp, x: 1 / (1 + xp.exp(-x)),
    "HARD_SIGMOID": lambda xp, x, alpha, beta: xp.clip(alpha * x + beta, 0, 1),
    "TANH": lambda xp, x: xp.tanh(x),
    "SCALED_TANH": lambda xp, x, alpha, beta: alpha * xp.tanh(beta * x),
    "RELU": lambda xp, x: xp.maximum(x, 0),
    "LEAKY_RELU": lambda xp, x, alpha: xp.where(x >= 0, x, alpha * x),
    "THRESHOLDED_RELU": lambda xp, x, alpha: xp.where(x > alpha, x, 0),
    "ELU": lambda xp, x, alpha: xp.where(x >= 0, x, alpha * xp.expm1(xp.minimum(x, 0))),
    "CELU": lambda xp, x, alpha: xp.maximum(x, 0) + alpha * xp.expm1(xp.minimum(x, 0) / alpha),
    "SCALED_ELU": lambda xp, x, alpha, gamma: gamma * xp.where(x > 0, x, alpha * xp.expm1(xp.minimum(x, 0))),
    "SOFTPLUS": lambda xp, x, steepness: softplus(xp, steepness * x) / steepness,
    "PARAMETRIC_SOFTPLUS": lambda xp, x, alpha, beta: alpha * softplus(xp, beta * x),
    "SOFTSIGN": lambda xp, x: x / (1 + xp.abs(x)),
    "IDENTITY": lambda xp, x: x + 0,
    "SHRINK": lambda xp, x, bias, threshold: xp.where(
        x > threshold, x - bias, xp.where(x < -threshold, x + bias, 0)
    ),
    "GELU": lambda xp, x: 0.5 * x * (1 + xp.erf(x * math.sqrt(0.5))),
}


def normalize(xp: Any, x: Any, scale: Any, bias: Any, axes: tuple[int, ...]) -> Any:
    """Mean-variance normalization over `axes`, then scale and bias, each broadcast to the sizes of `x`."""
    centered = x - x.mean(axis=axes, keepdims=True)
    variance = (centered * centered).mean(axis=axes, keepdims=True)
    return centered / xp.sqrt(variance + EPSILON) * scale + bias
