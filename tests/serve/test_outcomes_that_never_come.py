"""Outcomes that never come: the verdict says what waits for them, and they are given up by age."""

import asyncio
import re

import pytest

from truecast.errors import InputError
from truecast.serve import requests
from truecast.serve.options import GIVE_UP_AFTER, StreamOptions
from truecast.serve.replay import Replay
from truecast.serve.rows import ForecastRow, OutcomeRow
from truecast.serve.service import open_service
from truecast.serve.snapshots import state_of
from truecast.serve.sqlite import SQLiteStore
from truecast.serve.stream import LiveStream


async def overconfident(service, first=0):
    """Forecasts of .9 of which half come true; the outcome of the first never comes."""
    answers = await service.forecasts("x", [ForecastRow(0.9) for _ in range(400)])
    learned = [OutcomeRow(each.id, k % 2) for k, each in enumerate(answers)][first:]
    await service.outcomes("x", learned)


def test_what_waits_for_an_outcome_is_not_called_too_few(url):
    async def play():
        async with open_service(url) as service:
            await service.create("x")
            await overconfident(service, first=1)
            waiting = (await service.overview("x")).verdict
            await service.give_up("x", older_than=0.0)
            await service.forecasts("x", [ForecastRow(0.9)])
            return waiting, (await service.overview("x")).verdict

    waiting, told = asyncio.run(play())
    assert waiting.kind == "waiting"
    assert waiting.reason.startswith("399 outcomes cannot speak yet")
    assert "give_up" in waiting.reason
    assert told.kind == "off"
    assert re.fullmatch(
        r"The answered forecasts are .* since (.* UTC|forecast \d+).*\.", told.reason
    )


@pytest.fixture
def clock(monkeypatch):
    """The writer's clock, in seconds."""
    now = [1_000_000.0]
    monkeypatch.setattr(requests.time, "time_ns", lambda: int(now[0] * 1e9))
    return now


def test_forecasts_are_given_up_by_age_and_replay_does_the_same(tmp_path, clock):
    path = tmp_path / "a.db"
    options = StreamOptions(give_up_after=60.0)

    async def play():
        async with open_service(f"sqlite:///{path}") as service:
            await service.create("x", options)
            await service.forecasts("x", [ForecastRow(0.5, "old"), ForecastRow(0.6, "known")])
            await service.outcomes("x", [OutcomeRow("known", 1)])
            clock[0] += 60.0
            await service.forecasts("x", [ForecastRow(0.5, "in time")])
            assert (await service.overview("x")).given_up == 0
            clock[0] += 1.0
            late = await service.outcomes("x", [OutcomeRow("old", 1), OutcomeRow("in time", 1)])
            assert (await service.overview("x")).given_up == 1
            return [each.status for each in late], await service.state("x")

    statuses, state = asyncio.run(play())
    assert statuses == ["given_up", "learned"]
    store = SQLiteStore(path)
    store.read_only()
    stream = Replay(LiveStream(options), "x").entries(store.entries(0, stream=1))
    assert state_of(stream)["recalibrator"] == state["recalibrator"]
    store.close()


def test_the_default_and_its_limits():
    assert StreamOptions().give_up_after == GIVE_UP_AFTER
    StreamOptions(give_up_after=None).check()
    for bad in (0.0, -1.0, 1e11, float("nan")):
        with pytest.raises(InputError, match="give_up_after"):
            StreamOptions(give_up_after=bad).check()
