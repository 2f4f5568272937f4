"""When a request may be sent again, and after how long; what an answer means."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import Any

from truecast.client.calls import Call
from truecast.errors import (
    AccessError,
    ConflictError,
    InputError,
    NotFoundError,
    ServiceError,
    TooLargeError,
    TruecastError,
    UnavailableError,
)

__all__ = ["Tries", "encoded"]

FIRST, LONGEST = 0.1, 10.0  # seconds between tries, at most: the first time, and ever
PATIENCE = 60.0  # seconds that a service may ask us to wait
_NOTHING_DONE = {429, 503}  # the service says that it has changed nothing
_MAYBE_DONE = {502, 504}  # a proxy lost the answer
_KINDS: dict[int, type[ServiceError]] = {
    401: AccessError,
    403: AccessError,
    404: NotFoundError,
    409: ConflictError,
    413: TooLargeError,
}


class Tries:
    """The tries of one call.

    A try that may have reached the service is repeated only if the call is repeatable; one that
    was refused with "nothing done", or never connected, always.
    """

    def __init__(self, call: Call, retries: int, service: str) -> None:
        self._call = call
        self._service = service
        self._left = retries
        self._longest = FIRST

    def answered(self, status: int, headers: Mapping[str, str], content: bytes) -> float | None:
        """Return None if that is the answer, or how long to wait; raise what the service raised."""
        if 200 <= status < 300:
            return None
        again = status in _NOTHING_DONE or (status in _MAYBE_DONE and self._call.repeatable)
        asked = _seconds(headers.get("retry-after"))
        if again and self._left > 0 and (asked or 0) <= PATIENCE:
            return self._wait(asked or 0.0)
        raise _refusal(status, asked, content)

    def lost(self, error: Exception, connected: bool) -> float:
        """Return how long to wait after there was no answer, or raise."""
        if self._left > 0 and (self._call.repeatable or not connected):
            return self._wait(0.0)
        what = "gave no answer" if connected else "cannot be reached"
        maybe = "" if self._call.repeatable or not connected else "; it may have been done"
        raise UnavailableError(
            f"the service at {self._service} {what}: {error}{maybe}", 0
        ) from error

    def _wait(self, asked: float) -> float:
        self._left -= 1
        longest, self._longest = self._longest, min(2 * self._longest, LONGEST)
        # spread, so that clients do not come back all at once
        return asked + random.uniform(0.0, longest)  # noqa: S311


def encoded(call: Call) -> bytes | None:
    """Return the body as JSON, which knows neither nan nor infinity."""
    if call.body is None:
        return None
    try:
        return json.dumps(call.body, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError) as error:
        raise InputError("body", f"must be plain numbers and text ({error})", call.body) from error


def _refusal(status: int, retry_after: float | None, content: bytes) -> TruecastError:
    problem = _problem(content)
    detail = problem.get("detail") or problem.get("title") or f"the service answered {status}"
    if status in (400, 422) and "argument" in problem:
        position = problem.get("position")
        return InputError(
            problem["argument"],
            problem.get("rule", detail),
            problem.get("value"),
            tuple(position) if isinstance(position, list) else position,
        )
    if status in (429, 502, 503, 504):
        return UnavailableError(detail, status, retry_after)
    return _KINDS.get(status, ServiceError)(detail, status)


def _problem(content: bytes) -> dict[str, Any]:
    try:
        problem = json.loads(content)
    except ValueError:
        return {}
    return problem if isinstance(problem, dict) else {}


def _seconds(text: str | None) -> float | None:
    """Read Retry-After; a date is taken as "later"."""
    try:
        return max(0.0, float(text)) if text is not None else None
    except ValueError:
        return LONGEST
