"""The state of a stream as bytes: msgpack, compressed, with a checksum."""

from __future__ import annotations

import hashlib
import zlib
from typing import Any

import msgspec
import numpy as np

from truecast.errors import StateError
from truecast.serve.options import StreamOptions
from truecast.serve.store import Snapshot
from truecast.serve.stream import LiveStream
from truecast.state import plain

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
        "record": _record_state(stream),
        "course": stream.course.state(),
    }


def to_snapshot(stream: LiveStream) -> bytes:
    """Return the state of a stream, packed."""
    packed = zlib.compress(msgspec.msgpack.encode(state_of(stream)), 1)
    return _MAGIC + hashlib.blake2b(packed, digest_size=16).digest() + packed


def from_snapshot(options: StreamOptions, snapshot: Snapshot) -> LiveStream:
    """Build the stream that was saved, or raise StateError."""
    stream = LiveStream(options)
    if not snapshot.state:
        return stream
    magic, digest, packed = snapshot.state[:4], snapshot.state[4:20], snapshot.state[20:]
    if magic != _MAGIC or hashlib.blake2b(packed, digest_size=16).digest() != digest:
        raise StateError(f"the snapshot of stream {snapshot.stream} is damaged")
    try:
        state = msgspec.msgpack.decode(zlib.decompress(packed))
        _load(stream, state)
    except (KeyError, TypeError, ValueError, zlib.error, msgspec.MsgspecError) as error:
        raise StateError(
            f"the snapshot of stream {snapshot.stream} cannot be read: {error}"
        ) from error
    if stream.seq != snapshot.seq:
        raise StateError(
            f"the snapshot of stream {snapshot.stream} is of entry {stream.seq}, "
            f"but listed as of entry {snapshot.seq}"
        )
    return stream


def _load(stream: LiveStream, state: dict[str, Any]) -> None:
    stream.seq = state["seq"]
    stream.last_forecast, stream.last_outcome = state["last_forecast"], state["last_outcome"]
    stream.recalibrator.load(state["recalibrator"])
    for monitor, saved in zip(stream.monitors, state["monitors"], strict=True):
        monitor.load(saved)
    _load_record(stream, state["record"])
    stream.course.load(state["course"])


def _record_state(stream: LiveStream) -> dict[str, Any]:
    record = stream.record
    return {
        "groups": list(stream.groups),
        "left_out": sorted(filter(record.awaits, stream.left_out)),
        "sums": record.sums(),
        "sides": [_plain(record.side(k)) for k in range(stream.classes)],
        "open": {name: column.tobytes() for name, column in record.saved_open().items()},
    }


def _plain(numbers: dict[str, Any]) -> dict[str, Any]:
    """Return arrays as lists, halves included."""
    return {
        name: _plain(value) if isinstance(value, dict) else value
        for name, value in plain(numbers).items()
    }


def _load_record(stream: LiveStream, state: dict[str, Any]) -> None:
    record = stream.record
    stream.groups = {name: place for place, name in enumerate(state["groups"], start=1)}
    stream.left_out = set(state["left_out"])
    issued, given_up, noise, everyone, groups = state["sums"]
    record.load_sums(issued, given_up, noise, tuple(everyone), [tuple(each) for each in groups])
    for k, side in enumerate(state["sides"]):
        record.load_side(k, side)
    kinds = {"numbers": "<f8"}
    columns = {
        name: np.frombuffer(column, kinds.get(name, "<i8"))
        for name, column in state["open"].items()
    }
    record.load_open(**columns)
