"""A stream in memory: a recalibrator, two monitors and a record. A function of its entries alone.

All four number forecasts alike, from 0, so that one number, the ticket, stands for a forecast in
each. Times come from the entries, so that replaying them gives the same bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truecast import _check, _core
from truecast.errors import InputError
from truecast.serve.course import Course
from truecast.serve.events import Body, Forecasts, GivenUp, Outcomes
from truecast.serve.options import StreamOptions

__all__ = ["CELLS", "NO_NUMBERS", "Group", "LiveStream", "Steps", "name_of"]

Group = str | list[str] | None

_REMEDY = "divide each by its sum; a stream of scale 'logit' takes any finite numbers"
CELLS = 256, 64  # of a record: of one outcome, and of each of several classes
_FEW = 8  # rows up to which one by one is faster
NO_NUMBERS = np.empty(0, np.int64)
_NO_BYTES = np.empty(0, np.uint8)
_NO_MEMBERS = np.empty(0, np.uint32)


class Steps(NamedTuple):
    """Forecasts and outcomes in their order: 0 is the next score, 1 the next ticket."""

    at: NDArray[np.int64]  # when each forecast was made
    scores: NDArray[np.float64]
    names: list[Any] | None  # the groups of each forecast
    about: NDArray[np.int64]  # its event; none at all if there are no events
    tickets: NDArray[np.int64]
    outcomes: NDArray[np.uint8]
    order: NDArray[np.uint8]

    def parts(self, ends: Iterable[int]) -> Iterator[Steps]:
        """Yield the same in parts that end after these numbers of steps."""
        first = issued = resolved = 0
        for end in ends:
            order = self.order[first:end]
            came = resolved + int(order.sum())
            made = issued + len(order) - (came - resolved)
            yield Steps(
                self.at[issued:made],
                self.scores[issued:made],
                None if self.names is None else self.names[issued:made],
                self.about[issued:made],
                self.tickets[resolved:came],
                self.outcomes[resolved:came],
                order,
            )
            first, issued, resolved = end, made, came


class LiveStream:
    """One stream. Calls are checked first: they raise InputError, and then nothing has changed.

    Parameters
    ----------
    options
        What it was created with.

    Attributes
    ----------
    seq : int
        The last entry that it knows.
    groups : dict
        Names of groups, and their numbers in the record; 0 is all others.
    left_out : set of int
        Of several classes: tickets that name an event. Monitors of classes do not know events, so
        these are not bet on.
    last_forecast, last_outcome : int or None
        When these came, in milliseconds since 1970.
    """

    def __init__(self, options: StreamOptions) -> None:
        self.options = options
        self.recalibrator = options.recalibrator()
        self.labels = options.labels
        self.classes = 1 if self.labels is None else len(self.labels)
        self.monitors = [options.monitor(), options.monitor()]
        self.record = _core.Record(self.classes, CELLS[not self.binary], options.max_unresolved)
        self.course = Course()
        self.groups: dict[str, int] = {}
        self.left_out: set[int] = set()
        self.seq = 0
        self.last_forecast: int | None = None
        self.last_outcome: int | None = None
        self._proved: tuple[tuple[int, ...], Any] | None = None  # a certificate, and of what

    @property
    def certificate(self) -> Any:
        """What is proved of the answered forecasts; computed once while nothing changes."""
        record = self.record
        now = record.issued, record.rounds, record.given_up, record.unresolved
        if self._proved is None or self._proved[0] != now:
            self._proved = now, self.recalibrator.certificate
        return self._proved[1]

    @property
    def binary(self) -> bool:
        """Whether outcomes are 0 and 1."""
        return self.labels is None

    @property
    def rows(self) -> int:
        """Forecasts and outcomes so far."""
        return self.record.issued + self.record.rounds

    def scores(self, rows: list[Any]) -> NDArray[np.float64]:
        """Return scores as an array, or raise InputError."""
        if not self.binary:
            table: NDArray[np.float64] = self.recalibrator._labels.rows(
                rows,
                scale=self.options.scale,
                normalize=False,
                argument="score",
                remedy=_REMEDY,
            )
            return table
        if len(rows) <= _FEW and self.options.scale == "probability" and _are_plain(rows):
            return np.array(rows) + 0.0
        return _check.scores("score", rows, scale=self.options.scale) + 0.0  # no -0.0

    def outcome(self, given: Any, position: int | None = None) -> int:
        """Return an outcome as a number, or raise InputError."""
        if not self.binary:
            number: int = self.recalibrator._labels.number(given, "outcome", position)
            return number
        if given is True or given is False or given not in (0, 1):
            raise InputError("outcome", "must be 0 or 1", given, position)
        return int(given)

    def forecast(
        self,
        at: int,
        scores: NDArray[np.float64],
        groups: list[Group] | None,
        events: list[str | None] | None,
    ) -> NDArray[np.float64]:
        """Issue a forecast for each score, and return them."""
        names = None if groups is None else [name_of(group) for group in groups]
        if names is not None:
            names = _check.groups(names, len(scores))
        if events is not None:
            _check.events(events, len(scores))
        if self.binary and len(scores) <= _FEW and names is None and events is None:
            said = self._forecast_few(at, scores)
        else:
            said = self._forecast_many(at, scores, names, events)
        self.last_forecast = at
        return said

    def forecast_one(
        self, at: int, score: Any, groups: list[Group] | None, events: list[str | None] | None
    ) -> float:
        """Issue one forecast of a stream without classes."""
        if groups is not None or events is not None or self.options.scale == "logit":
            return float(self.forecast(at, self.scores([score]), groups, events)[0])
        try:
            ticket = self.recalibrator.issue(score)
        except InputError as error:
            raise InputError("score", error.rule, error.value, 0) from error
        self._note_issued(at, score + 0.0, ticket.p)  # as in the journal: no -0.0
        self.last_forecast = at
        said: float = ticket.p
        return said

    def _note_issued(self, at: int, before: float, after: float) -> None:
        self.monitors[0]._issue(before, None, None)
        self.monitors[1]._issue(after, None, None)
        self.record.issue(at, before, after, [])

    def _forecast_few(self, at: int, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        said = []
        before = self._probabilities(scores)
        for score, p in zip(scores.tolist(), before.tolist(), strict=True):
            ticket = self.recalibrator.issue(score)
            self._note_issued(at, p, ticket.p)
            said.append(ticket.p)
        return np.array(said)

    def _forecast_many(
        self, at: int, scores: NDArray[np.float64], names: list[Any] | None, events: Any
    ) -> NDArray[np.float64]:
        count = len(scores)
        if self.binary:
            about = NO_NUMBERS if events is None else _check.events(events, count)
            times, order = np.full(count, at), np.zeros(count, np.uint8)
            return self.play(Steps(times, scores, names, about, NO_NUMBERS, _NO_BYTES, order))
        before = np.ascontiguousarray(self._probabilities(scores))
        said = self._issue_classes(scores, before, names, events)
        self.record.steps(
            np.full(count, at),
            before,
            said,
            *self._members(names),
            NO_NUMBERS,
            np.empty(0, np.int32),
            np.zeros(count, np.uint8),
        )
        return said

    def play(self, steps: Steps) -> NDArray[np.float64]:
        """Issue and resolve, of a stream without classes; return what was said at each step."""
        said = self.recalibrate(steps)
        self.watch(steps, said)
        return said

    def recalibrate(self, steps: Steps) -> NDArray[np.float64]:
        """Let the recalibrator play steps, and return what it says; `watch` must follow."""
        said = np.empty(len(steps.order))
        rows = steps.scores.reshape(-1, 1)
        self.recalibrator._desk.steps(rows, *steps[2:], said)
        return said

    def watch(self, steps: Steps, said: NDArray[np.float64]) -> None:
        """Let monitors and record play the same; another thread may be ahead with the rest."""
        before = np.ascontiguousarray(self._probabilities(steps.scores))
        after = said[steps.order == 0]
        for monitor, p in zip(self.monitors, (before, after), strict=True):
            monitor._steps(p, *steps[2:])
        self.record.steps(
            steps.at,
            before.reshape(-1, 1),
            after.reshape(-1, 1),
            *self._members(steps.names),
            steps.tickets,
            steps.outcomes.astype(np.int32),
            steps.order,
        )

    def _issue_classes(
        self,
        scores: NDArray[np.float64],
        before: NDArray[np.float64],
        names: list[Any] | None,
        events: Any,
    ) -> NDArray[np.float64]:
        said = np.empty_like(scores)
        for k, row in enumerate(scores):
            options: dict[str, Any] = {}
            if names is not None:
                options["group"] = names[k]
            if events is not None:
                options["event"] = events[k]
            ticket = self.recalibrator.issue(row, **options)
            said[k] = ticket.p
            for monitor, rows in zip(self.monitors, (before, said), strict=True):
                monitor.issue(rows[k])
            if options.get("event") is not None:
                self.left_out.add(int(ticket))
        return said

    def _members(self, names: list[Any] | None) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
        """Return how many groups each round has, and their numbers in the record."""
        if names is None:
            return NO_NUMBERS, _NO_MEMBERS
        counts, members = [], []
        for name in names:
            own = () if name is None else name if isinstance(name, tuple) else (name,)
            numbers = sorted({self._group(each) for each in own})
            counts.append(len(numbers))
            members.extend(numbers)
        return np.array(counts, np.int64), np.array(members, np.uint32)

    def _group(self, name: str) -> int:
        found = self.groups.get(name)
        if found is None and len(self.groups) < self.options.max_groups:
            found = self.groups[name] = len(self.groups) + 1
        return found or 0

    def learn(self, at: int, tickets: list[int], outcomes: list[int]) -> None:
        """Learn outcomes of forecasts that are awaited, each once."""
        if self.binary and len(tickets) > _FEW:
            self._learn_many(tickets, outcomes)
        else:
            self._learn_few(tickets, outcomes)
        self.last_outcome = at
        self.course.note(at, self)

    def _learn_few(self, tickets: list[int], outcomes: list[int]) -> None:
        for ticket, outcome in zip(tickets, outcomes, strict=True):
            label = outcome if self.labels is None else self.labels[outcome]
            self.recalibrator.resolve(ticket, label)
            for monitor in self.monitors:
                if ticket in self.left_out:
                    monitor.give_up(ticket, at_random=True)
                else:
                    monitor.resolve(ticket, label)
            self.left_out.discard(ticket)
            self.record.resolve(ticket, outcome)

    def _learn_many(self, tickets: list[int], outcomes: list[int]) -> None:
        numbers, y = np.array(tickets, np.int64), np.array(outcomes, np.uint8)
        order = np.ones(len(y), np.uint8)
        self.play(Steps(NO_NUMBERS, np.empty(0), None, NO_NUMBERS, numbers, y, order))

    def give_up(self, tickets: list[int]) -> None:
        """Await these outcomes no longer."""
        for ticket in tickets:
            self.recalibrator.give_up(ticket)
            for monitor in self.monitors:
                monitor.give_up(ticket, at_random=ticket in self.left_out)
            self.left_out.discard(ticket)
            self.record.give_up(ticket)

    def apply(self, seq: int, at: int, body: Body) -> NDArray[np.float64] | None:
        """Do what an entry says; return the forecasts, if it made some."""
        said = None
        if isinstance(body, Forecasts):
            said = self.forecast(at, self.columns(body.scores), body.groups, body.events)
        elif isinstance(body, Outcomes):
            tickets = np.frombuffer(body.tickets, "<i8").tolist()
            self.learn(at, tickets, np.frombuffer(body.outcomes, "<i4").tolist())
        elif isinstance(body, GivenUp):
            self.give_up(np.frombuffer(body.tickets, "<i8").tolist())
        self.seq = seq
        return said

    def columns(self, numbers: bytes) -> NDArray[np.float64]:
        """Return forecasts or scores as an array: a row each if there are classes."""
        flat = np.frombuffer(numbers, "<f8")
        return flat if self.binary else flat.reshape(-1, self.classes)

    def _probabilities(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """What the model said, as probabilities."""
        if self.options.scale != "logit":
            return scores
        if self.binary:
            return 1.0 / (1.0 + np.exp(-np.clip(scores, -700.0, 700.0)))
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)  # type: ignore[no-any-return]


def _are_plain(rows: list[Any]) -> bool:
    """Whether there is nothing to be checked: floats from 0 to 1."""
    return all(type(row) is float and 0.0 <= row <= 1.0 for row in rows)


def name_of(group: Group) -> Any:
    """Return groups as a recalibrator takes them."""
    return tuple(group) if isinstance(group, list) else group
