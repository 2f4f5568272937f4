"""Forecasts and outcomes over time, in bounded memory.

Sums in ever wider steps, whatever the order of the rounds.
"""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecast import _check
from truecast.errors import InputError
from truecast.report.evidence import EvidenceOverTime, RunningEvidence

__all__ = ["RunningCourse", "TimeCourse", "course_of"]

_STEPS = 1 << 12  # of time that are told apart
_BLOCKS = 24
_FEWEST = 50  # rounds of a block, on average
_MICROSECONDS = "datetime64[us]"


@dataclass(frozen=True, eq=False)
class TimeCourse:
    """Blocks of rounds, one after the other, with about as many rounds each.

    Attributes
    ----------
    start, end : arrays
        The time of the first and of the last round of each, about: seconds since 1970, or whatever
        the numbers are.
    dated : bool
        Whether times are seconds since 1970.
    rounds, forecast, rate : arrays
        How many; their mean forecast and mean outcome.
    noise : array
        The standard deviation that the difference of these would have by chance.
    after : array or None
        Their mean recalibrated forecast.
    evidence, evidence_after : EvidenceOverTime or None
        Evidence against the forecasts, and against the recalibrated ones; None if the rounds did
        not come in the order of time.
    """

    start: NDArray[np.float64]
    end: NDArray[np.float64]
    dated: bool
    rounds: NDArray[np.float64]
    forecast: NDArray[np.float64]
    rate: NDArray[np.float64]
    noise: NDArray[np.float64]
    after: NDArray[np.float64] | None
    evidence: EvidenceOverTime | None = None
    evidence_after: EvidenceOverTime | None = None

    def when(self, time: float) -> str:
        """Return a time in words: a day, or a number."""
        if not self.dated:
            return f"{time:,.6g}"
        return (datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=time)).strftime(
            "%Y-%m-%d" if self.end[-1] - self.start[0] > 3 * 86400 else "%Y-%m-%d %H:%M"
        )

    def span(self, block: int) -> str:
        """Return from when to when a block goes, in words."""
        return " to ".join(
            dict.fromkeys((self.when(self.start[block]), self.when(self.end[block])))
        )


