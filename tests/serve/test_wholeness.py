"""Killed, cut off, full, moved, gone: nothing acknowledged is lost, nothing is done twice."""

import asyncio
import os
import random
import resource
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from journals import torn
from truecast.errors import UnavailableError
from truecast.serve import requests
from truecast.serve.events import Head, Outcomes, encode
from truecast.serve.journal import verify
from truecast.serve.options import StreamOptions
from truecast.serve.rows import ForecastRow, OutcomeRow
from truecast.serve.service import open_service, store_of
from truecast.serve.sqlite import SQLiteStore
from truecast.serve.store import Batch, LockedError

needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs Linux")
KILLS = Path(__file__).parent / "kills.py"


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 60))


@pytest.mark.slow("kills fifteen processes under load")
def test_killed_at_any_moment_nothing_is_lost_or_done_twice(url):
    done = subprocess.run(
        [sys.executable, KILLS, "--kills", "15", "--database", url],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "15 kills" in done.stdout


def test_after_a_power_cut_there_is_all_that_was_acknowledged(tmp_path):
    store = SQLiteStore(tmp_path / "a.db")
    store.acquire(wait=False)
    rng, head, heads = random.Random(0), Head(), [Head()]
    store.db.execute("PRAGMA wal_autocheckpoint=20")  # so that some cuts are in a new log
    log = tmp_path / "a.db-wal"
    for turn in range(40):
        synced = log.read_bytes()
        body = Outcomes([f"{turn}"], rng.randbytes(8), rng.randbytes(rng.choice([4, 9_000])))
        entry, head = encode(head, 1, turn, body)
        main = store.path.read_bytes()
        store.commit(Batch(entries=[entry]))
        cut = tmp_path / f"cut{turn}"
        cut.mkdir()
        (cut / "a.db").write_bytes(main)
        (cut / "a.db-wal").write_bytes(torn(synced, log.read_bytes(), rng))
        found = SQLiteStore(cut / "a.db")
        found.acquire(wait=False)
        assert found.head() in (heads[-1], head)
        assert not found.broken()
        found.close()
        heads.append(head)
    store.close()
    assert len({h.seq for h in heads}) == 41


@pytest.fixture
def synced(monkeypatch):
    """The folders that were synced, and what was in them then."""
    found, sync = {}, os.fsync

    def note(descriptor):
        sync(descriptor)
        path = Path(f"/proc/self/fd/{descriptor}").resolve()
        if path.is_dir():
            found[path] = set(os.listdir(path))

    monkeypatch.setattr(os, "fsync", note)
    return found


@needs_proc
def test_an_export_is_on_the_disk_before_its_entries_go(tmp_path, monkeypatch, synced):
    before = []
    forget = SQLiteStore.forget

    def noted(store, *what):
        before.append(dict(synced))
        forget(store, *what)

    monkeypatch.setattr(SQLiteStore, "forget", noted)

    async def play():
        async with open_service(f"sqlite:///{tmp_path}/a.db") as service:
            await service.create("x")
            return await service.retain(max_bytes=0, export_to=tmp_path / "old" / "er")

    file = run(play()).file
    assert file.name in before[0][tmp_path / "old" / "er"]
    assert "er" in before[0][tmp_path / "old"]
    assert "old" in before[0][tmp_path]


@needs_proc
def test_the_folder_of_a_database_is_on_the_disk(tmp_path, synced):
    store = SQLiteStore(tmp_path / "some" / "where" / "a.db")
    store.acquire(wait=False)
    store.close()
    assert "some" in synced[tmp_path]
    assert "where" in synced[tmp_path / "some"]


async def _pair(service, score=0.4):
    answer = (await service.forecasts("x", [ForecastRow(score)]))[0]
    return (await service.outcomes("x", [OutcomeRow(answer.id, 1)]))[0].status


async def _recovers(service):
    for _ in range(200):
        try:
            return await _pair(service)
        except UnavailableError:
            await asyncio.sleep(0.02)
    raise AssertionError(service.health.reason)


def test_a_full_disk_refuses_and_recovers_by_itself(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    async def play():
        async with open_service(f"sqlite:///{tmp_path}/a.db") as service:
            await service.create("x")
            await _pair(service)
            seq = service.health.seq
            full = (tmp_path / "a.db-wal").stat().st_size
            resource.setrlimit(resource.RLIMIT_FSIZE, (full, hard))
            try:
                for _ in range(3):
                    with pytest.raises(UnavailableError, match="database"):
                        await _pair(service)
                assert not service.health.ready
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            assert await _recovers(service) == "learned"
            assert (service.health.ready, service.health.reason) == (True, None)
            view = await service.overview("x")
            return service.health.seq - seq, view.rounds, view.unresolved

    assert run(play()) == (2, 2, 0)


def test_a_database_that_cannot_be_written_refuses(tmp_path):
    async def play():
        async with open_service(f"sqlite:///{tmp_path}/a.db") as service:
            await service.create("x")
            service._writer.store.db.execute("PRAGMA query_only=ON")  # as a read-only file system
            with pytest.raises(UnavailableError, match="readonly"):
                await _pair(service)
            return await _recovers(service)

    assert run(play()) == "learned"


def test_a_file_that_was_moved_is_not_written_to(tmp_path):
    async def play():
        async with open_service(f"sqlite:///{tmp_path}/a.db") as service:
            await service.create("x")
            await _pair(service)
            (tmp_path / "away").mkdir()
            for name in ("a.db", "a.db-wal", "a.db-shm"):
                shutil.move(tmp_path / name, tmp_path / "away" / name)
            with pytest.raises(UnavailableError, match="a.db"):
                await _pair(service)
            await asyncio.sleep(0.2)
            with pytest.raises(UnavailableError, match="gone"):
                await _pair(service)
            for name in ("a.db", "a.db-wal", "a.db-shm"):
                shutil.move(tmp_path / "away" / name, tmp_path / name)
            return await _recovers(service), (await service.overview("x")).rounds

    assert run(play()) == ("learned", 2)


def test_a_file_that_was_moved_is_not_shortened(tmp_path):
    store = SQLiteStore(tmp_path / "a.db")
    store.acquire(wait=False)
    shutil.move(tmp_path / "a.db", tmp_path / "b.db")
    shutil.copy(tmp_path / "b.db", tmp_path / "a.db")
    with pytest.raises(sqlite3.OperationalError, match="moved or replaced"):
        store.forget(Head(), {})
    store.close()


@pytest.mark.slow("stops PostgreSQL and starts it again")
def test_a_server_that_went_down_is_used_again_when_it_is_back(server, postgres_url):
    async def play():
        async with open_service(postgres_url) as service:
            await service.create("x")
            await _pair(service)
            await asyncio.to_thread(server.stop)
            for _ in range(3):
                with pytest.raises(UnavailableError):
                    await _pair(service)
            assert not service.health.ready
            await asyncio.to_thread(server.start)
            return await _recovers(service), (await service.overview("x")).rounds

    try:
        assert run(play()) == ("learned", 2)
    finally:
        if server.process.poll() is not None:
            server.start()


def test_a_clock_that_goes_back_does_not_take_the_journal_with_it(url, monkeypatch):
    async def play():
        async with open_service(url) as service:
            await service.create("x")
            for now in (5_000, 3_000, 4_000, 9_000):
                monkeypatch.setattr(requests.time, "time_ns", lambda now=now: now * 10**15)
                await service.forecasts("x", [ForecastRow(0.5)])
            await service.give_up("x", older_than=0)

    run(play())
    store = store_of(url)
    store.read_only()
    times = [entry.at for entry in store.entries(0)]
    store.close()
    assert times == sorted(times)
    assert times[-1] == 9 * 10**12


def test_there_is_one_writer_and_a_standby_takes_over(url):
    async def play():
        async with open_service(url) as first:
            await first.create("x")
            with pytest.raises(LockedError, match="another process"):
                async with open_service(url):
                    pass
            waiting = asyncio.create_task(_standby(url))
            await _pair(first)
            assert not waiting.done()
        return await waiting

    async def _standby(url):
        async with open_service(url, standby=True) as second:
            return second.health.epoch, await _pair(second), (await second.overview("x")).rounds

    assert run(play()) == (2, "learned", 2)


def test_a_writer_that_lost_its_lock_cannot_commit(postgres_url):
    import psycopg

    async def play():
        async with open_service(postgres_url) as first:
            await first.create("x")
            with psycopg.connect(postgres_url, autocommit=True) as other:
                other.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
            async with open_service(postgres_url, standby=True) as second:
                await _pair(second)
                for _ in range(3):
                    with pytest.raises(UnavailableError):
                        await _pair(first)
                    await asyncio.sleep(0.1)
                view = await second.overview("x")
                return first.health.reason, view.rounds

    reason, rounds = run(play())
    assert "another process" in reason
    assert rounds == 1


def test_a_writer_that_was_replaced_leaves_the_lock_to_the_other(postgres_url):
    first, second = store_of(postgres_url), store_of(postgres_url)
    first.acquire(wait=False)
    first.db.close()  # the network has cut it off
    second.acquire(wait=True)
    second.db.close()
    for _ in range(3):
        with pytest.raises(LockedError, match="taken over"):
            first.reopen()
    with pytest.raises(first.errors, match="not open"):
        first.head()
    for _ in range(50):
        try:
            second.reopen()
            break
        except LockedError:  # its old session ends a little later
            time.sleep(0.02)
    assert second.head() == Head()
    second.close()


def test_a_database_of_a_newer_version_is_not_locked(url):
    store = store_of(url)
    store.acquire(wait=False)
    table = "meta" if url.startswith("sqlite") else "truecast_meta"
    store.db.execute(f"UPDATE {table} SET schema = 99")
    store.close()
    refused = store_of(url)
    for one in (refused, store_of(url)):
        with pytest.raises(LockedError, match="newer"):
            one.acquire(wait=False)
    with pytest.raises(refused.errors, match="not open"):
        refused.head()


def test_an_epoch_of_another_stops_a_commit(url):
    first, second = store_of(url), store_of(url)
    first.acquire(wait=False)
    first.epoch += 1  # as if a process before us had lost its lock without noticing
    entry, _ = encode(Head(), 1, 0, Outcomes([], b"", b""))
    with pytest.raises((LockedError, *first.errors)):
        first.commit(Batch(entries=[entry]))
    first.close()
    second.read_only()
    assert second.head() == Head()
    second.close()


def test_streams_that_are_closed_to_save_memory_go_on_as_they_were(url, tmp_path):
    names = [f"s{k}" for k in range(6)]

    async def play(url, most):
        said = []
        async with open_service(url, open_streams=most) as service:
            for name in names:
                await service.create(name, StreamOptions(max_groups=3))
            for turn in range(5):
                for k, name in enumerate(names):
                    rows = [ForecastRow(0.1 * turn + 0.01 * j, groups=f"g{j}") for j in range(12)]
                    answers = await service.forecasts(name, rows)
                    said += [answer.p for answer in answers]
                    outcomes = [OutcomeRow(a.id, (k + j) % 2) for j, a in enumerate(answers[:9])]
                    await service.outcomes(name, outcomes)
            assert len(service._writer.shelf.live) <= max(most, 1)
        return said

    assert run(play(url, 2)) == run(play(f"sqlite:///{tmp_path}/other.db", 100))


def test_a_damaged_snapshot_is_passed_over(tmp_path):
    url = f"sqlite:///{tmp_path}/a.db"

    async def play():
        async with open_service(url) as service:
            await service.create("x")
            answers = await service.forecasts("x", [ForecastRow(0.01 * k) for k in range(60)])
            await service.outcomes("x", [OutcomeRow(answer.id, 1) for answer in answers[:40]])
            return await _pair(service), await service.state("x")

    _, before = run(play())
    db = sqlite3.connect(tmp_path / "a.db")
    db.execute("UPDATE snapshots SET state = substr(state, 1, 60)")
    db.commit()
    db.close()

    async def again():
        async with open_service(url) as service:
            return await service.state("x")

    assert run(again()) == before


def test_nothing_is_left_behind(tmp_path):
    run(_open_and_close(f"sqlite:///{tmp_path}/a.db"))
    assert sorted(os.listdir(tmp_path)) == ["a.db", "a.db.lock"]


async def _open_and_close(url):
    async with open_service(url) as service:
        await service.create("x")


def test_a_stream_that_cannot_be_loaded_does_not_stop_the_others(tmp_path):
    url = f"sqlite:///{tmp_path}/a.db"

    async def play():
        async with open_service(url) as service:
            for name in ("x", "bad"):
                await service.create(name)
            await asyncio.sleep(0.01)  # ages are in milliseconds
            await service.retain(max_age=0)
            await service.forecasts("bad", [ForecastRow(0.5)])

    run(play())
    db = sqlite3.connect(tmp_path / "a.db")
    db.execute("UPDATE snapshots SET state = zeroblob(60) WHERE stream = 2")
    db.commit()
    db.close()

    async def again():
        async with open_service(url) as service:
            with pytest.raises(UnavailableError, match="bad cannot be loaded"):
                await service.forecasts("bad", [ForecastRow(0.5)])
            return await _pair(service)

    assert run(again()) == "learned"


def test_a_name_is_free_again_in_the_transaction_that_deletes_its_stream(url):
    async def play():
        async with open_service(url) as service:
            await service.create("x")
            await _pair(service)
            seq = service.health.seq
            answers = await asyncio.gather(
                service.forecasts("x", [ForecastRow(0.3, "a")]),
                service.delete("x", confirm="x"),
                service.create("x"),
                service.forecasts("x", [ForecastRow(0.4, "a")]),
                service.delete("x", confirm="x"),
                service.create("x", StreamOptions(max_groups=3)),
                service.forecasts("x", [ForecastRow(0.5, "a")]),
            )
            assert [answers[k][0].again for k in (0, 3, 6)] == [False] * 3
            assert service.health.seq == seq + 7
            await service.create("y")

    async def again():
        async with open_service(url) as service:
            found = (await service.forecasts("x", [ForecastRow(0.5, "a")]))[0].again
            return found, (await service.state("x"))["options"]["max_groups"]

    run(play())
    assert run(again()) == (True, 3)
    store = store_of(url)
    store.read_only()
    assert [(row.number, row.name) for row in store.streams()] == [(3, "x"), (4, "y")]
    assert [entry.stream for entry in store.entries(0) if entry.body] == [3, 3, 4]
    assert not verify(store).problems
    store.close()
