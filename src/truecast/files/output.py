"""The rows of a file with one more column, or several, written piece by piece."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import sys
from abc import ABC, abstractmethod
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truecast import _core
from truecast._atomic import in_the_way, open_no_link, sync
from truecast.errors import FileError
from truecast.files.cells import CellFormat
from truecast.files.packing import pack, packed_by
from truecast.files.rounds import Rounds
from truecast.files.source import Lines, OpenTable
from truecast.files.unfinished import JOINED, Mark, mark, part_path, piece, remove_part

__all__ = ["Output", "begin_with_output", "check_output", "columns_of", "open_output"]

_ENDINGS = {
    "csv": (".csv", ".tsv", ".txt"),
    "json": (".jsonl", ".ndjson", ".json"),
    "parquet": (".parquet", ".pq"),
}


def check_output(path: Path | None, table: OpenTable, new: Sequence[str]) -> None:
    """Refuse what cannot be written, before any work is done.

    Raises
    ------
    FileError
        If the table has one of the new columns, or this is no place for a file of its kind.
    """
    for column in new:
        if column in table.columns:
            raise _column_taken(table.name, column)
    if path is None:
        if table.kind == "parquet":
            raise FileError("standard output", "cannot be Parquet: write to a file by -o")
        return
    if path.exists() and not path.is_file():
        raise FileError(
            str(path), "exists and is not a file that can be replaced: choose another output"
        )
    if not _ending_fits(path, table.kind):
        raise FileError(
            str(path),
            f"must end in {', '.join(_ENDINGS[table.kind])}, because {table.name} is of that kind",
        )


def columns_of(table: OpenTable, new: Sequence[str]) -> list[str]:
    """Return the columns of a table and the new ones, with their types if there are such."""
    schema = getattr(table, "schema", {})
    return [
        *(f"{name} ({schema[name]})" if name in schema else name for name in table.columns),
        *new,
    ]


def open_output(
    path: Path | None,
    table: OpenTable,
    new: Sequence[str],
    written: int | None = None,
    cells: CellFormat | None = None,
) -> Output:
    """Begin the rows of a table with new columns, or continue them.

    Parameters
    ----------
    path
        Where they end up, checked before; None for standard output.
    table
        What is read.
    new
        The names of the new columns.
    written
        How far it had come, as the mark says that `sync` gave; None to begin.
    cells
        How the table is read: so can the new columns be. They are percentages if its scores are,
        and text has its decimal mark.
    """
    how = CellFormat() if cells is None else cells
    if path is not None and table.kind == "parquet":
        return _ParquetOutput(path, table, new, written, how)
    return _TextOutput(path, table, new, written, how)


def _ending_fits(path: Path, kind: str) -> bool:
    packed = packed_by(path)
    name = path.name.lower().removesuffix(packed or "")
    return name.endswith(_ENDINGS[kind]) and not (packed and kind == "parquet")


class Output(ABC):
    """Rows with new columns, in the making."""

    path: Path | None

    @abstractmethod
    def write(self, rounds: Rounds, values: NDArray[np.float64]) -> None:
        """Write rows, each with a row of values: one for each of the new columns."""

    @abstractmethod
    def sync(self) -> Mark:
        """See that all is on the disk, and return how far that is."""

    @abstractmethod
    def finish(self) -> Mark:
        """See that all is ready to take its place, and return how to know it again."""

    @abstractmethod
    def close(self) -> None:
        """Write no more; the rows stay where they are."""

    def discard(self) -> None:
        """Write no more, and leave nothing behind."""
        try:
            self.close()
        finally:
            if self.path is not None:
                remove_part(self.path)


def begin_with_output(path: Path) -> int:
    """Begin a file with what is there of it, which was complete; return how far that is."""
    part = part_path(path)
    if path.suffix.lower() not in _ENDINGS["parquet"]:
        _clear_part(path, _first_line(path))
        with path.open("rb") as was, open_no_link(part, "xb") as file:
            shutil.copyfileobj(was, file)
        return part.stat().st_size
    _clear_part(path)
    part.mkdir()
    shutil.copyfile(path, piece(part, 0))
    return 1


def _clear_part(path: Path, first: bytes | None = None) -> None:
    """Remove what a run has left that was killed.

    Raises
    ------
    FileError
        If there is a file instead that is not like one with this `first` line, None if it cannot be
        ours at all.
    """
    part = part_path(path)
    first_there = _first_line(part) if part.is_file() else b""
    if first_there and (first is None or _signature(path, first_there) != _signature(path, first)):
        raise in_the_way(part, "-o")
    remove_part(path)


def _first_line(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.readline(_LONGEST)


def _signature(path: Path, first: bytes) -> bytes:
    """Return what tells our file: its header, its last JSON name, or how it is packed."""
    if packed_by(path):
        return first[:2]
    if path.suffix.lower() in _ENDINGS["json"]:
        return first.rpartition(b", ")[2].rpartition(b":")[0]
    return first


_GROUP = 1 << 18
_LONGEST = 1 << 20


class _TextOutput(Output):
    def __init__(
        self,
        path: Path | None,
        table: OpenTable,
        new: Sequence[str],
        written: int | None,
        cells: CellFormat,
    ) -> None:
        self.path = path
        self._cells = cells
        self._new = tuple(new)
        self._table_name = table.name
        self._separator: str = getattr(table, "separator", ",")
        self._packed = None if path is None else packed_by(path)
        self._end = "\n"
        header = b""
        if table.kind == "csv" and table.records is not None:
            self._end = table.records.end.decode()
            names = _row([*table.columns, *new], self._separator, self._end)
            header = BOM_UTF8 * table.records.marked + names
        if path is not None and written is None:
            _clear_part(path, self._begin(header))
        self._raw = _opened(path, written)
        self._packer: Any = None
        if written is None and header:
            self._stream.write(header)

    def _begin(self, header: bytes) -> bytes:
        """Return the first line of what is written, or one that would do."""
        line = (
            header.partition(b"\n")[0] + b"\n"
            if header
            else self._entries() % ((b"0.5",) * len(self._new))
        )
        if self._packed is None:
            return line
        raw = io.BytesIO()
        with pack(str(self.path), raw, self._packed) as packer:
            packer.write(line)
        return raw.getvalue()

    def _entries(self) -> bytes:
        """Return the end of a line of JSON, with places for the values."""
        names = (json.dumps(name).encode().replace(b"%", b"%%") for name in self._new)
        return b"".join(b", %b: %%b" % name for name in names) + b"}\n"

    @property
    def _stream(self) -> Any:
        if self._packed is None:
            return self._raw
        if self._packer is None:
            self._packer = pack(str(self.path), self._raw, self._packed)
        return self._packer

    def write(self, rounds: Rounds, values: NDArray[np.float64]) -> None:
        values = _in_percent(values, self._cells)
        new = [self._column(f" {k}", column) for k, column in enumerate(values.T)]
        if isinstance(rounds.whole, Lines):
            more = self._text(pl.DataFrame(new), "\n")
            self._stream.write(self._joined(rounds.whole.block, more))
        elif isinstance(rounds.whole, pl.DataFrame):
            self._stream.write(self._text(rounds.whole.with_columns(new), self._end))
        elif rounds.whole is not None:
            self._refuse_twice(rounds.whole)
            end = self._entries()
            pairs = zip(rounds.whole, values.tolist(), strict=True)
            self._stream.write(
                b"".join(
                    line.rstrip()[:-1] + end % tuple(repr(value).encode() for value in row)
                    for line, row in pairs
                )
            )

    def _column(self, name: str, values: NDArray[np.float64]) -> pl.Series:
        column = pl.Series(name, values)
        if self._cells.decimal == ".":
            return column
        return column.cast(pl.String).str.replace(".", self._cells.decimal, literal=True)

    def _text(self, frame: pl.DataFrame, end: str) -> bytes:
        text = io.BytesIO()
        frame.write_csv(text, include_header=False, separator=self._separator, line_terminator=end)
        return text.getvalue()

    def _joined(self, block: bytes, more: bytes) -> memoryview | bytes:
        """Return lines with more at their ends: what the engine would write, without reading it."""
        joined = np.empty(len(block) + len(more) + 2, np.uint8)
        size = _core.join_lines(block, more, self._separator, joined)
        if size < 0:
            raise RuntimeError("as many values as lines were expected: please report this")
        lines = joined[:size].data
        return lines if self._end == "\n" else bytes(lines).replace(b"\n", self._end.encode())

    def _refuse_twice(self, lines: list[bytes]) -> None:
        """Refuse JSON that has an entry of a new name already."""
        for column in self._new:
            called = json.dumps(column).encode()
            if any(column in json.loads(line) for line in lines if called in line):
                raise _column_taken(self._table_name, column)

    def sync(self) -> Mark:
        # a compressed file may consist of several, one after the other
        if self._packer is not None:
            self._packer.close()
            self._packer = None
        self._raw.flush()
        if self.path is None:
            return 0, 0  # nobody continues standard output
        os.fsync(self._raw.fileno())
        return mark(part_path(self.path), self._raw.tell())

    def finish(self) -> Mark:
        marked = self.sync()
        self.close()
        return marked

    def close(self) -> None:
        if self.path is None:
            self._raw.flush()
            return
        try:
            if self._packer is not None:
                self._packer.close()
        finally:
            self._raw.close()


def _in_percent(values: NDArray[np.float64], cells: CellFormat) -> NDArray[np.float64]:
    return values * 100 if cells.percent else values


def _column_taken(name: str, column: str) -> FileError:
    return FileError(name, f"has a column {column!r} already: choose another name with --column")


def _opened(path: Path | None, written: int | None) -> IO[bytes]:
    if path is None:
        return sys.stdout.buffer
    raw = open_no_link(part_path(path), "xb" if written is None else "rb+")
    raw.truncate(written or 0)
    raw.seek(0, os.SEEK_END)
    return raw


def _row(fields: list[str], separator: str, end: str) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=separator, lineterminator=end).writerow(fields)
    return text.getvalue().encode()


class _ParquetOutput(Output):
    """A folder of pieces that become one file in the end: Parquet cannot be appended to."""

    def __init__(
        self,
        path: Path,
        table: OpenTable,
        new: Sequence[str],
        written: int | None,
        cells: CellFormat,
    ) -> None:
        self.path = path
        self._cells = cells
        self._new = tuple(new)
        self._schema: dict[str, Any] = getattr(table, "schema", {}) | dict.fromkeys(new, pl.Float64)
        self._pieces = written or 0
        self._part = part_path(path)
        if written is None:
            _clear_part(path)
        self._part.mkdir(exist_ok=True)
        for later in sorted(self._part.glob("*.piece"))[self._pieces :]:
            later.unlink()

    def write(self, rounds: Rounds, values: NDArray[np.float64]) -> None:
        if isinstance(rounds.whole, pl.DataFrame):
            columns = zip(self._new, _in_percent(values, self._cells).T, strict=True)
            self._add(rounds.whole.with_columns(pl.Series(*column) for column in columns))

    def _add(self, frame: pl.DataFrame) -> None:
        new = piece(self._part, self._pieces)
        with _engine_errors():
            frame.write_parquet(new)
        sync(new)
        self._pieces += 1

    def sync(self) -> Mark:
        if not self._pieces:
            self._add(pl.DataFrame(schema=self._schema))
        sync(self._part)
        return self._pieces, mark(piece(self._part, self._pieces - 1))[1]

    def finish(self) -> Mark:
        self.sync()
        whole = self._part / JOINED
        pieces = sorted(self._part.glob("*.piece"))
        with _engine_errors():
            pl.scan_parquet(pieces, glob=False).sink_parquet(
                whole, row_group_size=_GROUP, maintain_order=True
            )
        sync(whole)
        return mark(whole)

    def close(self) -> None:
        pass


@contextmanager
def _engine_errors() -> Iterator[None]:
    """Turn the engine's errors, such as a full disk, into those of the system."""
    try:
        yield
    except pl.exceptions.PolarsError as error:
        raise OSError(str(error)) from error
