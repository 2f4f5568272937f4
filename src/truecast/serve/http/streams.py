"""The routes of streams: create, forecast, learn, give up, read, delete."""

from __future__ import annotations

import logging
from typing import Any

import msgspec
from msgspec import UNSET

from truecast.errors import ConflictError, InputError, NotFoundError
from truecast.serve.evidence import AlarmView, Evidence
from truecast.serve.halves import Side, Totals
from truecast.serve.http.bodies import (
    ForecastBody,
    Forecasts,
    GiveUp,
    NewStream,
    OutcomeBody,
    Outcomes,
    decoded,
    rows_of,
)
from truecast.serve.http.exchange import Answer, Request, json_answer
from truecast.serve.http.logs import log
from truecast.serve.http.routes import Route
from truecast.serve.rows import Forecast, ForecastRow, OutcomeAnswer, OutcomeRow
from truecast.serve.view import StreamInfo, StreamView, Verdict

__all__ = ["ROUTES"]

_new_stream = msgspec.json.Decoder(NewStream)
_forecasts = msgspec.json.Decoder(ForecastBody)
_outcomes = msgspec.json.Decoder(OutcomeBody)
_give_up = msgspec.json.Decoder(GiveUp)

_REFUSED = {
    "unknown": (NotFoundError, "there is no forecast with the id {!r:.120}"),
    "contradiction": (ConflictError, "another outcome was learned for {!r:.120}, and stays"),
    "given_up": (ConflictError, "{!r:.120} was given up: its outcome came too late"),
}


class Streams(msgspec.Struct, frozen=True):
    """All streams."""

    streams: list[StreamInfo]


class ForecastAnswers(msgspec.Struct, frozen=True):
    """The answers to many scores, in their order."""

    forecasts: list[Forecast]


class OutcomeAnswers(msgspec.Struct, frozen=True):
    """What became of many outcomes, in their order."""

    outcomes: list[OutcomeAnswer]


class GivenUp(msgspec.Struct, frozen=True):
    """How many forecasts were given up."""

    given_up: int


class ClassCertificate(msgspec.Struct, frozen=True):
    """What is proved of one class; the label is null if outcomes are 0 and 1."""

    label: str | None
    certificate: Totals


class Certificates(msgspec.Struct, frozen=True):
    """What is proved of the answered forecasts; none before the first outcome."""

    name: str
    rounds: int
    unresolved: int
    classes: list[ClassCertificate]


class ClassEvidence(msgspec.Struct, frozen=True):
    """Evidence against the model (`before`) and the answered forecasts (`after`) of one class."""

    label: str | None
    before: Evidence | None
    after: Evidence | None


class Alarms(msgspec.Struct, frozen=True):
    """Evidence against forecasts, class by class, and the last alarms."""

    name: str
    verdict: Verdict
    classes: list[ClassEvidence]
    alarms: list[AlarmView]


class Measures(msgspec.Struct, frozen=True):
    """Scores and calibration errors, of the model and the answered forecasts, class by class."""

    name: str
    rounds: int
    sides: list[Side]


async def create(request: Request) -> Answer:
    """Make a stream."""
    body = decoded(_new_stream, request.body)
    request.name = body.name
    info = await request.app.service.create(body.name, body.options())
    _note("created", request)
    return json_answer(info)


async def listed(request: Request) -> Answer:
    """List the streams."""
    return json_answer(Streams(request.app.service.streams()))


async def overview(request: Request) -> Answer:
    """Read all that is known of a stream."""
    return json_answer(await request.app.service.overview(request.name))


async def certificate(request: Request) -> Answer:
    """Read what is proved."""
    _, view, sides = await request.app.service.sight(request.name)
    classes = [ClassCertificate(side.label, side.certificate) for side in sides]
    return json_answer(Certificates(view.name, view.rounds, view.unresolved, classes))


async def alarm(request: Request) -> Answer:
    """Read the evidence."""
    _, view, sides = await request.app.service.sight(request.name)
    classes = [ClassEvidence(side.label, *side.evidence) for side in sides]
    return json_answer(Alarms(view.name, view.verdict, classes, view.latest_alarms))


async def measures(request: Request) -> Answer:
    """Read scores and errors."""
    view = await request.app.service.overview(request.name)
    return json_answer(Measures(view.name, view.rounds, view.sides))


async def delete(request: Request) -> Answer:
    """Delete a stream."""
    confirm = request.parameters("confirm").get("confirm", "")
    await request.app.service.delete(request.name, confirm=confirm)
    _note("deleted", request)
    return Answer(204, b"")


