"""JSON lines: an object a line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import polars as pl

from truecast.errors import FileError
from truecast.files.records import Records
from truecast.files.source import Chunk

__all__ = ["JsonLines"]


class JsonLines:
    """A file with an object on every line; the first tells what entries there are."""

    kind = "json"

    def __init__(self, name: str, read: Callable[[int], bytes], fraction: Callable[[], float | None]) -> None:
        self.name, self.fraction = name, fraction
        self._records = Records(name, read)
        line, first = self._records.first()
        entries, reason = _entries(first)
        if reason:
            raise FileError(name, reason, f"line {line}")
        self.columns = list(entries)
        self._before = line, first

    def chunks(self, wanted: Sequence[str], *, everything: bool = False) -> Iterator[Chunk]:
        """Read the rows, once; `everything` keeps the lines themselves."""
        names = {name: str(self.columns.index(name)) for name in wanted}
        yield self._chunk(*self._before, names, everything)
        for line, block in self._records:
            yield self._chunk(line, block, names, everything)

    def _chunk(self, line: int, block: bytes, names: dict[str, str], keep: bool) -> Chunk:
        lines = block.split(b"\n")
        if not lines[-1].strip():
            del lines[-1]
        try:
            frame = pl.read_ndjson(block, schema=dict.fromkeys(names, pl.String)).rename(names)
        except pl.exceptions.PolarsError:
            frame = None
        if frame is None or len(frame) != len(lines):
            return _slowly(line, lines, names, keep)
        return Chunk(frame, lambda row: f"line {line + row}", whole=lines if keep else None)


def _slowly(line: int, lines: list[bytes], names: dict[str, str], keep: bool) -> Chunk:
    """Return a block line by line: which of them are bad, and the others."""
    good: list[tuple[int, dict[str, Any]]] = []
    bad = []
    for at, text in enumerate(lines):
        entries, reason = _entries(text)
        if reason:
            bad.append((len(good), f"line {line + at}", reason))
        else:
            good.append((at, entries))
    columns = {to: [_text(entries.get(name)) for _, entries in good] for name, to in names.items()}
    frame = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
    whole = [lines[at] for at, _ in good] if keep else None
    return Chunk(frame, lambda row: f"line {line + good[row][0]}", bad, whole)


def _entries(line: bytes) -> tuple[dict[str, Any], str | None]:
    """Return the entries of the object on a line, or what is wrong with it."""
    try:
        found = json.loads(line)
    except UnicodeDecodeError as error:
        return {}, f"is not UTF-8: there is a byte 0x{line[error.start]:02x}; convert the file first"
    except (ValueError, RecursionError) as error:
        return {}, f"must be a JSON object: {error}" if line.strip() else "must be a JSON object, got none"
    if not isinstance(found, dict):
        return {}, f"must be a JSON object, got {line.decode().strip()!r:.80}"
    return found, None


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value)
