"""The journal in PostgreSQL, by psycopg: one round trip for most transactions, whatever their size.

The only writer holds an advisory lock on its session, and an epoch. Every transaction locks the
epoch's row first: a process that has lost its session cannot commit once another has taken over.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

import psycopg

from truecast.serve.arrays import Blobs, Numbers, Texts, register
from truecast.serve.events import ORIGIN, Entry, entry_of
from truecast.serve.store import (
    COLUMNS,
    FOREVER,
    SCHEMA,
    Batch,
    Key,
    Known,
    LockedError,
    Store,
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
_ENTRY: tuple[Any, ...] = (*[Numbers] * 4, *[Blobs] * 3)  # its columns


class PostgresStore(Store):
    """A database of PostgreSQL; see `Store`."""

    errors = (psycopg.Error,)

    def __init__(self, url: str) -> None:
        self.url = url
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

    def close(self) -> None:
        """See `Store`."""
        if self._db is not None:
            if self.epoch:
                with suppress(psycopg.Error):  # at once: a session ends a little after its client
                    self._db.execute("SELECT pg_advisory_unlock(%b)", (_LOCK,))
            self._db.close()
            self._db = None

    def lookup(self, keys: Mapping[int, Sequence[str]]) -> dict[Key, Known]:
        """See `Store`."""
        streams = Numbers([stream for stream, ids in keys.items() for _ in ids])
        names = Texts([name for ids in keys.values() for name in ids])
        rows = self.db.execute(_LOOKUP, (streams, names), binary=True)
        return {(stream, name): Known(*known) for stream, name, *known in rows}

    def commit(self, batch: Batch) -> None:
        """See `Store`. Most transactions are one statement."""
        if batch.only_entries:
            self._append(batch.entries)
        else:
            super().commit(batch)

    def _do(self, query: str, values: Sequence[Any] = ()) -> psycopg.Cursor[Any]:
        return self.db.execute(_for_postgres(query), values, binary=True)

    @contextmanager
    def _ours(self) -> Iterator[None]:
        """A transaction that holds the epoch's row."""
        with self.db.transaction():
            if self.db.execute(_FENCE, (self.epoch,)).fetchone() is None:
                raise LockedError(_TAKEN)
            with self.db.pipeline():
                yield

    def _append(self, entries: list[Entry]) -> None:
        columns = zip(*entries, strict=True)
        values = [kind(column) for kind, column in zip(_ENTRY, columns, strict=True)]
        if self.db.execute(_INSERT_ENTRIES, [self.epoch, *values]).rowcount == 0:
            raise LockedError(_TAKEN)

    def _save_ids(self, ids: Mapping[Key, Known]) -> None:
        for some in slices([*ids.items()]):
            self.db.execute(_SAVE_IDS, _rows_of(some))

    def _forget_ids(self, stream: int, names: Sequence[str]) -> None:
        query = "DELETE FROM truecast_ids WHERE stream = %b AND id = ANY(%b)"
        self.db.execute(query, (stream, list(names)))

    def broken(self) -> list[str]:
        """See `Store`: PostgreSQL checks its pages itself, if it was set up to."""
        return []

    def entries(
        self, after: int, *, stream: int | None = None, until: int = FOREVER
    ) -> Iterator[Entry]:
        """See `Store`."""
        which = "" if stream is None else "AND stream = %(stream)b"
        query = (
            f"SELECT {COLUMNS} FROM truecast_entries"  # noqa: S608  # both are constants
            f" WHERE seq > %(after)b AND seq <= %(until)b {which} ORDER BY seq LIMIT {_BATCH}"
        )
        while True:
            values = {"after": after, "until": until, "stream": stream}
            rows = self.db.execute(query, values, binary=True).fetchall()
            yield from map(entry_of, rows)
            if len(rows) < _BATCH:
                return
            after = rows[-1][0]

    def size(self) -> int:
        """See `Store`."""
        return int(self._one("SELECT pg_database_size(current_database())")[0])


@cache
def _for_postgres(query: str) -> str:
    return query.replace("$", "truecast_").replace("?", "%b")


def _rows_of(ids: list[tuple[Key, Known]]) -> tuple[Any, ...]:
    """Return the columns of the table of ids; -1 is no outcome."""
    keys, known_of = zip(*ids, strict=True)
    streams, names = zip(*keys, strict=True)
    tickets, scores, said, outcomes = zip(*known_of, strict=True)
    known = Numbers([-1 if outcome is None else outcome for outcome in outcomes])
    return Numbers(streams), Texts(names), Numbers(tickets), Blobs(scores), Blobs(said), known
