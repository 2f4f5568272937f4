"""How much one request, and one client, may ask for."""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass

from truecast.errors import UnavailableError

__all__ = ["Buckets", "Limits"]

_MOST_KEYS = 10_000


@dataclass(frozen=True, slots=True)
class Limits:
    """What the service takes.

    Attributes
    ----------
    body : int
        Bytes of a body.
    rows : int
        Rows of a request.
    rate : float
        Requests a second of one token, or of one address if there are no tokens; 0 for no limit.
    waiting : int
        Requests that may wait for an answer at the same time.
    failures : float
        Wrong tokens a second from one address.
    """

    body: int = 8 * 2**20
    rows: int = 10_000
    rate: float = 0.0
    waiting: int = 2_000
    failures: float = 5.0


class Buckets:
    """A bucket for each client: it holds `burst` requests, and `rate` a second flow back into it.

    Only the clients that came last are remembered; a forgotten one has a full bucket again.

    Examples
    --------
    >>> buckets = Buckets(rate=2.0, burst=1)
    >>> buckets.take("me", now=0.0), buckets.take("me", now=0.1), buckets.take("me", now=0.6)
    (0.0, 0.4, 0.0)
    """

    def __init__(self, rate: float, burst: float | None = None) -> None:
        self.rate = rate
        self._burst = max(1.0, rate) if burst is None else burst
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key: str, now: float | None = None) -> float:
        """Take one; return 0, or the seconds to wait until there is one."""
        now = time.monotonic() if now is None else now
        level, then = self._levels.pop(key, (self._burst, now))
        level = min(self._burst, level + (now - then) * self.rate)
        granted = level >= 1.0
        self._levels[key] = (level - granted, now)
        if len(self._levels) > _MOST_KEYS:
            self._levels.popitem(last=False)
        return 0.0 if granted else (1.0 - level) / self.rate

    def require(self, key: str, what: str) -> None:
        """Take one, or raise UnavailableError."""
        wait = self.take(key)
        if wait > 0.0:
            raise UnavailableError(
                f"{what}: at most {self.rate:g} a second; wait {wait:.2g} s", 429, wait
            )
