"""What is wrong with a picture: words that are cut off, stand over each other, or are too small to
be read."""

from __future__ import annotations

from itertools import combinations

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.text import Text


def texts(figure: Figure) -> list[tuple[str, object]]:
    """All that is written, with the box around it."""
    return [(text.get_text(), text.get_window_extent()) for text in words(figure)]


def words(figure: Figure) -> list[Text]:
    """All that is written."""
    found = [
        text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()
    ]
    ticks = {id(label) for axes in figure.findobj(mpl.axes.Axes) for label in hidden_ticks(axes)}
    return [text for text in found if id(text) not in ticks]


def smallest(figure: Figure) -> float:
    """The size of the smallest letters, in points."""
    return min(text.get_fontsize() for text in words(figure))


def hidden_ticks(axes: mpl.axes.Axes) -> list[Text]:
    """Labels of ticks that lie outside of what is shown, or are switched off: they exist, but are
    not drawn."""
    hidden = []
    for axis in (axes.xaxis, axes.yaxis):
        low, high = sorted(axis.get_view_interval())
        slack = 1e-9 * (high - low)
        for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
            inside = axes.axison and low - slack <= tick.get_loc() <= high + slack
            hidden += [
                label
                for label in (tick.label1, tick.label2)
                if not inside or not label.get_visible()
            ]
    return hidden


def flaws(figure: Figure) -> list[str]:
    """What is clipped by the edge of the figure, or written over something else."""
    boxes, edge, found = texts(figure), figure.bbox, []
    for text, box in boxes:
        if (
            box.x0 < edge.x0 - 1
            or box.x1 > edge.x1 + 1
            or box.y0 < edge.y0 - 1
            or box.y1 > edge.y1 + 1
        ):
            found.append(f"clipped: {text!r}")
    for (one, first), (other, second) in combinations(boxes, 2):
        wide = min(first.x1, second.x1) - max(first.x0, second.x0)
        high = min(first.y1, second.y1) - max(first.y0, second.y0)
        if wide > 1 and high > 1:
            found.append(f"over each other: {one!r} and {other!r}")
    for axes in figure.axes:
        legend = axes.get_legend()
        if legend is not None:
            box, around = legend.get_window_extent(), axes.get_window_extent()
            if (
                box.x0 < around.x0 - 1
                or box.x1 > around.x1 + 1
                or box.y0 < around.y0 - 1
                or box.y1 > around.y1 + 1
            ):
                found.append("a legend leaves its axes")
    return found
