"""Computes the polynomial coefficients of the functions of opendml.program.

    python -m tools.minimax              all tables, as they stand in the source, each with its greatest error
    python -m tools.minimax TANH ERF     some of them

Each table is the polynomial p whose greatest weighted error |w(x) (p(x) - f(x))| over an interval is the
least: weighted least squares on a dense grid of Chebyshev points, repeated with the weights that Lawson's
algorithm raises where the error is great. Of a quotient p / q, whose q begins with 1, the error of p - f q
over the q of the step before is the one that counts. The function's values come from mpmath in 40 digits. The
coefficients are rounded to float32 one after the other, the constant term first; after each rounding the rest
is fitted again, so that it makes up for the error of the rounded ones.
"""

from __future__ import annotations

import itertools
import math
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from mpmath import mp, mpf

mp.dps = 40
GRID_POINTS = 1500
POINTS_TRIED = 2000
LAWSON_STEPS = 60

Array = npt.NDArray[np.float64]

Function = Callable[[mpf], mpf]


@dataclass(frozen=True)
class Fit:
    """One polynomial: `function` to meet on [low, high], `weight` of an error there, and the degree; and that
    of a polynomial that divides it, 0 if none does."""

    name: str
    function: Function
    weight: Function
    low: mpf
    high: mpf
    degree: int
    divisor: int = 0


@dataclass(frozen=True)
class Grid:
    """The points of a fit: what each coefficient is multiplied by there (a row), those of a divisor being the
    last, the function's values, the weights, and the powers of the divisor's coefficients."""

    powers: Array
    values: Array
    weights: Array
    divided: Array

    def divisor(self, coefficients: Array) -> Array:
        """The divisor at every point."""
        count = self.divided.shape[1]
        result: Array = 1.0 + self.divided @ coefficients[len(coefficients) - count :]
        return result


def exp_remainder(r: mpf) -> mpf:
    """(exp(r) - 1 - r) / r^2."""
    return (mp.expm1(r) - r) / r**2


def log_remainder(f: mpf) -> mpf:
    """(log(1 + f) - f) / f^2."""
    return (mp.log1p(f) - f) / f**2


def inverse_sine_rest(x: mpf) -> mpf:
    """(asinh(x) - x) / x^3."""
    return (mp.asinh(x) - x) / x**3


def inverse_cosine_rest(t: mpf) -> mpf:
    """(acosh(1 + t) / sqrt(2 t) - 1) / t."""
    return (mp.acosh(1 + t) / mp.sqrt(2 * t) - 1) / t


def inverse_cosine_weight(t: mpf) -> mpf:
    """The relative error of acosh(1 + t) for an error of 1 in inverse_cosine_rest."""
    return t * mp.sqrt(2 * t) / mp.acosh(1 + t)


def inverse_tangent_rest(x: mpf) -> mpf:
    """(atanh(x) - x) / x^3."""
    return (mp.atanh(x) - x) / x**3


def log2_remainder(square: mpf) -> mpf:
    """(log2((1 + q) / (1 - q)) - 2 q / log(2)) / q^3 as a function of q^2."""
    q = mp.sqrt(square)
    return 2 * (mp.atanh(q) - q) / mp.log(2) / q**3


def log2_weight(square: mpf) -> mpf:
    """The relative error of the logarithm for an error of 1 in log2_remainder."""
    q = mp.sqrt(square)
    return q**3 * mp.log(2) / (2 * mp.atanh(q))


def exp2_remainder(f: mpf) -> mpf:
    """(2^f - 1) / f."""
    return (mpf(2) ** f - 1) / f


def tanh_remainder(square: mpf) -> mpf:
    """(tanh(x) - x) / x^3 as a function of x^2."""
    x = mp.sqrt(square)
    return (mp.tanh(x) - x) / x**3


def tanh_weight(square: mpf) -> mpf:
    """The relative error of tanh(x) for an error of 1 in tanh_remainder."""
    x = mp.sqrt(square)
    return x**3 / mp.tanh(x)


def erf_remainder(square: mpf) -> mpf:
    """erf(x) / x - 1 as a function of x^2."""
    x = mp.sqrt(square)
    return mp.erf(x) / x - 1


def erf_weight(square: mpf) -> mpf:
    """The relative error of erf(x) for an error of 1 in erf_remainder."""
    x = mp.sqrt(square)
    return x / mp.erf(x)


