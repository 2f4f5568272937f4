"""A file through a recalibrator, row by row; a stopped run can be continued."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from truecast._names import counted
from truecast._threads import Aside
from truecast.errors import FileError, StateError, TruecastError, writing
from truecast.files.checkpoint import Checkpoint, RunRecord, Saved
from truecast.files.columns import Names, check_there
from truecast.files.difference import differing_block, first_difference
from truecast.files.known import ForecastsById
from truecast.files.output import Output, begin_with_output, check_output, columns_of, open_output
from truecast.files.playing import ById, InOrder, Reading, Rows, chained
from truecast.files.prints import Comparison
from truecast.files.recalibrated import RecalibrationResult
from truecast.files.rounds import Rounds, rounds
from truecast.files.source import OpenTable, open_table
from truecast.files.times import Time, Times, in_order
from truecast.files.unfinished import lock, put_in_place
from truecast.recalibrate import ClassRecalibrator, Recalibrator

__all__ = ["Recalibration"]

# between checkpoints: by count, not by time, so that a packed file comes out the same in any case
_CHUNKS = 16
_AGAIN = (
    "no row is learned twice: restore the rows, or pass only new rows; "
    "if all rows are new, use --again"
)
_READ_BY = "--outcome and --positive", "--score and --percent", "--by"
_CLASSES_READ_BY = "--outcome", "--scores, --percent and --normalize", "--by"


@dataclass(frozen=True)
class Recalibration:
    """A file with one more column: its scores, recalibrated, each before its outcome was learned.

    With several classes, a column for each: a `ClassRecalibrator` makes them.

    With a `state`, what was learned is kept there, and a run that was stopped, however rudely, can
    be continued: the output is the same in the end. No row is learned from twice:

    - If the file begins with all rows of the last run, only those after them are taken.
    - If it shares rows with the last run but does not begin with all of them (a row was corrected,
      the file became shorter, its oldest rows were dropped), it is refused. It is taken to share
      rows if files of different rows would be so alike less than once in 1,000 times, judged by how
      often rows are alike within the last run; see `truecast.files.prints.Comparison`. Fewer rows
      than that may be learned twice: give ids if that matters.
    - If all its outcomes are those of the last run, or the opposite, or all its scores, it is
      refused by the same rule: it may be the same file, read by other columns.
    - With `ids`, each row is known again by its id. It is forecast once, and learned from when its
      outcome comes.
    - A last line without a line break may be half written, and is left out, unless the file is said
      to be `complete`.

    Only the last run is remembered, or the ids of all.

    Attributes
    ----------
    open : function
        Opens the file at its beginning, as a context of the table and the names of its columns.
    output : Path or None
        Where to write; None for standard output.
    column : str
        The name of the new column; of several classes, what their names begin with.
    new : Recalibrator
        The recalibrator to begin with, if outcomes are 0 or 1.
    state : Path or None
        The file that keeps it.
    repeatable : bool
        Whether the file can be read again from its beginning.
    skip_bad, unknown : bool
        As in `rounds`.
    ids, time, event : str or None
        Columns of ids, of times, which must not go back, and of events, for rows with ids.
    sort : bool
        Whether to sort rows by their times, which takes all of the file into memory.
    complete, again : bool
        Whether to take a last line without a line break, and to take all rows for new, which is for
        rows without ids.
    progress : function
        Is called with the table and the rows so far.
    """

    open: Callable[[], AbstractContextManager[tuple[OpenTable, Names]]]
    output: Path | None
    column: str
    new: Recalibrator
    state: Path | None = None
    repeatable: bool = True
    skip_bad: int = 0
    unknown: bool = False
    ids: str | None = None
    time: str | None = None
    event: str | None = None
    sort: bool = False
    complete: bool = False
    again: bool = False
    progress: Callable[[OpenTable, int], None] = lambda table, rows: None

    def run(self) -> RecalibrationResult:
        """Do it all, or what is left of it.

        Raises
        ------
        FileError
            If the file, the output or the state cannot be used, or a row breaks a rule; nothing is
            left behind then.
        """
        with lock(self.output, "-o"), lock(self.state, "--state"):
            checkpoint = None
            if self.state is not None and self.output is not None:
                checkpoint = Checkpoint(self.state, self.output)
            return self._in_order(checkpoint) if self.ids is None else self._by_id(checkpoint)

    # Rows without ids: find out where to begin, read over what is known, play the rest.

    def _in_order(self, checkpoint: Checkpoint | None) -> RecalibrationResult:
        name = "the file"
        for start in self._starts(checkpoint):
            with self._opened() as read:
                name = read.table.name
                if not start.stopped:  # the output of a stopped run tells its classes, too
                    self._check_learned(start, read.names)
                rows = InOrder(read, start, kept=checkpoint is not None)
                differs = rows.read_over_known()
                if start.stopped and start.run is not None and start.run.columns != read.columns:
                    continue
                if differs is None:
                    return self._play_rest(rows, checkpoint)
                if not start.stopped and start.run is not None and checkpoint is not None:
                    self._refuse_known(read, differs, start.run, checkpoint)
        left = f"of the run that was stopped; to forget that, remove {self.state}.part"
        raise FileError(name, f"does not begin with the rows {left}")

    def _check_learned(self, start: Saved, names: Names) -> None:
        """Refuse a state of other classes, or in another order, or of log-odds."""
        if start.recalibrator.config["scale"] != "probability":
            reason = 'has learned from log-odds (scale="logit"), and scores are probabilities'
            raise FileError(str(self.state), f"{reason}: use another state")
        learned: tuple[str, ...] = ()
        if isinstance(start.recalibrator, ClassRecalibrator):
            learned = tuple(map(str, start.recalibrator.classes))
        if start.recalibrator is not self.new and learned != names.labels:
            before, now = (
                f"classes {', '.join(labels):.200}" if labels else "outcomes 0 or 1"
                for labels in (learned, names.labels)
            )
            remedy = "use another state, or --scores and --classes in its order"
            raise FileError(str(self.state), f"is of {before}, not of {now}: {remedy}")

    def _starts(self, checkpoint: Checkpoint | None) -> Iterator[Saved]:
        """Yield where to begin, the best first; each is right if the file begins with its rows.

        Where a run was stopped, after the rows of the last run, at the first row.
        """
        if checkpoint is None:
            yield Saved(self.new)
            return
        stopped = checkpoint.stopped
        last = checkpoint.last
        by_id = None if last is None or last.run is None else last.run.known
        if by_id is not None and not self.again:
            raise FileError(
                str(self.state), f"knows rows by their {by_id.column!r:.80}: use --id so"
            )
        if stopped is not None:
            if stopped.run is not None and stopped.run.prints is not None:
                yield stopped
                if not self.repeatable:
                    return
            # the file does not begin with its rows, or it was a run with ids
            checkpoint.drop()
        if last is None:
            yield Saved(self.new)
            return
        if last.run is not None and self.repeatable and not self.again:
            yield last
        yield Saved(last.recalibrator, time=last.time)

    def _play_rest(self, rows: InOrder, checkpoint: Checkpoint | None) -> RecalibrationResult:
        """Play the rows after those that were learned from before."""
        read = rows.read
        start = rows.start
        first = next(rows.rest, None)  # without one, a complete output stays as it is
        written = None  # how far the output has come
        if start.stopped and start.run is not None:
            written = start.run.written[0]
        elif checkpoint is not None and checkpoint.continues(start.run, read.columns):
            if first is None:
                return rows.result(checkpoint.forgotten)
            written = self._begin_with_output()
        rows.rest = chained(first, rows.rest)
        if read.times is not None and start.time is not None and not start.stopped:
            rows.rest = read.times.after(start.time, rows.rest)
        return self._play(rows, written, checkpoint)

    def _begin_with_output(self) -> int | None:
        with self._writing():
            return None if self.output is None else begin_with_output(self.output)

    # Rows with ids: what is known is not forecast again, wherever it stands in the file.

    def _by_id(self, checkpoint: Checkpoint | None) -> RecalibrationResult:
        last = None
        if checkpoint is not None:
            if checkpoint.stopped is not None:
                checkpoint.drop()  # begun anew: nothing of it was put in place
            last = checkpoint.last
        if last is not None and last.run is not None and last.run.known is None:
            reason = (
                "was saved by a run without --id: its rows cannot be known again. Use a new state"
            )
            raise FileError(str(self.state), reason)
        start = last or Saved(self.new)
        with self._opened() as read:
            known = None if start.run is None else start.run.known
            self._check_learned(start, read.names)
            rows = ById(read, start, self._checked_ids(known, read.names))
            try:
                return self._play(rows, None, checkpoint)
            except StateError as error:
                reason = f"has ids that are not of its recalibrator: {error}"
                raise FileError(str(self.state), reason) from error

    def _checked_ids(self, known: ForecastsById | None, names: Names) -> ForecastsById:
        """Return what is known by ids, which must be those of the same column."""
        column = self.ids or ""
        grouped = names.group is not None
        width = len(names.scores)
        if known is None:
            return ForecastsById(column, grouped=grouped, width=width)
        if known.column != column:
            reason = f"knows rows by their {known.column!r:.80}, so --id must be that"
            raise FileError(str(self.state), reason)
        if known.width != width:
            reason = f"knows rows of {counted(known.width, 'score')}, not of {width}"
            raise FileError(str(self.state), f"{reason}: use another state")
        if len(known) and known.grouped != grouped:
            reason = f"knows rows {'in' if known.grouped else 'without'} groups: use --by so"
            raise FileError(str(self.state), reason)
        known.grouped = grouped
        return known

    # All rows: read, forecast, learn, write, and save how far that is from time to time.

    @contextmanager
    def _opened(self) -> Iterator[Reading]:
        with self.open() as (table, names):
            yield self._reading(table, names)

    def _reading(self, table: OpenTable, names: Names) -> Reading:
        new: tuple[str, ...] = (self.column,)
        if names.labels:
            new = tuple(f"{self.column}_{label}" for label in names.labels)
        check_output(self.output, table, new)
        if table.records is not None:
            table.records.hold = self.state is not None and not self.complete
        options = {"--id": self.ids, "--time": self.time, "--event": self.event}
        for option, column in options.items():
            check_there(table.name, table.columns, column, option)
        by_id = self.ids is not None
        also = tuple(filter(None, options.values()))
        names = replace(names, also=also, repeated=by_id, event=self.event)
        unknown = self.unknown or by_id
        found = rounds(table, names, skip_bad=self.skip_bad, unknown=unknown, whole=True)
        parts = _whole_lines(table, found)
        times = None
        if self.time is not None:
            times = Times(table.name, self.time, also.index(self.time, int(by_id)))
            parts = in_order(parts, times, sort=self.sort)
        return Reading(table, names, parts, times, new, columns_of(table, new))

    def _play(
        self, rows: Rows, written: int | None, checkpoint: Checkpoint | None
    ) -> RecalibrationResult:
        """Play the rows that are left; the output begins with what was written.

        While some are played, another thread writes those before them and reads the next: from a
        file to a file. Rows of a pipe are written when they come, not when more have come.
        """
        read = rows.read
        files = self.output is not None and read.table.fraction() is not None
        saved = checkpoint if rows.resumable else None
        with self._writing():
            out = open_output(self.output, read.table, read.new, written, read.names.cells)
        try:
            with Aside(wanted=files) as aside:
                for part, time in aside.ahead((part, read.last_time) for part in rows.rest):
                    forecasts = rows.play(part)
                    pause = rows.chunks % _CHUNKS == 0 and self.output is not None
                    sync = pause and saved is None  # rows go on while the disk writes
                    aside.do(partial(self._write, rows, out, part, forecasts, sync=sync))
                    self.progress(read.table, rows.rows)
                    if pause and saved is not None:
                        aside.wait()
                        self._save(rows, out, saved, time)
                aside.wait()
            self._finish(rows, out, checkpoint)
        except BaseException as error:
            self._give_up(out, saved, error)
            raise
        return rows.result(None if checkpoint is None else checkpoint.forgotten)

    def _write(
        self,
        rows: Rows,
        out: Output,
        part: Rounds,
        forecasts: NDArray[np.float64],
        *,
        sync: bool,
    ) -> None:
        rows.note(part, forecasts)
        with self._writing():
            out.write(part, forecasts.reshape(len(part), len(rows.read.new)))
            if sync:
                out.sync()

    def _save(self, rows: Rows, out: Output, checkpoint: Checkpoint, time: Time | None) -> None:
        with self._writing():
            mark = out.sync()
        checkpoint.save(rows.recalibrator, rows.record(checkpoint, mark, time))

    def _finish(self, rows: Rows, out: Output, checkpoint: Checkpoint | None) -> None:
        """Put the output in its place, and then the state."""
        with self._writing():
            mark = out.finish()
        if checkpoint is not None:
            record = rows.record(checkpoint, mark, rows.read.last_time)
            checkpoint.commit(rows.recalibrator, record)
        elif self.output is not None:
            with self._writing():
                put_in_place(self.output, mark)

    def _give_up(self, out: Output, checkpoint: Checkpoint | None, error: BaseException) -> None:
        """Leave nothing behind, unless the run can be continued."""
        with self._writing():
            if checkpoint is None:
                out.discard()
                return
            out.close()
        if isinstance(error, TruecastError):
            checkpoint.drop()

    def _writing(self) -> AbstractContextManager[None]:
        return writing(self.output, "-o")

    # A file that shares rows with the last run and does not begin with all of them.

    def _refuse_known(
        self, read: Reading, comparison: Comparison, run: RunRecord, checkpoint: Checkpoint
    ) -> None:
        """Refuse rows that were learned from before, unless chance explains what is alike."""
        name = read.table.name
        several = bool(read.names.labels)
        outcomes, scores, groups = comparison.same
        grouped_before, grouped_now = comparison.grouped
        if outcomes and scores and grouped_before != grouped_now:
            reason = "begins with rows that the state has learned in another way"
            raise FileError(name, f"{reason}: --by must be as it was")
        if scores and groups and run.unknown:
            reason = "begins with the rows of the run before, of which some had no outcome"
            remedy = "pass only new rows, because no row is learned twice"
            raise FileError(name, f"{reason}: {remedy}; --id is for outcomes that come later")
        shares = comparison.shares
        if shares and (found := self._difference(comparison, run, checkpoint)) is not None:
            place, reason = found
            raise FileError(name, f"{reason}; {_AGAIN}", place)
        if shares or comparison.apart:
            read_by = _CLASSES_READ_BY if several else _READ_BY
            options = (
                each for each, same in zip(read_by, comparison.same, strict=True) if not same
            )
            reason = "begins with rows that the state has learned in another way"
            remedy = f"{', '.join(options)} must be as before"
            raise FileError(name, f"{reason}: {remedy}; if all rows are new, use --again")

    def _difference(
        self, comparison: Comparison, run: RunRecord, checkpoint: Checkpoint
    ) -> tuple[str | None, str] | None:
        """Return where the file first differs from the last run, and how.

        The output of that has what it read. None if they do not differ: the file was read in
        another way.
        """
        with self._opened() as read:
            if not checkpoint.has_output_of(run) or self.output is None:
                return differing_block(read.parts, comparison, run.rows)
            with open_table(str(self.output)) as output:
                names = replace(read.names, also=())  # which the output need not have
                before = rounds(output, names, unknown=True)
                return first_difference(read.parts, before, names, run.rows)


def _whole_lines(table: OpenTable, parts: Iterator[Rounds]) -> Iterator[Rounds]:
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
        reason = (
            f"has no row yet but {held}, which has no line break: if it is complete, use --complete"
        )
        raise FileError(table.name, reason) from error
