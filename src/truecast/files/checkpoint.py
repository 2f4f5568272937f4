"""What a recalibrator has learned from a file, kept in another; how far a run had come when it was stopped."""

from __future__ import annotations

import json
import os
import zlib
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from truecast import state
from truecast.errors import FileError, StateError
from truecast.files.output import complete, part_of, remove, replaced
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
    chunks : int
        In which they were read.
    output : str
        The path of its output.
    written : int
        How far that has come.
    base : int or None
        Checksum of the state that it began with, if there was one.
    complete : bool
        Whether all is done but to put the files in their places.
    """

    rows: int
    digest: str
    chunks: int
    output: str
    written: int
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
            complete(Path(saved.run.output))
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
        if saved.run.output == self._output and saved.run.base == self._base and part_of(Path(self._output)).exists():
            return saved
        remove(Path(saved.run.output))
        self._part.unlink()
        return None

    def is_of(self, run: Run | None) -> bool:
        """Return whether this is where a run has written to."""
        return run is not None and run.output == self._output

    def run(self, rows: int, digest: str, chunks: int, written: int) -> Run:
        """Return how far this run has come."""
        return Run(rows, digest, chunks, self._output, written, self._base)

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
        _sync_folder(self._path.parent)

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
        return Run(**found)
    except TypeError as error:
        raise StateError(f"it was saved by another version of the command ({error})") from error


def _sync_folder(path: Path) -> None:
    """See that names are on the disk, too, where that can be asked for."""
    if os.name == "posix":
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
