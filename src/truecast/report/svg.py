"""What charts are made of: scales, ticks, lines, bars, and columns that tell their values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truecast.report.markup import Markup, number, tag

__all__ = [
    "Scale",
    "bars",
    "box",
    "chart",
    "diamond",
    "dot",
    "hits",
    "line",
    "points",
    "rule",
    "scale",
    "text",
    "ticks",
]

Scale = Callable[[Any], Any]


def chart(label: str, width: float, height: float, parts: Sequence[Markup | None]) -> Markup:
    """Return a chart that a screen reader names by its label."""
    size = f"0 0 {number(width)} {number(height)}"
    return tag("svg", *parts, class_="chart", viewBox=size, role="img", aria_label=label)


def scale(low: float, high: float, start: float, end: float) -> Scale:
    """Return the linear function that takes `low` to `start` and `high` to `end`."""
    return lambda value: (
        start + (np.asarray(value, np.float64) - low) / (high - low) * (end - start)
    )


def ticks(low: float, high: float) -> list[float]:
    """Return some five round numbers from `low` to `high`.

    Examples
    --------
    >>> ticks(0, 1), ticks(0, 0.05)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [0.0, 0.01, 0.02, 0.03, 0.04, 0.05])
    """
    power = 10.0 ** math.floor(math.log10((high - low) / 5))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power * 5.5 >= high - low)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{tick * step:.12g}") for tick in range(first, last + 1)]


def line(xs: ArrayLike, ys: ArrayLike, x: Scale, y: Scale, kind: str) -> Markup:
    """Return a line through points."""
    return tag("polyline", points=points(xs, ys, x, y), class_=kind)


def points(xs: ArrayLike, ys: ArrayLike, x: Scale, y: Scale) -> str:
    """Return the points that are at least a pixel from the one before; and the last one."""
    kept: list[tuple[float, float]] = []
    for point in zip(x(xs).tolist(), y(ys).tolist(), strict=True):
        if not kept or max(abs(point[0] - kept[-1][0]), abs(point[1] - kept[-1][1])) >= 1:
            kept.append(point)
    return " ".join(f"{number(across)},{number(up)}" for across, up in [*kept, point])


def bars(
    edges: NDArray[np.float64], low: NDArray[Any], high: NDArray[Any], x: Scale, y: Scale, kind: str
) -> Markup:
    """Return bars from `low` to `high`, all in one path; none that nobody could see."""
    sides = np.stack((x(edges[:-1]) + 0.5, y(low), x(edges[1:]) - 0.5, y(high)), 1)
    way = "".join(box(*side) for side in sides.tolist() if abs(side[3] - side[1]) > 0.05)
    return tag("path", d=way, class_=kind)


def box(left: float, top: float, right: float, bottom: float) -> str:
    """Return the way around a rectangle."""
    return f"M{number(left)} {number(top)}H{number(right)}V{number(bottom)}H{number(left)}z"


def diamond(x: float, y: float, reach: float) -> str:
    """Return the way around a square that stands on its corner."""
    across, up = (tuple(map(number, (at - reach, at, at + reach))) for at in (x, y))
    return f"M{across[0]} {up[1]}L{across[1]} {up[0]} {across[2]} {up[1]} {across[1]} {up[2]}z"


def dot(x: float, y: float, radius: str = "3.5", kind: str = "dot") -> Markup:
    """Return a dot."""
    return tag("circle", cx=number(x), cy=number(y), r=radius, class_=kind)


def rule(x1: float, y1: float, x2: float, y2: float, kind: str = "axis") -> Markup:
    """Return a straight line."""
    return tag("line", x1=number(x1), y1=number(y1), x2=number(x2), y2=number(y2), class_=kind)


def text(
    x: float, y: float, words: str, anchor: str | None = None, kind: str | None = None
) -> Markup:
    """Return words at a place."""
    return tag("text", words, x=number(x), y=number(y), text_anchor=anchor, class_=kind)


def hits(
    edges: NDArray[np.float64], x: Scale, top: float, bottom: float, tips: Sequence[str | None]
) -> list[Markup]:
    """Return a column over each bin that tells its values; none where there is nothing to tell."""
    return [
        tag("path", tag("title", tip), d=box(left, top, right, bottom), class_="hit")
        for left, right, tip in zip(
            x(edges[:-1]).tolist(), x(edges[1:]).tolist(), tips, strict=True
        )
        if tip
    ]
