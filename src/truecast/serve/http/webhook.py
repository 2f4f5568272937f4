"""Tell somebody of alarms: a signed POST for each, at least once, beside the writer.

What was delivered is remembered in a file. After a restart, alarms that the journal has and the
file has not are sent.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import msgspec

from truecast._atomic import replaced
from truecast.client.webhooks import SIGNATURE, signature
from truecast.errors import FileError, TruecastError
from truecast.serve.evidence import AlarmView
from truecast.serve.http.exchange import encoder
from truecast.serve.http.logs import log
from truecast.serve.view import StreamInfo

if TYPE_CHECKING:
    import httpx

    from truecast.serve.service import Service

__all__ = ["Webhook", "message"]

SWEEP = 60.0  # seconds between looks at all streams, should a change have been missed
FIRST, LONGEST = 1.0, 300.0  # seconds between tries
TIMEOUT = 10.0


class Key(NamedTuple):
    """Whose alarms are counted: of a stream, by when it was created, and a group of it."""

    stream: str
    created: int
    which: str
    group: str | None


class Waiting(NamedTuple):
    """An alarm that was not delivered yet."""

    alarm: AlarmView
    tries: int
    due: float


class Webhook:
    """Delivers alarms.

    Parameters
    ----------
    url
        Where they go; redirects are not followed.
    secret
        What they are signed with.
    memory
        The file of what was delivered.
    public
        The address of the dashboard, for a link.
    """

    def __init__(self, url: str, secret: bytes, memory: Path, public: str) -> None:
        self._url, self._secret, self._public = url, secret, public.rstrip("/")
        self._memory = memory
        self._sent = _read(memory)
        self._seen: dict[tuple[str, int], int] = {}  # alarms of a stream at the last look
        self._waiting: dict[Key, Waiting] = {}
        self._news = asyncio.Event()

    async def run(self, service: Service) -> None:
        """Watch and deliver, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow(service))
            tasks.create_task(self._sweep(service))
            tasks.create_task(self._deliver())

    async def _follow(self, service: Service) -> None:
        async for change in service.subscribe():
            if change.info is not None:
                await self._look(service, [change.info])

    async def _sweep(self, service: Service) -> None:
        while True:
            await self._look(service, service.streams())
            await asyncio.sleep(SWEEP)

    async def _look(self, service: Service, infos: Iterable[StreamInfo]) -> None:
        """Find alarms that are new."""
        for info in infos:
            if info.alarms <= self._seen.get((info.name, info.created), 0):
                continue
            try:
                view = (await service.sight(info.name)).view
            except TruecastError:  # deleted, or not now: the sweep comes back
                continue
            for alarm in view.latest_alarms:
                key = Key(info.name, info.created, alarm.which, alarm.group)
                if alarm.number > self._sent.get(key, 0):
                    self._waiting[key] = Waiting(alarm, 0, 0.0)
                    self._news.set()
            self._seen[info.name, info.created] = info.alarms

    async def _deliver(self) -> None:
        import httpx

        async with httpx.AsyncClient(timeout=TIMEOUT, follow_redirects=False) as client:
            while True:
                now = time.monotonic()
                for key, waiting in list(self._waiting.items()):
                    if waiting.due <= now:
                        await self._try(client, key, waiting)
                self._news.clear()
                dues = [waiting.due for waiting in self._waiting.values()]
                pause = min(dues) - time.monotonic() if dues else SWEEP
                try:
                    await asyncio.wait_for(self._news.wait(), max(pause, 0.01))
                except TimeoutError:
                    continue

    async def _try(self, client: httpx.AsyncClient, key: Key, waiting: Waiting) -> None:
        body = encoder.encode(message(key, waiting.alarm, self._public))
        headers = {
            "content-type": "application/json",
            SIGNATURE: signature(body, self._secret, int(time.time())),
        }
        try:
            answer = await client.post(self._url, content=body, headers=headers)
            failure = None if answer.is_success else f"status {answer.status_code}"
        except Exception as error:  # whatever it is: the alarm must go out
            failure = f"{type(error).__name__}: {error}"
        if failure is None:
            self._delivered(key, waiting.alarm)
        elif self._waiting.get(key) == waiting:
            pause = min(LONGEST, FIRST * 2.0**waiting.tries) * random.uniform(0.5, 1.0)  # noqa: S311
            due = time.monotonic() + pause
            self._waiting[key] = waiting._replace(tries=min(waiting.tries + 1, 20), due=due)
            log(
                logging.WARNING, "webhook failed", stream=key.stream, reason=failure,
                again_in=round(pause, 1),
            )  # fmt: skip

    def _delivered(self, key: Key, alarm: AlarmView) -> None:
        self._sent[key] = alarm.number
        if self._waiting.get(key, None) is not None and self._waiting[key].alarm == alarm:
            del self._waiting[key]
        rows = [[*each, number] for each, number in self._sent.items()]
        with replaced(self._memory) as place:
            place.write_bytes(encoder.encode(rows))
        log(logging.INFO, "webhook delivered", stream=key.stream, number=alarm.number)


def message(key: Key, alarm: AlarmView, public: str) -> dict[str, Any]:
    """Return what is sent."""
    whose = "before recalibration" if alarm.which == "model" else "after recalibration"
    group = "" if alarm.group is None else f", group {alarm.group!r}"
    return {
        "type": "alarm",
        "id": "/".join(
            [key.stream, str(key.created), key.which, key.group or "", str(alarm.number)]
        ),
        "stream": key.stream,
        "which": alarm.which,
        "group": alarm.group,
        "class": alarm.label,
        "number": alarm.number,
        "finding": f"{whose}{group}: {alarm.words}",
        "evidence": alarm.evidence,
        "since": alarm.since,
        "since_round": alarm.since_round,
        "at": alarm.at,
        "round": alarm.round,
        "link": f"{public}/streams/{quote(key.stream, safe='')}/page",
    }


def _read(memory: Path) -> dict[Key, int]:
    try:
        rows = msgspec.json.decode(
            memory.read_bytes(), type=list[tuple[str, int, str, str | None, int]]
        )
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.MsgspecError) as error:
        raise FileError(str(memory), f"is not a file of delivered alarms: {error}") from error
    return {Key(*row[:4]): row[4] for row in rows}
