"""The journal in SQLite: a file, a write-ahead log that is synced at every commit, a lock beside.

`synchronous=FULL` in WAL mode syncs the log before a commit returns.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import IO
from urllib.parse import quote

import msgspec

from truecast._atomic import hold, make_folder
from truecast.errors import FileError
from truecast.serve.events import ORIGIN, Entry, Head, entry_of
from truecast.serve.store import (
    ERASED,
    SCHEMA,
    Batch,
    Key,
    Known,
    LockedError,
    Snapshot,
    StreamRow,
    slices,
)

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
_RECENT = "SELECT seq FROM entries WHERE at >= ? ORDER BY seq LIMIT 1"
_TOO_MUCH = """
SELECT max(seq) FROM (
    SELECT seq, sum(coalesce(length(body), 0) + 100) OVER (ORDER BY seq DESC) AS total FROM entries
) WHERE total > ?
"""
_SAVE = "INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?)"
_ERASING = "SELECT stream, seq FROM snapshots WHERE stream NOT IN (SELECT number FROM streams)"
_ERASE_IDS = (
    "DELETE FROM ids WHERE stream = ? AND id IN (SELECT id FROM ids WHERE stream = ? LIMIT ?)"
)
_ERASE_UNTIL = (
    "SELECT max(seq) FROM"
    " (SELECT seq FROM entries WHERE stream = ? AND seq > ? ORDER BY seq LIMIT ?)"
)
_ERASE_BODIES = "UPDATE entries SET body = NULL WHERE stream = ? AND seq > ? AND seq <= ?"
_COLUMNS = "seq, stream, at, kind, digest, chain, body"
_WAIT = 0.2  # seconds between two looks at the lock
_AT_ONCE = 50  # entries of a statement; SQLite keeps those of all lengths ready


class SQLiteStore:
    """A file of SQLite; see `Store`."""

    errors: tuple[type[Exception], ...] = (sqlite3.Error,)

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.epoch = 0
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
        try:
            self._connect()
            self._begin_epoch()
        except BaseException:
            self.close()
            raise

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
        with _Transaction(self.db) as db:
            found = db.execute("SELECT schema, epoch FROM meta").fetchone()
            if found is None:
                found = SCHEMA, 0
                db.execute("INSERT INTO meta VALUES (1, ?, 0, 0, 0, 0, ?, 0)", (SCHEMA, ORIGIN))
            schema, epoch = found
            if schema == 1:
                for change in _UPGRADE:
                    db.execute(change)
            elif schema != SCHEMA:
                raise LockedError(
                    f"{self.path} was written by a newer truecast: upgrade, to read schema {schema}"
                )
            db.execute("UPDATE meta SET epoch = ?", (epoch + 1,))
        self.epoch = epoch + 1

    def reopen(self) -> None:
        """See `Store`: the lock is still ours."""
        if self._db is not None:
            self._db.close()
            self._db = None
        if not self.path.exists():
            raise sqlite3.OperationalError(f"{self.path} is gone")
        self._connect()
        self._check_epoch(self.db)

    def close(self) -> None:
        """See `Store`."""
        if self._db is not None:
            self._db.close()
            self._db = None
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _check_epoch(self, db: sqlite3.Connection) -> None:
        found = db.execute("SELECT epoch FROM meta").fetchone()
        if found is None or found[0] != self.epoch:
            raise LockedError(f"another process has taken over {self.path}")

    def _check_ours(self, db: sqlite3.Connection) -> None:
        self._check_epoch(db)
        if self._seen() != self._file:
            raise sqlite3.OperationalError(f"{self.path} was moved or replaced")

    def head(self) -> Head:
        """See `Store`."""
        row = self.db.execute(
            "SELECT seq, at, chain FROM entries ORDER BY seq DESC LIMIT 1"
        ).fetchone()
        return Head(*row) if row else self.base()

    def base(self) -> Head:
        """See `Store`."""
        return Head(*self.db.execute("SELECT seq, at, chain FROM meta").fetchone())

    def streams(self) -> list[StreamRow]:
        """See `Store`."""
        rows = self.db.execute(
            "SELECT number, name, options, created, coalesce(s.seq, 0), s.info,"
            " s.state IS NULL OR length(s.state) = 0,"
            " (SELECT count(*) FROM entries e"
            "  WHERE e.stream = number AND e.seq > coalesce(s.seq, 0))"
            " FROM streams LEFT JOIN snapshots s ON s.stream = number ORDER BY number"
        )
        return [StreamRow(*row) for row in rows]

    def last_number(self) -> int:
        """See `Store`."""
        number: int = self.db.execute("SELECT numbers FROM meta").fetchone()[0]
        return number

    def indexed(self) -> int:
        """See `Store`. A database that was not upgraded yet has all ids in the table."""
        schema: int = self.db.execute("SELECT schema FROM meta").fetchone()[0]
        if schema == 1:
            return self.head().seq
        seq: int = self.db.execute("SELECT indexed FROM meta").fetchone()[0]
        return seq

    def lookup(self, keys: Mapping[int, Sequence[str]]) -> dict[Key, Known]:
        """See `Store`."""
        found: dict[Key, Known] = {}
        for stream, ids in keys.items():
            for name, *known in self.db.execute(_LOOKUP, (_json(ids), stream)).fetchall():
                found[stream, name] = Known(*known)
        return found

    def count_ids(self, stream: int, first: int) -> int:
        """See `Store`."""
        query = "SELECT count(*) FROM ids WHERE stream = ? AND ticket >= ?"
        return int(self.db.execute(query, (stream, first)).fetchone()[0])

    def count_strays(self) -> int:
        """See `Store`."""
        query = (
            "SELECT count(*) FROM ids WHERE stream NOT IN (SELECT number FROM streams)"
            " AND stream NOT IN (SELECT stream FROM snapshots)"
        )
        return int(self.db.execute(query).fetchone()[0])

    def unresolved_ids(self, stream: int, before: int) -> Iterator[tuple[str, int]]:
        """See `Store`."""
        query = "SELECT id, ticket FROM ids WHERE stream = ? AND ticket < ? AND outcome IS NULL"
        return iter(self.db.execute(query, (stream, before)))

    def commit(self, batch: Batch) -> None:
        """See `Store`."""
        with _Transaction(self.db) as db:
            self._check_ours(db)
            for stream in batch.deleted:  # first: a new one may have the name
                db.execute("DELETE FROM streams WHERE number = ?", (stream,))
            if batch.created:
                db.executemany("INSERT INTO streams VALUES (?, ?, ?, ?)", batch.lasting())
                db.execute("UPDATE meta SET numbers = ?", (batch.created[-1][0],))
            for first in range(0, len(batch.entries), _AT_ONCE):
                _append(db, batch.entries[first : first + _AT_ONCE])
            if batch.indexed:
                _save_ids(db, batch.ids)
                db.execute("UPDATE meta SET indexed = ?", (batch.indexed,))
            left = [Snapshot(stream, 0, b"", b"") for stream in batch.deleted]
            db.executemany(_SAVE, [*batch.snapshots, *left])

    def erase(self) -> bool:
        """See `Store`. The snapshot says up to which entry it has come."""
        with _Transaction(self.db) as db:
            self._check_ours(db)
            found = db.execute(_ERASING).fetchone()
            if found is None:
                return False
            stream, after = found
            ids, entries = ERASED
            if db.execute(_ERASE_IDS, (stream, stream, ids)).rowcount:
                return True
            last = db.execute(_ERASE_UNTIL, (stream, after, entries)).fetchone()[0]
            if last is None:
                db.execute("DELETE FROM snapshots WHERE stream = ?", (stream,))
            else:
                db.execute(_ERASE_BODIES, (stream, after, last))
                db.execute("UPDATE snapshots SET seq = ? WHERE stream = ?", (last, stream))
        return True

    def snapshot(self, stream: int) -> Snapshot | None:
        """See `Store`."""
        row = self.db.execute("SELECT * FROM snapshots WHERE stream = ?", (stream,)).fetchone()
        return Snapshot(*row) if row else None

    def snapshots(self) -> Iterator[Snapshot]:
        """See `Store`."""
        return map(Snapshot._make, self.db.execute("SELECT * FROM snapshots ORDER BY stream"))

    def broken(self) -> list[str]:
        """See `Store`."""
        found = [row[0] for row in self.db.execute("PRAGMA integrity_check")]
        return [] if found == ["ok"] else found

    def entries(
        self, after: int, *, stream: int | None = None, until: int | None = None
    ) -> Iterator[Entry]:
        """See `Store`."""
        which = "" if stream is None else "AND stream = :stream"
        rows = self.db.execute(
            f"SELECT {_COLUMNS} FROM entries"  # noqa: S608  # both are constants
            f" WHERE seq > :after AND seq <= :until {which} ORDER BY seq",
            {"after": after, "until": (1 << 62) if until is None else until, "stream": stream},
        )
        return map(entry_of, rows)

    def oldest(self, stream: int) -> int | None:
        """See `Store`."""
        found = self.db.execute("SELECT min(seq) FROM entries WHERE stream = ?", (stream,))
        seq: int | None = found.fetchone()[0]
        return seq

    def cut(self, before: int | None, most: int | None) -> int:
        """See `Store`."""
        last = 0
        if before is not None:
            kept = self.db.execute(_RECENT, (before,)).fetchone()
            last = self.head().seq if kept is None else kept[0] - 1
        if most is not None:
            last = max(last, self.db.execute(_TOO_MUCH, (most,)).fetchone()[0] or 0)
        return last

    def forget(self, base: Head, ids: Mapping[int, Sequence[str]]) -> None:
        """See `Store`."""
        with _Transaction(self.db) as db:
            self._check_ours(db)
            for stream, names in ids.items():
                keys = [(stream, name) for name in names]
                db.executemany("DELETE FROM ids WHERE stream = ? AND id = ?", keys)
            db.execute("DELETE FROM entries WHERE seq <= ?", (base.seq,))
            db.execute("UPDATE meta SET seq = ?, at = ?, chain = ?", base)

    def size(self) -> int:
        """See `Store`."""
        files = (Path(f"{self.path}{end}") for end in ("", "-wal"))
        return sum(os.stat(file).st_size for file in files if file.exists())


def _append(db: sqlite3.Connection, entries: list[Entry]) -> None:
    """Write entries in one statement: it lets go of the interpreter lock once, not for each."""
    rows = ", ".join(["(?, ?, ?, ?, ?, ?, ?)"] * len(entries))
    db.execute(f"INSERT INTO entries VALUES {rows}", [*chain.from_iterable(entries)])  # noqa: S608


def _save_ids(db: sqlite3.Connection, ids: Mapping[Key, Known]) -> None:
    rows: dict[int, list[tuple[str, Known]]] = {}
    for (stream, name), known in ids.items():
        rows.setdefault(stream, []).append((name, known))
    for stream, some in ((stream, some) for stream, own in rows.items() for some in slices(own)):
        names, known_of = zip(*some, strict=True)
        tickets, scores, said, outcomes = zip(*known_of, strict=True)
        numbers = [
            b"%20d%10d" % (ticket, -1 if outcome is None else outcome)
            for ticket, outcome in zip(tickets, outcomes, strict=True)
        ]
        packed = b"".join(numbers), len(scores[0]), b"".join(scores), b"".join(said)
        db.execute(_SAVE_IDS, (stream, *packed, _json(names)))


def _json(ids: Sequence[str]) -> str:
    return msgspec.json.encode(ids).decode()


class _Transaction:
    """Commits at its end, or undoes everything and raises."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db

    def __enter__(self) -> sqlite3.Connection:
        self.db.execute("BEGIN IMMEDIATE")
        return self.db

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                self.db.execute("COMMIT")
        finally:
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")
