"""The pictures, as SVG: of the same objects as in `truecast.plot`, in the page's colours."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from truecast.report.markup import Markup, number, tag
from truecast.report.numerals import (
    MINUS,
    between,
    count,
    figure,
    p_value,
    percent,
    probability,
    roughly,
    rounds,
)
from truecast.report.numerals import points as points_of
from truecast.report.svg import (
    Scale,
    bars,
    box,
    chart,
    diamond,
    dot,
    hits,
    line,
    points,
    rule,
    scale,
    text,
    ticks,
)

if TYPE_CHECKING:
    from truecast.measures.corp import ReliabilityCurve
    from truecast.measures.finder import Stretch
    from truecast.measures.uncertainty import Band
    from truecast.plot import Miscalibration, ReliabilityDiagram
    from truecast.report.course import TimeCourse

__all__ = [
    "band_of_chance",
    "best_curve",
    "course_chart",
    "evidence_chart",
    "group_strip",
    "miscalibration_chart",
    "reliability_chart",
]

_WIDTH = 400.0  # of a chart
_LEFT = 46.0  # the margin, after which the square begins
_SIDE = 346.0  # of the square
_RIGHT = _LEFT + _SIDE
_MIDDLE = _LEFT + _SIDE / 2


def reliability_chart(diagram: ReliabilityDiagram, label: str) -> Markup:
    """Return the reliability diagram, with the histogram of the forecasts below."""
    low, high = diagram.edges[[0, -1]].tolist()
    top, bottom, base = 24.0, 24.0 + _SIDE, 24.0 + _SIDE + 124.0
    both = diagram.zeros + diagram.ones
    rates = _rates(diagram)
    x, y = scale(low, high, _LEFT, _RIGHT), scale(*rates, bottom, top)
    height = scale(0.0, float(both.max()), base, base - 76.0)
    parts = [
        text(0, 12, "share that came true", kind="label"),
        *_ruled(x, ticks(low, high), top, bottom),
        *(rule(_LEFT, y(tick), _RIGHT, y(tick), "grid") for tick in ticks(*rates)),
        *(text(_LEFT - 6, y(tick) + 4, probability(tick), "end") for tick in ticks(*rates)),
        None if diagram.band is None else band_of_chance(diagram.band, x, y, _SIDE, rates),
        line([low, high], [low, high], x, y, "ideal"),
        best_curve(diagram.curve, x, y),
        text(_LEFT, base - 84, f"how often (highest bar {count(both.max().item())})"),
        bars(diagram.edges, diagram.ones, both, x, height, "zeros"),
        bars(diagram.edges, 0 * both, diagram.ones, x, height, "ones"),
        rule(_LEFT, base, _RIGHT, base),
        text(_MIDDLE, base + 18, "forecast", "middle", "label"),
        *hits(diagram.edges, x, top, base, _reliability_tips(diagram)),
        *(_range(part, diagram, x, y) for part in diagram.ranges),
    ]
    return chart(label, _WIDTH, base + 26, parts)


def miscalibration_chart(picture: Miscalibration, label: str) -> Markup:
    """Return where forecasts were too low (bars up) or too high (down), and weights below."""
    low, high = picture.edges[[0, -1]].tolist()
    top, bottom, roof, floor = 26.0, 226.0, 294.0, 384.0
    x = scale(low, high, _LEFT, _RIGHT)
    least, most = _reach(picture.gaps)
    y = scale(least, most, bottom, top)
    parts = [
        text(0, 12, "too low: it happened more often than forecast", kind="label"),
        text(0, bottom + 24, "too high: it happened less often than forecast", kind="label"),
        *(_marked(part, x, top, bottom) for part in picture.stretches),
        *_ruled(x, ticks(low, high), top, bottom, named=False),
        bars(picture.edges, 0 * picture.gaps, np.maximum(picture.gaps, 0), x, y, "low"),
        bars(picture.edges, 0 * picture.gaps, np.minimum(picture.gaps, 0), x, y, "high"),
        rule(_LEFT, y(0.0), _RIGHT, y(0.0)),
        *(
            text(_LEFT - 6, y(mark) + 4, points_of(mark), "end")
            for mark in _with_room((most, 0.0, least), y)
        ),
        text(0, roof - 12, "how much each gap counts", kind="label"),
        *_ruled(x, ticks(low, high), roof, floor),
        *_weights(picture, x, roof, floor),
        text(_MIDDLE, floor + 36, "forecast", "middle", "label"),
        *hits(picture.edges, x, top, floor, _miscalibration_tips(picture)),
    ]
    return chart(label, _WIDTH, floor + 44, parts)


def group_strip(
    error: float,
    high: float,
    most: float,
    label: str,
    *,
    off: bool = True,
    after: float | None = None,
) -> Markup:
    """Return a group's error as a dot, filled if it is `off`, over a bar of what chance gives."""
    x = scale(0.0, most or 1.0, 5.0, 155.0)
    bar = None
    if not math.isnan(high):
        bar = tag("path", d=box(5.0, 6.0, float(x(high)), 14.0), class_="band")
    dots = [dot(x(error), 10.0, "4", "dot" if off else "dot open")]
    if after is not None:
        dots.append(dot(x(after), 10.0, "4", "dot after"))
    parts = (bar, rule(5.0, 2.0, 5.0, 18.0), *dots)
    return tag("svg", *parts, viewBox="0 0 160 20", role="img", aria_label=label)