def erf_exponent(x: mpf) -> mpf:
    """log(erfc(x)) + x over x: exp(x * this - x) = erfc(x)."""
    return mp.log(mp.erfc(x)) / x


def erf_exponent_weight(x: mpf) -> mpf:
    """The relative error of erf(x) for an error of 1 in erf_exponent."""
    return x * mp.erfc(x) / mp.erf(x)


def normal_tail(x: mpf) -> mpf:
    """The probability that a standard normal variable is above x."""
    return mp.erfc(x / mp.sqrt(2)) / 2


def narrow_tail(x: mpf) -> mpf:
    """exp(x^2 / 2) times the probability above x."""
    return mp.exp(x**2 / 2) * normal_tail(x)


def tail_argument(x: mpf) -> mpf:
    """The variable in which the normal distribution's tail is a polynomial: 1 at 0 down to -1 at infinity."""
    return 2 * TAIL_SCALE / (x + TAIL_SCALE) - 1


def scaled_tail(u: mpf) -> mpf:
    """exp(x^2 / 2) (x + k) times the probability above x, where u is tail_argument(x)."""
    x = 2 * TAIL_SCALE / (u + 1) - TAIL_SCALE
    return narrow_tail(x) * (x + TAIL_SCALE)


def tail_remainder(u: mpf) -> mpf:
    """(scaled_tail(u) / TAIL_NUMERATOR - 1) / u."""
    return (scaled_tail(u) / TAIL_NUMERATOR - 1) / u


def tail_weight(u: mpf) -> mpf:
    """The relative error of the tail for an error of 1 in tail_remainder."""
    return u * TAIL_NUMERATOR / scaled_tail(u)


def half_tail(u: mpf) -> mpf:
    """exp(x^2 / 2) times the probability above x, for u from -1 at 0 to 1 at HALF_TAIL_END."""
    return narrow_tail(HALF_TAIL_END / 2 * (u + 1))


def half_tail_weight(u: mpf) -> mpf:
    """The relative error of the tail for an error of 1 in half_tail; the less, the more of x times the tail
    is below 2^-14, from where on FLOAT16 has steps of one size."""
    x, tail = HALF_TAIL_END / 2 * (u + 1), half_tail(u)
    return min(mpf(1), x * tail * mp.exp(-(x**2) / 2) * 2**14 if x > 1 else mpf(1)) / tail


def of_square(function: Function) -> Function:
    """A function of x as one of x^2."""
    return lambda square: function(mp.sqrt(square))


def sine_rest(x: mpf) -> mpf:
    """(sin(x) - x) / x^3."""
    return (mp.sin(x) - x) / x**3


def tangent_rest(x: mpf) -> mpf:
    """(tan(x) - x) / x^3."""
    return (mp.tan(x) - x) / x**3


def hyperbolic_sine_rest(x: mpf) -> mpf:
    """(sinh(x) - x) / x^3."""
    return (mp.sinh(x) - x) / x**3


def arc_sine_rest(x: mpf) -> mpf:
    """(asin(x) - x) / x^3."""
    return (mp.asin(x) - x) / x**3


def arc_tangent_rest(x: mpf) -> mpf:
    """(atan(x) - x) / x^3."""
    return (mp.atan(x) - x) / x**3


def odd_fit(name: str, rest: Function, function: Function, high: mpf, degree: int) -> Fit:
    """The fit of an odd function's `rest`, (function(x) - x) / x^3, in x^2 for x from 0 to `high`."""
    weight = of_square(lambda x: x**3 / function(x))
    return Fit(name, of_square(rest), weight, mpf("1e-12"), high**2, degree)


def even_fit(name: str, function: Function, high: mpf, degree: int) -> Fit:
    """The fit of (function(x) - 1) / x^2 in x^2 for x from 0 to `high`."""
    rest = of_square(lambda x: (function(x) - 1) / x**2)
    weight = of_square(lambda x: x**2 / function(x))
    return Fit(name, rest, weight, mpf("1e-12"), high**2, degree)


def far_tail(v: mpf) -> mpf:
    """Return x exp(x^2 / 2) times the probability above x as a function of 1 / x^2."""
    x = 1 / mp.sqrt(v)
    return x * narrow_tail(x)


