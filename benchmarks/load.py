"""A client that does nothing but send and count: asyncio's protocols, requests made beforehand."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator, Sequence

LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


class Connection(asyncio.Protocol):
    """Sends one request after the other, each when the answer before it is there, or when it is due."""

    def __init__(self, requests: Iterator[bytes], start: float, every: float) -> None:
        self.requests, self.start, self.every = requests, start, every
        self.loop = asyncio.get_running_loop()
        self.done = self.loop.create_future()
        self.seconds: list[float] = []
        self.buffer = b""
        self.left = -1
        self.due = start

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.plan()

    def plan(self) -> None:
        """Send the next one; if requests have a pace, not before its time."""
        if self.every:
            wait = self.due - time.perf_counter()
            if wait > 0:
                self.loop.call_later(wait, self.send)
                return
        self.send()

    def send(self) -> None:
        request = next(self.requests, None)
        if request is None:
            if not self.done.done():
                self.done.set_result(None)
            self.transport.close()
            return
        self.sent = self.due if self.every else time.perf_counter()
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        if self.left < 0:
            end = self.buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            if not self.buffer.startswith(b"HTTP/1.1 200"):
                self.loop.call_later(0.2, lambda: self.fail(self.buffer[:1000]))
                return
            self.left = end + 4 + int(LENGTH.search(self.buffer)[1])
        if len(self.buffer) >= self.left:
            self.seconds.append(time.perf_counter() - self.sent)
            self.buffer, self.left = b"", -1
            self.due += self.every
            self.plan()

    def connection_lost(self, exc: Exception | None) -> None:
        self.fail(b"connection lost")

    def fail(self, why: bytes) -> None:
        if not self.done.done():
            self.done.set_exception(RuntimeError(why.decode(errors="replace")))


async def load(
    host: str, port: int, work: Sequence[Iterator[bytes]], rate: float = 0.0
) -> tuple[float, list[float]]:
    """Run all connections; return the seconds that it took, and those of each request, sorted.

    With a rate, requests are due at that rate over all connections, and a request that is sent late counts from when
    it was due.
    """
    loop = asyncio.get_running_loop()
    every = len(work) / rate if rate else 0.0
    start = time.perf_counter()
    made = [
        await loop.create_connection(
            lambda w=requests, k=k: Connection(w, start + every * k / len(work), every), host, port
        )
        for k, requests in enumerate(work)
    ]
    try:
        await asyncio.gather(*(connection.done for _, connection in made))
    finally:
        for transport, _ in made:
            transport.close()
    took = time.perf_counter() - start
    return took, sorted(each for _, connection in made for each in connection.seconds)


def post(path: str, body: bytes, host: str) -> bytes:
    """A request, whole."""
    return (
        f"POST {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    ).encode() + body
