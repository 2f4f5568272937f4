"""Distances against the number of rounds: what is drawn of a tournament, and how."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from truecast._names import cut_in_the_middle, short_names
from truecast.arena.adversaries.base import Sees
from truecast.errors import InputError
from truecast.plot.style import (
    COLORS,
    DASHES,
    GREY,
    MARKERS,
    fitting,
    ink,
    name_ends,
    new_figure,
    quiet,
    room,
    width_of,
)

if TYPE_CHECKING:
    from truecast.arena.results import Results
    from truecast.arena.rows import Row

__all__ = ["Curve", "Curves", "Panel"]

_COLOURS: dict[Sees, str] = {"nothing": COLORS[0], "distribution": COLORS[1], "forecast": COLORS[2]}
_NAME = 100  # points: the longest name of a forecaster in a legend
_SIZE = 9  # points: all words, which a page that makes the figure smaller would make too small
_PAGE = 7.2  # inches: the figure if there is none, about as wide as a column of a page
_WIDE = 7.0  # inches of the narrowest figure
_HIGH = 1.5  # inches of the lowest line of panels
_SEES: dict[Sees, str] = {
    "nothing": "adversaries who see nothing",
    "distribution": "who see what may be forecast, and how likely",
    "forecast": "who see the forecast",
}


class Curve(NamedTuple):
    """Numbers of rounds, and a value for each."""

    rounds: tuple[int, ...]
    values: tuple[float, ...]

    @classmethod
    def of(cls, values: Mapping[int, float]) -> Curve:
        """Return a curve in order of the rounds."""
        return cls(tuple(sorted(values)), tuple(values[rounds] for rounds in sorted(values)))


@dataclass(frozen=True)
class Panel:
    """A forecaster's distances, or rather the upper bounds on them.

    Attributes
    ----------
    forecaster : str
        Its name.
    adversaries : mapping
        The worst over seeds, for each adversary.
    worst : Curve
        The worst of them all.
    against : str
        Whose it is in the longest game.
    bound : Curve or None
        What was proved before the first round, if it is about the distance.
    """

    forecaster: str
    adversaries: Mapping[str, Curve]
    worst: Curve
    against: str
    bound: Curve | None


@dataclass(frozen=True)
class Curves:
    """A panel for every forecaster, and what each adversary sees."""

    panels: tuple[Panel, ...]
    sees: Mapping[str, Sees]

    @classmethod
    def of(cls, results: Results) -> Curves:
        """Return the curves of a tournament."""
        panels = (
            _panel(name, [row for row in results.rows if row.forecaster == name])
            for name in results.forecasters
        )
        return cls(tuple(panels), {row.adversary: row.sees for row in results.rows})

    def draw(self, figure: Any = None) -> Any:
        """Draw an overview and all panels on a matplotlib figure, or on a new one; return it."""
        columns = 4
        lines = 2 + math.ceil(len(self.panels) / columns)
        if figure is None:
            figure = new_figure(_PAGE, 1.75 * lines + 1.2)
        _large_enough(figure, lines)
        grid = figure.add_gridspec(lines, columns)
        overview, axes = figure.add_subplot(grid[:2, :3]), None
        for at, panel in enumerate(self.panels):
            line, column = divmod(at, columns)
            axes = figure.add_subplot(grid[line + 2, column], sharex=axes, sharey=axes)
            self.draw_panel(axes, panel)
            lowest = at + columns >= len(self.panels)
            axes.tick_params(labelleft=column == 0, labelbottom=lowest)
            axes.set_xlabel("T, rounds" if lowest else "", fontsize=_SIZE)
        if axes is not None:
            style = {"frameon": False, "fontsize": _SIZE, "loc": "outside lower center"}
            figure.legend(*self._legend(axes), ncols=2, **style)
        self.draw_overview(overview, in_layout=False)  # last, beside what has its place
        return figure

    def draw_overview(self, axes: Any, *, in_layout: bool = True) -> None:
        """Draw every forecaster's worst distance on matplotlib axes, with its name at its end.

        Names stand to the right of the axes, which give way to them if `in_layout`.
        """
        order = sorted(self.panels, key=lambda panel: -panel.worst.values[-1])
        labels = short_names(
            (panel.forecaster for panel in order), lambda text: width_of(text, _SIZE) <= _NAME
        )
        for panel, label in zip(order, labels, strict=True):
            at = self.panels.index(panel)
            style = {"color": COLORS[at % len(COLORS)], "marker": MARKERS[at % len(MARKERS)]}
            dashes = DASHES[at // len(COLORS) % len(DASHES)]
            axes.plot(*panel.worst, label=label, ls=dashes, lw=1.3, ms=5, mfc="none", **style)
        self._reference(axes)
        _scales(axes)
        width, height = room(axes)
        axes.set_title(
            fitting(["worst of all adversaries and seeds", "worst of all"], 0.7 * width, 10),
            fontsize=10,
        )
        axes.set_xlabel("T, rounds", fontsize=_SIZE)
        axes.set_ylabel(
            fitting(["distance to calibration, in total", "distance, in total"], height, _SIZE),
            fontsize=_SIZE,
        )
        lines = [(line, *line.get_xydata()[-1]) for line in axes.lines if len(line.get_xdata())]
        ends = [(line.get_label(), float(x), float(y), line.get_color()) for line, x, y in lines]
        name_ends(axes, ends, _SIZE, in_layout=in_layout)

    def draw_panel(self, axes: Any, panel: Panel) -> None:
        """Draw a forecaster's distances against each adversary on matplotlib axes."""
        for name, curve in panel.adversaries.items():
            axes.plot(*curve, label=name, lw=0.9, color=_COLOURS[self.sees[name]])
        if panel.bound is not None:
            _draw_bound(axes, panel.bound, color=GREY, lw=3.5, zorder=1, label="proved bound")
        self._reference(axes)
        _scales(axes)
        name = cut_in_the_middle(
            panel.forecaster, lambda text: width_of(text, _SIZE) <= room(axes)[0]
        )
        axes.set_title(name, fontsize=_SIZE, pad=3)
        where = {"transform": axes.transAxes, "va": "top", "fontsize": _SIZE}
        most = 1.15 * room(axes)[0] - 6  # the layout gives more
        against = cut_in_the_middle(
            f"worst: {panel.against}", lambda text: width_of(text, _SIZE) <= most
        )
        axes.text(0.03, 0.97, against, color=ink(axes), **where)

    def _reference(self, axes: Any) -> None:
        rounds = {rounds for panel in self.panels for rounds in panel.worst.rounds}
        theirs = Curve.of({number: 2 * math.sqrt(number) + 1 for number in rounds})
        _draw_bound(axes, theirs, color=ink(axes), ls=":", lw=1.3, zorder=2, label="2 sqrt(T) + 1")

    def _legend(self, axes: Any) -> tuple[list[Any], list[str]]:
        """Return an entry for each thing that adversaries see, and for the bounds."""
        from matplotlib.lines import Line2D

        seen = [sees for sees in _SEES if sees in self.sees.values()]
        entries = {_SEES[sees]: Line2D([], [], color=_COLOURS[sees]) for sees in seen}
        entries["proved bound"] = Line2D([], [], color=GREY, lw=3.5)
        entries["2 sqrt(T) + 1"] = Line2D([], [], color=ink(axes), ls=":", lw=1.3)
        return list(entries.values()), list(entries)


