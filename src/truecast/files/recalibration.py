"""A file through a recalibrator, row by row; stopped at any moment, it can be gone on with."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from truecast.errors import FileError, TruecastError
from truecast.files.checkpoint import Checkpoint, Run, Saved
from truecast.files.columns import Names
from truecast.files.output import Output, begin_with, check_output, columns_of, open_output
from truecast.files.places import Mark, complete, lock
from truecast.files.rounds import Rounds, rounds
from truecast.files.source import Table
from truecast.recalibrate import Recalibrator

__all__ = ["Recalibrated", "Recalibration"]

_CHUNKS = 16  # between checkpoints: by count, not by time, so that a packed file comes out the same in any case


@dataclass(frozen=True)
class Recalibrated:
    """What a run has done.

    Attributes
    ----------
    recalibrator : Recalibrator
        As it is after the last row.
    rows : int
        That were written now.
    earlier : int
        Rows of the file that had been recalibrated before.
    skipped, unknown : int
        Bad rows that were left out, and rows without an outcome.
    brier : tuple of float
        Of the scores and of what was made of them, in rows written now whose outcome is known; nan if there are none.
    """

    recalibrator: Recalibrator
    rows: int
    earlier: int
    skipped: int
    unknown: int
    brier: tuple[float, float]


@dataclass(frozen=True)
class Recalibration:
    """A file with one more column: its scores, recalibrated, each before its outcome was learned.

    With a `state`, what was learned is kept there, and a run that was stopped, however rudely, is gone on with: the
    output is the same in the end. No row is learned from twice: if the file begins with the rows that the state was
    made from, only those after them are taken.

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
    progress: Callable[[Table, int], None] = lambda table, rows: None

    def run(self) -> Recalibrated:
        """Do it all, or what is left of it.

        Raises
        ------
        FileError
            If the file, the output or the state cannot be used, or a row breaks a rule; nothing is left behind then.
        """
        with lock(self.output), lock(self.state):
            if self.state is None or self.output is None:
                return self._run(None)
            return self._run(Checkpoint(self.state, self.output))

    def _run(self, journal: Checkpoint | None) -> Recalibrated:
        name = "the file"
        for start, stopped in self._starts(journal):
            with self.open() as (table, names):
                name = table.name
                check_output(self.output, table, self.column)
                parts = rounds(table, names, skip_bad=self.skip_bad, unknown=self.unknown, whole=True)
                learned = _Learned(columns_of(table, self.column))
                rest = learned.skip(parts, start.run)
                if rest is None or (stopped and start.run is not None and start.run.columns != learned.columns):
                    if not stopped:
                        learned.refuse_again(name, start.run)
                    continue
                first = next(rest, None)
                if (
                    first is None
                    and journal is not None
                    and not stopped
                    and journal.goes_on(start.run, learned.columns)
                ):
                    skipped = learned.skipped - _skipped(start)
                    return Recalibrated(start.recalibrator, 0, learned.rows, skipped, 0, (math.nan, math.nan))
                out = self._opened_output(table, start.run, stopped, journal)
                return self._through(table, _chained(first, rest), start, learned, out, journal)
        left = f"of the run that was stopped; to forget that, remove {self.state}.part"
        raise FileError(name, f"does not begin with the rows {left}")

    def _starts(self, journal: Checkpoint | None) -> Iterator[tuple[Saved, bool]]:
        """Yield where to begin: where a run was stopped, or after what was learned from, or at the first row."""
        if journal is None:
            yield Saved(self.new, None), False
            return
        stopped = journal.stopped
        if stopped is not None:
            yield stopped, True
            if not self.repeatable:
                return
            journal.drop()
        last = journal.last
        if last is not None and last.run is not None and self.repeatable:
            yield last, False
        yield Saved(self.new if last is None else last.recalibrator, None), False

    def _opened_output(self, table: Table, run: Run | None, stopped: bool, journal: Checkpoint | None) -> Output:
        written = None
        if stopped and run is not None:
            written = run.written[0]
        elif journal is not None and self.output is not None and journal.goes_on(run, columns_of(table, self.column)):
            written = begin_with(self.output)
        return open_output(self.output, table, self.column, written)

    def _through(
        self,
        table: Table,
        parts: Iterator[Rounds],
        start: Saved,
        learned: _Learned,
        out: Output,
        journal: Checkpoint | None,
    ) -> Recalibrated:
        recalibrator, errors = start.recalibrator, np.zeros(2)
        earlier = learned.rows, learned.unknown, _skipped(start)
        try:
            for part in parts:
                said = _said(recalibrator, part)
                out.write(part, said)
                learned.add(part)
                errors += _squared_errors(part, said)
                self.progress(table, learned.rows)
                if learned.chunks % _CHUNKS == 0 and self.output is not None:
                    written = out.sync()
                    if journal is not None:
                        journal.save(recalibrator, learned.run(journal, written))
            written = out.finish()
            if journal is not None:
                journal.commit(recalibrator, learned.run(journal, written))
            elif self.output is not None:
                complete(self.output, written)
        except BaseException as error:
            self._give_up(out, journal, error)
            raise
        rows, unknown, skipped = np.subtract((learned.rows, learned.unknown, learned.skipped), earlier).tolist()
        before, after = (errors / (rows - unknown)).tolist() if rows > unknown else (math.nan, math.nan)
        return Recalibrated(recalibrator, rows, earlier[0], skipped, unknown, (before, after))

    def _give_up(self, out: Output, journal: Checkpoint | None, error: BaseException) -> None:
        """Leave nothing behind, unless the run can be gone on with: then what there is stays as it is."""
        if journal is None:
            out.discard()
            return
        out.close()
        if isinstance(error, TruecastError):
            journal.drop()


