"""The journal: damage is found and named, replay gives the same."""

import random
import sqlite3

import polars as pl
import pytest
from click.testing import CliRunner

from journals import play, run, verified
from truecast.cli import main
from truecast.serve.journal import replay
from truecast.serve.options import StreamOptions
from truecast.serve.rows import ForecastRow
from truecast.serve.service import open_service, store_of


async def _written(url, turns=14):
    async with open_service(url) as service:
        for name in ("x", "y"):
            await service.create(name, StreamOptions(max_unresolved=60))
            await play(service, name, turns)
        await service.create("gone")
        await service.forecasts("gone", [ForecastRow(0.5, "secret")])
        await service.delete("gone", confirm="gone")


def test_a_journal_that_is_whole_verifies_and_replays(url):
    run(_written(url))
    found = verified(url)
    assert (found.problems, found.first, found.erased) == ([], 1, 3)
    store = store_of(url)
    store.read_only()
    replayed = list(replay(store))
    store.close()
    assert [(each.name, each.compared, each.problem) for each in replayed] == [
        ("x", True, None),
        ("y", True, None),
    ]
    assert all(each.rounds > 50 for each in replayed)


COLUMNS = [
    ("entries", "seq", "body"),
    ("entries", "seq", "digest"),
    ("entries", "seq", "chain"),
    ("entries", "seq", "stream"),
    ("entries", "seq", "at"),
    ("entries", "seq", "kind"),
]


@pytest.mark.parametrize(("table", "key", "column"), COLUMNS)
def test_a_changed_entry_is_found_and_named(tmp_path, table, key, column):
    run(_written(f"sqlite:///{tmp_path}/a.db", turns=3))
    db = sqlite3.connect(tmp_path / "a.db")
    seqs = [row[0] for row in db.execute("SELECT seq FROM entries WHERE body NOT NULL")]
    rng = random.Random(column)
    for seq in rng.sample(seqs, 4):
        (value,) = db.execute(f"SELECT {column} FROM entries WHERE seq = {seq}").fetchone()
        if isinstance(value, bytes):
            at = rng.randrange(len(value))
            changed = value[:at] + bytes([value[at] ^ 1 << rng.randrange(8)]) + value[at + 1 :]
        else:
            changed = value ^ 1
        db.execute(f"UPDATE entries SET {column} = ? WHERE seq = ?", (changed, seq))
        db.commit()
        problems = verified(f"sqlite:///{tmp_path}/a.db").problems
        assert any(f"entry {seq}" in each or f"entry {seq + 1}" in each for each in problems)
        db.execute(f"UPDATE entries SET {column} = ? WHERE seq = ?", (value, seq))
        db.commit()
    db.close()
    assert not verified(f"sqlite:///{tmp_path}/a.db").problems


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM entries WHERE seq = 5",
        "DELETE FROM ids WHERE id = 'x-1-0'",
        "UPDATE ids SET outcome = 1 - outcome"
        " WHERE id = (SELECT min(id) FROM ids WHERE outcome >= 0)",
        "UPDATE ids SET outcome = 1 WHERE id = (SELECT min(id) FROM ids WHERE outcome IS NULL)",
        "UPDATE ids SET said = zeroblob(8) WHERE id = 'y-0-0'",
        "INSERT INTO ids SELECT stream, 'extra', ticket, score, said, outcome"
        " FROM ids WHERE id = 'y-0-0'",
        "INSERT INTO ids SELECT 77, id, ticket, score, said, outcome FROM ids WHERE id = 'y-0-0'",
        "UPDATE snapshots SET state = zeroblob(80)",
        "UPDATE snapshots SET seq = seq + 256 WHERE length(state) > 0",
        "UPDATE snapshots SET seq = seq - 1 WHERE length(state) > 0",
        "UPDATE snapshots SET seq = seq + 256 WHERE length(state) = 0",
        "UPDATE streams SET options = '{}' WHERE name = 'x'",
        "UPDATE entries SET body = NULL WHERE seq = 4",
        "UPDATE meta SET indexed = indexed + 1",
        "UPDATE meta SET indexed = indexed / 2",
    ],
)
def test_other_damage_is_found(tmp_path, change):
    run(_written(f"sqlite:///{tmp_path}/a.db", turns=3))
    db = sqlite3.connect(tmp_path / "a.db")
    db.execute(change.replace("'{}'", "x'7b7d'"))
    db.commit()
    db.close()
    assert verified(f"sqlite:///{tmp_path}/a.db").problems


def _content(path):
    db = sqlite3.connect(path)
    try:
        tables = ("meta", "entries", "streams", "ids", "snapshots")
        return [db.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall() for table in tables]
    finally:
        db.close()


def test_a_flipped_byte_of_the_file_is_found_or_means_nothing(tmp_path):
    path = tmp_path / "a.db"
    run(_written(f"sqlite:///{path}", turns=2))
    whole, content = path.read_bytes(), _content(path)
    rng, found = random.Random(3), 0
    for _ in range(60):
        at = rng.randrange(100, len(whole))
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << rng.randrange(8)]) + whole[at + 1 :])
        try:
            same = _content(path) == content
        except (sqlite3.Error, UnicodeDecodeError):
            same = False
        problems = verified(f"sqlite:///{path}").problems
        found += bool(problems)
        assert same or problems, at
    assert found >= 10


def test_the_command_verifies_exports_and_replays(tmp_path):
    run(_written(f"sqlite:///{tmp_path}/truecast.db", turns=4))
    runner = CliRunner()

    def said(*words):
        done = runner.invoke(main, ["journal", *words, "--data", str(tmp_path)])
        assert done.exit_code == 0, done.output
        return done.output

    assert said("verify").startswith("the journal is whole: entries 1 to ")
    assert "x: " in said("replay", "--stream", "x")
    table, text = tmp_path / "all.parquet", tmp_path / "x.csv"
    assert "rows written" in said("export", str(table))
    said("export", str(text), "--stream", "x")
    rows = pl.read_parquet(table)
    assert rows["kind"].value_counts().height == 4
    assert rows.filter(stream="x", kind="forecast")["id"].n_unique() > 4
    one = pl.read_csv(text)
    assert one["stream"].unique().to_list() == ["x"]
    assert one.height == rows.filter(stream="x").height
    assert runner.invoke(main, ["journal", "verify", "--data", "nowhere"]).exit_code == 2
    assert (
        runner.invoke(main, ["journal", "export", "a.txt", "--data", str(tmp_path)]).exit_code == 2
    )
