"""The application: each request is admitted, read, handled and answered here."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import MutableMapping
from contextlib import aclosing
from itertools import count
from time import perf_counter
from typing import TYPE_CHECKING, Any

from truecast.errors import AccessError, ServiceError, UnavailableError
from truecast.serve.http import inference, streams, system
from truecast.serve.http.auth import ANYONE, Tokens, bearer
from truecast.serve.http.documentation import documentation
from truecast.serve.http.exchange import (
    SAFE,
    Answer,
    Flow,
    Receive,
    Request,
    Send,
    encoder,
    read_body,
)
from truecast.serve.http.hosts import Hosts
from truecast.serve.http.limits import Buckets, Limits
from truecast.serve.http.logs import log
from truecast.serve.http.openapi import described
from truecast.serve.http.problems import problem_of, refusal
from truecast.serve.http.routes import Route, Table
from truecast.serve.http.traffic import Traffic
from truecast.serve.writer import Health

if TYPE_CHECKING:
    from truecast.serve.service import Service

__all__ = ["App", "table"]

_CHARACTERS = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
_REFUSALS_LOGGED = 10.0  # a second


def table() -> Table:
    """Return all routes."""
    return Table([*system.ROUTES, *streams.ROUTES, *inference.ROUTES])


class App:
    """An ASGI application over a `Service`.

    Parameters
    ----------
    service
        None while another process writes: a standby is alive, but not ready.
    tokens
        None lets anyone in: for services that only this machine can reach.
    hosts
        Which names of this service a browser may use.
    """

    def __init__(
        self,
        service: Service | None,
        *,
        tokens: Tokens | None = None,
        hosts: Hosts | None = None,
        limits: Limits | None = None,
        log_all: bool = False,
    ) -> None:
        self.table = table()
        description = described(self.table)
        self.openapi = encoder.encode(description)
        self.documentation = documentation(description)
        self.tokens = tokens
        self.hosts = hosts or Hosts()
        self.limits = limits or Limits()
        self.traffic = Traffic()
        self.stopping = asyncio.Event()
        self.listeners = 0
        self._service = service
        self._log_all = log_all
        self._asked = Buckets(self.limits.rate) if self.limits.rate > 0 else None
        self._failed = Buckets(self.limits.failures, burst=4 * self.limits.failures)
        self._logged = Buckets(_REFUSALS_LOGGED)
        self._waiting = 0
        self._unique = secrets.token_hex(4)
        self._numbers = count(1)

    def health(self) -> Health:
        """Whether requests are taken."""
        if self.stopping.is_set():
            return Health(reason="stopping")
        if self._service is None:
            return Health(reason="waiting for the database")
        return self._service.health

    @property
    def service(self) -> Service:
        """The service, or UnavailableError."""
        if self._service is None:
            raise UnavailableError("waiting for the database", 503, 1.0)
        return self._service

    @service.setter
    def service(self, service: Service) -> None:
        self._service = service

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            raise NotImplementedError(f"no {scope['type']} here")
        began = perf_counter()
        headers = dict(scope["headers"])
        request = Request(self, scope, headers, self._id(headers))
        self._waiting += 1
        try:
            answer = await self._answered(request, scope, receive)
        except Exception as error:
            answer = self._refused(request, error)
        finally:
            self._waiting -= 1
        if isinstance(answer, Flow):
            await self._flow(request, answer, receive, send)
            return
        await _send(request, answer, send)
        label = request.route.label if request.route else "other"
        took = perf_counter() - began
        self.traffic.count(label, answer.status, took)
        if self._log_all:
            self._note(logging.INFO, "request", request, answer.status, seconds=round(took, 6))

    async def _answered(
        self, request: Request, scope: MutableMapping[str, Any], receive: Receive
    ) -> Answer | Flow:
        routes, name = self.table.find(request.path)
        method = "GET" if request.method == "HEAD" else request.method
        route = routes.get(method)
        if route is None:
            return self._no_method(request, routes)
        request.route, request.name = route, name
        self.hosts.check(request.headers)
        self._admit(request, route, scope)
        if self._waiting > self.limits.waiting:
            raise UnavailableError("too many requests are waiting", 503, 1.0)
        if route.takes is not None:
            _check_content_type(request.headers)
            request.body = await read_body(receive, request.headers, self.limits.body)
        return await route.handler(request)

    def _admit(self, request: Request, route: Route, scope: MutableMapping[str, Any]) -> None:
        """Find out who asks; refuse who may not, or asks too often."""
        address = scope["client"][0] if scope.get("client") else "unknown"
        if self.tokens is None:
            request.who = ANYONE
            key = address
        elif route.scope is None and b"authorization" not in request.headers:
            return
        else:
            request.who = self.tokens.who(bearer(request.headers.get(b"authorization")))
            if request.who is None:
                self._failed.require(address, "wrong tokens")
                raise AccessError("this token is not known here", 401)
            key = request.who.name
        if route.scope is not None and route.scope not in request.who.scopes:
            raise AccessError(f"this token lacks the scope {route.scope!r}", 403)
        if self._asked is not None:
            self._asked.require(key, "requests")

    def _no_method(self, request: Request, routes: dict[str, Route]) -> Answer:
        allowed = sorted({*routes, "OPTIONS", *(["HEAD"] if "GET" in routes else [])})
        headers = ((b"allow", ", ".join(allowed).encode()),)
        if request.method == "OPTIONS":
            return Answer(204, b"", headers=headers)
        error = ServiceError(f"{request.path[:200]!r} knows only {', '.join(allowed)}", 405)
        return self._refused(request, error)._replace(headers=headers)

    def _refused(self, request: Request, error: Exception) -> Answer:
        problem = problem_of(error, request.id, inference=request.path.startswith("/v2"))
        if problem.status >= 500 and problem.status != 503:
            self._note(logging.ERROR, "failed", request, problem.status, trace=error)
        elif not self._log_all and self._logged.take("") == 0.0:
            self._note(logging.WARNING, "refused", request, problem.status, detail=problem.detail)
        if request.name and self._service is not None:
            self._service.note_error(request.name, problem.status, problem.title, problem.detail)
        return refusal(problem, error)

    def _note(
        self,
        level: int,
        message: str,
        request: Request,
        status: int,
        trace: Exception | None = None,
        **more: Any,
    ) -> None:
        who = request.who.name if request.who else None
        fields = {"request": request.id, "method": request.method, "path": request.path}
        log(level, message, trace, **fields, status=status, token=who, **more)

    def _id(self, headers: dict[bytes, bytes]) -> str:
        """Return the request's id: the caller's, if it can stand in a log."""
        given = headers.get(b"x-request-id")
        if given is not None and 0 < len(given) <= 64 and _CHARACTERS.issuperset(given):
            return given.decode()
        return f"{self._unique}-{next(self._numbers)}"

    async def _flow(self, request: Request, flow: Flow, receive: Receive, send: Send) -> None:
        headers = [(b"content-type", flow.media), (b"x-accel-buffering", b"no"), *SAFE]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        if request.method == "HEAD":
            await send({"type": "http.response.body", "body": b""})
            return
        gone = asyncio.ensure_future(_left(receive))
        try:
            async with aclosing(flow.pieces) as pieces:
                async for piece in pieces:
                    if gone.done():
                        break
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
        finally:
            gone.cancel()
        await send({"type": "http.response.body", "body": b""})


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _send(request: Request, answer: Answer, send: Send) -> None:
    body = answer.body
    headers = [
        (b"content-type", answer.media),
        (b"content-length", str(len(body)).encode()),
        (b"x-request-id", request.id.encode()),
        *answer.headers,
        *answer.safe,
    ]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    whole = b"" if request.method == "HEAD" else body
    await send({"type": "http.response.body", "body": whole})


def _check_content_type(headers: dict[bytes, bytes]) -> None:
    """Refuse all but JSON; a form on another site cannot send that without asking first."""
    kind = headers.get(b"content-type", b"")
    if kind != b"application/json":
        name, _, charset = kind.decode("latin-1").lower().partition(";")
        if name.strip() != "application/json" or charset.strip() not in ("", "charset=utf-8"):
            raise ServiceError("send the header `Content-Type: application/json`", 415)
    if headers.get(b"content-encoding", b"identity").lower() != b"identity":
        raise ServiceError("send the body as it is, without a content encoding", 415)
