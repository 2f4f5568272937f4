"""From entries to streams: many of them at a time, with the same bits as one by one.

Two other threads may help: one reads the next entries; in the other, monitors and the record of a
stream follow its recalibrator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import compress, groupby, islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truecast import _check
from truecast._threads import Aside
from truecast.errors import StateError
from truecast.serve.course import Course, Later, mark_of
from truecast.serve.events import Entry, Forecasts, Kind, decode, decode_many
from truecast.serve.stream import NO_NUMBERS, LiveStream, Steps, name_of

__all__ = ["Replay"]

_MANY = {Kind.FORECASTS, Kind.OUTCOMES}  # what can be played many at a time
FEWEST, MOST = 16, 512  # entries that are read at a time
_ROWS = 50_000  # in them, about
_WINDOW = 8_192, 1_000_000  # entries and rows that are played together, about
_PART = 8_192  # steps that two threads work on, one after the other


class Window(NamedTuple):
    """Entries of forecasts and outcomes in their order; all but ids."""

    seq: NDArray[np.int64]
    at: NDArray[np.int64]
    rows: NDArray[np.int64]  # of each entry
    came: NDArray[np.bool_]  # whether it has outcomes
    scores: bytes
    answers: bytes
    tickets: bytes
    outcomes: bytes
    groups: list[Any] | None
    events: list[Any] | None

    @property
    def size(self) -> int:
        """How many rows it has."""
        return int(self.rows.sum())

    @classmethod
    def of(cls, entries: list[Entry]) -> Window:
        """Read entries, or raise StateError."""
        seq, _, at, kinds, _, _, bodies = zip(*entries, strict=True)
        came = np.array(kinds) == Kind.OUTCOMES
        forecasts, outcomes = (
            decode_many(kind, [*compress(bodies, chosen.tolist())])
            for kind, chosen in ((Kind.FORECASTS, ~came), (Kind.OUTCOMES, came))
        )
        each = [len(body.ids) for body in forecasts]
        rows = np.empty(len(entries), np.int64)
        rows[~came] = each
        rows[came] = [len(body.ids) for body in outcomes]
        return cls(
            np.array(seq),
            np.array(at),
            rows,
            came,
            b"".join([body.scores for body in forecasts]),
            b"".join([body.said for body in forecasts]),
            b"".join([body.tickets for body in outcomes]),
            b"".join([body.outcomes for body in outcomes]),
            _column([body.groups for body in forecasts], each),
            _column([body.events for body in forecasts], each),
        )

    @classmethod
    def joined(cls, parts: list[Window]) -> Window:
        """Return windows that follow each other as one."""
        if len(parts) == 1:
            return parts[0]
        *numbers, scores, answers, tickets, outcomes, groups, events = zip(*parts, strict=True)
        each = [len(part.scores) // 8 for part in parts]
        columns: list[Any] = [np.concatenate(column) for column in numbers]
        columns += [b"".join(column) for column in (scores, answers, tickets, outcomes)]
        return cls._make([*columns, _column(groups, each), _column(events, each)])

    def steps(self) -> Steps:
        """Return them as one sequence of steps, for a stream without classes."""
        rounds = len(self.scores) // 8
        names, about = None, NO_NUMBERS
        if self.groups is not None:
            names = _check.groups([name_of(group) for group in self.groups], rounds)
        if self.events is not None:
            about = _check.events(self.events, rounds)
        made = ~self.came
        return Steps(
            np.repeat(self.at[made], self.rows[made]),
            np.frombuffer(self.scores, "<f8"),
            names,
            about,
            np.frombuffer(self.tickets, "<i8"),
            np.frombuffer(self.outcomes, "<i4").astype(np.uint8),
            np.repeat(self.came.view(np.uint8), self.rows),
        )


class Replay:
    """Plays entries on a stream.

    Parameters
    ----------
    stream
        To be played on. If something is raised, it is of no use any more.
    name
        For messages.
    check
        Whether to compare the forecasts with those that the journal says were given.
    threads
        Whether other threads may help.
    progress
        Called with the number of the last entry that was played, now and then.
    """

    def __init__(
        self,
        stream: LiveStream,
        name: str,
        *,
        check: bool = False,
        threads: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        self.stream, self.name = stream, name
        self.check, self.threads, self.progress = check, threads, progress

    def entries(self, entries: Iterable[Entry]) -> LiveStream:
        """Play entries in their order, and return the stream."""
        read = _read(iter(entries), together=self.stream.binary)
        with Aside(wanted=self.threads) as reading, Aside(wanted=self.threads) as watching:
            for each in reading.ahead(read):
                if isinstance(each, Window):
                    self._play(each, watching)
                else:
                    watching.wait()
                    self._apply(each)
                if self.progress is not None:
                    self.progress(self.stream.seq)
            watching.wait()
        return self.stream

    def _apply(self, entry: Entry) -> None:
        body = decode(entry)
        said = self.stream.apply(entry.seq, entry.at, body)
        if self.check and isinstance(body, Forecasts) and said is not None:
            self._compare(np.array([entry.seq]), np.array([len(said)]), said, body.said)

    def _play(self, window: Window, watching: Aside) -> None:
        """Play steps from mark to mark; of these, only those that stay in the course are made."""
        stream, steps = self.stream, window.steps()
        course, due = self._foreseen(window)
        cuts = sorted({*due, *range(_PART, len(steps.order), _PART), len(steps.order)})
        told = []
        for end, part in zip(cuts, steps.parts(cuts), strict=True):
            told.append(stream.recalibrate(part))
            watching.do(partial(stream.watch, part, told[-1]))
            if end in due:
                watching.wait()
                number, at = due[end]
                course.marks[number] = mark_of(at, stream)
        stream.course = course
        self._note(window)
        if self.check:
            made = ~window.came
            said = np.concatenate(told)[steps.order == 0]
            self._compare(window.seq[made], window.rows[made], said, window.answers)

    def _foreseen(self, window: Window) -> tuple[Course, dict[int, tuple[int, int]]]:
        """Return the course after a window, and after which steps its new marks must be made.

        With each of these go the mark's place in the course, and its time.
        """
        places = np.flatnonzero(window.came)
        rounds = self.stream.recalibrator.rounds + np.cumsum(window.rows[places])
        course, ends = self.stream.course.foreseen(rounds), np.cumsum(window.rows)
        due: dict[int, tuple[int, int]] = {}
        for number, mark in enumerate(course.marks):
            if isinstance(mark, Later):
                place = places[mark.place]
                due[int(ends[place])] = number, int(window.at[place])
        return course, due

    def _note(self, window: Window) -> None:
        stream = self.stream
        made, came = window.at[~window.came], window.at[window.came]
        if len(made):
            stream.last_forecast = int(made[-1])
        if len(came):
            stream.last_outcome = int(came[-1])
        stream.seq = int(window.seq[-1])

    def _compare(
        self,
        made: NDArray[np.int64],
        rows: NDArray[np.int64],
        said: NDArray[np.float64],
        answers: bytes,
    ) -> None:
        packed = said.tobytes()
        if packed == answers:
            return
        width = len(packed) // len(said)
        for seq, end in zip(made.tolist(), (width * np.cumsum(rows)).tolist(), strict=True):
            if packed[:end] != answers[:end]:
                raise StateError(
                    f"entry {seq} of stream {self.name}: replayed forecasts differ from those "
                    "that were answered"
                )


def _read(entries: Iterator[Entry], *, together: bool) -> Iterator[Window | Entry]:
    """Yield entries: many `together` where that is the same as one by one."""
    waiting: list[Window] = []
    entries_left, rows_left = _WINDOW
    for each in _read_some(entries, together=together):
        if isinstance(each, Window):
            waiting.append(each)
            entries_left -= len(each.rows)
            rows_left -= each.size
            if min(entries_left, rows_left) > 0:
                continue
        if waiting:
            yield Window.joined(waiting)
            waiting, (entries_left, rows_left) = [], _WINDOW
        if isinstance(each, Entry):
            yield each
    if waiting:
        yield Window.joined(waiting)


def _read_some(entries: Iterator[Entry], *, together: bool) -> Iterator[Window | Entry]:
    """Yield the same, in as small windows as they are read."""
    size = FEWEST
    while some := [*islice(entries, size)]:
        rows = 0
        for many, run in _runs(some):
            window = _window(run) if many and together else None
            if window is None:
                yield from run
            else:
                yield window
                rows += window.size
        size = min(max(_ROWS * len(some) // max(rows, 1), FEWEST), MOST)


def _runs(entries: list[Entry]) -> Iterator[tuple[bool, list[Entry]]]:
    """Yield those that follow each other and may be played together, and those between them."""
    if {entry.kind for entry in entries} <= _MANY:
        yield True, entries
        return
    for many, run in groupby(entries, lambda entry: entry.kind in _MANY):
        yield many, [*run]


def _window(entries: list[Entry]) -> Window | None:
    """Return entries as a window; None if one cannot be read: one by one, it will be named."""
    try:
        return Window.of(entries)
    except StateError:
        return None


def _column(values: Sequence[list[Any] | None], rows: list[int]) -> list[Any] | None:
    """Return what rows have of something that may be missing; None if it always is."""
    if all(value is None for value in values):
        return None
    column: list[Any] = []
    for value, count in zip(values, rows, strict=True):
        column += [None] * count if value is None else value
    return column
