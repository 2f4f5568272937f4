"""Rows through a recalibrator, known again by their order or by their ids."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truecast.files.checkpoint import Checkpoint, RunRecord, Saved
from truecast.files.columns import Names
from truecast.files.known import ForecastsById
from truecast.files.known_rows import play_by_id
from truecast.files.prints import Comparison, Prints
from truecast.files.recalibrated import RecalibrationResult, RunningErrors
from truecast.files.rounds import Rounds
from truecast.files.source import OpenTable
from truecast.files.taken import outcomes_of, runs, scores_of
from truecast.files.times import Time, Times, later
from truecast.files.unfinished import Mark
from truecast.recalibrate import ClassRecalibrator, Recalibrator

__all__ = ["ById", "InOrder", "Reading", "Rows", "chained"]

_LIMITS = "max_groups", "max_unresolved"


@dataclass(frozen=True)
class Reading:
    """An open file, its rows as they come, the new columns, and all columns of the output."""

    table: OpenTable
    names: Names
    parts: Iterator[Rounds]
    times: Times | None
    new: tuple[str, ...]
    columns: list[str]

    @property
    def held(self) -> str | None:
        """Where the last line stands if it was left out; all must have been read."""
        return None if self.table.records is None else self.table.records.held

    @property
    def last_time(self) -> Time | None:
        """The time of the last row that was read, if rows have times."""
        return None if self.times is None else self.times.last


class Rows(ABC):
    """The rows of a file on their way through a recalibrator, and what is counted meanwhile.

    Attributes
    ----------
    resumable : bool
        Whether a run that was stopped can be continued in the middle of the file.
    read : Reading
        The file.
    start : Saved
        What was learned from before.
    recalibrator : Recalibrator or ClassRecalibrator
        That of the start, or a new one if there are several classes.
    rest : iterator
        The rows that are still to be played.
    rows, skipped, chunks : int
        Rows of the file so far, bad ones among them that were left out, and blocks of rows.
    errors : RunningErrors
        Of the scores and of the forecasts.
    """

    resumable: bool

    def __init__(self, read: Reading, start: Saved) -> None:
        self.read = read
        self.start = start
        self.recalibrator: Recalibrator | ClassRecalibrator = start.recalibrator
        self.rest = read.parts
        self.rows = 0
        self.skipped = 0
        self.chunks = 0
        self.errors = RunningErrors(len(read.names.labels) or None)
        if read.names.labels and not isinstance(start.recalibrator, ClassRecalibrator):
            self.recalibrator = _for_classes(start.recalibrator, read.names.labels)

    @abstractmethod
    def play(self, part: Rounds) -> NDArray[np.float64]:
        """Forecast some rows, and learn from them."""

    @abstractmethod
    def note(self, part: Rounds, forecasts: NDArray[np.float64]) -> None:
        """Take note of rows that were played; later ones may be on their way already."""

    @property
    @abstractmethod
    def unknown(self) -> int:
        """Rows without an outcome so far."""

    @abstractmethod
    def _known_again(self) -> dict[str, Any]:
        """Return by what rows are known again, as `RunRecord` calls it."""

    @abstractmethod
    def _counts(self) -> dict[str, Any]:
        """Return what was counted in this run alone, as `RecalibrationResult` calls it."""

    def record(self, checkpoint: Checkpoint, written: Mark, time: Time | None) -> RunRecord:
        """Return how far the run has come: up to this time, if rows have times."""
        return checkpoint.record(
            rows=self.rows,
            skipped=self.skipped,
            unknown=self.unknown,
            columns=self.read.columns,
            written=written,
            time=later(self.start.time, time),
            **self._known_again(),
        )

    def result(self, forgotten: str | None) -> RecalibrationResult:
        """Return what was done."""
        brier, smooth = self.errors.compute()
        return RecalibrationResult(
            recalibrator=self.recalibrator,
            learned=self.errors.rounds,
            brier=brier,
            smooth=smooth,
            groups=self.errors.by_group(),
            held=self.read.held,
            forgotten=forgotten,
            **self._counts(),
        )


class InOrder(Rows):
    """Rows that are known again by their order, if that is `kept` for another run."""

    resumable = True

    def __init__(self, read: Reading, start: Saved, *, kept: bool) -> None:
        super().__init__(read, start)
        self._kept = kept
        self._prints = Prints()
        self._unknown = 0
        self._rows_before = 0
        self._unknown_before = 0

    @property
    def unknown(self) -> int:
        """Rows without an outcome so far."""
        return self._unknown

    def play(self, part: Rounds) -> NDArray[np.float64]:
        """Forecast some rows, and learn from them."""
        names = self.read.names
        self._count(part)
        self.chunks += 1
        return _recalibrated(self.recalibrator, part, scores_of(part, names), names)

    def note(self, part: Rounds, forecasts: NDArray[np.float64]) -> None:
        """Take note of rows that were played: their errors, and how to know them again."""
        scores = scores_of(part, self.read.names)
        known = ~np.isnan(part.y)
        columns = part.y[known], scores[known], forecasts[known]
        self.errors.add(*columns)
        if part.group is not None:
            group = part.group.filter(pl.Series(known))
            self.errors.add_groups(group, self.read.names, self.recalibrator.groups, *columns)
        if self._kept:
            self._prints.add(part)

    def _count(self, part: Rounds) -> None:
        self.rows += len(part)
        self.skipped += part.skipped
        self._unknown += int(np.isnan(part.y).sum())

    def read_over_known(self) -> Comparison | None:
        """Read over the rows that were learned from; return how they compare if they are others."""
        run = self.start.run
        if run is None or run.prints is None:
            return None
        comparison = Comparison(run.prints)
        rest = None
        while (left := comparison.left) and (part := next(self.rest, None)) is not None:
            comparison.add(part.first(left))
            self._count(part.first(left))
            # a block that is not over counts when its rest is played
            self.chunks += left >= len(part)
            rest = part.after(left) if left < len(part) else None
        self._prints = comparison.now
        self._rows_before = self.rows
        self._unknown_before = self._unknown
        self.rest = chained(rest, self.rest)
        return None if all(comparison.same) else comparison

    def _known_again(self) -> dict[str, Any]:
        return {"prints": self._prints}

    def _counts(self) -> dict[str, Any]:
        run = self.start.run
        return {
            "rows": self.rows - self._rows_before,
            "earlier": self._rows_before,
            "skipped": self.skipped - (0 if run is None else run.skipped),
            "unknown": self._unknown - self._unknown_before,
            "lost": 0,
        }


class ById(Rows):
    """Rows that are known again by their ids."""

    resumable = False

    def __init__(self, read: Reading, start: Saved, known: ForecastsById) -> None:
        super().__init__(read, start)
        self._known = known
        self._rows_before = len(known)

    @property
    def unknown(self) -> int:
        """Forecasts whose outcome is not known, of this file and of earlier ones."""
        return self._known.awaited

    def play(self, part: Rounds) -> NDArray[np.float64]:
        """Forecast the rows that are new, and learn from all outcomes that are."""
        read = self.read
        if read.times is not None and self.start.time is not None:
            first_new = self._known.first_new(part, read.table.name)
            read.times.check_after(self.start.time, part, first_new)
        forecasts = play_by_id(
            self._known, self.recalibrator, part, read.names, read.table.name, self.errors
        )
        self.rows += len(part)
        self.skipped += part.skipped
        self.chunks += 1
        return forecasts

    def note(self, part: Rounds, forecasts: NDArray[np.float64]) -> None:
        """Do nothing: their errors were noted when their outcomes were learned."""

    def _known_again(self) -> dict[str, Any]:
        return {"known": self._known}

    def _counts(self) -> dict[str, Any]:
        return {
            "rows": len(self._known) - self._rows_before,
            "earlier": self._known.seen_again,
            "skipped": self.skipped,
            "unknown": self.unknown,
            "lost": self._known.lost,
            "known": self._known,
        }


def chained(first: Rounds | None, parts: Iterator[Rounds]) -> Iterator[Rounds]:
    """Yield the first rows, if any, and then the others."""
    if first is not None:
        yield first
    yield from parts


def _for_classes(new: Recalibrator, labels: tuple[str, ...]) -> ClassRecalibrator:
    """Return one of these classes, with the limits of one that has learned nothing."""
    limits = {name: new.config[name] for name in _LIMITS}
    return ClassRecalibrator(classes=labels, **limits)


def _recalibrated(
    recalibrator: Recalibrator | ClassRecalibrator,
    part: Rounds,
    scores: NDArray[np.float64],
    names: Names,
) -> NDArray[np.float64]:
    """Play rounds in order; those without an outcome are forecast, and not learned from."""
    groups = names.members(part.group)
    forecasts = np.empty(scores.shape)
    known = ~np.isnan(part.y)
    for rows in runs(known):
        members: dict[str, Any] = {} if groups is None else {"groups": groups[rows]}
        if known[rows.start]:
            y = outcomes_of(part.y[rows], recalibrator)
            forecasts[rows] = recalibrator.forecast_many(scores[rows], y, **members)
        else:
            forecasts[rows] = recalibrator.predict_many(scores[rows], **members)
    return forecasts
