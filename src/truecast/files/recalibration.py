"""A file through a recalibrator, row by row; a run that was stopped at any moment can be continued."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from truecast.errors import FileError, StateError, TruecastError, writing
from truecast.files.checkpoint import Checkpoint, RunRecord, Saved
from truecast.files.columns import Names, check_there
from truecast.files.difference import differing_block, first_difference
from truecast.files.known import Known
from truecast.files.output import Output, begin_with, check_output, columns_of, open_output
from truecast.files.places import complete, lock
from truecast.files.playing import ById, InOrder, Reading, Rows, chained
from truecast.files.prints import Likeness
from truecast.files.recalibrated import Measured, RecalibrationResult
from truecast.files.rounds import Rounds, rounds
from truecast.files.source import OpenTable, open_table
from truecast.files.times import Times, in_order
from truecast.recalibrate import Recalibrator

__all__ = ["Recalibration"]

# between checkpoints: by count, not by time, so that a packed file comes out the same in any case
_CHUNKS = 16
_AGAIN = "no row is learned from twice: restore the rows, or give new rows only; if all rows are new, use --again"
_READ_BY = "--outcome and --positive", "--score and --percent", "--by"


@dataclass(frozen=True)
class Recalibration:
    """A file with one more column: its scores, recalibrated, each before its outcome was learned.

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
        The name of the new column.
    new : Recalibrator
        The recalibrator to begin with.
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
            journal = (
                None
                if self.state is None or self.output is None
                else Checkpoint(self.state, self.output)
            )
            return self._by_id(journal) if self.ids is not None else self._in_order(journal)

    def _in_order(self, journal: Checkpoint | None) -> RecalibrationResult:
        name = "the file"
        for start, stopped in self._starts(journal):
            with self.open() as (table, names):
                name = table.name
                read = self._reading(table, names)
                learned = InOrder(columns_of(table, self.column), read)
                comparison = learned.skip(start.run)
                if comparison is not None or (
                    stopped and not _of_columns(start.run, learned.columns)
                ):
                    if not stopped and comparison is not None:
                        self._refuse_twice(read, comparison, start.run, journal)
                    continue
                return self._rest(read, learned, start, stopped, journal)
        left = f"of the run that was stopped; to forget that, remove {self.state}.part"
        raise FileError(name, f"does not begin with the rows {left}")

    def _by_id(self, journal: Checkpoint | None) -> RecalibrationResult:
        """Go through the file from its beginning: what is known by its id is not forecast again.

        A run that was stopped is begun anew, since nothing of it was put in place.
        """
        if journal is not None and journal.stopped is not None:
            journal.drop()
        last = None if journal is None else journal.last
        if last is not None and last.run is not None and last.run.known is None:
            reason = (
                "was saved by a run without --id: its rows cannot be known again. Use a new state"
            )
            raise FileError(str(self.state), reason)
        start = last or Saved(self.new, None)
        with self.open() as (table, names):
            read = self._reading(table, names)
            known = None if start.run is None else start.run.known
            learned = ById(
                columns_of(table, self.column), read, self._checked_ids(known, read.names)
            )
            learned.begin(start)
            try:
                return self._through(read, learned, start, self._new_output(read.table), journal)
            except StateError as error:
                raise FileError(
                    str(self.state), f"has ids that are not of its recalibrator: {error}"
                ) from error

    def _checked_ids(self, known: Known | None, names: Names) -> Known:
        """Return what is known by ids, which must be those of the same column."""
        column, grouped = self.ids or "", names.group is not None
        if known is None:
            return Known(column, grouped=grouped)
        if known.column != column:
            raise FileError(
                str(self.state), f"knows rows by their {known.column!r:.80}, so --id must be that"
            )
        if len(known) and known.grouped != grouped:
            raise FileError(
                str(self.state),
                f"knows rows {'in' if known.grouped else 'without'} groups: use --by so",
            )
        known.grouped = grouped
        return known

    def _starts(self, journal: Checkpoint | None) -> Iterator[tuple[Saved, bool]]:
        """Yield where to begin: where a run was stopped, or after what was learned from, or at the first row."""
        if journal is None:
            yield Saved(self.new, None), False
            return
        stopped, last = journal.stopped, journal.last
        if (
            last is not None
            and last.run is not None
            and last.run.known is not None
            and not self.again
        ):
            raise FileError(
                str(self.state), f"knows rows by their {last.run.known.column!r:.80}: use --id so"
            )
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

    def _reading(self, table: OpenTable, names: Names) -> Reading:
        check_output(self.output, table, self.column)
        if table.records is not None:
            table.records.hold = self.state is not None and not self.complete
        also = {"--id": self.ids, "--time": self.time, "--event": self.event}
        for option, column in also.items():
            check_there(table.name, table.columns, column, option)
        read = tuple(filter(None, also.values()))
        names = replace(names, also=read, repeated=self.ids is not None, event=self.event)
        times = (
            None if self.time is None else Times(table.name, self.time, int(self.ids is not None))
        )
        unknown = self.unknown or self.ids is not None
        parts = _whole_lines(
            table, rounds(table, names, skip_bad=self.skip_bad, unknown=unknown, whole=True)
        )
        if times is not None:
            parts = in_order(parts, times, sort=self.sort)
        return Reading(table, names, parts, times)

    def _refuse_twice(
        self, read: Reading, comparison: Likeness, run: RunRecord | None, journal: Checkpoint | None
    ) -> None:
        """Refuse rows that were learned from before."""
        if run is None or journal is None:
            return
        name, (outcomes, scores, groups) = read.table.name, comparison.same
        if outcomes and scores and comparison.grouped[0] != comparison.grouped[1]:
            reason = "begins with rows that the state has learned from, but not so: --by must be as it was"
            raise FileError(name, reason)
        if scores and groups and run.unknown:
            reason = "begins with the rows of the run before, of which some had no outcome: give new rows only"
            raise FileError(
                name,
                f"{reason}, since no row is learned from twice; --id is for outcomes that come later",
            )
        if comparison.shares and (found := self._difference(comparison, run, journal)) is not None:
            place, reason = found
            raise FileError(name, f"{reason}; {_AGAIN}", place)
        if comparison.shares or comparison.apart:
            options = ", ".join(
                each for each, same in zip(_READ_BY, comparison.same, strict=True) if not same
            )
            reason = f"begins with rows that the state has learned from, but not so: {options} must be as before"
            raise FileError(name, f"{reason}; if all rows are new, use --again")

    def _difference(
        self, comparison: Likeness, run: RunRecord, journal: Checkpoint
    ) -> tuple[str | None, str] | None:
        """Return where the file first differs from the last run, and how: what that read is in its output.

        None if it does not differ, and was read in another way.
        """
        with self.open() as (table, names):
            read = self._reading(table, names)
            if not journal.has_output_of(run) or self.output is None:
                return differing_block(read.parts, comparison, run.rows)
            with open_table(str(self.output)) as output:
                was = rounds(output, names, unknown=True)
                return first_difference(read.parts, was, names, run.rows)

    def _rest(
        self,
        read: Reading,
        learned: InOrder,
        start: Saved,
        stopped: bool,
        journal: Checkpoint | None,
    ) -> RecalibrationResult:
        """Take the rows after those that were learned from before."""
        first = next(learned.rest, None)
        learned.begin(start)
        if (
            first is None
            and journal is not None
            and not stopped
            and journal.goes_on(start.run, learned.columns)
        ):
            return learned.done(start, Measured(), read.held, journal.forgotten)
        learned.rest = chained(first, learned.rest)
        if read.times is not None and start.time is not None and not stopped:
            learned.rest = read.times.after(start.time, learned.rest)
        out = self._continued_output(read.table, start.run, stopped, journal)
        return self._through(read, learned, start, out, journal)

    def _continued_output(
        self, table: OpenTable, run: RunRecord | None, stopped: bool, journal: Checkpoint | None
    ) -> Output:
        written = None
        if stopped and run is not None:
            written = run.written[0]
        elif (
            journal is not None
            and self.output is not None
            and journal.goes_on(run, columns_of(table, self.column))
        ):
            with self._writing():
                written = begin_with(self.output)
        return self._new_output(table, written)

    def _new_output(self, table: OpenTable, written: int | None = None) -> Output:
        with self._writing():
            return open_output(self.output, table, self.column, written)

    def _writing(self) -> AbstractContextManager[None]:
        return writing(self.output, "-o")

    def _through(
        self, read: Reading, learned: Rows, start: Saved, out: Output, journal: Checkpoint | None
    ) -> RecalibrationResult:
        recalibrator, measured = start.recalibrator, Measured()
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
        return learned.done(
            start, measured, read.held, None if journal is None else journal.forgotten
        )

    def _give_up(self, out: Output, journal: Checkpoint | None, error: BaseException) -> None:
        """Leave nothing behind, unless the run can be continued: then what there is stays as it is."""
        with self._writing():
            if journal is None:
                out.discard()
                return
            out.close()
        if isinstance(error, TruecastError):
            journal.drop()


def _of_columns(run: RunRecord | None, columns: list[str]) -> bool:
    return run is None or run.columns == columns


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
