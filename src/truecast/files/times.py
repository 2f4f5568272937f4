"""Rows in the order of time: refused if they are not, or sorted."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truecast._check import EPOCH, MOMENTS, moment
from truecast.errors import FileError, StateError, shown
from truecast.files.rounds import Rounds
from truecast.files.source import Lines

__all__ = ["Time", "Times", "in_order", "later", "saved_time"]

Time = tuple[str, float]
"""The kind of times, and one: a number, or whole microseconds since 1970."""

_EXACT = 1 << 53  # from which doubles do not tell whole numbers apart
_KINDS = {
    "number": "numbers",
    "long": "whole numbers from 2**53 on, such as nanoseconds since 1970",
    "local": "times without a time zone",
    "zoned": "times with a time zone",
}
# times the first, divided by the second
_PER_MICROSECOND = {"ms": (1000, 1), "us": (1, 1), "ns": (1, 1000)}
_DAY = 86_400_000_000
_BLOCK_ROWS = 1 << 17  # rows


class Times:
    """The times of a file's rows, which must not go back.

    Times are numbers, or dates with or without a time of day as in ISO 8601; all of one kind.

    Parameters
    ----------
    name
        Of the file, for messages.
    column
        The name of the column.
    index
        Of that column among those that are read beside the rounds.
    """

    def __init__(self, name: str, column: str, index: int) -> None:
        self._name = name
        self._column = column
        self._index = index
        self._kind: str | None = None
        self._last: tuple[float, Any, str] | None = None

    @property
    def last(self) -> Time | None:
        """The latest that was seen."""
        return None if self._last is None or self._kind is None else (self._kind, self._last[0])

    def dates(self, part: Rounds) -> NDArray[Any]:
        """Return the times of some rows as numbers, or as dates if they are such."""
        values = self.values(part)
        return values.astype("datetime64[us]") if self._kind in ("local", "zoned") else values

    def values(self, part: Rounds) -> NDArray[Any]:
        """Return the times of some rows as numbers: exact ones, that can be compared."""
        column = part.also[self._index]
        kinds, values = _kinds_and_values(column)
        self._kind = self._kind or (kinds[0] if len(kinds) else None)
        bad = next(
            (row for row, kind in enumerate(kinds) if kind != self._kind or kind not in _KINDS),
            None,
        )
        if bad is not None:
            rule = "be a number, or a date and time such as 2025-03-31T12:30"
            if kinds[bad] in _KINDS and self._kind in _KINDS:
                rule = f"be of one kind, {_KINDS[self._kind]} as before"
            self._refuse(rule, _cell(column, bad), part.place(bad))
        return values

    def check(self, part: Rounds) -> None:
        """Refuse a row that is earlier than the one before it."""
        values = self.values(part)
        if not len(values):
            return
        value, text, place = self._last or (values[0], None, "")
        back = np.flatnonzero(values < np.concatenate([[value], values[:-1]]))
        if len(back):
            row = int(back[0])
            text, place = (
                (part.also[self._index][row - 1], part.place(row - 1)) if row else (text, place)
            )
            now = _text(part.also[self._index][row])
            reason = (
                f"{shown(self._column)} {now} is before {_text(text)} in {place}: sort the file, "
                "or use --sort"
            )
            raise FileError(self._name, reason, part.place(row))
        end = len(values) - 1
        self._last = values[end].item(), part.also[self._index][end], part.place(end)

    def after(self, last: Time, parts: Iterator[Rounds]) -> Iterator[Rounds]:
        """Yield rows; the first must not be earlier than the last that was learned from."""
        for part in parts:
            self.check_after(last, part, 0)
            yield part
            if len(part):
                break
        yield from parts

    def check_after(self, last: Time, part: Rounds, row: int | None) -> None:
        """Refuse a new row that is earlier than the last that was learned from."""
        if row is None or row >= len(part):
            return
        value = self.values(part)[row]
        text = part.also[self._index][row]
        place = part.place(row)
        if self._kind != last[0]:
            self._refuse(f"be of one kind, {_KINDS[last[0]]} as in the last run", text, place)
        if value < last[1]:
            self._refuse(
                f"not be before {_shown(last)}, up to which the state has learned", text, place
            )

    def _refuse(self, rule: str, value: object, place: str) -> None:
        raise FileError(
            self._name, f"{shown(self._column)} (--time) must {rule}, got {_text(value)}", place
        )


def in_order(parts: Iterator[Rounds], times: Times, *, sort: bool) -> Iterator[Rounds]:
    """Yield rows in the order of time: sorted in memory, or refused if they are not."""
    for part in _sorted(list(parts), times) if sort else parts:
        times.check(part)
        yield part


def _sorted(parts: list[Rounds], times: Times) -> Iterator[Rounds]:
    """Yield rows by their times; those of the same time stay in the order of the file."""
    values = np.concatenate([times.values(part) for part in parts]) if parts else np.empty(0)
    order = np.argsort(values, kind="stable")
    whole = _joined(parts)
    for start in range(0, len(order), _BLOCK_ROWS):
        yield whole.at(order[start : start + _BLOCK_ROWS], whole.skipped)
        whole = replace(whole, skipped=0)


def _joined(parts: list[Rounds]) -> Rounds:
    starts = np.cumsum([0, *map(len, parts)])

    def place(row: int) -> str:
        which = int(np.searchsorted(starts, row, side="right")) - 1
        return parts[which].place(row - int(starts[which]))

    frames = [part.whole[:] for part in parts if isinstance(part.whole, pl.DataFrame | Lines)]
    lines = [line for part in parts if isinstance(part.whole, list) for line in part.whole]
    groups = [part.group for part in parts if part.group is not None]
    return Rounds(
        np.concatenate([part.y for part in parts]),
        tuple(np.concatenate(column) for column in zip(*(part.p for part in parts), strict=True)),
        None,
        pl.concat(groups) if groups else None,
        pl.concat(frames) if frames else lines,
        sum(part.skipped for part in parts),
        tuple(
            pl.concat(list(column)) for column in zip(*(part.also for part in parts), strict=True)
        ),
        place,
    )


def _kinds_and_values(column: pl.Series) -> tuple[list[str], NDArray[Any]]:
    """Return the kind of each time, "" if it is none, and its value."""
    if column.dtype == pl.Date or isinstance(column.dtype, pl.Datetime):
        return _dated(column)
    numbers = column.cast(pl.Float64, strict=False)
    if not numbers.null_count() or column.dtype.is_numeric():
        return _numbered(column, numbers)
    known = {
        value: moment(value) for value in column.cast(pl.String, strict=False).unique().to_list()
    }
    found = [known[value] for value in column.cast(pl.String, strict=False).to_list()]
    kinds = [kind for kind, _ in found]
    dates = {"local", "zoned"}.issuperset(kinds)
    return kinds, np.array([value for _, value in found], np.int64 if dates else np.float64)


def _dated(column: pl.Series) -> tuple[list[str], NDArray[np.int64]]:
    """Return dates as microseconds; a file can have some that no calendar of ours has."""
    kind = "zoned" if getattr(column.dtype, "time_zone", None) else "local"
    times, divided = _PER_MICROSECOND.get(getattr(column.dtype, "time_unit", None) or "", (_DAY, 1))
    physical = column.to_physical().cast(pl.Int64)
    about = physical.cast(pl.Float64).fill_null(np.inf).to_numpy() * times / divided
    good = (about >= MOMENTS[0]) & (about <= MOMENTS[1])
    whole = np.where(good, physical.fill_null(0).to_numpy(), 0)
    return [kind if each else "" for each in good.tolist()], whole * times // divided


def _numbered(column: pl.Series, numbers: pl.Series) -> tuple[list[str], NDArray[Any]]:
    values = numbers.to_numpy()
    exact = column.cast(pl.Int64, strict=False)
    long = (np.abs(values) >= _EXACT) & exact.is_not_null().to_numpy()
    kinds = np.where(np.isfinite(values), np.where(long, "long", "number"), "").tolist()
    return kinds, exact.fill_null(0).to_numpy() if long.any() else values


def _cell(column: pl.Series, row: int) -> object:
    """Return the cell of a row as it can be shown; a date beyond the calendar as its number."""
    dated = column.dtype == pl.Date or isinstance(column.dtype, pl.Datetime)
    return column.to_physical()[row] if dated else column[row]


def _text(value: object) -> str:
    return "nothing" if value is None else f"{str(value)!r:.80}"


def _shown(time: Time) -> str:
    kind, value = time
    if kind in ("number", "long"):
        return f"{value:g}" if value != int(value) else str(int(value))
    when = EPOCH + timedelta(microseconds=value)
    return (when if kind == "zoned" else when.replace(tzinfo=None)).isoformat()


def later(before: Time | None, now: Time | None) -> Time | None:
    """Return up to when was learned: a file of old rows, or without times, does not change that."""
    if before is None or now is None:
        return before or now
    return before if before[0] == now[0] and before[1] > now[1] else now


def saved_time(found: object) -> Time | None:
    """Return a time that was saved.

    Raises
    ------
    StateError
        If it is none.
    """
    if found is None:
        return None
    if not isinstance(found, list) or len(found) != 2 or str(found[0]) not in _KINDS:
        raise StateError(f"the saved time must be its kind and a number, got {found!r:.80}")
    kind, value = found
    most = {"number": sys.float_info.max, "long": 1 << 63}.get(kind, MOMENTS[1])
    if type(value) is not (float if kind == "number" else int) or not abs(value) <= most:
        raise StateError(f"the saved time must be a number of its kind, got {found!r:.80}")
    return kind, value
