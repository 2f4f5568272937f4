"""Bands for the reliability curve and intervals for any measure, by resampling the tally."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from truecast import _check, _core
from truecast._threads import ahead
from truecast.errors import InputError
from truecast.measures.corp import isotonic_blocks
from truecast.tally import Tally, as_tally

__all__ = ["Band", "Uncertainty", "reliability_band", "resampled", "uncertainty"]

KINDS = ("consistency", "confidence")
_CELLS = 1 << 12
_BATCH = 512  # resamples drawn at a time: tables are read once for all of them
_NOTHING = 1e-9  # rounding

Counts = tuple[NDArray[np.int64], NDArray[np.int64]]  # zeros and ones

if TYPE_CHECKING:
    _Source = np.random.Generator | NDArray[np.uint64]  # of chance: a generator, or what one gave


@dataclass(frozen=True, eq=False)
class Band:
    """What `reliability_band` returns: the expected range of the curve at each forecast.

    Attributes
    ----------
    p : array
        Forecasts, increasing.
    lower, upper : arrays
        The band at each forecast: pointwise, not for all forecasts at once.
    kind : str
        "consistency" or "confidence".
    level : float
    """

    p: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    kind: str
    level: float


@dataclass(frozen=True, slots=True)
class Uncertainty:
    """What `uncertainty` returns.

    Attributes
    ----------
    estimate : float
        The measure of the rounds.
    lower, upper : float
        Its interval, from percentiles of resampled rounds; it starts at 0 if chance explains the
        estimate.
    level : float
        Of that interval.
    if_calibrated : float
        The mean of the measure if the forecasts were calibrated: the effect of chance alone.
    p_value : float
        How often it would then be at least as large as the estimate. Small means not calibrated.
    """

    estimate: float
    lower: float
    upper: float
    level: float
    if_calibrated: float
    p_value: float

    def __str__(self) -> str:
        interval = (
            f"{self.estimate:.6f}, {self.level:.0%} interval {self.lower:.6f} to {self.upper:.6f}"
        )
        return f"{interval}; if calibrated {self.if_calibrated:.6f}, p-value {self.p_value:.3g}"


def reliability_band(
    y_true: Any | Tally,
    y_prob: Any = None,
    *,
    sample_weight: Any = None,
    kind: str = "consistency",
    level: float = 0.9,
    resamples: int = 1000,
    random_state: int | np.random.Generator | None = 0,
) -> Band:
    """Return a band for the curve of `reliability_curve`.

    Parameters
    ----------
    y_true, y_prob, sample_weight
        As in `Tally.from_predictions`; or a Tally alone. Weights must be integers.
    kind
        "consistency": where the curve would be if the forecasts were calibrated; a curve that
        leaves the band is evidence against that. "confidence": where the curve of other rounds like
        these would be.
    level
        Of the band, at each single forecast.
    resamples
        How many. 1,000 take a few tenths of a second.
    random_state
        A seed, a generator, or None. The same seed gives the same band; None gives a different one
        each time.

    Examples
    --------
    >>> band = reliability_band([0, 1] * 200, [0.25, 0.75] * 200)
    >>> band.lower.round(2), band.upper.round(2)
    (array([0.2, 0.7]), array([0.3, 0.8]))

    Notes
    -----
    Resamples the tally, not the rows, after `Tally.coarsened` to at most 4,096 forecasts: none
    moves by as much as 1/4096.
    """
    _check.choice("kind", kind, KINDS)
    tally, level = _coarse(y_true, y_prob, sample_weight), _check.between("level", level, 0, 1)
    draws = resampled(tally, kind, resamples, random_state)
    curves = np.array([_curve(tally.p, zeros, ones) for zeros, ones in draws])
    lower, upper = np.quantile(curves, [(1 - level) / 2, (1 + level) / 2], axis=0)
    for side in (lower, upper):
        side.setflags(write=False)
    return Band(tally.p, lower, upper, kind, level)


def uncertainty(
    measure: Callable[[Tally], float],
    y_true: Any | Tally,
    y_prob: Any = None,
    *,
    sample_weight: Any = None,
    level: float = 0.9,
    resamples: int = 1000,
    random_state: int | np.random.Generator | None = 0,
) -> Uncertainty:
    """Return how sure a measure is, and what it would be for calibrated forecasts.

    Most measures of calibration are never negative, and chance makes them larger: read
    `if_calibrated` and `p_value` before the interval. The interval uses bootstrap percentiles. For
    a measure that is 0 for calibrated forecasts, it starts at 0 unless the p-value is below (1 -
    level)/2. For small errors it is biased slightly upward. Everything here assumes independent
    rounds.

    Parameters
    ----------
    measure
        A function of a Tally, such as `smooth_calibration_error`; pass options with
        ``functools.partial`` or a lambda. With more than 4,096 distinct forecasts it must be
        continuous in them, unlike the error by value.
    y_true, y_prob, sample_weight
        As in `Tally.from_predictions`; or a Tally alone. Weights must be integers.
    level, resamples, random_state
        As in `reliability_band`; at least 20 resamples.

    Examples
    --------
    >>> import truecast as tc
    >>> sure = tc.uncertainty(tc.brier_score, [0, 0, 1, 1] * 50, [0.2, 0.4, 0.6, 0.8] * 50)
    >>> round(sure.estimate, 3), sure.lower < sure.estimate < sure.upper
    (0.1, True)

    Notes
    -----
    The estimate uses the tally unchanged; both kinds of resamples are as in `reliability_band`.
    Twice 1,000 of them take a few tenths of a second, plus 2,000 times the measure of 4,096
    forecasts. They are drawn from tables of their exact laws, up to 2^24 rounds; from NumPy's
    generators beyond.
    """
    if not callable(measure):
        raise InputError("measure", "must be a function of a Tally", measure)
    whole = as_tally(y_true, y_prob, sample_weight)
    tally, level = _coarse(whole), _check.between("level", level, 0, 1)
    resamples = _check.resamples(resamples, most=10**7)
    rng = _check.generator("random_state", random_state)
    estimate, pooled = measure(whole), measure(tally)
    if not isinstance(estimate, (float, int)):
        raise InputError("measure", "must return a number", estimate)
    if abs(estimate - pooled) > 2 / _CELLS:
        rule = (
            "must not depend on forecasts being exactly equal "
            f"(pooled in {_CELLS} cells it is {pooled:.6g})"
        )
        raise InputError(
            "measure", rule + ": pass a Tally that has been coarsened() to fewer values", estimate
        )
    values = {
        kind: np.array([measure(other) for other in resampled_tallies(tally, kind, resamples, rng)])
        for kind in KINDS
    }
    lower, upper = quantiles(values["confidence"], (1 - level) / 2, (1 + level) / 2)
    null = values["consistency"]
    as_large = (1 + int((null >= pooled).sum())) / (1 + len(null))
    if as_large >= (1 - level) / 2 and _of_calibrated(measure, tally) < _NOTHING:
        # resamples of calibrated forecasts never are: without this, none would be covered
        lower = min(lower, 0.0)
    return Uncertainty(float(estimate), lower, upper, level, float(null.mean()), as_large)


def quantiles(values: NDArray[np.float64], *shares: float) -> list[float]:
    """Return quantiles as `np.quantile` does, which imports masked arrays first."""
    ordered = np.sort(values)
    found = []
    for share in shares:
        place = share * (len(values) - 1)
        low = int(place)
        part, gap = place - low, ordered[min(low + 1, len(values) - 1)] - ordered[low]
        near_low = ordered[low] + gap * part
        found.append(float(near_low if part < 0.5 else ordered[low + 1] - gap * (1 - part)))
    return found


def _of_calibrated(measure: Callable[[Tally], float], tally: Tally) -> float:
    """Return the measure of outcomes that are just as forecast.

    Infinite if it does not take parts of rounds.
    """
    try:
        return abs(measure(Tally(tally.p, tally.weights * (1 - tally.p), tally.weights * tally.p)))
    except InputError:
        return float("inf")


def _coarse(y_true: Any | Tally, y_prob: Any = None, sample_weight: Any = None) -> Tally:
    tally = as_tally(y_true, y_prob, sample_weight)
    if tally.weighted:
        raise InputError(
            "sample_weight",
            "must be integers (counts): real weights cannot be resampled",
            "real weights",
        )
    return tally.coarsened(_CELLS)


def resampled(
    tally: Tally, kind: str, resamples: int, random_state: int | np.random.Generator | None
) -> Iterator[Counts]:
    """Yield zeros and ones of each resample, at the forecasts of the tally."""
    resamples = _check.whole_number("resamples", resamples, least=1, most=10**7)
    rng = _check.generator("random_state", random_state)
    for zeros, ones in ahead(resampled_at_once(tally, kind, resamples, rng)):
        yield from zip(zeros, ones, strict=True)


def resampled_at_once(
    tally: Tally, kind: str, resamples: int, rng: np.random.Generator
) -> Iterator[Counts]:
    """Return zeros and ones of many resamples at a time, a row each.

    Up to DRAWN_BY_TABLES rounds, the generator is asked now and not again: others may ask it while
    these are drawn.
    """
    draw = _draw_calibrated if kind == "consistency" else _draw_rounds
    sizes = [min(_BATCH, resamples - start) for start in range(0, resamples, _BATCH)]
    if tally.total > _core.DRAWN_BY_TABLES:
        return draw(tally, rng, sizes)
    keys = rng.integers(0, 1 << 64, resamples, np.uint64)
    return draw(tally, keys, sizes)


def _draw_calibrated(tally: Tally, source: _Source, sizes: Sequence[int]) -> Iterator[Counts]:
    """Yield zeros and ones if the forecasts are calibrated."""
    weights, p = tally.weights, tally.p
    rows: Iterator[NDArray[np.int64]]
    if isinstance(source, np.random.Generator):
        rows = (source.binomial(weights, p, (size, len(p))) for size in sizes)
    else:
        rows = _drawn(_core.CalibratedOnes(weights, p), source, len(p), sizes)
    for ones in rows:
        yield weights - ones, ones


def _draw_rounds(tally: Tally, source: _Source, sizes: Sequence[int]) -> Iterator[Counts]:
    """Yield zeros and ones of rounds drawn with replacement."""
    counts, cells = np.concatenate((tally.zeros, tally.ones)), len(tally.p)
    rows: Iterator[NDArray[np.int64]]
    if isinstance(source, np.random.Generator):
        shares = counts / tally.total
        rows = (source.multinomial(int(tally.total), shares, size) for size in sizes)
    else:
        rows = _drawn(_core.Bootstrap(counts), source, 2 * cells, sizes)
    for both in rows:
        yield both[:, :cells], both[:, cells:]


def _drawn(
    tables: _core.CalibratedOnes | _core.Bootstrap,
    keys: NDArray[np.uint64],
    cells: int,
    sizes: Sequence[int],
) -> Iterator[NDArray[np.int64]]:
    """Yield rows of counts; a row depends on its own key alone."""
    start = 0
    for size in sizes:
        out = np.empty((size, cells), np.int64)
        tables.draw(keys[start : start + size], out)
        yield out
        start += size


def resampled_tallies(
    tally: Tally, kind: str, resamples: int, random_state: int | np.random.Generator | None
) -> Iterator[Tally]:
    """Yield each resample as a tally: unchecked, which would cost more than most measures."""
    for zeros, ones in resampled(tally, kind, resamples, random_state):
        seen = zeros + ones > 0
        if seen.all():
            yield Tally._of(tally.p, zeros, ones, int(tally.total))
        else:
            yield Tally._of(tally.p[seen], zeros[seen], ones[seen], int(tally.total))


def _curve(
    p: NDArray[np.float64], zeros: NDArray[np.int64], ones: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the isotonic rate at every forecast; at those not drawn, between their neighbours."""
    seen = zeros + ones > 0
    starts, block_zeros, block_ones = isotonic_blocks(zeros[seen], ones[seen])
    lengths = np.diff(np.append(starts, int(seen.sum())))
    return np.asarray(
        np.interp(p, p[seen], np.repeat(block_ones / (block_zeros + block_ones), lengths))
    )
