"""The service: streams that are made durable, for an event loop."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from truecast.errors import InputError, TooLargeError, UnavailableError
from truecast.serve.options import StreamOptions, checked_name
from truecast.serve.overviews import Overviews
from truecast.serve.requests import (
    Create,
    Delete,
    Erase,
    Forecasting,
    GiveUp,
    Learning,
    Look,
    checked_ids,
)
from truecast.serve.retention import Retired, retain
from truecast.serve.rows import Forecast, ForecastRow, OutcomeAnswer, OutcomeRow
from truecast.serve.shelf import Shelf
from truecast.serve.snapshots import state_of
from truecast.serve.store import Store
from truecast.serve.stream import LiveStream
from truecast.serve.view import Sight, StreamInfo, StreamView, sight_of
from truecast.serve.writer import Health, Writer

__all__ = ["Change", "Service", "open_service", "store_of"]

MOST_ROWS = 10_000  # of one request
MOST_OPEN = 4_000  # streams in memory: about 80 kB each
MOST_WAITING = 20_000  # requests, before new ones are refused
_MINUTES = 60
_ERRORS = 20


class Change(msgspec.Struct, frozen=True):
    """News of a stream; `info` is None if it was deleted."""

    name: str
    info: StreamInfo | None


class Service:
    """Streams of forecasts, each answered only once it is on disk; see `open_service`.

    All calls are made in one event loop. They raise InputError or a ServiceError, and then nothing
    has changed.
    """

    def __init__(self, url: str, store: Store, *, open_streams: int = MOST_OPEN) -> None:
        self._url = url
        self._writer = Writer(store, open_streams, asyncio.get_running_loop(), self._changed)
        self._overviews = Overviews(self.sight)
        self._rates: dict[str, OrderedDict[int, list[int]]] = {}
        self._errors: dict[str, deque[dict[str, Any]]] = {}
        self._listeners: set[asyncio.Queue[Change]] = set()

    @property
    def health(self) -> Health:
        """Whether it can write, and where it is."""
        return self._writer.health

    async def create(self, name: str, options: StreamOptions | None = None) -> StreamInfo:
        """Make a stream; one that exists with the same options is returned as it is.

        Raises
        ------
        ConflictError
            If it exists with other options.
        """
        options = options or StreamOptions()
        options.check()
        info: StreamInfo = await self._writer.ask(Create(checked_name(name), options))
        return info

    async def delete(self, name: str, *, confirm: str) -> None:
        """Remove a stream, what is known of it, and the bodies of its entries.

        The stream goes at once; the rest in small transactions, between those of others. If the
        service ends meanwhile, the next start continues.
        """
        await self._writer.ask(Delete(name, confirm))
        self._rates.pop(name, None)
        self._errors.pop(name, None)
        with suppress(UnavailableError):  # the stream has gone; the writer continues later
            while await self._writer.ask(Erase()):
                pass

    def streams(self) -> list[StreamInfo]:
        """Return what there is, by name. Figures are half a second old, or more if many change."""
        listed = self._writer.shelf.listed
        return [listed[name].info for name in sorted(listed.copy()) if name in listed]

    async def forecasts(self, name: str, rows: list[ForecastRow]) -> list[Forecast]:
        """Answer scores; the same id again gets the same answer.

        Raises
        ------
        InputError
            If a row breaks a rule; ConflictError if an id was forecast with another score. No row
            is answered then.
        """
        _check_rows(rows)
        answers: list[Forecast] = await self._ask(Forecasting(name, rows), len(rows))
        self._count(name, 0, sum(not answer.again for answer in answers))
        return answers

    async def outcomes(self, name: str, rows: list[OutcomeRow]) -> list[OutcomeAnswer]:
        """Learn outcomes, in any order; each row has a status of its own.

        Raises
        ------
        InputError
            If an outcome is none of those that the stream has. No row is learned then.
        """
        _check_rows(rows)
        answers: list[OutcomeAnswer] = await self._ask(Learning(name, rows), len(rows))
        self._count(name, 1, sum(answer.status == "learned" for answer in answers))
        return answers

    async def give_up(
        self, name: str, *, ids: list[str] | None = None, older_than: float | None = None
    ) -> int:
        """Stop waiting for outcomes, of these ids or of old forecasts; return how many."""
        if (ids is None) == (older_than is None):
            raise InputError("ids", "must be given, or older_than, and not both", ids)
        if older_than is not None and not 0 <= older_than <= 1e10:
            raise InputError("older_than", "must be a number of seconds, from 0", older_than)
        count: int = await self._ask(GiveUp(name, ids, older_than), len(ids or ()))
        return count

    async def overview(self, name: str) -> StreamView:
        """Return everything that is shown of a stream, as of the entry that it names."""
        view = await self._overviews.of(name)
        rates = self._rates.get(name, OrderedDict())
        return msgspec.structs.replace(
            view,
            rates=[
                {"at": minute * 60_000, "forecasts": counts[0], "outcomes": counts[1]}
                for minute, counts in rates.items()
            ],
            errors=list(self._errors.get(name, ())),
        )

    async def sight(self, name: str) -> Sight:
        """Return everything but scores and errors, as of its last entry: quicker."""

        def read(shelf: Shelf, name: str, stream: LiveStream) -> Sight:
            return sight_of(shelf.listed[name], stream, time.time_ns() // 1_000_000)

        sight: Sight = await self._ask(Look(name, read))
        return sight

    async def state(self, name: str) -> dict[str, Any]:
        """Return the state to take elsewhere: of the recalibrator, of the monitors, and `seq`."""

        def read(shelf: Shelf, name: str, stream: LiveStream) -> dict[str, Any]:
            options = msgspec.to_builtins(stream.options)
            config = stream.recalibrator.config
            return {"name": name, "options": options, "config": config, **state_of(stream)}

        state: dict[str, Any] = await self._ask(Look(name, read))
        return state

    async def retain(
        self,
        *,
        max_age: float | None = None,
        max_bytes: int | None = None,
        export_to: Path | None = None,
    ) -> Retired:
        """Let old entries go, by age or by size; the newest are kept.

        Streams go on as they were; what a forecast was is forgotten with the entry of its outcome,
        or with its own if it was given up.

        Parameters
        ----------
        max_age
            Seconds.
        max_bytes
            Of all bodies of entries that are kept, about.
        export_to
            A folder: what goes is written there first, to a Parquet file.
        """
        return await retain(
            self,
            store_of(self._url),
            max_age=max_age,
            max_bytes=max_bytes,
            export_to=export_to,
        )

    def note_error(self, name: str, status: int, title: str, detail: str) -> None:
        """Remember what was refused, to be shown with the stream."""
        if name not in self._writer.shelf.listed:
            return
        errors = self._errors.setdefault(name, deque(maxlen=_ERRORS))
        now = time.time_ns() // 1_000_000
        for place, error in enumerate(errors):
            if (error["status"], error["title"], error["detail"]) == (status, title, detail):
                del errors[place]
                errors.appendleft({**error, "at": now, "count": error["count"] + 1})
                return
        errors.appendleft(
            {"at": now, "status": status, "title": title, "detail": detail, "count": 1}
        )

    async def subscribe(self) -> AsyncIterator[Change]:
        """Yield news of streams: at most two a second of each."""
        news: asyncio.Queue[Change] = asyncio.Queue(maxsize=10_000)
        self._listeners.add(news)
        try:
            while True:
                yield await news.get()
        finally:
            self._listeners.discard(news)

    async def close(self) -> None:
        """Answer what was asked, save all streams, and let others write."""
        await self._overviews.close()  # first: they ask the writer
        self._writer.end()
        await asyncio.to_thread(self._writer.stop)
        self._writer.store.close()

    async def _ask(self, request: Any, rows: int = 1) -> Any:
        if self._writer.health.waiting > MOST_WAITING:
            raise UnavailableError("too many requests are waiting", retry_after=1.0)
        return await self._writer.ask(request, rows)

    def _changed(self, news: list[tuple[str, StreamInfo | None]]) -> None:
        for name, info in news:
            for listener in self._listeners:
                if not listener.full():  # a listener that does not listen misses some
                    listener.put_nowait(Change(name, info))

    def _count(self, name: str, kind: int, rows: int) -> None:
        minutes = self._rates.setdefault(name, OrderedDict())
        minute = int(time.time() // 60)
        if minute not in minutes:
            minutes[minute] = [0, 0]
            if len(minutes) > _MINUTES:
                minutes.popitem(last=False)
        minutes[minute][kind] += rows


def _check_rows(rows: Any) -> None:
    if not rows:
        raise InputError("rows", "must be at least one", rows)
    if len(rows) > MOST_ROWS:
        raise TooLargeError(
            f"a request has at most {MOST_ROWS:,} rows, got {len(rows):,}: split it"
        )
    checked_ids(rows)


def store_of(url: str) -> Store:
    """Return the database at a URL: sqlite:///path, or postgresql://..."""
    kind, found, rest = url.partition("://")
    if kind == "sqlite" and found:
        from truecast.serve.sqlite import SQLiteStore

        return SQLiteStore(rest.removeprefix("/"))
    if kind in ("postgresql", "postgres"):
        from truecast.serve.postgres import PostgresStore

        return PostgresStore(url)
    raise InputError("database", "must be sqlite:///path or postgresql://...", url)


@asynccontextmanager
async def open_service(
    url: str, *, standby: bool = False, open_streams: int = MOST_OPEN
) -> AsyncIterator[Service]:
    """Open a service on a database, as its only writer.

    Parameters
    ----------
    url
        ``sqlite:///relative/path``, ``sqlite:////absolute/path`` or ``postgresql://...``.
    standby
        Wait until the process that writes now has ended, instead of raising LockedError.
    open_streams
        How many streams may be in memory; the others are loaded when they are asked for.
    """
    store = store_of(url)
    await asyncio.to_thread(store.acquire, wait=standby)
    service = Service(url, store, open_streams=open_streams)
    try:
        await asyncio.to_thread(service._writer.start)
    except BaseException:
        store.close()
        raise
    try:
        yield service
    finally:
        await service.close()
