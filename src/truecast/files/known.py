"""Rows that are known again by an id.

Each is forecast once, and learned from when its outcome comes.
"""

from __future__ import annotations

import base64
import zlib
from array import array
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truecast._check_classes import MOST_CLASSES
from truecast.errors import FileError, StateError, shown
from truecast.files.ids import as_text
from truecast.files.rounds import Rounds

__all__ = ["ForecastsById"]

_COLUMNS = {"length": "<u4", "score": "<f8", "forecast": "<f8", "ticket": "<i8", "group": "<u4"}
_EACH = "score", "forecast"  # columns with an entry for each class, if there are several
_MOST_COMPRESSION = 1032  # times that zlib makes things smaller, at most
_MOST_BYTES = 1 << 40

_NO_ID = ["", "NaN", "nan"]

Group = str | None


class ForecastsById:
    """The forecasts of a file's rows by their ids, in the order in which they were made.

    A forecast has a ticket while its outcome is awaited; then -1 for the outcome 0, -2 for 1, and
    so on for the numbers of classes.

    Parameters
    ----------
    column
        Of the ids.
    grouped
        Whether rows belong to groups.
    width
        How many scores a row has: one, or one for each class.

    Attributes
    ----------
    numbers : dict
        Of the forecasts, from 0, by id.
    scores, forecasts : array
        Of each forecast, by its number; `width` for each.
    tickets, groups : array
        Of each forecast; the groups by their codes.
    codes : dict
        Of the groups.
    loaded : int
        Forecasts that were made by earlier runs.
    seen_again : int
        Rows that were played and had been forecast by an earlier run.
    lost : int
        Outcomes that came when they were not awaited any more.
    """

    def __init__(self, column: str, *, grouped: bool, width: int = 1) -> None:
        self.column = column
        self.grouped = grouped
        self.width = width
        self.seen_again = 0
        self.lost = 0
        self.numbers: dict[str, int] = {}
        self.scores = array("d")
        self.forecasts = array("d")
        self.tickets = array("q")
        self.groups = array("L")
        self.codes: dict[Group, int] = {}
        self.loaded = 0

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def awaited(self) -> int:
        """Forecasts whose outcome is not known."""
        return int((np.frombuffer(self.tickets, np.int64) >= 0).sum()) if len(self) else 0

    def resolved(self) -> Rounds:
        """Return the rounds whose outcomes are known, with their scores and forecasts."""
        tickets = np.array(self.tickets, np.int64)
        codes = np.array(self.groups, np.int64)
        known = tickets < 0
        group = (
            pl.Series(list(self.codes), dtype=pl.String).gather(codes[known])
            if self.grouped
            else None
        )
        scores = np.hstack([self.as_rows(self.scores), self.as_rows(self.forecasts)])[known]
        return Rounds(-(1 + tickets[known]).astype(np.float64), tuple(scores.T), None, group)

    def as_rows(self, numbers: array[float]) -> NDArray[np.float64]:
        """Return a view of scores or forecasts, a row for each forecast."""
        flat = np.frombuffer(numbers, np.float64) if numbers else np.empty(0)
        return flat.reshape(-1, self.width)

    def first_new(self, part: Rounds, file: str) -> int | None:
        """Return the first of some rows that is not known."""
        names = enumerate(self.names(part, file).to_list())
        return next((row for row, name in names if name not in self.numbers), None)

    def names(self, part: Rounds, file: str) -> pl.Series:
        """Return the ids of some rows as text: an id is the same in another type, as 1 and 1.0."""
        try:
            ids = as_text(part.also[0])
        except pl.exceptions.PolarsError as error:
            reason = (
                f"has no ids in column {self.column!r} (--id): it is of type {part.also[0].dtype}"
            )
            raise FileError(file, reason) from error
        missing = ids.is_null() | ids.is_in(_NO_ID).fill_null(value=True)
        if missing.any():
            row = int(missing.arg_max() or 0)
            raise FileError(
                file, f"{shown(self.column)} (--id) must be an id, got nothing", part.place(row)
            )
        return ids

    def record(self) -> dict[str, Any]:
        """Return everything as plain data."""
        lengths = pl.Series([*self.numbers], dtype=pl.String).str.len_bytes().to_numpy()
        columns = [lengths, self.scores, self.forecasts, self.tickets, self.groups]
        blocks = [
            np.array(each, kind).tobytes()
            for each, kind in zip(columns, _COLUMNS.values(), strict=True)
        ]
        letters = "".join(self.numbers).encode()
        return {
            "column": self.column,
            "grouped": self.grouped,
            "width": self.width,
            "rows": len(self),
            "letters": len(letters),
            "groups": list(self.codes),
            "table": base64.b64encode(zlib.compress(b"".join([*blocks, letters]), 1)).decode(),
        }

    @classmethod
    def load(cls, saved: object) -> Self:
        """Build what `record` gave.

        Raises
        ------
        StateError
            If it gave no such thing.
        """
        wanted = {
            "column": str,
            "grouped": bool,
            "width": int,
            "rows": int,
            "letters": int,
            "groups": list,
            "table": str,
        }
        if (
            not isinstance(saved, dict)
            or {name: type(value) for name, value in saved.items()} != wanted
        ):
            raise StateError(f"the saved ids must have exactly the entries {', '.join(wanted)}")
        width = saved["width"]
        rows = saved["rows"]
        letters = saved["letters"]
        if not 1 <= width <= MOST_CLASSES:
            raise StateError(f"the saved ids must have from 1 score a row, got {width!r:.80}")
        lengths = {name: rows * (width if name in _EACH else 1) for name in _COLUMNS}
        size = letters + sum(lengths[name] * np.dtype(_COLUMNS[name]).itemsize for name in _COLUMNS)
        if min(rows, letters) < 0 or size > _MOST_BYTES:
            raise StateError(
                f"the saved ids must be some rows and letters, got {rows!r:.80} and {letters!r:.80}"
            )
        data = _inflated(saved["table"], size)
        columns = {}
        at = 0
        for name, kind in _COLUMNS.items():
            columns[name] = np.frombuffer(data, kind, lengths[name], at)
            at += columns[name].nbytes
        known = cls(saved["column"], grouped=saved["grouped"], width=width)
        known.numbers = _saved_ids(data[at:], columns["length"])
        known.codes = _saved_groups(saved["groups"])
        _check_columns(columns, len(known.codes), max(2, width))
        known.scores.frombytes(columns["score"].astype(np.float64).tobytes())
        known.forecasts.frombytes(columns["forecast"].astype(np.float64).tobytes())
        known.tickets.frombytes(columns["ticket"].astype(np.int64).tobytes())
        known.groups.extend(columns["group"].tolist())
        known.loaded = rows
        return known


