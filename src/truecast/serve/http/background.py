"""A service in a thread: for tests, examples and notebooks."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from truecast.serve.http.run import Settings, fast_loop, serve

__all__ = ["serving"]


@contextmanager
def serving(data: str | Path | None = None, **options: Any) -> Iterator[str]:
    """See `truecast.testing.serving`."""
    with ExitStack() as stack:
        folder = data or stack.enter_context(tempfile.TemporaryDirectory())
        path = Path(folder).resolve() / "truecast.db"
        settings = Settings(**{"database": f"sqlite:///{path}", "port": 0, **options})
        service = _Background(settings)
        service.start()
        try:
            yield service.url()
        finally:
            service.end()


class _Background:
    def __init__(self, settings: Settings) -> None:
        self._thread = threading.Thread(target=self._run, name="truecast-serving", daemon=True)
        self._settings = settings
        self._ready = threading.Event()
        self._url = ""
        self._error: BaseException | None = None
        self._stop: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=fast_loop()) as runner:
                runner.run(self._serve())
        except BaseException as error:
            self._error = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        await serve(self._settings, started=self._started, stop=self._stop, signals=False)

    def _started(self, url: str) -> None:
        self._url = url
        self._ready.set()

    def url(self) -> str:
        """Wait until requests are taken."""
        self._ready.wait()
        if self._error is not None:
            raise self._error
        return self._url

    def end(self) -> None:
        """Stop it, and raise what it raised."""
        if self._thread.is_alive() and self._loop is not None and self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        if self._error is not None:
            raise self._error
