"""What is asked of the writer, one class for each question.

A request is checked before it changes anything: it raises InputError or a ServiceError, or happens
as a whole.
"""

from __future__ import annotations

import os
import re
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, ClassVar

import numpy as np

from truecast.errors import ConflictError, InputError
from truecast.serve.events import Body, Created, Deleted, Forecasts, GivenUp, Head, Outcomes, encode
from truecast.serve.options import StreamOptions
from truecast.serve.rows import LONGEST_ID, Forecast, ForecastRow, OutcomeAnswer, OutcomeRow
from truecast.serve.shelf import Shelf
from truecast.serve.store import Batch, Key, Known
from truecast.serve.stream import LiveStream
from truecast.serve.view import StreamInfo

__all__ = [
    "Create",
    "Delete",
    "Erase",
    "Forecasting",
    "GiveUp",
    "Learning",
    "Look",
    "Request",
    "Work",
]


_LONE = re.compile("[\ud800-\udfff]")  # half of a character
_DOUBLE = struct.Struct("<d")


class Work:
    """What becomes one transaction: requests add to it, one after the other.

    Attributes
    ----------
    known : dict
        Of ids that requests name: as it was before, and as they left it.
    fresh : dict
        The part of it that they made or changed.
    """

    def __init__(self, shelf: Shelf, head: Head, known: dict[Key, Known]) -> None:
        self.shelf, self.head, self.known = shelf, head, known
        self.fresh: dict[Key, Known] = {}
        self.batch = Batch()
        self.touched: set[str] = set()
        self.closing: list[str] = []  # streams that leave memory once it is durable
        self.now = max(time.time_ns() // 1_000_000, head.at)

    def write(self, name: str, body: Body) -> int:
        """Add an entry of a stream, return its number."""
        number = self.shelf.listed[name].number
        entry, self.head = encode(self.head, number, self.now, body)
        self.batch.entries.append(entry)
        return entry.seq

    def note(self, fresh: dict[Key, Known]) -> None:
        """Remember what ids have become."""
        self.known.update(fresh)
        self.fresh.update(fresh)


class Request:
    """A question, and what to do with the answer."""

    name: str
    reads: ClassVar[bool] = False  # whether it comes before all that write, of what is durable

    def keys(self) -> Sequence[str]:
        """Return the ids to look up."""
        return ()

    def do(self, work: Work) -> Any:
        """Do it, and return the answer; or raise ServiceError or InputError."""
        raise NotImplementedError


@dataclass(slots=True)
class Look(Request):
    """Read a stream as it is."""

    reads: ClassVar[bool] = True
    name: str
    read: Callable[[Shelf, str, LiveStream], Any]

    def do(self, work: Work) -> Any:
        """See `Request`."""
        stream = work.shelf.open(work.shelf.find(self.name).name)
        return self.read(work.shelf, self.name, stream)


@dataclass(slots=True)
class Create(Request):
    """Make a stream."""

    name: str
    options: StreamOptions

    def do(self, work: Work) -> StreamInfo:
        """See `Request`."""
        shelf = work.shelf
        listed = shelf.listed.get(self.name)
        if listed is not None:
            if listed.options != self.options:
                raise ConflictError(f"stream {self.name!r} exists with other options")
            return listed.info
        number = shelf.next_number
        stream = shelf.add(number, self.name, self.options, work.now)
        shelf.next_number += 1
        work.touched.add(self.name)
        options = self.options.to_json()
        stream.seq = work.write(self.name, Created(self.name, options))
        work.batch.created.append((number, self.name, options, work.now))
        return shelf.listed[self.name].info


@dataclass(slots=True)
class Delete(Request):
    """Remove a stream; `Erase` removes what is known of it."""

    name: str
    confirm: str

    def do(self, work: Work) -> None:
        """See `Request`."""
        listed = work.shelf.find(self.name)
        if self.confirm != self.name:
            raise InputError("confirm", "must be the name of the stream", self.confirm)
        work.write(self.name, Deleted(self.name))
        work.batch.deleted.append(listed.number)
        work.touched.add(self.name)
        work.shelf.remove(self.name)


@dataclass(slots=True)
class Erase(Request):
    """Remove some of what deleted streams have left; of their entries the checksums stay."""

    reads: ClassVar[bool] = True
    name: str = ""

    def do(self, work: Work) -> bool:
        """See `Request`; returns whether there may be more."""
        return work.shelf.store.erase()


@dataclass(slots=True)
class Forecasting(Request):
    """Answer scores."""

    name: str
    rows: list[ForecastRow]

    def keys(self) -> Sequence[str]:
        """See `Request`."""
        return [row.id for row in self.rows if row.id is not None]

    def do(self, work: Work) -> list[Forecast]:
        """See `Request`."""
        listed = work.shelf.find(self.name)
        stream = _opened(work, self.name)
        rows = self.rows
        if len(rows) == 1 and stream.binary and (listed.number, rows[0].id) not in work.known:
            return [self._single(work, stream, listed.number)]
        scores = stream.scores([row.score for row in rows])
        given = _rows(scores.tobytes(), 8 * scores.size // len(rows))
        answers: list[Forecast | None] = [None] * len(rows)
        fresh: list[int] = []
        ids: list[str] = []
        seen: dict[str, int] = {}
        for k, row in enumerate(rows):
            if row.id is None:
                ids.append(_new_id(work.now))
                fresh.append(k)
                continue
            known = work.known.get((listed.number, row.id))
            if known is None and row.id not in seen:
                seen[row.id] = k
                ids.append(row.id)
                fresh.append(k)
                continue
            before = given[seen[row.id]] if known is None else known.score
            if before != given[k]:
                raise ConflictError(
                    f"id {row.id!r:.120} at position {k} was forecast with another score: "
                    "use a new id, or the score of before"
                )
            if known is not None:
                answers[k] = Forecast(row.id, _plain(stream, known.said), True)
        if fresh:
            said = self._issue(work, stream, listed.number, scores, fresh, ids)
            for place, k in enumerate(fresh):
                answers[k] = Forecast(ids[place], said[place])
        for k, row in enumerate(rows):
            if answers[k] is None:  # the same id twice in this request
                first = answers[seen[row.id or ""]]
                answers[k] = Forecast(row.id or "", first.p if first else 0.0, True)
        return [answer for answer in answers if answer is not None]

    def _single(self, work: Work, stream: LiveStream, number: int) -> Forecast:
        """Answer one row with a new id: most requests are like this."""
        row = self.rows[0]
        groups, events, times = _alone(row.groups), _alone(row.event), _alone(row.time)
        first = stream.record.issued
        p = stream.forecast_one(work.now, row.score, groups, events)
        work.touched.add(self.name)
        given: Any = row.score
        score, said = _DOUBLE.pack(given + 0.0), _DOUBLE.pack(p)  # no -0.0
        name = _new_id(work.now) if row.id is None else row.id
        body = Forecasts(first, [name], score, said, groups, events, times)
        stream.seq = work.write(self.name, body)
        key = number, name
        work.fresh[key] = work.known[key] = Known(first, score, said, None)
        return Forecast(name, p)

    def _issue(
        self,
        work: Work,
        stream: LiveStream,
        number: int,
        scores: Any,
        fresh: list[int],
        ids: list[str],
    ) -> list[Any]:
        rows = self.rows
        if len(fresh) < len(rows):
            rows, scores = [rows[k] for k in fresh], scores[fresh]
        groups = _column([row.groups for row in rows])
        events = _column([row.event for row in rows])
        times = _column([row.time for row in rows])
        first = stream.record.issued
        said = stream.forecast(work.now, scores, groups, events)
        work.touched.add(self.name)
        given, answered = scores.tobytes(), said.tobytes()
        body = Forecasts(first, ids, given, answered, groups, events, times)
        stream.seq = work.write(self.name, body)
        width = len(given) // len(rows)
        tickets = range(first, first + len(ids))
        known = map(Known, tickets, _rows(given, width), _rows(answered, width), repeat(None))
        work.note(dict(zip([(number, name) for name in ids], known, strict=True)))
        return said.tolist()  # type: ignore[no-any-return]


@dataclass(slots=True)
class Learning(Request):
    """Learn outcomes."""

    name: str
    rows: list[OutcomeRow]

    def keys(self) -> Sequence[str]:
        """See `Request`."""
        return [row.id for row in self.rows]

    def do(self, work: Work) -> list[OutcomeAnswer]:
        """See `Request`."""
        number = work.shelf.find(self.name).number
        stream = _opened(work, self.name)
        outcomes = [stream.outcome(row.outcome, k) for k, row in enumerate(self.rows)]
        answers: list[OutcomeAnswer] = []
        ids: list[str] = []
        tickets: list[int] = []
        learned: list[int] = []
        for row, outcome in zip(self.rows, outcomes, strict=True):
            known = work.known.get((number, row.id))
            if known is None:
                answers.append(OutcomeAnswer(row.id, "unknown"))
                continue
            p = _plain(stream, known.said)
            if known.outcome is not None:
                same = known.outcome == outcome
                answers.append(OutcomeAnswer(row.id, "duplicate" if same else "contradiction", p))
            elif not stream.record.awaits(known.ticket):
                answers.append(OutcomeAnswer(row.id, "given_up", p))
            else:
                answers.append(OutcomeAnswer(row.id, "learned", p))
                ids.append(row.id)
                tickets.append(known.ticket)
                learned.append(outcome)
                key = number, row.id
                work.fresh[key] = work.known[key] = Known(*known[:3], outcome)
        if ids:
            self._learn(work, stream, ids, tickets, learned)
        return answers

    def _learn(
        self,
        work: Work,
        stream: LiveStream,
        ids: list[str],
        tickets: list[int],
        outcomes: list[int],
    ) -> None:
        work.touched.add(self.name)
        stream.learn(work.now, tickets, outcomes)
        body = Outcomes(
            ids,
            struct.pack(f"<{len(ids)}q", *tickets),
            struct.pack(f"<{len(ids)}i", *outcomes),
        )
        stream.seq = work.write(self.name, body)


@dataclass(slots=True)
class GiveUp(Request):
    """Stop waiting for outcomes: of these ids, or of forecasts older than a number of seconds."""

    name: str
    ids: list[str] | None
    older_than: float | None

    def keys(self) -> Sequence[str]:
        """See `Request`."""
        return [name for name in self.ids or () if _is_id(name)]

    def do(self, work: Work) -> int:
        """See `Request`."""
        number = work.shelf.find(self.name).number
        stream = work.shelf.open(self.name)
        if self.older_than is not None:
            tickets = stream.record.older_than(work.now - int(1_000 * self.older_than))
        else:
            known = [work.known.get((number, name)) for name in self.ids or ()]
            tickets = sorted({each.ticket for each in known if each is not None})
            tickets = [ticket for ticket in tickets if stream.record.awaits(ticket)]
        return _give_up(work, self.name, stream, tickets)


def _opened(work: Work, name: str) -> LiveStream:
    """Return a stream that awaits nothing older than its options allow."""
    stream = work.shelf.open(name)
    seconds, oldest = stream.options.give_up_after, stream.record.oldest
    if seconds is not None and oldest is not None:
        limit = work.now - int(1_000 * seconds)
        if oldest < limit:
            _give_up(work, name, stream, stream.record.older_than(limit))
    return stream


def _give_up(work: Work, name: str, stream: LiveStream, tickets: list[int]) -> int:
    if tickets:
        work.touched.add(name)
        stream.give_up(tickets)
        body = GivenUp(np.array(tickets, "<i8").tobytes())
        stream.seq = work.write(name, body)
    return len(tickets)


def checked_ids(rows: Sequence[ForecastRow | OutcomeRow]) -> None:
    """Raise InputError for an id that cannot be kept."""
    for k, row in enumerate(rows):
        if row.id is not None and not _is_id(row.id):
            rule = f"must be 1 to {LONGEST_ID} characters of Unicode, without a null character"
            raise InputError("id", rule, row.id, k)


def _is_id(name: str) -> bool:
    if name.isascii():
        return 0 < len(name) <= LONGEST_ID and "\0" not in name
    return len(name) <= LONGEST_ID and "\0" not in name and not _LONE.search(name)


def _new_id(now: int) -> str:
    """Sortable by time, and not to be guessed."""
    return f"{now:012x}{os.urandom(10).hex()}"


def _rows(packed: bytes, width: int) -> list[bytes]:
    """Return the rows of packed numbers."""
    return [packed[at : at + width] for at in range(0, len(packed), width)]


def _plain(stream: LiveStream, said: bytes) -> Any:
    """Return a forecast as numbers."""
    if stream.binary:
        return _DOUBLE.unpack(said)[0]
    return np.frombuffer(said, "<f8").tolist()


def _alone(value: Any) -> list[Any] | None:
    return None if value is None else [value]


def _column(values: list[Any]) -> list[Any] | None:
    return None if all(value is None for value in values) else values
