"""What the service needs of a database, and what it writes in one transaction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeVar

from truecast.errors import TruecastError
from truecast.serve.events import Entry, Head

__all__ = ["Batch", "Key", "Known", "LockedError", "Snapshot", "Store", "StreamRow", "slices"]

SCHEMA = 2
_SLICE = 2_000  # rows of ids in a statement
ERASED = 5_000, 500  # ids and entries of a deleted stream, in a transaction

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


class Store(Protocol):
    """A database. All calls come from one thread, the writer's.

    Errors of the database are raised as they are; `service` makes `Unavailable` of them.
    """

    errors: tuple[type[Exception], ...]  #: what the database raises
    epoch: int  #: how many processes have written here, one after the other

    def acquire(self, *, wait: bool) -> None:
        """Become the only writer, or raise LockedError; makes the tables if there are none."""

    def read_only(self) -> None:
        """Connect to read, beside a process that writes: all reads are of one moment."""

    def reopen(self) -> None:
        """Connect anew after an error; raise LockedError if another process writes by now."""

    def close(self) -> None:
        """Let others write."""

    def head(self) -> Head:
        """Return the end of the journal."""

    def base(self) -> Head:
        """Return where the journal begins: the last entry that retention has removed."""

    def streams(self) -> list[StreamRow]:
        """Return all streams that are not deleted."""

    def last_number(self) -> int:
        """Return the highest number that a stream ever had."""

    def indexed(self) -> int:
        """Return the entry up to which the table of ids is what entries say."""

    def lookup(self, keys: Mapping[int, Sequence[str]]) -> dict[Key, Known]:
        """Return what the table has of ids, by the number of their stream."""

    def count_ids(self, stream: int, first: int) -> int:
        """Return how many ids a stream has, of tickets from `first` on."""

    def count_strays(self) -> int:
        """Return how many ids are of no stream, not even of one that is being erased."""

    def unresolved_ids(self, stream: int, before: int) -> Iterator[tuple[str, int]]:
        """Return ids without an outcome, and their tickets: those of tickets below `before`."""

    def commit(self, batch: Batch) -> None:
        """Write all of it durably, or nothing.

        Of a stream that is deleted, a snapshot without figures stays until all else is erased.
        """

    def erase(self) -> bool:
        """Remove some ids of a deleted stream, or the bodies of some of its entries.

        They are so few that others need not wait. False if there is nothing left to remove.
        """

    def snapshot(self, stream: int) -> Snapshot | None:
        """Return the state of a stream as it was last saved."""

    def entries(
        self, after: int, *, stream: int | None = None, until: int | None = None
    ) -> Iterator[Entry]:
        """Return entries in order: of one stream, or of all."""

    def oldest(self, stream: int) -> int | None:
        """Return the number of a stream's first entry that is still here."""

    def snapshots(self) -> Iterator[Snapshot]:
        """Return the saved states of all streams."""

    def broken(self) -> list[str]:
        """Return what the database itself finds wrong with its files."""

    def cut(self, before: int | None, most: int | None) -> int:
        """Return the last entry that is too old, or beyond these bytes of bodies; 0 for none.

        Times grow with numbers: only entries that are too old are looked at.
        """

    def forget(self, base: Head, ids: Mapping[int, Sequence[str]]) -> None:
        """Remove entries up to `base`, and these ids, in one transaction."""

    def size(self) -> int:
        """Return the bytes that the database takes."""
