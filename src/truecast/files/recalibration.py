"""A file through a recalibrator, row by row; a run that was stopped at any moment can be continued."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from truecast.errors import FileError, TruecastError, shown, writing
from truecast.files.checkpoint import Checkpoint, Run, Saved
from truecast.files.columns import Names
from truecast.files.known import Known, Learned
from truecast.files.output import Output, begin_with, check_output, columns_of, open_output
from truecast.files.places import Mark, complete, lock
from truecast.files.prints import Comparison, Likeness, Prints
from truecast.files.rounds import Rounds, rounds
from truecast.files.source import Table, open_table
from truecast.files.tallies import GrowingTally
from truecast.files.times import Time, Times, in_order, later
from truecast.measures import smooth_calibration_error
from truecast.recalibrate import Recalibrator

__all__ = ["Recalibrated", "Recalibration"]

_CHUNKS = 16  # between checkpoints: by count, not by time, so that a packed file comes out the same in any case
_FORECASTS = 1 << 18  # distinct ones that are kept apart; beyond that, those within 2**-18 are pooled
_AGAIN = "no row is learned from twice: restore the rows, or give new rows only; if all rows are new, use --again"


@dataclass(frozen=True)
class Recalibrated:
    """What a run has done.

    Attributes
    ----------
    recalibrator : Recalibrator
        As it is after the last row.
    rows : int
        That were forecast now.
    earlier : int
        Rows of the file that had been forecast before.
    skipped, unknown : int
        Bad rows that were left out, and rows without an outcome so far.
    learned : int
        Outcomes that were learned now.
    lost : int
        Outcomes that came now and were not awaited any more.
    brier, smooth : tuple of float
        Brier score and smooth calibration error, of the scores and of what was made of them, where outcomes were
        learned now; nan if there are none. Beyond 2**18 distinct forecasts, those within 2**-18 are pooled for the
        smooth calibration error.
    held : str or None
        Where the last line stands that was left out since it has no line break.
    forgotten : str or None
        The output of a run that was stopped before it was complete and is forgotten.
    known : Known or None
        All rows that are known by their ids, if they have such.
    """

    recalibrator: Recalibrator
    rows: int
    earlier: int
    skipped: int
    unknown: int
    learned: int
    lost: int
    brier: tuple[float, float]
    smooth: tuple[float, float]
    held: str | None = None
    forgotten: str | None = None
    known: Known | None = None


@dataclass(frozen=True)
class Recalibration:
    """A file with one more column: its scores, recalibrated, each before its outcome was learned.

    With a `state`, what was learned is kept there, and a run that was stopped, however rudely, can be continued: the
    output is the same in the end. No row is learned from twice:

    - If the file begins with all rows of the last run, only those after them are taken.
    - If it shares rows with the last run but does not begin with all of them (a row was corrected, the file became
      shorter, its oldest rows were dropped), it is refused. It is taken to share rows if files of different rows would
      be so alike less than once in 1,000 times, judged by how often rows are alike within the last run; see
      `truecast.files.prints.Comparison`. Fewer rows than that may be learned twice: give ids if that matters.
    - With `ids`, each row is known again by its id. It is forecast once, and learned from when its outcome comes.
    - A last line without a line break may be half written, and is left out, unless the file is said to be `complete`.

    Only the last run is remembered, or the ids of all.

    Attributes
    ----------
    open : function
        Opens the file at its beginning, as a context of the table and the names of its columns.
    output : Path or None
        Where to write; None for standard output.
    column : str
        The name of the new column.
    new : Recalibrator
        The recalibrator to begin with.
    state : Path or None
        The file that keeps it.
    repeatable : bool
        Whether the file can be read again from its beginning.
    skip_bad, unknown : bool
        As in `rounds`.
    ids, time : str or None
        Columns of ids, and of times, which must not go back.
    sort : bool
        Whether to sort rows by their times, which takes all of the file into memory.
    complete, again : bool
        Whether to take a last line without a line break, and to take all rows for new.
    progress : function
        Is called with the table and the rows so far.
    """

    open: Callable[[], AbstractContextManager[tuple[Table, Names]]]
    output: Path | None
    column: str
    new: Recalibrator
    state: Path | None = None
    repeatable: bool = True
    skip_bad: int = 0
    unknown: bool = False
    ids: str | None = None
    time: str | None = None
    sort: bool = False
    complete: bool = False
    again: bool = False
    progress: Callable[[Table, int], None] = lambda table, rows: None

    def run(self) -> Recalibrated:
        """Do it all, or what is left of it.

        Raises
        ------
        FileError
            If the file, the output or the state cannot be used, or a row breaks a rule; nothing is left behind then.
        """
        with lock(self.output, "-o"), lock(self.state, "--state"):
            journal = None if self.state is None or self.output is None else Checkpoint(self.state, self.output)
            return self._by_id(journal) if self.ids is not None else self._in_order(journal)

    def _in_order(self, journal: Checkpoint | None) -> Recalibrated:
        name = "the file"
        for start, stopped in self._starts(journal):
            with self.open() as (table, names):
                name = table.name
                read = self._reading(table, names)
                learned = _InOrder(columns_of(table, self.column), read)
                comparison = learned.skip(start.run)
                if comparison is not None or (stopped and not _of_columns(start.run, learned.columns)):
                    if not stopped and comparison is not None:
                        self._refuse_twice(read, comparison, start.run, journal)
                    continue
                return self._rest(read, learned, start, stopped, journal)
        left = f"of the run that was stopped; to forget that, remove {self.state}.part"
        raise FileError(name, f"does not begin with the rows {left}")

    def _by_id(self, journal: Checkpoint | None) -> Recalibrated:
        """Go through the file from its beginning: what is known by its id is not forecast again.

        A run that was stopped is begun anew, since nothing of it was put in place.
        """
        if journal is not None and journal.stopped is not None:
            journal.drop()
        last = None if journal is None else journal.last
        if last is not None and last.run is not None and last.run.known is None and not self.again:
            reason = "was saved by a run without --id: its rows cannot be known again. Use a new state"
            raise FileError(str(self.state), f"{reason}; or --again, if this file has none of them")
        start = last or Saved(self.new, None)
        with self.open() as (table, names):
            read = self._reading(table, names)
            known = None if start.run is None else start.run.known
            learned = _ById(columns_of(table, self.column), read, self._checked_ids(known, read.names))
            learned.begin(start)
            return self._through(read, learned, start, self._new_output(read.table), journal)

    def _checked_ids(self, known: Known | None, names: Names) -> Known:
        """Return what is known by ids, which must be those of the same column."""
        column, grouped = self.ids or "", names.group is not None
        if known is None:
            return Known(column, grouped=grouped)
        if known.column != column:
            raise FileError(str(self.state), f"knows rows by their {known.column!r:.80}, so --id must be that")
        if len(known) and known.grouped != grouped:
            raise FileError(str(self.state), f"knows rows {'in' if known.grouped else 'without'} groups: use --by so")
        known.grouped = grouped
        return known

    def _starts(self, journal: Checkpoint | None) -> Iterator[tuple[Saved, bool]]:
        """Yield where to begin: where a run was stopped, or after what was learned from, or at the first row."""
        if journal is None:
            yield Saved(self.new, None), False
            return
        stopped, last = journal.stopped, journal.last
        if last is not None and last.run is not None and last.run.known is not None and not self.again:
            raise FileError(str(self.state), f"knows rows by their {last.run.known.column!r:.80}: use --id so")
        if stopped is not None:
            if stopped.run is not None and stopped.run.prints is not None:
                yield stopped, True
                if not self.repeatable:
                    return
            journal.drop()
        if last is not None and last.run is not None and self.repeatable and not self.again:
            yield last, False
        yield self._new_start(last), False

    def _new_start(self, last: Saved | None) -> Saved:
        """Return the recalibrator as it is, for rows that are new."""
        return Saved(self.new, None) if last is None else Saved(last.recalibrator, None, last.run)

    def _reading(self, table: Table, names: Names) -> _Reading:
        check_output(self.output, table, self.column)
        if table.records is not None:
            table.records.hold = self.state is not None and not self.complete
        also = {"--id": self.ids, "--time": self.time}
        for option, column in also.items():
            if column is not None and table.columns.count(column) != 1:
                raise FileError(table.name, f"has no column {column!r} ({option}), or several")
        names = replace(names, also=tuple(filter(None, also.values())), repeated=self.ids is not None)
        times = None if self.time is None else Times(table.name, self.time, int(self.ids is not None))
        unknown = self.unknown or self.ids is not None
        parts = _whole_lines(table, rounds(table, names, skip_bad=self.skip_bad, unknown=unknown, whole=True))
        if times is not None:
            parts = in_order(parts, times, sort=self.sort)
        return _Reading(table, names, parts, times)

    def _refuse_twice(self, read: _Reading, comparison: Likeness, run: Run | None, journal: Checkpoint | None) -> None:
        """Refuse rows that were learned from before."""
        if run is None or journal is None:
            return
        name, (outcomes, scores, groups) = read.table.name, comparison.same
        if outcomes and scores and comparison.grouped[0] != comparison.grouped[1]:
            reason = "begins with rows that the state has learned from, but not so: --by must be as it was"
            raise FileError(name, reason)
        if scores and groups and run.unknown:
            reason = "begins with the rows of the run before, of which some had no outcome: give new rows only"
            raise FileError(name, f"{reason}, since no row is learned from twice; --id is for outcomes that come later")
        if comparison.shares:
            place, reason = self._difference(comparison, run, journal)
            raise FileError(name, f"{reason}; {_AGAIN}", place)

    def _difference(self, comparison: Likeness, run: Run, journal: Checkpoint) -> tuple[str | None, str]:
        """Return where the file first differs from the last run, and how: what that read is in its output."""
        with self.open() as (table, names):
            read = self._reading(table, names)
            if not journal.has_output_of(run) or self.output is None:
                return _block(read.parts, comparison, run.rows)
            with open_table(str(self.output)) as output:
                was = rounds(output, names, unknown=True)
                return _first_difference(read.parts, was, names) or _block(read.parts, comparison, run.rows)

    def _rest(
        self, read: _Reading, learned: _InOrder, start: Saved, stopped: bool, journal: Checkpoint | None
    ) -> Recalibrated:
        """Take the rows after those that were learned from before."""
        first = next(learned.rest, None)
        learned.begin(start)
        if first is None and journal is not None and not stopped and journal.goes_on(start.run, learned.columns):
            return learned.done(start, _Measured(), read.held, journal.forgotten)
        if first is not None and read.times is not None and start.time is not None and not stopped:
            read.times.check_after(start.time, first, 0)
        learned.rest = _chained(first, learned.rest)
        out = self._continued_output(read.table, start.run, stopped, journal)
        return self._through(read, learned, start, out, journal)

    def _continued_output(self, table: Table, run: Run | None, stopped: bool, journal: Checkpoint | None) -> Output:
        written = None
        if stopped and run is not None:
            written = run.written[0]
        elif journal is not None and self.output is not None and journal.goes_on(run, columns_of(table, self.column)):
            with self._writing():
                written = begin_with(self.output)
        return self._new_output(table, written)

    def _new_output(self, table: Table, written: int | None = None) -> Output:
        with self._writing():
            return open_output(self.output, table, self.column, written)

    def _writing(self) -> AbstractContextManager[None]:
        return writing(self.output, "-o")

    def _through(
        self, read: _Reading, learned: _Rows, start: Saved, out: Output, journal: Checkpoint | None
    ) -> Recalibrated:
        recalibrator, measured = start.recalibrator, _Measured()
        try:
            for part in learned.rest:
                said, settled = learned.play(recalibrator, part)
                with self._writing():
                    out.write(part, said)
                measured.add(settled)
                self.progress(read.table, learned.rows)
                if learned.chunks % _CHUNKS == 0 and self.output is not None:
                    with self._writing():
                        written = out.sync()
                    if journal is not None and learned.resumable:
                        journal.save(recalibrator, learned.run(journal, written))
            with self._writing():
                written = out.finish()
            if journal is not None:
                journal.commit(recalibrator, learned.run(journal, written))
            elif self.output is not None:
                with self._writing():
                    complete(self.output, written)
        except BaseException as error:
            self._give_up(out, journal if learned.resumable else None, error)
            raise
        return learned.done(start, measured, read.held, None if journal is None else journal.forgotten)

    def _give_up(self, out: Output, journal: Checkpoint | None, error: BaseException) -> None:
        """Leave nothing behind, unless the run can be continued: then what there is stays as it is."""
        with self._writing():
            if journal is None:
                out.discard()
                return
            out.close()
        if isinstance(error, TruecastError):
            journal.drop()


class _Reading:
    """An open file, and its rows as they come."""

    def __init__(self, table: Table, names: Names, parts: Iterator[Rounds], times: Times | None) -> None:
        self.table, self.names, self.parts, self.times = table, names, parts, times

    @property
    def held(self) -> str | None:
        """Where the last line stands if it was left out; all must have been read."""
        return None if self.table.records is None else self.table.records.held

    @property
    def last_time(self) -> Time | None:
        """The time of the last row, if rows have times."""
        return None if self.times is None else self.times.last


class _Rows(Protocol):
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
        """Return how far the run has come that has written so much."""

    def done(self, start: Saved, measured: _Measured, held: str | None, forgotten: str | None) -> Recalibrated:
        """Return what was done."""


class _InOrder:
    """Rows that are known again by their order."""

    resumable = True

    def __init__(self, columns: list[str], read: _Reading) -> None:
        self.columns, self.rest = columns, read.parts
        self.chunks = self.skipped = self.unknown = 0
        self._read, self._prints = read, Prints()
        self._before = 0, 0
        self._time: Time | None = None

    @property
    def rows(self) -> int:
        return self._prints.rows

    def run(self, journal: Checkpoint, written: Mark) -> Run:
        prints, time = self._prints, later(self._time, self._read.last_time)
        return journal.run(prints.rows, self.skipped, self.unknown, self.columns, written, prints=prints, time=time)

    def begin(self, start: Saved) -> None:
        self._before, self._time = (self.rows, self.unknown), start.time

    def play(self, recalibrator: Recalibrator, part: Rounds) -> tuple[NDArray[np.float64], Learned]:
        said, known = _said(recalibrator, part), ~np.isnan(part.y)
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
        self._prints, self.rest = comparison.now, _chained(rest, self.rest)
        return None if all(likeness.same) else likeness

    def done(self, start: Saved, measured: _Measured, held: str | None, forgotten: str | None) -> Recalibrated:
        rows, unknown = np.subtract((self.rows, self.unknown), self._before).tolist()
        return Recalibrated(
            start.recalibrator,
            rows,
            self.rows - rows,
            self.skipped - (0 if start.run is None else start.run.skipped),
            unknown,
            measured.rows,
            0,
            *measured.errors(),
            held,
            forgotten,
        )


class _ById:
    """Rows that are known again by their ids."""

    resumable = False

    def __init__(self, columns: list[str], read: _Reading, known: Known) -> None:
        self.columns, self.rest = columns, read.parts
        self.rows = self.chunks = self.skipped = self._lost = self._earlier = 0
        self._read, self._known, self._before = read, known, len(known)
        self._time: Time | None = None

    def begin(self, start: Saved) -> None:
        self._time = start.time

    def play(self, recalibrator: Recalibrator, part: Rounds) -> tuple[NDArray[np.float64], Learned]:
        if self._read.times is not None and self._time is not None:
            self._read.times.check_after(self._time, part, self._known.first_new(part, self._read.table.name))
        said, learned = self._known.play(recalibrator, part, self._read.names, self._read.table.name)
        self.rows, self.chunks = self.rows + len(part), self.chunks + 1
        self.skipped, self._lost = self.skipped + part.skipped, self._lost + learned.lost
        self._earlier += learned.earlier
        return said, learned

    def run(self, journal: Checkpoint, written: Mark) -> Run:
        known, time = self._known, later(self._time, self._read.last_time)
        return journal.run(self.rows, self.skipped, known.awaited, self.columns, written, known=known, time=time)

    def done(self, start: Saved, measured: _Measured, held: str | None, forgotten: str | None) -> Recalibrated:
        return Recalibrated(
            start.recalibrator,
            len(self._known) - self._before,
            self._earlier,
            self.skipped,
            self._known.awaited,
            measured.rows,
            self._lost,
            *measured.errors(),
            held,
            forgotten,
            self._known,
        )


class _Measured:
    """How good scores were, and what was made of them."""

    def __init__(self) -> None:
        self.rows = 0
        self._squares = np.zeros(2)
        self._tallies = GrowingTally(), GrowingTally()

    def add(self, learned: Learned) -> None:
        """Take note of some rounds."""
        self._squares += _squared_errors(learned)
        self.rows += len(learned.y)
        if len(learned.y):
            for tally, p in zip(self._tallies, (learned.score, learned.said), strict=True):
                tally.add(learned.y, p, most=_FORECASTS)

    def errors(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return the Brier scores and the smooth calibration errors."""
        if not self.rows:
            return (math.nan, math.nan), (math.nan, math.nan)
        before, after = (self._squares / self.rows).tolist()
        of_scores, of_forecasts = (smooth_calibration_error(tally.compute()) for tally in self._tallies)
        return (before, after), (of_scores, of_forecasts)


