"""What a recalibrator has learned from a file, kept in another; how far a run had come when it was stopped."""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict, dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from truecast import state
from truecast.errors import FileError, StateError
from truecast.files.places import Mark, complete, holds, mark, part_of, remove, replaced, sync
from truecast.recalibrate import Recalibrator

__all__ = ["Checkpoint", "Run", "Saved"]


@dataclass(frozen=True)
class Run:
    """How far a run has come.

    Attributes
    ----------
    rows : int
        Of its file that were learned from.
    digest : str
        Of what was learned from them.
    skipped, unknown : int
        Bad rows that were left out before and among them, and those without an outcome.
    output : str
        The path of its output.
    columns : list of str
        What that has, the new one last; with their types if it has such.
    written : (int, int)
        How far that has come, and how to know it again.
    base : int or None
        Checksum of the state that it began with, if there was one.
    complete : bool
        Whether all is done but to put the files in their places.
    """

    rows: int
    digest: str
    skipped: int
    unknown: int
    output: str
    columns: list[str]
    written: Mark
    base: int | None
    complete: bool = False


@dataclass(frozen=True)
class Saved:
    """A recalibrator, and the run that it was saved by, if any."""

    recalibrator: Recalibrator
    run: Run | None


class Checkpoint:
    """A state, PATH, and beside it PATH.part while a run is under way.

    Each is written whole, under another name, before it takes its place: there is never half a state. A run is
    complete when PATH.part says so; then the output takes its place, and then the state. Whoever finds such a PATH.part
    only has to do the rest.
    """

    def __init__(self, path: Path, output: Path) -> None:
        self._path, self._part = path, part_of(path)
        self._output = str(output.resolve())
        self._finish()
        self._base = self._checksum()

    def _finish(self) -> None:
        """Put the files of a run in their places that was stopped when this was all there was to do."""
        saved = self._read(self._part)
        if saved is not None and saved.run is not None and saved.run.complete:
            complete(Path(saved.run.output), saved.run.written)
            self._part.replace(self._path)

    @property
    def last(self) -> Saved | None:
        """What was saved at the end of the last run, if there was one."""
        return self._read(self._path)

    @property
    def stopped(self) -> Saved | None:
        """What was saved of a run to the same output that was stopped; a run to another one is forgotten."""
        saved = self._read(self._part)
        if saved is None or saved.run is None:
            return None
        there = holds(part_of(Path(saved.run.output)), saved.run.written)
        if there and self._is_of(saved.run) and saved.run.base == self._base:
            return saved
        if there:
            remove(Path(saved.run.output))
        self._part.unlink()
        return None

    def _is_of(self, run: Run) -> bool:
        return run.output == self._output

    def goes_on(self, run: Run | None, columns: list[str]) -> bool:
        """Return whether the output of a complete run is to be gone on with, which must be as that has left it."""
        if run is None or not self._is_of(run):
            return False
        if run.columns != columns:
            was, now = next((was, now) for was, now in zip_longest(run.columns, columns) if was != now)
            raise FileError(self._output, f"has a column {was!r} so far where {now!r} would be: choose another output")
        path = Path(self._output)
        if not path.is_file() or mark(path) != run.written:
            raise FileError(self._output, "is not as the last run has left it: choose another output")
        return True

    def run(self, rows: int, digest: str, skipped: int, unknown: int, columns: list[str], written: Mark) -> Run:
        """Return how far this run has come."""
        return Run(rows, digest, skipped, unknown, self._output, columns, written, self._base)

    def save(self, recalibrator: Recalibrator, run: Run) -> None:
        """Save how far the run has come."""
        kind = type(recalibrator).__name__
        text = state.to_json(kind, recalibrator.config, recalibrator.state(), run=asdict(run))
        with replaced(self._part) as part:
            part.write_text(text)

    def commit(self, recalibrator: Recalibrator, run: Run) -> None:
        """Save the end of the run: its output and the state take their places."""
        if self._checksum() != self._base:
            raise FileError(str(self._path), "was changed by another run while this one was under way")
        self.save(recalibrator, replace(run, complete=True))
        self._finish()
        sync(self._path.resolve().parent)

    def drop(self) -> None:
        """Forget the run."""
        remove(Path(self._output))
        self._part.unlink(missing_ok=True)

    def _checksum(self) -> int | None:
        return zlib.crc32(self._path.read_bytes()) if self._path.exists() else None

    def _read(self, path: Path) -> Saved | None:
        try:
            text = path.read_text()
        except FileNotFoundError:
            return None
        except (UnicodeDecodeError, IsADirectoryError) as error:
            raise FileError(str(path), f"is not a saved recalibrator ({error})") from error
        try:
            recalibrator = Recalibrator.from_json(text)
            found = json.loads(text).get("run")
            return Saved(recalibrator, None if found is None else _run(found))
        except StateError as error:
            raise FileError(str(path), f"is not a saved recalibrator: {error}") from error


def _run(found: Any) -> Run:
    try:
        return Run(**found | {"written": tuple(found["written"])})
    except (TypeError, KeyError) as error:
        raise StateError(f"it was saved by another version of the command ({error})") from error
