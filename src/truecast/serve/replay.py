"""From entries to streams: many of them at a time, with the same bits as one by one."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Executor

import numpy as np

from truecast import _check
from truecast.errors import StateError
from truecast.serve.events import Entry, Forecasts, Outcomes, decode
from truecast.serve.stream import LiveStream, Steps, name_of

__all__ = ["Replay"]

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
        Where another thread may help.
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
        self._waiting: list[tuple[Entry, Forecasts | Outcomes]] = []
        self._steps = self._outcomes = 0

    def entries(self, entries: Iterable[Entry]) -> LiveStream:
        """Play entries in their order, and return the stream."""
        for entry in entries:
            self.add(entry)
        self.flush()
        return self.stream

    def add(self, entry: Entry) -> None:
        """Play an entry, now or later."""
        body = decode(entry)
        if not self.stream.binary or not isinstance(body, Forecasts | Outcomes):
            self.flush()
            said = self.stream.apply(entry.seq, entry.at, body)
            if said is not None and isinstance(body, Forecasts):
                self._compare(entry, said.tobytes(), body.said)
            return
        self._waiting.append((entry, body))
        if isinstance(body, Outcomes):
            self._outcomes += len(body.ids)
        self._steps += len(body.ids)
        due = self.stream.course.due
        marked = isinstance(body, Outcomes) and self.stream.record.rounds + self._outcomes >= due
        if marked or self._steps >= MOST_STEPS:
            self.flush()

    def flush(self) -> None:
        """Play what waits."""
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        self._steps = self._outcomes = 0
        stream, last = self.stream, waiting[-1][0]
        said = stream.play(_steps_of(waiting), self.aside)
        at = 0
        for entry, body in waiting:
            rows = len(body.ids)
            if isinstance(body, Forecasts):
                stream.last_forecast = entry.at
                self._compare(entry, said[at : at + rows].tobytes(), body.said)
            else:
                stream.last_outcome = entry.at
            at += rows
        stream.seq = last.seq
        if isinstance(waiting[-1][1], Outcomes):
            stream.course.note(last.at, stream)

    def _compare(self, entry: Entry, said: bytes, given: bytes) -> None:
        if self.check and said != given:
            raise StateError(
                f"entry {entry.seq} of stream {self.name}: replayed forecasts differ from those "
                "that were answered"
            )


def _steps_of(waiting: list[tuple[Entry, Forecasts | Outcomes]]) -> Steps:
    """Return many entries as one sequence of steps."""
    made = [(entry, body) for entry, body in waiting if isinstance(body, Forecasts)]
    came = [body for _, body in waiting if isinstance(body, Outcomes)]
    counts = np.array([len(body.ids) for _, body in waiting])
    kinds = np.array([isinstance(body, Outcomes) for _, body in waiting], np.uint8)
    times = np.array([entry.at for entry, _ in made], np.int64)
    outcomes = np.frombuffer(b"".join(body.outcomes for body in came), "<i4")
    return Steps(
        np.repeat(times, [len(body.ids) for _, body in made]),
        np.frombuffer(b"".join(body.scores for _, body in made), "<f8"),
        _names([body for _, body in made]),
        _events([body for _, body in made]),
        np.frombuffer(b"".join(body.tickets for body in came), "<i8"),
        outcomes.astype(np.uint8),
        np.repeat(kinds, counts),
    )


def _names(made: list[Forecasts]) -> list[object] | None:
    if all(body.groups is None for body in made):
        return None
    names: list[object] = []
    for body in made:
        names += [None] * len(body.ids) if body.groups is None else map(name_of, body.groups)
    return list(_check.groups(names, len(names)))


def _events(made: list[Forecasts]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    if all(body.events is None for body in made):
        return np.empty(0, np.int64)
    events: list[str | None] = []
    for body in made:
        events += [None] * len(body.ids) if body.events is None else body.events
    return _check.events(events, len(events))
