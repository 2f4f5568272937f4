"""What the service needs of a database, and what it writes in one transaction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from truecast.errors import TruecastError
from truecast.serve.events import Entry, Head

__all__ = [
    "COLUMNS",
    "FOREVER",
    "SCHEMA",
    "Batch",
    "Key",
    "Known",
    "LockedError",
    "Snapshot",
    "Store",
    "StreamRow",
    "slices",
]

SCHEMA = 2
COLUMNS = "seq, stream, at, kind, digest, chain, body"  # of entries
_SLICE = 2_000  # rows of ids in a statement
ERASED = 5_000, 500  # ids and entries of a deleted stream, in a transaction
FOREVER = 1 << 62  # beyond all entries

# Statements for both databases: ? is a value, and $ begins the name of a table.
_STREAMS = """
SELECT number, name, options, created, coalesce(s.seq, 0), s.info,
    s.state IS NULL OR length(s.state) = 0,
    (SELECT count(*) FROM $entries e WHERE e.stream = number AND e.seq > coalesce(s.seq, 0))
FROM $streams LEFT JOIN $snapshots s ON s.stream = number ORDER BY number
"""
_STRAYS = """
SELECT count(*) FROM $ids WHERE stream NOT IN (SELECT number FROM $streams)
    AND stream NOT IN (SELECT stream FROM $snapshots)
"""
_SAVE = """
INSERT INTO $snapshots VALUES (?, ?, ?, ?) ON CONFLICT (stream)
    DO UPDATE SET seq = excluded.seq, state = excluded.state, info = excluded.info
"""
_ERASING = """
SELECT stream, seq FROM $snapshots WHERE stream NOT IN (SELECT number FROM $streams) LIMIT 1
"""
_ERASE_IDS = """
DELETE FROM $ids WHERE stream = ? AND id IN (SELECT id FROM $ids WHERE stream = ? LIMIT ?)
"""
_ERASE_UNTIL = """
SELECT max(seq) FROM
    (SELECT seq FROM $entries WHERE stream = ? AND seq > ? ORDER BY seq LIMIT ?) upcoming