TAIL_SCALE = mpf("1.625")
TAIL_NUMERATOR = mpf(float(np.float32(float(scaled_tail(mpf(0))))))
HALF_TAIL_END = mpf("5.75")  # from where on x times the probability above it is 0 in FLOAT16
NARROW_TAIL_END = mpf(15)  # from where on exp(-x^2 / 2) is 0 in FLOAT32
HALF_LOG_2 = mp.log(2) / 2 * mpf("1.0001")
UNIT_SINH = mpf("1.176")
QUARTER_PI = mp.pi / 4 * mpf("1.0001")

FITS = (
    Fit("EXP", exp_remainder, lambda r: r**2 / mp.exp(r), -HALF_LOG_2, HALF_LOG_2, 4),
    Fit("LOG", log_remainder, lambda f: f**2 / mp.log1p(f), mpf("-0.3"), mpf("0.4"), 8),
    Fit("LOG_PIECE", log_remainder, lambda f: f**2 / mp.log1p(f), mpf("-0.0940"), mpf("0.1254"), 5),
    Fit("SOFTPLUS", lambda t: mp.log1p(t) / t, lambda t: t / mp.log1p(t), mpf("1e-12"), mpf(1), 9),
    Fit("TANH", tanh_remainder, tanh_weight, mpf("1e-12"), mpf("0.85") ** 2, 5),
    Fit("ERF", erf_remainder, erf_weight, mpf("1e-12"), mpf("0.92") ** 2, 5),
    Fit("ERF_EXPONENT", erf_exponent, erf_exponent_weight, mpf("0.92"), mpf(4), 7),
    Fit("NORMAL_TAIL", tail_remainder, tail_weight, tail_argument(mpf("14.5")), mpf(1), 9),
    # For half_math.
    Fit("HALF_EXP", exp_remainder, lambda r: r**2 / mp.exp(r), -HALF_LOG_2, HALF_LOG_2, 2),
    Fit("HALF_EXPM1", exp_remainder, lambda r: r**2 / mp.expm1(r), -HALF_LOG_2, HALF_LOG_2, 2),
    Fit("HALF_SOFTPLUS", lambda t: mp.log1p(t) / t, lambda t: t / mp.log1p(t), mpf("1e-12"), mpf(1), 5),
    Fit("HALF_TAIL", half_tail, half_tail_weight, mpf(-1), mpf(1), 9),
    Fit("HALF_LOG", log_remainder, lambda f: f**2 / mp.log1p(f), mpf("-0.3"), mpf("0.4"), 4),
    Fit("HALF_POWER_LOG", log_remainder, lambda f: f**2 / mp.log1p(f), mpf("-0.3"), mpf("0.4"), 6),
    odd_fit("HALF_SIN", sine_rest, mp.sin, QUARTER_PI, 1),
    even_fit("HALF_COS", mp.cos, QUARTER_PI, 1),
    odd_fit("HALF_TAN", tangent_rest, mp.tan, QUARTER_PI, 3),
    odd_fit("HALF_ASIN", arc_sine_rest, mp.asin, mpf("0.5"), 2),
    odd_fit("HALF_ATAN", arc_tangent_rest, mp.atan, mpf(1), 4),
    odd_fit("HALF_SINH", hyperbolic_sine_rest, mp.sinh, HALF_LOG_2, 1),
    even_fit("HALF_COSH", mp.cosh, HALF_LOG_2, 1),
    odd_fit("HALF_ASINH", inverse_sine_rest, mp.asinh, UNIT_SINH, 3),
    Fit("HALF_ACOSH", inverse_cosine_rest, inverse_cosine_weight, mpf("1e-9"), mpf(1), 2),
    odd_fit("HALF_ATANH", inverse_tangent_rest, mp.atanh, mpf("0.5"), 2),
    # For narrow_math of CUDA: the tail, then its divisor.
    Fit("NARROW_TAIL", narrow_tail, lambda x: 1 / narrow_tail(x), mpf("1e-12"), NARROW_TAIL_END, 2, 3),
    # For table_math of the CPU.
    Fit("FAR_TAIL", far_tail, lambda v: 1 / far_tail(v), 1 / mpf("14.5") ** 2, 1 / mpf("5.39") ** 2, 4),
    # For power_math.
    Fit("LOG2", log2_remainder, log2_weight, mpf("1e-12"), mpf("0.1767") ** 2, 3),
    Fit("EXP2", exp2_remainder, lambda f: f / mpf(2) ** f, mpf("-0.501"), mpf("0.501"), 5),
    # For angle_math.
    odd_fit("SIN", sine_rest, mp.sin, QUARTER_PI, 2),
    even_fit("COS", mp.cos, QUARTER_PI, 3),
    odd_fit("TAN", tangent_rest, mp.tan, QUARTER_PI, 6),
    odd_fit("ASIN", arc_sine_rest, mp.asin, mpf("0.5"), 4),
    odd_fit("ATAN", arc_tangent_rest, mp.atan, mpf(1), 7),
    # For hyperbolic_math.
    odd_fit("NEAR_SINH", hyperbolic_sine_rest, mp.sinh, mpf(1), 2),
    odd_fit("SINH", hyperbolic_sine_rest, mp.sinh, HALF_LOG_2, 1),
    even_fit("COSH", mp.cosh, HALF_LOG_2, 2),
    odd_fit("ASINH", inverse_sine_rest, mp.asinh, UNIT_SINH, 7),
    Fit("ACOSH", inverse_cosine_rest, inverse_cosine_weight, mpf("1e-9"), mpf(1), 5),
    odd_fit("ATANH", inverse_tangent_rest, mp.atanh, mpf("0.5"), 5),
)


