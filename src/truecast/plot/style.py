"""How pictures look: on light and dark grounds, at small sizes, and to the colour-blind."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

__all__ = [
    "BLUE",
    "BLUE_WASH",
    "COLORS",
    "DASHES",
    "GREEN",
    "GREY",
    "LEGEND",
    "MARKERS",
    "ORANGE",
    "PALETTE",
    "TOO_LOW_HIGH",
    "clear",
    "decimals",
    "few_ticks",
    "fitting",
    "ink",
    "label",
    "name_ends",
    "new_figure",
    "quiet",
    "room",
    "tidy",
    "width_of",
]

#: What means the same has the same colour, in plots and on the page: on light and on dark grounds.
#: Plots take the first, which can be seen on both.
PALETTE = {
    "blue": ("#0072B2", "#56B4E9"),  # forecasts too low; the curve; what came true
    "orange": ("#D55E00", "#F0953C"),  # forecasts too high; alarms
    "green": ("#009E73", "#3CC79B"),  # recalibrated forecasts
    "blue-wash": ("#A8CFE6", "#28557A"),  # what did not come true
    "band": ("#D3DAE1", "#38424D"),  # chance
}
BLUE, ORANGE, GREEN, BLUE_WASH = (PALETTE[name][0] for name in list(PALETTE)[:4])
# Okabe and Ito's, without black, which is lost on dark grounds, and yellow, which is on light ones
COLORS = (BLUE, GREEN, ORANGE, "#CC79A7", "#E69F00", "#56B4E9")
TOO_LOW_HIGH = BLUE, ORANGE
# 11, so that 66 pairs are all different
MARKERS = ("o", "s", "^", "D", "v", "x", "+", "<", ">", "p", "*")
DASHES = ("-", "--", "-.")
GREY = "#999999"
#: legends on what is drawn
LEGEND: dict[str, Any] = {
    "fontsize": "small",
    "framealpha": 0.6,
    "edgecolor": "none",
    "borderpad": 0.2,
}
_APART = 6  # pixels between a legend and what is beside it
_ROOMY = 170  # points: axes that are larger each way have room for all words


def new_figure(width: float, height: float) -> Any:
    """Return a figure of this size in inches, in the user's style, that no window shows."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("drawing needs matplotlib: pip install 'truecast[plot]'") from error
    return Figure(figsize=(width, height), layout="constrained")


def ink(axes: Any) -> Any:
    """Return the colour that these axes are labelled in, which can be seen on their ground."""
    return axes.xaxis.label.get_color()


def room(axes: Any) -> tuple[float, float]:
    """Return about how wide and high the axes are, in points; the layout may still change that."""
    box = axes.get_window_extent()
    return box.width * 72 / axes.figure.dpi, box.height * 72 / axes.figure.dpi


