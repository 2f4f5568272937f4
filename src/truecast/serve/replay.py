"""From entries to streams: many of them at a time, with the same bits as one by one."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Executor
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from truecast import _check
from truecast.errors import StateError
from truecast.serve.events import Entry, Forecasts, Kind, decode
from truecast.serve.stream import LiveStream, Steps, name_of

__all__ = ["Replay"]

Waiting = tuple[Entry, Any, int]  # with its body, and how many rows that has

_MANY = (Kind.FORECASTS, Kind.OUTCOMES)  # what can be played many at a time
MOST_STEPS = 50_000  # forecasts and outcomes that are played at a time


class Replay:
    """Plays entries on a stream.

    Forecasts and outcomes wait until there are many, or until a mark of the course is due, or
    another kind of entry comes: marks are made where they were made first.

    Parameters
    ----------
    stream
        To be played on.
    name
        For messages.
    check
        Whether to compare the forecasts with those that the journal says were given.
    aside
        A single thread that may help.
    """

    def __init__(
        self,
        stream: LiveStream,
        name: str,
        *,
        check: bool = False,
        aside: Executor | None = None,
    ) -> None:
        self.stream, self.name, self.check, self.aside = stream, name, check, aside
        self._waiting: list[Waiting] = []
        self._steps = self._outcomes = 0
        self._due = stream.course.due - stream.record.rounds  # outcomes until the next mark

    def entries(self, entries: Iterable[Entry]) -> LiveStream:
        """Play entries in their order, and return the stream."""
        for entry in entries:
            self.add(entry)
        self.flush()
        return self.stream

    def add(self, entry: Entry) -> None:
        """Play an entry, now or later."""
        body: Any = decode(entry)
        if entry.kind not in _MANY or not self.stream.binary:
            self.flush()
            said = self.stream.apply(entry.seq, entry.at, body)
            if self.check and said is not None and said.tobytes() != body.said:
                self._refuse(entry)
            return
        rows = len(body.ids)
        self._waiting.append((entry, body, rows))
        self._steps += rows
        if entry.kind == Kind.OUTCOMES:
            self._outcomes += rows
            if self._outcomes >= self._due:
                self.flush()
                return
        if self._steps >= MOST_STEPS:
            self.flush()

    def flush(self) -> None:
        """Play what waits."""
        waiting, self._waiting = self._waiting, []
        stream = self.stream
        if waiting:
            self._play(waiting)
        self._steps = self._outcomes = 0
        self._due = stream.course.due - stream.record.rounds

    def _play(self, waiting: list[Waiting]) -> None:
        stream, last = self.stream, waiting[-1][0]
        made = [each for each in waiting if each[0].kind == Kind.FORECASTS]
        came = [each for each in waiting if each[0].kind == Kind.OUTCOMES]
        steps = _steps_of(waiting, made, came)
        said = stream.play(steps, self.aside)
        if self.check:
            self._compare(made, said[steps.order == 0])
        if made:
            stream.last_forecast = made[-1][0].at
        if came:
            stream.last_outcome = came[-1][0].at
        stream.seq = last.seq
        if last.kind == Kind.OUTCOMES:
            stream.course.note(last.at, stream)

    def _compare(self, made: list[Waiting], said: NDArray[np.float64]) -> None:
        if said.tobytes() == b"".join([body.said for _, body, _ in made]):
            return
        at = 0
        for entry, body, rows in made:
            if said[at : at + rows].tobytes() != body.said:
                self._refuse(entry)
            at += rows

    def _refuse(self, entry: Entry) -> NoReturn:
        raise StateError(
            f"entry {entry.seq} of stream {self.name}: replayed forecasts differ from those that "
            "were answered"
        )


def _steps_of(waiting: list[Waiting], made: list[Waiting], came: list[Waiting]) -> Steps:
    """Return many entries as one sequence of steps."""
    kinds = np.array([entry.kind == Kind.OUTCOMES for entry, _, _ in waiting], np.uint8)
    times = np.array([entry.at for entry, _, _ in made], np.int64)
    outcomes = np.frombuffer(b"".join([body.outcomes for _, body, _ in came]), "<i4")
    bodies: list[Forecasts] = [body for _, body, _ in made]
    return Steps(
        np.repeat(times, [rows for _, _, rows in made]),
        np.frombuffer(b"".join([body.scores for body in bodies]), "<f8"),
        _names(bodies),
        _events(bodies),
        np.frombuffer(b"".join([body.tickets for _, body, _ in came]), "<i8"),
        outcomes.astype(np.uint8),
        np.repeat(kinds, [rows for _, _, rows in waiting]),
    )


def _names(made: list[Forecasts]) -> list[object] | None:
    if all(body.groups is None for body in made):
        return None
    names: list[object] = []
    for body in made:
        names += [None] * len(body.ids) if body.groups is None else map(name_of, body.groups)
    return list(_check.groups(names, len(names)))


def _events(made: list[Forecasts]) -> NDArray[np.int64]:
    if all(body.events is None for body in made):
        return np.empty(0, np.int64)
    events: list[str | None] = []
    for body in made:
        events += [None] * len(body.ids) if body.events is None else body.events
    return _check.events(events, len(events))
