"""The table of ids lags behind the journal: no id is lost, and none is applied twice."""

import asyncio
import random

import pytest

from journals import run, torn, verified
from truecast.errors import ConflictError
from truecast.serve import recent
from truecast.serve.events import Forecasts, Head, Outcomes, encode
from truecast.serve.recent import Recent, rows_of
from truecast.serve.retention import Find, Forget
from truecast.serve.rows import ForecastRow, OutcomeRow
from truecast.serve.service import open_service, store_of
from truecast.serve.sqlite import SQLiteStore
from truecast.serve.store import Batch
from truecast.serve.writer import Writer


@pytest.fixture
def killed(monkeypatch):
    """Services end as if they were killed: nothing is written at the end."""
    monkeypatch.setattr(Writer, "_save_all", lambda _: None)


def _lag(url):
    """How many entries the table of ids is behind."""
    store = store_of(url)
    store.read_only()
    try:
        return store.head().seq - store.indexed()
    finally:
        store.close()


async def _statuses(service, *rows):
    answers = await service.outcomes("x", [OutcomeRow(name, y) for name, y in rows])
    return [answer.status for answer in answers]


def test_killed_before_ids_are_indexed_all_are_known_again(url, killed):
    async def begin():
        async with open_service(url) as service:
            await service.create("x")
            rows = [ForecastRow(0.1 * k, f"{k}") for k in range(6)]
            answers = await service.forecasts("x", rows)
            assert await _statuses(service, ("0", 1), ("1", 0)) == ["learned"] * 2
            return answers

    async def go_on(said):
        async with open_service(url) as service:
            again = await service.forecasts("x", [ForecastRow(0.1 * k, f"{k}") for k in range(6)])
            assert [(each.p, each.again) for each in again] == [(each.p, True) for each in said]
            with pytest.raises(ConflictError, match="another score"):
                await service.forecasts("x", [ForecastRow(0.7, "3")])
            found = await _statuses(service, ("0", 1), ("1", 1), ("2", 1), ("2", 1), ("9", 1))
            await service.create("y")
            await service.delete("y", confirm="y")
            return found, (await service.overview("x")).rounds

    said = run(begin())
    assert _lag(url) == 3
    statuses = ["duplicate", "contradiction", "learned", "duplicate", "unknown"]
    assert run(go_on(said)) == (statuses, 3)
    statuses[2] = "duplicate"
    assert run(go_on(said)) == (statuses, 3)
    assert _lag(url) == 8
    assert not verified(url).problems


def test_an_outcome_of_an_indexed_forecast_survives_a_kill(url, killed, monkeypatch):
    async def begin():
        async with open_service(url) as service:
            await service.create("x")
            await service.forecasts("x", [ForecastRow(0.3, "a"), ForecastRow(0.4, "b")])
            service._writer.shelf.recent.index(service.health.seq)
            return await _statuses(service, ("a", 1))

    async def again():
        async with open_service(url) as service:
            found = await _statuses(service, ("a", 0), ("a", 1), ("b", 1))
            return found, (await service.overview("x")).rounds

    assert run(begin()) == ["learned"]
    assert _lag(url) == 1
    assert not verified(url).problems
    monkeypatch.undo()
    assert run(again()) == (["contradiction", "duplicate", "learned"], 2)
    assert _lag(url) == 0
    assert not verified(url).problems


def test_at_a_regular_end_all_ids_are_indexed(url):
    async def play():
        async with open_service(url) as service:
            await service.create("x")
            await service.forecasts("x", [ForecastRow(0.3, "a")])
            assert _lag(url) == 2

    run(play())
    assert _lag(url) == 0


def test_the_lag_is_bounded(url, monkeypatch):
    monkeypatch.setattr(recent, "LAG", 10)

    async def play():
        lags = []
        async with open_service(url) as service:
            await service.create("x")
            for k in range(40):
                await service.forecasts("x", [ForecastRow(0.3, f"{k}")])
                lags.append(len(service._writer.shelf.recent._fresh))
                await service.outcomes("x", [OutcomeRow(f"{k}", 1)])
        return lags

    lags = run(play())
    assert max(lags) == 10
    assert min(lags[20:]) <= 1


@pytest.mark.parametrize("last", [1, 2])
def test_entries_go_only_once_their_ids_are_indexed(url, killed, last):
    async def begin():
        async with open_service(url) as service:
            await service.create("x")
            await service.forecasts("x", [ForecastRow(0.3, "a"), ForecastRow(0.4, "b")])
            await _statuses(service, ("a", 1))
            await service.forecasts("x", [ForecastRow(0.5, "c")])
            await service._ask(Find(None, 0))
            assert await service._ask(Forget(last + 1)) == last + 1

    async def again():
        async with open_service(url) as service:
            rows = [ForecastRow(0.3, "a"), ForecastRow(0.4, "b"), ForecastRow(0.5, "c")]
            answers = await service.forecasts("x", rows)
            return [each.again for each in answers], await _statuses(service, ("b", 1), ("c", 0))

    run(begin())
    assert not verified(url).problems
    assert run(again()) == ([last == 1, True, True], ["learned", "learned"])
    assert not verified(url).problems


