"""Evidence over time, for the page: a monitor that goes through the rounds, and what it says."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from truecast.monitor import Finding

__all__ = ["ALPHA", "EvidenceOverTime", "RunningEvidence"]

ALPHA = 0.01
_MOST_POINTS = 400
_LOOK = 4096  # rounds after which an alarm is looked for, as `truecast watch` does
_LARGEST = 1e30  # evidence that is drawn


@dataclass(frozen=True, eq=False)
class EvidenceOverTime:
    """How the evidence against forecasts went.

    Attributes
    ----------
    time, evidence : arrays
        The time of the last of some rounds, and the most evidence in them.
    threshold : float
        An alarm from here on.
    alarm : Finding or None
        The alarm, if there was one.
    came, since, earliest, latest : float
        The times of the alarm and of its beginning, those that `truecast watch` says; nan if there
        was none.
    """

    time: NDArray[np.float64]
    evidence: NDArray[np.float64]
    threshold: float
    alarm: Finding | None
    came: float
    since: float
    earliest: float
    latest: float


class RunningEvidence:
    """Takes rounds in the order of time; `course` is what came of them."""

    def __init__(self) -> None:
        from truecast.monitor import Monitor
        from truecast.monitor.dates import Dates

        self._monitor = Monitor(alpha=ALPHA)
        self._dates = Dates()
        self._when = [math.nan] * 4
        self._points: list[tuple[float, float]] = []  # time, most evidence
        self._size = 1  # rounds of which a point has the most

    def add(
        self, seconds: NDArray[np.float64], y: NDArray[np.float64], p: NDArray[np.float64]
    ) -> None:
        """Take more rounds."""
        evidence = np.empty(len(y))
        for start in range(0, len(y), _LOOK):
            part = slice(start, start + _LOOK)
            self._dates.add(self._monitor.rounds, seconds[part].tolist())
            before = self._monitor.alarm
            self._monitor.update_many(p[part], y[part], out=evidence[part])
            alarm = self._monitor.alarm
            if before is None and alarm is not None:
                marks = alarm.round, alarm.since, alarm.earliest, alarm.latest
                self._when = [self._dates.at(max(mark, 0)) for mark in marks]
        self._draw(seconds, evidence)

    def _draw(self, seconds: NDArray[np.float64], evidence: NDArray[np.float64]) -> None:
        """Add points; neighbours are joined where there are too many."""
        while len(evidence) > _MOST_POINTS * self._size:
            self._size *= 2
        starts = np.arange(0, len(evidence), self._size)
        ends = np.minimum(starts + self._size, len(evidence)) - 1
        most = np.maximum.reduceat(evidence, starts)
        self._points += zip(seconds[ends].tolist(), most.tolist(), strict=True)
        while len(self._points) > _MOST_POINTS:
            pairs = zip(self._points[::2], self._points[1::2], strict=False)
            joined = [(b[0], max(a[1], b[1])) for a, b in pairs]
            self._points = joined + self._points[2 * len(joined) :]
            self._size *= 2

    def course(self) -> EvidenceOverTime | None:
        """Return how it went; None if there were no rounds."""
        if not self._points:
            return None
        times, evidence = (np.array(column) for column in zip(*self._points, strict=True))
        evidence = np.minimum(evidence, _LARGEST)
        return EvidenceOverTime(
            times, evidence, self._monitor.threshold, self._monitor.alarm, *self._when
        )
