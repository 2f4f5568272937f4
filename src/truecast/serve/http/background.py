"""A service in a thread: for tests, examples and notebooks."""

from __future__ import annotations

import asyncio
import queue
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
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
        said: queue.SimpleQueue[Any] = queue.SimpleQueue()
        thread = threading.Thread(
            target=_run, args=(settings, said), name="truecast-serving", daemon=True
        )
        thread.start()
        first = said.get()
        if isinstance(first, BaseException):
            raise first
        url, stop = first
        try:
            yield url
        finally:
            with suppress(RuntimeError):  # its loop is closed: it has ended by itself
                stop()
            thread.join()
            if (error := said.get()) is not None:
                raise error


def _run(settings: Settings, said: queue.SimpleQueue[Any]) -> None:
    """Serve; say the address and how to stop once requests are taken, at the end any error."""

    async def main() -> None:
        loop, event = asyncio.get_running_loop(), asyncio.Event()

        def started(url: str) -> None:
            said.put((url, lambda: loop.call_soon_threadsafe(event.set)))

        await serve(settings, started=started, stop=event, signals=False)

    try:
        with asyncio.Runner(loop_factory=fast_loop()) as runner:
            runner.run(main())
        said.put(None)
    except BaseException as error:
        said.put(error)
