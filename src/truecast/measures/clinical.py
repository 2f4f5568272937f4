"""What clinical papers report: calibration slope and intercept, O:E, ICI, E50, E90 and Emax."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from truecast import _check, _core
from truecast.measures.corp import ReliabilityCurve, reliability_curve
from truecast.measures.scores import over_rounds
from truecast.tally import Tally, as_tally, tally_or_few

__all__ = [
    "CalibrationSlope",
    "Interval",
    "calibration_error_quantile",
    "calibration_in_the_large",
    "calibration_slope",
    "integrated_calibration_index",
    "observed_expected_ratio",
]

_NAN = math.nan
_ALIKE = "all outcomes are alike", _NAN
# why no line fits best, and the slope that is then approached, if any; numbered as in the core
_NO_FIT = (
    ("", _NAN),
    ("a forecast of exactly 0 or 1 was wrong, which no line allows", _NAN),
    ("all forecasts are 0 or 1", _NAN),
    _ALIKE,
    _ALIKE,
    ("all forecasts are alike", _NAN),
    ("a threshold separates zeros from ones", math.inf),
    ("a threshold separates ones from zeros: the wrong way round", -math.inf),
)
_NO_SHIFT = {3: -math.inf, 4: math.inf}  # the shift that is approached: all zeros, all ones


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its confidence interval.

    Attributes
    ----------
    estimate : float
    lower, upper : float
        The interval; nan where there is none: with real weights, or an estimate that is not finite.
    level : float
        Of the interval.
    """

    estimate: float
    lower: float
    upper: float
    level: float

    def __str__(self) -> str:
        return (
            f"{self.estimate:.6f}, {self.level:.0%} interval {self.lower:.6f} to {self.upper:.6f}"
        )


@dataclass(frozen=True, slots=True)
class CalibrationSlope:
    """What `calibration_slope` returns: the line that fits outcomes best on the logit scale.

    Attributes
    ----------
    slope, intercept : Interval
        Of the line.
    left_out : int or float
        Rounds, or their weight, with a forecast of exactly 0 or 1 that came true: they fit every
        line that rises, and say nothing of it.
    why : str
        Why the slope is not finite, if it is not; else empty.
    """

    slope: Interval
    intercept: Interval
    left_out: int | float
    why: str = ""


def calibration_slope(
    y_true: Any | Tally, y_prob: Any = None, *, sample_weight: Any = None, level: float = 0.95
) -> CalibrationSlope:
    r"""Calibration slope and intercept: logistic regression of outcomes on the forecasts' logits.

    .. math:: \operatorname{logit} P(y = 1) = a + b \operatorname{logit} p

    (Cox, 1958). Calibrated forecasts have a = 0 and b = 1. A slope below 1 says that forecasts are
    too extreme, as those of an overfitted model are; above 1, too timid. For a shift alone, use
    `calibration_in_the_large`.

    Only lines on the logit scale are seen: a curve that is off in the middle and right on the whole
    has a = 0 and b = 1 too, and so has a constant base rate shifted to fit. The intercept is the
    log-odds where the forecast is one half, often outside of the data; it is not the
    calibration-in-the-large.

    Parameters
    ----------
    y_true, y_prob, sample_weight
        As in `Tally.from_predictions`; or a Tally alone. Real weights give no intervals: these
        depend on the number of rounds, which such weights do not tell.
    level
        Of the intervals, by the Fisher information (Wald), as R prints them.

    Returns
    -------
    CalibrationSlope
        `slope`, `intercept`, `left_out`, `why`. A slope is nan where there is none: all outcomes or
        all forecasts are alike, or a forecast of exactly 0 or 1 was wrong, which no line allows.
        It is inf or -inf where a threshold separates zeros from ones. `why` says which.

    Examples
    --------
    >>> import truecast as tc
    >>> y, p = [0] * 9 + [1] + [0] + [1] * 9, [0.2] * 10 + [0.8] * 10
    >>> found = tc.calibration_slope(y, p)  # one in ten at 0.2, nine in ten at 0.8: too timid
    >>> round(found.slope.estimate, 3), round(found.slope.lower, 3), round(found.slope.upper, 3)
    (1.585, 0.531, 2.639)
    >>> tc.calibration_slope([0, 0, 1], [0.1, 0.2, 0.3]).why
    'a threshold separates zeros from ones'

    Notes
    -----
    O(n) for each Newton step after the tally, mostly 5 to 8 steps. R's `rms::val.prob` finds the
    same line, but leaves out all forecasts of 0 and 1, the wrong ones too.
    """
    rounds = tally_or_few(y_true, y_prob, sample_weight)
    level = _check.between("level", level, 0, 1)
    weight, why, a, b, of_a, of_b = _core.logistic_line(rounds)
    left_out = weight if rounds.weighted else int(weight)
    reason, slope = _NO_FIT[int(why)]
    if reason:
        none = Interval(_NAN, _NAN, _NAN, level)
        return CalibrationSlope(Interval(slope, _NAN, _NAN, level), none, left_out, reason)
    return _core.made(
        CalibrationSlope,
        _around(b, of_b, level, rounds),
        _around(a, of_a, level, rounds),
        left_out,
        "",
    )


