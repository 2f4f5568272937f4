"""The lower distance to calibration, between two proven bounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecast import _check, _core
from truecast.measures.prices import bounds_by_prices
from truecast.tally import Tally, tally_or_few

__all__ = ["LowerDistance", "lower_calibration_distance"]


@dataclass(frozen=True, eq=False)
class LowerDistance:
    """What `lower_calibration_distance` returns.

    Attributes
    ----------
    lower, upper : float
        Proven bounds of the lower distance to calibration, including rounding. Means per round, or
        totals if requested.
    nodes, zero_prices, one_prices : arrays
        Prices A and B at the nodes, linear in between: the witness of `lower`, unless `lower` is 0,
        which needs none. Both change no faster than p, and (1 - v) A(v) + v B(v) <= 0 for all v.
        The mean over all rounds of A(p) for a zero and B(p) for a one is `lower` plus the allowance
        for rounding.
    values, masses : arrays
        Calibrated forecasts, and the share of all rounds (or their number, for totals) that each
        receives: the witness of `upper`. Moving the zeros to ``(1 - values) * masses`` and the ones
        to ``values * masses`` costs `upper` minus the allowance for rounding.
    """

    lower: float
    upper: float
    nodes: NDArray[np.float64] = field(repr=False)
    zero_prices: NDArray[np.float64] = field(repr=False)
    one_prices: NDArray[np.float64] = field(repr=False)
    values: NDArray[np.float64] = field(repr=False)
    masses: NDArray[np.float64] = field(repr=False)


def lower_calibration_distance(
    y_true: Any | Tally,
    y_prob: Any = None,
    *,
    sample_weight: Any = None,
    rtol: float = 1e-6,
    total: bool = False,
) -> LowerDistance:
    """Bound the lower distance to calibration from both sides.

    The least mean change of the forecasts that makes them perfectly calibrated, if a round may be
    split into parts with different forecasts (Błasiok, Gopalan, Hu and Nakkiran, 2023). It is at
    most the distance to calibration, which allows no splitting, and at most the calibration error
    by value; and between half and twice the smooth error.

    Parameters
    ----------
    y_true, y_prob, sample_weight
        As in `Tally.from_predictions`; or a Tally alone.
    rtol
        Stop when the bounds are this close, relative to the upper one. The search also stops when
        continuing does not help. Both bounds are valid whenever it stops.
    total
        Totals over all rounds rather than means.

    Examples
    --------
    >>> bounds = lower_calibration_distance([1, 1, 1, 0], [0.5, 0.5, 0.5, 0.5])
    >>> round(bounds.lower, 3), round(bounds.upper, 3)
    (0.25, 0.25)

    Notes
    -----
    A linear programme in prices at all forecasts and some nodes between them, solved by an interior
    point method in O(n) an iteration. Its solution is then repaired so that the prices are valid
    exactly and everywhere, not only at the nodes. Nodes are added where the repair cost too much
    (docs/measures.md, theorem 4).
    """
    rounds = tally_or_few(y_true, y_prob, sample_weight)
    rtol = _check.between("rtol", rtol, 0, 1)
    lower, upper, nodes, (zero_prices, one_prices), values, masses = bounds_by_prices(rounds, rtol)
    if total:
        lower, upper, masses = lower * rounds.total, upper * rounds.total, masses * rounds.total
        masses.setflags(write=False)
    return _core.made(LowerDistance, lower, upper, nodes, zero_prices, one_prices, values, masses)
