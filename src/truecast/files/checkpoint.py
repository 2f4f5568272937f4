"""What a recalibrator has learned from a file, and how far a stopped run had come."""

from __future__ import annotations

import json
import zlib
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, Self

from truecast import state
from truecast._atomic import refuse_foreign, replaced, sync
from truecast.errors import FileError, StateError, VersionError, writing
from truecast.files.known import ForecastsById
from truecast.files.prints import Prints
from truecast.files.times import Time, saved_time
from truecast.files.unfinished import (
    Mark,
    mark,
    part_path,
    put_in_place,
    reaches,
    refuse_no_file,
    remove_part,
)
from truecast.recalibrate import ClassRecalibrator, Recalibrator

__all__ = ["Checkpoint", "RunRecord", "Saved"]

_MOST = 1 << 62
_CHECKSUMS = (1 << 32) - 1
_BEGIN = b'{"format": "truecast", '


@dataclass(frozen=True)
class RunRecord:
    """How far a run has come.

    Attributes
    ----------
    rows : int
        Of its file that were read.
    skipped, unknown : int
        Bad rows that were left out before and among them, and those without an outcome.
    output : str
        The path of its output.
    columns : list of str
        What that has, the new ones last; with their types if it has such.
    written : (int, int)
        How far that has come, and how to know it again.
    base : int or None
        Checksum of the state that it began with, if there was one.
    prints : Prints or None
        By which its rows are known again, in order.
    known : ForecastsById or None
        By which they are if they have ids.
    time : Time or None
        Of the last row, if rows have times.
    complete : bool
        Whether all is done but to put the files in their places.
    """

    rows: int
    skipped: int
    unknown: int
    output: str
    columns: list[str]
    written: Mark
    base: int | None
    prints: Prints | None = None
    known: ForecastsById | None = None
    time: Time | None = None
    complete: bool = False

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        plain = {each.name: getattr(self, each.name) for each in fields(self)}
        plain["prints"] = None if self.prints is None else self.prints.record()
        plain["known"] = None if self.known is None else self.known.record()
        return plain

    @classmethod
    def load(cls, saved: object) -> Self:
        """Build what `record` gave.

        Raises
        ------
        StateError
            If it gave no such thing.
        """
        if not isinstance(saved, dict) or set(saved) != {each.name for each in fields(cls)}:
            raise StateError(
                "it must have the entries of this version of the command, and no others"
            )
        for name in ("rows", "skipped", "unknown"):
            _check_count(name, saved[name], _MOST)
        if saved["base"] is not None:
            _check_count("base", saved["base"], _CHECKSUMS)
        if not isinstance(saved["written"], list) or len(saved["written"]) != 2:
            raise StateError(f"written must be two numbers, got {saved['written']!r:.80}")
        amount, tail = saved["written"]
        _check_count("written", amount, _MOST)
        _check_count("written", tail, _CHECKSUMS)
        columns = saved["columns"]
        if (
            not isinstance(columns, list)
            or not columns
            or not all(isinstance(name, str) for name in columns)
        ):
            raise StateError(f"columns must be a list of names, got {columns!r:.80}")
        if not isinstance(saved["output"], str) or not isinstance(saved["complete"], bool):
            raise StateError("output must be a path, and complete true or false")
        if (saved["prints"] is None) == (saved["known"] is None):
            raise StateError("it must have either prints or known")
        new = {
            "written": (amount, tail),
            "prints": None
            if saved["prints"] is None
            else Prints.load(saved["prints"], saved["rows"]),
            "known": None if saved["known"] is None else ForecastsById.load(saved["known"]),
            "time": saved_time(saved["time"]),
        }
        return cls(**saved | new)


def _check_count(name: str, number: object, most: int) -> None:
    if type(number) is not int or not 0 <= number <= most:
        raise StateError(f"{name} must be a whole number from 0 to {most}, got {number!r:.80}")


@dataclass(frozen=True)
class Saved:
    """A recalibrator, and what it has learned from.

    Attributes
    ----------
    recalibrator : Recalibrator or ClassRecalibrator
    run : RunRecord or None
        The run that it continues, whose rows come first in the file; None if all rows are new.
    time : Time or None
        Of the last row that was learned from, if that had one.
    stopped : bool
        Whether that run was stopped before its end.
    """

    recalibrator: Recalibrator | ClassRecalibrator
    run: RunRecord | None = None
    time: Time | None = None
    stopped: bool = False


