"""The writer: the one thread that changes streams and the database.

It takes all requests that are waiting, applies them in order, makes them durable in one
transaction, and only then answers. If the transaction fails, all of them are refused, and the
streams that it touched are loaded again from what is durable: nothing is half done.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from truecast.errors import InputError, ServiceError, UnavailableError
from truecast.serve.events import Head
from truecast.serve.requests import Request, Work
from truecast.serve.shelf import Shelf
from truecast.serve.store import Batch, Key, Known, Store
from truecast.serve.view import StreamInfo

__all__ = ["Health", "Writer"]

MOST_ROWS = 20_000  # in a transaction
SNAPSHOT_ROWS = 50_000  # of a stream, after which it is saved
THIN = 0.5  # seconds between two news of a stream, at least
NEWS = 0.005, 20  # seconds that news take at a time; times as long is there none
SIZE = 10.0  # seconds between two looks at the size of the database
BACK_OFF = (0.05, 2.0)  # seconds between two tries of a database that is gone: first, longest
_log = logging.getLogger("truecast.serve")


@dataclass(slots=True)
class Health:
    """Whether the service can write.

    Attributes
    ----------
    ready : bool
    reason : str or None
        What is wrong, if it is not.
    epoch : int
        How many processes have written to this database, one after the other.
    seq : int
        The last entry that is durable.
    waiting : int
        Requests that wait for the writer.
    size : int
        Bytes that the database takes.
    """

    ready: bool = False
    reason: str | None = "starting"
    epoch: int = 0
    seq: int = 0
    waiting: int = 0
    size: int = 0


@dataclass(slots=True)
class Asked:
    """A request, and who waits for its answer."""

    request: Request
    future: asyncio.Future[Any]
    rows: int = 1


Answer = tuple[Asked, Any, BaseException | None]


class Writer:
    """See the head of this file.

    Parameters
    ----------
    store
        Where to write; it is open, and ours.
    most_open
        How many streams may be in memory.
    changed
        Called in the event loop with (name, info or None if it was deleted), now and then.
    """

    def __init__(
        self,
        store: Store,
        most_open: int,
        loop: asyncio.AbstractEventLoop,
        changed: Callable[[list[tuple[str, StreamInfo | None]]], None],
    ) -> None:
        self.store, self.loop, self.changed = store, loop, changed
        self.shelf = Shelf(store, most_open)
        self.health = Health()
        self._head = Head()
        self._queue: queue.SimpleQueue[list[Asked] | None] = queue.SimpleQueue()
        self._next: deque[Asked] = deque()  # taken from the queue, in the thread
        self._fresh: list[Asked] = []  # of this turn of the loop
        self._thread = threading.Thread(target=self._run, name="truecast-writer", daemon=True)
        self._dirty: dict[str, float] = {}  # streams that changed, and when to tell
        self._told: dict[str, float] = {}  # when there was news of a stream
        self._next_news = 0.0
        self._ended = False  # for those who ask
        self._ending = False  # for the thread
        self._broken = False
        self._next_try, self._pause = 0.0, BACK_OFF[0]
        self._next_size = 0.0

    def start(self) -> None:
        """Read what there is, and begin. Raises what the database raises."""
        self._read()
        self._thread.start()

    def ask(self, request: Request, rows: int = 1) -> asyncio.Future[Any]:
        """Return what will be answered."""
        if self._ended:
            raise UnavailableError("the service is being stopped")
        future = self.loop.create_future()
        if not self._fresh:
            self.loop.call_soon(self._hand_over)
        self._fresh.append(Asked(request, future, rows))
        return future

    def _hand_over(self) -> None:
        """Give the writer what came in one turn of the loop.

        Requests that are there at the same time become one transaction, and the two threads take
        turns at the interpreter instead of taking it from each other.
        """
        fresh, self._fresh = self._fresh, []
        if fresh:
            self._queue.put(fresh)

    def end(self) -> None:
        """Take no more requests; those asked before are answered."""
        self._hand_over()
        self._ended = True
        self._queue.put(None)

    def stop(self) -> None:
        """Wait until all is answered and all streams are saved. Blocks."""
        self._thread.join()

    def _read(self) -> None:
        self._head = self.store.head()
        self.shelf.read()
        self.health.seq, self.health.epoch = self._head.seq, self.store.epoch
        self.health.ready, self.health.reason = True, None

    def _run(self) -> None:
        going = True
        while going:
            asked, going = self._wait()
            try:
                self._serve(asked)
            except BaseException as error:  # the thread must live: without it nobody is answered
                _log.exception("the writer failed")
                self._fail(asked, UnavailableError(f"the writer failed: {error}"))
                self._broken = True
            try:
                self._tell()
            except Exception:  # news are no reason to refuse anything
                _log.exception("the writer has no news")
                self._dirty.clear()
        self._save_all()

    def _wait(self) -> tuple[list[Asked], bool]:
        """Return what is waiting; all of it, up to a number of rows. False at the end."""
        asked: list[Asked] = []
        rows = 0
        self._ending = self._ending or not self._take()
        while self._next and rows < MOST_ROWS:
            asked.append(self._next.popleft())
            rows += asked[-1].rows
        self.health.waiting = len(self._next)
        return asked, bool(self._next) or not self._ending

    def _take(self) -> bool:
        """Take what is in the queue, or wait until there is something. False at the end."""
        timeout = THIN / 2 if self._dirty or self._broken else None
        if self._next or (self.shelf.has_chores and not self._broken):
            timeout = 0.0
        with suppress(queue.Empty):
            fresh = self._queue.get(timeout=timeout)
            while fresh is not None:
                self._next.extend(fresh)
                fresh = self._queue.get_nowait()
            return False
        return True

    def _serve(self, asked: list[Asked]) -> None:
        if self.shelf.has_chores and not asked and not self._broken:
            with suppress(UnavailableError):  # the stream says so when it is asked for
                self.shelf.do_chore()
        if self._broken and not self._mended():
            reason = self.health.reason or "the database cannot be reached"
            self._fail(asked, UnavailableError(reason, retry_after=self._pause))
            return
        try:
            answers = self._write(asked)
        except Exception as error:
            self._break(error)
            reason = self.health.reason or ""
            self._fail(asked, UnavailableError(reason, retry_after=self._pause))
            return
        self._answer(answers)
        try:
            self._look_at_size()
        except Exception as error:  # all is answered: the next ones meet a database that is gone
            self._break(error)

    def _look_at_size(self) -> None:
        if time.monotonic() >= self._next_size:
            self._next_size = time.monotonic() + SIZE
            self.health.size = self.store.size()

    def _write(self, asked: list[Asked]) -> list[Answer]:
        """Apply all requests, make them durable, and return the answers."""
        looks = [one for one in asked if one.request.reads]
        others = [one for one in asked if not one.request.reads]
        work = Work(self.shelf, self._head, self._known(others))
        answers: list[Answer] = []
        try:
            for one in (*looks, *others):
                try:
                    answers.append((one, one.request.do(work), None))
                except (ServiceError, InputError) as error:
                    answers.append((one, None, error))
                except Exception as error:
                    if not one.request.reads or isinstance(error, self.store.errors):
                        raise
                    _log.exception("%s could not be read", one.request.name)
                    answers.append((one, None, error))
            self._add_snapshots(work)
            self.shelf.recent.add_to(work.batch, work.fresh, work.head.seq)
            if work.batch:
                self.store.commit(work.batch)
        except BaseException:
            self._forget(work)
            raise
        self._head = work.head
        self.shelf.recent.keep(work.known, work.fresh, work.batch)
        self.health.seq = work.head.seq
        self._note(work)
        return answers

    def _known(self, asked: list[Asked]) -> dict[Key, Known]:
        keys = []
        for one in asked:
            listed = self.shelf.listed.get(one.request.name)
            if listed is not None and (ids := one.request.keys()):
                keys.append((listed.number, ids))
        return self.shelf.recent.find(keys)

    def _add_snapshots(self, work: Work) -> None:
        """Save streams that have gone far since, and those that leave memory."""
        closing = self.shelf.too_many()
        due = {name for name in closing if self.shelf.is_unsaved(name)}
        due.update(name for name in work.touched if self.shelf.rows_since(name) >= SNAPSHOT_ROWS)
        work.batch.snapshots.extend(map(self.shelf.snapshot, due))
        work.closing = closing

    def _note(self, work: Work) -> None:
        """Remember what a transaction changed."""
        self.shelf.saved(work.batch)
        self.shelf.drop(set(work.closing))
        for name in work.touched:
            self._dirty.setdefault(name, self._told.get(name, 0.0) + THIN)

    def _forget(self, work: Work) -> None:
        """Go back to what is durable."""
        self.shelf.drop(work.touched)
        for _, name, _, _ in work.batch.created:
            self.shelf.remove(name)
        self._broken = True  # all that is known of ids is read again, too

    def _break(self, error: Exception) -> None:
        self._broken = True
        self._pause = BACK_OFF[0]
        self._next_try = time.monotonic() + self._pause
        self.health.ready = False
        self.health.reason = f"the database cannot be written: {error}"
        _log.error("%s", self.health.reason)

    def _mended(self) -> bool:
        """Try the database again, if it is time to."""
        if time.monotonic() < self._next_try:
            return False
        try:
            self.store.reopen()
            self._read()
        except Exception as error:
            self._pause = min(2 * self._pause, BACK_OFF[1])
            self._next_try = time.monotonic() + self._pause
            self.health.ready = False
            self.health.reason = f"the database cannot be reached: {error}"
            return False
        self._broken, self._pause = False, BACK_OFF[0]
        _log.info("the database is back")
        return True

    def _answer(self, answers: list[Answer]) -> None:
        if answers:
            self.loop.call_soon_threadsafe(_release, answers)

    def _fail(self, asked: list[Asked], error: ServiceError) -> None:
        self._answer([(one, None, error) for one in asked])

    def _tell(self) -> None:
        """Give news of streams that changed: at most twice a second of each, and in little time.

        If many streams change, they take turns, so that requests do not wait for news.
        """
        now = time.monotonic()
        if now < self._next_news or not self._dirty:
            return
        due = [name for name, when in self._dirty.items() if when <= now]
        news: list[tuple[str, StreamInfo | None]] = []
        longest, rest = NEWS
        for name in due:
            if news and time.monotonic() - now > longest:
                break
            news.append((name, self.shelf.refresh(name) if name in self.shelf.listed else None))
            del self._dirty[name]
            self._told[name] = now
        if news:
            self._next_news = now + rest * (time.monotonic() - now)
            self._told = {name: at for name, at in self._told.items() if now - at < THIN}
            self.loop.call_soon_threadsafe(self.changed, news)

    def _save_all(self) -> None:
        """At the end: the next start has nothing to replay."""
        try:
            if not self._broken:
                batch = Batch(snapshots=[self.shelf.snapshot(n) for n in self.shelf.unsaved()])
                self.shelf.recent.add_to(batch, {}, self._head.seq, now=True)
                if batch:
                    self.store.commit(batch)
        except Exception:
            _log.exception("the streams could not be saved; the next start replays the journal")


def _release(answers: list[Answer]) -> None:
    """Hand out answers, in the event loop."""
    for one, answer, error in answers:
        if one.future.done():  # the caller has gone
            continue
        if error is None:
            one.future.set_result(answer)
        else:
            one.future.set_exception(error)