def course_chart(course: TimeCourse, label: str) -> Markup:
    """Return mean outcomes over time, block by block, with what was forecast."""
    top, bottom = 24.0, 184.0
    edges = np.arange(len(course.rounds) + 1, dtype=np.float64)
    most = max(float(side.max()) for side in (course.rate, course.forecast + 2 * course.noise))
    high = min(1.0, 1.1 * most) or 1.0
    x, y = scale(0.0, edges[-1], _LEFT, _RIGHT), scale(0.0, high, bottom, top)
    middles = (edges[:-1] + edges[1:]) / 2
    lower, upper = (np.clip(course.forecast + k * course.noise, 0, 1) for k in (-2, 2))
    around = points(np.append(middles, middles[::-1]), np.append(lower, upper[::-1]), x, y)
    marks = ticks(0.0, high)
    after = [] if course.after is None else [line(middles, course.after, x, y, "afterline")]
    parts = [
        text(0, 12, "share that came true, and forecasts", kind="label"),
        *(rule(_LEFT, y(tick), _RIGHT, y(tick), "grid") for tick in marks),
        *(text(_LEFT - 6, y(tick) + 4, probability(tick), "end") for tick in marks),
        tag("polygon", points=around, class_="band"),
        line(middles, course.forecast, x, y, "ideal"),
        *after,
        *(dot(x(at), y(rate), "3") for at, rate in zip(middles, course.rate, strict=True)),
        text(_LEFT, bottom + 18, course.when(course.start[0])),
        text(_RIGHT, bottom + 18, course.when(course.end[-1]), "end"),
        *hits(edges, x, top, bottom, _course_tips(course)),
    ]
    return chart(label, _WIDTH, bottom + 26, parts)


