"""Retention: what is old goes, the rest goes on, and nothing goes that is needed."""

import asyncio
import sqlite3

import polars as pl
import pytest

import journals
from journals import run, verified
from truecast.serve import journal
from truecast.serve.events import Forecasts, decode
from truecast.serve.journal import replay
from truecast.serve.options import StreamOptions
from truecast.serve.retention import Find, Forget
from truecast.serve.rows import ForecastRow, OutcomeRow
from truecast.serve.service import open_service, store_of


def test_what_is_old_goes_and_the_rest_goes_on(url, tmp_path):
    async def play(url, retain):
        async with open_service(url) as service:
            await service.create("x", StreamOptions(max_unresolved=60))
            await journals.play(service, "x", 8)
            open_ids = (await service.overview("x")).unresolved
            gone = None
            if retain:
                gone = await service.retain(max_age=0, export_to=tmp_path / "old")
                assert (await service.overview("x")).unresolved == open_ids
            await journals.play(service, "x", 6, first=8)
            state = await service.state("x")
            return gone, {name: state[name] for name in ("recalibrator", "monitors")}

    gone, kept = run(play(url, retain=True))
    _, undisturbed = run(play(f"sqlite:///{tmp_path}/b.db", retain=False))
    assert kept == undisturbed
    assert gone.entries > 10
    rows = pl.read_parquet(gone.file)
    assert (rows["seq"].min(), rows["seq"].max()) == (1, gone.entries)
    found = verified(url)
    assert (found.problems, found.first) == ([], gone.entries + 1)
    store = store_of(url)
    store.read_only()
    assert "exported" in next(replay(store)).problem
    store.close()


def test_streams_that_are_not_in_memory_are_saved_before_their_entries_go(tmp_path):
    url, names = f"sqlite:///{tmp_path}/a.db", [f"s{k}" for k in range(5)]

    async def play():
        async with open_service(url, open_streams=2) as service:
            for name in names:
                await service.create(name)
                await journals.play(service, name, 4)
            states = [await service.state(name) for name in names]
            assert (await service.retain(max_age=0)).entries > 20
            return states

    async def again():
        async with open_service(url) as service:
            return [await service.state(name) for name in names]

    assert run(play()) == run(again())


def test_size_can_be_what_lets_entries_go(tmp_path):
    async def play():
        async with open_service(f"sqlite:///{tmp_path}/a.db") as service:
            await service.create("x")
            for k in range(40):
                await service.forecasts("x", [ForecastRow(0.5, f"{k}")])
            nothing = await service.retain(max_bytes=10**9)
            some = await service.retain(max_bytes=4_000)
            answer = await service.outcomes("x", [OutcomeRow("0", 1)])  # it was still open
            return nothing.entries, some.entries, answer[0].status

    nothing, some, status = run(play())
    assert (nothing, status) == (0, "learned")
    assert 5 < some < 36


def _sizes(url):
    """What each entry counts for, when entries go by size."""
    store = store_of(url)
    store.read_only()
    sizes = [len(entry.body) + 100 for entry in store.entries(0)]
    store.close()
    return sizes


async def _keep(service, url, last):
    """Let all but the last entries go."""
    await service.retain(max_bytes=sum(_sizes(url)[-last:]))
    assert len(_sizes(url)) == last


def test_an_id_goes_with_its_outcome_and_not_before(url):
    async def play():
        async with open_service(url) as service:
            await service.create("s")
            await service.forecasts("s", [ForecastRow(0.3, "x"), ForecastRow(0.4, "w")])
            await service.outcomes("s", [OutcomeRow("x", 1)])
            await _keep(service, url, 1)  # the forecast has gone, its outcome has not
            assert not verified(url).problems
            assert (await service.forecasts("s", [ForecastRow(0.3, "x")]))[0].again
            await service.forecasts("s", [ForecastRow(0.5, "y")])
            await _keep(service, url, 1)
            rows = [ForecastRow(0.8, "x"), ForecastRow(0.4, "w")]
            return [answer.again for answer in await service.forecasts("s", rows)]

    assert run(play()) == [False, True]
    assert not verified(url).problems


