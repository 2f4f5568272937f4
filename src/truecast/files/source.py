"""What is in a file, by what it begins with: its compression and its kind."""

from __future__ import annotations

import io
import os
import stat
import sys
import tempfile
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol

from truecast.errors import FileError, shown
from truecast.files.packing import reading_errors, unpack

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from truecast.files.records import Records

__all__ = ["Bad", "Chunk", "Lines", "OpenTable", "open_table"]

_UTF16 = (
    "is in UTF-16; only UTF-8 can be read: in Excel, save it as 'CSV UTF-8', or convert it by "
    "iconv -f utf-16 -t utf-8"
)
_NO_TEXT = {
    b"\xff\xfe": _UTF16,
    b"\xfe\xff": _UTF16,
    b"PK\x03\x04": "is a ZIP archive or a spreadsheet: unpack it, or save it as CSV",
    b"\xd0\xcf\x11\xe0": "is an old spreadsheet: save it as CSV",
    b"SQLite": "is a database: export the table as CSV",
}


@dataclass
class Bad:
    """Rows that cannot be read: how many, and the first.

    Of that: before which good row it stands, where, and why.
    """

    rows: int = 0
    first: tuple[int, str, str] = 0, "", ""

    def add(self, before: int, place: str, reason: str) -> None:
        """Take note of one; there may be millions."""
        if not self.rows:
            self.first = before, place, reason
        self.rows += 1


@dataclass(frozen=True)
class Lines:
    """Rows of delimited text without quotes, as they are in the file.

    Attributes
    ----------
    block : bytes
        The lines.
    read : function
        Gives all their fields as a frame.
    """

    block: bytes
    read: Callable[[], pl.DataFrame]

    def __getitem__(self, rows: slice | NDArray[np.int64]) -> pl.DataFrame:
        """Return the fields of some rows."""
        return self.read()[rows]


@dataclass(frozen=True)
class Chunk:
    """Some rows of a file, in order.

    Attributes
    ----------
    read : function
        Gives `frame`, which need not be read.
    place : function
        Where in the file a row of the frame stands, such as "line 17".
    bad : Bad
        Rows that cannot be read and are not in the frame.
    whole : polars.DataFrame, Lines, list of bytes or None
        The same rows with all that is in them, if asked for: of delimited text a frame or lines,
        of Parquet a frame, of JSON lines.
    numbers : dict
        Columns, called by number, of which every cell is a plain number: these numbers.
    """

    read: Callable[[], pl.DataFrame]
    place: Callable[[int], str]
    bad: Bad = field(default_factory=Bad)
    whole: pl.DataFrame | Lines | list[bytes] | None = field(default=None, repr=False)
    numbers: dict[str, NDArray[np.float64]] = field(default_factory=dict, repr=False)

    @cached_property
    def frame(self) -> pl.DataFrame:
        """The columns that were asked for, as they are in the file: text in a text file."""
        return self.read()


class OpenTable(Protocol):
    """An open file of rows."""

    name: str
    kind: str
    columns: list[str]

    @property
    def records(self) -> Records | None:
        """The lines of a text file; None if it is none."""

    @property
    def fraction(self) -> Callable[[], float | None]:
        """How much of it was read; None if that cannot be told."""

    def start(self, wanted: Sequence[str]) -> None:
        """Begin to read these columns aside, if that can be done; `chunks` then continues."""

    def sample(self, wanted: Sequence[str]) -> pl.DataFrame:
        """Return the first rows of these columns, called by number; `chunks` gives them again."""

    def chunks(
        self, wanted: Sequence[str], *, everything: bool = False, numbers: Sequence[str] = ()
    ) -> Iterator[Chunk]:
        """Read the rows, once: these columns, called by number; with `everything` all, too.

        Those of `numbers` may come as such.
        """


