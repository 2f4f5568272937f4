"""What is written to the journal: entries in a chain of checksums.

The format is described in docs/serve.md. The bodies are msgpack arrays; columns of numbers in them
are little-endian bytes. An entry's checksum covers the one before, its own header, and the digest
of its body. So a body can be erased, when a stream is deleted, and the chain still holds.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Sequence
from enum import IntEnum
from functools import partial
from typing import Any, NamedTuple

import msgspec

from truecast.errors import StateError

__all__ = [
    "ORIGIN",
    "Body",
    "Created",
    "Deleted",
    "Entry",
    "Forecasts",
    "GivenUp",
    "Head",
    "Kind",
    "Outcomes",
    "chained",
    "decode",
    "decode_many",
    "digest_of",
    "encode",
    "entry_of",
]

_HEADER = struct.Struct("<qqqq")
ORIGIN = bytes(16)  # the checksum before the first entry


class Kind(IntEnum):
    """What happened."""

    CREATED = 1
    FORECASTS = 2
    OUTCOMES = 3
    GIVEN_UP = 4
    DELETED = 5


class Created(msgspec.Struct, array_like=True, frozen=True):
    """A stream begins."""

    name: str
    options: bytes  # JSON


class Forecasts(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Rows that were forecast together; tickets are numbered on from `first`."""

    first: int
    ids: list[str]
    scores: bytes  # float64, a row after the other
    said: bytes  # float64: the answers
    groups: list[str | list[str] | None] | None = None
    events: list[str | None] | None = None
    times: list[str | None] | None = None  # as the caller gave them; nothing depends on them


class Outcomes(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Outcomes that were learned together."""

    ids: list[str]
    tickets: bytes  # int64
    outcomes: bytes  # int32: 0 and 1, or the number of the class


class GivenUp(msgspec.Struct, array_like=True, frozen=True):
    """Forecasts whose outcomes are awaited no longer."""

    tickets: bytes  # int64


class Deleted(msgspec.Struct, array_like=True, frozen=True):
    """A stream ends."""

    name: str


Body = Created | Forecasts | Outcomes | GivenUp | Deleted
_TYPES: dict[int, type[Body]] = {
    Kind.CREATED: Created,
    Kind.FORECASTS: Forecasts,
    Kind.OUTCOMES: Outcomes,
    Kind.GIVEN_UP: GivenUp,
    Kind.DELETED: Deleted,
}
_KINDS = {body: kind for kind, body in _TYPES.items()}
_ENCODER = msgspec.msgpack.Encoder()
_DECODERS = {kind: msgspec.msgpack.Decoder(body) for kind, body in _TYPES.items()}
_LISTS: dict[int, msgspec.msgpack.Decoder[Any]] = {
    kind: msgspec.msgpack.Decoder(list[body])  # type: ignore[valid-type]
    for kind, body in _TYPES.items()
}


class Entry(NamedTuple):
    """A line of the journal."""

    seq: int  #: from 1, without gaps, over all streams
    stream: int  #: the stream's number
    at: int  #: milliseconds since 1970; never less than the entry before
    kind: int
    digest: bytes  #: of the body
    chain: bytes  #: the checksum
    body: bytes | None  #: None if it was erased, with its stream


#: an entry of its columns: `Entry._make`, but compiled
entry_of: Callable[[Sequence[Any]], Entry] = partial(tuple.__new__, Entry)


class Head(NamedTuple):
    """The end of the journal."""

    seq: int = 0
    at: int = 0
    chain: bytes = ORIGIN


def digest_of(body: bytes) -> bytes:
    """Return the checksum of a body."""
    return hashlib.blake2b(body, digest_size=16).digest()


def chained(before: bytes, seq: int, stream: int, at: int, kind: int, digest: bytes) -> bytes:
    """Return the checksum of an entry."""
    whole = before + _HEADER.pack(seq, stream, at, kind) + digest
    return hashlib.blake2b(whole, digest_size=16).digest()


def encode(head: Head, stream: int, at: int, body: Body) -> tuple[Entry, Head]:
    """Return the entry that comes after `head`, and the head after it."""
    seq, at, kind = head.seq + 1, max(at, head.at), _KINDS[type(body)]
    written = _ENCODER.encode(body)
    digest = digest_of(written)
    chain = chained(head.chain, seq, stream, at, kind, digest)
    return Entry(seq, stream, at, kind, digest, chain, written), Head(seq, at, chain)


def decode(entry: Entry) -> Body:
    """Return what an entry says, or raise StateError."""
    if entry.body is None:
        raise StateError(f"entry {entry.seq} was erased with its stream")
    if entry.kind not in _DECODERS:
        raise StateError(f"entry {entry.seq} is of an unknown kind, {entry.kind}")
    try:
        return _DECODERS[entry.kind].decode(entry.body)
    except (msgspec.MsgspecError, ValueError) as error:
        raise StateError(f"entry {entry.seq} cannot be read: {error}") from error


def decode_many(kind: Kind, bodies: list[bytes | None]) -> list[Any]:
    """Return what entries of one kind say, or raise StateError: `decode` says of which.

    Their bodies are read as one list, which is faster.
    """
    try:
        whole = b"".join([b"\xdd", len(bodies).to_bytes(4), *bodies])  # type: ignore[list-item]
        return _LISTS[kind].decode(whole)  # type: ignore[no-any-return]
    except (TypeError, msgspec.MsgspecError, ValueError) as error:
        raise StateError("an entry cannot be read") from error