def equal_edges(width: float) -> tuple[float, ...]:
    """Return the edges of the pieces if the number of a piece is x / width, rounded: the first is a half."""
    return (0.0, *(width * (number + 0.5) for number in range(8)))


def narrowing_edges(slope: float, square: float, count: int = 8) -> tuple[float, ...]:
    """Return the edges of the pieces if the number of a piece is x (slope + square x), rounded."""
    halves = [number + 0.5 for number in range(count)]
    return (0.0, *((math.sqrt(slope**2 + 4 * square * half) - slope) / (2 * square) for half in halves))


def widening_edges(slope: float, square: float, end: float, count: int = 8) -> tuple[float, ...]:
    """Return the edges of the pieces if the number of a piece is x (slope - square x), rounded, up to an
    end."""
    halves = [number + 0.5 for number in range(count - 1)]
    return (0.0, *((slope - math.sqrt(slope**2 - 4 * square * half)) / (2 * square) for half in halves), end)


def lower_points(edges: tuple[float, ...]) -> tuple[float, ...]:
    """Return 0 for the first piece, and points near the lower ends of the others: where a function is steep,
    less cancels there."""
    return (0.0, *(low + (high - low) / 5 for low, high in itertools.pairwise(edges[1:])))


def middles(edges: tuple[float, ...]) -> tuple[float, ...]:
    """Return 0 for the first piece, and the middles of the others."""
    return (0.0, *((low + high) / 2 for low, high in itertools.pairwise(edges[1:])))


@dataclass(frozen=True)
class Pieces:
    """A function in pieces, each f(c + r) = f(c) + r q(r) with a polynomial q of r; of the first piece, if it
    `is_linear`, x + r q(r).

    `edges` bound the pieces, and `centers` are near the points c: a c is a float32, and f(c) almost is one.
    The weight of an error is `weight` at c + r.
    """

    name: str
    function: Function
    weight: Function
    edges: tuple[float, ...]
    centers: tuple[float, ...]
    degree: int
    is_linear: bool = False


def narrow_weight(x: mpf) -> mpf:
    """Return the weight of an error of normal_tail: relative, less where x times the tail is denormal in
    FLOAT16."""
    return half_tail_weight(2 * x / HALF_TAIL_END - 1) / mp.exp(-(x**2) / 2)


ERF_EDGES = equal_edges(0.524)
WIDE_ERF_EDGES = widening_edges(5.1, 0.295, 3.93, 16)
HALF_ERF_EDGES = equal_edges(0.36)
HALF_NORMAL_EDGES = equal_edges(0.768)
TANH_EDGES = widening_edges(1.62656, 0.089371, 9.02)
GELU_EDGES = narrowing_edges(0.741, 0.12)
WIDE_GELU_EDGES = narrowing_edges(0.983, 0.35, 16)

