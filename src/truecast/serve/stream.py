"""A stream in memory: a recalibrator, two monitors and a record. A function of its entries alone.

All four number forecasts alike, from 0, so that one number, the ticket, stands for a forecast in
each. Times come from the entries, so that replaying them gives the same bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecast import _check
from truecast.errors import InputError
from truecast.reference.record import Record
from truecast.serve.course import Course
from truecast.serve.events import Body, Forecasts, GivenUp, Outcomes
from truecast.serve.options import StreamOptions

__all__ = ["LiveStream"]

Group = str | list[str] | None


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
    last_forecast, last_outcome : int or None
        When these came, in milliseconds since 1970.
    """

    def __init__(self, options: StreamOptions) -> None:
        self.options = options
        self.recalibrator = options.recalibrator()
        self.labels = options.labels
        classes = 1 if self.labels is None else len(self.labels)
        self.monitors = [options.monitor(), options.monitor()] if classes == 1 else []
        self.record = Record(classes, 256 if classes == 1 else 64, options.max_unresolved)
        self.course = Course()
        self.seq = 0
        self.last_forecast: int | None = None
        self.last_outcome: int | None = None

    @property
    def binary(self) -> bool:
        """Whether outcomes are 0 and 1."""
        return self.labels is None

    @property
    def rows(self) -> int:
        """Forecasts and outcomes so far."""
        return int(self.record.issued + self.record.rounds)

    def scores(self, rows: list[Any]) -> NDArray[np.float64]:
        """Return scores as an array, or raise InputError."""
        if not self.binary:
            return self.recalibrator._rows(rows)  # type: ignore[no-any-return]
        return _check.scores("score", rows, scale=self.options.scale) + 0.0  # no -0.0

    def outcome(self, given: Any, position: int | None = None) -> int:
        """Return an outcome as a number, or raise InputError."""
        if not self.binary:
            return self.recalibrator._labels.number(given, "outcome", position)  # type: ignore[no-any-return]
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
        names = None if groups is None else [_name(group) for group in groups]
        checked = None if names is None else _check.groups(names, len(scores))
        if events is not None:
            _check.events(events, len(scores))
        said = np.empty_like(scores)
        before = self._probabilities(scores)
        for k in range(len(scores)):
            options: dict[str, Any] = {}
            if checked is not None:
                options["group"] = checked[k]
            if events is not None:
                options["event"] = events[k]
            said[k] = self.recalibrator.issue(scores[k], **options).p
            for monitor, rows in zip(self.monitors, (before, said), strict=False):
                monitor.issue(float(rows[k]), **options)
            self.record.issue(
                at, np.atleast_1d(before[k]).tolist(), np.atleast_1d(said[k]).tolist()
            )
        self.last_forecast = at
        return said

    def awaits(self, ticket: int) -> bool:
        """Whether the outcome of this forecast is awaited."""
        return ticket in self.record.open

    def learn(self, at: int, tickets: list[int], outcomes: list[int]) -> None:
        """Learn outcomes of forecasts that are awaited, each once."""
        for ticket, outcome in zip(tickets, outcomes, strict=True):
            label = outcome if self.labels is None else self.labels[outcome]
            self.recalibrator.resolve(ticket, label)
            for monitor in self.monitors:
                monitor.resolve(ticket, outcome)
            self.record.resolve(ticket, outcome)
        self.last_outcome = at
        self.course.note(at, self)

    def give_up(self, tickets: list[int]) -> None:
        """Await these outcomes no longer."""
        for ticket in tickets:
            self.recalibrator.give_up(ticket)
            for monitor in self.monitors:
                monitor.give_up(ticket)
            self.record.give_up(ticket)

    def older_than(self, at: int) -> list[int]:
        """Return the awaited forecasts that were made before this time."""
        return [ticket for ticket, made in self.record.open.items() if made.at < at]

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
        return flat if self.binary else flat.reshape(-1, len(self.labels or ()))

    def _probabilities(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """What the model said, as probabilities."""
        if self.options.scale != "logit":
            return scores
        if self.binary:
            return 1.0 / (1.0 + np.exp(-np.clip(scores, -700.0, 700.0)))
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)  # type: ignore[no-any-return]


def _name(group: Group) -> Any:
    return tuple(group) if isinstance(group, list) else group
