"""The state of a stream as bytes: msgpack, compressed, with a checksum."""

from __future__ import annotations

import hashlib
import zlib
from typing import Any

import msgspec

from truecast.errors import StateError
from truecast.serve.options import StreamOptions
from truecast.serve.store import Snapshot
from truecast.serve.stream import LiveStream

__all__ = ["from_snapshot", "state_of", "to_snapshot"]

_MAGIC = b"TCS1"


def state_of(stream: LiveStream) -> dict[str, Any]:
    """Return everything that entries change, as plain data."""
    return {
        "seq": stream.seq,
        "last_forecast": stream.last_forecast,
        "last_outcome": stream.last_outcome,
        "recalibrator": stream.recalibrator.state(),
        "monitors": [monitor.state() for monitor in stream.monitors],
        "record": stream.record.state(),
        "course": stream.course.state(),
    }


def to_snapshot(stream: LiveStream) -> bytes:
    """Return the state of a stream, packed."""
    packed = zlib.compress(msgspec.msgpack.encode(state_of(stream)), 1)
    return _MAGIC + hashlib.blake2b(packed, digest_size=16).digest() + packed


def from_snapshot(options: StreamOptions, snapshot: Snapshot) -> LiveStream:
    """Build the stream that was saved, or raise StateError."""
    stream = LiveStream(options)
    magic, digest, packed = snapshot.state[:4], snapshot.state[4:20], snapshot.state[20:]
    if magic != _MAGIC or hashlib.blake2b(packed, digest_size=16).digest() != digest:
        raise StateError(f"the snapshot of stream {snapshot.stream} is damaged")
    state = msgspec.msgpack.decode(zlib.decompress(packed))
    stream.seq = state["seq"]
    stream.last_forecast, stream.last_outcome = state["last_forecast"], state["last_outcome"]
    stream.recalibrator.load(state["recalibrator"])
    for monitor, saved in zip(stream.monitors, state["monitors"], strict=True):
        monitor.load(saved)
    stream.record.load(state["record"])
    stream.course.load(state["course"])
    return stream