def calibration_in_the_large(
    y_true: Any | Tally, y_prob: Any = None, *, sample_weight: Any = None, level: float = 0.95
) -> Interval:
    r"""Calibration-in-the-large: the shift of all log-odds that makes the means agree.

    The a of :math:`\operatorname{logit} P(y = 1) = a + \operatorname{logit} p`, with the slope
    fixed at 1. Above 0: forecasts are too low on the whole.

    It is 0 whenever the mean forecast is the mean outcome, however wrong the single forecasts are.

    Parameters
    ----------
    y_true, y_prob, sample_weight
        As in `Tally.from_predictions`; or a Tally alone. Real weights give no interval.
    level
        Of the interval, by the Fisher information (Wald).

    Returns
    -------
    Interval
        The estimate is inf or -inf if all outcomes are alike, and nan if a forecast of exactly 0 or
        1 was wrong, or all are 0 or 1. Such forecasts that came true are left out, as in
        `calibration_slope`.

    Examples
    --------
    >>> import truecast as tc
    >>> found = tc.calibration_in_the_large([1, 1, 1, 0], [0.5] * 4)  # odds of 3, not of 1
    >>> round(found.estimate, 4) == round(math.log(3), 4)
    True
    """
    rounds = tally_or_few(y_true, y_prob, sample_weight)
    level = _check.between("level", level, 0, 1)
    why, a, variance = _core.logistic_shift(rounds)
    if why:
        return Interval(_NO_SHIFT.get(int(why), _NAN), _NAN, _NAN, level)
    return _around(a, variance, level, rounds)


def observed_expected_ratio(
    y_true: Any | Tally, y_prob: Any = None, *, sample_weight: Any = None, level: float = 0.95
) -> Interval:
    r"""O:E ratio: how many ones there were, over how many the forecasts expected.

    .. math:: \text{O:E} = \sum_t y_t / \sum_t p_t

    Above 1: forecasts are too low on the whole. It sees the two means alone: errors in opposite
    directions cancel. Some papers report E:O, which is 1 over this.

    Parameters
    ----------
    y_true, y_prob, sample_weight
        As in `Tally.from_predictions`; or a Tally alone. Real weights give no interval.
    level
        Of the interval: Wilson's for the mean outcome, over the mean forecast, which is taken as
        given. Unlike the usual one for the logarithm, it exists for no ones at all.

    Returns
    -------
    Interval
        The estimate is inf if every forecast is 0 and there are ones, nan if there are none.

    Examples
    --------
    >>> import truecast as tc
    >>> tc.observed_expected_ratio([1, 1, 0, 0], [0.5, 0.25, 0.125, 0.125]).estimate
    2.0
    """
    ones, expected, total, weighted = _means(y_true, y_prob, sample_weight)
    level = _check.between("level", level, 0, 1)
    if not expected:
        return Interval(math.inf if ones else _NAN, _NAN, _NAN, level)
    low, high = (_NAN, _NAN) if weighted else _wilson(ones, total, level)
    scale = total / expected
    return _core.made(Interval, ones / expected, low * scale, high * scale, level)


def _means(y_true: Any, y_prob: Any, sample_weight: Any) -> tuple[float, float, int | float, bool]:
    """Return ones, how many were expected, and all rounds, or weights; and whether it is these."""
    if sample_weight is None:
        few = _core.observed_expected_few(y_true, y_prob)
        if few is not None:
            ones, expected = few
            return ones, expected, len(y_prob), False
    if y_prob is not None and sample_weight is None and not isinstance(y_true, Tally):
        sums, rounds = over_rounds(_core.observed_expected_rounds, y_true, y_prob)
        if sums is not None:
            return *sums, rounds, False
    tally = as_tally(y_true, y_prob, sample_weight)
    return *_core.observed_expected(tally), tally.total, tally.weighted


def integrated_calibration_index(
    y_true: Any | Tally, y_prob: Any = None, *, sample_weight: Any = None
) -> float:
    r"""ICI: the mean distance between forecasts and the reliability curve.

    .. math:: \text{ICI} = \frac{1}{T} \sum_t |p_t - c(p_t)|

    after Austin and Steyerberg (2019), with the curve c of `reliability_curve`: isotonic
    regression, which has no bandwidth to choose. They take loess, and `rms::val.prob` (where it is
    called Eavg) lowess: smoother curves, which may fall, and depend on their span. On the flights
    of examples/scores.csv the three are 0.0856, 0.0858 and 0.0864.

    The isotonic curve follows chance where rounds are few, so the index is positive for calibrated
    forecasts: ``uncertainty(integrated_calibration_index, ...)`` says how large it would be by
    chance. It does not see sharpness.

    Parameters
    ----------
    y_true, y_prob, sample_weight
        As in `Tally.from_predictions`; or a Tally alone.

    Examples
    --------
    >>> import truecast as tc
    >>> tc.integrated_calibration_index([0, 0, 1, 1], [0.25, 0.25, 0.5, 0.5])
    0.375
    """
    rounds = tally_or_few(y_true, y_prob, sample_weight)
    if isinstance(rounds, Tally):
        return curve_errors(rounds, reliability_curve(rounds))[0]
    return _core.curve_errors(rounds)[0] / rounds.total


def calibration_error_quantile(
    y_true: Any | Tally, y_prob: Any = None, *, sample_weight: Any = None, q: float = 0.9
) -> float:
    r"""E50, E90 and Emax: a quantile of the distances between forecasts and reliability curve.

    The least e such that at least a share q of the rounds has :math:`|p - c(p)| \le e`, with the
    curve c of `reliability_curve`: E50 for q = 0.5, E90 for 0.9 and Emax for 1. The mean of the
    same distances is `integrated_calibration_index`, and what is said there of other curves and of
    chance holds here too. Emax hangs on the few forecasts at the ends, where any curve is unsure.

    Parameters
    ----------
    y_true, y_prob, sample_weight
        As in `Tally.from_predictions`; or a Tally alone.
    q
        From 0 to 1.

    Examples
    --------
    >>> import truecast as tc
    >>> y, p = [0, 0, 1, 1], [0.25, 0.25, 0.5, 0.5]
    >>> [tc.calibration_error_quantile(y, p, q=q) for q in (0.5, 0.9, 1)]
    [0.25, 0.5, 0.5]
    """
    rounds = tally_or_few(y_true, y_prob, sample_weight)
    q = _check.within("q", q, 0, 1)
    if isinstance(rounds, Tally):
        return curve_errors(rounds, reliability_curve(rounds), q)[1]
    return _core.curve_errors(rounds, q)[1]


def curve_errors(tally: Tally, curve: ReliabilityCurve, *quantiles: float) -> list[float]:
    """Return the mean distance of the forecasts from the curve, then quantiles of it."""
    distance, *found = _core.curve_errors(
        tally.p, tally.zeros, tally.ones, curve.lower, curve.rate, np.array(quantiles, np.float64)
    )
    return [distance / tally.total, *found]


def _around(
    estimate: float, variance: float, level: float, rounds: Tally | _core.FewRounds
) -> Interval:
    """Return an estimate with its interval, by its variance; real weights do not tell that."""
    wide = _NAN if rounds.weighted else _quantile(level) * math.sqrt(variance)
    return _core.made(Interval, estimate, estimate - wide, estimate + wide, level)


@lru_cache(maxsize=16)
def _quantile(level: float) -> float:
    from statistics import NormalDist  # slow to import, and for this alone

    return NormalDist().inv_cdf((1 + level) / 2)


def _wilson(ones: float, total: float, level: float) -> tuple[float, float]:
    """Return the score interval of a share."""
    z, share = _quantile(level), ones / total
    square = z * z
    middle = share + square / (2 * total)
    wide = z * math.sqrt(share * (1 - share) / total + square / (4 * total * total))
    scale = 1 + square / total
    low = 0.0 if not ones else (middle - wide) / scale
    high = 1.0 if ones == total else (middle + wide) / scale
    return low, high