def _large_enough(figure: Any, lines: int) -> None:
    """Refuse a figure in which nothing could be read, before anything is drawn."""
    width, height = figure.bbox.width / figure.dpi, figure.bbox.height / figure.dpi
    if width < _WIDE or height < _HIGH * lines:
        size = f"at least {_WIDE:g} by {_HIGH * lines:g} inches for {lines} lines of panels"
        rule = (
            f"must be {size}; to draw less, use curves().draw_overview(axes) "
            "or draw_panel(axes, panel)"
        )
        raise InputError("figure", rule, f"{width:.3g} by {height:.3g} inches")


def _panel(name: str, rows: list[Row]) -> Panel:
    worst: dict[int, float] = {}
    against: dict[str, dict[int, float]] = {}
    for row in rows:
        for values in (worst, against.setdefault(row.adversary, {})):
            values[row.rounds] = max(values.get(row.rounds, 0.0), row.upper)
    bound = {
        row.rounds: row.bound for row in rows if row.bound is not None and row.bounds == "distance"
    }
    curves = {adversary: Curve.of(values) for adversary, values in against.items()}
    last = max(rows, key=lambda row: (row.rounds, row.upper))
    return Panel(name, curves, Curve.of(worst), last.adversary, Curve.of(bound) if bound else None)


def _draw_bound(axes: Any, bound: Curve, *, lw: float, **style: Any) -> None:
    """Draw a line, or a dash where it would be but a point."""
    dash = {"marker": "_", "ms": 14, "mew": lw} if len(bound.rounds) == 1 else {}
    axes.plot(*bound, lw=lw, **style, **dash)


def _scales(axes: Any) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log", nonpositive="mask")
    axes.minorticks_off()
    quiet(axes, _SIZE)