async def state(request: Request) -> Answer:
    """Export the state of a stream."""
    return json_answer(await request.app.service.state(request.name))


async def forecast(request: Request) -> Answer:
    """Answer one score or many."""
    app = request.app
    body = decoded(_forecasts, request.body)
    if body.forecasts is not UNSET:
        if body.score is not UNSET:
            raise InputError("body", "must have `score` or `forecasts`, not both", "both")
        rows = rows_of("forecasts", body.forecasts, app.limits.rows)
        return json_answer(ForecastAnswers(await app.service.forecasts(request.name, rows)))
    if body.score is UNSET:
        raise InputError("score", "must be given", None)
    row = ForecastRow(body.score, body.id, body.groups, body.event, body.time)
    return json_answer((await app.service.forecasts(request.name, [row]))[0])


async def outcome(request: Request) -> Answer:
    """Learn one outcome or many."""
    app = request.app
    body = decoded(_outcomes, request.body)
    if body.outcomes is not UNSET:
        if body.id is not UNSET or body.outcome is not UNSET:
            raise InputError("body", "must have `id` and `outcome`, or `outcomes`", "both")
        rows = rows_of("outcomes", body.outcomes, app.limits.rows)
        return json_answer(OutcomeAnswers(await app.service.outcomes(request.name, rows)))
    if body.id is UNSET or body.outcome is UNSET:
        raise InputError("id" if body.id is UNSET else "outcome", "must be given", None)
    (answer,) = await app.service.outcomes(request.name, [OutcomeRow(body.id, body.outcome)])
    if answer.status in _REFUSED:
        kind, words = _REFUSED[answer.status]
        raise kind(words.format(body.id))
    return json_answer(answer)


async def give_up(request: Request) -> Answer:
    """Stop waiting for outcomes."""
    body = decoded(_give_up, request.body)
    if (body.ids is None) == (body.older_than is None):
        raise InputError("body", "must have `ids` or `older_than`, one of the two", "both or none")
    if body.ids is not None:
        rows_of("ids", body.ids, request.app.limits.rows)
    count = await request.app.service.give_up(
        request.name, ids=body.ids, older_than=body.older_than
    )
    _note("given up", request, forecasts=count)
    return json_answer(GivenUp(count))


def _note(message: str, request: Request, **more: Any) -> None:
    who = request.who.name if request.who else None
    log(logging.INFO, message, stream=request.name, token=who, request=request.id, **more)


_STREAM = "/streams/{name}"

ROUTES = [
    Route("GET", "/streams", listed, "read", "List the streams, with their verdicts",
          gives=Streams, refuses=(503,)),
    Route("POST", "/streams", create, "admin",
          "Create a stream; repeating the request changes nothing",
          takes=NewStream, gives=StreamInfo, refuses=(409, 503)),
    Route("GET", _STREAM, overview, "read", "Read all that is known of a stream",
          gives=StreamView, refuses=(404, 503)),
    Route("DELETE", _STREAM, delete, "admin", "Delete a stream with all that it knows",
          status=204, refuses=(404, 503), query={"confirm": "The name of the stream once more."}),
    Route("GET", f"{_STREAM}/certificate", certificate, "read", "Read what is proved",
          gives=Certificates, refuses=(404, 503)),
    Route("GET", f"{_STREAM}/alarm", alarm, "read", "Read the evidence, and alarms",
          gives=Alarms, refuses=(404, 503)),
    Route("GET", f"{_STREAM}/measures", measures, "read",
          "Read scores and calibration errors, before and after",
          gives=Measures, refuses=(404, 503)),
    Route("GET", f"{_STREAM}/state", state, "read",
          "Export the state: `Recalibrator.load` takes it", gives=dict[str, Any],
          refuses=(404, 503)),
    Route("POST", f"{_STREAM}/forecasts", forecast, "forecast",
          "Answer scores with calibrated probabilities; the same id gets the same answer",
          takes=(ForecastRow, Forecasts), gives=(Forecast, ForecastAnswers),
          refuses=(404, 409, 503)),
    Route("POST", f"{_STREAM}/outcomes", outcome, "outcome",
          "Say what happened, in any order; a repeated outcome counts once",
          takes=(OutcomeRow, Outcomes), gives=(OutcomeAnswer, OutcomeAnswers),
          refuses=(404, 409, 503)),
    Route("POST", f"{_STREAM}/give_up", give_up, "outcome",
          "Stop waiting for outcomes: of some ids, or of all forecasts that are too old",
          takes=GiveUp, gives=GivenUp, refuses=(404, 503)),
]  # fmt: skip
