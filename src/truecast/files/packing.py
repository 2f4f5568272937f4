"""Compressed streams: which there are, by their first bytes and by the ends of names."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import PurePath
from typing import IO, Any

from truecast.errors import FileError

__all__ = ["pack", "packed_by", "reading_errors", "unpack"]

_MAGIC = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ\x00": ".xz", b"\x28\xb5\x2f\xfd": ".zst"}
_OPEN: dict[str, Callable[[IO[bytes], str], Any]] = {
    # the same bytes whenever it is written
    ".gz": lambda raw, mode: gzip.GzipFile("", mode, 6, raw, mtime=0),
    ".bz2": lambda raw, mode: bz2.BZ2File(raw, mode),  # type: ignore[call-overload]
    ".xz": lambda raw, mode: lzma.LZMAFile(raw, mode),  # noqa: SIM115
    ".zst": lambda raw, mode: _zstd().ZstdFile(raw, mode),
}
_PART = 1 << 16
_UNPACKERS: dict[str, Callable[[], Any]] = {
    ".bz2": bz2.BZ2Decompressor,
    ".xz": lzma.LZMADecompressor,
}


def packed_by(path: str | PurePath) -> str | None:
    """Return the ending that says how the file of this name is compressed, if it is."""
    ending = PurePath(path).suffix.lower()
    return ending if ending in _OPEN else None


def unpack(name: str, stream: io.BufferedReader) -> io.BufferedReader:
    """Return the content of a stream, which may be compressed."""
    head = stream.peek(6)
    ending = next((ending for magic, ending in _MAGIC.items() if head.startswith(magic)), None)
    if ending is None:
        return stream
    try:
        content = (
            _JoinedStreams(stream, _UNPACKERS[ending])
            if ending in _UNPACKERS
            else _OPEN[ending](stream, "rb")
        )
        return io.BufferedReader(content, 1 << 20)
    except ImportError as error:
        raise FileError(
            name, "is compressed with zstd: pip install 'truecast[cli]' to read it"
        ) from error


def pack(name: str, raw: IO[bytes], ending: str) -> Any:
    """Return a stream to write to, which is compressed to another; closing it leaves that open."""
    try:
        return _OPEN[ending](raw, "wb")
    except ImportError as error:
        raise FileError(
            name, "cannot be compressed with zstd: pip install 'truecast[cli]' for that"
        ) from error


class _JoinedStreams(io.RawIOBase):
    """What compressed streams hold, one after the other.

    Python's own files end in silence where something else follows, such as a stream whose first
    byte is damaged.
    """

    def __init__(self, packed: io.BufferedReader, new: Callable[[], Any]) -> None:
        self._packed = packed
        self._new = new
        self._unpacker = new()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part = b""
        while not part:
            more = b""
            if self._unpacker.eof:
                more = self._next_stream()
                if not more:
                    return 0
                self._unpacker = self._new()
            elif self._unpacker.needs_input:
                more = self._packed.read1(_PART)
                if not more:
                    raise EOFError
            part = self._unpacker.decompress(more, len(buffer))
        buffer[: len(part)] = part
        return len(part)

    def _next_stream(self) -> bytes:
        """Return the beginning of the next one, if there is one; zeros may stand between them."""
        more: bytes = self._unpacker.unused_data.lstrip(b"\0")
        while not more and (part := self._packed.read1(_PART)):
            more = part.lstrip(b"\0")
        return more


@contextmanager
def reading_errors(name: str) -> Iterator[None]:
    """Say in a sentence why a file cannot be opened, or not be read on."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as error:
        raise FileError(name, "does not exist: no such file") from error
    except IsADirectoryError as error:
        raise FileError(name, "is a folder, not a file") from error
    except PermissionError as error:
        raise FileError(name, "may not be read: permission denied") from error
    except EOFError as error:
        raise FileError(name, "is cut short: its compressed data ends too early") from error
    except Exception as error:
        if _damaged(error):
            raise FileError(name, f"is damaged: it cannot be unpacked ({error})") from error
        raise


def _damaged(error: Exception) -> bool:
    # of the machine if it has a number; gzip and bz2 raise them, too
    if isinstance(error, OSError):
        return error.errno is None
    return isinstance(error, zlib.error | lzma.LZMAError) or type(error).__name__ == "ZstdError"


def _zstd() -> Any:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd
