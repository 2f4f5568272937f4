"""Which streams there are, and those of them that are in memory, with ids that were used lately.

A stream that is asked for is loaded: its snapshot, then the entries since. Those not used for
longest are saved and closed when there are too many.
"""

from __future__ import annotations

import logging
from collections import OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from truecast.errors import NotFoundError, StateError, UnavailableError
from truecast.serve.events import Kind
from truecast.serve.options import StreamOptions
from truecast.serve.recent import Recent
from truecast.serve.replay import Replay
from truecast.serve.snapshots import from_snapshot, to_snapshot
from truecast.serve.store import Batch, Snapshot, Store, StreamRow
from truecast.serve.stream import LiveStream
from truecast.serve.view import StreamInfo, info_of

__all__ = ["Listed", "Shelf"]

BRIEF = 64  # forecasts and outcomes that are replayed as fast as a snapshot is loaded
_log = logging.getLogger("truecast.serve")


@dataclass(slots=True, eq=False)
class Listed:
    """A stream that exists, in memory or not."""

    number: int
    name: str
    options: StreamOptions
    created: int
    saved: int = 0  # the entry of its snapshot
    brief: bool = True  # whether that has no state, since it has few entries
    rows_saved: int = 0  # forecasts and outcomes that it has
    info: StreamInfo = field(init=False)

    def __post_init__(self) -> None:
        self.info = info_of(self, None)


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
        self.recent = Recent(store)
        self.listed: dict[str, Listed] = {}
        self.by_number: dict[int, Listed] = {}
        self.behind: deque[str] = deque()  # their figures are those of the last snapshot
        self.live: OrderedDict[str, LiveStream] = OrderedDict()
        self.next_number = 1
        self.erasing = True  # whether deleted streams may have left something

    def read(self) -> None:
        """List what the store has; nothing is in memory afterwards."""
        for known in (self.live, self.listed, self.by_number, self.behind):
            known.clear()
        self.erasing = True
        for row in self.store.streams():
            listed = Listed(row.number, row.name, StreamOptions.from_json(row.options), row.created)
            listed.saved, listed.brief = row.seq, bool(row.brief)
            if row.info is not None:
                listed.info = StreamInfo.from_json(row.info)
            self._list(listed)
            if row.behind:
                self.behind.append(row.name)
        self.recent.read(self.by_number)
        self.next_number = max(self.next_number, self.store.last_number() + 1)

    def find(self, name: str) -> Listed:
        """Return a stream that exists, or raise NotFoundError."""
        try:
            return self.listed[name]
        except KeyError:
            raise NotFoundError(f"there is no stream {name!r:.120}: create it first") from None

    def open(self, name: str) -> LiveStream:
        """Return a stream, loaded if need be; raise UnavailableError if that fails."""
        stream = self.live.get(name)
        if stream is not None:
            self.live.move_to_end(name)
            return stream
        listed = self.find(name)
        try:
            stream = self._loaded(listed)
        except StateError as error:
            raise UnavailableError(f"stream {name} cannot be loaded: {error}") from error
        self.live[name] = stream
        listed.info = info_of(listed, stream)
        return stream

    def _loaded(self, listed: Listed) -> LiveStream:
        stream = self._saved(listed)
        listed.rows_saved = stream.rows
        entries = self.store.entries(stream.seq, stream=listed.number)
        return Replay(stream, listed.name).entries(entries)

    def _saved(self, listed: Listed) -> LiveStream:
        """Return the stream of the snapshot; an empty one if there is none that can be read."""
        snapshot = self.store.snapshot(listed.number)
        if snapshot is None or not snapshot.state:
            return LiveStream(listed.options)
        try:
            return from_snapshot(listed.options, snapshot)
        except StateError as error:
            first = next(self.store.entries(0, stream=listed.number), None)
            if first is None or first.kind != Kind.CREATED:
                raise  # what it was made of has been exported, and is not here any more
            _log.warning("%s: %s; it is replayed from the journal", listed.name, error)
            listed.saved = 0  # so that it is saved again
            return LiveStream(listed.options)

    def add(self, number: int, name: str, options: StreamOptions, created: int) -> LiveStream:
        """List a new stream."""
        self._list(Listed(number, name, options, created))
        self.live[name] = LiveStream(options)
        return self.live[name]

    def remove(self, name: str) -> None:
        """Forget a stream."""
        listed = self.listed.pop(name, None)
        self.live.pop(name, None)
        if listed is not None:
            del self.by_number[listed.number]

    def drop(self, names: set[str]) -> None:
        """Forget what is in memory of these streams: their next use loads them again."""
        for name in names:
            self.live.pop(name, None)

    def refresh(self, name: str) -> StreamInfo | None:
        """Return what a list shows of a stream; as it is now, if it is in memory."""
        listed, stream = self.listed.get(name), self.live.get(name)
        if listed is None:
            return None
        if stream is not None:
            listed.info = info_of(listed, stream)
        return listed.info

    def snapshot(self, name: str, *, whole: bool = False) -> Snapshot:
        """Return the state of a stream to be written; of one with few entries only its figures."""
        listed, stream = self.listed[name], self.live[name]
        listed.info = info_of(listed, stream)
        info = listed.info.to_json()
        state = to_snapshot(stream) if whole or stream.rows > BRIEF or not listed.brief else b""
        return Snapshot(listed.number, stream.seq, state, info)

    def holds(self, row: StreamRow) -> bool:
        """Whether the snapshot of a stream can be read, and is of its last entry."""
        snapshot = self.store.snapshot(row.number)
        if snapshot is None or row.brief or row.behind:
            return False
        try:
            from_snapshot(self.listed[row.name].options, snapshot)
        except StateError:
            return False
        return True

    def saved(self, batch: Batch) -> None:
        """Note which snapshots were written."""
        for snapshot in batch.snapshots:
            listed = self.by_number.get(snapshot.stream)
            if listed is not None:
                listed.saved, listed.brief = snapshot.seq, not snapshot.state
                listed.rows_saved = self.live[listed.name].rows

    def is_unsaved(self, name: str) -> bool:
        """Whether a stream in memory has entries beyond its snapshot."""
        return self.live[name].seq > self.listed[name].saved

    def rows_since(self, name: str) -> int:
        """Return the rows of a stream since its snapshot; 0 if it is not in memory."""
        stream = self.live.get(name)
        return 0 if stream is None else stream.rows - self.listed[name].rows_saved

    def unsaved(self) -> Iterator[str]:
        """Return the streams in memory whose entries go beyond their snapshots."""
        return (name for name in self.live if self.is_unsaved(name))

    def too_many(self) -> list[str]:
        """Return the streams to close, least recently used first."""
        return list(islice(self.live, max(0, len(self.live) - self.most)))

    @property
    def has_chores(self) -> bool:
        """Whether there is something to do when nothing is asked."""
        return bool(self.behind) or self.erasing

    def do_chore(self) -> None:
        """Load a stream that is behind, so that the list shows it as it is; or erase a little."""
        if not self.behind:
            self.erasing = self.store.erase()
        elif (name := self.behind.popleft()) in self.listed:
            self.open(name)

    def _list(self, listed: Listed) -> None:
        self.listed[listed.name] = self.by_number[listed.number] = listed