def width_of(text: str, size: str | float) -> float:
    """Return how wide a text is in the user's font, in points: that of its longest line."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=size)
    return max(
        text_to_path.get_text_width_height_descent(line, font, False)[0]
        for line in text.split("\n")
    )


def fitting(texts: Sequence[str], width: float, size: str | float) -> str:
    """Return the first of several texts that fits this width in points; the last if none does."""
    return next((text for text in texts if width_of(text, size) <= width), texts[-1])


def label(axes: Any, x: str, y: str, titles: Sequence[str]) -> None:
    """Name both axes, and write the first title above them that fits."""
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(fitting(titles, room(axes)[0], "small"), fontsize="small")


def decimals(*parts: float) -> int:
    """Return how many decimals show two digits of the smallest part, within reason."""
    smallest = min((part for part in parts if part > 0), default=1.0)
    return min(
        max(4, 1 - math.floor(math.log10(smallest))),
        max(4, 4 - math.floor(math.log10(max(1e-9, *parts)))),
    )


def few_ticks(axes: Any) -> None:
    """Leave room between numbers of several digits below axes that show a part of [0, 1]."""
    low, high = axes.get_xlim()
    if high - low < 0.99:
        axes.locator_params(axis="x", nbins=int(min(10, max(2, room(axes)[0] / 42))))


def quiet(axes: Any, size: str | float = "small") -> None:
    """Give the axes a faint grid behind what is drawn, and small labels."""
    axes.grid(color=GREY, alpha=0.35, lw=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=size)


def name_ends(
    axes: Any, ends: Sequence[tuple[str, float, float, str]], size: float, *, in_layout: bool = True
) -> None:
    """Write names to the right of the axes, beside where their lines end, and apart.

    An end is a name, where its line ends, and the colour of the line. With `in_layout` the axes
    give way to the names.
    """
    from matplotlib.patches import ConnectionPatch

    shown = [end for end in ends if axes.yaxis.get_scale() != "log" or end[2] > 0]
    if not shown:
        return
    _lay_out(axes.figure.figure)  # also if these axes are in a part of it
    shown.sort(key=lambda end: end[2])
    place = axes.transData + axes.transAxes.inverted()
    wanted = [float(place.transform((x, y))[1]) for _, x, y, _ in shown]
    width, height = room(axes)
    for (name, x, y, color), at in zip(shown, _apart(wanted, 1.3 * size / height), strict=True):
        begins, ends_at = 1 + 16 / width, 1 + 14 / width
        text = axes.text(begins, at, name, va="center", fontsize=size, transform=axes.transAxes)
        text.set(color=ink(axes), in_layout=in_layout)
        line = ConnectionPatch((x, y), (ends_at, at), axes.transData, axes.transAxes)
        line.set(color=color, lw=0.8, clip_on=False, in_layout=False)
        axes.add_artist(line)


def _apart(places: Sequence[float], gap: float) -> list[float]:
    """Return ascending places moved apart by at least a gap, together as little as can be."""
    blocks: list[list[float]] = []  # of places less their number of gaps, which may not descend
    for number, place in enumerate(places):
        blocks.append([place - number * gap])
        while len(blocks) > 1 and sum(blocks[-2]) / len(blocks[-2]) > np.mean(blocks[-1]):
            blocks[-2:] = [blocks[-2] + blocks[-1]]
    level = [float(np.mean(block)) for block in blocks for _ in block]
    return [one + number * gap for number, one in enumerate(level)]


def tidy(axes: Any) -> None:
    """In a small picture, leave out words that would be cut off or overlap, least needed first."""
    if min(room(axes)) > _ROOMY:
        return
    while any([_drop_legend(axes), _drop_ticks(axes), _drop_words(axes)]):
        pass


def clear(axes: Any, legend: Any) -> None:
    """Show more below the lines, if that frees a legend in the lower right corner; or remove it."""
    _lay_out(axes.figure)
    box, around = legend.get_window_extent(), axes.get_window_extent()
    points = np.concatenate([axes.transData.transform(line.get_xydata()) for line in axes.lines])
    lowest = min(points[points[:, 0] > box.x0 - _APART, 1], default=around.y1)
    covered = (box.y1 + _APART - around.y0) / around.height
    free = (lowest - around.y0) / around.height
    if covered > 0.6:
        legend.remove()
    elif covered > free:
        bottom, top = axes.transScale.transform([(1, limit) for limit in axes.get_ylim()])[:, 1]
        lower = bottom - (top - bottom) * (covered - free) / (1 - covered)
        axes.set_ylim(bottom=axes.transScale.inverted().transform((0, lower))[1])


def _lay_out(figure: Any) -> None:
    """Place all that is drawn, or as much as there is room for as yet."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "constrained_layout not applied", UserWarning)
        figure.draw_without_rendering()


def _drop_ticks(axes: Any) -> bool:
    """Leave out every other number below the axes if they overlap; return whether they did."""
    _lay_out(axes.figure)
    seen = _ticks(axes.xaxis)
    boxes = [tick.label1.get_window_extent() for tick in seen]
    if not any(first.overlaps(second) for first, second in pairwise(boxes)):
        return False
    axes.set_xticks([tick.get_loc() for tick in seen[::2]])
    return True


def _drop_legend(axes: Any) -> bool:
    """Remove a legend that is larger than the axes; return whether there was one."""
    legend = axes.get_legend()
    if legend is None:
        return False
    _lay_out(axes.figure)
    box, around = legend.get_window_extent(), axes.get_window_extent()
    if box.width <= around.width and box.height <= around.height:
        return False
    legend.remove()
    return True


def _drop_words(axes: Any) -> bool:
    """Hide the first words that do not fit, once all is laid out; return whether any were."""
    _lay_out(axes.figure)
    edge = axes.figure.bbox
    ticks = _ticks(axes.xaxis) + _ticks(axes.yaxis)
    kept = [tick.label1.get_window_extent() for tick in ticks]
    for text in (axes.xaxis.label, axes.yaxis.label, axes.title, *axes.texts):
        if not (text.get_visible() and text.get_text()):
            continue
        box = text.get_window_extent()
        if (
            box.x0 < edge.x0
            or box.x1 > edge.x1
            or box.y0 < edge.y0
            or box.y1 > edge.y1
            or box.count_overlaps(kept)
        ):
            text.set_visible(False)
            return True
        kept.append(box)
    return False


def _ticks(axis: Any) -> list[Any]:
    """The ticks of an axis that have a label which is seen."""
    low, high = sorted(axis.get_view_interval())
    shown = (tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high)
    return [tick for tick in shown if tick.label1.get_visible() and tick.label1.get_text()]
