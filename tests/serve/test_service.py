"""The service on both databases: answers, idempotence, restarts."""

import asyncio

import pytest

from truecast.errors import ConflictError, InputError, NotFoundError, TooLargeError
from truecast.serve.options import StreamOptions
from truecast.serve.rows import ForecastRow, OutcomeRow
from truecast.serve.service import open_service


def run(coroutine):
    return asyncio.run(coroutine)


def test_an_id_again_gets_the_same_answer_and_changes_nothing(url):
    async def play():
        async with open_service(url) as service:
            await service.create("x")
            first = await service.forecasts("x", [ForecastRow(0.7, "a"), ForecastRow(0.4)])
            again = await service.forecasts("x", [ForecastRow(0.7, "a")])
            assert again[0].p == first[0].p
            assert (first[0].again, again[0].again) == (False, True)
            with pytest.raises(ConflictError, match="another score"):
                await service.forecasts("x", [ForecastRow(0.2, "new"), ForecastRow(0.71, "a")])
            assert (await service.outcomes("x", [OutcomeRow("new", 1)]))[0].status == "unknown"
            return (await service.overview("x")).outstanding.count

    assert run(play()) == 2


def test_every_outcome_has_a_status(url):
    async def play():
        async with open_service(url) as service:
            await service.create("x")
            await service.forecasts("x", [ForecastRow(0.5, name) for name in "abc"])
            assert await service.give_up("x", ids=["c", "nobody"]) == 1
            rows = [OutcomeRow("a", 1), OutcomeRow("a", 1), OutcomeRow("a", 0)]
            rows += [OutcomeRow("c", 1), OutcomeRow("z", 1)]
            return [answer.status for answer in await service.outcomes("x", rows)]

    assert run(play()) == ["learned", "duplicate", "contradiction", "given_up", "unknown"]


def test_bad_requests_change_nothing(url):
    async def play():
        async with open_service(url) as service:
            await service.create("x")
            with pytest.raises(ConflictError):
                await service.create("x", StreamOptions(note="other"))
            with pytest.raises(NotFoundError):
                await service.forecasts("y", [ForecastRow(0.5)])
            for rows in ([ForecastRow(0.5), ForecastRow(1.5)], [ForecastRow(0.5, "")], []):
                with pytest.raises(InputError):
                    await service.forecasts("x", rows)
            with pytest.raises(TooLargeError):
                await service.forecasts("x", [ForecastRow(0.5)] * 10_001)
            with pytest.raises(InputError):
                await service.create("../x")
            with pytest.raises(InputError):
                await service.delete("x", confirm="y")
            view = await service.overview("x")
            return view.seq, view.outstanding.count

    assert run(play()) == (1, 0)


def test_a_restart_goes_on_as_if_there_had_been_none(url, tmp_path):
    scores = [(k * 37 % 101) / 101 for k in range(60)]

    async def part(service, k):
        answers = await service.forecasts("x", [ForecastRow(s) for s in scores[k : k + 10]])
        rows = [OutcomeRow(a.id, (k + j) % 3 == 0) for j, a in enumerate(answers[:7])]
        await service.outcomes("x", [OutcomeRow(r.id, int(r.outcome)) for r in rows])
        return [answer.p for answer in answers]

    async def whole(url):
        async with open_service(url) as service:
            await service.create("x")
            return [p for k in range(0, 60, 10) for p in await part(service, k)]

    async def pieces(url):
        said = []
        for k in range(0, 60, 10):
            async with open_service(url) as service:
                await service.create("x")
                said += await part(service, k)
        return said

    assert run(whole(url)) == run(pieces(f"sqlite:///{tmp_path}/b.db"))
