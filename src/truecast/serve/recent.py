"""What is known of ids: the newest are only in the journal and here, all others in a table.

A transaction appends to the journal and no more: writing each id to its place in a table, one page
here and one there, would cost several times as much. The table follows in bulk, every few thousand
ids, and notes up to which entry it goes. At start, the entries after that one are read.
"""

from __future__ import annotations

import logging
from collections.abc import Container, Iterable, Sequence

import numpy as np

from truecast.errors import StateError
from truecast.serve.events import Body, Entry, Forecasts, Outcomes, decode, digest_of
from truecast.serve.store import Batch, Key, Known, Store

__all__ = ["Recent", "rows_of"]

LAG = 2_000  # ids that the table may be behind, before a transaction brings it up
SHARE = 2  # times as many as the transaction has itself: most ids have their outcomes by then
_log = logging.getLogger("truecast.serve")


class Recent:
    """Ids that the table does not have yet, and those that were used lately.

    Only what is durable is put in. Those used lately are in two generations: when the younger is
    full, the older one goes.

    Parameters
    ----------
    store
        Where the table is.
    most
        How many ids a generation has.
    """

    def __init__(self, store: Store, most: int = 25_000) -> None:
        self.store, self.most = store, most
        self._fresh: dict[Key, Known] = {}  # what the table does not say yet
        self._young: dict[Key, Known] = {}
        self._old: dict[Key, Known] = {}

    def read(self, streams: Container[int]) -> None:
        """Begin with what entries say of the ids of these streams, and the table does not."""
        self.clear()
        self._fresh = unindexed(self.store, streams)

    def find(self, asked: Iterable[tuple[int, Sequence[str]]]) -> dict[Key, Known]:
        """Return what is known of ids, by the number of their stream."""
        found: dict[Key, Known] = {}
        missing: dict[int, list[str]] = {}
        for stream, ids in asked:
            for name in ids:
                key = stream, name
                known = self._fresh.get(key) or self._young.get(key) or self._old.get(key)
                if known is not None:
                    found[key] = known
                else:
                    missing.setdefault(stream, []).append(name)
        if missing:
            found.update(self.store.lookup(missing))
        return found

    def add_to(self, batch: Batch, fresh: dict[Key, Known], seq: int, *, now: bool = False) -> None:
        """Let a transaction bring the table up to `seq`, its last entry, if that is worth it."""
        if len(self._fresh) >= (1 if now else max(LAG, SHARE * len(fresh))):
            batch.ids = _without(self._fresh | fresh, batch.deleted)
            batch.indexed = seq

    def keep(self, known: dict[Key, Known], fresh: dict[Key, Known], batch: Batch) -> None:
        """Remember what a transaction has looked up and written."""
        self._young.update(known)
        if batch.indexed:
            self._young.update(self._fresh)
            self._young.update(fresh)
            self._fresh = {}
        else:
            self._fresh.update(fresh)
            self._fresh = _without(self._fresh, batch.deleted)
        if len(self._young) > self.most:
            self._young, self._old = {}, self._young

    def index(self, seq: int) -> None:
        """Bring the table up to the last entry, in a transaction of its own."""
        batch = Batch()
        self.add_to(batch, {}, seq, now=True)
        if batch:
            self.store.commit(batch)
            self.keep({}, {}, batch)

    def clear(self) -> None:
        """Forget what was used lately."""
        self._young, self._old = {}, {}


def _without(ids: dict[Key, Known], streams: list[int]) -> dict[Key, Known]:
    if not streams:
        return ids
    return {key: known for key, known in ids.items() if key[0] not in streams}


def unindexed(store: Store, streams: Container[int]) -> dict[Key, Known]:
    """Return what entries say of ids of these streams, and the table does not."""
    made: dict[Key, Known] = {}
    came: list[tuple[Key, int, int]] = []
    for entry in store.entries(store.indexed()):
        if entry.body is None or entry.stream not in streams:
            continue
        try:
            body = _checked(entry)
        except StateError as error:
            _log.error("ids of a damaged entry are not known: %s", error)
            continue
        if isinstance(body, Forecasts):
            made.update(rows_of(entry.stream, body))
        elif isinstance(body, Outcomes):
            tickets = np.frombuffer(body.tickets, "<i8").tolist()
            outcomes = np.frombuffer(body.outcomes, "<i4").tolist()
            keys = [(entry.stream, name) for name in body.ids]
            came += zip(keys, tickets, outcomes, strict=True)
    earlier: dict[int, list[str]] = {}
    for key, _, _ in came:
        if key not in made:
            earlier.setdefault(key[0], []).append(key[1])
    made.update(store.lookup(earlier))
    for key, ticket, outcome in came:
        known = made.get(key)
        if known is not None and known.ticket == ticket:
            made[key] = known._replace(outcome=outcome)
    return made


def _checked(entry: Entry) -> Body:
    if entry.body is None or digest_of(entry.body) != entry.digest:
        raise StateError(f"entry {entry.seq} does not fit its checksum")
    return decode(entry)


def rows_of(stream: int, body: Forecasts) -> dict[Key, Known]:
    """Return what an entry of forecasts says of their ids."""
    width = len(body.scores) // max(len(body.ids), 1)
    found: dict[Key, Known] = {}
    for k, name in enumerate(body.ids):
        part = slice(k * width, (k + 1) * width)
        found[stream, name] = Known(body.first + k, body.scores[part], body.said[part], None)
    return found
