"""Changes of streams as server-sent events: what the dashboard listens to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

from truecast.serve.http.exchange import encoder

if TYPE_CHECKING:
    from truecast.serve.http.app import App
    from truecast.serve.service import Service

__all__ = ["events"]

BEAT = 10.0  # seconds between signs of life
LOOK = 0.5  # seconds between looks at whether the service is ready, or stops


async def events(app: App, service: Service) -> AsyncGenerator[bytes, None]:
    """Give events until the service stops."""
    waiting: asyncio.Queue[bytes] = asyncio.Queue(maxsize=1_000)
    pump = asyncio.create_task(_pump(service, waiting))
    health, beat = _health(app), 0.0
    app.listeners += 1
    try:
        yield _event("hello", {"streams": len(service.streams()), **health})
        while not app.stopping.is_set() and not pump.done():
            try:
                yield await asyncio.wait_for(waiting.get(), LOOK)
            except TimeoutError:
                beat += LOOK
                if beat >= BEAT:
                    beat = 0.0
                    yield b": still here\n\n"
            if (now := _health(app)) != health:
                health = now
                yield _event("health", health)
    finally:
        app.listeners -= 1
        pump.cancel()


def _health(app: App) -> dict[str, Any]:
    """Return how it is now: a copy, since the writer changes its own."""
    health = app.health()
    return {"ready": health.ready, "reason": health.reason}


async def _pump(service: Service, waiting: asyncio.Queue[bytes]) -> None:
    """Pass changes on; one who reads too slowly is cut off, and comes back with a fresh look."""
    async for change in service.subscribe():
        if waiting.full():
            return
        if change.info is None:
            waiting.put_nowait(_event("deleted", {"name": change.name}))
        else:
            waiting.put_nowait(_event("change", change.info))


def _event(name: str, data: Any) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + encoder.encode(data) + b"\n\n"
