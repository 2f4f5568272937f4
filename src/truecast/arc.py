"""The arc: how much energy residuals have, and what that proves of any forecasts (docs/arc.md).

The residuals of forecasts, ones - rounds * p at each distinct p, make a field through a kernel
K(p, q), which is a function of sqrt(p) and sqrt(1 - p) alone. Their energy E is the double sum of
r K r'. It bounds the smooth calibration error and the lower distance to calibration of all
forecasts whatever, and a forecaster can keep it below T.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from truecast import _core
from truecast.tally import Tally, shares

__all__ = ["LOWER_DISTANCE", "SMOOTH_ERROR", "ArcEnergy", "energy_of", "root_of"]

#: docs/arc.md, theorem 2: the lower distance and the smooth error, in total, are at most these
#: times sqrt(E)
LOWER_DISTANCE = 0.53552
SMOOTH_ERROR = 0.58334

# docs/arc.md, section 6
_RELATIVE = 2.0**-45  # the error of E, relative to the energy of the residuals' magnitudes
_ABSOLUTE = 2.0**-50  # a round: what residuals that are rounded can hide
_UP = 1.0 + 2.0**-46  # more than the rounding of a root, products, a quotient and a sum of weights


@dataclass(frozen=True, slots=True)
class ArcEnergy:
    """What `arc_energy` returns. Figures are divided by `total`, unless totals were requested.

    Attributes
    ----------
    total : int or float
        Rounds, or their weight.
    energy : float
        E, the double sum of r K(p, q) r' over all pairs of forecasts.
    expected : float
        The mean of E if each outcome is 1 with the probability forecast, given the past: at most 1
        a round, up to rounding. nan for real weights: it needs their squares, which a tally does
        not keep.
    lower_distance, smooth_error : float
        Proved upper bounds of the lower distance to calibration and of the smooth calibration error
        of these forecasts, rounded up.
    """

    total: int | float
    energy: float
    expected: float
    lower_distance: float
    smooth_error: float


def _unit(tally: Tally) -> float:
    """Return a power of 2 to divide weights by, if their squares could overflow or vanish."""
    if not tally.weighted or 1e-100 <= tally.total <= 1e100:
        return 1.0
    return math.ldexp(1.0, math.frexp(tally.total)[1])


def root_of(energy: float, gross: float) -> float:
    """Return the root of an energy, rounded up; `gross` is that of the residuals' magnitudes."""
    return math.sqrt(max(energy, 0.0) + _RELATIVE * gross) * _UP


def energy_of(tally: Tally | _core.FewRounds, *, total: bool = True) -> ArcEnergy:
    """Return the energy of these rounds, in total or, if there are any, a round.

    O(n): a tally is sorted.
    """
    rounds, unit = tally.total, 1.0
    if isinstance(tally, Tally):
        unit = _unit(tally)
        energy, gross, expected = _energies(tally, unit)
    else:
        energy, gross, expected = _core.arc_energy(tally, False)
    root = root_of(energy, gross) * unit
    energy = energy * unit * unit if energy > 0.0 else 0.0
    hidden = _ABSOLUTE * rounds
    each = 1 if total else rounds
    return _core.made(
        ArcEnergy,
        rounds,
        energy / each,
        expected / each,
        (LOWER_DISTANCE * root + hidden) / each,
        (SMOOTH_ERROR * root + hidden) / each,
    )


def _energies(tally: Tally, unit: float) -> tuple[float, float, float]:
    several = shares(len(tally.p)) > 1
    if not tally.weighted:
        return _core.arc_energy(tally, several)
    columns = (tally.p, tally.zeros / unit, tally.ones / unit) if unit != 1 else (tally,)
    energy, gross, _ = _core.arc_energy(*columns, several)
    return energy, gross, math.nan
