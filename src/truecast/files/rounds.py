"""From the rows of a file to rounds: numbers, checked, with the place of the first that is bad."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truecast.errors import FileError
from truecast.files.columns import Names, shown
from truecast.files.source import Chunk, Table

__all__ = ["Rounds", "rounds"]

_WORDS = {"true": 1.0, "false": 0.0}
_SWAPPED = " (the score is 0 or 1 throughout: are outcome and score the wrong way round?)"


@dataclass(frozen=True, eq=False)
class Rounds:
    """Some rounds of a file, in order.

    Attributes
    ----------
    y : array of float64
        Outcomes, 0 or 1; nan where they are not known and that was allowed.
    p : tuple of arrays of float64
        The scores, one array for each of their columns.
    weight : array or None
        int64 if all are whole numbers, else float64.
    group : polars.Series or None
        Strings; null where the file has nothing.
    whole : polars.DataFrame, list of bytes or None
        The rows with all that is in them, if asked for.
    skipped : int
        Bad rows among them that were left out.
    also : tuple of polars.Series
        Other columns that were asked for, as they are in the file.
    place : function
        Where in the file a round stands, such as "line 17".
    """

    y: NDArray[np.float64]
    p: tuple[NDArray[np.float64], ...]
    weight: NDArray[Any] | None = None
    group: pl.Series | None = None
    whole: pl.DataFrame | list[bytes] | None = field(default=None, repr=False)
    skipped: int = 0
    also: tuple[pl.Series, ...] = field(default=(), repr=False)
    place: Callable[[int], str] = field(default=str, repr=False)

    def __len__(self) -> int:
        return len(self.y)

    def known(self) -> Rounds:
        """Return those whose outcome is known."""
        known = ~np.isnan(self.y)
        group = None if self.group is None else self.group.filter(known)
        weight = None if self.weight is None else self.weight[known]
        return Rounds(self.y[known], tuple(p[known] for p in self.p), weight, group, None, self.skipped)

    def first(self, rows: int) -> Rounds:
        """Return so many of these, from the first."""
        return self._part(0, rows, self.skipped)

    def after(self, rows: int) -> Rounds:
        """Return these without the first so many."""
        return self._part(rows, len(self), 0)

    def _part(self, start: int, end: int, skipped: int) -> Rounds:
        at, place = slice(start, end), self.place
        return Rounds(
            self.y[at],
            tuple(p[at] for p in self.p),
            None if self.weight is None else self.weight[at],
            None if self.group is None else self.group[at],
            None if self.whole is None else self.whole[at],
            skipped,
            tuple(column[at] for column in self.also),
            lambda row: place(start + row),
        )


def rounds(
    table: Table, names: Names, *, skip_bad: bool = False, unknown: bool = False, whole: bool = False
) -> Iterator[Rounds]:
    """Yield all rounds of an open file.

    Parameters
    ----------
    table, names
        The file, and its columns.
    skip_bad
        Leave out rows that break a rule, rather than refuse the file.
    unknown
        Allow for rows without an outcome.
    whole
        Keep the rows with all that is in them.

    Raises
    ------
    FileError
        At the first row that breaks a rule, with its place; or at the end if there are no rows, or no good ones.
    """
    rows = skipped = 0
    for chunk in table.chunks(names.all, everything=whole):
        part = _Reading(table, names, unknown).rounds(chunk, skip_bad)
        rows, skipped = rows + len(part), skipped + part.skipped
        yield part
    if not rows:
        reason = f"has no good row: all {skipped:,} were skipped" if skipped else "has a header but no rows"
        raise FileError(table.name, reason)


@dataclass(frozen=True)
class _Reading:
    table: Table
    names: Names
    unknown: bool

    def rounds(self, chunk: Chunk, skip_bad: bool) -> Rounds:
        columns = {name: self._numbers(chunk.frame, name) for name in self._numeric}
        good = {name: self._valid(name, values, chunk.frame) for name, values in columns.items()}
        keep = np.logical_and.reduce(list(good.values()))
        if not skip_bad:
            self._refuse_first(chunk, good, keep)
        skipped = chunk.bad.rows + int(len(keep) - keep.sum())
        group, whole = self._group(chunk.frame), chunk.whole
        also, place = tuple(self._column(chunk.frame, name) for name in self.names.also), chunk.place
        if not keep.all():
            also, place = tuple(column.filter(keep) for column in also), _places(chunk.place, keep)
            columns = {name: values[keep] for name, values in columns.items()}
            group = None if group is None else group.filter(keep)
            whole = None if whole is None else _kept(whole, keep)
        weight = None if self.names.weight is None else _counts(columns[self.names.weight])
        scores = tuple(columns[name] for name in self.names.scores)
        return Rounds(columns[self.names.outcome], scores, weight, group, whole, skipped, also, place)

    @property
    def _numeric(self) -> tuple[str, ...]:
        names = self.names
        return tuple(dict.fromkeys([names.outcome, *names.scores, *([names.weight] if names.weight else [])]))

    def _column(self, frame: pl.DataFrame, name: str) -> pl.Series:
        return frame[str(self.table.columns.index(name))]

    def _numbers(self, frame: pl.DataFrame, name: str) -> NDArray[np.float64]:
        """Return a column as numbers, nan where it has none."""
        column = self._column(frame, name)
        if self.table.kind != "parquet":
            return _parsed(column, words=name == self.names.outcome)
        if not (column.dtype.is_numeric() or column.dtype == pl.Boolean):
            raise FileError(self.table.name, f"has no numbers in column {name!r}: it is of type {column.dtype}")
        return column.cast(pl.Float64).to_numpy()

    def _valid(self, name: str, values: NDArray[np.float64], frame: pl.DataFrame) -> NDArray[np.bool_]:
        """Which rows keep the rules of this column."""
        valid = np.ones(len(values), np.bool_)
        if name == self.names.outcome:
            valid &= (values == 0) | (values == 1)
            if self.unknown and not valid.all():
                valid |= self._column(frame, name).is_null().to_numpy()
        if name in self.names.scores:
            valid &= (values >= 0) & (values <= 1)
            if self.names.repeated:
                valid |= self._column(frame, name).is_null().to_numpy()
        if name == self.names.weight:
            valid &= (values >= 0) & (values < np.inf)
        return valid

    def _refuse_first(self, chunk: Chunk, good: dict[str, NDArray[np.bool_]], keep: NDArray[np.bool_]) -> None:
        first = len(keep) if keep.all() else int(np.argmin(keep))
        before, place, reason = chunk.bad.first
        if chunk.bad.rows and before <= first:
            raise FileError(self.table.name, reason, place)
        if first < len(keep):
            name = next(name for name, valid in good.items() if not valid[first])
            raise FileError(self.table.name, self._reason(name, first, chunk.frame), chunk.place(first))

    def _reason(self, name: str, row: int, frame: pl.DataFrame) -> str:
        rules = {self.names.weight: "a weight, finite and not negative"}
        rules |= dict.fromkeys(self.names.scores, "a probability from 0 to 1")
        rules |= {self.names.outcome: "an outcome, 0 or 1"}
        value = self._column(frame, name)[row]
        reason = (
            f"{shown(name)} must be {rules[name]}, got {'nothing' if value is None else format(repr(value), '.80')}"
        )
        if name == self.names.outcome and all(_zero_or_one(self._numbers(frame, score)) for score in self.names.scores):
            reason += _SWAPPED if self.names.scores else ""
        return reason

    def _group(self, frame: pl.DataFrame) -> pl.Series | None:
        if self.names.group is None:
            return None
        column = self._column(frame, self.names.group)
        try:
            return column.cast(pl.String)
        except pl.exceptions.PolarsError as error:
            reason = f"has no names of groups in column {self.names.group!r}: it is of type {column.dtype}"
            raise FileError(self.table.name, reason) from error


def _parsed(text: pl.Series, *, words: bool) -> NDArray[np.float64]:
    """Return the numbers that a column of text has; nan elsewhere. Outcomes may be words."""
    numbers = text.cast(pl.Float64, strict=False)
    if numbers.null_count() > text.null_count():
        trimmed = text.str.strip_chars()
        numbers = numbers.fill_null(trimmed.cast(pl.Float64, strict=False))
        if words:
            values = trimmed.str.to_lowercase().replace_strict(_WORDS, default=None, return_dtype=pl.Float64)
            numbers = numbers.fill_null(values)
    return numbers.to_numpy()


def _kept(rows: pl.DataFrame | list[bytes], keep: NDArray[np.bool_]) -> pl.DataFrame | list[bytes]:
    if isinstance(rows, pl.DataFrame):
        return rows.filter(keep)
    return [row for row, kept in zip(rows, keep.tolist(), strict=True) if kept]


def _places(place: Callable[[int], str], keep: NDArray[np.bool_]) -> Callable[[int], str]:
    """Where the rows stand that were kept."""
    return lambda row: place(int(np.flatnonzero(keep)[row]))


def _counts(weights: NDArray[np.float64]) -> NDArray[Any]:
    whole = bool((weights == np.floor(weights)).all() and (weights < 2.0**53).all())
    return weights.astype(np.int64) if whole else weights


def _zero_or_one(values: NDArray[np.float64]) -> bool:
    return bool(((values == 0) | (values == 1)).all())
