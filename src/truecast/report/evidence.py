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
_SLICE = 256  # rounds of which the most evidence is kept, at first
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
        The times of the alarm and of its beginning; nan if there was none.
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

        self._monitor = Monitor(alpha=ALPHA)
        self._points: list[tuple[int, float, float]] = []  # rounds so far, time, most evidence

    def add(
        self, seconds: NDArray[np.float64], y: NDArray[np.float64], p: NDArray[np.float64]
    ) -> None:
        """Take more rounds."""
        evidence = np.empty(len(y))
        first = self._monitor.rounds
        self._monitor.update_many(p, y, out=evidence)
        for start in range(0, len(y), _SLICE):
            part = slice(start, start + _SLICE)
            last = min(start + _SLICE, len(y)) - 1
            self._points.append((first + last, float(seconds[last]), float(evidence[part].max())))
        while len(self._points) > _MOST_POINTS:
            pairs = zip(self._points[::2], self._points[1::2], strict=False)
            joined = [(b[0], b[1], max(a[2], b[2])) for a, b in pairs]
            self._points = joined + self._points[2 * len(joined) :]

    def course(self) -> EvidenceOverTime | None:
        """Return how it went; None if there were no rounds."""
        if len(self._points) < 2:
            return None
        alarm = self._monitor.alarm
        rounds, times, evidence = (np.array(column) for column in zip(*self._points, strict=True))
        when = [math.nan] * 4
        if alarm is not None:
            marks = alarm.round, alarm.since, alarm.earliest, alarm.latest
            when = np.interp(marks, rounds, times).tolist()
        evidence = np.minimum(evidence, _LARGEST)
        return EvidenceOverTime(times, evidence, self._monitor.threshold, alarm, *when)
