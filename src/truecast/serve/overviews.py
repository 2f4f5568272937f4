"""Overviews, made beside the writer: it copies what they need, a thread does the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor

from truecast.errors import UnavailableError
from truecast.serve.halves import Chances
from truecast.serve.view import Sight, StreamView, view_of

__all__ = ["Overviews"]


class Overviews:
    """One overview at a time. Those who ask for the same stream meanwhile share the next one.

    An overview is of the last entry when its turn came, so never older than the question.

    Parameters
    ----------
    look
        Asks the writer for a copy of a stream.
    """

    def __init__(self, look: Callable[[str], Awaitable[Sight]]) -> None:
        self._look = look
        self._chances = Chances()  # only the thread has it
        self._thread = ThreadPoolExecutor(1, "truecast-overviews")
        self._turn = asyncio.Lock()
        self._waiting: dict[str, asyncio.Task[StreamView]] = {}
        self._tasks: set[asyncio.Task[StreamView]] = set()
        self._closed = False

    async def of(self, name: str) -> StreamView:
        """Return everything about a stream; raise what the writer raises."""
        if self._closed:
            raise UnavailableError("the service is being stopped")
        task = self._waiting.get(name)
        if task is None:
            task = self._waiting[name] = asyncio.create_task(self._made(name))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(task)  # a caller who leaves does not take it from the others

    async def _made(self, name: str) -> StreamView:
        async with self._turn:
            del self._waiting[name]  # who asks from now on wants a newer one
            sight = await self._look(name)
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._thread, view_of, sight, self._chances)

    async def close(self) -> None:
        """Finish what was asked for, and make no more."""
        self._closed = True
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.to_thread(self._thread.shutdown)
