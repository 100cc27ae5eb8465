"""Transcendental functions in FLOAT32 by polynomials in pieces, by table look-up.

The coefficients of a piece are looked up by its number. A permutation for each coefficient replaces
divisions, exponentials, and second polynomials for other ranges. Accuracies are stated as in `vector_math`,
which has the other functions, and all of them for other processors.

The tables come from tools/minimax.py: the points c of the pieces, f(c), then the coefficients of q in
f(c + r) = f(c) + r q(r), the constant term first. Since c is looked up, it can be a number with an almost
exact f(c).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from opendml.program import half_math, vector_math
from opendml.program.common_math import UNITS, at_least, at_most, float32_bits, with_sign_of
from opendml.program.functions import multiply_add, select
from opendml.program.node import Node, Operation
from opendml.program.rarely import rarely
from opendml.program.scalar_type import ScalarType

Table = tuple[float, ...]


def expand(node: Node) -> Node:
    """Return the function `node` (one of FUNCTIONS, FLOAT32) in basic operations and LOOKUP.

    Raises:
        Unsupported: another type.
    """
    expansion = _EXPANSIONS.get(node.operation) if node.type is ScalarType.FLOAT32 else None
    return expansion(*node.operands) if expansion else vector_math.expand(node)


def expand_narrow(node: Node) -> Node:
    """Return the same for a result that is stored as FLOAT16, as exact as `half_math` is."""
    expansion = _NARROW_EXPANSIONS.get(node.operation)
    return expansion(*node.operands) if expansion else half_math.expand(node)


def error_function(x: Node) -> Node:
    """erf(x) within 1.08 ULP, with the sign of x."""
    magnitude = abs(x)
    within = at_most(magnitude, _ERF_HIGHEST)
    # The first polynomial is that of erf(x) - x: its constant term loses fewer digits than that of erf(x).
    piece = _piece(within, 1.0 / _ERF_WIDTH)
    base = select(magnitude < _ERF_WIDTH / 2, magnitude, looked_up(_ERF_TABLES[1], piece))
    return with_sign_of(x, in_pieces(_ERF_TABLES, piece, within, base))


def narrow_error_function(x: Node) -> Node:
    """erf(x) for FLOAT16"""
    within = at_most(abs(x), _NARROW_ERF_HIGHEST)
    return with_sign_of(x, in_pieces(_NARROW_ERF_TABLES, _piece(within, 1.0 / _NARROW_ERF_WIDTH), within))


def gaussian_error_linear_unit(x: Node) -> Node:
    """x times the probability that a standard normal variable is below x, within 2.96 ULP.

    Far below zero the probability falls too fast for pieces: that is left to `vector_math`. Where this
    function is used, such numbers are few.
    """
    within = at_most(abs(x), _NORMAL_HIGHEST)
    piece = _piece(within, multiply_add(within, _NORMAL_SQUARE, _NORMAL_SLOPE))
    usual = _without_tail(x, within, in_pieces(_NORMAL_TABLES, piece, within))
    return rarely(x < -_NORMAL_HIGHEST, vector_math.gaussian_error_linear_unit(x), usual)


def narrow_gaussian_error_linear_unit(x: Node) -> Node:
    """The same for FLOAT16, in which the tail is 0 from the end of the pieces on."""
    within = at_most(abs(x), _NARROW_NORMAL_HIGHEST)
    piece = _piece(within, 1.0 / _NARROW_NORMAL_WIDTH)
    return _without_tail(x, within, in_pieces(_NARROW_NORMAL_TABLES, piece, within))


def _without_tail(x: Node, magnitude: Node, tail: Node) -> Node:
    """x above zero, 0 below, less the magnitude times the tail."""
    # -0 rather than 0, so that no tail at all leaves the sign of x.
    return multiply_add(-magnitude, tail, at_least(x, -0.0))


def _piece(x: Node, scale: Node | float) -> Node:
    """The product, rounded, in the low bits of an INT32."""
    return float32_bits(multiply_add(x, scale, UNITS))


def in_pieces(tables: Sequence[Table], piece: Node, x: Node, base: Node | None = None) -> Node:
    """Return f(c + r) = f(c) + r q(r) for x = c + r, or with another base than f(c)."""
    points, values, *coefficients = tables
    r = x - looked_up(points, piece)
    return multiply_add(r, polynomial_of(coefficients, piece, r), base or looked_up(values, piece))


def looked_up(table: Table, index: Node) -> Node:
    """Return the entry of a table at an index, of which the low bits count."""
    return Node(Operation.LOOKUP, ScalarType.FLOAT32, index.sizes, (index,), table)


def polynomial_of(tables: Sequence[Table], piece: Node, x: Node) -> Node:
    """Return the polynomial of a piece by Horner's scheme; the tables are of coefficients, the constant term
    first."""
    *rest, last = tables
    result = looked_up(last, piece)
    for table in reversed(rest):
        result = multiply_add(result, x, looked_up(table, piece))
    return result


_ERF_HIGHEST, _ERF_WIDTH = 3.925, 0.524
"""From the first on the result is 1. The second is the width of a piece; the piece at 0 is half as wide."""
_ERF_TABLES: tuple[Table, ...] = (
    (0, 0.523712158, 1.04817593, 1.57231188, 2.09622383, 2.61996007, 3.14356828, 3.65383983),
    (0, 0.54108876, 0.861751378, 0.973823607, 0.996968329, 0.999788761, 0.999991238, 0.999999762),
    (
        0.128379166,
        0.8577075,
        0.37610364,
        0.0952374116,
        0.0139347147,
        0.00117862306,
        5.7643123e-05,
        1.79635288e-06,
    ),
    (
        2.5356556e-07,
        -0.449191391,
        -0.394223064,
        -0.149742991,
        -0.0292101949,
        -0.00308794226,
        -0.000181211493,
        -6.5644972e-06,
    ),
    (
        -0.376137108,
        -0.129074723,
        0.150108501,
        0.125216335,
        0.0361758955,
        0.0050006262,
        0.000360543287,
        1.53858455e-05,
    ),
    (
        0.000164448444,
        0.183484256,
        0.0527641475,
        -0.0485182852,
        -0.0281872377,
        -0.00552169466,
        -0.00050572824,
        -2.58388154e-05,
    ),
    (
        0.111719452,
        0.000386912085,
        -0.0671374202,
        -0.00706395879,
        0.0127781946,
        0.00428760238,
        0.00052826124,
        3.33870812e-05,
    ),
    (
        0.00333563192,
        -0.0477930307,
        0.00870173145,
        0.0164630227,
        -0.00122220779,
        -0.00226456556,
        -0.000432818604,
        -3.58854559e-05,
    ),
    (
        -0.0300232954,
        0.0061319205,
        0.013019505,
        -0.00551018165,
        -0.00223972858,
        0.000653458643,
        0.00025413782,
        2.66850057e-05,
    ),
)
"""erf(x); the first piece is centered at 0 and of erf(x) - x."""

_NORMAL_HIGHEST, _NORMAL_SLOPE, _NORMAL_SQUARE = 5.395, 0.741, 0.12
"""Up to the first there are pieces; x (slope + square x), rounded, is the number of one."""
_NORMAL_TABLES: tuple[Table, ...] = (
    (0, 1.60646915, 2.42166638, 3.1331389, 3.76978803, 4.35412979, 4.89353609, 5.4036603),
    (
        0.5,
        0.0540854335,
        0.00772476336,
        0.0008647379,
        8.16931279e-05,
        6.67982704e-06,
        4.95200709e-07,
        3.26472751e-08,
    ),
    (
        -0.398942292,
        -0.109776385,
        -0.0212547965,
        -0.00294626155,
        -0.000327314454,
        -3.04884816e-05,
        -2.51739289e-06,
        -1.82099569e-07,
    ),
    (
        4.18782236e-07,
        0.0881750509,
        0.0257361382,
        0.00461552059,
        0.000616948993,
        6.63753017e-05,
        6.1595706e-06,
        4.9202265e-07,
    ),
    (
        0.066485174,
        -0.0289354678,
        -0.0172302853,
        -0.00432936149,
        -0.000720785989,
        -9.12561809e-05,
        -9.62543709e-06,
        -8.55340375e-07,
    ),
    (
        2.98775394e-05,
        -0.003163988,
        0.00615768554,
        0.00262142927,
        0.000575682847,
        8.82540699e-05,
        1.07768592e-05,
        1.08042343e-06,
    ),
    (
        -0.0100587225,
        0.00506388349,
        -0.000332867116,
        -0.000995534007,
        -0.000330075767,
        -6.32529845e-05,
        -8.92450043e-06,
        -9.92003038e-07,
    ),
    (
        0.000104210405,
        -0.0014875104,
        -0.000529000768,
        0.000162953875,
        0.000118096119,
        3.39334692e-05,
        6.5088102e-06,
        9.35566561e-07,
    ),
    (
        0.00120458682,
        -0.00086286827,
        0.00044719025,
        3.03299839e-05,
        -4.62799944e-05,
        -1.37099469e-05,
        -2.03341688e-06,
        -1.79036292e-07,
    ),
    (
        -0.000163384466,
        -1.81913801e-05,
        0.000101090547,
        -4.88539954e-05,
        -1.20819004e-05,
        4.15157911e-06,
        2.32531238e-06,
        5.55977522e-07,
    ),
)
"""The probability that a standard normal variable is above x."""

_NARROW_ERF_HIGHEST, _NARROW_ERF_WIDTH = 2.69, 0.36
_NARROW_ERF_TABLES: tuple[Table, ...] = (
    (0, 0.359950572, 0.720054924, 1.08044493, 1.44019771, 1.79978025, 2.15986824, 2.52219176),
    (0, 0.389280707, 0.691470027, 0.873482466, 0.958324611, 0.989080787, 0.997745752, 0.999638796),
    (1.12837827, 0.99124378, 0.67188096, 0.351157367, 0.141799837, 0.0442239605, 0.0106242439, 0.00194673974),
    (
        0.000160491662,
        -0.356716096,
        -0.483776212,
        -0.379404545,
        -0.204225749,
        -0.079603076,
        -0.0229541343,
        -0.0049115615,
    ),
    (
        -0.380606502,
        -0.242928565,
        0.00636130944,
        0.153630957,
        0.147919565,
        0.0811157525,
        0.0299970806,
        0.00784484204,
    ),
    (
        0.0400939956,
        0.158379152,
        0.157265827,
        0.0431863032,
        -0.0379020944,
        -0.0457724482,
        -0.0243261475,
        -0.00816647522,
    ),
)
"""erf(x)"""

_NARROW_NORMAL_HIGHEST, _NARROW_NORMAL_WIDTH = 5.7598, 0.768
_NARROW_NORMAL_TABLES: tuple[Table, ...] = (
    (0, 1.15259767, 1.91985357, 2.68570304, 3.45584178, 4.22445107, 4.9923048, 5.76008797),
    (
        0.5,
        0.124537781,
        0.0274381991,
        0.00361886923,
        0.000274288614,
        1.19761944e-05,
        2.98315001e-07,
        4.20350554e-09,
    ),
    (
        -0.398942322,
        -0.205320805,
        -0.0631738827,
        -0.0108301667,
        -0.00101757981,
        -5.31591904e-05,
        -1.53353119e-06,
        -2.40241089e-08,
    ),
    (
        1.93827918e-06,
        0.11834114,
        0.0606550463,
        0.0145365568,
        0.00175726647,
        0.000112827234,
        4.14008719e-06,
        9.31164834e-08,
    ),
    (
        0.066459693,
        -0.0110968687,
        -0.0281687826,
        -0.0112787522,
        -0.00186498498,
        -0.00014390795,
        -3.84953501e-06,
        3.74329758e-08,
    ),
    (
        0.000225223484,
        -0.0158389043,
        0.00389965787,
        0.00482208561,
        0.00127378234,
        0.000163846184,
        1.55444122e-05,
        7.94308676e-07,
    ),
    (
        -0.0108172176,
        0.0069544171,
        0.00370620238,
        -0.00167287444,
        -0.000691534718,
        -3.96176874e-05,
        9.12261294e-06,
        8.74679415e-07,
    ),
    (
        0.00157691038,
        0.00284975371,
        -0.000815816747,
        -0.000827130396,
        0.000150076317,
        0.000104983315,
        1.63339937e-05,
        9.52177629e-07,
    ),
)
"""The probability that a standard normal variable is above x."""

_EXPANSIONS: dict[Operation, Callable[..., Node]] = {
    Operation.ERROR_FUNCTION: error_function,
    Operation.GAUSSIAN_ERROR_LINEAR_UNIT: gaussian_error_linear_unit,
}

_NARROW_EXPANSIONS: dict[Operation, Callable[..., Node]] = {
    Operation.ERROR_FUNCTION: narrow_error_function,
    Operation.GAUSSIAN_ERROR_LINEAR_UNIT: narrow_gaussian_error_linear_unit,
}
