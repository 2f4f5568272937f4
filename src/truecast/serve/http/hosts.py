"""Who a browser thinks it talks to.

A page elsewhere can point its own name at this machine (DNS rebinding), or send requests across
sites. Without tokens, nothing else would stop it.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from truecast.errors import ServiceError

__all__ = ["LOOPBACK", "Hosts"]

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class Hosts:
    """The names by which this service may be asked.

    Parameters
    ----------
    names
        None for any: a service with tokens needs no such check.
    """

    def __init__(self, names: frozenset[str] | None = LOOPBACK) -> None:
        self._names = names
        self._known: set[bytes] = set()  # headers that were checked before

    def check(self, headers: dict[bytes, bytes]) -> None:
        """Refuse a foreign name, and what a page of another site sends."""
        host = headers.get(b"host", b"")
        if self._names is not None and host not in self._known:
            if _name(host.decode("latin-1")) not in self._names:
                raise ServiceError("this service does not go by the name in `Host`", 421)
            if len(self._known) < 100:
                self._known.add(host)
        origin = headers.get(b"origin")
        if origin is not None:
            sent = urlsplit(origin.decode("latin-1")).netloc.lower()
            if sent.encode("latin-1") != host.lower():
                raise ServiceError("pages of other sites may not use this service", 403)


def _name(host: str) -> str | None:
    """Return the name without the port, or None."""
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None
