"""The state of one key of a stream: a recalibrator, the ids it knows, and what it has counted.

It is saved as bytes. The recalibrator in them is a *snapshot* (`Recalibrator.to_bytes`, or nothing
for a new one) and a *journal* of the calls since. Loading plays the journal again, which gives the
same recalibrator, bit for bit. A short journal is smaller than a snapshot and faster to write, so a
key with few rounds takes few bytes.

The journal carries a checksum of the forecasts that were said. A truecast that would say others is
refused: the certificate is about the forecasts that were said.

Nothing here knows of Spark.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truecast.errors import InputError, StateError, TicketError, VersionError
from truecast.recalibrate import Recalibrator

__all__ = ["Counts", "Events", "KeyState", "Windows", "due_of"]

VERSION = 1
NEVER = (1 << 63) - 1
_JOURNAL = (
    2000  # calls since the snapshot, at most: about then a new one is as small, and as fast to load
)
_MAGIC = b"TCSK"
_HEAD = struct.Struct("<4sBqI")  # magic, version, when the first id is due, length of the snapshot
_BODY = struct.Struct("<7q6I")  # the counts; checksum of the forecasts; lengths
_ISSUE, _ISSUE_GROUPS, _GIVE_UP = 2, 3, 4  # calls; 0 and 1 resolve
_NONE = -1  # no ticket, or no outcome
_KNOWN = "<i8", "<i8", "<i1"  # the columns of what is known: time, ticket and outcome


class Events(NamedTuple):
    """Events of one key, in the order to play them: a list a column.

    A row with a score is a forecast, one with an outcome an outcome. Times are in microseconds,
    `groups` JSON lists.
    """

    ids: Sequence[str]
    times: Sequence[int]
    scores: Sequence[float | None]
    outcomes: Sequence[int | None]
    groups: Sequence[str | None]


class Windows(NamedTuple):
    """How long to wait, in microseconds of event time; `remember` is at most `give_up`."""

    give_up: int  # for the outcome of a forecast, or the forecast of an outcome
    remember: int  # an id whose forecast and outcome have come


@dataclass(slots=True)
class Counts:
    """What became of the events of a key.

    Attributes
    ----------
    forecasts : int
        Answered.
    outcomes : int
        Learned.
    duplicates : int
        Forecasts of an id that was answered before, and outcomes that say the same again.
    contradictions : int
        Outcomes that say the opposite of the first, which stands.
    late : int
        Events that came after their id was forgotten, and outcomes that came after their forecast
        was given up.
    given_up : int
        Forecasts whose outcome did not come in time.
    unmatched : int
        Outcomes whose forecast did not come in time.
    """

    forecasts: int = 0
    outcomes: int = 0
    duplicates: int = 0
    contradictions: int = 0
    late: int = 0
    given_up: int = 0
    unmatched: int = 0

    @property
    def numbers(self) -> list[int]:
        """All of them, in order."""
        return [getattr(self, name) for name in self.__slots__]


@dataclass(slots=True)
class _Journal:
    """The calls since the snapshot, in order, and their arguments."""

    calls: bytearray = field(default_factory=bytearray)
    tickets: list[int] = field(default_factory=list)  # of resolve and give_up
    scores: list[float] = field(default_factory=list)  # of issue
    groups: list[str] = field(default_factory=list)  # of issue with groups
    said: list[float] = field(default_factory=list)  # what issue gave, since the checksum
    checksum: int = 0

    def sealed(self) -> int:
        """The checksum of everything said since the snapshot."""
        self.checksum = zlib.crc32(np.array(self.said, "<f8").tobytes(), self.checksum)
        self.said.clear()
        return self.checksum


class KeyState:
    """A recalibrator, the ids it knows, and what it has counted.

    Parameters
    ----------
    recalibrator
        A new one.
    windows
        How long to wait.
    """

    __slots__ = ("_journal", "_known", "_snapshot", "_windows", "counts", "recalibrator")

    def __init__(self, recalibrator: Recalibrator, windows: Windows) -> None:
        self.recalibrator = recalibrator
        self.counts = Counts()
        self._windows = windows
        self._known: dict[str, tuple[int, int, int]] = {}  # id: its time, ticket and outcome
        self._journal = _Journal()
        self._snapshot = b""

    @property
    def awaited(self) -> int:
        """Forecasts that await an outcome."""
        return sum(ticket >= 0 > outcome for _, ticket, outcome in self._known.values())

    @property
    def held(self) -> int:
        """Outcomes that await their forecast."""
        return sum(ticket < 0 for _, ticket, _ in self._known.values())

    @property
    def due(self) -> int:
        """When the first id will be given up or forgotten."""
        return self._due(*self._columns())

    def _due(self, times: NDArray[Any], tickets: NDArray[Any], outcomes: NDArray[Any]) -> int:
        give_up, remember = self._windows
        settled = (tickets >= 0) & (outcomes >= 0)
        return int((times + np.where(settled, remember, give_up)).min(initial=NEVER))

    def _columns(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """The times, tickets and outcomes of the known ids."""
        table = np.array(list(self._known.values()), "<i8").reshape(-1, 3)
        return table[:, 0], table[:, 1], table[:, 2]

    def expire(self, now: int) -> None:
        """Give up and forget what is due when the watermark is at `now`, oldest first."""
        give_up, remember = self._windows
        due = [
            (time, ticket, outcome, name)
            for name, (time, ticket, outcome) in self._known.items()
            if time + (remember if ticket >= 0 <= outcome else give_up) <= now
        ]
        for _, ticket, outcome, name in sorted(due):
            del self._known[name]
            if ticket < 0:
                self.counts.unmatched += 1
            elif outcome < 0:
                self._give_up(ticket)

    def play(self, events: Events, now: int) -> tuple[list[int], list[float | None]]:
        """Take events; return the rows that are answered, and the forecasts, None if too late.

        Parameters
        ----------
        events
            In order.
        now
            The watermark.
        """
        rows: list[int] = []
        said: list[float | None] = []
        known, counts = self._known, self.counts
        give_up, remember = self._windows
        for row, (name, time, score, outcome, groups) in enumerate(zip(*events, strict=True)):
            found = known.get(name)
            if found is None and time + (give_up if score is None else remember) <= now:
                counts.late += 1
                if score is not None:
                    rows.append(row)
                    said.append(None)
                continue
            if score is not None:
                if found is None or found[1] < 0:
                    rows.append(row)
                    said.append(self._issue(name, time, score, groups))
                    if found is not None:
                        self._learn(name, time, found[2])
                else:
                    counts.duplicates += 1
            if outcome is not None:
                self._learn(name, time, outcome)
        return rows, said

    def _issue(self, name: str, time: int, score: float, groups: str | None) -> float:
        journal = self._journal
        if groups is None:
            ticket = self.recalibrator.issue(score)
            journal.calls.append(_ISSUE)
        else:
            ticket = self.recalibrator.issue(score, group=_names(groups))
            journal.calls.append(_ISSUE_GROUPS)
            journal.groups.append(groups)
        p = ticket.p
        journal.scores.append(score)
        journal.said.append(p)
        self.counts.forecasts += 1
        self._known[name] = time, int(ticket), _NONE
        return p

    def _learn(self, name: str, time: int, outcome: int) -> None:
        """Learn an outcome that is awaited, hold one without a forecast, count a repeated one."""
        first_time, ticket, first = self._known.get(name, (time, _NONE, _NONE))
        if first >= 0:
            if first == outcome:
                self.counts.duplicates += 1
            else:
                self.counts.contradictions += 1
            return
        self._known[name] = first_time, ticket, outcome
        if ticket < 0:
            return
        try:
            self.recalibrator.resolve(ticket, outcome)
        except TicketError:  # more than max_unresolved waited: the recalibrator has given it up
            self.counts.late += 1
            return
        self._journal.calls.append(outcome)
        self._journal.tickets.append(ticket)
        self.counts.outcomes += 1

    def _give_up(self, ticket: int) -> None:
        self.counts.given_up += 1
        try:
            self.recalibrator.give_up(ticket)
        except TicketError:  # the recalibrator has done so before
            return
        self._journal.calls.append(_GIVE_UP)
        self._journal.tickets.append(ticket)

    def to_bytes(self) -> bytes:
        """Save everything."""
        if len(self._journal.calls) > _JOURNAL:
            self._snapshot = self.recalibrator.to_bytes()
            self._journal = _Journal()
        journal, known = self._journal, self._columns()
        parts = [
            _text(list(self._known)),
            b"".join(map(_packed, known, _KNOWN)),
            bytes(journal.calls),
            _packed(journal.tickets, "<i8") + _packed(journal.scores, "<f8"),
            _text(journal.groups),
        ]
        body = _BODY.pack(*self.counts.numbers, journal.sealed(), *map(len, parts)) + b"".join(
            parts
        )
        head = _HEAD.pack(_MAGIC, VERSION, self._due(*known), len(self._snapshot))
        return head + self._snapshot + zlib.compress(body, 1)

    @classmethod
    def from_bytes(cls, data: bytes, config: dict[str, Any], windows: Windows) -> KeyState:
        """Build what `to_bytes` saved.

        Parameters
        ----------
        data
            What it gave.
        config
            The options of the recalibrators of this stream.
        windows
            How long to wait from now on.

        Raises
        ------
        StateError
            If the bytes are corrupted; VersionError if a truecast wrote them that is newer, or
            forecasts differently.
        """
        _, _, _, size = _head(data)
        snapshot = data[_HEAD.size : _HEAD.size + size]
        made = cls(Recalibrator.from_bytes(snapshot) if size else Recalibrator(**config), windows)
        made._snapshot = snapshot
        try:
            made._load(zlib.decompress(data[_HEAD.size + size :]))
        except (zlib.error, struct.error, ValueError, InputError) as error:
            if isinstance(error, StateError):
                raise
            raise StateError(f"the state of a key is corrupted: {error}") from error
        return made

    def _load(self, body: bytes) -> None:
        *numbers, checksum, ids, table, calls, arguments, groups = _BODY.unpack_from(body)
        at = np.cumsum([_BODY.size, ids, table, calls, arguments, groups]).tolist()
        if at[-1] != len(body):
            raise StateError("the state of a key is corrupted: it ends too early or too late")
        parts = [body[start:end] for start, end in pairwise(at)]
        self.counts = Counts(*numbers)
        names = json.loads(parts[0])
        columns = _unpacked(parts[1], *((len(names), kind) for kind in _KNOWN))
        self._known = dict(zip(names, zip(*columns, strict=True), strict=True))
        self._journal.calls = bytearray(parts[2])
        scores = sum(call in (_ISSUE, _ISSUE_GROUPS) for call in parts[2])
        tickets, self._journal.scores = _unpacked(
            parts[3], (calls - scores, "<i8"), (scores, "<f8")
        )
        self._journal.tickets, self._journal.groups = tickets, json.loads(parts[4])
        self._replay(checksum)

    def _replay(self, checksum: int) -> None:
        """Play the journal, and compare what is said with what was said."""
        r, journal = self.recalibrator, self._journal
        tickets, scores, groups = iter(journal.tickets), iter(journal.scores), iter(journal.groups)
        said = journal.said
        for call in journal.calls:
            if call == _ISSUE:
                said.append(r.issue(next(scores)).p)
            elif call == _ISSUE_GROUPS:
                said.append(r.issue(next(scores), group=_names(next(groups))).p)
            elif call == _GIVE_UP:
                r.give_up(next(tickets))
            else:
                r.resolve(next(tickets), call)
        if journal.sealed() != checksum:
            raise VersionError(
                "the truecast or the machine that wrote this state forecasts differently: "
                "continue with that truecast, or start with a new checkpoint"
            )


def due_of(data: bytes) -> int:
    """When the first id of a saved state is due, without loading it."""
    return _head(data)[2]


def _head(data: bytes) -> tuple[bytes, int, int, int]:
    if len(data) < _HEAD.size or not data.startswith(_MAGIC):
        raise StateError("this is not the state of a key of a stream: it does not begin with TCSK")
    head: tuple[bytes, int, int, int] = _HEAD.unpack_from(data)
    if head[1] > VERSION:
        raise VersionError(
            f"the state of this stream was written in version {head[1]}, "
            f"this truecast reads up to {VERSION}: upgrade truecast on every machine of the cluster"
        )
    return head


@lru_cache(4096)
def _names(groups: str) -> tuple[str, ...]:
    return tuple(json.loads(groups))


def _text(names: list[str]) -> bytes:
    return json.dumps(names, separators=(",", ":")).encode()


def _packed(values: Sequence[float] | NDArray[Any], kind: str) -> bytes:
    """A column, laid out to compress: integers as differences, numbers byte by byte."""
    column = np.array(values, kind)
    if kind == "<i8":
        column[1:] -= column[:-1].copy()
    return _planes(column).tobytes()


def _planes(column: NDArray[Any]) -> NDArray[Any]:
    return column.view("u1").reshape(len(column), column.dtype.itemsize).T


def _unpacked(data: bytes, *columns: tuple[int, str]) -> list[list[Any]]:
    """The columns that `_packed` made, of these lengths and kinds."""
    found, at = [], 0
    for count, kind in columns:
        width = np.dtype(kind).itemsize
        planes = np.frombuffer(data, "u1", count * width, at).reshape(width, count)
        column = np.ascontiguousarray(planes.T).view(kind).reshape(count)
        found.append((np.cumsum(column) if kind == "<i8" else column).tolist())
        at += count * width
    return found
