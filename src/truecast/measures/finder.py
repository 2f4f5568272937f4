"""Where forecasts are off: one search for words, tables and pictures.

One p-value covers everything that it marks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truecast import _check, _core
from truecast._threads import Aside, ahead
from truecast.measures.binned import wilson
from truecast.measures.pooling import Cells, Marks, cells_of, marks_of
from truecast.measures.smooth import smooth_calibration_error, smooth_calibration_witness
from truecast.measures.uncertainty import (
    KINDS,
    Counts,
    Uncertainty,
    quantiles,
    resampled_at_once,
)
from truecast.tally import Tally, as_tally

__all__ = ["SIGNIFICANT", "Stretch", "Stretches", "stretches", "stretches_p_value", "witness_base"]

SIGNIFICANT = 0.05  # p-value below which something is marked
_FEW = 512  # forecasts
_TIMES = 999  # resamples for few forecasts
_FEWER_TIMES = 499  # and for more
_AHEAD = 2  # batches of resamples that are drawn before they are needed: 32 MB at most
_LIKEWISE = (
    4.0  # deviations, squared, from which what lies between two stretches is off in the same way
)
_NARROW = 0.1  # of two stretches, that may lie between them for them to be one


@dataclass(frozen=True, slots=True)
class Stretch:
    """A range of neighbouring forecasts, with their outcomes.

    Attributes
    ----------
    low, high : float
        The least and the greatest of them.
    rounds : int or float
        The number of their rounds, or its weight.
    forecast, rate : float
        Their mean forecast and their mean outcome.
    noise : float
        The standard deviation that the gap of calibrated forecasts would have; nan for real
        weights.
    p_value : float
        How often calibrated forecasts would be as far off as these, in any stretch or in the smooth
        calibration error, so it accounts for the whole search. nan for real weights.
    alone : bool
        If they are off: whether by themselves, or only together with others, in the smooth
        calibration error.
    """

    low: float
    high: float
    rounds: int | float
    forecast: float
    rate: float
    noise: float
    p_value: float = math.nan
    alone: bool = True

    @property
    def gap(self) -> float:
        """Mean outcome minus mean forecast: above 0 if forecasts were too low."""
        return self.rate - self.forecast

    @property
    def off(self) -> bool:
        """Whether this is beyond chance: a p-value below 0.05. Never for real weights."""
        return self.p_value < SIGNIFICANT

    def interval(self, level: float = 0.9) -> tuple[float, float]:
        """Return Wilson's interval for the mean outcome of these forecasts alone.

        It is nan for real weights.
        """
        if not isinstance(self.rounds, int):
            return math.nan, math.nan
        ones = round(self.rate * self.rounds)
        low, high = wilson(
            np.array(self.rounds - ones), np.array(ones), _check.between("level", level, 0, 1)
        )
        return float(low), float(high)


@dataclass(frozen=True, eq=False)
class Stretches:
    """What `stretches` returns.

    Attributes
    ----------
    p_value : float
        How often calibrated forecasts would be as far off, in any stretch or in the smooth
        calibration error: the smallest p-value of the search. nan for real weights.
    off : tuple of Stretch
        Where forecasts are off, in order, without overlap: none if the p-value is 0.05 or more,
        else at least one.
    ranges : tuple of Stretch
        About ten, with equal numbers of rounds as far as ties allow.
    whole : Stretch
        All forecasts.
    halves : tuple of Stretch
        Forecasts up to the mean forecast, and those above it, if there are both.
    smooth : Uncertainty or None
        Of the smooth calibration error. Its p-value accounts for stretches too, and its interval
        starts at 0 unless the p-value is below (1 - level)/2. None for real weights.
    resamples : int
        How often chance was simulated.
    """

    p_value: float
    off: tuple[Stretch, ...]
    ranges: tuple[Stretch, ...] = field(repr=False)
    whole: Stretch = field(repr=False)
    halves: tuple[Stretch, ...] = field(repr=False)
    smooth: Uncertainty | None = field(repr=False)
    resamples: int = field(repr=False)


def stretches(
    y_true: Any | Tally,
    y_prob: Any = None,
    *,
    sample_weight: Any = None,
    level: float = 0.9,
    resamples: int | None = None,
    random_state: int | np.random.Generator | None = 0,
) -> Stretches:
    """Return where forecasts are off beyond chance, and how sure that is.

    It looks at the smooth calibration error and at all stretches of neighbouring forecasts. It
    compares their gaps with chance (by Bernstein's inequality, so few rounds and rare outcomes are
    fine), and simulates calibrated forecasts to see how far off the worst of them is by chance. If
    forecasts are calibrated and rounds independent, the probability that anything is marked is
    below 0.05. If nothing is marked, forecasts need not be calibrated. Where a stretch begins and
    ends is only approximate.

    Parameters
    ----------
    y_true, y_prob, sample_weight
        As in `Tally.from_predictions`; or a Tally alone. With real weights nothing is marked,
        because chance cannot be judged.
    level
        Of the interval of the smooth calibration error.
    resamples
        How often chance is simulated. None: 999 times, or 499 if there are more than 512 distinct
        forecasts.
    random_state
        A seed, a generator, or None.

    Examples
    --------
    >>> y = [0, 0, 0, 1] * 50 + [0, 1] * 100
    >>> p = [0.5] * 200 + [0.25] * 100 + [0.75] * 100
    >>> found = stretches(y, p)
    >>> for part in found.off:
    ...     print(part.low, part.high, part.rounds, round(part.gap, 6), part.p_value)
    0.25 0.25 100 0.25 0.001
    0.5 0.75 300 -0.25 0.001

    Notes
    -----
    Forecasts are pooled in at most 2,048 cells. About 0.4 s for a million distinct forecasts, after
    the tally. Validity: docs/measures.md, theorem 8.
    """
    tally = as_tally(y_true, y_prob, sample_weight)
    return stretches_of(tally, level=level, resamples=resamples, random_state=random_state)


def stretches_of(
    tally: Tally,
    *,
    level: float,
    resamples: int | None,
    random_state: int | np.random.Generator | None,
    error: float | None = None,
) -> Stretches:
    """Return the stretches of a tally, and its smooth calibration error if that is not given."""
    level = _check.between("level", level, 0, 1)
    if resamples is not None:
        resamples = _check.resamples(resamples)
    rng = _check.generator("random_state", random_state)
    cells = cells_of(tally)
    marks = marks_of(cells.tally)
    if tally.weighted:
        return _unjudged(cells, marks)
    times = resamples or (_TIMES if len(cells.tally.p) <= _FEW else _FEWER_TIMES)
    chance, others = (resampled_at_once(cells.tally, kind, times, rng) for kind in KINDS)
    if tally.total > _core.DRAWN_BY_TABLES:  # the first ask the generator before the second do
        chance, errors = ahead(chance), _smooth_errors(cells.tally, ahead(others))
    else:  # takes longer than all the rest
        errors = Aside().ahead(_smooth_errors(cells.tally, others), _AHEAD)
    search = _Search(cells, marks, _simulated(cells.tally, marks.at, chance))
    error = smooth_calibration_error(tally) if error is None else error
    return search.result(_uncertainty(error, np.concatenate([*errors]), search, level))


def stretches_p_value(tally: Tally) -> float:
    """Return how often, at most, a stretch of calibrated forecasts would be as far off as here.

    Proved rather than simulated, by Bernstein's inequality for every stretch, above and below, and
    the sum over all of them. So it is conservative, but it can be smaller than any simulated
    p-value. Not for real weights.
    """
    marks = marks_of(tally)
    sums = _sums(tally, marks.at, tally.ones[None])
    number = len(marks.at) * (len(marks.at) - 1) // 2
    return min(1.0, 2 * number * math.exp(-float(_most(sums)[0]) / 2))


def witness_base(f: NDArray[np.float64], surplus: NDArray[np.float64]) -> float:
    """Return the level with the most surplus where f is above it and shortfall where it is not.

    0 if that level lies outside.
    """
    order = np.argsort(f, kind="stable")
    levels = f[order]
    below = np.cumsum(surplus[order])
    contrast = np.where(np.diff(levels) > 1e-12, below[-1] - 2 * below[:-1], -np.inf)
    if not len(contrast) or contrast.max() <= abs(below[-1]):
        return 0.0
    best = int(np.argmax(contrast))
    return float(levels[best] + levels[best + 1]) / 2


def _stretch(
    cells: Cells, start: int, end: int, p_value: float = math.nan, alone: bool = True
) -> Stretch:
    """Return the cells from one index to before another, as one."""
    part = Tally(
        *(column[start:end] for column in (cells.tally.p, cells.tally.zeros, cells.tally.ones))
    )
    rounds = part.total
    mean = float(part.p @ part.weights) / rounds
    noise = (
        math.nan
        if part.weighted
        else math.sqrt(float(part.p * (1 - part.p) @ part.weights)) / rounds
    )
    low, high = float(cells.low[start]), float(cells.high[end - 1])
    rate = float(part.ones.sum() / rounds)
    return Stretch(low, high, rounds, min(max(mean, low), high), rate, noise, p_value, alone)


class _Sums(NamedTuple):
    """Up to each mark: the sum of y - p in each of several sets of outcomes, and its variance."""

    surplus: NDArray[np.float64]
    variance: NDArray[np.float64]

    def squared_deviation(self, first: Any, last: Any) -> NDArray[np.float64]:
        """Return how many deviations, squared, the surplus between two marks is away from 0.

        In the sense of Bernstein's inequality: by chance z**2 is exceeded with a probability of at
        most 2 exp(-z**2 / 2), however few the rounds and rare the outcomes.
        """
        surplus = np.abs(self.surplus[..., last] - self.surplus[..., first])
        variance = np.maximum(self.variance[last] - self.variance[first], 0)
        return np.asarray(surplus**2 / (variance + surplus / 3 + 1e-300))


class _Simulated(NamedTuple):
    """The smooth error and the largest squared deviation of any stretch.

    Of the rounds first, then of simulated ones.
    """

    errors: NDArray[np.float64]
    deviations: NDArray[np.float64]


class _Search:
    """All stretches between marks, with p-values that allow for all of them."""

    def __init__(self, cells: Cells, marks: Marks, simulated: _Simulated) -> None:
        self.cells, self.marks, self.simulated = cells, marks, simulated
        self.sums = _sums(cells.tally, marks.at, cells.tally.ones[None])
        self._error_unit, self._deviation_unit = (_unit(values) for values in simulated)
        scaled = (simulated.errors / self._error_unit, simulated.deviations / self._deviation_unit)
        self._farthest = np.sort(np.maximum(*scaled))
        self.smooth_p_value = self._as_far(float(scaled[0][0]))

    def p_value(self, deviation: float) -> float:
        """Return how often chance makes any stretch, or the smooth error, as far off as this."""
        return self._as_far(deviation / self._deviation_unit)

    def _as_far(self, scaled: float) -> float:
        """Return in which share of all sets, this one among them, something is as far off."""
        return (len(self._farthest) - int(np.searchsorted(self._farthest, scaled, "left"))) / len(
            self._farthest
        )

    def result(self, uncertainty: Uncertainty) -> Stretches:
        least = min(self.p_value(float(self.simulated.deviations[0])), self.smooth_p_value)
        ranges, halves = (self._between(at) for at in (self.marks.ranges, self.marks.halves))
        (whole,) = self._between(self.marks.at[[0, -1]])
        times = len(self._farthest) - 1
        return Stretches(least, self._off(), ranges, whole, halves, uncertainty, times)

    def _between(self, at: NDArray[np.int64]) -> tuple[Stretch, ...]:
        places = np.searchsorted(self.marks.at, at)
        return tuple(self._stretch(first, last) for first, last in pairwise(places.tolist()))

    def _stretch(self, first: int, last: int) -> Stretch:
        start, end = self.marks.at[[first, last]].tolist()
        return _stretch(self.cells, start, end, self._p_value_between(first, last))

    def _p_value_between(self, first: int, last: int) -> float:
        return self.p_value(float(self.sums.squared_deviation(first, last)[0]))

    def _off(self) -> tuple[Stretch, ...]:
        alone = tuple(self._stretch(*found) for found in self._joined(self._found()))
        return alone or (self._together() if self.smooth_p_value < SIGNIFICANT else ())

    def _found(self) -> list[tuple[int, int]]:
        """Return the stretch that is farthest off and, likewise, those left and right of it."""
        found: list[tuple[int, int]] = []
        left = [(0, len(self.marks.at) - 1)]
        while left:
            start, end = left.pop()
            first, last = _farthest_off(self.sums, start, end)
            if self._p_value_between(first, last) < SIGNIFICANT:
                found.append((first, last))
                left += [(a, b) for a, b in ((start, first), (last, end)) if a < b]
        return sorted(found)

    def _joined(self, found: list[tuple[int, int]]) -> list[tuple[int, int]]:
        joined: list[tuple[int, int]] = []
        for marks in found:
            if joined and self._alike(joined[-1], marks):
                joined[-1] = (joined[-1][0], marks[1])
            else:
                joined.append(marks)
        return joined

    def _alike(self, one: tuple[int, int], other: tuple[int, int]) -> bool:
        """Whether two stretches are off in one direction, and still are when taken as one.

        What lies between must be off in that direction, too, if it is much.
        """
        signs = {self._sign(*one), self._sign(*other)}
        if len(signs) > 1 or not self._p_value_between(one[0], other[1]) < SIGNIFICANT:
            return False
        if one[1] == other[0]:
            return True
        ends = self.cells.tally.weights[self.marks.at[one[1]] : self.marks.at[other[0]]].sum()
        both = self.cells.tally.weights[self.marks.at[one[0]] : self.marks.at[other[1]]].sum()
        likewise = self._sign(one[1], other[0]) in signs
        return bool(
            ends <= _NARROW * both
            or (likewise and self.sums.squared_deviation(one[1], other[0])[0] >= _LIKEWISE)
        )

    def _sign(self, first: int, last: int) -> bool:
        return bool(self.sums.surplus[0, last] > self.sums.surplus[0, first])

    def _together(self) -> tuple[Stretch, ...]:
        """Return the parts of the smooth error's witness.

        Above its base where forecasts are too low, below where they are too high.
        """
        tally = self.cells.tally
        f, surplus = smooth_calibration_witness(tally).f, _surplus(tally, tally.ones)
        above = f > witness_base(f, surplus)
        starts = np.flatnonzero(np.diff(above, prepend=not above[0]))
        sums = np.add.reduceat(surplus, starts)
        ends = np.append(starts[1:], len(f))
        right = np.flatnonzero((sums > 0) == above[starts])
        largest = np.sort(right[np.argsort(-np.abs(sums[right]), kind="stable")])
        return tuple(
            _stretch(self.cells, int(starts[k]), int(ends[k]), self.smooth_p_value, alone=False)
            for k in largest
        )


def _unjudged(cells: Cells, marks: Marks) -> Stretches:
    parts = (
        tuple(_stretch(cells, start, end) for start, end in pairwise(at.tolist()))
        for at in (marks.ranges, marks.at[[0, -1]], marks.halves)
    )
    ranges, (whole,), halves = parts
    return Stretches(math.nan, (), ranges, whole, halves, None, 0)


def _uncertainty(
    error: float, others: NDArray[np.float64], search: _Search, level: float
) -> Uncertainty:
    """Return how sure the smooth error is, in agreement with all that was looked at."""
    lower, upper = quantiles(others, (1 - level) / 2, (1 + level) / 2)
    p_value = search.smooth_p_value
    by_chance = float(search.simulated.errors[1:].mean())
    lower = min(lower, 0.0) if p_value >= (1 - level) / 2 else lower
    return Uncertainty(error, lower, upper, level, by_chance, p_value)


def _simulated(tally: Tally, at: NDArray[np.int64], chance: Iterator[Counts]) -> _Simulated:
    """Return how far off the outcomes are: as they are, and as they would be by chance."""
    errors: list[NDArray[np.float64]] = []
    deviations = []
    for zeros, ones in chain([(tally.zeros[None], tally.ones[None])], chance):
        errors += _smooth_errors(tally, [(zeros, ones)])
        deviations.append(_most(_sums(tally, at, ones)))
    return _Simulated(np.concatenate(errors), np.concatenate(deviations))


def _smooth_errors(tally: Tally, resamples: Iterable[Counts]) -> Iterator[NDArray[np.float64]]:
    """Yield the smooth calibration error of each of many resamples, batch by batch."""
    for zeros, ones in resamples:
        found = np.empty(len(ones))
        _core.smooth_errors(tally.p, zeros, ones, float(tally.total), found)
        yield found


def _unit(values: NDArray[np.float64]) -> float:
    """Return what one set in twenty exceeds.

    In this unit the smooth error and the stretches have equal chances.
    """
    return max(*quantiles(values, 1 - SIGNIFICANT), 1e-300)


def _surplus(tally: Tally, ones: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(ones * (1 - tally.p) - (tally.weights - ones) * tally.p)


def _sums(tally: Tally, at: NDArray[np.int64], ones: NDArray[Any]) -> _Sums:
    surplus = np.add.reduceat(_surplus(tally, ones), at[:-1], axis=-1)
    variance = np.add.reduceat(tally.weights * tally.p * (1 - tally.p), at[:-1])
    before = np.zeros((len(surplus), 1))
    return _Sums(
        np.hstack((before, np.cumsum(surplus, axis=-1))), np.append(0.0, np.cumsum(variance))
    )


def _most(sums: _Sums) -> NDArray[np.float64]:
    """Return the largest squared deviation of any stretch, in each set of outcomes."""
    most = np.empty(len(sums.surplus))
    _core.farthest_off(sums.surplus, sums.variance, most)
    return most


def _farthest_off(sums: _Sums, start: int, end: int) -> tuple[int, int]:
    """Return the marks of the stretch that is farthest off in the first set of outcomes."""
    marks = np.arange(start, end + 1)
    deviations = np.triu(sums.squared_deviation(marks[:, None], marks[None, :])[0], 1)
    first, last = np.unravel_index(int(np.argmax(deviations)), deviations.shape)
    if first == last:  # nothing is off at all
        return start, end
    return start + int(first), start + int(last)