def _squared_errors(learned: Learned) -> NDArray[np.float64]:
    return np.array([((p - learned.y) ** 2).sum() for p in (learned.score, learned.said)])


def _of_columns(run: Run | None, columns: list[str]) -> bool:
    return run is None or run.columns == columns


def _chained(first: Rounds | None, parts: Iterator[Rounds]) -> Iterator[Rounds]:
    if first is not None:
        yield first
    yield from parts


def _whole_lines(table: Table, parts: Iterator[Rounds]) -> Iterator[Rounds]:
    """Yield rows; if there are none but one that is half written, say that."""
    rows = 0
    try:
        for part in parts:
            rows += len(part)
            yield part
    except FileError as error:
        held = None if table.records is None else table.records.held
        if held is None or rows or error.place is not None:
            raise
        reason = f"has no row yet but {held}, which has no line break: if it is complete, use --complete"
        raise FileError(table.name, reason) from error


def _said(recalibrator: Recalibrator, part: Rounds) -> NDArray[np.float64]:
    """Play the rounds in order; where an outcome is not known, say what would be said and learn nothing."""
    groups = None if part.group is None else part.group.to_list()
    if not np.isnan(part.y).any():
        return recalibrator.recalibrate_many(part.p[0], part.y, groups=groups)
    said = np.empty(len(part))
    known = ~np.isnan(part.y)
    ends = [*(np.flatnonzero(np.diff(known)) + 1).tolist(), len(part)]
    start = 0
    for end in ends:
        scores, of = part.p[0][start:end], None if groups is None else groups[start:end]
        if known[start]:
            said[start:end] = recalibrator.recalibrate_many(scores, part.y[start:end], groups=of)
        else:
            said[start:end] = recalibrator.predict_many(scores, groups=of)
        start = end
    return said


