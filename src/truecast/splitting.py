"""How far the distance to calibration can exceed the lower distance, which splits rounds."""

from __future__ import annotations

import math
from bisect import bisect
from fractions import Fraction
from itertools import pairwise

from truecast import _check
from truecast.certificate import round_up

__all__ = ["finest_cells", "splitting_gap"]

CUBE_ROOTS = Fraction(49, 25)  # 1.96, of the theorem
LARGE = 12 * 10**12  # rounds from which it is proved by hand; before, by the rows
SCALE = Fraction(14_936, 10_000)  # T / N^3 there
THOUSAND = 1_000
# n, and H(n) in thousandths, rounded up: made and proved by benchmarks/splitting.py
# fmt: off
ROWS = (
    (1, 0), (2, 1000), (5, 2775), (6, 3010), (10, 4047),
    (12, 4497), (14, 5006), (18, 5761), (20, 6048), (28, 7280),
    (30, 7556), (39, 8843), (42, 9174), (55, 10445), (60, 10926),
    (66, 11535), (86, 13360), (103, 14631), (113, 15365), (124, 16074),
    (136, 16876), (149, 17625), (163, 18454), (179, 19331), (196, 20305),
    (215, 21369), (259, 23387), (284, 24510), (312, 25716), (377, 28240),
    (414, 29579), (455, 31093), (500, 32714), (550, 34247), (605, 35978),
    (665, 37765), (731, 39549), (804, 41502), (884, 43559), (972, 45749),
    (1069, 47932), (1175, 50274), (1292, 52767), (1421, 55377), (1563, 58182),
    (1719, 60937), (1890, 63860), (2079, 67060), (2286, 70278), (2514, 73775),
    (2765, 77375), (3041, 81217), (3345, 85228), (3679, 89329), (4046, 93742),
    (4450, 98258), (4895, 103126), (5384, 108146), (5922, 113420), (6514, 119066),
    (7165, 124903), (7881, 130982), (8669, 137379), (9535, 144100), (10488, 151157),
    (11536, 158499), (12689, 166277), (13957, 174424), (15352, 182974), (16887, 191921),
    (18575, 201358), (20432, 211143), (22475, 221485), (24722, 232320), (27194, 243683),
    (29913, 255598), (32904, 268118), (36194, 281217), (39813, 294964), (43794, 309372),
    (48173, 324507), (52990, 340368), (58289, 356965), (64117, 374430), (70528, 392786),
    (77580, 411917), (85338, 432040), (93871, 453194), (103258, 475320), (113583, 498559),
    (124941, 522874), (137435, 548436), (151178, 575228), (166295, 603334), (182924, 632795),
    (201216, 663694), (221337, 696114), (243470, 730097), (267817, 765788), (294598, 803189),
    (324057, 842393), (356462, 883528), (392108, 926683), (431318, 971947), (474449, 1019397),
    (521893, 1069186), (574082, 1121420), (631490, 1176174), (694639, 1233597), (764102, 1293826),
    (840512, 1356993), (924563, 1423266), (1017019, 1492747), (1271273, 1669002),
    (1589091, 1866053), (1986363, 2086372), (2482953, 2332685), (3103691, 2608075),
    (3879613, 2916002), (4849516, 3260222), (6061895, 3645094), (7577368, 4075403),
    (9471710, 4556519), (11839637, 5094384), (14799546, 5695753), (18499432, 6368100),
    (23124290, 7119820), (28905362, 7960253), (36131702, 8899896), (45164627, 9950445),
    (56455783, 11124996), (70569728, 12438187), (88212160, 13906364), (110265200, 15547849),
    (137831500, 17383084), (172289375, 19434940), (215361718, 21728978), (269202147, 24293793),
    (336502683, 27161351), (400000000, 29613363),
)
# fmt: on
# T from which the next row is less; a wrong row would be as true, and hardly worse: floats will do
_CROSSINGS = [
    (high - low) / THOUSAND / (0.5 / n - 0.5 / m) for (n, low), (m, high) in pairwise(ROWS)
]


def splitting_gap(rounds: int) -> float:
    """Bound how much the distance to calibration can exceed the lower distance.

    CalDist(p, y) <= LowerCalDist(p, y) + splitting_gap(T), in total, for all forecasts p and
    outcomes y of T rounds. It is at most T/2 and at most 1.96 T^(1/3), and known before the first
    round. So a bound on the lower distance gives a bound on the distance.

    It is not the difference itself, which is often near 0; the largest that we know is 0.45
    T^(1/3). For given rounds `calibration_distance` finds the distance, or a narrower interval.

    Parameters
    ----------
    rounds
        T, from 0 to 2**53.

    Returns
    -------
    float
        A total over all rounds, rounded up.

    Raises
    ------
    InputError
        If it is no such number.

    Examples
    --------
    >>> [splitting_gap(rounds) for rounds in (1, 10, 1_000)]
    [0.5, 3.5, 19.110757575757578]

    Notes
    -----
    The least of 140 proved bounds T/(2n) + H(n), and of 1.96 T^(1/3) from 1.2e13 rounds on
    (docs/distance.md, theorem 12). A few microseconds.
    """
    rounds = _check.whole_number("rounds", rounds, least=0, most=_check.MOST_ROUNDS)
    if rounds >= LARGE:
        return round_up(CUBE_ROOTS * _cube_root(rounds))
    n, constant = _row(rounds)
    return round_up(Fraction(rounds * THOUSAND + 2 * n * constant, 2 * n * THOUSAND))


def finest_cells(rounds: int) -> float:
    """Return the n for which rounding down on all cells wider than 1/n costs `splitting_gap`."""
    if rounds >= LARGE:
        return math.cbrt(rounds / SCALE) ** 2
    return _row(rounds)[0]


def _row(rounds: int) -> tuple[int, int]:
    return ROWS[bisect(_CROSSINGS, rounds)]


def _cube_root(number: int) -> Fraction:
    """Return an upper bound of a cube root, a float."""
    root = math.cbrt(number)
    while Fraction(root) ** 3 < number:
        root = math.nextafter(root, math.inf)
    return Fraction(root)
