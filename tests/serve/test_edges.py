"""What happens at the edges: a size that cannot be read, an end with much to do, odd encodings."""

import asyncio
import signal
import sqlite3
import threading

import pytest

from journals import run, verified
from truecast.errors import UnavailableError
from truecast.serve import overviews, recent, store, writer
from truecast.serve.journal import replay
from truecast.serve.rows import ForecastRow, OutcomeRow
from truecast.serve.service import open_service, store_of
from truecast.serve.store import LockedError


def test_a_size_that_cannot_be_read_ends_nothing(tmp_path, monkeypatch):
    tried = threading.Event()

    def gone():
        tried.set()
        raise sqlite3.OperationalError("gone")

    async def ask(service):
        while True:
            try:
                return (await service.forecasts("x", [ForecastRow(0.5, "a")]))[0]
            except UnavailableError as error:
                await asyncio.sleep(error.retry_after)

    async def play():
        async with open_service(f"sqlite:///{tmp_path}/a.db") as service:
            await service.create("x")
            with monkeypatch.context() as broken:
                broken.setattr(service._writer.store, "size", gone)
                service._writer._next_size = 0.0
                first = await ask(service)
                assert await asyncio.to_thread(tried.wait, 10)
            again = await ask(service)
            assert (again.p, again.again, service.health.ready) == (first.p, True, True)

    run(play())


def test_a_score_of_minus_zero_is_replayed_bit_for_bit(tmp_path):
    url = f"sqlite:///{tmp_path}/a.db"

    async def play():
        async with open_service(url) as service:
            await service.create("x")
            await service.forecasts("x", [ForecastRow(k / 100, f"{k}") for k in range(70)])
            await service.forecasts("x", [ForecastRow(-0.0, "none")])  # open at the end

    run(play())
    journal = store_of(url)
    journal.read_only()
    [found] = replay(journal)
    journal.close()
    assert (found.problem, found.compared) == (None, True)


def test_overviews_asked_before_the_end_are_answered_and_no_others(tmp_path, monkeypatch):
    go_on, made = threading.Event(), overviews.view_of

    def slow(*arguments):
        assert go_on.wait(10)
        return made(*arguments)

    monkeypatch.setattr(overviews, "view_of", slow)

    async def play():
        async with open_service(f"sqlite:///{tmp_path}/a.db") as service:
            await service.create("x")
            await service.create("y")
            asked = [asyncio.create_task(service.overview(name)) for name in "xy"]
            await asyncio.sleep(0.05)
            closing = asyncio.create_task(service.close())
            await asyncio.sleep(0.05)
            with pytest.raises(UnavailableError, match="being stopped"):
                await service.overview("x")
            go_on.set()
            found = await asyncio.wait_for(asyncio.gather(*asked), 10)
            await closing
            with pytest.raises(UnavailableError, match="being stopped"):
                await service.forecasts("x", [ForecastRow(0.5)])
            return [each.name for each in found]

    assert run(play()) == ["x", "y"]


def test_a_stream_that_leaves_memory_is_not_said_to_be_deleted(tmp_path):
    async def play():
        async with open_service(f"sqlite:///{tmp_path}/a.db", open_streams=1) as service:
            news = service.subscribe()
            first = asyncio.ensure_future(anext(news))
            await asyncio.sleep(0)
            for name in "xy":
                await service.create(name)
                answers = await service.forecasts(name, [ForecastRow(0.5)] * 3)
                await service.outcomes(name, [OutcomeRow(each.id, 1) for each in answers])
            found = {}
            change = await first
            while True:
                found[change.name] = change.info
                if {name: info and info.rounds for name, info in found.items()} == {"x": 3, "y": 3}:
                    return
                assert change.info is not None
                change = await asyncio.wait_for(anext(news), 10)

    run(play())


def test_at_the_end_transactions_are_no_larger_than_before(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "MOST_ROWS", 5)
    sizes = []
    written = writer.Writer._write

    def write(self, asked):
        sizes.append(len(asked))
        return written(self, asked)

    monkeypatch.setattr(writer.Writer, "_write", write)

    async def play():
        async with open_service(f"sqlite:///{tmp_path}/a.db") as service:
            await service.create("x")
            rows = [service.forecasts("x", [ForecastRow(0.5, f"{k}")]) for k in range(23)]
            asked = [asyncio.ensure_future(row) for row in rows]
            await asyncio.sleep(0)
            await service.close()
            assert len(await asyncio.gather(*asked)) == 23

    run(play())
    assert max(sizes) == 5
    assert verified(f"sqlite:///{tmp_path}/a.db").problems == []


def test_many_ids_are_indexed_in_several_statements(url, monkeypatch):
    monkeypatch.setattr(store, "_SLICE", 7)
    monkeypatch.setattr(recent, "LAG", 1)

    async def play():
        async with open_service(url) as service:
            for name in "xy":
                await service.create(name)
                for part in range(3):
                    rows = [ForecastRow(0.5, f"{part}-{k}") for k in range(20)]
                    await service.forecasts(name, rows)

    run(play())
    assert verified(url).problems == []


@pytest.mark.parametrize("client", ["UTF8", "LATIN1"])
def test_ids_are_known_again_in_any_encoding_of_the_client(postgres_url, monkeypatch, client):
    monkeypatch.setenv("PGCLIENTENCODING", client)

    async def play():
        async with open_service(postgres_url) as service:
            await service.create("x")
            [found] = await service.forecasts("x", [ForecastRow(0.3, "\N{GREEK SMALL LETTER PI}é")])
            return found.again

    assert [run(play()), run(play())] == [False, True]
    assert verified(postgres_url).problems == []


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_database_of_another_encoding_is_refused(server, encoding):
    import psycopg

    name = f"of_{encoding.lower()}"
    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        connection.execute(
            f"CREATE DATABASE {name} ENCODING '{encoding}' TEMPLATE template0"
            " LC_COLLATE 'C' LC_CTYPE 'C'"
        )

    async def play():
        async with open_service(server.url(name)):
            pass

    with pytest.raises(LockedError, match=f"encoded in {encoding}.*createdb -E UTF8"):
        run(play())


def test_a_service_that_cannot_start_leaves_signals_alone(tmp_path):
    from click.testing import CliRunner

    from truecast.cli import main

    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    done = CliRunner().invoke(main, ["serve", "--port", "0", "--database", "mysql://x"])
    assert done.exit_code == 2
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