PIECES = (
    # For table_math of the CPU.
    Pieces("ERF_TABLES", mp.erf, lambda x: 1 / mp.erf(x), ERF_EDGES, middles(ERF_EDGES), 6, is_linear=True),
    Pieces(
        "TANH_TABLES",
        mp.tanh,
        lambda x: 1 / mp.tanh(x),
        TANH_EDGES,
        lower_points(TANH_EDGES),
        6,
        is_linear=True,
    ),
    # Of the points at the upper ends of pieces, all terms of the polynomials have one sign.
    Pieces("NORMAL_TABLES", normal_tail, lambda x: 1 / normal_tail(x), GELU_EDGES, (0.0, *GELU_EDGES[2:]), 7),
    Pieces(
        "WIDE_ERF_TABLES",
        mp.erf,
        lambda x: 1 / mp.erf(x),
        WIDE_ERF_EDGES,
        lower_points(WIDE_ERF_EDGES),
        4,
        is_linear=True,
    ),
    Pieces(
        "WIDE_NORMAL_TABLES",
        normal_tail,
        lambda x: 1 / normal_tail(x),
        WIDE_GELU_EDGES,
        (0.0, *WIDE_GELU_EDGES[2:]),
        5,
    ),
    Pieces("HALF_ERF_TABLES", mp.erf, lambda x: 1 / mp.erf(x), HALF_ERF_EDGES, middles(HALF_ERF_EDGES), 3),
    Pieces(
        "HALF_NORMAL_TABLES", normal_tail, narrow_weight, HALF_NORMAL_EDGES, (0.0, *HALF_NORMAL_EDGES[2:]), 5
    ),
)


def solve_pieces(pieces: Pieces) -> tuple[list[list[float]], float]:
    """Return a table of the points c, one of the values there and one for each coefficient of q, the constant
    term first; and the greatest weighted error."""
    rows, greatest = [], 0.0
    for number, target in enumerate(pieces.centers):
        center = accurate_point(pieces.function, target)
        base = pieces.function(center)
        slope = mpf(1 if pieces.is_linear and number == 0 else 0)
        low, high = ((mpf(edge) - center) * mpf("1.0005") for edge in pieces.edges[number : number + 2])

        def quotient(r: mpf, center: mpf = center, base: mpf = base, slope: mpf = slope) -> mpf:
            return (pieces.function(center + r) - base) / r - slope

        def weight(r: mpf, center: mpf = center) -> mpf:
            return r * pieces.weight(center + r)

        coefficients, error = solve(Fit(pieces.name, quotient, weight, low, high, pieces.degree))
        rows.append([float(center), float(np.float32(float(base))), *coefficients])
        greatest = max(greatest, error)
    return [list(column) for column in zip(*rows, strict=True)], greatest


