"""What people and machines are shown of a stream: one computation for page, metrics and routes.

Times are milliseconds since 1970. A number that is not known is None; evidence that is certain is
1e300.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from truecast import Monitor
from truecast._names import counted
from truecast.report.verdict import before_and_after, in_words, proved_kind
from truecast.serve.course import Mark, mark_of, per_round
from truecast.serve.evidence import (
    CERTAIN,
    AlarmView,
    alarm_view,
    alarms_of,
    number,
    since_words,
)
from truecast.serve.halves import Chances, Facts, Side, facts_of, side_of
from truecast.serve.options import Json, StreamOptions
from truecast.serve.stream import LiveStream

if TYPE_CHECKING:
    from truecast.serve.shelf import Listed

__all__ = [
    "GroupView",
    "Outstanding",
    "Point",
    "Sight",
    "StreamInfo",
    "StreamView",
    "Verdict",
    "info_of",
    "sight_of",
    "view_of",
]

MOST_GROUPS = 200
MOST_SIDES = 50
FRESH = 1_000  # forecasts after which an alarm of the past is no longer the verdict
_SURE = 0.01
_MANY_HELD = 25  # outcomes that wait for another, from which on the verdict says so


class Verdict(msgspec.Struct, frozen=True):
    """In a word, in a line, and why.

    `kind` is "off", "weak", "none" (no evidence against calibration), "waiting" (most outcomes wait
    behind one that has not come), "few" or "empty".
    """

    kind: str
    headline: str
    reason: str


class StreamInfo(Json, frozen=True):
    """What a list of streams shows of one."""

    name: str
    classes: list[str] | None
    note: str
    created: int
    rounds: int
    unresolved: int
    given_up: int
    last_forecast: int | None
    last_outcome: int | None
    per_round: float | None
    alarms: int  # of both monitors, and of all groups
    verdict: Verdict
    evidence_before: float | None = None
    evidence_after: float | None = None
    threshold: float | None = None  # of both
    brier_before: float | None = None
    brier_after: float | None = None


class GroupView(msgspec.Struct, frozen=True):
    """One group of rounds."""

    name: str
    rounds: int
    rate: float | None
    before: float | None
    after: float | None
    evidence: float | None
    threshold: float | None
    alarm: AlarmView | None


class Point(msgspec.Struct, frozen=True):
    """A stretch of the course."""

    start: int
    end: int
    rounds: int
    rate: float
    before: float
    after: float
    noise: float
    per_round: float
    evidence_before: float
    evidence_after: float
    unresolved: int


class Outstanding(msgspec.Struct, frozen=True):
    """Forecasts that await their outcomes."""

    count: int
    most: int
    oldest: int | None


class StreamView(StreamInfo, frozen=True, kw_only=True):
    """Everything about a stream: what a list shows, and more."""

    seq: int
    now: int
    options: StreamOptions
    sides: list[Side]
    sides_total: int
    course: list[Point]
    outstanding: Outstanding
    groups: list[GroupView]
    groups_total: int
    latest_alarms: list[AlarmView]  # the last one of each monitor and group
    rates: list[dict[str, int]]
    errors: list[dict[str, Any]]


def info_of(listed: Listed, stream: LiveStream | None) -> StreamInfo:
    """Return what a list shows; of a stream that is not in memory and was never saved, little."""
    classes = listed.options.labels
    named = None if classes is None else [str(name) for name in classes]
    about = (listed.name, named, listed.options.note, listed.created)
    if stream is None or stream.record.issued == 0:
        empty = Verdict("empty", "No forecasts yet", "Send a score to get the first forecast.")
        return StreamInfo(*about, 0, 0, 0, None, None, None, 0, empty)
    record = stream.record
    return StreamInfo(
        *about,
        record.rounds,
        record.unresolved,
        record.given_up,
        stream.last_forecast,
        stream.last_outcome,
        number(per_round(stream)),
        _alarms(stream),
        verdict_of(stream),
        **_numbers(stream),
    )


def _numbers(stream: LiveStream) -> dict[str, Any]:
    """Return what metrics show: evidence, and the mean Brier score, a sum over classes."""
    rounds, numbers = stream.record.rounds, {}
    sides = [stream.record.side(k) for k in range(stream.classes)]
    for at, half in enumerate(("before", "after")):
        if rounds:
            numbers[f"brier_{half}"] = math.fsum(side[half]["brier"] for side in sides) / rounds
        numbers[f"evidence_{half}"] = min(stream.monitors[at].evidence, CERTAIN)
        numbers["threshold"] = stream.monitors[at].threshold
    return numbers


def _alarms(stream: LiveStream) -> int:
    return sum(
        monitor.alarms + sum(group.alarms for group in monitor.groups.values())
        for monitor in stream.monitors
    )


def verdict_of(stream: LiveStream) -> Verdict:
    """Judge the answered forecasts, and name the model's as well."""
    kinds = [_kind(monitor) for monitor in stream.monitors]
    pairs = zip(kinds, stream.monitors, strict=True)
    headline = before_and_after(*(_headline(kind, monitor) for kind, monitor in pairs))
    if kinds == ["few", "few"]:
        headline = "Too few rounds to tell"
    if kinds[1] != "off" and _held(stream) > max(_MANY_HELD, stream.monitors[1].rounds):
        kinds[1], headline = "waiting", "Waiting for an outcome"
    return Verdict(kinds[1], headline, _reason(stream, kinds[1]))


