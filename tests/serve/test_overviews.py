"""Overviews are made beside the writer: of one entry, and whatever happens meanwhile."""

import asyncio
import random
import threading

import numpy as np
import pytest

from truecast import smooth_calibration_error, uncertainty
from truecast.errors import NotFoundError
from truecast.serve import overviews
from truecast.serve.halves import Chances, facts_of, side_of, tally_of
from truecast.serve.options import StreamOptions
from truecast.serve.rows import ForecastRow, OutcomeRow
from truecast.serve.service import open_service
from truecast.serve.stream import LiveStream


def played(rounds, classes=None):
    """A stream with rounds behind it."""
    stream, rng = LiveStream(StreamOptions(classes=classes)), np.random.default_rng(1)
    scores = rng.random(rounds) if classes is None else rng.dirichlet(np.ones(classes), rounds)
    stream.forecast(0, scores, None, None)
    most = 2 if classes is None else classes
    stream.learn(0, list(range(rounds)), rng.integers(most, size=rounds).tolist())
    return stream


async def pair(service, name, k):
    """A forecast and its outcome."""
    (said,) = await service.forecasts(name, [ForecastRow(random.Random(k).random())])
    await service.outcomes(name, [OutcomeRow(said.id, k % 2)])


class Gate:
    """Holds overviews back until it is opened."""

    def __init__(self, monkeypatch):
        self.reached, self.opened, self.made = threading.Event(), threading.Event(), 0
        made = overviews.view_of

        def slowly(sight, chances):
            self.made += 1
            self.reached.set()
            assert self.opened.wait(30)
            return made(sight, chances)

        monkeypatch.setattr(overviews, "view_of", slowly)

    async def wait(self):
        assert await asyncio.to_thread(self.reached.wait, 30)


def run(play, tmp_path):
    async def opened():
        async with open_service(f"sqlite:///{tmp_path}/a.db") as service:
            await service.create("x")
            return await play(service)

    return asyncio.run(opened())


def test_an_overview_is_of_one_entry_while_the_stream_goes_on(tmp_path, monkeypatch):
    gate = Gate(monkeypatch)

    async def play(service):
        for k in range(20):
            await pair(service, "x", k)
        asked = asyncio.create_task(service.overview("x"))
        await gate.wait()
        for k in range(20):  # the writer does not wait for it
            await pair(service, "x", k)
        gate.opened.set()
        return await asked, await service.overview("x")

    old, new = run(play, tmp_path)
    for view, pairs in ((old, 20), (new, 40)):
        (side,) = view.sides
        assert view.seq == 1 + 2 * pairs
        assert view.rounds == side.rounds == side.certificate.rounds == pairs
        assert sum(each.rounds for each in side.after.reliability) == pairs
        assert sum(point.rounds for point in view.course) == pairs
        assert side.before.smooth_by_chance_rounds == pairs


def test_who_asks_meanwhile_shares_the_next_one(tmp_path, monkeypatch):
    gate = Gate(monkeypatch)

    async def play(service):
        first = asyncio.create_task(service.overview("x"))
        await gate.wait()
        await pair(service, "x", 0)
        others = [asyncio.create_task(service.overview("x")) for _ in range(10)]
        await asyncio.sleep(0)
        others.pop().cancel()  # one leaves, the others do not notice
        gate.opened.set()
        return await first, await asyncio.gather(*others)

    first, others = run(play, tmp_path)
    assert gate.made == 2
    assert first.rounds == 0
    assert {view.rounds for view in others} == {1}  # never older than the question


def test_a_stream_that_is_deleted_meanwhile_is_shown_as_it_was(tmp_path, monkeypatch):
    gate = Gate(monkeypatch)

    async def play(service):
        await pair(service, "x", 0)
        asked = asyncio.create_task(service.overview("x"))
        await gate.wait()
        await service.delete("x", confirm="x")
        gate.opened.set()
        view = await asked
        with pytest.raises(NotFoundError):
            await service.overview("x")
        await service.create("x")
        return view, await service.overview("x")

    view, new = run(play, tmp_path)
    assert (view.rounds, len(view.sides)) == (1, 1)
    assert (new.rounds, new.sides) == (0, [])


def test_what_fails_beside_the_writer_stops_nothing(tmp_path, monkeypatch):
    async def play(service):
        with monkeypatch.context() as broken:
            broken.setattr(overviews, "view_of", lambda *_: 1 / 0)
            found = await asyncio.gather(
                *(service.overview("x") for _ in range(3)), return_exceptions=True
            )
        await pair(service, "x", 0)
        return found, await service.overview("x")

    failed, view = run(play, tmp_path)
    assert all(isinstance(error, ZeroDivisionError) for error in failed)
    assert view.rounds == 1


@pytest.mark.parametrize("classes", [None, 3])
def test_figures_are_those_of_the_measures(classes):
    stream, chances = played(300, classes), Chances()
    facts = facts_of(stream, 50)
    assert len(facts) == (classes or 1)
    assert [each.certificate.per_round for each in facts] == sorted(
        (each.certificate.per_round for each in facts), reverse=True
    )
    for each in facts:
        side = side_of(1, each, chances)
        found = uncertainty(smooth_calibration_error, tally_of(each.record["before"]), resamples=40)
        assert side.before.smooth == found.estimate
        assert side.before.smooth_by_chance == pytest.approx(found.if_calibrated, rel=1e-12)


def test_the_copy_does_not_change_with_the_stream():
    stream = played(100)
    facts = facts_of(stream, 50)
    before = side_of(1, facts[0], Chances())
    stream.forecast(1, np.full(50, 0.3), None, None)
    stream.learn(1, list(range(100, 150)), [1] * 50)
    assert side_of(1, facts[0], Chances()) == before
    assert side_of(1, facts_of(stream, 50)[0], Chances()) != before


def test_chance_is_kept_until_the_rounds_have_grown_by_a_tenth():
    chances, stream = Chances(most=2), played(200)
    tally = tally_of(facts_of(stream, 1)[0].record["after"])
    first = chances.of(("a",), tally, 1000)
    assert chances.of(("a",), tally, 1099) == first
    assert chances.of(("a",), tally, 1101) == (first[0], 1101)
    assert chances.of(("a",), tally, 900) == (first[0], 900)  # a stream never shrinks; if it did
    chances.of(("b",), tally, 1)
    chances.of(("c",), tally, 1)
    assert chances.of(("a",), tally, 901) == (first[0], 901)  # was forgotten
