"""The evidence against forecasts as it is shown: numbers, alarms, and when they came."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from truecast.monitor import Finding

if TYPE_CHECKING:
    from truecast.serve.stream import LiveStream

__all__ = [
    "CERTAIN",
    "AlarmView",
    "Evidence",
    "alarm_view",
    "alarms_of",
    "evidence_of",
    "number",
    "since_words",
]

CERTAIN = 1e300


class AlarmView(msgspec.Struct, frozen=True):
    """What an alarm says; see `truecast.monitor.Finding`.

    Times are those of the next mark of the course, so a little late. `since_words` is a part of
    `words`: who knows the reader's time zone may replace it.
    """

    which: str  # "model" or "recalibrated"
    group: str | None
    label: str | None  # the class, of several
    number: int  # alarms so far, this one included
    at: int | None
    since: int | None
    earliest: int | None
    latest: int | None
    round: int
    since_round: int
    evidence: float
    direction: str
    low: float
    high: float
    forecast: float | None
    outcome: float | None
    rounds: float
    words: str
    since_words: str


class Evidence(msgspec.Struct, frozen=True):
    """What the bets against the forecasts have made."""

    now: float
    peak: float
    threshold: float
    alarms: int
    alpha: float | None
    mean_time: float | None
    alarm: AlarmView | None


def number(x: float) -> float | None:
    """Return a number as JSON can have it."""
    return None if math.isnan(x) else min(max(x, -CERTAIN), CERTAIN)


def evidence_of(stream: LiveStream, at: int, label: str | int | None) -> Evidence:
    """Return the evidence of a monitor, of one class if there are several.

    0 watches the model, 1 the answers.
    """
    monitor: Any = stream.monitors[at]
    part = monitor if label is None else monitor.classes[label]
    return Evidence(
        min(part.evidence, CERTAIN),
        min(part.peak, CERTAIN),
        monitor.threshold,
        part.alarms,
        monitor.config["alpha"],
        monitor.config["mean_time"],
        alarm_view(stream, at, None, part.alarms, part.alarm),
    )


def alarm_view(
    stream: LiveStream, at: int, group: str | None, count: int, found: Finding | None
) -> AlarmView | None:
    """Return what an alarm says, with times as far as the course tells them."""
    if found is None:
        return None
    time_of = stream.course.time_of
    since = since_words(stream, found)
    return AlarmView(
        ("model", "recalibrated")[at],
        group,
        None if found.label is None else str(found.label),
        count,
        time_of(found.round),
        time_of(found.since),
        time_of(found.earliest),
        time_of(found.latest),
        found.round,
        found.since,
        min(found.evidence, CERTAIN),
        found.direction,
        found.low,
        found.high,
        number(found.forecast),
        number(found.outcome),
        found.rounds,
        found.in_words(since),
        since,
    )


def since_words(stream: LiveStream, found: Finding) -> str:
    """Return since when forecasts are off: the time, or the forecast if none is known yet."""
    moment = stream.course.time_of(found.since)
    if moment is None:
        return f"forecast {found.since:,}"
    return datetime.fromtimestamp(moment / 1_000, UTC).strftime("%Y-%m-%d %H:%M UTC")


def alarms_of(stream: LiveStream) -> list[AlarmView]:
    """Return the last alarm of each monitor and of each group."""
    found = []
    for at, monitor in enumerate(stream.monitors):
        found.append(alarm_view(stream, at, None, monitor.alarms, monitor.alarm))
        for name, group in monitor.groups.items():
            found.append(alarm_view(stream, at, str(name), group.alarms, group.alarm))
    return [alarm for alarm in found if alarm is not None]
