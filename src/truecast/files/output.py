"""The rows of a file with one more column, written piece by piece: there is never half a file under its own name."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truecast.errors import FileError
from truecast.files.packing import pack, packed_by
from truecast.files.rounds import Rounds
from truecast.files.source import Table

__all__ = ["Output", "begin_with", "complete", "open_output", "part_of", "remove", "replaced"]

_ENDINGS = {"csv": (".csv", ".tsv", ".txt"), "json": (".jsonl", ".ndjson", ".json"), "parquet": (".parquet", ".pq")}


def part_of(path: Path) -> Path:
    """Return where a file is until it is complete; a device or a pipe is written to as it is."""
    target = path.resolve()  # a link stays a link
    return target.with_name(target.name + ".part") if target.is_file() or not target.exists() else target


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """Give a place to write to; what was written there replaces the file once it is complete and on the disk."""
    part, target = part_of(path), path.resolve()
    if part == target:
        yield target
        return
    try:
        yield part
        with part.open("rb+") as written:
            os.fsync(written.fileno())
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def open_output(path: Path | None, table: Table, column: str, written: int | None = None) -> Output:
    """Begin the rows of a table with one more column, or go on with them.

    Parameters
    ----------
    path
        Where they are to be in the end, of the kind of the table; None for standard output.
    table
        What is read.
    column
        The name of the new column.
    written
        How far it had come, as `sync` said; None to begin.
    """
    if column in table.columns:
        raise FileError(table.name, f"has a column {column!r} already: call the new one otherwise by --column")
    if path is not None and not _of_kind(path, table.kind):
        raise FileError(str(path), f"must end in {', '.join(_ENDINGS[table.kind])}, since {table.name} is of that kind")
    if table.kind == "parquet":
        if path is None:
            raise FileError("standard output", "cannot be Parquet: write to a file by -o")
        return _ParquetOutput(path, table, column, written)
    return _TextOutput(path, table, column, written)


def _of_kind(path: Path, kind: str) -> bool:
    packed = packed_by(path)
    name = path.name.lower().removesuffix(packed or "")
    return name.endswith(_ENDINGS[kind]) and not (packed and kind == "parquet")


class Output(ABC):
    """Rows with one more column, in the making."""

    path: Path | None

    @abstractmethod
    def write(self, rounds: Rounds, values: NDArray[np.float64]) -> None:
        """Write rows, each with its value."""

    @abstractmethod
    def sync(self) -> int:
        """See that all is on the disk, and return how far that is."""

    @abstractmethod
    def close(self) -> None:
        """Write no more; the rows stay where they are."""

    def discard(self) -> None:
        """Write no more, and leave nothing behind."""
        self.close()
        if self.path is not None:
            remove(self.path)


def remove(path: Path) -> None:
    """Remove what there is of a file that was not completed."""
    part = part_of(path)
    if part.is_dir():
        shutil.rmtree(part)
    elif part != path.resolve():
        part.unlink(missing_ok=True)


def complete(path: Path) -> None:
    """Put a file whose rows are all written in its place; to do so twice does no harm."""
    part = part_of(path)
    if part.is_dir():
        pieces = sorted(part.glob("*.piece"))
        pl.scan_parquet(pieces).sink_parquet(part / "whole", row_group_size=_GROUP, maintain_order=True)
        (part / "whole").replace(path.resolve())
        shutil.rmtree(part)
    elif part.exists():
        part.replace(path.resolve())


def begin_with(path: Path, written: int) -> int:
    """Begin a file with what is there of it, which was complete; return how far that is."""
    part = part_of(path)
    if path.suffix.lower() in _ENDINGS["parquet"] and path.exists():
        remove(path)
        part.mkdir()
        shutil.copyfile(path, part / f"{0:09}.piece")
        return 1
    if not path.exists() or path.stat().st_size != written:
        raise FileError(str(path), "is not as the last run has left it: choose another output")
    shutil.copyfile(path, part)
    return written


_GROUP = 1 << 18


class _TextOutput(Output):
    def __init__(self, path: Path | None, table: Table, column: str, written: int | None) -> None:
        self.path, self._column = path, column
        self._separator: str = getattr(table, "separator", ",")
        self._packed = None if path is None else packed_by(path)
        self._raw = _opened(path, written)
        self._packer: Any = None
        if written is None and table.kind == "csv":
            self._stream.write(_row([*table.columns, column], self._separator))

    @property
    def _stream(self) -> Any:
        if self._packed is None:
            return self._raw
        if self._packer is None:
            self._packer = pack(str(self.path), self._raw, self._packed)
        return self._packer

    def write(self, rounds: Rounds, values: NDArray[np.float64]) -> None:
        if isinstance(rounds.whole, pl.DataFrame):
            frame = rounds.whole.with_columns(pl.Series(" ", values))
            frame.write_csv(self._stream, include_header=False, separator=self._separator)
        elif rounds.whole is not None:
            key = f", {json.dumps(self._column)}: ".encode()
            pairs = zip(rounds.whole, values.tolist(), strict=True)
            self._stream.write(b"".join(b"%b%b%r}\n" % (line.rstrip()[:-1], key, value) for line, value in pairs))

    def sync(self) -> int:
        if self._packer is not None:  # a compressed file may consist of several, one after the other
            self._packer.close()
            self._packer = None
        self._raw.flush()
        os.fsync(self._raw.fileno())
        return self._raw.tell()

    def close(self) -> None:
        if self._packer is not None:
            self._packer.close()
        self._raw.flush() if self.path is None else self._raw.close()


def _opened(path: Path | None, written: int | None) -> IO[bytes]:
    if path is None:
        return sys.stdout.buffer
    raw = part_of(path).open("wb" if written is None else "rb+")
    raw.truncate(written or 0)
    raw.seek(0, os.SEEK_END)
    return raw


def _row(fields: list[str], separator: str) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=separator, lineterminator="\n").writerow(fields)
    return text.getvalue().encode()


class _ParquetOutput(Output):
    """A folder of pieces, which become one file in the end: Parquet cannot be gone on with."""

    def __init__(self, path: Path, table: Table, column: str, written: int | None) -> None:
        self.path, self._column = path, column
        self._schema: dict[str, Any] = {**getattr(table, "schema", {}), column: pl.Float64}
        self._pieces = written or 0
        self._part = part_of(path)
        if written is None:
            remove(path)
        self._part.mkdir(exist_ok=True)
        for piece in sorted(self._part.glob("*.piece"))[self._pieces :]:
            piece.unlink()

    def write(self, rounds: Rounds, values: NDArray[np.float64]) -> None:
        if isinstance(rounds.whole, pl.DataFrame):
            self._add(rounds.whole.with_columns(pl.Series(self._column, values)))

    def _add(self, frame: pl.DataFrame) -> None:
        frame.write_parquet(self._part / f"{self._pieces:09}.piece")
        self._pieces += 1

    def sync(self) -> int:
        if not self._pieces:
            self._add(pl.DataFrame(schema=self._schema))
        os.sync()
        return self._pieces

    def close(self) -> None:
        pass
