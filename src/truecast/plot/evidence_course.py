"""Evidence against time: how bets against the forecasts went, and what they found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truecast import _check
from truecast.errors import InputError
from truecast.monitor import Finding, Monitor
from truecast.plot.spread import frozen
from truecast.plot.style import BLUE, GREY, ORANGE, ink, label, new_figure, quiet, tidy

__all__ = ["EvidenceCourse", "evidence_course"]

_LEAST, _MOST = 1e-3, 1e30  # evidence that is drawn


@dataclass(frozen=True, eq=False)
class EvidenceCourse:
    """What `evidence_course` returns.

    Attributes
    ----------
    promise : str
        What the monitor promises, such as "alpha = 0.01".
    round : array
        Numbers of rounds, from 0.
    low, high : arrays
        The least and the most evidence in the rounds from each of these to the next.
    threshold : float
        Evidence of this much is an alarm.
    alarms : tuple of Finding
        The alarms, in order.
    finding : Finding
        What there was to say at the end.
    times : array or None
        The time of each of `round`, if rounds have times.
    brier : float
        The mean of (forecast - outcome)^2: evidence says nothing about sharpness.
    """

    promise: str
    round: NDArray[np.int64] = field(repr=False)
    low: NDArray[np.float64] = field(repr=False)
    high: NDArray[np.float64] = field(repr=False)
    threshold: float
    alarms: tuple[Finding, ...] = field(repr=False)
    finding: Finding
    times: NDArray[Any] | None = field(repr=False)
    brier: float

    @property
    def said(self) -> Finding | None:
        """What the picture marks: the first alarm, if there is one."""
        return self.alarms[0] if self.alarms else None

    def at(self, number: float) -> Any:
        """Return where a round stands on the axis: its time, about, or its number."""
        if self.times is None:
            return number
        return self.times[max(0, int(np.searchsorted(self.round, number, "right")) - 1)]

    def draw(self, axes: Any = None) -> Any:
        """Draw on matplotlib axes, or on new ones; return the figure.

        The scale of evidence is logarithmic. The dashed line is the threshold; a dot is an alarm.
        The band is the interval in which what was found began, with the estimate in its midst.
        """
        axes = new_figure(5.2, 3.4).add_subplot() if axes is None else axes
        where = self.round if self.times is None else self.times
        low, high = (np.clip(each, _LEAST, _MOST) for each in (self.low, self.high))
        axes.fill_between(where, low, high, color=BLUE, alpha=0.35, lw=0)
        axes.plot(where, high, color=BLUE, lw=1.2)
        axes.axhline(self.threshold, color=ink(axes), ls="--", lw=1)
        self._draw_alarms(axes)
        axes.set_yscale("log")
        axes.set_ylim(_LEAST if min(low) < 0.01 else 0.01, 30 * max(self.threshold, *high))
        axes.minorticks_off()
        quiet(axes)
        label(axes, "round" if self.times is None else "time", "evidence", self._titles())
        if self.times is not None:
            axes.tick_params(axis="x", rotation=25)
        tidy(axes)
        return axes.figure

    def _draw_alarms(self, axes: Any) -> None:
        for alarm in self.alarms[:200]:
            height = min(max(alarm.evidence, _LEAST), _MOST)
            axes.plot([self.at(alarm.round)], [height], "o", color=ORANGE, ms=4.5)
        said = self.said
        if said is None:
            return
        axes.axvspan(self.at(said.earliest), self.at(said.latest), color=GREY, alpha=0.25, lw=0)
        axes.axvline(self.at(said.since), color=ORANGE, lw=1, ls=":")

    def _titles(self) -> list[str]:
        said = self.said
        if said is None:
            return [f"no alarm, {self.promise}, Brier score {self.brier:.4f}", "no alarm"]
        words = said.in_words(None if self.times is None else str(self.at(said.since))[:16])
        many = f"{len(self.alarms)} alarms, the first: " if len(self.alarms) > 1 else ""
        return [f"{many}{words}", words, words.replace(" since ", "\nsince "), said.direction]


def evidence_course(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    alpha: float | None = None,
    mean_time: float | None = None,
    times: Any = None,
    points: int = 1_000,
) -> EvidenceCourse:
    """Return how the evidence of a `Monitor` went over rounds in the order of time.

    It shows what you would have seen live if outcomes came at once. If the curve crosses the dashed
    line, there is an alarm; what `Monitor` promises of it does not depend on when you look. A curve
    that stays low says that no bet has won, not that forecasts are perfect.

    Parameters
    ----------
    y_true, y_prob
        Outcomes, 0 or 1, and forecasts, in order.
    alpha, mean_time
        As for `Monitor`.
    times
        When each round was, as many: numbers or dates, not decreasing.
    points
        At how many places the curve is kept.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.1, 0.9, 4_000)
    >>> q = np.where(np.arange(4_000) < 2_000, p, p - 0.1)
    >>> course = evidence_course(rng.random(4_000) < q, p)
    >>> course.alarms[0].direction, course.alarms[0].round > 2_000
    ('too high', True)
    """
    y, p = _check.predictions(y_true, y_prob)
    if not len(y):
        raise InputError("y_true", "must be at least one", y_true)
    points = _check.whole_number("points", points, least=2, most=1_000_000)
    when = None if times is None else np.asarray(times)
    if when is not None and (when.ndim != 1 or len(when) != len(y)):
        raise InputError("times", f"must have an entry for each of the {len(y):,} rounds", times)
    if when is not None and len(when) > 1 and bool((when[1:] < when[:-1]).any()):
        raise InputError("times", "must not decrease: sort the rounds by time", times)
    monitor = Monitor(alpha=alpha, mean_time=mean_time)
    starts = np.unique(np.linspace(0, len(y), points, endpoint=False).astype(np.int64))
    evidence = np.empty(len(y))
    alarms: list[Finding] = []
    for start, stop in zip(starts, [*starts[1:], len(y)], strict=True):
        seen = monitor.alarms
        monitor.update_many(p[start:stop], y[start:stop], out=evidence[start:stop])
        if monitor.alarms > seen and monitor.alarm is not None:
            alarms.append(monitor.alarm)
            if mean_time is not None:  # it has restarted since: show how far it had come
                evidence[monitor.alarm.round] = monitor.alarm.evidence
    name, value = next((k, v) for k, v in monitor.config.items() if v is not None)
    return EvidenceCourse(
        promise=f"{name} = {value:g}",
        round=frozen(starts),
        low=frozen(np.minimum.reduceat(evidence, starts)),
        high=frozen(np.maximum.reduceat(evidence, starts)),
        threshold=monitor.threshold,
        alarms=tuple(alarms),
        finding=monitor.finding,
        times=None if when is None else frozen(when[starts]),
        brier=float(np.mean((p - y) ** 2)),
    )
