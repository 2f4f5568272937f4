"""Rows that are known again by an id.

Each is forecast once, and learned from when its outcome comes.
"""

from __future__ import annotations

import base64
import math
import zlib
from array import array
from typing import Any, NoReturn, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truecast._check_classes import MOST_CLASSES
from truecast.errors import FileError, InputError, StateError, TicketError, shown
from truecast.files.columns import Names
from truecast.files.ids import as_text
from truecast.files.recalibrated import RunningErrors
from truecast.files.rounds import Rounds
from truecast.files.taken import outcomes_of, scores_of
from truecast.recalibrate import ClassRecalibrator, Recalibrator

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
        self._numbers: dict[str, int] = {}  # of the forecasts, by id
        # of each forecast, by its number; `width` scores and forecasts for each
        self._scores = array("d")
        self._forecasts = array("d")
        self._tickets = array("q")
        self._groups = array("L")  # by their codes
        self._codes: dict[Group, int] = {}
        self._loaded = 0  # forecasts that were made by earlier runs

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def awaited(self) -> int:
        """Forecasts whose outcome is not known."""
        return int((np.frombuffer(self._tickets, np.int64) >= 0).sum()) if len(self) else 0

    def resolved(self) -> Rounds:
        """Return the rounds whose outcomes are known, with their scores and forecasts."""
        tickets = np.array(self._tickets, np.int64)
        codes = np.array(self._groups, np.int64)
        known = tickets < 0
        group = (
            pl.Series(list(self._codes), dtype=pl.String).gather(codes[known])
            if self.grouped
            else None
        )
        scores = np.hstack([self._rows(self._scores), self._rows(self._forecasts)])[known]
        return Rounds(-(1 + tickets[known]).astype(np.float64), tuple(scores.T), None, group)

    def _rows(self, numbers: array[float]) -> NDArray[np.float64]:
        """Return a view of scores or forecasts, a row for each forecast."""
        flat = np.frombuffer(numbers, np.float64) if numbers else np.empty(0)
        return flat.reshape(-1, self.width)

    def play(
        self,
        recalibrator: Recalibrator | ClassRecalibrator,
        part: Rounds,
        names: Names,
        file: str,
        errors: RunningErrors,
    ) -> NDArray[np.float64]:
        """Go through some rows in order; return the forecast of each.

        The `errors` take note of the rounds whose outcomes were learned.

        Raises
        ------
        FileError
            If a row contradicts what is known by its id, or is new and has no score.
        StateError
            If the recalibrator is not the one that made the forecasts.
        """
        return _Play(self, recalibrator, part, names, file).run(errors)

    def first_new(self, part: Rounds, file: str) -> int | None:
        """Return the first of some rows that is not known."""
        numbers = self._numbers
        return next(
            (row for row, name in enumerate(self.names(part, file)) if name not in numbers), None
        )

    def names(self, part: Rounds, file: str) -> list[str]:
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
            "width": self.width,
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
        known._numbers = _saved_ids(data[at:], columns["length"])
        known._codes = _saved_groups(saved["groups"])
        _check_columns(columns, len(known._codes), max(2, width))
        known._scores.frombytes(columns["score"].astype(np.float64).tobytes())
        known._forecasts.frombytes(columns["forecast"].astype(np.float64).tobytes())
        known._tickets.frombytes(columns["ticket"].astype(np.int64).tobytes())
        known._groups.extend(columns["group"].tolist())
        known._loaded = rows
        return known