def _first_difference(now: Iterator[Rounds], was: Iterator[Rounds], names: Names) -> tuple[str | None, str] | None:
    """Return where rows first differ, and how; None if these begin with all of those."""
    rows, new, old = 0, next(now, None), next(was, None)
    while new is not None and old is not None:
        count = min(len(new), len(old))
        for row in np.flatnonzero(_differ(new.first(count), old.first(count)))[:1].tolist():
            found, before = _described(new, row, names), _described(old, row, names)
            late = " (--id is for outcomes that come later)" if np.isnan(old.y[row]) else ""
            return new.place(row), f"here is {found} where the last run read {before}{late}"
        rows += count
        new = new.after(count) if len(new) > count else next(now, None)
        old = old.after(count) if len(old) > count else next(was, None)
    if old is None:
        return None
    return None, f"has {rows:,} row{'s'[: rows != 1]}, which the last run read, too, and more after them"


def _differ(new: Rounds, old: Rounds) -> NDArray[np.bool_]:
    differ: NDArray[np.bool_] = (new.p[0] != old.p[0]) | ((new.y != old.y) & ~(np.isnan(new.y) & np.isnan(old.y)))
    if new.group is not None and old.group is not None:
        differ |= new.group.ne_missing(old.group).to_numpy()
    return differ


def _described(part: Rounds, row: int, names: Names) -> str:
    outcome = "nothing" if np.isnan(part.y[row]) else f"{part.y[row]:g}"
    group = "" if part.group is None else f", {shown(names.group or '')} {part.group[row]!r:.40}"
    return f"{shown(names.outcome)} {outcome}, {shown(names.scores[0])} {part.p[0][row].item()!r}{group}"


def _block(parts: Iterator[Rounds], comparison: Likeness, before: int) -> tuple[str | None, str]:
    """Return the stretch of rows in which a file first differs from the last run; one row if that is known."""
    start, rows, places = comparison.first, 0, list[str]()
    for part in parts:
        ends = start - rows, min(start + comparison.step, before) - 1 - rows
        places.extend(part.place(row) for row in ends if 0 <= row < len(part))
        rows += len(part)
    if not places:
        return None, f"has {rows:,} row{'s'[: rows != 1]}, like the first of the last run, which read {before:,}"
    if len(set(places)) == 1:
        return places[0], "the row here is not what the last run read"
    return None, f"differs from what the last run read, first between {places[0]} and {places[-1]}"