def test_an_id_that_was_used_again_does_not_go_with_its_old_entries(url):
    async def play():
        async with open_service(url) as service:
            await service.create("s")
            await service.forecasts("s", [ForecastRow(0.3, "x")])
            await service.give_up("s", ids=["x"])
            await _keep(service, url, 1)

    async def reuse():
        async with open_service(url) as service:
            assert not (await service.forecasts("s", [ForecastRow(0.8, "x")]))[0].again
            await service.outcomes("s", [OutcomeRow("x", 0)])
            await _keep(service, url, 2)

    async def again():
        async with open_service(url) as service:
            assert (await service.forecasts("s", [ForecastRow(0.8, "x")]))[0].again
            # as one that an older version has left: an outcome whose id is another's by now
            rows = [ForecastRow(0.1 * k, f"{k}") for k in range(3)]
            await service.forecasts("s", rows)
            await service.outcomes("s", [OutcomeRow("0", 1)])
            service._writer.shelf.recent.index(service.health.seq)
            _reticket(service._writer.store, "0", 99)
            await service.forecasts("s", [ForecastRow(0.5, "last")])
            await _keep(service, url, 1)
            return _tickets(service._writer.store)

    run(play())
    run(reuse())
    assert run(again()) == {"0": 99, "1": 3, "2": 4, "last": 5}


def test_an_id_that_has_gone_is_new_at_once(url):
    async def play():
        async with open_service(url) as service:
            await service.create("s")
            await service.forecasts("s", [ForecastRow(0.3, "x"), ForecastRow(0.4, "w")])
            await service.outcomes("s", [OutcomeRow("x", 1)])
            rows = [ForecastRow(0.8, "x"), ForecastRow(0.4, "w")]
            _, together = await asyncio.gather(  # in one transaction
                service._ask(Find(None, 0)), service.forecasts("s", rows[1:])
            )
            assert together[0].again
            _, together = await asyncio.gather(
                service._ask(Forget(3)), service.forecasts("s", rows)
            )
            after = await service.forecasts("s", rows)
            return [answer.again for answer in (*together, *after)]

    assert run(play()) == [False, True, True, True]
    assert not verified(url).problems


def _reticket(store, name, ticket):
    table = "ids" if store.db.__class__.__module__ == "sqlite3" else "truecast_ids"
    store.db.execute(f"UPDATE {table} SET ticket = {ticket} WHERE id = '{name}'")


def _tickets(store):
    found = store.lookup({1: ["x", "0", "1", "2", "last"]})
    return {name: known.ticket for (_, name), known in found.items()}


def _change(path, change):
    db = sqlite3.connect(path)
    db.execute(change)
    db.commit()
    db.close()


@pytest.mark.parametrize("damage", ["seq = seq + 256", "state = substr(state, 1, 60)"])
def test_entries_stay_until_a_snapshot_holds_what_they_say(tmp_path, damage):
    url = f"sqlite:///{tmp_path}/a.db"

    async def begin():
        async with open_service(url) as service:
            await service.create("s")
            await service.forecasts("s", [ForecastRow(0.3, f"{k}") for k in range(80)])

    async def go_on():
        async with open_service(url) as service:
            await service.outcomes("s", [OutcomeRow(f"{k}", 0) for k in range(80)])
            assert (await service.retain(max_bytes=0)).entries == 3
            return await service.state("s")

    async def again():
        async with open_service(url) as service:
            return await service.state("s")

    run(begin())
    _change(tmp_path / "a.db", f"UPDATE snapshots SET {damage}")
    state = run(go_on())
    assert (run(again()), state["seq"]) == (state, 3)
    assert not verified(url).problems


def test_a_snapshot_that_was_damaged_at_rest_keeps_its_entries_from_going(tmp_path):
    url = f"sqlite:///{tmp_path}/a.db"

    async def begin():
        async with open_service(url) as service:
            await service.create("s")
            await service.forecasts("s", [ForecastRow(0.3, f"{k}") for k in range(80)])
            return await service.state("s")

    async def go_on():
        async with open_service(url) as service:
            await service.retain(max_bytes=0)

    async def again():
        async with open_service(url) as service:
            return await service.state("s")

    state = run(begin())
    _change(tmp_path / "a.db", "UPDATE snapshots SET state = substr(state, 1, 60)")
    run(go_on())
    assert run(again()) == state


