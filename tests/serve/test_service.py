"""The service on both databases: answers, idempotence, restarts."""

import asyncio

import numpy as np
import pytest

import truecast as tc
from truecast.errors import ConflictError, InputError, NotFoundError, TooLargeError
from truecast.serve import writer
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


@pytest.mark.alike("plays two services for each database")
@pytest.mark.parametrize("scale", ["probability", "logit"])
def test_streams_of_several_classes(url, scale):
    options = StreamOptions(classes=["home", "draw", "away"], scale=scale, max_unresolved=50)
    rng = np.random.default_rng(0)
    rows = rng.dirichlet(np.ones(3), 80)
    scores = rows if scale == "probability" else np.log(rows)

    async def play():
        async with open_service(url) as service:
            await service.create("games", options)
            said = []
            for k in range(0, 80, 20):
                asked = [
                    ForecastRow(score.tolist(), groups=["cup", f"g{j % 3}"], event=f"e{j}")
                    for j, score in enumerate(scores[k : k + 20])
                ]
                answers = await service.forecasts("games", asked)
                said += [answer.p for answer in answers]
                came = [OutcomeRow(a.id, "home") for a in answers[:15]]
                assert {a.status for a in await service.outcomes("games", came)} == {"learned"}
            with pytest.raises(InputError, match="outcome"):
                await service.outcomes("games", [OutcomeRow(answers[-1].id, "nobody")])
            with pytest.raises(InputError):
                await service.forecasts("games", [ForecastRow([0.5, 0.5])])
            return said, await service.overview("games"), await service.state("games")

    said, view, state = run(play())
    recalibrator = options.recalibrator()
    tickets = []
    for k in range(80):
        own = tickets[-20:] if k % 20 == 0 and k else []
        for ticket in own[:15]:
            recalibrator.resolve(ticket, "home")
        group, event = ("cup", f"g{k % 20 % 3}"), f"e{k % 20}"
        tickets.append(recalibrator.issue(scores[k], group=group, event=event))
    assert said == [list(ticket.p) for ticket in tickets]
    assert {side.label for side in view.sides} == {"home", "draw", "away"}
    assert all(side.rounds == 60 for side in view.sides)
    assert sum(side.rate for side in view.sides) == pytest.approx(1)
    home = next(side for side in view.sides if side.label == "home")
    assert home.after.brier < home.before.brier
    assert {group.name for group in view.groups} == {"cup", "g0", "g1", "g2"}
    assert view.verdict.headline == "Too few rounds to tell"  # all of them name an event

    async def again():
        async with open_service(url) as service:
            return await service.state("games")

    assert run(again()) == state


