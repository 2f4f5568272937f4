"""The journal in PostgreSQL, by psycopg: one round trip for most transactions, whatever their size.

The only writer holds an advisory lock on its session, and an epoch. Every transaction locks the
epoch's row first: a process that has lost its session cannot commit once another has taken over.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import psycopg

from truecast.serve.arrays import Blobs, Numbers, Texts, register
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

__all__ = ["PostgresStore"]

_TABLES = """
CREATE TABLE IF NOT EXISTS truecast_meta (
    one integer PRIMARY KEY CHECK (one = 1),
    schema integer NOT NULL, epoch bigint NOT NULL, numbers bigint NOT NULL,
    seq bigint NOT NULL, at bigint NOT NULL, chain bytea NOT NULL,
    indexed bigint NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS truecast_entries (
    seq bigint PRIMARY KEY, stream bigint NOT NULL, at bigint NOT NULL, kind bigint NOT NULL,
    digest bytea NOT NULL, chain bytea NOT NULL, body bytea
);
CREATE INDEX IF NOT EXISTS truecast_entries_of_stream ON truecast_entries (stream, seq);
CREATE TABLE IF NOT EXISTS truecast_streams (
    number bigint PRIMARY KEY, name text NOT NULL UNIQUE,
    options bytea NOT NULL, created bigint NOT NULL
);
CREATE TABLE IF NOT EXISTS truecast_ids (
    stream bigint NOT NULL, id text COLLATE "C" NOT NULL, ticket bigint NOT NULL,
    score bytea NOT NULL, said bytea NOT NULL, outcome bigint,
    PRIMARY KEY (stream, id)
) WITH (fillfactor = 70);
CREATE TABLE IF NOT EXISTS truecast_snapshots (
    stream bigint PRIMARY KEY, seq bigint NOT NULL, state bytea NOT NULL, info bytea NOT NULL
);
"""
_COLUMNS = "seq, stream, at, kind, digest, chain, body"
_WAIT = 0.5  # seconds between two looks at the lock
_PATIENCE = 1.0  # seconds in which the session of a process that was killed may end
_LOCK = zlib.crc32(b"truecast serve")
_BATCH = 2_000  # entries that are read at a time
_TAKEN = "another process has taken over this database"

_FENCE = "SELECT 1 FROM truecast_meta WHERE epoch = %b FOR UPDATE"
_INSERT_ENTRIES = (  # a transaction by itself: nothing if another process has taken over
    "INSERT INTO truecast_entries SELECT u.* FROM"
    " (SELECT 1 FROM truecast_meta WHERE epoch = %b FOR UPDATE) ours,"
    " unnest(%b::bigint[], %b::bigint[], %b::bigint[],"
    " %b::bigint[], %b::bytea[], %b::bytea[], %b::bytea[]) u"
)
# For each id a look into the index, whatever the planner thinks of a table without statistics.
_LOOKUP = (
    "SELECT i.* FROM unnest(%b::bigint[], %b::text[]) k (stream, id) CROSS JOIN LATERAL"
    " (SELECT * FROM truecast_ids WHERE stream = k.stream AND id = k.id OFFSET 0) i"
)
_SAVE_IDS = (
    "INSERT INTO truecast_ids SELECT stream, id, ticket, score, said, nullif(outcome, -1)"
    " FROM unnest(%b::bigint[], %b::text[], %b::bigint[], %b::bytea[], %b::bytea[], %b::bigint[])"
    " u (stream, id, ticket, score, said, outcome) ON CONFLICT (stream, id) DO UPDATE"
    " SET ticket = excluded.ticket, score = excluded.score, said = excluded.said,"
    " outcome = excluded.outcome"
)
_UPGRADE = (  # from schema 1, whose table of ids never lags
    "ALTER TABLE truecast_meta ADD COLUMN indexed bigint NOT NULL DEFAULT 0",
    "UPDATE truecast_meta SET schema = 2,"
    " indexed = (SELECT coalesce(max(seq), 0) FROM truecast_entries)",
)
_RECENT = "SELECT seq FROM truecast_entries WHERE at >= %b ORDER BY seq LIMIT 1"
_TOO_MUCH = (
    "SELECT max(seq) FROM (SELECT seq, sum(coalesce(length(body), 0) + 100)"
    " OVER (ORDER BY seq DESC) AS total FROM truecast_entries) sums WHERE total > %b"
)
_ERASING = (
    "SELECT stream, seq FROM truecast_snapshots"
    " WHERE stream NOT IN (SELECT number FROM truecast_streams) LIMIT 1"
)
_ERASE_IDS = (
    "WITH gone AS (DELETE FROM truecast_ids WHERE stream = %b AND id IN"
    " (SELECT id FROM truecast_ids WHERE stream = %b LIMIT %b) RETURNING 1)"
    " SELECT count(*) FROM gone"
)
_ERASE_UNTIL = (
    "SELECT max(seq) FROM (SELECT seq FROM truecast_entries"
    " WHERE stream = %b AND seq > %b ORDER BY seq LIMIT %b) next"
)
_ERASE_BODIES = (
    "UPDATE truecast_entries SET body = NULL WHERE stream = %b AND seq > %b AND seq <= %b"
)
_SAVE = (
    "INSERT INTO truecast_snapshots VALUES (%b, %b, %b, %b) ON CONFLICT (stream)"
    " DO UPDATE SET seq = excluded.seq, state = excluded.state, info = excluded.info"
)


_ENTRY: tuple[Any, ...] = (*[Numbers] * 4, *[Blobs] * 3)  # its columns


class PostgresStore:
    """A database of PostgreSQL; see `Store`."""

    errors: tuple[type[Exception], ...] = (psycopg.Error,)

    def __init__(self, url: str) -> None:
        self.url = url
        self.epoch = 0
        self._db: psycopg.Connection[Any] | None = None

    @property
    def db(self) -> psycopg.Connection[Any]:
        """The connection."""
        if self._db is None:
            raise psycopg.OperationalError("the database is not open")
        return self._db

    def acquire(self, *, wait: bool) -> None:
        """See `Store`. The lock is held by the session."""
        with self._closed_on_error():
            self._connect()
            if (encoding := self.db.info.parameter_status("server_encoding")) != "UTF8":
                raise LockedError(
                    f"this database is encoded in {encoding}, and ids may be any text: make one "
                    "with createdb -E UTF8 -T template0"
                )
            patience = time.monotonic() + _PATIENCE
            while not self._locked():
                if not wait and time.monotonic() > patience:
                    raise LockedError(
                        "another process writes to this database: stop it, or use --standby"
                    )
                time.sleep(_WAIT if wait else _WAIT / 10)
            self._begin_epoch()

    def _begin_epoch(self) -> None:
        with self.db.transaction():
            self.db.execute(_TABLES)
            self.db.execute(
                "INSERT INTO truecast_meta (one, schema, epoch, numbers, seq, at, chain)"
                " VALUES (1, %b, 0, 0, 0, 0, %b) ON CONFLICT DO NOTHING",
                (SCHEMA, ORIGIN),
            )
            schema, epoch = self._one("SELECT schema, epoch FROM truecast_meta FOR UPDATE")
            if schema == 1:
                for change in _UPGRADE:
                    self.db.execute(change)
            elif schema != SCHEMA:
                raise LockedError(
                    f"this database was written by a newer truecast: upgrade, for schema {schema}"
                )
            self.db.execute("UPDATE truecast_meta SET epoch = %b", (epoch + 1,))
        self.epoch = epoch + 1

    def read_only(self) -> None:
        """See `Store`."""
        self._connect()
        self.db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def _connect(self) -> None:
        self._db = psycopg.connect(
            self.url,
            autocommit=True,
            prepare_threshold=2,
            connect_timeout=5,
            client_encoding="utf8",
            tcp_user_timeout=10_000,  # milliseconds: a network that swallows everything is an error
        )
        register(self._db)
        self._db.execute("SET synchronous_commit = on")
        self._db.execute("SET plan_cache_mode = force_generic_plan")
        self._db.execute("SET jit = off")
        self._db.execute("SET enable_seqscan = off")  # plans are made while tables are small

    def _locked(self) -> bool:
        return bool(self._one("SELECT pg_try_advisory_lock(%b)", (_LOCK,))[0])

    def _one(self, query: str, values: Sequence[Any] = ()) -> tuple[Any, ...]:
        row = self.db.execute(query, values).fetchone()
        if row is None:
            raise psycopg.DataError(f"there is no answer to {query}")
        return tuple(row)

    def reopen(self) -> None:
        """See `Store`."""
        self.close()
        with self._closed_on_error():
            self._connect()
            self._check_epoch()  # before: the lock is not ours to take, not even for a moment
            if not self._locked():  # our old session may not have ended yet
                raise LockedError("another process writes to this database")
            self._check_epoch()  # nobody has come in between

    def _check_epoch(self) -> None:
        if self._one("SELECT epoch FROM truecast_meta")[0] != self.epoch:
            raise LockedError(_TAKEN)

    @contextmanager
    def _closed_on_error(self) -> Iterator[None]:
        """A session that is of no use holds no lock."""
        try:
            yield
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """See `Store`."""
        if self._db is not None:
            if self.epoch:
                with suppress(psycopg.Error):  # at once: a session ends a little after its client
                    self._db.execute("SELECT pg_advisory_unlock(%b)", (_LOCK,))
            self._db.close()
            self._db = None

    def head(self) -> Head:
        """See `Store`."""
        row = self.db.execute(
            "SELECT seq, at, chain FROM truecast_entries ORDER BY seq DESC LIMIT 1"
        ).fetchone()
        return Head(*row) if row else self.base()

    def base(self) -> Head:
        """See `Store`."""
        return Head(*self._one("SELECT seq, at, chain FROM truecast_meta"))

    def streams(self) -> list[StreamRow]:
        """See `Store`."""
        rows = self.db.execute(
            "SELECT number, name, options, created, coalesce(s.seq, 0), s.info,"
            " s.state IS NULL OR length(s.state) = 0,"
            " (SELECT count(*) FROM truecast_entries e"
            "  WHERE e.stream = number AND e.seq > coalesce(s.seq, 0))"
            " FROM truecast_streams LEFT JOIN truecast_snapshots s ON s.stream = number"
            " ORDER BY number"
        )
        return [StreamRow(*row) for row in rows]

    def last_number(self) -> int:
        """See `Store`."""
        return int(self._one("SELECT numbers FROM truecast_meta")[0])

    def indexed(self) -> int:
        """See `Store`. A database that was not upgraded yet has all ids in the table."""
        if self._one("SELECT schema FROM truecast_meta")[0] == 1:
            return self.head().seq
        return int(self._one("SELECT indexed FROM truecast_meta")[0])

    def lookup(self, keys: Mapping[int, Sequence[str]]) -> dict[Key, Known]:
        """See `Store`."""
        streams = Numbers([stream for stream, ids in keys.items() for _ in ids])
        names = Texts([name for ids in keys.values() for name in ids])
        rows = self.db.execute(_LOOKUP, (streams, names), binary=True)
        return {(stream, name): Known(*known) for stream, name, *known in rows}

    def count_ids(self, stream: int, first: int) -> int:
        """See `Store`."""
        query = "SELECT count(*) FROM truecast_ids WHERE stream = %b AND ticket >= %b"
        return int(self._one(query, (stream, first))[0])

    def count_strays(self) -> int:
        """See `Store`."""
        query = (
            "SELECT count(*) FROM truecast_ids"
            " WHERE stream NOT IN (SELECT number FROM truecast_streams)"
            " AND stream NOT IN (SELECT stream FROM truecast_snapshots)"
        )
        return int(self._one(query)[0])

    def unresolved_ids(self, stream: int, before: int) -> Iterator[tuple[str, int]]:
        """See `Store`."""
        query = (
            "SELECT id, ticket FROM truecast_ids"
            " WHERE stream = %b AND ticket < %b AND outcome IS NULL"
        )
        return iter(self.db.execute(query, (stream, before), binary=True))

    def commit(self, batch: Batch) -> None:
        """See `Store`. Most transactions are one statement."""
        if batch.only_entries:
            self._append(self.db, batch.entries)
            return
        with self._ours() as cursor:
            for stream in batch.deleted:  # first: a new one may have the name
                cursor.execute("DELETE FROM truecast_streams WHERE number = %b", (stream,))
            for created in batch.lasting():
                cursor.execute("INSERT INTO truecast_streams VALUES (%b, %b, %b, %b)", created)
            for number, *_ in batch.created[-1:]:
                cursor.execute("UPDATE truecast_meta SET numbers = %b", (number,))
            if batch.entries:
                self._append(cursor, batch.entries)
            for some in slices([*batch.ids.items()]):
                cursor.execute(_SAVE_IDS, _rows_of(some))
            if batch.indexed:
                cursor.execute("UPDATE truecast_meta SET indexed = %b", (batch.indexed,))
            left = [Snapshot(stream, 0, b"", b"") for stream in batch.deleted]
            for snapshot in (*batch.snapshots, *left):
                cursor.execute(_SAVE, snapshot)

    @contextmanager
    def _ours(self) -> Iterator[psycopg.Cursor[Any]]:
        """A transaction that holds the epoch's row; LockedError if it is another's by now."""
        with self.db.transaction():
            if self.db.execute(_FENCE, (self.epoch,)).fetchone() is None:
                raise LockedError(_TAKEN)
            with self.db.pipeline(), self.db.cursor() as cursor:
                yield cursor

    def _append(self, db: Any, entries: list[Entry]) -> None:
        columns = zip(*entries, strict=True)
        values = [kind(column) for kind, column in zip(_ENTRY, columns, strict=True)]
        if db.execute(_INSERT_ENTRIES, [self.epoch, *values]).rowcount == 0:
            raise LockedError(_TAKEN)

    def erase(self) -> bool:
        """See `Store`. The snapshot says up to which entry it has come."""
        found = self.db.execute(_ERASING).fetchone()
        if found is None:
            return False
        stream, after = found
        ids, entries = ERASED
        with self._ours() as cursor:
            if cursor.execute(_ERASE_IDS, (stream, stream, ids)).fetchone() != (0,):
                return True
            row = cursor.execute(_ERASE_UNTIL, (stream, after, entries)).fetchone()
            last = None if row is None else row[0]
            if last is None:
                cursor.execute("DELETE FROM truecast_snapshots WHERE stream = %b", (stream,))
            else:
                cursor.execute(_ERASE_BODIES, (stream, after, last))
                cursor.execute(
                    "UPDATE truecast_snapshots SET seq = %b WHERE stream = %b", (last, stream)
                )
        return True

    def snapshot(self, stream: int) -> Snapshot | None:
        """See `Store`."""
        row = self.db.execute(
            "SELECT * FROM truecast_snapshots WHERE stream = %b", (stream,), binary=True
        ).fetchone()
        return Snapshot(*row) if row else None

    def snapshots(self) -> Iterator[Snapshot]:
        """See `Store`."""
        rows = self.db.execute("SELECT * FROM truecast_snapshots ORDER BY stream", binary=True)
        return map(Snapshot._make, rows)

    def broken(self) -> list[str]:
        """See `Store`: PostgreSQL checks its pages itself, if it was set up to."""
        return []

    def entries(
        self, after: int, *, stream: int | None = None, until: int | None = None
    ) -> Iterator[Entry]:
        """See `Store`."""
        which = "" if stream is None else "AND stream = %(stream)b"
        query = (
            f"SELECT {_COLUMNS} FROM truecast_entries"  # noqa: S608  # both are constants
            f" WHERE seq > %(after)b AND seq <= %(until)b {which} ORDER BY seq LIMIT {_BATCH}"
        )
        last = (1 << 62) if until is None else until
        while True:
            values = {"after": after, "until": last, "stream": stream}
            rows = self.db.execute(query, values, binary=True).fetchall()
            yield from map(entry_of, rows)
            if len(rows) < _BATCH:
                return
            after = rows[-1][0]

    def oldest(self, stream: int) -> int | None:
        """See `Store`."""
        seq: int | None = self._one(
            "SELECT min(seq) FROM truecast_entries WHERE stream = %b", (stream,)
        )[0]
        return seq

    def cut(self, before: int | None, most: int | None) -> int:
        """See `Store`."""
        last = 0
        if before is not None:
            kept = self.db.execute(_RECENT, (before,)).fetchone()
            last = self.head().seq if kept is None else kept[0] - 1
        if most is not None:
            last = max(last, self._one(_TOO_MUCH, (most,))[0] or 0)
        return last

    def forget(self, base: Head, ids: Mapping[int, Sequence[str]]) -> None:
        """See `Store`."""
        with self._ours() as cursor:
            for stream, names in ids.items():
                cursor.execute(
                    "DELETE FROM truecast_ids WHERE stream = %b AND id = ANY(%b)",
                    (stream, list(names)),
                )
            cursor.execute("DELETE FROM truecast_entries WHERE seq <= %b", (base.seq,))
            cursor.execute("UPDATE truecast_meta SET seq = %b, at = %b, chain = %b", base)

    def size(self) -> int:
        """See `Store`."""
        return int(self._one("SELECT pg_database_size(current_database())")[0])


def _rows_of(ids: list[tuple[Key, Known]]) -> tuple[Any, ...]:
    """Return the columns of the table of ids; -1 is no outcome."""
    keys, known_of = zip(*ids, strict=True)
    streams, names = zip(*keys, strict=True)
    tickets, scores, said, outcomes = zip(*known_of, strict=True)
    known = Numbers([-1 if outcome is None else outcome for outcome in outcomes])
    return Numbers(streams), Texts(names), Numbers(tickets), Blobs(scores), Blobs(said), known
