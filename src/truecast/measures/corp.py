"""The CORP reliability curve: isotonic regression, and decompositions of the scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truecast import _core
from truecast.measures.packed import Packed, packed
from truecast.measures.scores import brier_score, log_loss
from truecast.tally import Tally, tally_or_few

__all__ = [
    "Decomposition",
    "ReliabilityCurve",
    "decomposed",
    "isotonic_blocks",
    "reliability_curve",
]


_Four = tuple[float, float, float, float]
_FEW = 1 << 10  # forecasts, of which arrays in Python take longer than the curve


@dataclass(frozen=True, slots=True)
class Decomposition:
    """A proper score taken apart: score = miscalibration - discrimination + uncertainty.

    Attributes
    ----------
    score : float
        The mean score.
    miscalibration : float
        How much recalibration by the curve would lower the score. 0 only if the mean outcome at
        every forecast is that forecast; never negative.
    discrimination : float
        How much better the recalibrated forecasts are than always saying the mean outcome.
    uncertainty : float
        The score of always saying the mean outcome.
    """

    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float


@dataclass(frozen=True, eq=False)
class ReliabilityCurve(Packed):
    """What `reliability_curve` returns: increasing rates, constant on blocks of forecasts.

    Attributes
    ----------
    lower, upper : arrays
        The least and greatest forecast of each block.
    rate : array
        Its mean outcome; increasing.
    zeros, ones : arrays
        The counts of its outcomes.
    brier, log : Decomposition
        Of the two proper scores. If the log score is infinite, so is its miscalibration.
    """

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    rate: NDArray[np.float64]
    zeros: NDArray[Any]
    ones: NDArray[Any]
    brier: Decomposition
    log: Decomposition

    def __call__(self, p: ArrayLike) -> NDArray[np.float64]:
        """Return the rate at any forecasts: linear between blocks, constant outside of them."""
        ends = np.stack((self.lower, self.upper), axis=1).reshape(-1)
        return np.asarray(np.interp(np.asarray(p, np.float64), ends, np.repeat(self.rate, 2)))

    @staticmethod
    def _unpacked(n: int, data: bytes, brier: _Four, log: _Four) -> tuple[Any, ...]:
        """Return the fields of a curve of `n` blocks, whose columns are one after the other."""
        columns, counts = np.frombuffer(data), np.frombuffer(data, np.int64)
        return (
            columns[:n],
            columns[n : 2 * n],
            columns[2 * n : 3 * n],
            counts[3 * n : 4 * n],
            counts[4 * n :],
            Decomposition(*brier),
            Decomposition(*log),
        )


def reliability_curve(
    y_true: Any | Tally, y_prob: Any = None, *, sample_weight: Any = None
) -> ReliabilityCurve:
    """Return the CORP reliability curve with its decompositions.

    After Dimitriadis, Gneiting and Jordan (2021).

    Isotonic regression of outcomes on forecasts: the increasing curve that fits best, under the
    Brier score, the log score and every other proper score at once. It needs no settings, and equal
    forecasts stay together.

    It overfits: with few rounds the curve follows chance, and miscalibration is above 0 even for
    calibrated forecasts; see `reliability_band`. It cannot show rates that decrease.

    Parameters
    ----------
    y_true, y_prob, sample_weight
        As in `Tally.from_predictions`; or a Tally alone.

    Examples
    --------
    >>> curve = reliability_curve([0, 1, 0, 1], [0.1, 0.3, 0.3, 0.8])
    >>> curve.rate
    array([0. , 0.5, 1. ])
    >>> curve.brier.discrimination, curve.brier.uncertainty
    (0.125, 0.25)

    Notes
    -----
    O(n) after the tally, by pooling adjacent violators; rates are compared in integers unless there
    are real weights.
    """
    rounds = tally_or_few(y_true, y_prob, sample_weight)
    if not isinstance(rounds, Tally):
        return packed(ReliabilityCurve, *_core.curve_of_few(rounds))
    if rounds.weighted or len(rounds.p) >= _FEW:
        return _curve_of(rounds)
    total = float(rounds.total)
    found = _core.curve_of_few(rounds.p, rounds.zeros, rounds.ones, total)
    return packed(ReliabilityCurve, *found)


def _curve_of(tally: Tally) -> ReliabilityCurve:
    starts, zeros, ones = isotonic_blocks(tally.zeros, tally.ones)
    ends = np.empty_like(starts)
    ends[:-1], ends[-1] = starts[1:], len(tally.p)
    ends -= 1
    rates = ones / (zeros + ones)
    brier, log, brier_of_all, log_of_all = _core.scores_of_blocks(rates, zeros, ones)
    curve = ReliabilityCurve(
        tally.p[starts],
        tally.p[ends],
        rates,
        zeros,
        ones,
        decomposed(brier_score(tally), brier, brier_of_all),
        decomposed(log_loss(tally), log, log_of_all),
    )
    for column in (curve.lower, curve.upper, curve.rate, curve.zeros, curve.ones):
        column.setflags(write=False)
    return curve


def decomposed(said: float, recalibrated: float, constant: float) -> Decomposition:
    """Take a score apart, by those of the recalibrated forecasts and of the mean outcome."""
    return Decomposition(*_core.decomposed(said, recalibrated, constant))


def isotonic_blocks(
    zeros: NDArray[Any], ones: NDArray[Any]
) -> tuple[NDArray[np.int64], NDArray[Any], NDArray[Any]]:
    """Return where each block of the regression starts, its zeros and its ones."""
    starts = np.empty(len(zeros), np.int64)
    block_zeros, block_ones = np.empty_like(zeros), np.empty_like(ones)
    blocks = _core.isotonic(zeros, ones, starts, block_zeros, block_ones)
    return starts[:blocks].copy(), block_zeros[:blocks].copy(), block_ones[:blocks].copy()
