"""Arrays for PostgreSQL in its binary format: made as a whole, not one element after the other.

psycopg looks at each element of a list to find out what it is. Ours are known: 64-bit integers,
bytes and texts, none of them null.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

import numpy as np
from psycopg import Connection
from psycopg.adapt import Dumper
from psycopg.pq import Format

__all__ = ["Blobs", "Numbers", "Texts", "register"]

_HEADER = struct.Struct("!iiIii")  # dimensions, whether there are nulls, type, length, first place
_LENGTH = struct.Struct("!i")
_NUMBER = np.dtype([("length", ">i4"), ("value", ">i8")])


class Numbers(tuple[int, ...]):
    """To be sent as bigint[]."""

    __slots__ = ()


class Blobs(tuple[bytes, ...]):
    """To be sent as bytea[]."""

    __slots__ = ()


class Texts(tuple[str, ...]):
    """To be sent as text[]."""

    __slots__ = ()


class _NumbersDumper(Dumper):
    format, oid = Format.BINARY, 1016

    def dump(self, obj: Numbers) -> bytes:
        rows = np.empty(len(obj), _NUMBER)
        rows["length"], rows["value"] = 8, obj
        return _headed(20, len(obj), rows.tobytes())


class _BlobsDumper(Dumper):
    format, oid = Format.BINARY, 1001

    def dump(self, obj: Blobs) -> bytes:
        return _headed(17, len(obj), _joined(obj))


class _TextsDumper(Dumper):
    format, oid = Format.BINARY, 1009

    def dump(self, obj: Texts) -> bytes:
        return _headed(25, len(obj), _joined([text.encode() for text in obj]))


def _headed(kind: int, length: int, rows: bytes) -> bytes:
    return _HEADER.pack(int(length > 0), 0, kind, length, 1)[: None if length else 12] + rows


def _joined(values: Iterable[bytes]) -> bytes:
    return b"".join([part for value in values for part in (_LENGTH.pack(len(value)), value)])


def register(connection: Connection[Any]) -> None:
    """Let a connection send these."""
    for kind, dumper in ((Numbers, _NumbersDumper), (Blobs, _BlobsDumper), (Texts, _TextsDumper)):
        connection.adapters.register_dumper(kind, dumper)
