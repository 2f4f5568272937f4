"""Errors as problems (RFC 9457): what was refused, and what to do instead."""

from __future__ import annotations

import math
from http import HTTPStatus
from typing import Any

import msgspec

from truecast.errors import InputError, ServiceError
from truecast.serve.http.exchange import Answer, encoder

__all__ = ["PROBLEM", "Problem", "problem_of", "refusal"]

PROBLEM = b"application/problem+json"
_LONGEST = 200  # characters of a value that is shown


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What went wrong.

    Attributes
    ----------
    type : str
        Its kind, `urn:truecast:` and the title.
    title : str
        Its kind in words, the same for all of this kind.
    status : int
        The status of the answer.
    detail : str
        What was refused, and what to do instead.
    argument, rule, value, position
        If a value breaks a rule: its name, the rule, the value, and where it is in a list.
    request : str
        The id of the request, as in the log.
    error : str
        The detail once more, where the Open Inference Protocol looks for it.
    """

    type: str
    title: str
    status: int
    detail: str
    argument: str | None = None
    rule: str | None = None
    value: str | int | float | None = None
    position: int | list[int] | None = None
    request: str | None = None
    error: str | None = None


def problem_of(error: Exception, request: str, *, inference: bool = False) -> Problem:
    """Return what an error says to the one who asked."""
    status = _status(error)
    title = _TITLES.get(status) or HTTPStatus(status).phrase.lower()
    broken: dict[str, Any] = {}
    if isinstance(error, InputError):
        broken = {
            "argument": error.argument,
            "rule": error.rule,
            "value": _plain(error.value),
            "position": list(error.position)
            if isinstance(error.position, tuple)
            else error.position,
        }
    detail = str(error) if status != 500 else "the service failed; its log says more"
    return Problem(
        type=f"urn:truecast:{title.replace(' ', '-')}",
        title=title,
        status=status,
        detail=detail,
        request=request,
        error=detail if inference else None,
        **broken,
    )


def refusal(problem: Problem, error: Exception | None = None) -> Answer:
    """Return a problem as an answer."""
    headers: list[tuple[bytes, bytes]] = []
    if problem.status in (429, 503):
        after = getattr(error, "retry_after", None) or 1.0
        headers.append((b"retry-after", str(math.ceil(after)).encode()))
    if problem.status == 401:
        headers.append((b"www-authenticate", b'Bearer realm="truecast"'))
    if problem.status in (408, 413):  # the rest of the body is not read
        headers.append((b"connection", b"close"))
    return Answer(problem.status, encoder.encode(problem), PROBLEM, tuple(headers))


_TITLES = {
    400: "unreadable",
    401: "token needed",
    403: "not allowed",
    404: "not found",
    409: "contradiction",
    413: "too large",
    415: "wrong content type",
    422: "breaks a rule",
    429: "too often",
    500: "failed",
    503: "unavailable",
}


def _status(error: Exception) -> int:
    if isinstance(error, InputError):
        return 422
    return error.status if isinstance(error, ServiceError) else 500


def _plain(value: object) -> str | int | float | None:
    if value is None or (isinstance(value, int) and abs(value) < 2**53):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    try:
        text = value if isinstance(value, str) else repr(value)
    except Exception:  # an int of thousands of digits, say
        text = f"something of type {type(value).__name__}"
    return text.encode("utf-8", "replace").decode()[:_LONGEST]
