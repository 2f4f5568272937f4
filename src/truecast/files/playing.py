"""Rows through a recalibrator, known again by their order or by their ids."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from truecast.files.checkpoint import Checkpoint, Run, Saved
from truecast.files.columns import Names
from truecast.files.known import Known, Learned
from truecast.files.places import Mark
from truecast.files.prints import Comparison, Likeness, Prints
from truecast.files.recalibrated import Measured, Recalibrated
from truecast.files.rounds import Rounds
from truecast.files.source import Table
from truecast.files.times import Time, Times, later
from truecast.recalibrate import Recalibrator

__all__ = ["ById", "InOrder", "Reading", "Rows", "chained"]


class Reading:
    """An open file, and its rows as they come."""

    def __init__(
        self, table: Table, names: Names, parts: Iterator[Rounds], times: Times | None
    ) -> None:
        self.table, self.names, self.parts, self.times = table, names, parts, times

    @property
    def held(self) -> str | None:
        """Where the last line stands if it was left out; all must have been read."""
        return None if self.table.records is None else self.table.records.held

    @property
    def last_time(self) -> Time | None:
        """The time of the last row, if rows have times."""
        return None if self.times is None else self.times.last


class Rows(Protocol):
    """What a run keeps in mind of the rows so far."""

    chunks: int
    resumable: bool
    rest: Iterator[Rounds]

    @property
    def rows(self) -> int:
        """Of the file, so far."""

    def begin(self, start: Saved) -> None:
        """Take what there is so far for what was there before."""

    def play(self, recalibrator: Recalibrator, part: Rounds) -> tuple[NDArray[np.float64], Learned]:
        """Forecast some rows, and learn from them."""

    def run(self, journal: Checkpoint, written: Mark) -> Run:
        """Return how far the run has come, and what it has written."""

    def done(
        self, start: Saved, measured: Measured, held: str | None, forgotten: str | None
    ) -> Recalibrated:
        """Return what was done."""


class InOrder:
    """Rows that are known again by their order."""

    resumable = True

    def __init__(self, columns: list[str], read: Reading) -> None:
        self.columns, self.rest = columns, read.parts
        self.chunks = self.skipped = self.unknown = 0
        self._read, self._prints = read, Prints()
        self._before = 0, 0
        self._time: Time | None = None

    @property
    def rows(self) -> int:
        """Of the file, so far."""
        return self._prints.rows

    def run(self, journal: Checkpoint, written: Mark) -> Run:
        """Return how far the run has come."""
        prints, time = self._prints, later(self._time, self._read.last_time)
        return journal.run(
            prints.rows, self.skipped, self.unknown, self.columns, written, prints=prints, time=time
        )

    def begin(self, start: Saved) -> None:
        """Take what there is so far for what was there before."""
        self._before, self._time = (self.rows, self.unknown), start.time

    def play(self, recalibrator: Recalibrator, part: Rounds) -> tuple[NDArray[np.float64], Learned]:
        """Forecast some rows, and learn from them."""
        said, known = _said(recalibrator, part, self._read.names), ~np.isnan(part.y)
        self._prints.add(part)
        self._count(part, chunk=True)
        return said, Learned(part.y[known], part.p[0][known], said[known])

    def _count(self, part: Rounds, *, chunk: bool) -> None:
        self.chunks += chunk
        self.skipped += part.skipped
        self.unknown += int(np.isnan(part.y).sum())

    def skip(self, run: Run | None) -> Likeness | None:
        """Read over what a run has learned from; return how the rows compare if it was something else."""
        if run is None or run.prints is None:
            return None
        comparison, rest = Comparison(run.prints), None
        while (left := comparison.left) and (part := next(self.rest, None)) is not None:
            comparison.add(part.first(left))
            self._count(part.first(left), chunk=left >= len(part))
            rest = part.after(left) if left < len(part) else None
        likeness = comparison.likeness()
        self._prints, self.rest = comparison.now, chained(rest, self.rest)
        return None if all(likeness.same) else likeness

    def done(
        self, start: Saved, measured: Measured, held: str | None, forgotten: str | None
    ) -> Recalibrated:
        """Return what was done."""
        rows, unknown = np.subtract((self.rows, self.unknown), self._before).tolist()
        brier, smooth = measured.errors()
        return Recalibrated(
            recalibrator=start.recalibrator,
            rows=rows,
            earlier=self.rows - rows,
            skipped=self.skipped - (0 if start.run is None else start.run.skipped),
            unknown=unknown,
            learned=measured.rows,
            lost=0,
            brier=brier,
            smooth=smooth,
            held=held,
            forgotten=forgotten,
        )


class ById:
    """Rows that are known again by their ids."""

    resumable = False

    def __init__(self, columns: list[str], read: Reading, known: Known) -> None:
        self.columns, self.rest = columns, read.parts
        self.rows = self.chunks = self.skipped = self._lost = self._earlier = 0
        self._read, self._known, self._before = read, known, len(known)
        self._time: Time | None = None

    def begin(self, start: Saved) -> None:
        """Take what there is so far for what was there before."""
        self._time = start.time

    def play(self, recalibrator: Recalibrator, part: Rounds) -> tuple[NDArray[np.float64], Learned]:
        """Forecast some rows, and learn from them."""
        if self._read.times is not None and self._time is not None:
            self._read.times.check_after(
                self._time, part, self._known.first_new(part, self._read.table.name)
            )
        said, learned = self._known.play(
            recalibrator, part, self._read.names, self._read.table.name
        )
        self.rows, self.chunks = self.rows + len(part), self.chunks + 1
        self.skipped, self._lost = self.skipped + part.skipped, self._lost + learned.lost
        self._earlier += learned.earlier
        return said, learned

    def run(self, journal: Checkpoint, written: Mark) -> Run:
        """Return how far the run has come."""
        known, time = self._known, later(self._time, self._read.last_time)
        return journal.run(
            self.rows, self.skipped, known.awaited, self.columns, written, known=known, time=time
        )

    def done(
        self, start: Saved, measured: Measured, held: str | None, forgotten: str | None
    ) -> Recalibrated:
        """Return what was done."""
        brier, smooth = measured.errors()
        return Recalibrated(
            recalibrator=start.recalibrator,
            rows=len(self._known) - self._before,
            earlier=self._earlier,
            skipped=self.skipped,
            unknown=self._known.awaited,
            learned=measured.rows,
            lost=self._lost,
            brier=brier,
            smooth=smooth,
            held=held,
            forgotten=forgotten,
            known=self._known,
        )


def chained(first: Rounds | None, parts: Iterator[Rounds]) -> Iterator[Rounds]:
    """Yield the first rows, if any, and then the others."""
    if first is not None:
        yield first
    yield from parts


def _said(recalibrator: Recalibrator, part: Rounds, names: Names) -> NDArray[np.float64]:
    """Play the rounds in order; where an outcome is not known, say what would be said and learn nothing."""
    groups = names.members(part.group)
    if not np.isnan(part.y).any():
        return recalibrator.forecast_many(part.p[0], part.y, groups=groups)
    said = np.empty(len(part))
    known = ~np.isnan(part.y)
    ends = [*(np.flatnonzero(np.diff(known)) + 1).tolist(), len(part)]
    start = 0
    for end in ends:
        scores, of = part.p[0][start:end], None if groups is None else groups[start:end]
        if known[start]:
            said[start:end] = recalibrator.forecast_many(scores, part.y[start:end], groups=of)
        else:
            said[start:end] = recalibrator.predict_many(scores, groups=of)
        start = end
    return said