def test_after_a_power_cut_all_acknowledged_ids_are_known(tmp_path, monkeypatch):
    monkeypatch.setattr(recent, "LAG", 5)
    store = SQLiteStore(tmp_path / "a.db")
    store.acquire(wait=False)
    store.db.execute("PRAGMA wal_autocheckpoint=20")
    ids, rng, head, indexed = Recent(store), random.Random(0), Head(), set()
    acknowledged, log = {}, tmp_path / "a.db-wal"
    for turn in range(40):
        synced, main = log.read_bytes(), store.path.read_bytes()
        before, known = head, dict(acknowledged)
        body = Forecasts(turn, [f"{turn}"], rng.randbytes(8), rng.randbytes(8))
        entry, head = encode(head, 1, turn, body)
        fresh, entries = rows_of(1, body), [entry]
        if turn > 3:
            key = 1, f"{turn - 3}"
            ticket = (turn - 3).to_bytes(8, "little")
            entry, head = encode(head, 1, turn, Outcomes([key[1]], ticket, bytes(4)))
            entries.append(entry)
            fresh[key] = acknowledged[key]._replace(outcome=0)
        batch = Batch(entries=entries)
        ids.add_to(batch, fresh, head.seq)
        store.commit(batch)
        ids.keep(fresh, fresh, batch)
        acknowledged.update(fresh)
        cut = tmp_path / f"cut{turn}"
        cut.mkdir()
        (cut / "a.db").write_bytes(main)
        (cut / "a.db-wal").write_bytes(torn(synced, log.read_bytes(), rng))
        found = SQLiteStore(cut / "a.db")
        found.acquire(wait=False)
        again = Recent(found)
        again.read({1})
        expected = known if found.head() == before else acknowledged
        assert found.head() in (before, head)
        assert again.find([(1, [name for _, name in acknowledged])]) == expected
        indexed.add(found.indexed())
        found.close()
    store.close()
    assert len(indexed) > 4


@pytest.mark.parametrize("seed", range(4))
def test_ids_are_as_a_plain_dictionary_says(tmp_path, monkeypatch, seed):
    """Random requests, deletions, retention and kills, in lockstep with a dictionary."""
    rng, url = random.Random(seed), f"sqlite:///{tmp_path}/a.db"
    save, turns = Writer._save_all, 12
    model, count = {}, 0

    async def forecast(service, name):
        nonlocal count
        new = [f"{count + k}" for k in range(rng.choice([1, 1, 7]))]
        count += len(new)
        names = new + rng.sample(sorted(model[name]), min(2, len(model[name])))
        rng.shuffle(names)
        answers = await service.forecasts(name, [ForecastRow(0.25, each) for each in names])
        assert [each.again for each in answers] == [each in model[name] for each in names]
        model[name].update(dict.fromkeys(new))

    async def learn(service, name):
        names = rng.sample(sorted(model[name]), min(5, len(model[name])))
        rows = [(each, rng.randrange(2)) for each in [*names, "nobody"]]
        answers = await service.outcomes(name, [OutcomeRow(*row) for row in rows])
        for (each, y), answer in zip(rows, answers, strict=True):
            known = model[name].get(each)
            expected = (
                "learned" if known is None else "duplicate" if known == y else "contradiction"
            )
            assert answer.status == ("unknown" if each == "nobody" else expected)
            if each != "nobody" and known is None:
                model[name][each] = y

    async def delete(service, name):
        await service.delete(name, confirm=name)
        await service.create(name)
        model[name] = {}

    async def retain(service, name):
        await service.retain(max_bytes=0)
        for ids in model.values():
            for each in [each for each, y in ids.items() if y is not None]:
                del ids[each]

    async def life():
        async with open_service(url) as service:
            for name in ("x", "y"):
                await service.create(name)
                model.setdefault(name, {})
            for _ in range(turns):
                steps = rng.choices([forecast, learn, delete, retain], [6, 6, 1, 1])
                await steps[0](service, rng.choice("xy"))

    for _ in range(6):
        monkeypatch.setattr(recent, "LAG", rng.choice([1, 6, 10**9]))
        monkeypatch.setattr(Writer, "_save_all", rng.choice([save, lambda _: None]))
        run(life())
        assert not verified(url).problems


def test_an_older_database_is_opened_and_goes_on(url):
    async def begin():
        async with open_service(url) as service:
            await service.create("x")
            await service.forecasts("x", [ForecastRow(0.3, "a"), ForecastRow(0.4, "b")])
            await _statuses(service, ("a", 1))

    async def go_on():
        async with open_service(url) as service:
            answers = await service.forecasts("x", [ForecastRow(0.4, "b"), ForecastRow(0.5, "c")])
            statuses = await _statuses(service, ("a", 0), ("b", 1), ("c", 1))
            return [each.again for each in answers], statuses

    run(begin())
    store = store_of(url)
    store.acquire(wait=False)
    meta = "meta" if url.startswith("sqlite") else "truecast_meta"
    store.db.execute(f"ALTER TABLE {meta} DROP COLUMN indexed")
    store.db.execute(f"UPDATE {meta} SET schema = 1")
    store.close()
    assert not verified(url).problems  # before it is upgraded
    assert run(go_on()) == ([True, False], ["contradiction", "learned", "learned"])
    assert _lag(url) == 0
    assert not verified(url).problems


def test_requests_of_one_transaction_know_one_another(url, killed):
    async def play():
        async with open_service(url) as service:
            await service.create("x")
            first, again, came, other = await asyncio.gather(
                service.forecasts("x", [ForecastRow(0.3, "a")]),
                service.forecasts("x", [ForecastRow(0.3, "a")]),
                _statuses(service, ("a", 1)),
                _statuses(service, ("a", 0)),
            )
            assert (first[0].again, again[0].again) == (False, True)
            return came + other

    assert run(play()) == ["learned", "contradiction"]
    assert not verified(url).problems
