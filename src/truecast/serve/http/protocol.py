"""HTTP on the wire: uvicorn's, with limits on the head of a request, and answers in one piece.

uvicorn has no such limits, and writes the head and the body of an answer one after the other. Two
writes cost the service and the client twice the work of one.

A request may be refused before all of it is read. To hang up on bytes that are not read would
reset the connection, and the answer could be lost on its way: the rest is read for a moment.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop, TimerHandle, Transport
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

__all__ = ["Protocol"]

LONGEST_HEAD = 64 * 2**10  # bytes
SLOWEST_HEAD = 20.0  # seconds
LINGER = 1.0  # seconds to read the rest of what is refused


class _Joined:
    """A transport that holds the head of an answer back until the body follows."""

    __slots__ = ("_head", "_loop", "_more_to_come", "_said_its_last", "_transport")

    def __init__(
        self, transport: Transport, loop: AbstractEventLoop, more_to_come: Callable[[], bool]
    ) -> None:
        self._transport = transport
        self._loop = loop
        self._more_to_come = more_to_come
        self._head = b""
        self._said_its_last = False  # what still comes is read and ignored

    def is_closing(self) -> bool:
        """Whether nothing more can be said."""
        return self._said_its_last or self._transport.is_closing()

    def write(self, data: bytes) -> None:
        """Write, or hold back."""
        if self._head:
            self._transport.write(self._head + data)
            self._head = b""
        elif data.startswith(b"HTTP/1.1 ") and not data.startswith(b"HTTP/1.1 100 "):
            self._head = data
        else:
            self._transport.write(data)

    def flush(self) -> None:
        """Write what is held back."""
        if self._head:
            self._transport.write(self._head)
            self._head = b""

    def close(self) -> None:
        """Write what is held back, and hang up: in a moment, if the request has more to come."""
        self.flush()
        if self.is_closing() or not self._more_to_come() or not self._transport.can_write_eof():
            self._transport.close()
            return
        self._said_its_last = True
        self._transport.write_eof()
        self._transport.resume_reading()
        self._loop.call_later(LINGER, self._transport.close)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class Protocol(HttpToolsProtocol):
    """A connection: the head of each request must be short, and complete in time."""

    _head: int | None = None  # bytes of a head that is not complete
    _timer: TimerHandle | None = None
    _garbled = False  # no request can be made out

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Expect a first request."""
        joined = _Joined(transport, self.loop, self._is_unfinished)
        super().connection_made(joined)  # type: ignore[arg-type]
        self._timer = self.loop.call_later(SLOWEST_HEAD, self._too_slow)

    def connection_lost(self, exc: Exception | None) -> None:
        """Expect nothing more."""
        self._calm()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read; refuse a head without end."""
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self._head is None:
            return
        self._head += len(data)
        if self._timer is None:
            self._timer = self.loop.call_later(SLOWEST_HEAD, self._too_slow)
        if self._head > LONGEST_HEAD and not self.transport.is_closing():
            self.send_400_response("The headers are too long.")

    def on_message_begin(self) -> None:
        """Begin a head."""
        self._head = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """End a head."""
        self._head = None
        if self._timer is not None:
            self._calm()
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """End an answer, also one without a body."""
        self.transport.flush()  # type: ignore[attr-defined]
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request."""
        self._garbled = True
        super().send_400_response(msg)

    def _is_unfinished(self) -> bool:
        """Whether there may be more of the request than was read."""
        in_body = self.cycle is not None and self.cycle.more_body
        return self._garbled or self._head is not None or in_body

    def _calm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_slow(self) -> None:
        self._timer = None
        if not self.transport.is_closing():
            self.transport.close()
