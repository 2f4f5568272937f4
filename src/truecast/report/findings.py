"""What the report is about: everything computed, nothing said or drawn yet."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truecast.measures.bernstein import stretches, stretches_p_value
from truecast.measures.binned import reliability_bins
from truecast.measures.corp import Decomposition, reliability_curve
from truecast.measures.report import Report, measure
from truecast.measures.smooth import smooth_calibration_error
from truecast.measures.uncertainty import Uncertainty, uncertainty
from truecast.plot import (
    BeforeAfter,
    GroupOverview,
    Miscalibration,
    ReliabilityDiagram,
    before_after,
    miscalibration,
    reliability_diagram,
)
from truecast.tally import Tally

__all__ = ["RARE", "After", "Finding", "Range", "find"]

_CELLS = 1 << 11  # forecasts that pictures and resamples are made of
_RANGES = 10
RARE = 0.05  # how often an outcome comes at the most to be called rare
_FEW_CELLS = 1 << 8  # to simulate what chance adds to the miscalibration of a score


@dataclass(frozen=True, slots=True)
class Range:
    """Forecasts from `low` to `high`, and what came of them.

    `noise` is the standard deviation that the gap between rate and mean forecast would have if they were calibrated;
    nan for real weights.
    """

    low: float
    high: float
    rounds: int | float
    forecast: float
    rate: float
    noise: float

    @property
    def gap(self) -> float:
        """Mean outcome less mean forecast: below 0 where forecasts were too high."""
        return self.rate - self.forecast

    @property
    def beyond_chance(self) -> bool:
        """Whether the gap is more than chance does in about 19 of 20 ranges; never for real weights."""
        return abs(self.gap) > 2 * self.noise + 1e-12

    def by_chance(self, ranges: int) -> float:
        """Return what no gap exceeds in 19 of 20 tables of so many ranges, if forecasts are calibrated; about.

        A normal quantile, with room for the skewness of rare outcomes (Cornish and Fisher, 1938). nan for real weights.
        """
        from statistics import NormalDist

        z = NormalDist().inv_cdf(1 - 0.025 / ranges)
        return z * self.noise + (z * z - 1) / 6 / self.rounds


@dataclass(frozen=True, eq=False)
class After:
    """The recalibrated forecasts of the same rounds."""

    brier: Decomposition
    log: Decomposition
    error: float
    doubt: Uncertainty | None
    pictures: BeforeAfter


@dataclass(frozen=True, eq=False)
class Finding:
    """All that is known of one score.

    Attributes
    ----------
    name : str
        Of the score.
    figures : Report
    doubt : Uncertainty or None
        Of the smooth calibration error, by resampling; None for real weights.
    stretches_p_value : float
        How often, at the most, any stretch of calibrated forecasts would be as far off as one is; nan for real weights.
    resamples : int
    diagram, where
        The pictures, of forecasts pooled in so many cells that nobody sees the difference.
    ranges : tuple of Range
        About ten, with equal numbers of rounds as far as ties allow.
    whole : Range
        All forecasts.
    halves : tuple of Range
        Forecasts up to the mean outcome, and those above it, if there are both.
    off : tuple of Range
        The stretches of forecasts in which the most is off, beyond chance; three at the most, in order.
    gap : float
        How far rate and mean forecast of a range are apart on average, less what chance adds.
    gain : float
        What share of the score the best increasing curve would take off, less what chance adds.
    gain_of : str
        Of which score: "log" where one of the outcomes is rare and the log loss is finite, else "brier".
    impossible : int or float
        Rounds in which something happened that had been given probability 0.
    certain : bool
        Whether all forecasts are 0 or 1.
    groups : GroupOverview or None
    after : After or None
    """

    name: str
    figures: Report
    doubt: Uncertainty | None
    stretches_p_value: float
    resamples: int
    diagram: ReliabilityDiagram
    where: Miscalibration
    ranges: tuple[Range, ...]
    whole: Range
    halves: tuple[Range, ...]
    off: tuple[Range, ...]
    gap: float
    gain: float
    gain_of: str
    impossible: int | float
    certain: bool
    groups: GroupOverview | None
    after: After | None


def find(
    name: str,
    tally: Tally,
    *,
    groups: GroupOverview | None,
    after: Tally | None,
    level: float,
    resamples: int | None,
    random_state: int,
    bins: int = 50,
) -> Finding:
    """Compute everything that the page says about one score."""
    pooled = _pooled(tally)
    times = resamples or (999 if len(pooled.p) <= 512 else 199)
    options: dict[str, Any] = {"level": level, "resamples": times, "random_state": random_state}
    figures = measure(tally)
    later = None if after is None else _after(pooled, after, options, bins)
    gain_of = "log" if min(tally.rate, 1 - tally.rate) < RARE and math.isfinite(figures.log.score) else "brier"
    return Finding(
        name=name,
        figures=figures,
        doubt=_doubt(pooled, figures.smooth_calibration_error, options),
        stretches_p_value=math.nan if tally.weighted else stretches_p_value(pooled),
        resamples=times,
        diagram=reliability_diagram(pooled, bins=bins, **options) if later is None else later.pictures.before,
        where=miscalibration(pooled, bins=bins),
        ranges=_ranges(tally, reliability_bins(tally, n_bins=_RANGES, strategy="quantile").edges[:-1]),
        whole=_ranges(tally, [0.0])[0],
        halves=_ranges(tally, [0.0, np.nextafter(figures.mean_outcome, 2.0)]),
        off=_off(pooled),
        gap=_mean_gap(tally),
        gain=_gain(tally, gain_of, min(times, 100), random_state),
        gain_of=gain_of,
        impossible=_at(tally.p, tally.ones, 0.0) + _at(tally.p, tally.zeros, 1.0),
        certain=bool(np.isin(tally.p, (0.0, 1.0)).all()),
        groups=groups,
        after=later,
    )


def _pooled(tally: Tally, cells: int = _CELLS) -> Tally:
    """Return the tally with few forecasts: in cells as fine as that allows, so that rare events are told apart, too.

    Rounds in a cell all get their mean forecast, as in `Tally.coarsened`, whose cells are not that fine.
    """
    if len(tally.p) <= cells:
        return tally
    power = cells.bit_length() - 1
    while power < 60 and np.count_nonzero(np.diff(_cell(tally.p, power + 1))) < cells:
        power += 1
    starts = np.flatnonzero(np.diff(_cell(tally.p, power), prepend=-1))
    zeros, ones = np.add.reduceat(tally.zeros, starts), np.add.reduceat(tally.ones, starts)
    p = np.add.reduceat(tally.p * tally.weights, starts) / (zeros + ones)
    ends = np.append(starts[1:], len(tally.p)) - 1
    return Tally(np.clip(p, tally.p[starts], tally.p[ends]), zeros, ones)  # rounding must not leave the cell


def _cell(p: NDArray[np.float64], power: int) -> NDArray[np.int64]:
    return np.minimum((p * 2.0**power).astype(np.int64), (1 << power) - 1)


def _doubt(pooled: Tally, estimate: float, options: dict[str, Any]) -> Uncertainty | None:
    if pooled.weighted:
        return None
    doubt = uncertainty(smooth_calibration_error, pooled, **options)
    return Uncertainty(estimate, doubt.lower, doubt.upper, doubt.level, doubt.if_calibrated, doubt.p_value)


def _after(pooled: Tally, after: Tally, options: dict[str, Any], bins: int) -> After:
    curve, error, pooled_after = reliability_curve(after), smooth_calibration_error(after), _pooled(after)
    pictures = before_after(pooled, pooled_after, bins=bins, **options)
    return After(curve.brier, curve.log, error, _doubt(pooled_after, error, options), pictures)


def _off(tally: Tally) -> tuple[Range, ...]:
    parts = (
        Tally(*(column[start:end] for column in (tally.p, tally.zeros, tally.ones))) for start, end in stretches(tally)
    )
    return tuple(_ranges(part, [0.0])[0] for part in parts)


def _ranges(tally: Tally, edges: ArrayLike) -> tuple[Range, ...]:
    """Return what came of the forecasts from each edge to the next, or to the end; nothing where there are none."""
    starts = np.unique(np.append(np.searchsorted(tally.p, edges), len(tally.p)))
    ends, starts = starts[1:] - 1, starts[:-1]
    rounds = np.add.reduceat(tally.weights, starts)
    forecast = np.clip(np.add.reduceat(tally.p * tally.weights, starts) / rounds, tally.p[starts], tally.p[ends])
    rate = np.add.reduceat(tally.ones, starts) / rounds
    noise = np.sqrt(np.add.reduceat(tally.p * (1 - tally.p) * tally.weights, starts)) / rounds
    if tally.weighted:
        noise = np.full(len(starts), math.nan)
    columns = (tally.p[starts], tally.p[ends], rounds, forecast, rate, noise)
    return tuple(Range(*row) for row in zip(*(column.tolist() for column in columns), strict=True))


def _mean_gap(tally: Tally) -> float:
    bins = reliability_bins(tally, n_bins=_RANGES, strategy="quantile")
    return bins.error("l1", debias=not tally.weighted)


def _gain(tally: Tally, score: str, resamples: int, random_state: int) -> float:
    """Return which share of a score is miscalibration, less what the curve would fit of chance."""
    share = _share(tally, score)
    if tally.weighted or not share:
        return share
    few = _pooled(tally, _FEW_CELLS)
    chance = uncertainty(
        partial(_share, score=score), few, resamples=resamples, random_state=random_state
    ).if_calibrated
    return max(0.0, share - chance)


def _share(tally: Tally, score: str) -> float:
    parts: Decomposition = getattr(reliability_curve(tally), score)
    return parts.miscalibration / (parts.score or 1.0)


def _at(p: NDArray[np.float64], counts: NDArray[Any], value: float) -> Any:
    return counts[p == value].sum().item()
