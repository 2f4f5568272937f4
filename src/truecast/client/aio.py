"""The client for asyncio."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from typing import Any, Self, TypeVar

from truecast.client.calls import Call, Groups, Score, Steps
from truecast.client.connection import Connected, arguments, confirmed
from truecast.client.results import ServedForecast, ServedOutcome

__all__ = ["AsyncClient"]

Result = TypeVar("Result")


class AsyncClient(Connected):
    """`Client` for asyncio: the same methods, to be awaited, in an `async with`.

    Parameters
    ----------
    url, token, timeout, retries, most_rows
        As for `Client`.

    Examples
    --------
    >>> import asyncio, truecast as tc
    >>> from truecast.testing import serving
    >>> async def ask(url):
    ...     async with tc.AsyncClient(url) as client:
    ...         await client.create("judge")
    ...         said = await asyncio.gather(*(client.forecast("judge", 0.3) for _ in range(3)))
    ...         answers = await client.outcomes("judge", [each.id for each in said], [0, 1, 0])
    ...         return [answer.status for answer in answers]
    >>> with serving() as url:  # a service for this example
    ...     asyncio.run(ask(url))
    ['learned', 'learned', 'learned']
    """

    _kind = "AsyncClient"

    async def create(self, stream: str, **choices: Any) -> dict[str, Any]:
        """Create a stream: see `Client.create`."""
        return await self._run(self._calls.create(stream, choices))

    async def delete(self, stream: str, *, confirm: str) -> None:
        """Delete a stream: see `Client.delete`."""
        confirmed(stream, confirm)
        return await self._run(self._calls.delete(stream))

    async def streams(self) -> list[dict[str, Any]]:
        """Return all streams: see `Client.streams`."""
        return await self._run(self._calls.streams())

    async def overview(self, stream: str) -> dict[str, Any]:
        """Return what the dashboard shows: see `Client.overview`."""
        return await self._run(self._calls.read(stream))

    async def certificate(self, stream: str) -> dict[str, Any]:
        """Return what is proved: see `Client.certificate`."""
        return await self._run(self._calls.read(stream, "certificate"))

    async def alarm(self, stream: str) -> dict[str, Any]:
        """Return evidence and alarms: see `Client.alarm`."""
        return await self._run(self._calls.read(stream, "alarm"))

    async def measures(self, stream: str) -> dict[str, Any]:
        """Return scores and errors: see `Client.measures`."""
        return await self._run(self._calls.read(stream, "measures"))

    async def state(self, stream: str) -> dict[str, Any]:
        """Return the state: see `Client.state`."""
        return await self._run(self._calls.read(stream, "state"))

    async def forecast(
        self,
        stream: str,
        score: Score,
        *,
        id: str | None = None,  # noqa: A002
        groups: Groups = None,
        event: str | None = None,
        time: str | None = None,
    ) -> ServedForecast:
        """Return the calibrated probability of one score: see `Client.forecast`."""
        row = {"score": score, "id": id, "groups": groups, "event": event, "time": time}
        return await self._run(self._calls.forecast(stream, row))

    async def forecasts(
        self,
        stream: str,
        scores: Iterable[Score],
        *,
        ids: Iterable[str] | None = None,
        groups: Iterable[Groups] | None = None,
    ) -> list[ServedForecast]:
        """Return the calibrated probabilities of many: see `Client.forecasts`."""
        return await self._run(self._calls.forecasts(stream, scores, ids, groups))

    async def outcome(self, stream: str, id: str, outcome: Any) -> ServedOutcome:  # noqa: A002
        """Say what happened: see `Client.outcome`."""
        return await self._run(self._calls.outcome(stream, id, outcome))

    async def outcomes(
        self, stream: str, ids: Iterable[str], outcomes: Iterable[Any]
    ) -> list[ServedOutcome]:
        """Say what happened to many: see `Client.outcomes`."""
        return await self._run(self._calls.outcomes(stream, ids, outcomes))

    async def give_up(
        self,
        stream: str,
        *,
        ids: Sequence[str] | None = None,
        older_than: float | None = None,
    ) -> int:
        """Give up on outcomes: see `Client.give_up`."""
        return await self._run(self._calls.give_up(stream, ids, older_than))

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _run(self, steps: Steps[Result]) -> Result:
        answer: Any = None
        while True:
            try:
                call = steps.send(answer)
            except StopIteration as done:
                result: Result = done.value
                return result
            answer = await self._sent(call)

    async def _sent(self, call: Call) -> Any:
        tries, request = self._tries(call), arguments(call)
        while True:
            try:
                answer = await self._http.request(**request)
            except self._httpx.TransportError as error:
                wait: float | None = tries.lost(error, self._was_connected(error))
            else:
                wait = tries.answered(answer.status_code, answer.headers, answer.content)
            if wait is None:
                return json.loads(answer.content) if answer.content else None
            await asyncio.sleep(wait)
