"""Rows with ids on their way through a recalibrator."""

from __future__ import annotations

import math
from array import array
from typing import Any, NoReturn

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truecast.errors import FileError, InputError, StateError, TicketError, shown
from truecast.files.columns import Names
from truecast.files.ids import as_text
from truecast.files.known import ForecastsById, Group
from truecast.files.recalibrated import RunningErrors
from truecast.files.rounds import Rounds
from truecast.files.taken import outcomes_of, runs, scores_of
from truecast.recalibrate import ClassRecalibrator, Recalibrator

__all__ = ["play_by_id"]


def play_by_id(
    known: ForecastsById,
    recalibrator: Recalibrator | ClassRecalibrator,
    part: Rounds,
    names: Names,
    file: str,
    errors: RunningErrors,
) -> NDArray[np.float64]:
    """Go through some rows in order; return the forecast of each.

    What is new is added to what is `known`. The `errors` take note of the rounds whose outcomes
    were learned.

    Raises
    ------
    FileError
        If a row contradicts what is known by its id, or is new and has no score.
    StateError
        If the recalibrator is not the one that made the forecasts.
    """
    return _Play(known, recalibrator, part, names, file).run(errors)


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
        self._rows = self._scores.reshape(len(part), known.width)
        self._members = names.members(part.group) or [None] * len(part)
        self._events = self._read_events()
        # rows that are new and have an outcome: they are played together
        self._waiting: list[int] = []
        self._learned: list[int] = []  # numbers of forecasts
        self._outcomes: list[float] = []

    def run(self, errors: RunningErrors) -> NDArray[np.float64]:
        known = self._known
        at = self._play_rows()
        self._play_waiting()
        known.seen_again += int((at < known.loaded).sum())
        forecasts = known.as_rows(known.forecasts)
        learned = np.array(self._learned, np.int64)
        scores = known.as_rows(known.scores)
        several = bool(self._names.labels)
        before, after = (
            some[learned] if several else some[learned, 0] for some in (scores, forecasts)
        )
        outcomes = np.array(self._outcomes)
        errors.add(outcomes, before, after)
        if self._part.group is not None:
            texts = list(known.codes)
            group = pl.Series([texts[known.groups[one]] for one in self._learned], dtype=pl.String)
            there = self._recalibrator.groups
            errors.add_groups(group, self._names, there, outcomes, before, after)
        return forecasts[at]

    def _play_rows(self) -> NDArray[np.int64]:
        """Go through the rows; return the numbers of their forecasts.

        Rows that tell nothing new are passed over, and new ones that come with their outcomes are
        taken together. The others take longer, one by one.
        """
        known = self._known
        ids = known.names(self._part, self._file)
        names = ids.to_list()
        at = np.array([known.numbers.get(name, -1) for name in names], np.int64)
        told = self._are_told(at)
        fresh = self._are_fresh(at, ids)
        for rows in runs(told + 2 * fresh):
            if fresh[rows.start]:
                at[rows] = self._take_fresh(rows, names[rows])
            elif not told[rows.start]:
                self._play_singly(rows, names[rows], at[rows])
        return at

    def _are_told(self, at: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which rows are known and tell nothing new."""
        known = self._known
        part = self._part
        told = at >= 0
        if not told.any():
            return told
        number = at[told]
        said = self._rows[told]
        same = (said == known.as_rows(known.scores)[number]).all(axis=1) | np.isnan(said[:, 0])
        if part.group is not None:
            group = part.group.filter(pl.Series(told))
            codes = [known.codes.get(name, -1) for name in group.to_list()]
            groups = np.frombuffer(known.groups, known.groups.typecode)[number]
            same &= group.is_null().to_numpy() | (groups == np.array(codes))
        y = part.y[told]
        same &= np.isnan(y) | (np.frombuffer(known.tickets, np.int64)[number] == -1 - y)
        told[told] = same
        return told

    def _are_fresh(self, at: NDArray[np.int64], ids: pl.Series) -> NDArray[np.bool_]:
        """Which rows are new, and come with a score and an outcome."""
        fresh = (at < 0) & ~np.isnan(self._part.y) & ~np.isnan(self._part.p[0])
        fresh &= ids.is_first_distinct().to_numpy()
        return fresh

    def _take_fresh(self, rows: slice, names: list[str]) -> NDArray[np.int64]:
        """Take rows that are new and have an outcome: they are played together, soon."""
        known = self._known
        numbers = len(known) + np.arange(len(names))
        known.numbers.update(zip(names, numbers.tolist(), strict=True))
        known.tickets.frombytes((-1 - self._part.y[rows]).astype(np.int64).tobytes())
        known.scores.frombytes(self._rows[rows].tobytes())
        known.groups.extend(self._codes(rows))
        self._waiting.extend(range(rows.start, rows.stop))
        return numbers

    def _codes(self, rows: slice) -> array[int]:
        """Return the codes of the groups of some rows, new ones if there are new groups."""
        codes = self._known.codes
        group = self._part.group
        if group is None:
            one = array("L", [codes.setdefault(None, len(codes))])
            return one * len(self._part.y[rows])
        return array("L", [codes.setdefault(name, len(codes)) for name in group[rows].to_list()])

    def _play_singly(self, rows: slice, names: list[str], at: NDArray[np.int64]) -> None:
        """Play rows one after the other; write the numbers of their forecasts."""
        known = self._known
        groups = [None] * len(at) if self._part.group is None else self._part.group[rows].to_list()
        each = zip(
            names, self._rows[rows].tolist(), self._part.y[rows].tolist(), groups, strict=True
        )
        for k, (name, said, outcome, group) in enumerate(each):
            number = known.numbers.get(name)
            if number is None:
                number = self._issue(rows.start + k, name, said, group)
            else:
                self._play_known(rows.start + k, number, said, outcome, group)
            at[k] = number

    def _issue(self, row: int, name: str, said: list[float], group: Group) -> int:
        """Forecast a row that is new, and has no outcome yet."""
        known = self._known
        if math.isnan(said[0]):
            self._refuse(
                row,
                f"{shown(self._names.scores[0])} must be a probability for a new id, got nothing",
            )
        self._play_waiting()  # they came before
        several = bool(self._names.labels)
        ticket = self._recalibrator.issue(
            said if several else said[0], group=self._members[row], event=self._events[row]
        )
        known.forecasts.extend(ticket.p if several else (ticket.p,))
        known.tickets.append(ticket)
        number = known.numbers[name] = len(known.numbers)
        known.scores.extend(said)
        known.groups.append(known.codes.setdefault(group, len(known.codes)))
        return number

    def _play_known(
        self, row: int, number: int, said: list[float], outcome: float, group: Group
    ) -> None:
        """Learn the outcome of a row that is known, if it is new.

        A score or a group that is left out is as before.
        """
        known = self._known
        at = number * known.width
        was = known.scores[at : at + known.width].tolist()
        if said != was and not math.isnan(said[0]):
            k = next(k for k in range(known.width) if said[k] != was[k])
            self._contradict(row, self._names.scores[k], was[k], said[k])
        if group is not None and known.codes.get(group) != known.groups[number]:
            self._contradict(
                row, self._names.group or "group", list(known.codes)[known.groups[number]], group
            )
        if math.isnan(outcome):
            return
        ticket = known.tickets[number]
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
        self._known.tickets[number] = -1 - int(outcome)

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
        made = len(known.forecasts) // known.width
        self._learned.extend(range(made, made + len(at)))
        self._outcomes.extend(part.y[at].tolist())
        known.forecasts.frombytes(forecasts.tobytes())
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