@contextmanager
def open_table(file: str, *, follow: Callable[[], bool] | None = None) -> Iterator[OpenTable]:
    """Open a file, or standard input if it is called "-"; for the time of a `with`.

    Parameters
    ----------
    file
        Its path.
    follow
        To read a text as it grows: is called at the end of the file, waits, and says whether to
        look for more.
    """
    name = "standard input" if file == "-" else shown(file)
    with _opened(file, name) as raw:
        reader = _Reader(raw, name, follow)
        content: io.BufferedReader = io.BufferedReader(reader, 1 << 16)
        stream = unpack(name, content)
        with reading_errors(name):
            head = stream.peek(1)
        if not head:
            raise FileError(name, "is empty")
        if follow is not None and (stream is not content or head[:4] == b"PAR1"):
            raise FileError(name, "is not plain text, which alone can be followed: use --once")
        if head[:4] == b"PAR1":
            plain = stream is content and file != "-" and raw.seekable()
            with _on_disk(name, file if plain else None, stream) as path:
                yield _parquet(name, path)
        else:
            yield _text(name, stream, reader)


def _text(name: str, stream: io.BufferedReader, reader: _Reader) -> OpenTable:
    from truecast.files.delimited import Delimited
    from truecast.files.json_lines import JsonLines

    def read(size: int) -> bytes:
        with reading_errors(name):
            return stream.read1(size) if reader.follow else stream.read(size)

    head = stream.peek(8)
    reason = next((reason for magic, reason in _NO_TEXT.items() if head.startswith(magic)), None)
    if reason is not None:
        raise FileError(name, reason)
    marked = head.startswith(BOM_UTF8)
    if marked:
        read(len(BOM_UTF8))
    start = stream.peek(1).lstrip()
    kind = JsonLines if start[:1] in (b"{", b"[") else Delimited
    table = kind(name, read, reader.fraction)
    table.records.marked = marked
    table.records.steady = reader.follow is None and reader.fraction() is not None
    return table


def _parquet(name: str, path: str) -> OpenTable:
    from truecast.files.parquet import Parquet

    return Parquet(name, path)


@contextmanager
def _opened(file: str, name: str) -> Iterator[IO[bytes]]:
    if file == "-":
        yield sys.stdin.buffer
        return
    with reading_errors(name):
        raw = Path(file).open("rb")  # noqa: SIM115
    with raw:
        yield raw


class _Reader(io.RawIOBase):
    """A stream that can be read but not wound back, as pipes are."""

    def __init__(self, raw: IO[bytes], name: str, follow: Callable[[], bool] | None) -> None:
        self.follow = follow
        self._raw = raw
        self._name = name
        self._size = self._bytes()
        self._read = raw.tell() if self._size else 0

    def _bytes(self) -> int:
        """How many the file has now; 0 if nobody knows."""
        try:
            status = os.fstat(self._raw.fileno())
        except OSError:  # not a file of the system
            return 0
        return status.st_size if stat.S_ISREG(status.st_mode) else 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._some(len(buffer))
        while not data and self.follow is not None and self.follow():
            if self._bytes() < self._read:
                break
            data = self._some(len(buffer))
        if not data and (self._read < self._size or self._bytes() < self._size):
            raise FileError(
                self._name, "became shorter while it was read: read it when nobody writes to it"
            )
        buffer[: len(data)] = data
        self._read += len(data)
        return len(data)

    def _some(self, size: int) -> bytes:
        """Read what is there; if the text is followed, do not wait until that is all of it."""
        some = getattr(self._raw, "read1", None) if self.follow else None
        return bytes(self._raw.read(size) if some is None else some(size))

    def fraction(self) -> float | None:
        """How much was read; None if nobody knows how much there is."""
        return min(self._read / self._size, 1.0) if self._size else None


@contextmanager
def _on_disk(name: str, file: str | None, stream: IO[bytes]) -> Iterator[str]:
    """Give the path of a file with these bytes, this one if it is: Parquet is read from its end."""
    if file is not None:
        yield file
        return
    with tempfile.NamedTemporaryFile(suffix=".parquet") as spool:
        with reading_errors(name):
            while part := stream.read(1 << 20):
                spool.write(part)
        spool.flush()
        yield spool.name
