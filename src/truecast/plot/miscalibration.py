"""Where the miscalibration is: the smooth calibration error, split by forecast."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecast.measures.finder import Stretch, Stretches, stretches, witness_base
from truecast.measures.scores import brier_score
from truecast.measures.smooth import SmoothWitness, smooth_calibration_witness
from truecast.plot.spread import even_edges, frozen, in_bins
from truecast.plot.style import (
    TOO_LOW_HIGH,
    decimals,
    few_ticks,
    ink,
    label,
    new_figure,
    quiet,
    room,
    tidy,
    width_of,
)
from truecast.tally import Tally, as_tally, distinct
from truecast.tally import stretches as parts_of

__all__ = ["Miscalibration", "miscalibration"]

_POINTS = 512  # of the line, at most


@dataclass(frozen=True, eq=False)
class Miscalibration:
    """What `miscalibration` returns.

    Attributes
    ----------
    error : float
        The smooth calibration error, per round: the sum of `overall` and of all contributions.
    overall : float
        The part of it because all forecasts together are too high or too low: `base` times `bias`.
    bias : float
        Mean outcome minus mean forecast.
    brier : float
        The Brier score of the same forecasts, which also measures sharpness.
    total : int or float
        Rounds, or their weight.
    p, f : arrays
        At most 512 of the forecasts, and the function that attains the error at each: in [-1, 1],
        changing no faster than p.
    base : float
        A level of f: where f is above it, forecasts were too low on balance, and where f is below
        it, too high. That holds for every level, since f is only fixed up to a constant if the bias
        is 0; this level separates them best. It is 0 unless stretches differ in direction.
    edges : array
        Of bins of equal width, as in `ReliabilityDiagram`.
    counts : array
        Rounds in each bin, or their weight.
    gaps : array
        The sum of y - p in each bin, over all rounds: these add up to the bias.
    contributions : array
        The sum of (y - p) (f(p) - base) in each bin, over all rounds.
    stretches : tuple of Stretch
        Where forecasts are off beyond chance, as `truecast.stretches` finds it.
    """

    error: float
    overall: float
    bias: float
    brier: float
    total: int | float
    p: NDArray[np.float64] = field(repr=False)
    f: NDArray[np.float64] = field(repr=False)
    base: float
    edges: NDArray[np.float64] = field(repr=False)
    counts: NDArray[Any] = field(repr=False)
    gaps: NDArray[np.float64] = field(repr=False)
    contributions: NDArray[np.float64] = field(repr=False)
    stretches: tuple[Stretch, ...] = field(repr=False)

    def draw(self, axes: Any = None) -> Any:
        """Draw on matplotlib axes, or on those of a new figure; return the figure.

        Bars are the gaps as a share of all rounds, upwards where forecasts were too low. The line
        is the function above or below its base, on its own scale. The error comes from where both
        are large. Labels mark the stretches that are off beyond chance; those that are off only
        together are shaded less.
        """
        axes = new_figure(5.6, 3.6).add_subplot() if axes is None else axes
        tall = float(abs(self.gaps).max()) or 1.0
        swing = self.f - self.base
        line = swing * (tall / (abs(swing).max() or 1.0))
        for bars, color in zip(
            (np.maximum(self.gaps, 0), np.minimum(self.gaps, 0)), TOO_LOW_HIGH, strict=True
        ):
            axes.stairs(bars, self.edges, fill=True, color=color, lw=0, zorder=3)
        axes.plot(self.p, line, color=ink(axes), lw=1.2, zorder=4)
        axes.axhline(0, color=ink(axes), lw=0.8, zorder=2)
        axes.set_xlim(self.edges[0], self.edges[-1])
        heights = np.concatenate((line, self.gaps, [-0.1 * tall, 0.1 * tall]))
        line_share = 28 / room(axes)[1]  # of the height, for two lines of words
        words = max(0.3, line_share) * float(np.ptp(heights)) / (1 - 2 * max(0.15, line_share))
        axes.set_ylim(heights.min() - words, heights.max() + words)
        quiet(axes)
        few_ticks(axes)
        axes.tick_params(left=False, labelleft=False)
        self._draw_words(axes)
        label(axes, "forecast", "too high  |  too low", self._titles())
        axes.yaxis.label.set_y(min(max(axes.transLimits.transform((0, 0))[1], 0.35), 0.65))
        tidy(axes)
        return axes.figure

    def _draw_words(self, axes: Any) -> None:
        """Shade the stretches that stand out; say by how much they are off, where there is room."""
        low, high = axes.get_xlim()
        width = room(axes)[0]
        taken = {True: list[Any](), False: list[Any]()}
        style = {
            "ha": "center",
            "fontsize": "small",
            "color": ink(axes),
            "transform": axes.transAxes,
            "zorder": 5,
        }
        least = 0.004 * (high - low)  # of a single forecast, too, something must be seen
        for stretch in sorted(
            self.stretches, key=lambda stretch: -stretch.rounds * abs(stretch.gap)
        ):
            above = stretch.gap > 0
            shade = {
                "color": TOO_LOW_HIGH[not above],
                "alpha": 0.15 if stretch.alone else 0.07,
                "lw": 0,
                "zorder": 1,
            }
            wider = max(0.0, least - (stretch.high - stretch.low) / 2)
            axes.axvspan(stretch.low - wider, stretch.high + wider, **shade)
            text = f"too {'low' if above else 'high'}\nby {abs(stretch.gap):.2g}"
            half = width_of(text, "small") / 2 + 3
            middle = ((stretch.low + stretch.high) / 2 - low) / (high - low) * width
            x = min(max(middle, half), width - half)
            if all(x + half <= left or right <= x - half for left, right in taken[above]):
                taken[above].append((x - half, x + half))
                y, side = (0.97, "top") if above else (0.03, "bottom")
                axes.text(x / width, y, text, va=side, **style)
        if not self.stretches:
            text = "nothing stands out from chance"
            if not isinstance(self.total, int):
                text = "real weights: chance unknown"
            axes.text(0.5, 0.97, text, va="top", **style)

    def _titles(self) -> list[str]:
        digits = decimals(self.error, self.brier)
        error = f"{self.error:.{digits}f}"
        brier = f"{self.brier:.{digits}f}"
        return [
            f"smooth calibration error {error}, Brier score {brier}\n"
            "bars: outcomes \N{MINUS SIGN} forecasts; line: how much they count",
            f"smCE {error}, Brier {brier}\nbars: outcomes \N{MINUS SIGN} forecasts\nline: how "
            "much they count",
            f"smCE {error}, Brier {brier}",
        ]


def miscalibration(
    y_true: Any | Tally,
    y_prob: Any = None,
    *,
    sample_weight: Any = None,
    bins: int = 50,
    resamples: int | None = None,
    random_state: int | np.random.Generator | None = 0,
) -> Miscalibration:
    """Return where forecasts are too high or too low, and what each part adds to the error.

    The error is the smooth calibration error. Chance adds to it everywhere, of the order of
    1/sqrt(T) in total; `stretches` are where there is more. Several functions may attain the error;
    this one is from `smooth_calibration_witness`.

    Parameters
    ----------
    y_true, y_prob, sample_weight
        As in `Tally.from_predictions`; or a Tally alone.
    bins
        How many parts, all of one width.
    resamples, random_state
        As in `truecast.stretches`.

    Examples
    --------
    >>> where = miscalibration([1, 1, 0, 0] * 20, [0.25, 0.25, 0.75, 0.75] * 20, bins=4)
    >>> where.error, where.brier
    (0.1875, 0.5625)
    >>> where.gaps
    array([ 0.   ,  0.375,  0.   , -0.375])
    >>> where.contributions
    array([0.     , 0.09375, 0.     , 0.09375])
    >>> for stretch in where.stretches:
    ...     print(stretch.low, stretch.high, stretch.rounds, stretch.gap, stretch.p_value)
    0.25 0.25 40 0.75 0.001
    0.75 0.75 40 -0.75 0.001

    Notes
    -----
    O(n log n) in the worst case, after the tally: about 0.8 s for a million distinct forecasts,
    most of it to simulate chance.
    """
    tally = as_tally(y_true, y_prob, sample_weight)
    found = stretches(tally, resamples=resamples, random_state=random_state)
    witness = smooth_calibration_witness(tally)
    return miscalibration_of(tally, witness, found, bins, brier_score(tally))


def miscalibration_of(
    tally: Tally, witness: SmoothWitness, found: Stretches, bins: int, brier: float
) -> Miscalibration:
    """Return the picture of a tally, with what was found of it."""
    some = _thinned(tally.p)
    edges = even_edges(bins, tally)
    surplus = _surplus(tally)
    turns = len({stretch.gap > 0 for stretch in found.off}) > 1
    base = witness_base(witness.f[some], np.add.reduceat(surplus, some)) if turns else 0.0
    bias = float(surplus.sum())
    return Miscalibration(
        error=witness.error,
        overall=base * bias,
        bias=bias,
        brier=brier,
        total=tally.total,
        p=frozen(tally.p[some]),
        f=frozen(witness.f[some]),
        base=base,
        edges=edges,
        counts=in_bins(lambda at: tally.zeros[at] + tally.ones[at], tally.p, edges),
        gaps=in_bins(surplus.__getitem__, tally.p, edges),
        contributions=in_bins(lambda at: (witness.f[at] - base) * surplus[at], tally.p, edges),
        stretches=found.off,
    )


def _surplus(tally: Tally) -> NDArray[np.float64]:
    """Return the sum of y - p at each forecast, over all rounds."""
    surplus = np.empty(len(tally.p))
    for at in parts_of(len(surplus)):
        p, part = tally.p[at], surplus[at]
        np.multiply(tally.ones[at], 1 - p, out=part)
        part -= tally.zeros[at] * p
        part /= tally.total
    return surplus


def _thinned(p: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return which forecasts to keep: the first of each of many cells, and the last of all.

    A line between two values of a function that changes no faster than p does not, either, and
    cannot be far from it.
    """
    if len(p) <= _POINTS:
        return np.arange(len(p))

    def cells(some: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the cells of some forecasts, which do not decrease."""
        share = (p[some] - p[0]) / (p[-1] - p[0])
        return np.asarray((share * (_POINTS - 1)).astype(np.int64))

    # the first forecast in each cell or above it is one of those from `first` to `last`
    wanted = np.arange(_POINTS)
    first = np.zeros(_POINTS, np.int64)
    last = np.full(_POINTS, len(p) - 1)
    while (first < last).any():
        middle = (first + last) // 2
        above = cells(middle) >= wanted
        first, last = np.where(above, first, middle + 1), np.where(above, middle, last)
    return distinct(first)