class Checkpoint:
    """A state, PATH, and beside it PATH.part while a run is under way.

    Each is written whole, under another name, before it takes its place: there is never half a
    state. A run is complete when PATH.part says so; then the output takes its place, and then the
    state. A run that finds such a PATH.part only has to do the rest.
    """

    def __init__(self, path: Path, output: Path) -> None:
        self._name = str(path)
        self._path = path.resolve()
        self._part = part_path(path)
        self._output = str(output.resolve())
        self.forgotten: str | None = None
        refuse_no_file(self._part, "--state", ".part")
        refuse_foreign(part_path(self._part), _BEGIN, "--state")
        self._finish()
        self._base = self._checksum()

    def _finish(self) -> None:
        """If a run was stopped when only this was left to do, put its files in their places."""
        saved = self._read(self._part)
        if saved is None or saved.run is None or not saved.run.complete:
            return
        if not self._is_of(saved.run):
            reason = (
                f"is of a run to {saved.run.output!r:.300} that was stopped when it was almost done"
            )
            raise FileError(
                str(self._part),
                f"{reason}: run that command again first; or remove this, to forget it",
            )
        self._put_in_place(saved.run)

    def _put_in_place(self, run: RunRecord) -> None:
        # the output first: while PATH.part is there, this can be done again
        with writing(Path(self._output), "-o"):
            put_in_place(Path(self._output), run.written)
        with self._writing():
            self._part.replace(self._path)

    def _writing(self) -> AbstractContextManager[None]:
        return writing(Path(self._name), "--state")

    @property
    def last(self) -> Saved | None:
        """What was saved at the end of the last run, if there was one."""
        return self._read(self._path)

    @property
    def stopped(self) -> Saved | None:
        """What was saved of a stopped run to the same output; a run to another is forgotten."""
        saved = self._read(self._part)
        if saved is None:
            return None
        if saved.run is None:
            raise FileError(
                str(self._part),
                "already exists and is not from an interrupted run: move it away",
            )
        same_output = self._is_of(saved.run)
        rows_there = same_output and reaches(part_path(Path(self._output)), saved.run.written)
        if rows_there and saved.run.base == self._base:
            return replace(saved, stopped=True)
        self.forgotten = None if same_output else saved.run.output
        if rows_there:
            remove_part(Path(self._output))
        self._part.unlink()
        return None

    def _is_of(self, run: RunRecord) -> bool:
        return run.output == self._output

    def continues(self, run: RunRecord | None, columns: list[str]) -> bool:
        """Return whether this run adds to the output of a complete one, which must be unchanged."""
        if run is None or not self._is_of(run):
            return False
        if run.columns != columns:
            was, now = next(
                (was, now) for was, now in zip_longest(run.columns, columns) if was != now
            )
            raise FileError(
                self._output,
                f"has a column {was!r} where {now!r} would be: choose another output",
            )
        if not self.has_output_of(run):
            raise FileError(self._output, "has changed since the last run: choose another output")
        return True

    def has_output_of(self, run: RunRecord) -> bool:
        """Return whether the output is that of a complete run, unchanged."""
        path = Path(self._output)
        return self._is_of(run) and path.is_file() and mark(path) == run.written

    def record(self, **entries: Any) -> RunRecord:
        """Return how far this run has come."""
        return RunRecord(output=self._output, base=self._base, **entries)

    def save(self, recalibrator: Recalibrator | ClassRecalibrator, run: RunRecord) -> None:
        """Save how far the run has come."""
        kind = type(recalibrator).__name__
        text = state.to_json(kind, recalibrator.config, recalibrator.state(), run=run.record())
        with self._writing(), replaced(self._part, _BEGIN) as part:
            part.write_text(text)

    def commit(self, recalibrator: Recalibrator | ClassRecalibrator, run: RunRecord) -> None:
        """Save the end of the run: its output and the state take their places."""
        if self._checksum() != self._base:
            raise FileError(self._name, "was changed by another run during this one")
        # from here on, whatever happens, the next run only has to put the files in their places
        self.save(recalibrator, replace(run, complete=True))
        self._put_in_place(run)
        with self._writing():
            sync(self._path.parent)

    def drop(self) -> None:
        """Forget the run."""
        remove_part(Path(self._output))
        self._part.unlink(missing_ok=True)

    def _checksum(self) -> int | None:
        return zlib.crc32(self._path.read_bytes()) if self._path.exists() else None

    def _read(self, path: Path) -> Saved | None:
        name = self._name + path.name.removeprefix(self._path.name)
        try:
            text = path.read_text()
        except FileNotFoundError:
            return None
        except (UnicodeDecodeError, OSError) as error:
            raise FileError(name, f"is not a saved recalibrator ({error})") from error
        try:
            recalibrator = Recalibrator.from_json(text)
        except VersionError as error:
            older = json.loads(text)["version"] < state.VERSION
            remedy = ". Use a new --state, and FILE with all rows so far" if older else ""
            raise FileError(name, f"cannot be continued: {error}{remedy}") from error
        except StateError as error:
            reason = f"is not a saved recalibrator: {state.reason(error)}; use a new --state"
            raise FileError(name, reason) from error
        found = json.loads(text).get("run")
        try:
            run = None if found is None else RunRecord.load(found)
        except StateError as error:
            reason = f"has a record of the last run that cannot be used: {error}; without it, which"
            raise FileError(
                name, f"{reason} Recalibrator.from_json(...).to_json() does, all rows are new"
            ) from error
        return Saved(recalibrator, run, None if run is None else run.time)