def evidence_chart(course: TimeCourse, label: str) -> Markup:
    """Return the evidence against forecasts over time, on a logarithmic scale."""
    top, bottom = 24.0, 164.0
    watched = [each for each in (course.evidence, course.evidence_after) if each is not None]
    first = watched[0]
    most = max(float(each.evidence.max()) for each in watched)
    high = math.ceil(math.log10(max(10 * first.threshold, most)))
    x = scale(float(first.time[0]), float(first.time[-1]), _LEFT, _RIGHT)
    y = scale(-2.0, float(high), bottom, top)
    marks = range(0, high + 1, max(2, 2 * (high // 8)))
    lines = [
        line(each.time, np.log10(np.clip(each.evidence, 0.01, None)), x, y, kind)
        for each, kind in zip(watched, ("curve", "afterline"), strict=False)
    ]
    began = []
    if first.alarm is not None:
        left, right = float(x(first.earliest)), float(x(first.latest))
        began = [tag("path", d=box(left, top, max(right, left + 1.0), bottom), class_="band")]
        height = float(y(min(math.log10(min(first.alarm.evidence, 1e30)), high)))
        began.append(dot(x(first.came), height, "4", "dot alarm"))
    threshold = float(y(math.log10(first.threshold)))
    parts = [
        text(0, 12, "evidence", kind="label"),
        *(rule(_LEFT, y(mark), _RIGHT, y(mark), "grid") for mark in marks),
        *(text(_LEFT - 6, y(mark) + 4, f"1e{mark}" if mark else "1", "end") for mark in marks),
        *began,
        rule(_LEFT, threshold, _RIGHT, threshold, "ideal"),
        *lines,
        text(_LEFT, bottom + 18, course.when(first.time[0])),
        text(_RIGHT, bottom + 18, course.when(first.time[-1]), "end"),
    ]
    return chart(label, _WIDTH, bottom + 26, parts)


def _course_tips(course: TimeCourse) -> list[str | None]:
    tips: list[str | None] = []
    for k in range(len(course.rounds)):
        ends = course.span(k)
        rates = (
            f"{probability(course.rate[k])} came true, {probability(course.forecast[k])} forecast"
        )
        after = "" if course.after is None else f", {probability(course.after[k])} recalibrated"
        tips.append(f"{ends}\n{rounds(int(course.rounds[k]))}\n{rates}{after}")
    return tips


def _rates(diagram: ReliabilityDiagram) -> tuple[float, float]:
    """Return the range of rates to show: of the forecasts, of the curve and of the ranges."""
    rates = np.concatenate(
        (diagram.edges[[0, -1]], diagram.curve.rate, [part.rate for part in diagram.ranges])
    )
    room = 1.05 if rates.max() > diagram.edges[-1] else 1.0
    return float(rates.min()), min(1.0, room * float(rates.max()))


def _range(part: Stretch, diagram: ReliabilityDiagram, x: Scale, y: Scale) -> Markup:
    """Return a range as a point, as large as its share of the rounds, with its interval."""
    way = "low" if part.gap >= 0 else "high"
    across, up = float(x(part.forecast)), float(y(part.rate))
    radius = 2.5 + 7 * math.sqrt(part.rounds / diagram.total)
    tip = tag("title", _range_tip(part))
    if part.off:
        point = tag(
            "path", tip, d=diamond(across, up, 1.25 * radius), class_=f"hit point {way} off"
        )
    else:
        place = {"cx": number(across), "cy": number(up), "r": number(radius)}
        point = tag("circle", tip, **place, class_=f"hit point {way}")
    if not isinstance(part.rounds, int):
        return point
    low, high = np.clip(part.interval(diagram.level), *_rates(diagram)).tolist()
    return tag("g", rule(across, y(low), across, y(high), f"span {way}"), point)


def _range_tip(part: Stretch) -> str:
    ends = " to ".join(between(part.low, part.high))
    which = f"forecasts {ends}: {rounds(part.rounds)}"
    way = "low" if part.gap > 0 else "high"
    beyond_chance = (
        f"\ntoo {way} beyond chance by itself (p-value {p_value(part.p_value)})" if part.off else ""
    )
    return (
        f"{which}\n{probability(part.forecast)} forecast on average, {probability(part.rate)} came "
        f"true{beyond_chance}"
    )


def _marked(part: Stretch, x: Scale, top: float, bottom: float) -> Markup:
    """Return the ground of a stretch that is off; a single forecast can be seen, too."""
    left, right = float(x(part.low)), float(x(part.high))
    wider = max(0.0, 1.5 - (right - left) / 2)
    kind = f"mark {'low' if part.gap > 0 else 'high'}{'' if part.alone else ' together'}"
    return tag("path", d=box(left - wider, top, right + wider, bottom), class_=kind)


def _reach(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return a range with 0 and all values in it."""
    least, most = min(float(values.min()), 0.0), max(float(values.max()), 0.0)
    return (least, most) if least < most else (-1.0, 1.0)


def _with_room(marks: tuple[float, ...], y: Scale) -> list[float]:
    """Return the marks that have room for their text."""
    kept: list[float] = []
    for mark in sorted(marks, key=abs):
        if all(abs(y(mark) - y(other)) >= 13 for other in kept):
            kept.append(mark)
    return kept


def _mark(value: float) -> str:
    return MINUS * (value < 0) + roughly(value)


def _ruled(
    x: Scale, at: list[float], top: float, bottom: float, *, named: bool = True
) -> list[Markup]:
    lines = [rule(x(tick), top, x(tick), bottom, "grid") for tick in at]
    if not named:
        return lines
    return lines + [text(x(tick), bottom + 17, probability(tick), "middle") for tick in at]


def band_of_chance(
    band: Band, x: Scale, y: Scale, side: float, rates: tuple[float, float] = (0.0, 1.0)
) -> Markup:
    """Return where the curve would be by chance, in a diagram of this side and these rates."""
    p = band.p if len(band.p) < side / 2 else np.linspace(band.p[0], band.p[-1], int(side / 2))
    lower, upper = (
        np.clip(np.interp(p, band.p, ends), *rates) for ends in (band.lower, band.upper)
    )
    if len(p) == 1:
        return rule(x(p[0]), y(lower[0]), x(p[0]), y(upper[0]), "bandline")
    around = points(np.concatenate((p, p[::-1])), np.concatenate((lower, upper[::-1])), x, y)
    return tag("polygon", points=around, class_="band")


def best_curve(curve: ReliabilityCurve, x: Scale, y: Scale) -> Markup:
    """Return the best increasing curve, step by step."""
    ends = np.stack((curve.lower, curve.upper), 1).reshape(-1)
    return line(ends, np.repeat(curve.rate, 2), x, y, "curve")


def _weights(picture: Miscalibration, x: Scale, roof: float, floor: float) -> list[Markup]:
    """Return the weights of gaps above and below their base, a line; a single point is a dot."""
    least, most = _reach(picture.f - picture.base)
    ends = picture.base + least, picture.base + most
    y = scale(*ends, floor, roof)
    marks = [
        text(_LEFT - 6, y(mark) + 4, _mark(mark), "end")
        for mark in _with_room(tuple(ticks(*ends)), y)
    ]
    curve = line(picture.p, picture.f, x, y, "weightline")
    if len(picture.p) == 1:
        curve = dot(x(picture.p[0]), y(picture.f[0]))
    base = y(picture.base)
    return [rule(_LEFT, base, _RIGHT, base), *marks, curve]


def _reliability_tips(diagram: ReliabilityDiagram) -> list[str | None]:
    middles = (diagram.edges[:-1] + diagram.edges[1:]) / 2
    band, chance = diagram.band, [""] * len(middles)
    if band is not None:
        ends = [np.interp(middles, band.p, side).tolist() for side in (band.lower, band.upper)]
        chance = [f", by chance {' to '.join(between(*pair))}" for pair in zip(*ends, strict=True)]
    tips: list[str | None] = []
    for k, (zeros, ones) in enumerate(
        zip(diagram.zeros.tolist(), diagram.ones.tolist(), strict=True)
    ):
        outcomes = f"{rounds(zeros + ones)}, {percent(ones / ((zeros + ones) or 1))} came true"
        curve = f"best increasing curve {probability(float(diagram.curve(middles[k])))}{chance[k]}"
        tips.append(f"{_bin(diagram.edges, k)}\n{outcomes}\n{curve}" if zeros + ones else None)
    return tips


def _miscalibration_tips(picture: Miscalibration) -> list[str | None]:
    tips: list[str | None] = []
    parts = picture.contributions + picture.base * picture.gaps
    for k, (size, gap, part) in enumerate(
        zip(picture.counts.tolist(), picture.gaps, parts, strict=True)
    ):
        gap_text = (
            f"too {'low' if gap > 0 else 'high'} by "
            f"{figure(abs(gap) * picture.total / (size or 1))} on average"
        )
        adds = f"adds {figure(part)} to the smooth calibration error"
        tips.append(
            f"{_bin(picture.edges, k)}\n{rounds(size)}, {gap_text}\n{adds}" if size else None
        )
    return tips


def _bin(edges: NDArray[np.float64], k: int) -> str:
    return f"forecasts {' to '.join(map(probability, edges[[k, k + 1]].tolist()))}"