def _inflated(text: str, size: int) -> bytes:
    try:
        packed = base64.b64decode(text, validate=True)
        if size > _MOST_COMPRESSION * len(packed) + _MOST_COMPRESSION:
            raise StateError(
                f"the saved table of ids must have {size} bytes, and is too short for that"
            )
        reader = zlib.decompressobj()
        data = reader.decompress(packed, size + 1)
    except (ValueError, zlib.error) as error:
        raise StateError(f"the saved table of ids is damaged: {error}") from error
    if len(data) != size or not reader.eof:
        raise StateError(f"the saved table of ids must have {size} bytes, got others")
    return data


def _saved_ids(letters: bytes, lengths: NDArray[Any]) -> dict[str, int]:
    ends = np.cumsum(lengths, dtype=np.int64).tolist()
    if (ends[-1] if ends else 0) != len(letters):
        raise StateError("the saved ids must be as long as their lengths say")
    try:
        found = {
            letters[a:b].decode(): k for k, (a, b) in enumerate(zip([0, *ends], ends, strict=False))
        }
    except UnicodeDecodeError as error:
        raise StateError(f"the saved ids must be UTF-8: {error}") from error
    if len(found) != len(lengths):
        raise StateError("the saved ids must be distinct")
    return found


def _saved_groups(groups: list[Any]) -> dict[Group, int]:
    if not all(name is None or isinstance(name, str) for name in groups):
        raise StateError("the saved groups of the ids must be names")
    found = {name: code for code, name in enumerate(groups)}
    if len(found) != len(groups):
        raise StateError("the saved groups of the ids must be distinct")
    return found


def _check_columns(columns: dict[str, NDArray[Any]], groups: int, outcomes: int) -> None:
    for name in _EACH:
        if not ((columns[name] >= 0) & (columns[name] <= 1)).all():
            raise StateError(f"every saved {name} of an id must be from 0 to 1")
    tickets = columns["ticket"]
    awaited = tickets[tickets >= 0]
    if (tickets < -outcomes).any() or len(np.unique(awaited)) != len(awaited):
        raise StateError("the saved tickets of the ids must be distinct, or say an outcome")
    if (columns["group"] >= groups).any():
        raise StateError("the saved groups of the ids must be among those that there are")
