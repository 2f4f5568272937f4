"""Tests of several tallies at once, such as groups or classes: p-values, then Holm's adjustment."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from truecast import _core
from truecast.measures.finder import stretches_p_value
from truecast.tally import Tally

__all__ = ["Chance", "chance_of", "holm"]

_CELLS = 64  # of forecasts, to be resampled
_DRAWS = 40  # for each tally of the family: it takes that many to see that one stands out
_MOST_DRAWS = 40_000
_SHARE = 0.01  # of the chance to err that is left to Bernstein's inequality


class Chance(NamedTuple):
    """What the smooth calibration error of a tally would be if its forecasts were calibrated.

    Attributes
    ----------
    mean, high : float
        On average, and what it would not exceed in a given share of all cases.
    p_value : float
        At most how often it would be as large as it is, or larger.
    """

    mean: float
    high: float
    p_value: float


def chance_of(
    tally: Tally, resamples: int, level: float, rng: np.random.Generator, family: int
) -> Chance:
    """Return what chance does to one tally of a family of that many. Not for real weights.

    By simulation, for as long as that takes to tell; or by Bernstein's inequality for all stretches
    of forecasts, where no number of draws would do.
    """
    pooled = tally.coarsened(_CELLS)
    seen = _error(pooled, pooled.ones) * (1 - 1e-9)
    draws = _draws(pooled, resamples, rng)
    mean, high = float(draws.mean()), float(np.quantile(draws, level))
    proved = 0.0 if _impossible(tally) else stretches_p_value(tally) / _SHARE
    # else draws cannot tell, or need not
    if proved * family > _SHARE and _DRAWS * family <= _MOST_DRAWS:
        while (draws >= seen).sum() < 2 and len(draws) < _DRAWS * family:
            draws = np.append(draws, _draws(pooled, len(draws), rng))
    p_value = min(1.0, proved, _share(draws >= seen, resamples) / (1 - _SHARE))
    return Chance(mean, high, p_value)


def holm(p_values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return p-values adjusted for their number (Holm, 1979); nan stays nan, and counts.

    If all hypotheses are true, the chance that any is below a here is at most a, however they
    depend on each other.

    Examples
    --------
    >>> holm(np.array([0.01, 0.5, 0.02]))
    array([0.03, 0.5 , 0.04])
    """
    order = np.argsort(p_values, kind="stable")  # nan last
    left = len(p_values) - np.arange(len(p_values))
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(np.maximum.accumulate(p_values[order] * left), 1.0)
    return adjusted


def _impossible(tally: Tally) -> bool:
    """Return whether something came that was said to be impossible: no chance explains that."""
    return bool(tally.ones[tally.p == 0].any() or tally.zeros[tally.p == 1].any())


def _error(tally: Tally, ones: NDArray[np.int64]) -> float:
    return _core.smooth_error(tally.p, tally.weights - ones, ones, float(tally.total), np.empty(0))


def _draws(tally: Tally, number: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return the errors of `number` tallies like this one whose forecasts are calibrated."""
    return np.array(
        [
            _error(tally, ones)
            for ones in rng.binomial(tally.weights, tally.p, (number, len(tally.p)))
        ]
    )


def _share(exceeds: NDArray[np.bool_], first: int) -> float:
    """Return a p-value from draws.

    How many of the first draws exceed what was seen, or when the second one does if that is later.

    Both are valid (for the latter see Besag and Clifford, 1991), and so is this: the second is
    taken just where it says less than any other value that the first can have.
    """
    at = np.flatnonzero(exceeds)
    if len(at) < 2:
        return (1 + len(at)) / (1 + len(exceeds))
    return (
        2 / (int(at[1]) + 1) if at[1] >= first else (1 + int(exceeds[:first].sum())) / (1 + first)
    )