"""
_TOO_MUCH = """
SELECT max(seq) FROM (
    SELECT seq, sum(coalesce(length(body), 0) + 100) OVER (ORDER BY seq DESC) AS total FROM $entries
) sums WHERE total > ?
"""

Row = TypeVar("Row")

Key = tuple[int, str]  # the number of a stream, and an id in it


class LockedError(TruecastError):
    """Another process writes to this database."""


class Known(NamedTuple):
    """What is known of an id."""

    ticket: int
    score: bytes
    said: bytes
    outcome: int | None


class Snapshot(NamedTuple):
    """The state of a stream after the entry `seq`."""

    stream: int
    seq: int
    state: bytes  # empty if it has so few entries that they are replayed instead
    info: bytes  # what a list of streams shows, as JSON; nothing if the stream is being erased


class StreamRow(NamedTuple):
    """A stream as the database lists it."""

    number: int
    name: str
    options: bytes
    created: int
    seq: int  # of its snapshot, 0 if there is none
    info: bytes | None
    brief: bool  # whether its snapshot has no state
    behind: int  # entries after its snapshot


def slices(rows: list[Row]) -> Iterator[list[Row]]:
    """Yield rows of the table of ids, few enough for one statement: some have many classes."""
    for start in range(0, len(rows), _SLICE):
        yield rows[start : start + _SLICE]


@dataclass(slots=True)
class Batch:
    """All that one transaction writes.

    Most transactions only append entries. The table of ids follows now and then, in bulk: `ids` is
    then all that entries up to `indexed` say and the table does not have yet.
    """

    entries: list[Entry] = field(default_factory=list)
    ids: dict[Key, Known] = field(default_factory=dict)
    indexed: int = 0  # 0 leaves the table as it is
    created: list[tuple[int, str, bytes, int]] = field(default_factory=list)
    deleted: list[int] = field(default_factory=list)
    snapshots: list[Snapshot] = field(default_factory=list)

    def lasting(self) -> list[tuple[int, str, bytes, int]]:
        """Return the streams that were created and not deleted again."""
        return [created for created in self.created if created[0] not in self.deleted]

    @property
    def only_entries(self) -> bool:
        """Whether all that it does is to append to the journal."""
        return bool(self.entries) and not (
            self.indexed or self.created or self.deleted or self.snapshots
        )

    def __bool__(self) -> bool:
        return bool(self.entries or self.snapshots or self.indexed)


class Store(ABC):
    """A database. All calls come from one thread, the writer's.

    Errors of the database are raised as they are; `service` makes `Unavailable` of them.
    """

    errors: tuple[type[Exception], ...]  #: what the database raises
    epoch: int = 0  #: how many processes have written here, one after the other

    @abstractmethod
    def acquire(self, *, wait: bool) -> None:
        """Become the only writer, or raise LockedError; makes the tables if there are none."""

    @abstractmethod
    def read_only(self) -> None:
        """Connect to read, beside a process that writes: all reads are of one moment."""

    @abstractmethod
    def reopen(self) -> None:
        """Connect anew after an error; raise LockedError if another process writes by now."""

    @abstractmethod
    def close(self) -> None:
        """Let others write."""

    @contextmanager
    def _closed_on_error(self) -> Iterator[None]:
        """A connection that is of no use holds no lock."""
        try:
            yield
        except BaseException:
            self.close()
            raise

    @abstractmethod
    def _do(self, query: str, values: Sequence[Any] = ()) -> Any:
        """Run a statement for both databases, and return its cursor."""

    @abstractmethod
    def _ours(self) -> AbstractContextManager[None]:
        """A transaction, of all or nothing; LockedError if another process writes by now."""

    @abstractmethod
    def _append(self, entries: list[Entry]) -> None:
        """Write entries."""

    @abstractmethod
    def _save_ids(self, ids: Mapping[Key, Known]) -> None:
        """Write what is known of ids."""

    @abstractmethod
    def _forget_ids(self, stream: int, names: Sequence[str]) -> None:
        """Remove ids of a stream."""

    def _one(self, query: str, values: Sequence[Any] = ()) -> Any:
        """Return the row that a statement must have."""
        row = self._do(query, values).fetchone()
        if row is None:
            raise self.errors[0](f"there is no answer to {query}")
        return row

    def head(self) -> Head:
        """Return the end of the journal."""
        query = "SELECT seq, at, chain FROM $entries ORDER BY seq DESC LIMIT 1"
        row = self._do(query).fetchone()
        return Head(*row) if row else self.base()

    def base(self) -> Head:
        """Return where the journal begins: the last entry that retention has removed."""
        return Head(*self._one("SELECT seq, at, chain FROM $meta"))

    def streams(self) -> list[StreamRow]:
        """Return all streams that are not deleted."""
        return [StreamRow(*row) for row in self._do(_STREAMS)]

    def last_number(self) -> int:
        """Return the highest number that a stream ever had."""
        return int(self._one("SELECT numbers FROM $meta")[0])

    def indexed(self) -> int:
        """Return the entry up to which the table of ids is what entries say.

        A database that was not upgraded yet has all ids in the table.
        """
        if self._one("SELECT schema FROM $meta")[0] == 1:
            return self.head().seq
        return int(self._one("SELECT indexed FROM $meta")[0])

    @abstractmethod
    def lookup(self, keys: Mapping[int, Sequence[str]]) -> dict[Key, Known]:
        """Return what the table has of ids, by the number of their stream."""

    def count_ids(self, stream: int, first: int) -> int:
        """Return how many ids a stream has, of tickets from `first` on."""
        query = "SELECT count(*) FROM $ids WHERE stream = ? AND ticket >= ?"
        return int(self._one(query, (stream, first))[0])

    def count_strays(self) -> int:
        """Return how many ids are of no stream, not even of one that is being erased."""
        return int(self._one(_STRAYS)[0])

    def unresolved_ids(self, stream: int, before: int) -> Iterator[tuple[str, int]]:
        """Return ids without an outcome, and their tickets: those of tickets below `before`."""
        query = "SELECT id, ticket FROM $ids WHERE stream = ? AND ticket < ? AND outcome IS NULL"
        return iter(self._do(query, (stream, before)))

    def commit(self, batch: Batch) -> None:
        """Write all of it durably, or nothing.

        Of a stream that is deleted, a snapshot without figures stays until all else is erased.
        """
        with self._ours():
            for stream in batch.deleted:  # first: a new one may have the name
                self._do("DELETE FROM $streams WHERE number = ?", (stream,))
            for created in batch.lasting():
                self._do("INSERT INTO $streams VALUES (?, ?, ?, ?)", created)
            for number, *_ in batch.created[-1:]:
                self._do("UPDATE $meta SET numbers = ?", (number,))
            if batch.entries:
                self._append(batch.entries)
            if batch.indexed:
                self._save_ids(batch.ids)
                self._do("UPDATE $meta SET indexed = ?", (batch.indexed,))
            left = [Snapshot(stream, 0, b"", b"") for stream in batch.deleted]
            for snapshot in (*batch.snapshots, *left):
                self._do(_SAVE, snapshot)

    def erase(self) -> bool:
        """Remove some ids of a deleted stream, or the bodies of some of its entries.

        They are so few that others need not wait. False if there is nothing left to remove. The
        snapshot says up to which entry it has come.
        """
        with self._ours():
            found = self._do(_ERASING).fetchone()
            if found is None:
                return False
            stream, after = found
            ids, entries = ERASED
            if self._do("SELECT 1 FROM $ids WHERE stream = ? LIMIT 1", (stream,)).fetchone():
                self._do(_ERASE_IDS, (stream, stream, ids))
                return True
            last = self._one(_ERASE_UNTIL, (stream, after, entries))[0]
            if last is None:
                self._do("DELETE FROM $snapshots WHERE stream = ?", (stream,))
            else:
                bodies = "UPDATE $entries SET body = NULL WHERE stream = ? AND seq > ? AND seq <= ?"
                self._do(bodies, (stream, after, last))
                self._do("UPDATE $snapshots SET seq = ? WHERE stream = ?", (last, stream))
        return True

    def snapshot(self, stream: int) -> Snapshot | None:
        """Return the state of a stream as it was last saved."""
        row = self._do("SELECT * FROM $snapshots WHERE stream = ?", (stream,)).fetchone()
        return Snapshot(*row) if row else None

    @abstractmethod
    def entries(
        self, after: int, *, stream: int | None = None, until: int = FOREVER
    ) -> Iterator[Entry]:
        """Return entries in order: of one stream, or of all."""

    def oldest(self, stream: int) -> int | None:
        """Return the number of a stream's first entry that is still here."""
        seq: int | None = self._one("SELECT min(seq) FROM $entries WHERE stream = ?", (stream,))[0]
        return seq

    def snapshots(self) -> Iterator[Snapshot]:
        """Return the saved states of all streams."""
        return map(Snapshot._make, self._do("SELECT * FROM $snapshots ORDER BY stream"))

    @abstractmethod
    def broken(self) -> list[str]:
        """Return what the database itself finds wrong with its files."""

    def cut(self, before: int | None, most: int | None) -> int:
        """Return the last entry that is too old, or beyond these bytes of bodies; 0 for none.

        Times grow with numbers: only entries that are too old are looked at.
        """
        last = 0
        if before is not None:
            recent = "SELECT seq FROM $entries WHERE at >= ? ORDER BY seq LIMIT 1"
            kept = self._do(recent, (before,)).fetchone()
            last = self.head().seq if kept is None else kept[0] - 1
        if most is not None:
            last = max(last, self._one(_TOO_MUCH, (most,))[0] or 0)
        return last

    def forget(self, base: Head, ids: Mapping[int, Sequence[str]]) -> None:
        """Remove entries up to `base`, and these ids, in one transaction."""
        with self._ours():
            for stream, names in ids.items():
                self._forget_ids(stream, names)
            self._do("DELETE FROM $entries WHERE seq <= ?", (base.seq,))
            self._do("UPDATE $meta SET seq = ?, at = ?, chain = ?", base)

    @abstractmethod
    def size(self) -> int:
        """Return the bytes that the database takes."""
