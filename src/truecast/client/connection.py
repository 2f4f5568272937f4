"""How both clients connect: what they check, and what they ask httpx for."""

from __future__ import annotations

import math
from typing import Any, ClassVar
from urllib.parse import urlsplit

from truecast.client.calls import MOST_ROWS, Call, Calls
from truecast.client.tries import Tries, encoded
from truecast.errors import InputError

__all__ = ["Connected", "arguments", "confirmed"]

_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


class Connected:
    """What both clients are made with, and keep; `_kind` is the client of httpx that sends."""

    _kind: ClassVar[str]

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        timeout: float = 10.0,
        retries: int = 4,
        most_rows: int = MOST_ROWS,
    ) -> None:
        self._calls = Calls(most_rows)
        self._retries = retries
        try:
            import httpx
        except ImportError as error:
            raise ImportError("a client needs httpx: pip install 'truecast[client]'") from error
        self._httpx: Any = httpx
        self._http: Any = getattr(httpx, self._kind)(**_options(url, token, timeout, retries))

    def _tries(self, call: Call) -> Tries:
        url = self._http.base_url
        return Tries(call, self._retries, f"{url.scheme}://{url.netloc.decode()}")

    def _was_connected(self, error: Exception) -> bool:
        """Whether something of the request may have reached the service."""
        httpx = self._httpx
        return not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)


def _options(url: str, token: str | None, timeout: float, retries: int) -> dict[str, Any]:
    """Check what a client is made with; return what httpx takes."""
    parts = urlsplit(url) if isinstance(url, str) else None
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError("url", "must begin with http:// or https:// and a host", url)
    if token is not None and not (isinstance(token, str) and token.isascii() and token.strip()):
        raise InputError("token", "must be a token as the service printed it", "(not shown)")
    if not isinstance(timeout, int | float) or not 0 < timeout < math.inf:
        raise InputError("timeout", "must be a number of seconds above 0", timeout)
    if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
        raise InputError("retries", "must be a whole number, 0 or more", retries)
    headers = {"accept": "application/json", "user-agent": "truecast"}
    if token is not None:
        headers["authorization"] = f"Bearer {token.strip()}"
    return {
        "base_url": url.rstrip("/"),
        "headers": headers,
        "timeout": timeout,
        "follow_redirects": False,  # a token goes nowhere else
        "trust_env": parts.hostname not in _LOOPBACK,  # no proxy knows the way to this machine
    }


def arguments(call: Call) -> dict[str, Any]:
    """Return a call as arguments of httpx's `request`."""
    found: dict[str, Any] = {"method": call.method, "url": call.path}
    if call.query is not None:
        found["params"] = dict(call.query)
    if (content := encoded(call)) is not None:
        found |= {"content": content, "headers": {"content-type": "application/json"}}
    return found


def confirmed(stream: str, confirm: str) -> None:
    """Refuse to delete what was not named twice."""
    if confirm != stream:
        raise InputError("confirm", f"must be the name of the stream, {stream!r}", confirm)
