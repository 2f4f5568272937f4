"""A stream that is deleted: gone at once, and erased bit by bit, whatever comes between."""

import asyncio

import pytest

from journals import run, verified
from truecast.errors import NotFoundError
from truecast.serve import store
from truecast.serve.requests import Delete, Erase
from truecast.serve.rows import ForecastRow, OutcomeRow
from truecast.serve.service import open_service, store_of


@pytest.fixture(autouse=True)
def _little_at_a_time(monkeypatch):
    monkeypatch.setattr(store, "ERASED", (7, 3))


async def _filled(service):
    for name in ("kept", "gone"):
        await service.create(name)
        for k in range(10):
            rows = [ForecastRow(0.1 * j, f"{k}-{j}") for j in range(5)]
            await service.forecasts(name, rows)
            await service.outcomes(name, [OutcomeRow(row.id, 1) for row in rows[1:]])
    service._writer.shelf.recent.index(service.health.seq)


def _left(store):
    """Ids, and entries with bodies, of both streams."""
    ids = [f"{k}-{j}" for k in range(10) for j in range(5)]
    bodies = [sum(entry.body is not None for entry in store.entries(0, stream=k)) for k in (1, 2)]
    return [len(store.lookup({k: ids})) for k in (1, 2)], bodies


def test_a_deleted_stream_is_erased_in_small_transactions(url):
    async def play():
        async with open_service(url) as service:
            await _filled(service)
            store = service._writer.store
            erase, seen = store.erase, []
            store.erase = lambda: seen.append(_left(store)) or erase()
            deleting = asyncio.create_task(service.delete("gone", confirm="gone"))
            while service.health.seq < 43:
                await asyncio.sleep(0)
            with pytest.raises(NotFoundError):
                await service.forecasts("gone", [ForecastRow(0.5, "a")])
            await service.forecasts("kept", [ForecastRow(0.5, "between")])
            await deleting
            return seen, _left(store)

    seen, after = run(play())
    assert after == ([50, 0], [22, 0])
    assert [ids[1] for ids, _ in seen[:9]] == [50, 43, 36, 29, 22, 15, 8, 1, 0]
    assert [bodies[1] for _, bodies in seen[8:17]] == [22, 19, 16, 13, 10, 7, 4, 1, 0]
    assert not verified(url).problems


@pytest.mark.parametrize("steps", [0, 3, 8, 11, 16])
def test_what_was_not_erased_is_erased_by_the_next_start(url, steps):
    async def begin():
        async with open_service(url) as service:
            await _filled(service)
            shelf = service._writer.shelf
            shelf.store.erase = lambda erase=shelf.store.erase: _counted(erase)
            budget[0] = steps
            await service._ask(Delete("gone", "gone"))
            while await service._ask(Erase()) and budget[0]:
                pass

    budget = [10**9]

    def _counted(erase):
        if budget[0] == 0:
            return False
        budget[0] -= 1
        return erase()

    run(begin())
    assert not verified(url).problems  # it is not damaged meanwhile

    async def go_on():
        async with open_service(url) as service:
            while service._writer.shelf.erasing:
                await asyncio.sleep(0.001)
            await service.create("gone")  # a new one, with another number
            return (await service.forecasts("gone", [ForecastRow(0.5, "0-0")]))[0].again

    assert not run(go_on())
    store = store_of(url)
    store.read_only()
    assert _left(store) == ([50, 0], [21, 0])
    assert [snapshot.stream for snapshot in store.snapshots()] == [1, 3]
    store.close()
    assert not verified(url).problems
