"""Read a journal: is it whole, what is in it, and does replaying it give the same."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from truecast.errors import StateError
from truecast.serve.events import (
    Created,
    Entry,
    Forecasts,
    Head,
    Kind,
    Outcomes,
    chained,
    decode,
    digest_of,
)
from truecast.serve.options import StreamOptions
from truecast.serve.recent import rows_of
from truecast.serve.replay import Replay
from truecast.serve.snapshots import from_snapshot, state_of
from truecast.serve.store import FOREVER, Known, Snapshot, Store, StreamRow
from truecast.serve.stream import LiveStream

__all__ = ["Replayed", "Verified", "checked_entries", "replay", "verify"]

MOST_PROBLEMS = 100  # that are listed
_DAMAGE = TypeError, ValueError, OverflowError, struct.error  # what damaged entries lead to
_AT_ONCE = 5_000  # ids that are looked up at a time

Progress = Callable[[int], None]


@dataclass(slots=True)
class Verified:
    """What `verify` found.

    Attributes
    ----------
    entries, rows : int
        How many there are; forecasts and outcomes in them.
    first, last : int
        The numbers of the first and the last entry.
    erased : int
        Entries whose bodies went with their streams.
    problems : list of str
        What is wrong, in order.
    """

    entries: int = 0
    rows: int = 0
    first: int = 0
    last: int = 0
    erased: int = 0
    problems: list[str] = field(default_factory=list)

    def add(self, problem: str) -> None:
        """Note a problem."""
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(problem)


def checked_entries(store: Store, found: Verified) -> Iterator[Entry]:
    """Yield all entries, and note what is wrong with their numbers, times and checksums."""
    before = store.base()
    for entry in store.entries(before.seq):
        for problem in _problems(before, entry):
            found.add(f"entry {entry.seq}: {problem}")
        found.entries += 1
        found.first = found.first or entry.seq
        found.last = entry.seq
        found.erased += entry.body is None
        yield entry
        before = Head(entry.seq, entry.at, entry.chain)


def _problems(before: Head, entry: Entry) -> Iterator[str]:
    if entry.seq != before.seq + 1:
        yield f"entries {before.seq + 1} to {entry.seq - 1} are missing"
    if entry.at < before.at:
        yield f"its time, {entry.at}, is before that of the entry before, {before.at}"
    if entry.body is not None and digest_of(entry.body) != entry.digest:
        yield "its body is damaged: the digest does not match"
    header = entry.seq, entry.stream, entry.at, entry.kind
    if chained(before.chain, *header, entry.digest) != entry.chain:
        yield "it is damaged, or the entry before: the checksum does not match"


def verify(store: Store, progress: Progress | None = None) -> Verified:
    """Check every entry, every snapshot and every id; change nothing."""
    found = Verified()
    unreadable: tuple[type[Exception], ...] = (*store.errors, *_DAMAGE)
    try:
        for problem in store.broken():
            found.add(f"the database: {problem}")
        live = {row.number: row for row in store.streams()}
        _check_bodies(store, found, live, progress)
        for snapshot in store.snapshots():
            if snapshot.info:  # else its stream is being erased
                _check_snapshot(store, snapshot, live.get(snapshot.stream), found)
    except unreadable as error:
        found.add(f"after entry {found.last}: it cannot be read: {error}")
    return found


def _check_bodies(
    store: Store, found: Verified, live: dict[int, StreamRow], progress: Progress | None
) -> None:
    table, indexed = _Table(store, found), store.indexed()
    for entry in checked_entries(store, found):
        row = live.get(entry.stream)
        if progress is not None:
            progress(entry.seq)
        if entry.body is None:
            if row is not None:
                found.add(f"entry {entry.seq}: its body is gone, but its stream is not deleted")
            continue
        try:
            body = decode(entry)
        except StateError as error:
            found.add(str(error))
            continue
        if isinstance(body, Forecasts | Outcomes):
            found.rows += len(body.ids)
            if row is not None and entry.seq <= indexed:
                table.add(entry, body)
        elif isinstance(body, Created) and row is not None:
            table.begin(entry.stream)
            same = (row.name, row.options) == (body.name, body.options)
            if not same:
                found.add(f"entry {entry.seq}: the list of streams has another name or options")
    table.end(live)
    if indexed > max(found.last, store.base().seq):
        found.add(f"the table of ids is said to go up to entry {indexed}, which is not there")


def _check_snapshot(
    store: Store, snapshot: Snapshot, row: StreamRow | None, found: Verified
) -> None:
    if row is None:
        found.add(f"the snapshot of stream {snapshot.stream}: there is no such stream")
        return
    seq, number = snapshot.seq, snapshot.stream
    if seq > store.base().seq and not any(store.entries(seq - 1, stream=number, until=seq)):
        found.add(f"the snapshot of stream {number}: entry {seq} is not of this stream")
    try:
        from_snapshot(StreamOptions.from_json(row.options), snapshot)
    except Exception as error:  # whatever damage leads to
        found.add(f"the snapshot of stream {snapshot.stream}: {error}")


class _Table:
    """Compares entries with the table of ids, many at a time.

    Ids of forecasts whose entries have gone are compared if their outcomes are here.
    """

    def __init__(self, store: Store, found: Verified) -> None:
        self.store, self.found = store, found
        self.expected: dict[tuple[int, str], tuple[int, Known]] = {}
        self.early: dict[tuple[int, str], int] = {}  # entries of ids whose outcomes must follow
        self.first: dict[int, int] = {}  # by stream, the first ticket whose entry is here
        self.made: Counter[int] = Counter()  # by stream, forecasts in entries

    def begin(self, stream: int) -> None:
        """Note that all entries of a stream are here."""
        self.first[stream] = -FOREVER

    def add(self, entry: Entry, body: Forecasts | Outcomes) -> None:
        """Compare an entry, now or later."""
        if isinstance(body, Forecasts):
            self.first.setdefault(entry.stream, body.first)
            self.made[entry.stream] += len(body.ids)
            for key, known in rows_of(entry.stream, body).items():
                self.expected[key] = entry.seq, known
        else:
            outcomes = np.frombuffer(body.outcomes, "<i4").tolist()
            tickets = np.frombuffer(body.tickets, "<i8").tolist()
            for name, ticket, outcome in zip(body.ids, tickets, outcomes, strict=True):
                nothing = 0, Known(ticket, b"", b"", None)
                self.early.pop((entry.stream, name), None)
                _, known = self.expected.get((entry.stream, name), nothing)
                known = known._replace(outcome=outcome)
                self.expected[entry.stream, name] = entry.seq, known
        if len(self.expected) >= _AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """Compare all that waits."""
        keys: dict[int, list[str]] = {}
        for stream, name in self.expected:
            keys.setdefault(stream, []).append(name)
        known = self.store.lookup(keys) if keys else {}
        for key, (seq, expected) in self.expected.items():
            row = known.get(key)
            if row is None or not _agree(expected, row):
                self._differs(key, seq)
            elif expected.outcome is None and row.outcome is not None:
                self.early[key] = seq
        self.expected.clear()

    def end(self, live: dict[int, StreamRow]) -> None:
        """Compare what is left, and look for rows that no entry has made."""
        self.flush()
        for key, seq in self.early.items():
            self._differs(key, seq)
        for number, first in self.first.items():
            extra = self.store.count_ids(number, first) - self.made[number]
            if extra > 0:
                self.found.add(
                    f"stream {live[number].name}: {extra} rows too many in the table of ids"
                )
        strays = self.store.count_strays()
        if strays:
            self.found.add(f"{strays} rows in the table of ids are of no stream")

    def _differs(self, key: tuple[int, str], seq: int) -> None:
        self.found.add(f"entry {seq}: the table of ids differs for {key[1]!r:.120}")


def _agree(expected: Known, known: Known) -> bool:
    """Whether the table has what entries say; an outcome may have come in a later one."""
    if expected.ticket != known.ticket:
        return False
    if expected.outcome is not None and expected.outcome != known.outcome:
        return False
    row = expected.score, expected.said
    return row == (b"", b"") or row == (known.score, known.said)


@dataclass(frozen=True, slots=True)
class Replayed:
    """What `replay` did to a stream.

    Attributes
    ----------
    name : str
    rounds : int
        Outcomes that were learned again.
    compared : bool
        Whether there was a snapshot to compare with.
    problem : str or None
        What differs, if something does.
    """

    name: str
    rounds: int
    compared: bool
    problem: str | None


def replay(
    store: Store, names: list[str] | None = None, progress: Progress | None = None
) -> Iterator[Replayed]:
    """Build streams anew from their entries, and compare answers and snapshots.

    Every forecast must come out with the bits that were answered, and the state after the
    snapshot's entry must be the snapshot's.
    """
    for row in store.streams():
        if names is None or row.name in names:
            yield _replayed(store, row, progress)


def _replayed(store: Store, row: StreamRow, progress: Progress | None) -> Replayed:
    base = store.base().seq
    first = next(store.entries(base, stream=row.number), None)
    if first is None or first.kind != Kind.CREATED:
        gone = "its first entries are not in the journal any more: they were exported"
        return Replayed(row.name, 0, False, gone)
    stream = LiveStream(StreamOptions.from_json(row.options))
    playing = Replay(stream, row.name, check=True, threads=True, progress=progress)
    snapshot = store.snapshot(row.number)
    compared, problem = False, None
    try:
        if snapshot is not None and snapshot.state:
            playing.entries(store.entries(base, stream=row.number, until=snapshot.seq))
            compared = stream.seq == snapshot.seq
            if compared and not _agrees(stream, snapshot):
                problem = f"the snapshot after entry {snapshot.seq} differs"
        playing.entries(store.entries(max(base, stream.seq), stream=row.number))
    except StateError as error:
        problem = str(error)
    return Replayed(row.name, stream.record.rounds, compared, problem)


def _agrees(stream: LiveStream, snapshot: Snapshot) -> bool:
    return state_of(from_snapshot(stream.options, snapshot)) == state_of(stream)