def _held(stream: LiveStream) -> int:
    """Return how many outcomes have come but wait for one before them."""
    watch = stream.monitors[1]
    return watch.forecasts - watch.rounds - watch.unresolved - watch.passed_over


def _kind(monitor: Monitor) -> str:
    if monitor.rounds == 0:
        return "few"
    if monitor.config["mean_time"] is None:
        return proved_kind(monitor.rounds, 1.0 / max(monitor.peak, 1.0))
    if _is_fresh(monitor):
        return "off"
    share = min(monitor.evidence / monitor.threshold, 1.0)
    return proved_kind(monitor.rounds, 1.0 if share <= _SURE else _SURE / share)


def _is_fresh(monitor: Monitor) -> bool:
    """Whether there was an alarm not long ago."""
    last = monitor.alarm
    recent = max(FRESH, monitor.forecasts // 10)
    return last is not None and monitor.forecasts - last.round <= recent


def _headline(kind: str, monitor: Monitor) -> str:
    how = ""
    if kind == "off":
        found = monitor.alarm or monitor.finding
        which = "forecasts" if found.label is None else f"forecasts of {found.label}"
        how = f"{which} are {found.direction}"
    return in_words(kind, how)[1]


def _reason(stream: LiveStream, kind: str) -> str:
    monitor = stream.monitors[1]
    if kind == "waiting":
        return (
            f"{counted(_held(stream), 'outcome')} cannot speak yet: evidence takes outcomes in the "
            "order of their forecasts, and the oldest has not come. Send it, or give it up: POST "
            'give_up {"older_than": seconds}; the option give_up_after does it by itself.'
        )
    if kind == "few":
        rounds = stream.record.rounds
        return f"{counted(rounds, 'outcome')} {'has' if rounds == 1 else 'have'} come."
    if kind == "off":
        found = monitor.alarm or monitor.finding
        return f"The answered {found.in_words(since_words(stream, found))}."
    error = monitor.smooth_error()
    which = "the answered forecasts" if stream.binary else "the likeliest class's probability"
    return (
        f"With 95 % confidence, at all times, the smooth calibration error of {which} "
        f"is from {error.lower:.3g} to {error.upper:.3g}."
    )


def groups_of(stream: LiveStream) -> list[GroupView]:
    """Return all groups, most evidence against their answered forecasts first."""
    sums = stream.record.sums()[4]
    views = []
    for name, place in stream.groups.items():
        rounds, right, before, after = sums[place] if place < len(sums) else (0, 0, 0.0, 0.0)
        rate, model, said = (x / rounds if rounds else None for x in (right, before, after))
        watched = stream.monitors[1] if stream.binary else None
        group = watched.groups[name] if watched else None
        views.append(
            GroupView(
                name,
                rounds,
                rate,
                model,
                said,
                None if group is None else min(group.evidence, CERTAIN),
                None if watched is None else watched.threshold,
                None if group is None else alarm_view(stream, 1, name, group.alarms, group.alarm),
            )
        )
    return sorted(views, key=lambda view: (-(view.evidence or 0.0), view.name))


def course_of(stream: LiveStream) -> list[Point]:
    """Return the stretches between marks."""
    marks = list(stream.course.marks)
    if stream.record.rounds > (marks[-1].rounds if marks else 0):
        marks.append(mark_of(stream.last_outcome or 0, stream))
    if not marks:
        return []
    start = Mark(marks[0].at, 0, 0, 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0)
    return [_point(a, b) for a, b in zip([start, *marks[:-1]], marks, strict=True)]


def _point(start: Mark, end: Mark) -> Point:
    rounds = end.rounds - start.rounds
    return Point(
        start.at,
        end.at,
        rounds,
        (end.right - start.right) / rounds,
        (end.before - start.before) / rounds,
        (end.after - start.after) / rounds,
        math.sqrt(max(end.noise - start.noise, 0.0)) / rounds,
        end.per_round,
        min(end.evidence_before, CERTAIN),
        min(end.evidence_after, CERTAIN),
        end.unresolved,
    )


class Sight(NamedTuple):
    """A stream as it was at one entry: a copy, from which any thread makes the rest."""

    number: int
    view: StreamView  # without sides
    facts: list[Facts]


def sight_of(listed: Listed, stream: LiveStream, now: int) -> Sight:
    """Return everything about a stream but the figures of its sides. Quick: the writer does it."""
    groups = groups_of(stream)
    view = StreamView(
        **msgspec.structs.asdict(info_of(listed, stream)),
        seq=stream.seq,
        now=now,
        options=stream.options,
        sides=[],
        sides_total=stream.classes if stream.record.rounds else 0,
        course=course_of(stream),
        outstanding=Outstanding(
            stream.record.unresolved, stream.options.max_unresolved, stream.record.oldest
        ),
        groups=groups[:MOST_GROUPS],
        groups_total=len(groups),
        latest_alarms=alarms_of(stream),
        rates=[],
        errors=[],
    )
    return Sight(listed.number, view, facts_of(stream, MOST_SIDES))


def view_of(sight: Sight, chances: Chances) -> StreamView:
    """Return everything about a stream. Takes a while: not for the writer."""
    sides = [side_of(sight.number, facts, chances) for facts in sight.facts]
    return msgspec.structs.replace(sight.view, sides=sides)