def test_a_stream_that_cannot_be_loaded_keeps_its_entries_and_the_others_go(tmp_path):
    url = f"sqlite:///{tmp_path}/a.db"

    async def begin():
        async with open_service(url) as service:
            for name in ("x", "bad"):
                await service.create(name)
            await service.retain(max_bytes=0)
            for name in ("x", "bad", "x"):
                await service.forecasts(name, [ForecastRow(0.5)])

    async def go_on():
        async with open_service(url) as service:
            return (await service.retain(max_bytes=0)).entries

    run(begin())
    _change(tmp_path / "a.db", "UPDATE snapshots SET state = zeroblob(60) WHERE stream = 2")
    assert (run(go_on()), run(go_on())) == (1, 0)
    assert verified(url).first == 4


def test_what_retention_has_left_is_compared_as_far_as_entries_say(tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "_AT_ONCE", 7)  # so that outcomes come in later lots
    url = f"sqlite:///{tmp_path}/a.db"

    async def play():
        async with open_service(url) as service:
            await service.create("x", StreamOptions(max_unresolved=60))
            await journals.play(service, "x", 10)
            await service.retain(max_bytes=3_000)

    run(play())
    found = verified(url)
    assert not found.problems
    assert found.first > 1
    db = sqlite3.connect(tmp_path / "a.db")
    store = store_of(url)
    store.read_only()
    bodies = map(decode, store.entries(found.first - 1))
    first = next(body.first for body in bodies if isinstance(body, Forecasts))
    store.close()
    rows = f"FROM ids WHERE ticket >= {first} AND outcome IS NULL"
    for change in (
        f"UPDATE ids SET outcome = 1 WHERE id = (SELECT min(id) {rows})",
        f"INSERT INTO ids SELECT stream, 'extra', max(ticket), score, said, outcome {rows}",
    ):
        db.execute("BEGIN")
        before = db.execute("SELECT * FROM ids").fetchall()
        db.execute(change)
        db.commit()
        assert verified(url).problems
        db.execute("DELETE FROM ids")
        db.executemany("INSERT INTO ids VALUES (?, ?, ?, ?, ?, ?)", before)
        db.commit()
        assert not verified(url).problems
    db.close()


def test_wherever_the_journal_is_cut_the_rest_verifies(tmp_path):
    url = f"sqlite:///{tmp_path}/a.db"

    async def play():
        async with open_service(url) as service:
            await service.create("x", StreamOptions(max_unresolved=60))
            await journals.play(service, "x", 12)
            last = service.health.seq
            await service._ask(Find(None, 0))
            for until in range(1, last + 1):
                assert await service._ask(Forget(until)) == until
                assert not verified(url).problems
            store = service._writer.store
            return store.count_ids(1, 0), (await service.overview("x")).unresolved

    kept, unresolved = run(play())
    assert kept == unresolved > 0


def _ids(service, *names):
    store = service._writer.store
    service._writer.shelf.recent.index(service.health.seq)
    return sorted(name for _, name in store.lookup({1: names}))


async def _give_up(service, how):
    if how == "by id":
        await service.give_up("s", ids=["x"])
    elif how == "by age":
        await asyncio.sleep(0.005)
        await service.give_up("s", older_than=0)
    else:
        await service.forecasts("s", [ForecastRow(0.6, "b")])


AFTER = {"by id": ["a", "c", "y"], "by age": ["c"], "too many": ["a", "b", "c"]}


@pytest.mark.parametrize("how", AFTER)
def test_an_id_that_is_given_up_after_its_entry_has_gone_goes_too(url, how):
    async def play():
        async with open_service(url) as service:
            await service.create("s", StreamOptions(max_unresolved=3))
            await service.forecasts("s", [ForecastRow(0.3, "x"), ForecastRow(0.4, "y")])
            await service.forecasts("s", [ForecastRow(0.5, "a")])
            await _keep(service, url, 1)
            before = _ids(service, "x", "y")  # they are awaited, so they stay
            await _give_up(service, how)
            await service.forecasts("s", [ForecastRow(0.7, "c")])
            await service.outcomes("s", [OutcomeRow("c", 1)])
            await _keep(service, url, 1)
            return before, _ids(service, "x", "y", "a", "b", "c")

    assert run(play()) == (["x", "y"], AFTER[how])
    assert not verified(url).problems
