"""Which streams there are, and those of them that are in memory.

A stream that is asked for is loaded: its snapshot, then the entries since. Those not used for
longest are saved and closed when there are too many.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterator

from truecast.errors import StateError
from truecast.serve.errors import NotFound
from truecast.serve.events import Kind
from truecast.serve.options import StreamOptions
from truecast.serve.replay import Replay
from truecast.serve.snapshots import from_snapshot, to_snapshot
from truecast.serve.store import Batch, Snapshot, Store
from truecast.serve.stream import LiveStream
from truecast.serve.view import StreamInfo, info_of

__all__ = ["Listed", "Shelf"]

_log = logging.getLogger("truecast.serve")


class Listed:
    """A stream that exists, in memory or not."""

    __slots__ = "created", "info", "name", "number", "options", "rows_saved", "saved", "since"

    def __init__(self, number: int, name: str, options: StreamOptions, created: int) -> None:
        self.number, self.name, self.options, self.created = number, name, options, created
        self.info = info_of(self, None)
        self.saved = 0  # the entry of its snapshot
        self.rows_saved = 0  # forecasts and outcomes that it has
        self.since = 0  # rows of entries after it


class Shelf:
    """All streams of a store.

    Parameters
    ----------
    store
        Where their snapshots and entries are.
    most
        How many may be in memory.
    """

    def __init__(self, store: Store, most: int) -> None:
        self.store, self.most = store, most
        self.listed: dict[str, Listed] = {}
        self.live: OrderedDict[str, LiveStream] = OrderedDict()
        self.next_number = 1

    def read(self) -> None:
        """List what the store has; nothing is in memory afterwards, but what was behind."""
        self.live.clear()
        self.listed.clear()
        for row in self.store.streams():
            listed = Listed(row.number, row.name, StreamOptions.from_json(row.options), row.created)
            listed.saved = row.seq
            if row.info is not None:
                listed.info = StreamInfo.from_json(row.info)
            self.listed[row.name] = listed
            if row.behind:
                self.open(row.name)  # so that the list shows it as it is
        self.next_number = max(self.next_number, self.store.last_number() + 1)

    def find(self, name: str) -> Listed:
        """Return a stream that exists, or raise NotFound."""
        try:
            return self.listed[name]
        except KeyError:
            raise NotFound(f"there is no stream {name!r:.120}: create it first") from None

    def open(self, name: str) -> LiveStream:
        """Return a stream, loaded if need be."""
        stream = self.live.get(name)
        if stream is not None:
            self.live.move_to_end(name)
            return stream
        listed = self.find(name)
        stream = self._loaded(listed)
        self.live[name] = stream
        listed.info = info_of(listed, stream)
        return stream

    def _loaded(self, listed: Listed) -> LiveStream:
        stream = self._saved(listed)
        listed.since, listed.rows_saved = 0, stream.rows
        entries = self.store.entries(stream.seq, stream=listed.number)
        return Replay(stream, listed.name).entries(entries)

    def _saved(self, listed: Listed) -> LiveStream:
        """Return the stream of the snapshot; an empty one if there is none that can be read."""
        snapshot = self.store.snapshot(listed.number)
        if snapshot is None:
            return LiveStream(listed.options)
        try:
            return from_snapshot(listed.options, snapshot)
        except StateError as error:
            first = next(self.store.entries(0, stream=listed.number), None)
            if first is None or first.kind != Kind.CREATED:
                raise  # what it was made of has been exported, and is not here any more
            _log.warning("%s: %s; it is replayed from the journal", listed.name, error)
            return LiveStream(listed.options)

    def add(self, number: int, name: str, options: StreamOptions, created: int) -> LiveStream:
        """List a new stream."""
        self.listed[name] = Listed(number, name, options, created)
        self.live[name] = LiveStream(options)
        return self.live[name]

    def remove(self, name: str) -> None:
        """Forget a stream."""
        self.listed.pop(name, None)
        self.live.pop(name, None)

    def drop(self, names: set[str]) -> None:
        """Forget what is in memory of these streams: their next use loads them again."""
        for name in names:
            self.live.pop(name, None)

    def refresh(self, name: str) -> StreamInfo | None:
        """Return what a list shows of a stream, as it is now."""
        listed, stream = self.listed.get(name), self.live.get(name)
        if listed is None or stream is None:
            return None
        listed.info = info_of(listed, stream)
        return listed.info

    def snapshot(self, name: str) -> Snapshot:
        """Return the state of a stream to be written."""
        listed, stream = self.listed[name], self.live[name]
        info = info_of(listed, stream)
        return Snapshot(listed.number, stream.seq, to_snapshot(stream), info.to_json())

    def saved(self, batch: Batch) -> None:
        """Note which snapshots were written."""
        by_number = {listed.number: listed for listed in self.listed.values()}
        for snapshot in batch.snapshots:
            listed = by_number.get(snapshot.stream)
            if listed is not None:
                listed.saved, listed.since = snapshot.seq, 0
                listed.rows_saved = self.live[listed.name].rows

    def unsaved(self) -> Iterator[str]:
        """Return the streams whose entries go beyond their snapshots."""
        for name, stream in self.live.items():
            if stream.seq > self.listed[name].saved:
                yield name

    def too_many(self) -> list[str]:
        """Return the streams to close, least recently used first."""
        return list(self.live)[: max(0, len(self.live) - self.most)]
