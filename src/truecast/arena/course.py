"""The course of one game: what is drawn of a transcript, and how."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from truecast._names import counted
from truecast.arena.yardstick import distance
from truecast.plot.style import COLORS, GREY, fitting, ink, new_figure, quiet, room, tidy, width_of

if TYPE_CHECKING:
    from truecast.arena.transcript import Transcript

__all__ = ["Course"]

blank = partial(new_figure, 7, 5.5)
# more are a picture within the picture: a file with a hundred thousand points is slow to open
_DOTS = 1_000


@dataclass(frozen=True, eq=False)
class Course:
    """A game in time.

    Attributes
    ----------
    title : str
        Who played.
    p : array
        The forecast of each round.
    rate : array
        The share of ones among the `window` outcomes around each round.
    window : int
        About the root of the number of rounds.
    signed : array
        Forecasts minus outcomes, summed up to each round. The distance is at least as large as
        that, either way.
    rounds : array
        After how many rounds the distance was measured.
    lower, upper : array
        Proven bounds on the distance in total after those.
    certificate : float or None
        The forecaster's own bound at the end.
    """

    title: str
    p: NDArray[np.float64] = field(repr=False)
    rate: NDArray[np.float64] = field(repr=False)
    window: int
    signed: NDArray[np.float64] = field(repr=False)
    rounds: NDArray[np.int64] = field(repr=False)
    lower: NDArray[np.float64] = field(repr=False)
    upper: NDArray[np.float64] = field(repr=False)
    certificate: float | None

    @classmethod
    def of(cls, game: Transcript, points: int, rtol: float, time_limit: float) -> Course:
        """Measure a game at this many points of time."""
        rounds = np.unique(np.linspace(0, len(game), points + 1).round().astype(np.int64))
        rounds = rounds[rounds > 0]
        found = [
            distance(game.y[:t], game.p[:t], rtol=rtol, time_limit=time_limit / points).totals
            for t in rounds
        ]
        lower, upper = np.array(found).reshape(-1, 2).T
        window = max(1, round(math.sqrt(len(game))))
        return cls(
            title=f"{game.forecaster}\nagainst {game.adversary}",
            p=game.p,
            rate=_shares(game.y, window),
            window=window,
            signed=np.cumsum(game.p - game.y),
            rounds=rounds,
            lower=lower,
            upper=upper,
            certificate=None if game.certificate is None else game.certificate.bound,
        )

    def draw(self, figure: Any = None) -> Any:
        """Draw forecasts above, distance below, on a matplotlib figure or a new one; return it."""
        figure = blank() if figure is None else figure
        above, below = figure.subplots(2, 1, sharex=True)
        self.draw_forecasts(above)
        self.draw_distance(below)
        above.set_xlabel("")
        width = figure.get_figwidth() * 72 - 10 if hasattr(figure, "get_figwidth") else math.inf
        kinds = "\n".join(line.partition("(")[0] for line in self.title.split("\n"))
        figure.suptitle(fitting([self.title, kinds, ""], width, 9), fontsize=9)
        for axes in (above, below):
            tidy(axes)
        return figure

    def draw_forecasts(self, axes: Any) -> None:
        """Draw the forecasts and the running share of ones on matplotlib axes."""
        t = np.arange(1, len(self.p) + 1)
        share = f"share of ones in the {counted(self.window, 'round')} around"
        share = fitting([share, "share of ones"], room(axes)[0] - 100, 8)
        axes.plot(t, self.rate, color=COLORS[4], lw=1.2, zorder=1, label=share)
        size = min(4.0, max(1.8, 40 / math.sqrt(len(t) + 1)))
        dots = {"ls": "", "marker": ".", "ms": size, "color": COLORS[0], "zorder": 2}
        axes.plot(t, self.p, label="forecast", rasterized=len(t) > _DOTS, **dots)
        axes.set_ylim(-0.03, 1.03)
        axes.set_ylabel(fitting(["probability", "p"], 0.6 * room(axes)[1], 9), fontsize=9)
        _finish(axes, dots=3.0)

    def draw_distance(self, axes: Any) -> None:
        """Draw the distance to calibration so far, and bounds on it, on matplotlib axes."""
        t = np.arange(len(self.signed) + 1)
        signed = np.abs(np.concatenate([[0.0], self.signed]))
        narrow = room(axes)[0] < 220
        distance, off = "distance to calibration", "|sum of forecasts - outcomes|"
        if narrow:
            distance, off = "distance", "|bias|"
        axes.plot(t, 2 * np.sqrt(t) + 1, color=ink(axes), ls=":", lw=1.3, label="2 sqrt(T) + 1")
        if self.certificate is not None:
            mark = {"color": GREY, "marker": "D", "ms": 6, "ls": ""}
            axes.plot(t[-1:], [self.certificate], label="certificate", **mark)
        axes.vlines(self.rounds, self.lower, self.upper, color=COLORS[2], alpha=0.5, lw=3)
        dots = {"color": COLORS[2], "ls": "", "marker": "o", "ms": 3.5, "zorder": 3}
        axes.plot(self.rounds, self.upper, label=distance, **dots)
        axes.plot(t, signed, color=COLORS[1], lw=0.8, label=off)
        axes.set_ylim(bottom=0)
        axes.set_ylabel("in total", fontsize=9)
        _finish(axes)


def _shares(y: NDArray[np.int64], window: int) -> NDArray[np.float64]:
    """Return the share of ones among as many outcomes around each round, fewer at the ends."""
    ones = np.concatenate([[0], np.cumsum(y, dtype=np.int64)])
    start = np.maximum(np.arange(len(y)) - window // 2, 0)
    end = np.minimum(start + window, len(y))
    start = np.maximum(end - window, 0)
    shares: NDArray[np.float64] = (ones[end] - ones[start]) / np.maximum(end - start, 1)
    return shares


def _finish(axes: Any, *, dots: float = 1.0) -> None:
    axes.set_xlabel("T, rounds", fontsize=9)
    quiet(axes, 8)
    names = axes.get_legend_handles_labels()[1]
    # the layout gives more
    columns = next((n for n in (4, 2) if _width(names, n) <= 1.15 * room(axes)[0]), 1)
    style = {
        "fontsize": 8,
        "markerscale": dots,
        "frameon": False,
        "columnspacing": 1.2,
        "labelspacing": 0.2,
        "borderpad": 0.2,
    }
    style |= {"handlelength": 1.5} if columns < 4 else {}
    axes.legend(ncols=columns, loc="lower center", bbox_to_anchor=(0.5, 1.0), **style)


def _width(names: list[str], columns: int) -> float:
    """About how wide a legend of this many columns is, in points."""
    rows = math.ceil(len(names) / columns)
    return sum(
        28 + max(width_of(name, 8) for name in names[at : at + rows])
        for at in range(0, len(names), rows)
    )
