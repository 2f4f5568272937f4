"""Calibration error by a kernel, exactly, over all pairs of rounds."""

from __future__ import annotations

import math
from typing import Any

from truecast import _check, _core
from truecast.errors import InputError
from truecast.measures.scores import brier_score
from truecast.tally import Tally, as_tally, shares, tally_or_few

__all__ = ["laplace_calibration_error"]


def laplace_calibration_error(
    y_true: Any | Tally,
    y_prob: Any = None,
    *,
    sample_weight: Any = None,
    scale: float = 1.0,
    squared: bool = False,
    unbiased: bool = False,
) -> float:
    r"""Laplace-kernel calibration error.

    .. math::
        \Big(\frac1{T^2} \sum_{s,t} (y_s - p_s)(y_t - p_t)\,
        e^{-|p_s - p_t| / \text{scale}}\Big)^{1/2}

    After Kumar, Sarawagi and Jain (2018), and Błasiok and others (2023).

    Exact, over all pairs of rounds, not a sample. With scale 1 it is, up to constants, between the
    lower distance to calibration and its square root. Its size depends on `scale`: compare only at
    the same scale.

    Parameters
    ----------
    y_true, y_prob, sample_weight
        As in `Tally.from_predictions`; or a Tally alone.
    scale
        How far apart forecasts must be to count as different.
    squared
        Return the square.
    unbiased
        Leave out the pairs of a round with itself and divide by T (T - 1). It is 0 on average for
        calibrated forecasts, so it may be negative. Only with `squared`, with at least two rounds,
        and not for real weights.

    Examples
    --------
    >>> laplace_calibration_error([1, 0], [0.5, 0.5])
    0.0
    >>> laplace_calibration_error([1, 0], [0.5, 0.5], squared=True, unbiased=True)
    -0.25

    Notes
    -----
    O(n log n): in sorted order the sum over all pairs is one pass.
    """
    if unbiased:
        tally = as_tally(y_true, y_prob, sample_weight)
        return _unbiased(tally, _check.between("scale", scale, 0, math.inf), squared)
    rounds = tally_or_few(y_true, y_prob, sample_weight)
    pairs = _sum_of_pairs(rounds, _check.between("scale", scale, 0, math.inf))
    square = max(pairs, 0.0) / rounds.total / rounds.total
    return square if squared else math.sqrt(square)


def _sum_of_pairs(rounds: Tally | _core.FewRounds, scale: float) -> float:
    several = isinstance(rounds, Tally) and shares(len(rounds.p)) > 1
    return _core.laplace_sum(rounds, scale, several)


def _unbiased(tally: Tally, scale: float, squared: bool) -> float:
    if not squared:
        raise InputError(
            "squared", "must be True with unbiased: an unbiased estimate may be negative", squared
        )
    if tally.weighted:
        raise InputError(
            "sample_weight", "must be integers (counts) for the unbiased estimate", "real weights"
        )
    if tally.total < 2:
        raise InputError("y_true", "must have two rounds or more for the unbiased estimate", tally)
    others = _sum_of_pairs(tally, scale) - brier_score(tally, total=True)
    return others / (tally.total * (tally.total - 1))