class _Learned:
    """What was read so far, to know it again."""

    def __init__(self, columns: list[str]) -> None:
        self.columns = columns
        self.rows = self.chunks = self.skipped = self.unknown = 0
        self._hashes = [hashlib.blake2b(digest_size=16) for _ in range(3)]

    @property
    def digest(self) -> str:
        """Of outcomes, of scores and of groups, one after the other."""
        return "".join(each.hexdigest() for each in self._hashes)

    def run(self, journal: Checkpoint, written: Mark) -> Run:
        """Return how far the run has come that has written so much."""
        return journal.run(self.rows, self.digest, self.skipped, self.unknown, self.columns, written)

    def add(self, part: Rounds, *, chunk: bool = True) -> None:
        """Take note of rounds, in whatever parts they come; the last of a chunk counts it."""
        outcomes, scores, groups = self._hashes
        outcomes.update(np.where(np.isnan(part.y), 2, part.y).astype(np.uint8).tobytes())
        scores.update(part.p[0].tobytes())
        if part.group is not None:
            names = ("\1" if name is None else name for name in part.group.to_list())
            groups.update("".join(f"{name}\0" for name in names).encode())
        self.rows += len(part)
        self.chunks += chunk
        self.skipped += part.skipped
        self.unknown += int(np.isnan(part.y).sum())

    def skip(self, parts: Iterator[Rounds], run: Run | None) -> Iterator[Rounds] | None:
        """Read over what a run has learned from; return what comes after, or None if it was something else."""
        wanted = 0 if run is None else run.rows
        rest: Rounds | None = None
        while self.rows < wanted:
            part = next(parts, None)
            if part is None:
                return None
            left = wanted - self.rows
            self.add(part.first(left), chunk=left >= len(part))
            rest = part.after(left) if left < len(part) else None
        if run is not None and self.digest != run.digest:
            return None
        return _chained(rest, parts)

    def refuse_again(self, name: str, run: Run | None) -> None:
        """Refuse rows that were learned from in another way, as far as that can be told from a coincidence.

        That is: in groups and not now, or the other way round; and rows whose outcomes are known by now.
        """
        if run is None:
            return
        before, now, none = (_thirds(text) for text in (run.digest, self.digest, _Learned([]).digest))
        outcomes, scores, groups = (a == b for a, b in zip(before, now, strict=True))
        if outcomes and scores and (before[2] == none[2]) != (now[2] == none[2]):
            raise FileError(
                name, "begins with rows that the state has learned from, but not so: --by must be as it was"
            )
        if scores and groups and run.unknown:
            reason = "begins with the rows of the run before, of which some had no outcome: give new rows only"
            raise FileError(name, f"{reason}, since no row is learned from twice")


def _thirds(digest: str) -> list[str]:
    return [digest[at : at + 32] for at in (0, 32, 64)]


def _skipped(start: Saved) -> int:
    return 0 if start.run is None else start.run.skipped


def _chained(first: Rounds | None, parts: Iterator[Rounds]) -> Iterator[Rounds]:
    if first is not None:
        yield first
    yield from parts


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


def _squared_errors(part: Rounds, said: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.array([np.nansum((p - part.y) ** 2) for p in (part.p[0], said)])
