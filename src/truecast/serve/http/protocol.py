"""HTTP on the wire: uvicorn's, with limits on the head of a request, and answers in one piece.

uvicorn has no such limits, and writes the head and the body of an answer one after the other. Two
writes cost the service and the client twice the work of one.
"""

from __future__ import annotations

from asyncio import TimerHandle, Transport
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

__all__ = ["Protocol"]

LONGEST_HEAD = 64 * 2**10  # bytes
SLOWEST_HEAD = 20.0  # seconds


class _Joined:
    """A transport that holds the head of an answer back until the body follows."""

    __slots__ = ("_head", "_transport", "is_closing")

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._head = b""
        self.is_closing = transport.is_closing

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
        """Write what is held back, and hang up."""
        self.flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class Protocol(HttpToolsProtocol):
    """A connection: the head of each request must be short, and complete in time."""

    _head: int | None = None  # bytes of a head that is not complete
    _timer: TimerHandle | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Expect a first request."""
        super().connection_made(_Joined(transport))  # type: ignore[arg-type]
        self._timer = self.loop.call_later(SLOWEST_HEAD, self._too_slow)

    def connection_lost(self, exc: Exception | None) -> None:
        """Expect nothing more."""
        self._calm()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read; refuse a head without end."""
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

    def _calm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_slow(self) -> None:
        self._timer = None
        if not self.transport.is_closing():
            self.transport.close()
