"""From the rows of a file to rounds: numbers, checked, with the place of the first that is bad."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truecast import _core
from truecast._check import MOST_ROUNDS, WEIGHTS
from truecast._check_classes import SLACK
from truecast.errors import FileError, shown
from truecast.files.cells import (
    ClassOutcomes,
    Outcomes,
    hint,
    missing,
    numbers,
    probabilities,
    with_sign,
)
from truecast.files.columns import Names
from truecast.files.source import Chunk, Lines, OpenTable

__all__ = ["NoRowsError", "Rounds", "rounds"]

_PROBABILITY = "a probability from 0 to 1"
_SUM = "\0sum"  # in place of a column: the scores of several classes together
_SKIP_ANY = 2  # how often one must ask to skip most rows
_MOST_REASONS = 3  # reasons at most that a message gives for skipped rows
_MOST_SCORES = 6  # columns that a message names
_ALMOST = 1e-4
_SWAPPED_COLUMNS = " (the score is always 0 or 1: are outcome and score swapped?)"


@dataclass(frozen=True, eq=False)
class Rounds:
    """Some rounds of a file, in order.

    Attributes
    ----------
    y : array of float64
        Outcomes, 0 or 1, or the numbers of classes; nan where they are not known and that was
        allowed.
    p : tuple of arrays of float64
        The scores, one array for each of their columns.
    weight : array or None
        int64 if all are whole numbers, else float64.
    group : polars.Series or None
        Strings; null where the file has nothing. Of several columns, JSON with a cell for each.
    whole : polars.DataFrame, Lines, list of bytes or None
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
    whole: pl.DataFrame | Lines | list[bytes] | None = field(default=None, repr=False)
    skipped: int = 0
    also: tuple[pl.Series, ...] = field(default=(), repr=False)
    place: Callable[[int], str] = field(default=str, repr=False)

    def __len__(self) -> int:
        return len(self.y)

    def known(self) -> Rounds:
        """Return those whose outcome is known, without all else that is in the rows."""
        known = np.flatnonzero(~np.isnan(self.y))
        return replace(self, whole=None).at(known, self.skipped)

    def first(self, rows: int) -> Rounds:
        """Return the first rows of these."""
        return self.at(slice(rows), self.skipped)

    def after(self, rows: int) -> Rounds:
        """Return these without the first rows."""
        return self.at(slice(rows, None), 0)

    def at(self, rows: slice | NDArray[np.int64], skipped: int) -> Rounds:
        """Return some of these rows, in this order, and say how many bad ones are among them."""
        place = self.place
        positions = np.arange(len(self))[rows]
        whole = self.whole
        if isinstance(whole, list):
            whole = [whole[row] for row in positions.tolist()]
        elif whole is not None:
            whole = whole[rows]
        return Rounds(
            self.y[rows],
            tuple(p[rows] for p in self.p),
            None if self.weight is None else self.weight[rows],
            None if self.group is None else self.group[rows],
            whole,
            skipped,
            tuple(column[rows] for column in self.also),
            lambda row: place(int(positions[row])),
        )


class NoRowsError(FileError):
    """A file has columns, and no rows."""


def rounds(
    table: OpenTable,
    names: Names,
    *,
    skip_bad: int = 0,
    unknown: bool | None = None,
    whole: bool = False,
) -> Iterator[Rounds]:
    """Yield all rounds of an open file.

    Parameters
    ----------
    table, names
        The file, and its columns.
    skip_bad
        Leave out rows that break a rule, rather than refuse the file: 1 for up to half of them, 2
        for any number.
    unknown
        Allow for rows without an outcome; None if the caller has no such option.
    whole
        Keep the rows with all that is in them.

    Raises
    ------
    FileError
        At the first row that breaks a rule, with its place; or at the end if there are no rows, or
        no good ones, or more than half had to be skipped.
    """
    rows = skipped = 0
    reader = _RoundsReader(table, names, unknown)
    for chunk in table.chunks(names.all, everything=whole, numbers=reader.plain):
        part = reader.rounds(chunk, bool(skip_bad))
        rows = rows + len(part)
        skipped = skipped + part.skipped
        yield part
    if not rows:
        if not skipped:
            raise NoRowsError(table.name, "has a header but no rows")
        raise FileError(table.name, f"has no good row: all {skipped:,} were skipped")
    if skipped > rows and skip_bad < _SKIP_ANY:
        raise FileError(table.name, reader.too_many(skipped, rows + skipped))


