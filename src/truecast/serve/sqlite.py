"""The journal in SQLite: a file, a write-ahead log that is synced at every commit, a lock beside.

`synchronous=FULL` in WAL mode syncs the log before a commit returns.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

import msgspec

from truecast._atomic import hold, make_folder
from truecast.errors import FileError
from truecast.serve.events import ORIGIN, Entry, entry_of
from truecast.serve.store import COLUMNS, FOREVER, SCHEMA, Key, Known, LockedError, Store, slices

__all__ = ["SQLiteStore"]

_TABLES = """
CREATE TABLE IF NOT EXISTS meta (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    schema INTEGER NOT NULL, epoch INTEGER NOT NULL, numbers INTEGER NOT NULL,
    seq INTEGER NOT NULL, at INTEGER NOT NULL, chain BLOB NOT NULL, indexed INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS entries (
    seq INTEGER PRIMARY KEY, stream INTEGER NOT NULL, at INTEGER NOT NULL, kind INTEGER NOT NULL,
    digest BLOB NOT NULL, chain BLOB NOT NULL, body BLOB
) STRICT;
CREATE INDEX IF NOT EXISTS entries_of_stream ON entries (stream, seq);
CREATE TABLE IF NOT EXISTS streams (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,
    options BLOB NOT NULL, created INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS ids (
    stream INTEGER NOT NULL, id TEXT NOT NULL, ticket INTEGER NOT NULL,
    score BLOB NOT NULL, said BLOB NOT NULL, outcome INTEGER,
    PRIMARY KEY (stream, id)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS snapshots (
    stream INTEGER PRIMARY KEY, seq INTEGER NOT NULL, state BLOB NOT NULL, info BLOB NOT NULL
) STRICT;
"""
_LOOKUP = """
SELECT ids.id, ticket, score, said, outcome FROM json_each(?) k
CROSS JOIN ids ON ids.stream = ? AND ids.id = k.value
"""
# One statement for many rows of a stream: it runs without the interpreter lock. Numbers come as
# text of a fixed width, ?2: a ticket and an outcome, -1 for none.
_SAVE_IDS = """
INSERT OR REPLACE INTO ids SELECT ?1, value, CAST(substr(?2, 30 * key + 1, 20) AS INTEGER),
    substr(?4, ?3 * key + 1, ?3), substr(?5, ?3 * key + 1, ?3),
    nullif(CAST(substr(?2, 30 * key + 21, 10) AS INTEGER), -1)
FROM json_each(?6)
"""
_UPGRADE = (  # from schema 1, whose table of ids never lags
    "ALTER TABLE meta ADD COLUMN indexed INTEGER NOT NULL DEFAULT 0",
    "UPDATE meta SET schema = 2, indexed = (SELECT coalesce(max(seq), 0) FROM entries)",
)
_WAIT = 0.2  # seconds between two looks at the lock
_AT_ONCE = 50  # entries of a statement; SQLite keeps those of all lengths ready


class SQLiteStore(Store):
    """A file of SQLite; see `Store`."""

    errors = (sqlite3.Error,)

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._lock: IO[bytes] | None = None
        self._db: sqlite3.Connection | None = None
        self._file = 0, 0

    @property
    def db(self) -> sqlite3.Connection:
        """The connection."""
        if self._db is None:
            raise sqlite3.OperationalError("the database is not open")
        return self._db

    def acquire(self, *, wait: bool) -> None:
        """See `Store`. The lock is held by this process until it ends, however it ends."""
        make_folder(self.path.parent)
        lock = Path(f"{self.path}.lock").open("ab")  # noqa: SIM115  # kept open: it is the lock
        while True:
            try:
                hold(lock)
                break
            except BlockingIOError as error:
                if not wait:
                    lock.close()
                    raise LockedError(
                        f"another process writes to {self.path}: stop it, or use --standby"
                    ) from error
                time.sleep(_WAIT)
        self._lock = lock
        with self._closed_on_error():
            self._connect()
            self._begin_epoch()

    def read_only(self) -> None:
        """See `Store`."""
        if not self.path.exists():
            raise FileError(str(self.path), "does not exist")
        address = f"file:{quote(str(self.path.absolute()))}?mode=ro"
        self._db = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
        self._db.execute("BEGIN")

    def _connect(self) -> None:
        db = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=5)
        try:
            db.execute("PRAGMA journal_mode=WAL").fetchone()
            db.execute("PRAGMA synchronous=FULL")
            db.execute("PRAGMA cache_size=-65536")
            db.executescript(_TABLES)
        except BaseException:
            db.close()
            raise
        self._db = db
        self._file = self._seen()

    def _seen(self) -> tuple[int, int]:
        """Which file is there: one that was moved or replaced is written to no more."""
        found = os.stat(self.path)
        return found.st_dev, found.st_ino

    def _begin_epoch(self) -> None:
        with self._transaction():
            found = self._do("SELECT schema, epoch FROM meta").fetchone()
            if found is None:
                found = SCHEMA, 0
                self._do("INSERT INTO meta VALUES (1, ?, 0, 0, 0, 0, ?, 0)", (SCHEMA, ORIGIN))
            schema, epoch = found
            if schema == 1:
                for change in _UPGRADE:
                    self._do(change)
            elif schema != SCHEMA:
                raise LockedError(
                    f"{self.path} was written by a newer truecast: upgrade, to read schema {schema}"
                )
            self._do("UPDATE meta SET epoch = ?", (epoch + 1,))
        self.epoch = epoch + 1

    def reopen(self) -> None:
        """See `Store`: the lock is still ours."""
        if self._db is not None:
            self._db.close()
            self._db = None
        if not self.path.exists():
            raise sqlite3.OperationalError(f"{self.path} is gone")
        self._connect()
        self._check_epoch()

    def close(self) -> None:
        """See `Store`."""
        if self._db is not None:
            self._db.close()
            self._db = None
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _check_epoch(self) -> None:
        found = self._do("SELECT epoch FROM meta").fetchone()
        if found is None or found[0] != self.epoch:
            raise LockedError(f"another process has taken over {self.path}")

    def _do(self, query: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        return self.db.execute(query.replace("$", ""), values)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Commit at the end, or undo everything and raise."""
        self._do("BEGIN IMMEDIATE")
        try:
            yield
            self._do("COMMIT")
        finally:
            if self.db.in_transaction:
                self._do("ROLLBACK")

    @contextmanager
    def _ours(self) -> Iterator[None]:
        with self._transaction():
            self._check_epoch()
            if self._seen() != self._file:
                raise sqlite3.OperationalError(f"{self.path} was moved or replaced")
            yield

    def lookup(self, keys: Mapping[int, Sequence[str]]) -> dict[Key, Known]:
        """See `Store`."""
        found: dict[Key, Known] = {}
        for stream, ids in keys.items():
            for name, *known in self._do(_LOOKUP, (_json(ids), stream)).fetchall():
                found[stream, name] = Known(*known)
        return found

    def broken(self) -> list[str]:
        """See `Store`."""
        found = [row[0] for row in self._do("PRAGMA integrity_check")]
        return [] if found == ["ok"] else found

    def entries(
        self, after: int, *, stream: int | None = None, until: int = FOREVER
    ) -> Iterator[Entry]:
        """See `Store`."""
        which = "" if stream is None else "AND stream = :stream"
        rows = self.db.execute(
            f"SELECT {COLUMNS} FROM entries"  # noqa: S608  # both are constants
            f" WHERE seq > :after AND seq <= :until {which} ORDER BY seq",
            {"after": after, "until": until, "stream": stream},
        )
        return map(entry_of, rows)

    def size(self) -> int:
        """See `Store`."""
        files = (Path(f"{self.path}{end}") for end in ("", "-wal"))
        return sum(os.stat(file).st_size for file in files if file.exists())

    def _append(self, entries: list[Entry]) -> None:
        """Write many in one statement: it lets go of the interpreter lock once, not for each."""
        for first in range(0, len(entries), _AT_ONCE):
            some = entries[first : first + _AT_ONCE]
            rows = ", ".join(["(?, ?, ?, ?, ?, ?, ?)"] * len(some))
            query = f"INSERT INTO entries VALUES {rows}"  # noqa: S608
            self.db.execute(query, [*chain.from_iterable(some)])

    def _save_ids(self, ids: Mapping[Key, Known]) -> None:
        rows: dict[int, list[tuple[str, Known]]] = {}
        for (stream, name), known in ids.items():
            rows.setdefault(stream, []).append((name, known))
        for stream, own in rows.items():
            for some in slices(own):
                names, known_of = zip(*some, strict=True)
                tickets, scores, said, outcomes = zip(*known_of, strict=True)
                numbers = [
                    b"%20d%10d" % (ticket, -1 if outcome is None else outcome)
                    for ticket, outcome in zip(tickets, outcomes, strict=True)
                ]
                packed = b"".join(numbers), len(scores[0]), b"".join(scores), b"".join(said)
                self.db.execute(_SAVE_IDS, (stream, *packed, _json(names)))

    def _forget_ids(self, stream: int, names: Sequence[str]) -> None:
        keys = [(stream, name) for name in names]
        self.db.executemany("DELETE FROM ids WHERE stream = ? AND id = ?", keys)


def _json(ids: Sequence[str]) -> str:
    return msgspec.json.encode(ids).decode()
