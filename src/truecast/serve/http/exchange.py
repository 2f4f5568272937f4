"""A request as handlers see it, and what they answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl

import msgspec

from truecast.errors import InputError, ServiceError, TooLargeError

if TYPE_CHECKING:
    from truecast.serve.http.app import App
    from truecast.serve.http.auth import Token
    from truecast.serve.http.routes import Route

__all__ = [
    "JSON",
    "SAFE",
    "Answer",
    "Flow",
    "Receive",
    "Request",
    "Send",
    "encoder",
    "json_answer",
    "read_body",
]

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Header = tuple[bytes, bytes]

JSON = b"application/json"
SLOWEST_BODY = 30.0  # seconds to send the rest of a body
_LONGEST_QUERY = 2_000

encoder = msgspec.json.Encoder()


#: what all answers carry: they are data, to be neither stored nor shown as a page
SAFE: tuple[Header, ...] = (
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)


class Answer(NamedTuple):
    """What goes back; pages have headers of their own in place of `SAFE`."""

    status: int
    body: bytes
    media: bytes = JSON
    headers: tuple[Header, ...] = ()
    safe: tuple[Header, ...] = SAFE


class Flow(NamedTuple):
    """What goes back piece by piece."""

    pieces: AsyncGenerator[bytes, None]
    media: bytes


class Request:
    """What came in: checked by the app, read by a handler."""

    __slots__ = ("app", "body", "headers", "id", "method", "name", "path", "query", "route", "who")

    def __init__(
        self, app: App, scope: MutableMapping[str, Any], headers: dict[bytes, bytes], id_: str
    ) -> None:
        self.app = app
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.query: bytes = scope["query_string"]
        self.headers = headers
        self.id = id_
        self.body = b""
        self.name = ""  # of the stream
        self.route: Route | None = None
        self.who: Token | None = None

    def parameters(self, *allowed: str) -> dict[str, str]:
        """Return the parameters of the address; others than these are refused."""
        if len(self.query) > _LONGEST_QUERY:
            raise ServiceError("the query of the address is too long", 414)
        try:
            pairs = parse_qsl(self.query.decode("ascii"), keep_blank_values=True, errors="strict")
        except ValueError as error:
            raise ServiceError("the query of the address is not UTF-8", 400) from error
        found = dict(pairs)
        for name in found:
            if name not in allowed:
                names = ", ".join(allowed) or "none"
                raise InputError("query", f"must have only known parameters ({names})", name)
        return found


async def read_body(receive: Receive, headers: dict[bytes, bytes], most: int) -> bytes:
    """Return the body, if it is not too long and does not take too long."""
    said = headers.get(b"content-length")
    if said is not None and int(said) > most:  # the server has checked that it is a number
        raise _too_long(most)
    message = await receive()
    body: bytes = message.get("body", b"")
    if message.get("more_body"):
        try:
            async with asyncio.timeout(SLOWEST_BODY):
                body = await _rest(receive, body, most)
        except TimeoutError as error:
            raise ServiceError(f"the body took more than {SLOWEST_BODY:.0f} s", 408) from error
    if message["type"] == "http.disconnect":
        raise ServiceError("the client left before it had sent the body", 400)
    if len(body) > most:
        raise _too_long(most)
    return body


async def _rest(receive: Receive, first: bytes, most: int) -> bytes:
    pieces, length = [first], len(first)
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ServiceError("the client left before it had sent the body", 400)
        pieces.append(message.get("body", b""))
        length += len(pieces[-1])
        if length > most:
            raise _too_long(most)
        if not message.get("more_body"):
            return b"".join(pieces)


def _too_long(most: int) -> TooLargeError:
    return TooLargeError(f"a body has at most {most:,} bytes; send several requests")


def json_answer(value: Any, status: int = 200) -> Answer:
    """Return a value as JSON."""
    return Answer(status, encoder.encode(value))