class _RoundsReader:
    """The rows of a file as they come, and the first that were bad."""

    def __init__(self, table: OpenTable, names: Names, unknown: bool | None) -> None:
        self._table = table
        self._names = names
        self._unknown = unknown
        self._cells = replace(names.cells, points=table.kind == "json")
        self._outcomes = (
            ClassOutcomes(self._cells, names.labels) if names.labels else Outcomes(self._cells)
        )
        self._reasons: list[str] = []
        self._total = 0.0
        self._signs: dict[str, tuple[bool, str]] = {}

    def rounds(self, chunk: Chunk, skip_bad: bool) -> Rounds:
        columns = {name: self._numbers(chunk, name) for name in self._numeric}
        if not self._names.labels and not chunk.bad.rows and self._all_valid(columns):
            return self._found(columns, chunk, 0)
        good = {name: self._valid(name, values, chunk) for name, values in columns.items()}
        if self._names.labels:
            good[_SUM] = self._normalized(columns, np.logical_and.reduce(list(good.values())))
        keep = np.logical_and.reduce(list(good.values()))
        if chunk.bad.rows or not keep.all():
            self._refuse_or_remember(chunk, good, keep, skip_bad)
        skipped = chunk.bad.rows + int(len(keep) - keep.sum())
        found = self._found(columns, chunk, skipped)
        if not keep.all():
            found = found.at(np.flatnonzero(keep), skipped)
        if found.weight is None:
            return found
        weight = _whole_or_real(found.weight)
        if weight.dtype == np.int64:
            self._refuse_heavy(found.place, weight)
        return replace(found, weight=weight)

    def _all_valid(self, columns: dict[str, NDArray[np.float64]]) -> bool:
        """Whether there are only outcomes and scores, and all of them keep the rules.

        This takes less time than which of them do.
        """
        names = self._names
        y = columns[names.outcome]
        forecasts = [columns[score] for score in names.scores] or [y]  # that is from 0 to 1, too
        return names.weight is None and all(_core.are_rounds(p, y) for p in forecasts)

    def _found(self, columns: dict[str, NDArray[np.float64]], chunk: Chunk, skipped: int) -> Rounds:
        names = self._names
        return Rounds(
            columns[names.outcome],
            tuple(columns[name] for name in names.scores),
            None if names.weight is None else columns[names.weight],
            self._group(chunk),
            chunk.whole,
            skipped,
            tuple(self._column(chunk, name) for name in names.also),
            chunk.place,
        )

    def _normalized(
        self, columns: dict[str, NDArray[np.float64]], valid: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Divide the scores of several classes by their sum, if asked for; say which rows sum.

        A row about a forecast made before may have no scores at all, but not some of them.
        """
        scores = self._names.scores
        self._sums = sums = np.sum([columns[name] for name in scores], axis=0)
        none = np.logical_and.reduce([np.isnan(columns[name]) for name in scores])
        if not self._names.normalize:
            return np.asarray(~valid | none | (np.abs(sums - 1) <= SLACK))
        for name in scores:
            with np.errstate(invalid="ignore", divide="ignore"):
                columns[name] = np.minimum(columns[name] / sums, 1.0)
        return np.asarray(~valid | none | (sums > 0))

    def _refuse_heavy(self, place: Callable[[int], str], weight: NDArray[Any]) -> None:
        """Refuse whole weights whose sum is too large to be exact; below, sums of doubles are."""
        total = self._total + weight.sum(dtype=np.float64)
        if total >= MOST_ROUNDS:
            row = int(np.argmax(self._total + np.cumsum(weight, dtype=np.float64) >= MOST_ROUNDS))
            name = f"{shown(str(self._names.weight))} ({self._cells.spelled('weight')})"
            rule = f"must sum to less than {MOST_ROUNDS:,}: divide the weights by a constant"
            raise FileError(self._table.name, f"{name} {rule}", place(row))
        self._total = total

    def too_many(self, skipped: int, rows: int) -> str:
        """What is wrong with a file of which most rows were skipped."""
        again = self._cells.spelled("skip_bad", _SKIP_ANY)
        reasons = "; ".join(self._reasons)
        return (
            f"has {skipped:,} bad rows of {rows:,}, more than half ({reasons}): to skip them "
            f"nevertheless, use {again}"
        )

    @property
    def _numeric(self) -> tuple[str, ...]:
        names = self._names
        return tuple(
            dict.fromkeys([names.outcome, *names.scores, *([names.weight] if names.weight else [])])
        )

    @property
    def plain(self) -> tuple[str, ...]:
        """Columns in which plain numbers count as such, whatever else is said of cells."""
        if self._cells.decimal != ".":
            return ()
        words = self._cells.positive is not None or bool(self._names.labels)
        return tuple(name for name in self._numeric if not (words and name == self._names.outcome))

    def _number(self, name: str) -> str:
        return str(self._table.columns.index(name))

    def _column(self, chunk: Chunk, name: str) -> pl.Series:
        return chunk.frame[self._number(name)]

    def _empty(self, chunk: Chunk, name: str) -> NDArray[np.bool_]:
        """Which rows have nothing in a column; of outcomes, also a word that says so."""
        numbers = chunk.numbers.get(self._number(name))
        if numbers is not None:
            return np.zeros(len(numbers), np.bool_)
        column = self._column(chunk, name)
        empty = missing(column) if name == self._names.outcome else column.is_null()
        return empty.to_numpy()

    def _numbers(self, chunk: Chunk, name: str) -> NDArray[np.float64]:
        """Return a column as numbers, nan where it has none."""
        found = chunk.numbers.get(self._number(name))
        percent = self._cells.percent and name in self._names.scores
        if found is not None:
            if percent and len(found):
                self._refuse_signs(name, chunk, 0, sign=False)
            return found / 100 if percent else found
        column = self._readable(name, self._column(chunk, name))
        if percent:
            signs = with_sign(column)
            for sign in signs.drop_nulls().unique(maintain_order=True):
                self._refuse_signs(name, chunk, int((signs == sign).arg_max() or 0), sign=sign)
        if name == self._names.outcome:
            return self._outcomes(column)
        if name in self._names.scores:
            return probabilities(column, self._cells)
        return numbers(column, self._cells)

    def _refuse_signs(self, name: str, chunk: Chunk, row: int, *, sign: bool) -> None:
        """Refuse a sign of percent in some cells of a column but not in all."""
        before, where = self._signs.setdefault(name, (sign, chunk.place(row)))
        if before == sign:
            return
        value = self._column(chunk, name)[row]
        reason = (
            f"{shown(name)} must have a % sign in all rows or in none "
            f"({self._cells.spelled('percent')}), got {value!r:.80} here and "
            f"{'one' if before else 'none'} in {where}: write all of them alike"
        )
        raise FileError(self._table.name, reason, chunk.place(row))

    def _readable(self, name: str, column: pl.Series) -> pl.Series:
        """Return a column of numbers or text. Text among typed columns must be asked for."""
        if isinstance(column.dtype, pl.Categorical | pl.Enum):
            column = column.cast(pl.String)
        asked = self._cells.of_text
        if name == self._names.outcome:
            asked = self._cells.positive is not None or bool(self._names.labels)
        if column.dtype.is_numeric() or column.dtype == pl.Boolean:
            return column
        if column.dtype == pl.String and (asked or self._table.kind != "parquet"):
            return column
        reason = f"has no numbers in column {name!r}: it is of type {column.dtype}"
        raise FileError(self._table.name, reason + self._hint(name, column))

    def _hint(self, name: str, column: pl.Series, row: int | None = None) -> str:
        """Which option would take a cell: that of a row, or the first."""
        values = column.drop_nulls() if row is None else column[row : row + 1]
        if name == self._names.outcome and self._names.labels:
            return self._hint_of_class(values[0], column) if row is not None else ""
        if not len(values) or (name not in self._names.scores and name != self._names.outcome):
            return ""
        return hint(values[0], column, self._cells, outcome=name == self._names.outcome)

    def _hint_of_class(self, value: object, column: pl.Series) -> str:
        """What to do about an outcome that is none of the classes, or of all that are none."""
        from truecast.files.class_columns import outcomes_in

        if np.isnan(self._outcomes(column)).all():
            written = [*outcomes_in(column).values()]
            some = ", ".join(map(repr, written[:_MOST_SCORES])) + ", ..." * (
                len(written) > _MOST_SCORES
            )
            classes = self._cells.spelled("classes")
            return (
                f": no outcome so far ({some:.200}) is one of them; give the classes as outcomes "
                f"have them, in the order of the columns, with {classes}"
            )
        scores, skip = self._cells.spelled("scores"), self._cells.spelled("skip_bad", True)
        return (
            f": correct the row, or use {skip} to leave such rows out; a class needs a column of "
            f"probabilities ({scores}), and there is none for {value!r:.80}"
        )

    def _valid(self, name: str, values: NDArray[np.float64], chunk: Chunk) -> NDArray[np.bool_]:
        """Which rows keep the rules of this column."""
        valid = np.ones(len(values), np.bool_)
        if name == self._names.outcome:
            valid &= (values >= 0) if self._names.labels else (values == 0) | (values == 1)
            if self._unknown and not valid.all():
                valid |= self._empty(chunk, name)
        if name in self._names.scores:
            valid &= (values >= 0) & (values <= 1)
            if self._names.repeated:
                valid |= self._empty(chunk, name)
        if name == self._names.weight:
            valid &= (values == 0) | ((values >= WEIGHTS[0]) & (values <= WEIGHTS[1]))
        return valid

    def _refuse_or_remember(
        self,
        chunk: Chunk,
        good: dict[str, NDArray[np.bool_]],
        keep: NDArray[np.bool_],
        skip_bad: bool,
    ) -> None:
        """Refuse the first bad row; if bad rows are skipped, remember the first few."""
        for place, reason in self._bad_rows(chunk, good, keep):
            if not skip_bad:
                raise FileError(self._table.name, reason, place)
            if len(self._reasons) == _MOST_REASONS:
                return
            self._reasons.append(f"{place}: {reason.removesuffix(self._or_skip)}")

    def _bad_rows(
        self, chunk: Chunk, good: dict[str, NDArray[np.bool_]], keep: NDArray[np.bool_]
    ) -> Iterator[tuple[str, str]]:
        """Yield place and reason of each bad row; of those that are no rows at all, the first."""
        before, *first = chunk.bad.first
        unread = [(place, reason + self._or_skip) for place, reason in [first] if chunk.bad.rows]
        for row in np.flatnonzero(~keep).tolist():
            if before <= row:
                yield from unread
                unread = []
            name = next(name for name, valid in good.items() if not valid[row])
            yield chunk.place(row), self._reason(name, row, chunk)
        yield from unread

    def _reason(self, name: str, row: int, chunk: Chunk) -> str:
        names = self._names
        if name == _SUM:
            return self._reason_of_sum(row)
        rules = {names.weight: f"a weight, 0 or from {WEIGHTS[0]:g} to {WEIGHTS[1]:g}"}
        rules |= dict.fromkeys(
            names.scores, "a percentage from 0 to 100" if self._cells.percent else _PROBABILITY
        )
        rules |= {names.outcome: self._outcomes.rule}
        option = f" ({self._cells.spelled('weight')})" if name == names.weight else ""
        column = self._column(chunk, name)
        got = "nothing" if column[row] is None else format(repr(column[row]), ".80")
        return (
            f"{shown(name)}{option} must be {rules[name]}, got "
            f"{got}{self._advice(name, row, chunk)}"
        )

    def _reason_of_sum(self, row: int) -> str:
        scores = self._names.scores
        shown_scores = ", ".join(map(shown, scores[:_MOST_SCORES]))
        more = ", ..." if len(scores) > _MOST_SCORES else ""
        which = f"the {len(scores)} scores ({shown_scores}{more})"
        if np.isnan(self._sums[row]):
            return f"{which} must all be there, or none of them for an id that is known"
        if self._names.normalize:
            return f"{which} must not all be 0"
        allow, percent = (self._cells.spelled(name, True) for name in ("normalize", "percent"))
        if self._cells.percent and abs(self._sums[row] - 0.01) < _ALMOST:
            remedy = f"if these are probabilities from 0 to 1, leave out {percent}"
            return f"{which} must sum to 100 %, got {self._sums[row]:.7%}: {remedy}"
        return (
            f"{which} must sum to 1 within {SLACK:g}, got {self._sums[row]:.9g}: use {allow} to "
            f"divide them by their sum, or {self._cells.spelled('scores')} if these are not all of "
            "them, or others"
        )

    def _advice(self, name: str, row: int, chunk: Chunk) -> str:
        """What to do about a bad cell."""
        column = self._column(chunk, name)
        scores = self._names.scores
        is_outcome = name == self._names.outcome
        if missing(column[row : row + 1])[0]:
            perhaps = "" if column[row] is None else "if the value is missing, "
            return f": {perhaps}{self._advice_on_nothing(is_outcome)}"
        if (
            is_outcome
            and scores
            and all(_zero_or_one(self._numbers(chunk, score)) for score in scores)
        ):
            return _SWAPPED_COLUMNS
        return self._hint(name, column, row) or self._or_skip

    def _advice_on_nothing(self, is_outcome: bool) -> str:
        keep = (
            f"{self._cells.spelled('unknown', True)} to keep such rows, or "
            if is_outcome and self._unknown is not None
            else ""
        )
        if not keep:
            return self._skip
        return f"use {keep}{self._cells.spelled('skip_bad', True)} to leave such rows out"

    @property
    def _or_skip(self) -> str:
        """What to do about a row if nothing else is known to help."""
        return f": correct the row, or {self._skip}"

    @property
    def _skip(self) -> str:
        return f"use {self._cells.spelled('skip_bad', True)} to leave such rows out"

    def _group(self, chunk: Chunk) -> pl.Series | None:
        first = self._names.group
        others = self._names.overlapping
        if first is None:
            return None
        if not others:
            return self._group_names(chunk, first)
        columns = [self._group_names(chunk, name).alias(name) for name in (first, *others)]
        table = pl.DataFrame(columns)
        empty = table.select(pl.all_horizontal(pl.all().is_null())).to_series()
        return table.to_struct("").struct.json_encode().set(empty, None)

    def _group_names(self, chunk: Chunk, name: str) -> pl.Series:
        column = self._column(chunk, name)
        try:
            return column.cast(pl.String)
        except pl.exceptions.PolarsError as error:
            reason = f"has no names of groups in column {name!r}: it is of type {column.dtype}"
            raise FileError(self._table.name, reason) from error


def _whole_or_real(weights: NDArray[np.float64]) -> NDArray[Any]:
    whole = bool((weights == np.floor(weights)).all() and (weights < 2.0**53).all())
    return weights.astype(np.int64) if whole else weights


def _zero_or_one(values: NDArray[np.float64]) -> bool:
    return bool(((values == 0) | (values == 1)).all())