class _Play:
    """Some rows on their way through a recalibrator."""

    def __init__(
        self,
        known: ForecastsById,
        recalibrator: Recalibrator | ClassRecalibrator,
        part: Rounds,
        names: Names,
        file: str,
    ) -> None:
        self._known = known
        self._recalibrator: Any = recalibrator
        self._part = part
        self._names = names
        self._file = file
        self._scores = scores_of(part, names)
        self._members = names.members(part.group) or [None] * len(part)
        self._events = self._read_events()
        # rows that are new and have an outcome: they are played together
        self._waiting: list[int] = []
        self._learned: list[int] = []  # numbers of forecasts
        self._outcomes: list[float] = []

    def run(self, errors: RunningErrors) -> NDArray[np.float64]:
        known = self._known
        part = self._part
        rows, outcomes = np.column_stack(part.p).tolist(), part.y.tolist()
        groups = [None] * len(part) if part.group is None else part.group.to_list()
        at = np.empty(len(part), np.int64)
        for row, name in enumerate(known.names(part, self._file)):
            number = known._numbers.get(name)
            if number is None:
                number = self._play_new(row, name, rows[row], outcomes[row], groups[row])
            else:
                self._play_known(row, number, rows[row], outcomes[row], groups[row])
            at[row] = number
        self._play_waiting()
        known.seen_again += int((at < known._loaded).sum())
        forecasts = known._rows(known._forecasts)
        learned = np.array(self._learned, np.int64)
        scores = known._rows(known._scores)
        several = bool(self._names.labels)
        before, after = (
            some[learned] if several else some[learned, 0] for some in (scores, forecasts)
        )
        outcomes = np.array(self._outcomes)
        errors.add(outcomes, before, after)
        if self._part.group is not None:
            texts = list(known._codes)
            group = pl.Series([texts[known._groups[one]] for one in self._learned], dtype=pl.String)
            there = self._recalibrator.groups
            errors.add_groups(group, self._names, there, outcomes, before, after)
        return forecasts[at]

    def _play_new(
        self, row: int, name: str, said: list[float], outcome: float, group: Group
    ) -> int:
        """Forecast a row that is new; learn from its outcome, if any, before the next row."""
        known = self._known
        if math.isnan(said[0]):
            self._refuse(
                row,
                f"{shown(self._names.scores[0])} must be a probability for a new id, got nothing",
            )
        if math.isnan(outcome):
            self._play_waiting()  # they came before
            several = bool(self._names.labels)
            ticket = self._recalibrator.issue(
                said if several else said[0], group=self._members[row], event=self._events[row]
            )
            known._forecasts.extend(ticket.p if several else (ticket.p,))
            known._tickets.append(ticket)
        else:
            self._waiting.append(row)
            known._tickets.append(-1 - int(outcome))
        number = known._numbers[name] = len(known._numbers)
        known._scores.extend(said)
        known._groups.append(known._codes.setdefault(group, len(known._codes)))
        return number

    def _play_known(
        self, row: int, number: int, said: list[float], outcome: float, group: Group
    ) -> None:
        """Learn the outcome of a row that is known, if it is new.

        A score or a group that is left out is as before.
        """
        known = self._known
        at = number * known.width
        was = known._scores[at : at + known.width].tolist()
        if said != was and not math.isnan(said[0]):
            k = next(k for k in range(known.width) if said[k] != was[k])
            self._contradict(row, self._names.scores[k], was[k], said[k])
        if group is not None and known._codes.get(group) != known._groups[number]:
            self._contradict(
                row, self._names.group or "group", list(known._codes)[known._groups[number]], group
            )
        if math.isnan(outcome):
            return
        ticket = known._tickets[number]
        if ticket >= 0:
            self._play_waiting()
            self._resolve(row, number, ticket)
        elif ticket != -1 - outcome:
            before, now = (self._named(k) for k in (-1 - ticket, int(outcome)))
            self._contradict(row, self._names.outcome, before, now)

    def _named(self, outcome: int) -> int | str:
        """Return an outcome as the file has it."""
        return self._names.labels[outcome] if self._names.labels else outcome

    def _resolve(self, row: int, number: int, ticket: int) -> None:
        outcome = self._part.y[row].item()
        try:
            self._recalibrator.resolve(ticket, self._taken([row])[0])
        except TicketError:
            # given up since too many were awaited, or resolved by another program with this state
            self._known.lost += 1
        except InputError as error:
            raise StateError(
                f"it awaits the outcome of a forecast that was never made: {error}"
            ) from error
        else:
            self._learned.append(number)
            self._outcomes.append(outcome)
        self._known._tickets[number] = -1 - int(outcome)

    def _taken(self, rows: list[int]) -> NDArray[Any]:
        """Return the outcomes of some rows as the recalibrator takes them."""
        return outcomes_of(self._part.y[rows], self._recalibrator)

    def _play_waiting(self) -> None:
        """Play the rows that wait, which have come one after the other."""
        if not self._waiting:
            return
        known = self._known
        part = self._part
        at = self._waiting
        groups = None if part.group is None else [self._members[row] for row in at]
        events = None if self._names.event is None else [self._events[row] for row in at]
        # as `issue` and `resolve`, so that a row is the same in whichever run it comes
        each = np.arange(len(at))
        forecasts = self._recalibrator.forecast_many(
            self._scores[at], self._taken(at), groups=groups, known_at=each, events=events
        )
        made = len(known._forecasts) // known.width
        self._learned.extend(range(made, made + len(at)))
        self._outcomes.extend(part.y[at].tolist())
        known._forecasts.frombytes(forecasts.tobytes())
        self._waiting = []

    def _read_events(self) -> list[str | None]:
        """What each row is about, where the file says that."""
        name = self._names.event
        rows = len(self._part)
        if name is None:
            return [None] * rows
        column = self._part.also[-1]
        try:
            return [text or None for text in as_text(column)]
        except pl.exceptions.PolarsError as error:
            reason = f"has no events in column {name!r} (--event): it is of type {column.dtype}"
            raise FileError(self._file, reason) from error

    def _contradict(self, row: int, column: str, was: object, now: object) -> NoReturn:
        change = f"{shown(column)} of this id was {was!r:.80} before, got {now!r:.80}"
        self._refuse(
            row, f"{change}: what was learned cannot be changed; restore it, or leave the row out"
        )

    def _refuse(self, row: int, reason: str) -> NoReturn:
        name = self._part.also[0][row]
        raise FileError(
            self._file, f"{shown(self._known.column)} {name!r:.80}: {reason}", self._part.place(row)
        )


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