def test_what_is_shown_is_what_measures_say(url):
    rng = np.random.default_rng(1)
    scores = rng.random(3_000).round(3)
    y = (rng.random(3_000) < scores**2).astype(int)

    async def play():
        async with open_service(url) as service:
            await service.create("x")
            said = []
            for k in range(0, 3_000, 100):
                answers = await service.forecasts(
                    "x", [ForecastRow(s) for s in scores[k : k + 100]]
                )
                said += [answer.p for answer in answers]
                rows = zip(answers, y[k : k + 100].tolist(), strict=True)
                await service.outcomes("x", [OutcomeRow(answer.id, one) for answer, one in rows])
            return said, await service.overview("x")

    said, view = run(play())
    (side,) = view.sides
    for half, p in ((side.before, scores), (side.after, np.array(said))):
        assert half.brier == pytest.approx(tc.brier_score(y, p), rel=1e-12)
        assert half.mean == pytest.approx(p.mean(), rel=1e-12)
        assert half.smooth == pytest.approx(tc.smooth_calibration_error(y, p), abs=1 / 128)
        assert sum(part.rounds for part in half.reliability) == 3_000
        assert len(half.reliability) <= 21
    assert side.before.log_loss is None or side.before.log_loss > 0
    assert side.after.log_loss == pytest.approx(tc.log_loss(y, said), rel=1e-9)
    assert side.before.smooth > 3 * side.before.smooth_by_chance
    assert side.before.evidence.alarms > 0
    assert view.verdict.headline.startswith("Before: not calibrated: forecasts are too high. After")
    assert view.verdict.kind == "none"
    assert (view.rounds, view.brier_after) == (3_000, side.after.brier)
    assert sum(point.rounds for point in view.course) == 3_000
    assert view.course[-1].end >= view.course[0].start
    rolling = np.empty(3_000)
    for t in range(3_000):
        known = y[max(0, t // 100 * 100 - 200) : t // 100 * 100]
        rolling[t] = known.mean() if len(known) else 0.5
    assert side.rolling.brier == pytest.approx(((y - rolling) ** 2).mean(), rel=1e-12)


def test_news_of_many_streams_take_turns_and_all_come(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "NEWS", (0.0, 2.0))  # one stream at a time
    monkeypatch.setattr(writer, "THIN", 0.02)
    names = {f"s{k}" for k in range(6)}

    async def play():
        async with open_service(f"sqlite:///{tmp_path}/a.db") as service:
            told = {}

            async def listen():
                async for change in service.subscribe():
                    told[change.name] = change.info.unresolved
                    if told == dict.fromkeys(names, 1):
                        return

            listening = asyncio.create_task(listen())
            for name in names:
                await service.create(name)
                await service.forecasts(name, [ForecastRow(0.5)])
            await asyncio.wait_for(listening, 30)

    run(play())


@pytest.mark.parametrize(("most", "transactions"), [(1, 12), (5, 3), (20_000, 1)])
def test_requests_of_one_moment_share_transactions_in_their_order(
    most, transactions, tmp_path, monkeypatch
):
    async def play():
        async with open_service(f"sqlite:///{tmp_path}/a.db") as service:
            await service.create("x")
            seen, commit = [], service._writer.store.commit
            monkeypatch.setattr(
                service._writer.store, "commit", lambda batch: (seen.append(batch), commit(batch))
            )
            monkeypatch.setattr(writer, "MOST_ROWS", most)
            asked = [service.forecasts("x", [ForecastRow(0.5, f"{k}")]) for k in range(12)]
            answers = await asyncio.gather(*asked)
            return [len(batch.entries) for batch in seen], [row.id for (row,) in answers]

    sizes, ids = run(play())
    assert len(sizes) == transactions
    assert sum(sizes) == 12
    assert ids == [f"{k}" for k in range(12)]


def test_what_was_asked_before_the_end_is_answered(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "MOST_ROWS", 2)

    async def play():
        async with open_service(f"sqlite:///{tmp_path}/a.db") as service:
            await service.create("x")
            asked = [service.forecasts("x", [ForecastRow(0.5, f"{k}")]) for k in range(9)]
            tasks = [asyncio.create_task(each) for each in asked]
            await asyncio.sleep(0)
        return [row.id for (row,) in await asyncio.gather(*tasks)]

    assert run(play()) == [f"{k}" for k in range(9)]


def test_news_are_thinned_and_errors_remembered(tmp_path):
    async def play():
        async with asyncio.timeout(60), open_service(f"sqlite:///{tmp_path}/a.db") as service:
            news = []

            async def listen():
                async for change in service.subscribe():
                    news.append(change)  # noqa: PERF401  # as they come

            listening = asyncio.create_task(listen())
            await service.create("x")
            for _ in range(60):
                await service.forecasts("x", [ForecastRow(0.5)])
            service.note_error("x", 422, "bad", "score")
            service.note_error("x", 422, "bad", "score")
            service.note_error("nobody", 422, "bad", "score")
            while not (news and news[-1].info.unresolved == 60):
                await asyncio.sleep(0.01)
            view = await service.overview("x")
            await service.delete("x", confirm="x")
            while news[-1].info is not None:
                await asyncio.sleep(0.01)
            listening.cancel()
            return news, view

    news, view = run(play())
    assert news[-1].info is None
    assert news[-2].info.unresolved == 60
    assert len(news) < 20
    assert [error["count"] for error in view.errors] == [2]
    assert sum(minute["forecasts"] for minute in view.rates) == 60


def test_classes_are_watched(tmp_path):
    rng = np.random.default_rng(2)
    rows = rng.dirichlet(np.ones(3), 1_500)

    async def play():
        async with open_service(f"sqlite:///{tmp_path}/a.db") as service:
            await service.create("x", StreamOptions(classes=["a", "b", "c"]))
            for k in range(0, 1_500, 250):
                asked = [ForecastRow(row.tolist()) for row in rows[k : k + 250]]
                answers = await service.forecasts("x", asked)
                await service.outcomes("x", [OutcomeRow(each.id, "a") for each in answers])
            return await service.overview("x")

    view = run(play())
    side = next(side for side in view.sides if side.label == "a")
    assert side.before.evidence.alarm.label == "a"
    assert side.before.evidence.alarm.direction == "too low"
    assert view.verdict.headline.startswith("Before: not calibrated: forecasts")
    assert view.alarms > 0
    assert view.course[-1].evidence_before > 0


def test_what_fails_to_be_shown_stops_nothing(tmp_path, monkeypatch):
    async def play():
        async with open_service(f"sqlite:///{tmp_path}/a.db") as service:
            await service.create("x")
            monkeypatch.setattr("truecast.serve.service.sight_of", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                await service.overview("x")
            return (await service.forecasts("x", [ForecastRow(0.5)]))[0].again

    assert run(play()) is False


ODD = [
    [ForecastRow(0.5, "a\0b")],
    [ForecastRow(0.5, "\ud800")],
    [ForecastRow(0.5, "x" * 201)],
    [ForecastRow([0.5])],
    [ForecastRow(0.5, groups=["a", "a"])],
    [ForecastRow([0.5, 0.5]), ForecastRow(0.5)],
    [ForecastRow(float("nan"))],
    [ForecastRow(0.5), ForecastRow(float("inf"))],
]
FINE = [
    [ForecastRow(-0.0)],
    [ForecastRow(1)],
    [ForecastRow(0.5, "é\n\U0001f600'\";--")],
    [ForecastRow(0.5, groups=[])],
    [ForecastRow(0.5, groups=["a", "b"], event="", time="\0")],
    [ForecastRow(0.5, groups="", event="é")],
    [ForecastRow(0.5, "same"), ForecastRow(0.5, "same")],
]


def test_odd_rows_are_refused_or_answered_and_nothing_else(url):
    async def play():
        async with open_service(url) as service:
            await service.create("x")
            for rows in ODD:
                with pytest.raises(InputError):
                    await service.forecasts("x", rows)
            answers = [await service.forecasts("x", rows) for rows in FINE]
            assert [answer.again for answer in answers[-1]] == [False, True]
            for outcome in (2, -1, 10**30, "1", "", True):
                with pytest.raises(InputError):
                    await service.outcomes("x", [OutcomeRow("same", outcome)])
            assert await service.give_up("x", ids=["\0", "same"]) in (0, 1)
            assert service.health.ready
            return service.health.seq, [a.p for answer in answers for a in answer]

    seq, said = run(play())

    async def again():
        async with open_service(url) as service:
            return (await service.overview("x")).unresolved

    assert run(again()) == len(FINE) - 1
    assert seq == 2 + len(FINE)
    assert len(said) == len(FINE) + 1