class RunningCourse:
    """Takes rounds in parts and in any order; `course` is what came of them."""

    def __init__(self) -> None:
        self.dated: bool | None = None
        self._power: int | None = None
        self._sums: dict[int, NDArray[np.float64]] = {}
        self._latest = -math.inf
        self._watched: tuple[RunningEvidence, RunningEvidence] | None = (
            RunningEvidence(),
            RunningEvidence(),
        )

    def add(self, times: Any, y: Any, p: Any, after: Any = None) -> None:
        """Add rounds: times, outcomes, forecasts and recalibrated forecasts.

        Times are numbers, dates or texts of dates.
        """
        seconds, dated = _seconds(times)
        if self.dated is not None and self.dated != dated:
            raise InputError("times", "must all be dates, or all be numbers", times)
        self.dated = dated
        later = p if after is None else after
        forecasts, outcomes, last = (np.asarray(column, np.float64) for column in (p, y, later))
        if not len(seconds) == len(forecasts) == len(outcomes):
            rule = f"must have an entry for each of the {len(outcomes):,} rounds"
            raise InputError("times", rule, len(seconds))
        one, variance = np.ones(len(forecasts)), forecasts * (1 - forecasts)
        columns = np.stack((one, outcomes, forecasts, variance, last, seconds, seconds), 1)
        self._watch(seconds, outcomes, forecasts, None if after is None else last)
        self._count(columns)

    def _watch(
        self,
        seconds: NDArray[np.float64],
        y: NDArray[np.float64],
        p: NDArray[np.float64],
        after: NDArray[np.float64] | None,
    ) -> None:
        """Bet on the rounds while they come in the order of time, and have outcomes 0 or 1."""
        if self._watched is None or not len(seconds):
            return
        in_order = np.diff(seconds, prepend=self._latest).min() >= 0
        if not in_order or not np.isin(y, (0, 1)).all():
            self._watched = None
            return
        self._latest = float(seconds[-1])
        self._watched[0].add(seconds, y, p)
        if after is not None:
            self._watched[1].add(seconds, y, after)

    def _count(self, columns: NDArray[np.float64]) -> None:
        if not len(columns):
            return
        seconds = columns[:, 5]
        if self._power is None:
            self._power = math.floor(math.log2((float(np.ptp(seconds)) or 1.0) / _STEPS))
        # steps must be whole numbers that fit
        least_power = math.frexp(float(np.abs(seconds).max()))[1] - 62
        while self._power < least_power:
            self._widen()
        steps = np.floor(np.ldexp(seconds, -self._power)).astype(np.int64)
        order = np.argsort(steps, kind="stable")
        # rounds of a step stand together: add up each such run
        firsts = np.flatnonzero(np.diff(steps[order], prepend=steps[order[0]] - 1))
        for step, rows in zip(
            steps[order][firsts].tolist(), np.split(columns[order], firsts[1:]), strict=True
        ):
            self._put(step, _summed(rows))
        while len(self._sums) > _STEPS:
            self._widen()

    def _put(self, step: int, row: NDArray[np.float64]) -> None:
        there = self._sums.get(step)
        self._sums[step] = row if there is None else _summed(np.stack((there, row)))

    def _widen(self) -> None:
        before = self._sums
        self._sums = {}
        self._power = (self._power or 0) + 1
        for step, row in before.items():
            self._put(step >> 1, row)

    def course(self, *, recalibrated: bool = False) -> TimeCourse | None:
        """Return the blocks; None if there are too few rounds or all are of one time."""
        rows = np.array([self._sums[step] for step in sorted(self._sums)]).reshape(-1, 7)
        total = float(rows[:, 0].sum()) if len(rows) else 0.0
        number = min(_BLOCKS, int(total / _FEWEST))
        if number < 2 or len(rows) < 2:
            return None
        # by the middle of each step, in rounds, so that blocks have about as many
        block = np.minimum(
            ((np.cumsum(rows[:, 0]) - rows[:, 0] / 2) / total * number).astype(int), number - 1
        )
        parts = np.array([_summed(rows[block == k]) for k in np.unique(block)])
        if len(parts) < 2:
            return None
        n, ones, forecasts, variance, later, first, last = parts.T
        after = later / n if recalibrated else None
        watched = (None, None) if self._watched is None else self._watched
        evidence = [None if each is None else each.course() for each in watched]
        noise = np.sqrt(variance) / n
        return TimeCourse(
            first, last, bool(self.dated), n, forecasts / n, ones / n, noise, after, *evidence
        )


def course_of(times: Any, y: Any, p: Any, after: Any = None) -> TimeCourse | None:
    """Return the course of rounds that are all there."""
    running = RunningCourse()
    running.add(times, y, p, after)
    return running.course(recalibrated=after is not None)


def _summed(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.concatenate((rows[:, :5].sum(axis=0), [rows[:, 5].min(), rows[:, 6].max()]))


def _seconds(times: Any) -> tuple[NDArray[np.float64], bool]:
    """Return times as numbers, and whether they are dates."""
    array = np.asarray(times)
    if array.ndim != 1:
        raise InputError("times", "must be a sequence, with a time for each round", times)
    if array.dtype.kind in "OUS":
        array = _dates(array)
    if array.dtype.kind == "M":
        numbers = array.astype(_MICROSECONDS).astype(np.int64) / 1e6
        missing = np.isnat(array)
    elif array.dtype.kind in "iuf":
        numbers = array.astype(np.float64)
        missing = ~np.isfinite(numbers)
    else:
        raise InputError(
            "times", "must be dates, texts of dates such as 2031-02-03, or numbers", times
        )
    if missing.any():
        at = int(np.flatnonzero(missing)[0])
        raise InputError(f"times[{at}]", "must be a time", str(array[at]))
    return numbers, array.dtype.kind == "M"


def _dates(array: NDArray[Any]) -> NDArray[Any]:
    """Return what is written down as numbers, or as dates."""
    found = [_check.moment(text) for text in array.astype(str).tolist()]
    kinds = [kind for kind, _ in found]
    values = np.array([value for _, value in found])
    bad = next((at for at, kind in enumerate(kinds) if not kind or kind != kinds[0]), None)
    if bad is not None:
        rule = "must be dates such as 2031-02-03 or 2031-02-03T04:05, or numbers; all of one kind"
        raise InputError("times", rule, array[bad], bad)
    return values if "number" in kinds else values.astype(np.int64).astype(_MICROSECONDS)
