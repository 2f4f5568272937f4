"""Rows that are known again by an id: each is forecast once, and learned from when its outcome comes."""

from __future__ import annotations

import base64
import math
import zlib
from array import array
from dataclasses import dataclass
from typing import Any, NoReturn, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truecast.errors import FileError, InputError, StateError, TicketError, shown
from truecast.files.columns import Names
from truecast.files.rounds import Rounds
from truecast.recalibrate import Recalibrator

__all__ = ["Known", "Learned"]

_COLUMNS = {"length": "<u4", "score": "<f8", "forecast": "<f8", "ticket": "<i8", "group": "<u4"}
_ROW = sum(np.dtype(kind).itemsize for kind in _COLUMNS.values())
_SQUEEZED = 1032  # times that zlib makes things smaller, at most
_MOST_BYTES = 1 << 40

_NO_ID = ["", "NaN", "nan"]

Group = str | None


@dataclass(frozen=True)
class Learned:
    """What was learned from some rows: outcomes, scores and what was made of them.

    Also how many outcomes came too late, and how many of the rows were known from earlier runs.
    """

    y: NDArray[np.float64]
    score: NDArray[np.float64]
    said: NDArray[np.float64]
    lost: int = 0
    earlier: int = 0


class Known:
    """The forecasts of a file's rows by their ids, in the order in which they were made.

    A forecast has a ticket while its outcome is awaited; then -1 for the outcome 0, -2 for 1.

    Parameters
    ----------
    column
        Of the ids.
    grouped
        Whether rows belong to groups.
    """

    def __init__(self, column: str, *, grouped: bool) -> None:
        self.column, self.grouped = column, grouped
        self._numbers: dict[str, int] = {}
        self._scores, self._forecasts = array("d"), array("d")
        self._tickets, self._groups = array("q"), array("L")
        self._codes: dict[Group, int] = {}
        self._earlier = 0

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def awaited(self) -> int:
        """Forecasts whose outcome is not known."""
        return int((np.frombuffer(self._tickets, np.int64) >= 0).sum()) if len(self) else 0

    def resolved(self) -> Rounds:
        """Return the rounds whose outcomes are known: of the scores, and of what was made of them."""
        tickets, codes = np.array(self._tickets, np.int64), np.array(self._groups, np.int64)
        known = tickets < 0
        group = (
            pl.Series(list(self._codes), dtype=pl.String).gather(codes[known])
            if self.grouped
            else None
        )
        scores = np.array(self._scores)[known], np.array(self._forecasts)[known]
        return Rounds(-(1 + tickets[known]).astype(np.float64), scores, None, group)

    def play(
        self, recalibrator: Recalibrator, part: Rounds, names: Names, file: str
    ) -> tuple[NDArray[np.float64], Learned]:
        """Go through some rows in order; return the forecast of each, and what was learned.

        Raises
        ------
        FileError
            If a row contradicts what is known by its id, or is new and has no score.
        StateError
            If the recalibrator is not the one that made the forecasts.
        """
        return _Play(self, recalibrator, part, names, file).run()

    def first_new(self, part: Rounds, file: str) -> int | None:
        """Return the first of some rows that is not known."""
        numbers = self._numbers
        return next(
            (row for row, name in enumerate(self.names(part, file)) if name not in numbers), None
        )

    def names(self, part: Rounds, file: str) -> list[str]:
        """Return the ids of some rows, the same for an id in another type: 1 and 1.0, a time in other units."""
        try:
            ids = _as_text(part.also[0])
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
        return ids.to_list()

    def record(self) -> dict[str, Any]:
        """Return everything as plain data."""
        ids = [name.encode() for name in self._numbers]
        columns = [list(map(len, ids)), self._scores, self._forecasts, self._tickets, self._groups]
        blocks = [
            np.array(each, kind).tobytes()
            for each, kind in zip(columns, _COLUMNS.values(), strict=True)
        ]
        letters = b"".join(ids)
        return {
            "column": self.column,
            "grouped": self.grouped,
            "rows": len(ids),
            "letters": len(letters),
            "groups": list(self._codes),
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
        known = cls(saved["column"], grouped=saved["grouped"])
        rows, letters = saved["rows"], saved["letters"]
        if min(rows, letters) < 0 or rows * _ROW + letters > _MOST_BYTES:
            raise StateError(
                f"the saved ids must be some rows and letters, got {rows!r:.80} and {letters!r:.80}"
            )
        data = _inflated(saved["table"], rows * _ROW + letters)
        columns, at = {}, 0
        for name, kind in _COLUMNS.items():
            columns[name] = np.frombuffer(data, kind, rows, at)
            at += columns[name].nbytes
        known._numbers = _saved_ids(data[at:], columns["length"])
        known._codes = _saved_groups(saved["groups"])
        _check(columns, len(known._codes))
        known._scores.frombytes(columns["score"].astype(np.float64).tobytes())
        known._forecasts.frombytes(columns["forecast"].astype(np.float64).tobytes())
        known._tickets.frombytes(columns["ticket"].astype(np.int64).tobytes())
        known._groups.extend(columns["group"].tolist())
        known._earlier = rows
        return known


class _Play:
    """Some rows on their way through a recalibrator."""

    def __init__(
        self, known: Known, recalibrator: Recalibrator, part: Rounds, names: Names, file: str
    ) -> None:
        self._known, self._recalibrator, self._part = known, recalibrator, part
        self._names, self._file = names, file
        self._members = names.members(part.group) or [None] * len(part)
        self._events = self._of_events()
        self._waiting: list[
            int
        ] = []  # rows that are new and have an outcome: they are played together
        self._learned: list[int] = []  # numbers of forecasts
        self._outcomes: list[float] = []
        self._lost = 0

    def run(self) -> tuple[NDArray[np.float64], Learned]:
        known, part = self._known, self._part
        scores, outcomes = part.p[0].tolist(), part.y.tolist()
        groups = [None] * len(part) if part.group is None else part.group.to_list()
        at = np.empty(len(part), np.int64)
        for row, name in enumerate(known.names(part, self._file)):
            number = known._numbers.get(name)
            if number is None:
                number = self._first(row, name, scores[row], outcomes[row], groups[row])
            else:
                self._again(row, number, scores[row], outcomes[row], groups[row])
            at[row] = number
        self._flush()
        forecasts = np.frombuffer(known._forecasts, np.float64) if len(known) else np.empty(0)
        learned = np.array(self._learned, np.int64)
        score = np.frombuffer(known._scores, np.float64)[learned] if len(learned) else np.empty(0)
        earlier = int((at < known._earlier).sum())
        done = Learned(np.array(self._outcomes), score, forecasts[learned], self._lost, earlier)
        return forecasts[at], done

    def _first(self, row: int, name: str, score: float, outcome: float, group: Group) -> int:
        """Forecast a row that is new; if its outcome is there, it is learned from before the next one."""
        known = self._known
        if math.isnan(score):
            self._refuse(
                row,
                f"{shown(self._names.scores[0])} must be a probability where an id is new, got nothing",
            )
        if math.isnan(outcome):
            self._flush()
            ticket = self._recalibrator.issue(
                score, group=self._members[row], event=self._events[row]
            )
            known._forecasts.append(ticket.p)
            known._tickets.append(ticket)
        else:
            self._waiting.append(row)
            known._tickets.append(-1 - int(outcome))
        number = known._numbers[name] = len(known._numbers)
        known._scores.append(score)
        known._groups.append(known._codes.setdefault(group, len(known._codes)))
        return number

    def _again(self, row: int, number: int, score: float, outcome: float, group: Group) -> None:
        """Learn the outcome of a row that is known, if it is new; a score or a group that is left out is as before."""
        known = self._known
        if score != known._scores[number] and not math.isnan(score):
            self._contradict(row, self._names.scores[0], known._scores[number], score)
        if group is not None and known._codes.get(group) != known._groups[number]:
            self._contradict(
                row, self._names.group or "group", list(known._codes)[known._groups[number]], group
            )
        if math.isnan(outcome):
            return
        ticket = known._tickets[number]
        if ticket >= 0:
            self._flush()
            self._resolve(number, ticket, outcome)
        elif ticket != -1 - outcome:
            self._contradict(row, self._names.outcome, -1 - ticket, int(outcome))

    def _resolve(self, number: int, ticket: int, outcome: float) -> None:
        try:
            self._recalibrator.resolve(ticket, outcome)
        except (
            TicketError
        ):  # given up since too many were awaited, or resolved by another program with this state
            self._lost += 1
        except InputError as error:
            raise StateError(
                f"it awaits the outcome of a forecast that was never made: {error}"
            ) from error
        else:
            self._learned.append(number)
            self._outcomes.append(outcome)
        self._known._tickets[number] = -1 - int(outcome)

    def _flush(self) -> None:
        """Play the rows that wait, which have come one after the other."""
        if not self._waiting:
            return
        known, part, at = self._known, self._part, self._waiting
        groups = None if part.group is None else [self._members[row] for row in at]
        events = [self._events[row] for row in at]
        each = np.arange(
            len(at)
        )  # as `issue` and `resolve`, so that a row is the same in whichever run it comes
        scores, y = part.p[0][at], part.y[at]
        said = self._recalibrator.forecast_many(
            scores, y, groups=groups, known_at=each, events=events
        )
        self._learned.extend(range(len(known._forecasts), len(known._forecasts) + len(at)))
        self._outcomes.extend(part.y[at].tolist())
        known._forecasts.frombytes(said.tobytes())
        self._waiting = []

    def _of_events(self) -> list[str | None]:
        """What each row is about, where the file says that."""
        name, rows = self._names.event, len(self._part)
        if name is None:
            return [None] * rows
        column = self._part.also[-1]
        try:
            return [text or None for text in _as_text(column)]
        except pl.exceptions.PolarsError as error:
            reason = f"has no events in column {name!r} (--event): it is of type {column.dtype}"
            raise FileError(self._file, reason) from error

    def _contradict(self, row: int, column: str, was: object, now: object) -> NoReturn:
        said = f"{shown(column)} of this id was {was!r:.80} before, got {now!r:.80}"
        self._refuse(
            row, f"{said}: what was learned cannot be changed; restore it, or leave the row out"
        )

    def _refuse(self, row: int, reason: str) -> NoReturn:
        name = self._part.also[0][row]
        raise FileError(
            self._file, f"{shown(self._known.column)} {name!r:.80}: {reason}", self._part.place(row)
        )


def _as_text(ids: pl.Series) -> pl.Series:
    """Return ids as text, whatever the type that they are kept in."""
    kind = ids.dtype
    if kind.is_float():
        return _of_floats(ids.cast(pl.Float64))
    if kind.is_decimal():
        return ids.cast(pl.String).str.replace(r"(\.\d*?)0+$", "$1").str.strip_suffix(".")
    if isinstance(kind, pl.Datetime):
        return _of_times(ids, kind.time_zone)
    return ids.dt.to_string("%T%.f") if kind == pl.Time else ids.cast(pl.String)


def _of_floats(ids: pl.Series) -> pl.Series:
    whole = ids.cast(pl.Int64, strict=False)
    same = whole.cast(pl.Float64) == ids
    return pl.select(
        pl.when(same).then(whole.cast(pl.String)).otherwise(ids.cast(pl.String))
    ).to_series()


def _of_times(ids: pl.Series, zone: str | None) -> pl.Series:
    """Return times as text; midnight is the day, and if there is a time zone, it is made UTC."""
    if zone is None:
        return ids.dt.to_string("%F %T%.f").str.strip_suffix(" 00:00:00")
    return ids.dt.convert_time_zone("UTC").dt.to_string("%F %T%.fZ")


def _inflated(text: str, size: int) -> bytes:
    try:
        packed = base64.b64decode(text, validate=True)
        if size > _SQUEEZED * len(packed) + _SQUEEZED:
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


def _check(columns: dict[str, NDArray[Any]], groups: int) -> None:
    for name in ("score", "forecast"):
        if not ((columns[name] >= 0) & (columns[name] <= 1)).all():
            raise StateError(f"every saved {name} of an id must be from 0 to 1")
    tickets = columns["ticket"]
    awaited = tickets[tickets >= 0]
    if (tickets < -2).any() or len(np.unique(awaited)) != len(awaited):
        raise StateError("the saved tickets of the ids must be distinct, or say an outcome")
    if (columns["group"] >= groups).any():
        raise StateError("the saved groups of the ids must be among those that there are")