def accurate_point(function: Function, near: float) -> mpf:
    """Return a float32 close to `near` at which the function is almost a float32 (Gal's accurate tables):
    within a 64th of a unit in the last place."""
    for step in range(POINTS_TRIED):
        offset = near * 2.0**-16 * (step // 2 if step % 2 else -(step // 2))
        x = mpf(float(np.float32(near + offset)))
        value = function(x)
        rounded = np.float32(float(value))
        if abs(value - mpf(float(rounded))) <= mpf(float(np.spacing(abs(rounded)))) / 64:
            return x
    raise ValueError(f"no accurate point near {near}")


LOG_STEP = (
    mpf(2) ** -17
)  # of log 2, so that products with exponents are exact, and of the logarithms beside it


def logarithm_tables() -> list[list[float]]:
    """Return for the upper four bits of a significand from 1 to 2: a float32 by which it is multiplied, which
    takes it near to 1, the negative logarithm of that number, which almost is a multiple of LOG_STEP, and by
    how much the exponent grows. Near to 1 and 2 that number is a power of two, so the product is exact."""
    rows = []
    for number in range(16):
        growth = int(number > 7)
        near = 1 / (1 + (number + 0.5) / 16) * 2**growth
        # Beyond 1 / 9 the sum of two logarithms loses no digits.
        exact = abs(near - 1) < 1 / 9
        candidates = (np.float32(near) + np.float32(2.0**-24) * step for step in range(-(2**17), 2**17))
        factor = 1.0 if exact else float(min(candidates, key=distance_from_log_step))
        logarithm = mp.nint(-mp.log(mpf(factor)) / LOG_STEP) * LOG_STEP
        rows.append([factor / 2**growth, float(logarithm), float(growth)])
    return [list(column) for column in zip(*rows, strict=True)]


def distance_from_log_step(factor: np.float32) -> float:
    """Return how far the logarithm of a number is from a multiple of LOG_STEP, in such steps."""
    steps = math.log(float(factor)) / float(LOG_STEP)
    return abs(steps - round(steps))


def sample(fit: Fit) -> Grid:
    """Chebyshev points of the interval, ascending, without those where the function is 0 / 0."""
    middle, half = (fit.low + fit.high) / 2, (fit.high - fit.low) / 2
    points = [middle - half * mp.cos(mp.pi * (k + mpf(1) / 2) / GRID_POINTS) for k in range(GRID_POINTS)]
    points = [x for x in points if abs(x) > mpf("1e-20")]
    powers = [[x**power for power in range(fit.degree + 1)] for x in points]
    values = [fit.function(x) for x in points]
    weights = [abs(fit.weight(x)) for x in points]
    divided = np.array([[x**power for power in range(1, fit.divisor + 1)] for x in points], np.float64)
    values64 = np.array(values, np.float64)
    both = np.hstack([np.array(powers, np.float64), -values64[:, None] * divided])
    return Grid(both, values64, np.array(weights, np.float64), divided)


def errors(grid: Grid, coefficients: Array) -> Array:
    """The magnitude of the weighted error at every point."""
    numerators: Array = np.abs(grid.powers @ coefficients - grid.values) * grid.weights
    return numerators / np.abs(grid.divisor(coefficients))


def fitted(grid: Grid, fixed: Sequence[float]) -> Array:
    """The best coefficients, the constant term first, of which the first ones are `fixed`."""
    count = len(fixed)
    rest = grid.values - grid.powers[:, :count] @ np.array(fixed)
    emphasis, divisor = np.ones_like(rest), np.ones_like(rest)
    best, least = np.empty(0), math.inf
    for _ in range(LAWSON_STEPS):
        scale = grid.weights * np.sqrt(emphasis) / divisor
        solution = np.linalg.lstsq(grid.powers[:, count:] * scale[:, None], rest * scale)[0]
        coefficients = np.concatenate([fixed, solution])
        magnitudes = errors(grid, coefficients)
        if magnitudes.max() < least:
            best, least = coefficients, magnitudes.max()
        divisor = grid.divisor(coefficients)
        emphasis *= magnitudes
        emphasis /= emphasis.max()
    return best


def solve(fit: Fit) -> tuple[list[float], float]:
    """The coefficients of a fit, the constant term first, those of a divisor but its 1 last, and its greatest
    weighted error."""
    grid = sample(fit)
    fixed: list[float] = []
    while len(fixed) <= fit.degree + fit.divisor:
        fixed.append(float(np.float32(fitted(grid, fixed)[len(fixed)])))
    return fixed, float(errors(grid, np.array(fixed)).max())


def print_tables(name: str, tables: Iterable[Sequence[float]]) -> None:
    """Print tables as they stand in the source."""
    rows = [f"    ({', '.join(f'{value:.9g}' for value in table)}),\n" for table in tables]
    print(f"_{name} = (\n{''.join(rows)})")


def print_rows(name: str, tables: Sequence[Sequence[float]]) -> None:
    """Print tables as numbers in reading order, wrapped like the source."""
    print(f'_{name} = _rows(\n    {len(tables[0])},\n    """')
    for table in tables:
        numbers = " ".join(f"{value:.9g}" for value in table)
        print(
            textwrap.fill(
                numbers, 106, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False
            )
        )
    print('    """,\n)')


def main(names: Iterable[str]) -> None:
    """Print the tables that are named, or all."""
    wanted = set(names) or {"LOG_TABLES", *(fit.name for fit in (*FITS, *PIECES))}
    if "NORMAL_TAIL" in wanted:
        print(f"_NORMAL_NUMERATOR = {float(TAIL_NUMERATOR):.9g}")
    for fit in FITS:
        if fit.name in wanted:
            coefficients, error = solve(fit)
            print(f"# greatest error 2^{math.log2(error):.1f}")
            print(f"_{fit.name} = ({', '.join(f'{value:.9g}' for value in coefficients)})")
    if "LOG_TABLES" in wanted:
        print_tables("LOG_TABLES", logarithm_tables())
    for pieces in PIECES:
        if pieces.name in wanted:
            tables, error = solve_pieces(pieces)
            print(f"# greatest error 2^{math.log2(error):.1f}")
            print_rows(pieces.name, tables)


if __name__ == "__main__":
    main(sys.argv[1:])
