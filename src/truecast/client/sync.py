"""The client that waits."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from typing import Any, Self, TypeVar

from truecast.client.calls import Call, Groups, Score, Steps
from truecast.client.connection import Connected, arguments, confirmed
from truecast.client.results import ServedForecast, ServedOutcome

__all__ = ["Client"]

Result = TypeVar("Result")


class Client(Connected):
    """Talks to `truecast serve`: scores go out, calibrated probabilities come back.

    Retries are safe. Every forecast has an id before it is first sent, and the service answers the
    same id with the same forecast; an outcome that comes twice counts once. So what got no answer
    is sent again, after a pause that doubles and is spread at random, or that the service asks
    for. `delete` and `give_up` are sent again only if the service cannot have done them.

    A client keeps its connections: make one, and close it, or use it in a `with`. Threads may share
    it.

    Parameters
    ----------
    url
        Where the service is, such as "http://127.0.0.1:8799".
    token
        As `truecast serve token` printed it. None if the service asks for none.
    timeout
        Seconds to wait for one answer.
    retries
        How often to try again.
    most_rows
        More rows than this are sent in several requests. Each happens completely or not at all; if
        one fails, those before it have happened, and sending everything again is harmless if you
        gave the ids.

    Raises
    ------
    InputError
        If an argument breaks a rule, here or in the service.
    AccessError, NotFoundError, ConflictError, TooLargeError, UnavailableError
        As the service says. A ServiceError is any of them.

    Examples
    --------
    >>> import truecast as tc
    >>> from truecast.testing import serving
    >>> with serving() as url, tc.Client(url) as client:  # a service for this example
    ...     _ = client.create("judge")
    ...     said = client.forecast("judge", 0.83, groups=["math"])
    ...     later = client.outcome("judge", said.id, 1)
    ...     again = client.outcome("judge", said.id, 1)
    >>> round(said.p, 3), later.status, again.status
    (0.83, 'learned', 'duplicate')
    """

    _kind = "Client"

    def create(self, stream: str, **choices: Any) -> dict[str, Any]:
        """Create a stream.

        Parameters
        ----------
        stream
            Its name: letters, digits and ``. _ -``, a letter or digit first.
        choices
            What `StreamOptions` has: `classes`, `scale`, `budget`, `max_groups`, `max_unresolved`,
            `give_up_after`, `alarm`, `note`.

        Returns
        -------
        dict
            The stream. One that is there with the same options is answered as it is.

        Raises
        ------
        ConflictError
            If there is one of this name with other options.
        """
        return self._run(self._calls.create(stream, choices))

    def delete(self, stream: str, *, confirm: str) -> None:
        """Delete a stream with all that it knows; `confirm` must be its name once more."""
        confirmed(stream, confirm)
        return self._run(self._calls.delete(stream))

    def streams(self) -> list[dict[str, Any]]:
        """Return all streams, with their verdicts."""
        return self._run(self._calls.streams())

    def overview(self, stream: str) -> dict[str, Any]:
        """Return what the dashboard shows of a stream."""
        return self._run(self._calls.read(stream))

    def certificate(self, stream: str) -> dict[str, Any]:
        """Return what is proved of the answered forecasts."""
        return self._run(self._calls.read(stream, "certificate"))

    def alarm(self, stream: str) -> dict[str, Any]:
        """Return the evidence against the model and against the answers, and alarms if any."""
        return self._run(self._calls.read(stream, "alarm"))

    def measures(self, stream: str) -> dict[str, Any]:
        """Return scores and calibration errors, before and after."""
        return self._run(self._calls.read(stream, "measures"))

    def state(self, stream: str) -> dict[str, Any]:
        """Return the state, which `Recalibrator.load` takes."""
        return self._run(self._calls.read(stream, "state"))

    def forecast(
        self,
        stream: str,
        score: Score,
        *,
        id: str | None = None,  # noqa: A002
        groups: Groups = None,
        event: str | None = None,
        time: str | None = None,
    ) -> ServedForecast:
        """Return the calibrated probability of one score.

        Parameters
        ----------
        stream
            The name of the stream.
        score
            What the model says; one number for each class if the stream has classes.
        id
            Your name for this forecast, at most 200 characters; None makes one.
        groups
            A group, or several.
        event
            Forecasts of one event share its outcome: see `Recalibrator.issue`.
        time
            When the event happens, for your records.
        """
        row = {"score": score, "id": id, "groups": groups, "event": event, "time": time}
        return self._run(self._calls.forecast(stream, row))

    def forecasts(
        self,
        stream: str,
        scores: Iterable[Score],
        *,
        ids: Iterable[str] | None = None,
        groups: Iterable[Groups] | None = None,
    ) -> list[ServedForecast]:
        """Return the calibrated probabilities of many scores, in their order."""
        return self._run(self._calls.forecasts(stream, scores, ids, groups))

    def outcome(self, stream: str, id: str, outcome: Any) -> ServedOutcome:  # noqa: A002
        """Say what happened: 0 or 1, or the class.

        Raises
        ------
        NotFoundError
            If there is no forecast with this id.
        ConflictError
            If another outcome is known for it.
        """
        return self._run(self._calls.outcome(stream, id, outcome))

    def outcomes(
        self, stream: str, ids: Iterable[str], outcomes: Iterable[Any]
    ) -> list[ServedOutcome]:
        """Say what happened to many forecasts; look at each `status`, nothing is raised for it."""
        return self._run(self._calls.outcomes(stream, ids, outcomes))

    def give_up(
        self,
        stream: str,
        *,
        ids: Sequence[str] | None = None,
        older_than: float | None = None,
    ) -> int:
        """Give up on outcomes: of these ids, or of all forecasts older than some seconds.

        The certificate counts them at their worst for ever.

        Returns
        -------
        int
            How many forecasts were given up.
        """
        return self._run(self._calls.give_up(stream, ids, older_than))

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, steps: Steps[Result]) -> Result:
        answer: Any = None
        while True:
            try:
                call = steps.send(answer)
            except StopIteration as done:
                result: Result = done.value
                return result
            answer = self._sent(call)

    def _sent(self, call: Call) -> Any:
        tries, request = self._tries(call), arguments(call)
        while True:
            try:
                answer = self._http.request(**request)
            except self._httpx.TransportError as error:
                wait: float | None = tries.lost(error, self._was_connected(error))
            else:
                wait = tries.answered(answer.status_code, answer.headers, answer.content)
            if wait is None:
                return json.loads(answer.content) if answer.content else None
            time.sleep(wait)
