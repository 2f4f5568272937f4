"""The routes of the service itself: health, metrics, its description, the dashboard."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from truecast.errors import UnavailableError
from truecast.serve.dashboard import HEADERS, Page, pages
from truecast.serve.http.exchange import Answer, Flow, Request, json_answer
from truecast.serve.http.metrics import exposition
from truecast.serve.http.routes import Route
from truecast.serve.http.sse import events

__all__ = ["ROUTES", "Alive", "Ready", "alive", "ready"]


class Alive(msgspec.Struct, frozen=True):
    """The process answers."""

    live: bool


class Ready(msgspec.Struct, frozen=True):
    """Whether forecasts and outcomes are taken, and if not, why; only `read` hears the reason."""

    ready: bool
    reason: str | None = None


async def alive(request: Request) -> Answer:
    """Say that the process answers."""
    return json_answer(Alive(True))


async def ready(request: Request) -> Answer:
    """Say whether requests are taken."""
    health = request.app.health()
    trusted = request.who is not None and "read" in request.who.scopes
    reason = health.reason if trusted else None
    return json_answer(Ready(health.ready, reason), 200 if health.ready else 503)


async def metrics(request: Request) -> Answer:
    """Give numbers to Prometheus."""
    page = await asyncio.to_thread(exposition, request.app)  # 10,000 streams take a while
    return Answer(200, page.encode(), b"text/plain; version=0.0.4")


async def description(request: Request) -> Answer:
    """Describe all routes."""
    return Answer(200, request.app.openapi)


async def documentation(request: Request) -> Answer:
    """Show the description to people."""
    return _page(request, request.app.documentation)


async def follow(request: Request) -> Flow:
    """Tell of changes as they come."""
    app = request.app
    if app.listeners >= _MOST_LISTENERS:
        raise UnavailableError(f"{_MOST_LISTENERS} listen already", 503, 10.0)
    return Flow(events(app, app.service), b"text/event-stream")


async def dashboard(request: Request) -> Answer:
    """Show the dashboard, or a file of it."""
    return _page(request, _PAGES.get(request.path, _PAGES["/"]))


def _page(request: Request, page: Page) -> Answer:
    """Answer a page, if the browser does not have it."""
    etag, media = page.etag.encode(), page.media_type.encode()
    known = request.headers.get(b"if-none-match") == etag
    content = b"" if known else page.content
    return Answer(304 if known else 200, content, media, ((b"etag", etag),), _PAGE_HEADERS)


_MOST_LISTENERS = 200
_PAGES = pages()
_PAGE_HEADERS = tuple((name.encode(), value.encode()) for name, value in HEADERS.items())
_HTML = "text/html"

ROUTES: list[Route] = [
    Route("GET", "/healthz", alive, None, "Whether the process answers", gives=Alive),
    Route("GET", "/readyz", ready, None, "Whether requests are taken", gives=Ready,
          also={503: Ready}),
    Route("GET", "/metrics", metrics, "read", "Numbers for Prometheus", media="text/plain",
          refuses=(503,)),
    Route("GET", "/openapi.json", description, None, "This description", gives=dict[str, Any]),
    Route("GET", "/docs", documentation, None, "This description, to read", media=_HTML),
    Route("GET", "/events", follow, "read", "Changes as they come", media="text/event-stream",
          refuses=(503,)),
    Route("GET", "/streams/{name}/page", dashboard, None, "The dashboard of a stream",
          media=_HTML),
    *(Route("GET", path, dashboard, None, "The dashboard", media=page.media_type)
      for path, page in _PAGES.items()),
]  # fmt: skip
