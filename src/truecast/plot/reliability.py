"""The reliability diagram: ranges, curve, band, histogram, and the parts of the scores."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecast import _check
from truecast._names import rounds_or_weight
from truecast.errors import InputError
from truecast.measures.corp import Decomposition, ReliabilityCurve, reliability_curve
from truecast.measures.finder import Stretch, Stretches, stretches
from truecast.measures.uncertainty import Band, reliability_band
from truecast.plot.spread import even_edges, in_bins
from truecast.plot.style import (
    BLUE,
    BLUE_WASH,
    GREY,
    LEGEND,
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
from truecast.tally import Tally, as_tally

__all__ = ["ReliabilityDiagram", "reliability_diagram"]

LINE = 14  # points that a line of the legend takes
_STRIP = 0.28  # of the height: how much more the histograms take
_FEW = 20  # forecasts between which nothing is drawn
_BAND = 200  # resamples
_CELLS = 1 << 10  # of what is shown, to be resampled
_MOST_CELLS = 1 << 14  # of [0, 1]


@dataclass(frozen=True, eq=False)
class ReliabilityDiagram:
    """What `reliability_diagram` returns.

    Attributes
    ----------
    ranges : tuple of Stretch
        About ten ranges of forecasts with equal numbers of rounds, as far as ties allow, with their
        mean forecasts and outcomes. Unlike the curve, they can decrease. Those that are `off` are
        further from the diagonal than chance explains, after adjusting for the search.
    curve : ReliabilityCurve
        The CORP curve: of all fixed curves that increase with the forecast, the one that fits
        outcomes best.
    band : Band or None
        Where the curve of calibrated forecasts would be by chance, at each single forecast; None
        for real weights.
    edges : array
        Of the histogram, from 0 to 1. They end at a round number after the last forecast if all are
        below 1/4, and start at one before the first if all are above 3/4.
    zeros, ones : arrays
        Rounds in each bin by outcome, or their weight.
    total : int or float
        All rounds, or their weight.
    brier, log : Decomposition
        score = miscalibration - discrimination + uncertainty.
    level : float
        Of the band, and of the ranges' intervals.
    """

    ranges: tuple[Stretch, ...] = field(repr=False)
    curve: ReliabilityCurve = field(repr=False)
    band: Band | None = field(repr=False)
    edges: NDArray[np.float64] = field(repr=False)
    zeros: NDArray[Any] = field(repr=False)
    ones: NDArray[Any] = field(repr=False)
    total: int | float
    brier: Decomposition
    log: Decomposition
    level: float

    def draw(self, axes: Any = None, *, within: tuple[float, float] | None = None) -> Any:
        """Draw the diagram on matplotlib axes, or on those of a new figure; return the figure.

        Dots are the ranges, at their mean forecasts and mean outcomes, sized by their share of the
        rounds, each with its own Wilson interval: blue if forecasts were too low, orange if too
        high. Diamonds are off beyond chance, after adjusting for the search. The thin line is the
        best increasing curve. The histograms below show forecasts with outcome 1 upwards and with
        outcome 0 downwards, on one scale. `within` limits the range of forecasts shown, so that a
        few extreme ones do not make the rest small; by default it is all edges.
        """
        axes = new_figure(4.6, 4.6).add_subplot() if axes is None else axes
        span = self.span(within)
        return self.draw_on(axes, span, self.rates(span))

    def draw_on(self, axes: Any, span: tuple[float, float], rates: tuple[float, float]) -> Any:
        """Draw the diagram on axes that show these spans of forecasts and of mean outcomes."""
        (low, high), (bottom, top) = span, rates
        strip = _STRIP * (top - bottom)
        rim = 0.015
        axes.plot([0, 1], [0, 1], color=ink(axes), ls=(0, (2, 2)), lw=1, zorder=2)
        self._draw_band(axes)
        self._draw_curve(axes)
        self._draw_ranges(axes)
        axes.set_xlim(low - rim * (high - low), high + rim * (high - low))
        ticks = axes.yaxis.get_major_locator().tick_values(bottom, top)
        axes.set_yticks([tick for tick in ticks if bottom <= tick <= top])
        axes.set_ylim(bottom - strip, top + rim * (top - bottom))
        quiet(axes)
        few_ticks(axes)
        self._draw_histograms(axes, bottom, strip)
        label(axes, "forecast", "mean outcome", self._titles())
        self._draw_legend(axes, span)
        tidy(axes)
        return axes.figure

    def span(self, within: Any = None) -> tuple[float, float]:
        """Return which forecasts to show: those `within`, which must be a range, or all."""
        if within is None:
            return float(self.edges[0]), float(self.edges[-1])
        if not isinstance(within, tuple | list) or len(within) != 2:
            raise InputError("within", "must be two numbers, a lower and an upper limit", within)
        low, high = (_check.probability("within", end) for end in within)
        if not low < high:
            raise InputError("within", "must be two numbers, the smaller first", within)
        return low, high

    def rates(self, span: tuple[float, float]) -> tuple[float, float]:
        """Return the span of mean outcomes to show: that of forecasts and of most rates."""
        low, high = span
        if high - low == 1:
            return 0.0, 1.0
        seen = (self.curve.upper >= low) & (self.curve.lower <= high)
        if not seen.any():
            return low, high
        shares = np.cumsum((self.curve.zeros + self.curve.ones)[seen])
        at = np.minimum(
            np.searchsorted(shares, shares[-1] * np.array([0.01, 0.99])), len(shares) - 1
        )
        rates = self.curve.rate[seen][at].tolist() + [
            part.rate for part in self.ranges if low <= part.forecast <= high
        ]
        first, last = min(rates), max(rates)
        beyond = 0.05 * max(last - first, high - low)
        return max(0.0, min(low, first - beyond)), min(1.0, max(high, last + beyond))

    def _draw_band(self, axes: Any) -> None:
        if self.band is None:
            return
        band = self.band
        name = f"{100 * band.level:.3g} % if calibrated"
        style = {"color": GREY, "zorder": 1, "label": name}
        if len(band.p) > _FEW:
            axes.fill_between(band.p, band.lower, band.upper, alpha=0.4, lw=0, **style)
        else:  # between a few forecasts there is nothing
            axes.vlines(
                band.p, band.lower, band.upper, alpha=0.6, lw=6 if len(band.p) < 10 else 3, **style
            )

    def _draw_curve(self, axes: Any) -> None:
        curve = self.curve
        ends = np.stack((curve.lower, curve.upper), axis=1).reshape(-1)
        style = {"color": BLUE, "lw": 0.9, "alpha": 0.8, "zorder": 3}
        name = "best increasing curve (CORP)"
        axes.plot(ends, np.repeat(curve.rate, 2), label=name, **style)

    def _draw_ranges(self, axes: Any) -> None:
        ways = dict(zip(("too low", "too high"), TOO_LOW_HIGH, strict=True))
        for (way, color), marked in product(ways.items(), (False, True)):
            here = (part for part in self.ranges if (part.gap < 0) == (way == "too high"))
            parts = [part for part in here if part.off == marked]
            if not parts:
                continue
            forecasts, rates, share = np.array(
                [(part.forecast, part.rate, part.rounds / self.total) for part in parts]
            ).T
            if isinstance(self.total, int):
                low, high = np.array([part.interval(self.level) for part in parts]).T
                axes.vlines(forecasts, low, high, color=color, lw=1.2, zorder=4)
            style = {"color": color, "marker": "D" if marked else "o", "lw": 0, "zorder": 5}
            axes.scatter(forecasts, rates, s=12 + 160 * share, **style)
        self._name_ranges(axes, ways)

    def _name_ranges(self, axes: Any, ways: dict[str, str]) -> None:
        """Name colours and shapes that are seen, for the legend."""
        seen = {"too high" if part.gap < 0 else "too low" for part in self.ranges}
        names = {f"range of forecasts, {way}": (ways[way], "o") for way in ways if way in seen}
        if any(part.off for part in self.ranges):
            names["off beyond chance"] = ink(axes), "D"
        for name, (color, marker) in names.items():
            axes.scatter([], [], s=28, color=color, marker=marker, lw=0, label=name)

    def _draw_histograms(self, axes: Any, bottom: float, height: float) -> None:
        middle = bottom - 0.55 * height
        reach = 0.4 * height
        beside = {
            "xycoords": ("axes fraction", "data"),
            "textcoords": "offset points",
            "ha": "right",
            "va": "center",
        }
        words = {"color": ink(axes), "fontsize": "small", "linespacing": 0.95}
        # over a curve that leaves
        axes.axhspan(bottom - height, bottom, color=axes.get_facecolor(), lw=0, zorder=5.5)
        most = max(self.ones.max(), self.zeros.max(), 1e-300)
        for counts, up, color in ((self.ones, 1, BLUE), (self.zeros, -1, BLUE_WASH)):
            bars = up * reach * (counts / most)
            axes.stairs(
                middle + bars, self.edges, baseline=middle, fill=True, color=color, lw=0, zorder=6
            )
        # both are read, or none
        axes.annotate("ones\nzeros", (0, middle), (-4, 0), **words, **beside)
        axes.axhline(middle, color=ink(axes), lw=0.5, zorder=7)
        axes.axhline(bottom, color=ink(axes), lw=0.8, zorder=7)

    def _draw_legend(self, axes: Any, span: tuple[float, float]) -> None:
        """Draw the legend in the free corner above the histograms, as far as there is room."""
        width, height = room(axes)
        middle = (self.curve.lower + self.curve.upper) / 2
        seen = (middle >= span[0]) & (middle <= span[1])
        over = float((self.curve.rate - middle)[seen].sum()) > 0
        place: dict[str, Any] = {"loc": "upper left"}
        if over:
            place = {"loc": "lower right", "bbox_to_anchor": (1, _STRIP / (1 + _STRIP))}
        handles, labels = axes.get_legend_handles_labels()
        named = dict(zip(labels, handles, strict=True))
        wanted = sorted(named, key=importance)
        most = min(
            5 if width > 250 else 2 if width > 190 else 1, int(0.7 * height / (1 + _STRIP) / LINE)
        )
        shown = wanted[:most]
        if not shown or width_of(max(shown, key=len), "small") > width - 48:
            return
        axes.legend([named[label] for label in shown], shown, handlelength=1.4, **LEGEND, **place)

    def _titles(self) -> list[str]:
        """The same in more and in fewer words."""
        brier = self.brier
        minus = "\N{MINUS SIGN}"
        parts = (brier.score, brier.miscalibration, brier.discrimination, brier.uncertainty)
        score, miscalibration, sharp, base = (f"{part:.{decimals(*parts)}f}" for part in parts)
        rounds = rounds_or_weight(self.total)
        first = f"{rounds}, Brier score {score}"
        return [
            f"{first}\n= {miscalibration} miscalibration {minus} {sharp} discrimination "
            f"+ {base} uncertainty",
            f"{first}\n= {miscalibration} miscal. {minus} {sharp} discrim. + {base} uncert.",
            f"{first}\n= {miscalibration} MCB {minus} {sharp} DSC + {base} UNC",
            f"{rounds}, Brier {score}\n= {miscalibration} {minus} {sharp} + {base}",
            f"{rounds}\nBrier {brier.score:.{decimals(brier.score)}f}",
        ]


def importance(label: str) -> int:
    """Return the place of a label among those that need to be explained."""
    order = ("off beyond", "too low", "too high", "% if calibrated", "best increasing")
    return next(k for k, words in enumerate(order) if words in label)


def reliability_diagram(
    y_true: Any | Tally,
    y_prob: Any = None,
    *,
    sample_weight: Any = None,
    level: float = 0.9,
    resamples: int | None = None,
    random_state: int | np.random.Generator | None = 0,
    bins: int = 50,
) -> ReliabilityDiagram:
    """Return a reliability diagram: mean outcomes against forecasts, and the effect of chance.

    The curve can only increase with the forecast; the ranges show the rest. Intervals and band hold
    for each single range or forecast: even a calibrated model leaves some of them. Ranges beyond
    chance are `off`. The diagram does not show sharpness: for that, see the discrimination in
    `brier`.

    Parameters
    ----------
    y_true, y_prob, sample_weight
        As in `Tally.from_predictions`; or a Tally alone.
    level
        Of the consistency band of `reliability_band`, and of the ranges' intervals.
    resamples
        How often chance is simulated. None: 200 times for the band, and as in `truecast.stretches`
        for the ranges.
    random_state
        As in `reliability_band`.
    bins
        Of the histogram of forecasts, all of one width. The curve has none.

    Examples
    --------
    >>> diagram = reliability_diagram([0, 0, 1, 1] * 50, [0.2, 0.4, 0.6, 0.8] * 50, bins=5)
    >>> diagram.zeros, diagram.ones
    (array([ 0, 50, 50,  0,  0]), array([ 0,  0,  0, 50, 50]))
    >>> round(diagram.brier.miscalibration, 6), diagram.band.upper.round(2)
    (0.1, array([0.3 , 0.5 , 0.72, 0.88]))

    Notes
    -----
    O(n) after the tally, and about 0.6 s for a million distinct forecasts, most of it to simulate
    chance for the band and the ranges. For the band, forecasts are pooled in 1,024 cells, finer
    than a picture.
    """
    tally = as_tally(y_true, y_prob, sample_weight)
    edges = even_edges(bins, tally)
    return diagram_of(tally, edges, level, resamples, random_state)


def diagram_of(
    tally: Tally,
    edges: NDArray[np.float64],
    level: float,
    resamples: int | None,
    random_state: int | np.random.Generator | None,
    found: Stretches | None = None,
    curve: ReliabilityCurve | None = None,
) -> ReliabilityDiagram:
    """Return the diagram of a tally between the edges, by what was `found` already."""
    level = _check.between("level", level, 0, 1)
    band = None
    if not tally.weighted:
        cells = round(_CELLS / (edges[-1] - edges[0]))
        pooled = tally.coarsened(min(cells, _MOST_CELLS))
        times = _BAND if resamples is None else resamples
        band = reliability_band(pooled, level=level, resamples=times, random_state=random_state)
    if found is None:
        least = None if resamples is None else max(20, resamples)
        found = stretches(tally, resamples=least, random_state=random_state)
    curve = reliability_curve(tally) if curve is None else curve
    sides = (tally.zeros, tally.ones)
    zeros, ones = (in_bins(side.__getitem__, tally.p, edges) for side in sides)
    return ReliabilityDiagram(
        found.ranges, curve, band, edges, zeros, ones, tally.total, curve.brier, curve.log, level
    )
