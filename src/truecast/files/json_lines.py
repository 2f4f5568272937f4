"""JSON lines: an object a line."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from truecast.errors import FileError
from truecast.files.records import Records
from truecast.files.source import Bad, Chunk

__all__ = ["JsonLines"]

_LONG = 1 << 20
_RULE = "must be a JSON object"
_ARRAY = f"{_RULE}, is an array: put each object on its own line, for example with jq -c '.[]'"
# letters that need not be escaped; halves of a letter
_ODD = re.compile(rb"\\u(?:00[2-7]|d[89a-f])", re.IGNORECASE)


class JsonLines:
    """A file with an object on every line; the first tells what entries there are."""

    kind = "json"

    def __init__(
        self, name: str, read: Callable[[int], bytes], fraction: Callable[[], float | None]
    ) -> None:
        self.name = name
        self.fraction = fraction
        self.records = self._records = Records(name, read)
        line, first = self._records.first()
        if first.startswith(b"["):
            raise FileError(name, _ARRAY, f"line {line}")
        entries, reason = _entries(first)
        if reason:
            raise FileError(name, reason, f"line {line}")
        self.columns = list(entries)
        self._before = line, first
        self._whole = self.records.whole

    def start(self, wanted: Sequence[str]) -> None:
        """Do nothing: there is little to read before rows are asked for."""

    def chunks(
        self, wanted: Sequence[str], *, everything: bool = False, numbers: Sequence[str] = ()
    ) -> Iterator[Chunk]:
        """Read the rows, once; `everything` keeps the lines themselves."""
        names = {name: str(self.columns.index(name)) for name in wanted}
        if self._whole or not self.records.holds(*self._before):
            yield self._chunk(*self._before, names, everything)
        for line, block in self._records:
            yield self._chunk(line, block, names, everything)

    def sample(self, wanted: Sequence[str]) -> pl.DataFrame:
        """Return the first rows of these entries, without taking them."""
        line, first = self._before
        block = first + b"\n" + self._records.next()[1]
        return self._chunk(
            line, block, {name: str(self.columns.index(name)) for name in wanted}, False
        ).frame

    def _chunk(self, line: int, block: bytes, names: dict[str, str], keep: bool) -> Chunk:
        lines = block.split(b"\n")
        if not lines[-1].strip():
            del lines[-1]
        frame = _parsed(block, lines, names)
        if frame is None:
            return _slowly(line, lines, names, keep)
        frame = frame.rename(names)
        return Chunk(lambda: frame, lambda row: f"line {line + row}", whole=lines if keep else None)


def _parsed(block: bytes, lines: list[bytes], names: Collection[str]) -> pl.DataFrame | None:
    """Return entries of a block by the engine; None if a line may have one twice or not at all.

    Of two that have the same name the engine would take the first; and take long, if there are
    many.
    """
    keys = {name: json.dumps(name, ensure_ascii=False).encode() for name in names}
    if (
        any(block.count(key) != len(lines) for key in keys.values())
        or max(map(len, lines)) > _LONG
        or _ODD.search(block)
    ):
        return None
    try:
        frame = pl.read_ndjson(block, schema=dict.fromkeys(names, pl.String))
    except pl.exceptions.PolarsError:
        return None
    if len(frame) != len(lines):
        return None
    missing = ((key, row) for name, key in keys.items() for row in frame[name].is_null().arg_true())
    return None if any(key not in lines[row] for key, row in missing) else frame


def _slowly(line: int, lines: list[bytes], names: Mapping[str, str], keep: bool) -> Chunk:
    """Return a block line by line: which of them are bad, and the others."""
    good: list[tuple[int, dict[str, Any]]] = []
    bad = Bad()
    for at, text in enumerate(lines):
        entries, reason = _entries(text, names)
        if reason:
            bad.add(len(good), f"line {line + at}", reason)
        else:
            good.append((at, entries))
    columns = {to: [_text(entries.get(name)) for _, entries in good] for name, to in names.items()}
    frame = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
    whole = [lines[at] for at, _ in good] if keep else None
    return Chunk(lambda: frame, lambda row: f"line {line + good[row][0]}", bad, whole)


class _Entries(dict[str, Any]):
    """An object, and which of its entries there are twice."""

    twice: Collection[str] = ()

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        if len(self) != len(pairs):
            self.twice = {
                name for name, times in Counter(name for name, _ in pairs).items() if times > 1
            }


def _entries(line: bytes, names: Collection[str] = ()) -> tuple[dict[str, Any], str | None]:
    """Return the entries of the object on a line, or what is wrong with it."""
    try:
        found = json.loads(line.decode(), object_pairs_hook=_Entries)
    except UnicodeDecodeError as error:
        return (
            {},
            f"is not UTF-8: there is a byte 0x{line[error.start]:02x}; convert the file, as by "
            "iconv -f cp1252 -t utf-8",
        )
    except json.JSONDecodeError as error:
        return (
            {},
            f"{_RULE}, is not JSON, from column {error.colno}"
            if line.strip()
            else f"{_RULE}, got none",
        )
    except (ValueError, RecursionError):
        return {}, f"{_RULE}, got one with too many digits or too deep"
    if not isinstance(found, _Entries):
        return {}, f"{_RULE}, got {line.decode().strip()!r:.80}"
    for name in names:
        if name in found.twice:
            return {}, f"must have one entry {name!r}, got several"
        if re.search("[\ud800-\udfff]", _text(found.get(name)) or ""):
            return {}, f"the text of {name!r} must be Unicode, got half of a surrogate pair"
    return found, None


def _text(value: object) -> str | None:
    """Return a value as the engine would."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, float):
        return np.format_float_positional(value, trim="-")
    return json.dumps(value, ensure_ascii=False)
