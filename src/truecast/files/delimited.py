"""CSV and its relatives: rows of fields with commas, semicolons, tabs or bars between them."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truecast import _core
from truecast._names import counted
from truecast._threads import in_order
from truecast.errors import FileError
from truecast.files.quotes import Quotes
from truecast.files.records import Records
from truecast.files.source import Bad, Chunk, Lines

__all__ = ["Delimited"]

_SEPARATORS = ",\t;|"
_NOTE = re.compile(rb'"?sep=([,\t;|])"?', re.IGNORECASE)  # for Excel, before the header
_BROKEN = re.compile("[\udc80-\udcff]")  # what bytes become that are no UTF-8
_LONE_CR = re.compile(rb"\r(?!\n)")
_WIDE = 10_000  # columns, more than which the engine is slow with
_NO_HEADER = "outcome"  # what the column of a file without a header is called


class Delimited:
    """A file of fields, its first row naming them; or of one outcome a line."""

    kind = "csv"

    def __init__(
        self, name: str, read: Callable[[int], bytes], fraction: Callable[[], float | None]
    ) -> None:
        self.name = name
        self.fraction = fraction
        self.records = self._records = Records(name, read, quotes=Quotes(","))
        line, first = self._records.first()
        note = _NOTE.fullmatch(first)
        if note is not None:
            line, first = self._records.first()
        text = self._header(line, first)
        self.separator = _separator(text) if note is None else note[1].decode()
        self._quotes = self._records.quotes = Quotes(self.separator)
        if not self._quotes.tidy(first) or first.count(b'"') % 2:
            raise FileError(
                name, "the header has a quote that neither begins nor ends a field", f"line {line}"
            )
        ((_, fields),) = self._quotes.rows(text)
        fields = fields or []
        named = any(_is_name(field.strip()) for field in fields)
        if not named and len(fields) > 1:
            raise FileError(
                name, f"has {len(fields)} columns and no header: give it one", f"line {line}"
            )
        self.columns = [field.strip() for field in fields] if named else [_NO_HEADER]
        self._before = None if named else (line, first)
        self._whole = self.records.whole

    def _header(self, line: int, first: bytes) -> str:
        """Return the first row as text, or say what the file is instead."""
        if not first:
            raise FileError(self.name, "is empty")
        if b"\0" in first:
            raise FileError(
                self.name,
                "is not UTF-8 text: there is a zero byte; if it is UTF-16, convert it by "
                "iconv -f utf-16 -t utf-8",
                f"line {line}",
            )
        if _LONE_CR.search(first):
            raise FileError(
                self.name, "has lines that end by CR alone: convert them first", f"line {line}"
            )
        try:
            return first.decode()
        except UnicodeDecodeError as error:
            raise FileError(self.name, _not_utf8(first[error.start]), f"line {line}") from error

    def start(self, wanted: Sequence[str]) -> None:
        """Do nothing: there is little to read before rows are asked for."""

    def chunks(
        self, wanted: Sequence[str], *, everything: bool = False, numbers: Sequence[str] = ()
    ) -> Iterator[Chunk]:
        """Read the rows, once; by other threads if none has to be waited for."""
        at = [self.columns.index(name) for name in wanted]
        plain = np.array(sorted(map(self.columns.index, numbers)), np.int64)
        if everything:
            at = list(range(len(self.columns)))

        def chunk(rows: tuple[int, bytes]) -> Chunk:
            found = self._plain(*rows, at, plain, everything) if len(plain) else None
            return found or self._chunk(*rows, at, everything)

        if self._before is not None and (self._whole or not self.records.holds(*self._before)):
            yield chunk(self._before)
        several = in_order if self.records.steady else map
        yield from several(chunk, iter(self._records))

    def sample(self, wanted: Sequence[str]) -> pl.DataFrame:
        """Return the first rows of these columns, without taking them."""
        return self._chunk(
            *self._records.next(), [self.columns.index(name) for name in wanted], False
        ).frame

    def _chunk(self, line: int, block: bytes, at: list[int], everything: bool) -> Chunk:
        frame = self._parsed(block, at)
        if frame is None:
            return self._slowly(line, block, at, everything)
        lines = block.count(b"\n") + (not block.endswith(b"\n"))
        place = (
            self._places(line, block) if lines != len(frame) else lambda row: f"line {line + row}"
        )
        return Chunk(lambda: frame, place, whole=frame if everything else None)

    def _plain(
        self, line: int, block: bytes, at: list[int], plain: NDArray[np.int64], everything: bool
    ) -> Chunk | None:
        """Return a block whose cells in some columns are plain numbers; None if it is not so."""
        if b'"' in block or (b"\r" in block and _LONE_CR.search(block)) or not _is_utf8(block):
            return None
        if block.startswith(BOM_UTF8):  # which the engine leaves out
            return None
        # room for as many rows as there can be: memory that is not written to is not taken
        numbers = np.empty((len(plain), len(block) // len(self.columns) + 1))
        rows = _core.read_numbers(block, self.separator, len(self.columns), plain, numbers)
        if rows < 0:
            return None

        def read() -> pl.DataFrame:
            return self._chunk(line, block, at, False).frame

        return Chunk(
            read,
            lambda row: f"line {line + row}",
            whole=Lines(block, read) if everything else None,
            numbers={str(i): found[:rows] for i, found in zip(plain, numbers, strict=True)},
        )

    def _places(self, line: int, block: bytes) -> Callable[[int], str]:
        """Where the rows of a block stand in which not every line is a row."""
        return lambda row: f"line {next(islice(self._rows(line, block), row, None))[0]}"

    def _parsed(self, block: bytes, at: list[int]) -> pl.DataFrame | None:
        """Return columns of a block by the engine; None if rows may have too few or many fields."""
        names = [str(i) for i in range(len(self.columns))]
        quoted = b'"' in block and self._quotes.any(block)
        if (
            len(names) > _WIDE
            or (quoted and not self._quotes.tidy(block))
            or _LONE_CR.search(block)
        ):
            return None
        try:
            frame = pl.read_csv(
                block,
                has_header=False,
                schema=dict.fromkeys(names, pl.String),
                columns=range(len(names)) if quoted else sorted(at),
                separator=self.separator,
                quote_char='"' if quoted else None,
            )
        except pl.exceptions.PolarsError:
            return None
        between = block.count(self.separator.encode())
        if quoted:  # those within fields do not count
            within = frame.select(pl.all().str.count_matches(self.separator, literal=True).sum())
            between -= sum(within.row(0))
        if between != len(frame) * (len(names) - 1) or not (quoted or self._even(block)):
            return None
        frame = frame.select(str(i) for i in at)
        return frame.with_columns(pl.all().replace("", None)) if quoted else frame

    def _even(self, block: bytes) -> bool:
        """Whether every line has the same number of separators, if that is so on average.

        The engine does not see it in columns that it does not read: a row too short would make up
        for one too long.
        """
        letters = np.frombuffer(block, np.uint8)
        at = np.flatnonzero(letters == ord(self.separator)).reshape(
            -1, max(len(self.columns) - 1, 1)
        )
        ends = np.flatnonzero(letters == ord("\n"))[: len(at)]
        return bool((at[: len(ends), -1] < ends).all() and (at[1:, 0] > ends[: len(at) - 1]).all())

    def _slowly(self, line: int, block: bytes, at: list[int], everything: bool) -> Chunk:
        """Return a block row by row: which of them are bad, and the others."""
        good: list[list[str]] = []
        lines: list[int] = []
        bad = Bad()
        for number, fields in self._rows(line, block):
            reason = self._reason(fields)
            if reason is not None:
                bad.add(len(good), f"line {number}", reason)
            elif fields is not None:
                good.append([fields[i] for i in at])
                lines.append(number)
        columns = zip(*good, strict=True) if good else [()] * len(at)
        data = {
            str(i): pl.Series(values, dtype=pl.String)
            for i, values in zip(at, columns, strict=True)
        }
        frame = pl.DataFrame(data).with_columns(pl.all().replace("", None))
        return Chunk(
            lambda: frame, lambda row: f"line {lines[row]}", bad, frame if everything else None
        )

    def _rows(self, line: int, block: bytes) -> Iterator[tuple[int, list[str] | None]]:
        """The rows of a block with their lines; None for what cannot be split into fields."""
        for after, fields in self._quotes.rows(block.decode(errors="surrogateescape")):
            yield line + after, [""] if fields == [] and len(self.columns) == 1 else fields

    def _reason(self, fields: list[str] | None) -> str | None:
        """What is wrong with a row, if anything is."""
        columns = len(self.columns)
        if fields is None:
            return "after a quote that ends a field there must be a separator"
        if len(fields) != columns:
            wanted = counted(columns, "field")
            return f"a row must have {wanted} like the header, got {len(fields) or 'none'}"
        broken = _BROKEN.search("".join(fields))
        return None if broken is None else _not_utf8(ord(broken[0]) - 0xDC00)


def _is_utf8(block: bytes) -> bool:
    try:
        return block.isascii() or bool(block.decode())
    except UnicodeDecodeError:
        return False


def _separator(header: str) -> str:
    """Return what stands between the fields of a header."""
    outside = re.sub('"[^"]*"', "", header)
    return max(_SEPARATORS, key=outside.count)  # the first, a comma, if there is none


def _not_utf8(byte: int) -> str:
    return (
        f"is not UTF-8: there is a byte 0x{byte:02x}; in Excel, save the file as 'CSV UTF-8', or "
        "convert it by iconv -f cp1252 -t utf-8"
    )


def _is_name(field: str) -> bool:
    """Whether a field of the first row names a column: it has a letter, and is no value."""
    try:
        float(field)
    except ValueError:
        return field.lower() not in ("true", "false") and any(map(str.isalpha, field))
    return False
