"""How both clients connect: what they check, and what they ask httpx for."""

from __future__ import annotations

import math
from typing import Any
from urllib.parse import urlsplit

from truecast.client.calls import Call
from truecast.client.tries import encoded
from truecast.errors import InputError

__all__ = ["address", "arguments", "confirmed", "httpx_or_explain", "is_unconnected", "options"]

_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


def httpx_or_explain() -> Any:
    """Import httpx, or say how to get it."""
    try:
        import httpx
    except ImportError as error:
        raise ImportError("a client needs httpx: pip install 'truecast[client]'") from error
    return httpx


def options(url: str, token: str | None, timeout: float, retries: int) -> dict[str, Any]:
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


def address(http: Any) -> str:
    """Return where a client of httpx sends to, without a name and password."""
    url = http.base_url
    return f"{url.scheme}://{url.netloc.decode()}"


def arguments(call: Call) -> dict[str, Any]:
    """Return a call as arguments of httpx's `request`."""
    found: dict[str, Any] = {"method": call.method, "url": call.path}
    if call.query is not None:
        found["params"] = dict(call.query)
    if (content := encoded(call)) is not None:
        found |= {"content": content, "headers": {"content-type": "application/json"}}
    return found


def is_unconnected(httpx: Any, error: Exception) -> bool:
    """Whether nothing of the request can have reached the service."""
    return isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)


def confirmed(stream: str, confirm: str) -> None:
    """Refuse to delete what was not named twice."""
    if confirm != stream:
        raise InputError("confirm", f"must be the name of the stream, {stream!r}", confirm)
