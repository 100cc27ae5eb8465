"""Transcendental functions in FLOAT32 by piecewise polynomials, whose coefficients are looked up in
registers.

One permutation for each coefficient replaces divisions, exponentials, and second polynomials for other
ranges. Accuracies are stated as in `vector_math`, which has the other functions, and all functions for other
processors.

The tables come from tools/minimax.py: the points c of the pieces, f(c), then the coefficients of q in
f(c + r) = f(c) + r q(r), the constant term first. Since c is looked up, it can be a number with an almost
exact f(c).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from opendml.program import half_math, vector_math
from opendml.program.common_math import (
    EXP,
    EXPONENT_BIAS,
    LOG_2_LOW,
    UNITS,
    at_least,
    at_most,
    float32_bits,
    polynomial,
    power_of_two,
    reduced,
    unless_minus_infinite,
    with_sign_of,
)
from opendml.program.functions import equal, multiply_add, rarely, select
from opendml.program.node import LookupTable, Node, Operation
from opendml.program.scalar_type import ScalarType
from opendml.program.vector_math import NORMAL_HIGHEST, TAIL_UNITS
from opendml.targets.cpu.tables import table_size

Table = tuple[float, ...]


def expand(node: Node) -> Node:
    """Return the function `node` (one of FUNCTIONS, FLOAT32) in basic operations and LOOKUP.

    Raises:
        Unsupported: another type.
    """
    expansion = _EXPANSIONS.get(node.operation) if node.type is ScalarType.FLOAT32 else None
    return expansion(*node.operands) if expansion else vector_math.expand(node)


def expand_narrow(node: Node) -> Node:
    """Return the expansion for a result that is stored as FLOAT16, as exact as that of `half_math`."""
    expansion = _NARROW_EXPANSIONS.get(node.operation)
    return expansion(*node.operands) if expansion else half_math.expand(node)


def error_function(x: Node) -> Node:
    """Return erf(x) within 1.08 ULP, with the sign of x."""
    slope, square, tables = _ERF[table_size()]
    within = at_most(abs(x), _ERF_HIGHEST)
    number = multiply_add(within, multiply_add(within, -square, slope) if square else slope, UNITS)
    piece = float32_bits(number)
    # The first piece is that of erf(x) - x, whose constant term has more significant digits than that of
    # erf(x).
    base = select(equal(number, UNITS), within, looked_up(tables[1], piece))
    return with_sign_of(x, in_pieces(tables, piece, within, base))


def narrow_error_function(x: Node) -> Node:
    """Return erf(x) for a result that is stored as FLOAT16."""
    within = at_most(abs(x), _NARROW_ERF_HIGHEST)
    return with_sign_of(x, in_pieces(_NARROW_ERF_TABLES, _piece(within, 1.0 / _NARROW_ERF_WIDTH), within))


def gaussian_error_linear_unit(x: Node) -> Node:
    """Return x times the probability that a standard normal variable is below x, within 2.6 ULP.

    Far below zero the probability falls too fast for pieces. Such numbers are rare in networks, so a branch
    computes them.
    """
    slope, square, tables = _NORMAL[table_size()]
    within = at_most(abs(x), _NORMAL_HIGHEST)
    piece = _piece(within, multiply_add(within, square, slope))
    usual = _without_tail(x, within, in_pieces(tables, piece, within))
    return rarely(x < -_NORMAL_HIGHEST, _far_below_zero(x), usual)


def _far_below_zero(x: Node) -> Node:
    """Return GELU for x below -_NORMAL_HIGHEST: exp(-x^2 / 2) times a polynomial of 1 / x^2.

    The exponent includes the rounding error of x^2. A power of two avoids denormal intermediate numbers.
    """
    magnitude = at_most(-x, NORMAL_HIGHEST)
    minus_half = magnitude * -0.5
    exponent = minus_half * magnitude
    slow = polynomial(_FAR_TAIL, -0.5 / exponent)
    bits, n, high = reduced(exponent, EXPONENT_BIAS + TAIL_UNITS)
    r = high + multiply_add(n, LOG_2_LOW, multiply_add(minus_half, magnitude, -exponent))
    scaled = multiply_add(slow, r * polynomial((1.0, *EXP), r), slow) * power_of_two(bits)
    return unless_minus_infinite(x, scaled * -(2.0**-TAIL_UNITS))


def narrow_gaussian_error_linear_unit(x: Node) -> Node:
    """Return GELU for a result that is stored as FLOAT16, in which the tail is 0 from the end of the pieces
    on."""
    within = at_most(abs(x), _NARROW_NORMAL_HIGHEST)
    piece = _piece(within, 1.0 / _NARROW_NORMAL_WIDTH)
    return unless_minus_infinite(x, _without_tail(x, within, in_pieces(_NARROW_NORMAL_TABLES, piece, within)))


def _without_tail(x: Node, magnitude: Node, tail: Node) -> Node:
    """Return x above zero, 0 below, less the magnitude times the tail."""
    # With -0 rather than 0, a tail of 0 keeps the sign of x.
    return multiply_add(-magnitude, tail, at_least(x, -0.0))


def _piece(x: Node, scale: Node | float) -> Node:
    """Return the product, rounded, in the low bits of an INT32."""
    return float32_bits(multiply_add(x, scale, UNITS))


def in_pieces(tables: Sequence[Table], piece: Node, x: Node, base: Node | None = None) -> Node:
    """Return f(c + r) = f(c) + r q(r) for x = c + r, or with another base than f(c)."""
    points, values, *coefficients = tables
    r = x - looked_up(points, piece)
    return multiply_add(r, polynomial_of(coefficients, piece, r), base or looked_up(values, piece))


def looked_up(table: Table, index: Node) -> Node:
    """Return the entry of a table at an index, of which the low bits count."""
    return Node(Operation.LOOKUP, ScalarType.FLOAT32, index.sizes, (index,), LookupTable(table))


def polynomial_of(tables: Sequence[Table], piece: Node, x: Node) -> Node:
    """Return the polynomial of a piece by Horner's scheme; the tables are of coefficients, the constant term
    first."""
    *rest, last = tables
    result = looked_up(last, piece)
    for table in reversed(rest):
        result = multiply_add(result, x, looked_up(table, piece))
    return result


def table_rows(size: int, numbers: str) -> tuple[Table, ...]:
    """Return tables of `size` numbers each."""
    values = list(map(float, numbers.split()))
    return tuple(tuple(values[first : first + size]) for first in range(0, len(values), size))


_ERF_HIGHEST = 3.925
"""The least x whose erf rounds to 1."""
_ERF_TABLES = table_rows(
    8,
    """
    0 0.523712158 1.04817593 1.57231188 2.09622383 2.61996007 3.14356828 3.65383983
    0 0.54108876 0.861751378 0.973823607 0.996968329 0.999788761 0.999991238 0.999999762
    0.128379166 0.8577075 0.37610364 0.0952374116 0.0139347147 0.00117862306 5.7643123e-05 1.79635288e-06
    2.5356556e-07 -0.449191391 -0.394223064 -0.149742991 -0.0292101949 -0.00308794226 -0.000181211493
    -6.5644972e-06
    -0.376137108 -0.129074723 0.150108501 0.125216335 0.0361758955 0.0050006262 0.000360543287
    1.53858455e-05
    0.000164448444 0.183484256 0.0527641475 -0.0485182852 -0.0281872377 -0.00552169466 -0.00050572824
    -2.58388154e-05
    0.111719452 0.000386912085 -0.0671374202 -0.00706395879 0.0127781946 0.00428760238 0.00052826124
    3.33870812e-05
    0.00333563192 -0.0477930307 0.00870173145 0.0164630227 -0.00122220779 -0.00226456556 -0.000432818604
    -3.58854559e-05
    -0.0300232954 0.0061319205 0.013019505 -0.00551018165 -0.00223972858 0.000653458643 0.00025413782
    2.66850057e-05
    """,
)
_WIDE_ERF_TABLES = table_rows(
    16,
    """
    0 0.138715714 0.340552926 0.546922684 0.759051025 0.977242887 1.20142257 1.43237674 1.67231393
    1.91934311 2.17497206 2.44461632 2.72373819 3.01741385 3.32894993 3.65383244
    0 0.155525744 0.369920224 0.560753047 0.716935337 0.833037555 0.910693645 0.95720309 0.98197037
    0.993359625 0.997901142 0.9994542 0.999882817 0.999980211 0.999997497 0.999999762
    0.128379166 1.10687447 1.00481761 0.836656153 0.634209335 0.434212387 0.266432554 0.145014539
    0.0688481405 0.0283509195 0.00995460991 0.00286450004 0.000676923373 0.000125404229 1.73649751e-05
    1.79675828e-06
    3.45343267e-07 -0.153541803 -0.342196018 -0.45758903 -0.481398672 -0.424330443 -0.320095986
    -0.207713291 -0.115134478 -0.0544150099 -0.021651458 -0.00700316206 -0.00184411439 -0.00037854971
    -5.78552063e-05 -6.57421924e-06
    -0.376145869 -0.354784012 -0.257289648 -0.11207395 0.0321938992 0.131726235 0.16759412 0.150035977
    0.105422318 0.0601771846 0.0280689746 0.010453268 0.0031195737 0.000718324562 0.000122296682
    1.53260189e-05
    0.000364125735 0.0767738447 0.159696594 0.184879333 0.148964643 0.0767017603 0.00499223778
    -0.0392325036 -0.0502870716 -0.0396617539 -0.0231156182 -0.0102577629 -0.00352437305 -0.000914785836
    -0.000173208886 -2.35923762e-05
    0.110529475 0.0926144496 0.0383595265 -0.0227194801 -0.0622327402 -0.0671420544 -0.0446940735
    -0.0147083187 0.00611289823 0.0129607264 0.0105534559 0.0057196971 0.00223823311 0.000639276986
    0.000130744709 1.85699337e-05
    """,
)
_ERF = {8: (1.0 / 0.524, 0.0, _ERF_TABLES), 16: (5.1, 0.295, _WIDE_ERF_TABLES)}
"""Slope, square and tables of erf(x), by the count of pieces. The number of a piece is x (slope - square x),
rounded. The piece at 0 is that of erf(x) - x."""

_NORMAL_HIGHEST = 5.395
"""The upper end of the last piece, in both tables."""
_NORMAL_TABLES = table_rows(
    8,
    """
    0 1.60646915 2.42166638 3.1331389 3.76978803 4.35412979 4.89353609 5.4036603
    0.5 0.0540854335 0.00772476336 0.0008647379 8.16931279e-05 6.67982704e-06 4.95200709e-07
    3.26472751e-08
    -0.398942292 -0.109776385 -0.0212547965 -0.00294626155 -0.000327314454 -3.04884816e-05 -2.51739289e-06
    -1.82099569e-07
    4.18782236e-07 0.0881750509 0.0257361382 0.00461552059 0.000616948993 6.63753017e-05 6.1595706e-06
    4.9202265e-07
    0.066485174 -0.0289354678 -0.0172302853 -0.00432936149 -0.000720785989 -9.12561809e-05 -9.62543709e-06
    -8.55340375e-07
    2.98775394e-05 -0.003163988 0.00615768554 0.00262142927 0.000575682847 8.82540699e-05 1.07768592e-05
    1.08042343e-06
    -0.0100587225 0.00506388349 -0.000332867116 -0.000995534007 -0.000330075767 -6.32529845e-05
    -8.92450043e-06 -9.92003038e-07
    0.000104210405 -0.0014875104 -0.000529000768 0.000162953875 0.000118096119 3.39334692e-05
    6.5088102e-06 9.35566561e-07
    0.00120458682 -0.00086286827 0.00044719025 3.03299839e-05 -4.62799944e-05 -1.37099469e-05
    -2.03341688e-06 -1.79036292e-07
    -0.000163384466 -1.81913801e-05 0.000101090547 -4.88539954e-05 -1.20819004e-05 4.15157911e-06
    2.32531238e-06 5.55977522e-07
    """,
)
_WIDE_NORMAL_TABLES = table_rows(
    16,
    """
    0 1.09751153 1.61617935 2.05577469 2.44657922 2.80045366 3.12801123 3.43611598 3.72107959 3.99074268
    4.25191069 4.49699497 4.73463154 4.96414804 5.1814909 5.39660645
    0.5 0.136208922 0.0530277714 0.0199021194 0.00721095502 0.00255154166 0.000879967294 0.000295059144
    9.91864508e-05 3.29333561e-05 1.05977197e-05 3.44603086e-06 1.09726705e-06 3.45016474e-07
    1.10059666e-07 3.39565638e-08
    -0.398942351 -0.218448445 -0.10807205 -0.0482170135 -0.0200041961 -0.00790540501 -0.00299393875
    -0.00108912028 -0.000392821443 -0.00013887274 -4.7332589e-05 -1.6201262e-05 -5.40974997e-06
    -1.77746392e-06 -5.90164746e-07 -1.89169754e-07
    3.03047409e-06 0.119881883 0.0873353332 0.0495617166 0.0244706366 0.0110692056 0.00468249666
    0.00187116803 0.000730866392 0.000277107989 0.000100629979 3.64299267e-05 1.28072143e-05
    4.41206066e-06 1.52906352e-06 5.10475843e-07
    0.0664467663 -0.0073689362 -0.028992068 -0.0259256773 -0.0166278481 -0.00901845749 -0.00438418938
    -0.00196173065 -0.000840902678 -0.000345336739 -0.000134650909 -5.18667912e-05 -1.92918924e-05
    -6.99622069e-06 -2.53939538e-06 -8.85457609e-07
    0.000291698816 -0.0175364148 -0.00256474619 0.00506643066 0.0060457103 0.00444104243 0.00263945758
    0.0013728441 0.000662359409 0.000300034269 0.000127408537 5.27832344e-05 2.09597256e-05 8.0637401e-06
    3.08194944e-06 1.12918167e-06
    -0.010971779 0.00610671937 0.00601635315 0.00179603533 -0.000662734092 -0.0012622826 -0.00103508949
    -0.000650247035 -0.00035558737 -0.00017745886 -8.15203748e-05 -3.61005768e-05 -1.51737659e-05
    -6.13054908e-06 -2.46078525e-06 -9.36414153e-07
    0.00171012036 0.00288518472 -4.11349865e-05 -0.00137312233 -0.000968102424 -0.000290676195
    9.13400218e-05 0.000192324878 0.000165919919 0.000109199478 6.16406469e-05 3.1810443e-05
    1.52284283e-05 6.88959972e-06 3.00593615e-06 1.25240842e-06
    """,
)
_NORMAL = {8: (0.741, 0.12, _NORMAL_TABLES), 16: (0.983, 0.35, _WIDE_NORMAL_TABLES)}
"""Slope, square and tables of the probability that a standard normal variable is above x, by the count of
pieces. The number of a piece is x (slope + square x), rounded."""
_FAR_TAIL = (0.398942113, -0.39887467, 1.18712687, -5.33867741, 20.25494)
"""Coefficients of x exp(x^2 / 2) times that probability, in 1 / x^2, for x from _NORMAL_HIGHEST to
NORMAL_HIGHEST."""

_NARROW_ERF_HIGHEST, _NARROW_ERF_WIDTH = 2.69, 0.36  # The end of the pieces, and the width of each.
_NARROW_ERF_TABLES = table_rows(
    8,
    """
    0 0.359950572 0.720054924 1.08044493 1.44019771 1.79978025 2.15986824 2.52219176
    0 0.389280707 0.691470027 0.873482466 0.958324611 0.989080787 0.997745752 0.999638796
    1.12837827 0.99124378 0.67188096 0.351157367 0.141799837 0.0442239605 0.0106242439 0.00194673974
    0.000160491662 -0.356716096 -0.483776212 -0.379404545 -0.204225749 -0.079603076 -0.0229541343
    -0.0049115615
    -0.380606502 -0.242928565 0.00636130944 0.153630957 0.147919565 0.0811157525 0.0299970806
    0.00784484204
    0.0400939956 0.158379152 0.157265827 0.0431863032 -0.0379020944 -0.0457724482 -0.0243261475
    -0.00816647522
    """,
)

_NARROW_NORMAL_HIGHEST, _NARROW_NORMAL_WIDTH = 5.7598, 0.768  # The same for GELU.
_NARROW_NORMAL_TABLES = table_rows(
    8,
    """
    0 1.15259767 1.91985357 2.68570304 3.45584178 4.22445107 4.9923048 5.76008797
    0.5 0.124537781 0.0274381991 0.00361886923 0.000274288614 1.19761944e-05 2.98315001e-07 4.20350554e-09
    -0.398942322 -0.205320805 -0.0631738827 -0.0108301667 -0.00101757981 -5.31591904e-05 -1.53353119e-06
    -2.40241089e-08
    1.93827918e-06 0.11834114 0.0606550463 0.0145365568 0.00175726647 0.000112827234 4.14008719e-06
    9.31164834e-08
    0.066459693 -0.0110968687 -0.0281687826 -0.0112787522 -0.00186498498 -0.00014390795 -3.84953501e-06
    3.74329758e-08
    0.000225223484 -0.0158389043 0.00389965787 0.00482208561 0.00127378234 0.000163846184 1.55444122e-05
    7.94308676e-07
    -0.0108172176 0.0069544171 0.00370620238 -0.00167287444 -0.000691534718 -3.96176874e-05 9.12261294e-06
    8.74679415e-07
    0.00157691038 0.00284975371 -0.000815816747 -0.000827130396 0.000150076317 0.000104983315
    1.63339937e-05 9.52177629e-07
    """,
)

_EXPANSIONS: dict[Operation, Callable[..., Node]] = {
    Operation.ERROR_FUNCTION: error_function,
    Operation.GAUSSIAN_ERROR_LINEAR_UNIT: gaussian_error_linear_unit,
}

_NARROW_EXPANSIONS: dict[Operation, Callable[..., Node]] = {
    Operation.ERROR_FUNCTION: narrow_error_function,
    Operation.GAUSSIAN_ERROR_LINEAR_UNIT: narrow_gaussian_error_linear_unit,
}
