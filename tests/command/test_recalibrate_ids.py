"""`truecast recalibrate --id`: rows known again by id, outcomes that come later, in any order,
across runs."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import truecast as tc
from disk import READ, WRITE, kills_that_change_nothing
from truecast.cli import main
from truecast.files import recalibration, records
from truecast.state import to_json

RNG = np.random.default_rng(4)
ROWS = 600
TRUTH = pl.DataFrame(
    {
        "order": [f"n{k}" for k in range(ROWS)],
        "y": RNG.integers(0, 2, ROWS),
        "p": RNG.random(ROWS).round(3),
        "place": RNG.choice(["Rome", "Oslo"], ROWS),
    }
)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def command(ending: str = ".csv", *options: str) -> list[str]:
    return ["recalibrate", "log" + ending, "-o", "out" + ending, "--id", "order", *options]


def state(path: str = "s.json") -> tc.Recalibrator:
    return tc.Recalibrator.from_json(Path(path).read_text())


@pytest.fixture(autouse=True)
def _in_small_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_BLOCK", 1 << 12)
    monkeypatch.setattr("truecast.files.parquet._ROWS", 100)
    monkeypatch.setattr(recalibration, "_CHUNKS", 2)
    monkeypatch.chdir(tmp_path)


class Oracle:
    """The same row by row, in Python: a ticket for each id."""

    def __init__(self) -> None:
        self.r = tc.Recalibrator(max_unresolved=1 << 20)
        self.tickets: dict[str, tc.Ticket] = {}
        self.known: dict[str, float] = {}

    def play(self, frame: pl.DataFrame, *, groups: bool = False) -> list[float]:
        for name, y, p, place in frame.rows():
            if name not in self.tickets:
                self.tickets[name] = self.r.issue(p, group=place if groups else None)
            if y is not None and name not in self.known:
                self.r.resolve(self.tickets[name], y)
                self.known[name] = y
        return [self.tickets[name].p for name in frame["order"]]


def grown(frame: pl.DataFrame, rows: int, late: int) -> pl.DataFrame:
    """The log when it has this number of rows: outcomes come some rows later, in no order."""
    due = np.random.default_rng(1).integers(0, late, len(frame))
    known = (np.arange(len(frame)) + due)[:rows] < rows
    return frame[:rows].with_columns(y=pl.when(pl.Series(known)).then("y"))


@pytest.mark.alike("recalibrates many times by each kind of file")
@pytest.mark.parametrize("ending", WRITE)
@pytest.mark.parametrize("groups", [False, True])
def test_a_growing_log_whose_outcomes_are_filled_in_later_is_as_issue_and_resolve(
    ending: str, groups: bool
) -> None:
    oracle, options = Oracle(), ["--state", "s.json", *(["--by", "place"] if groups else [])]
    for rows in (1, 150, 150, 400, ROWS):
        frame = grown(TRUTH, rows, 90)
        WRITE[ending](frame, Path("log" + ending))
        done = run(*command(ending, *options))
        assert done.exit_code == 0, done.output
        written = READ[ending](Path("out" + ending))
        assert written["recalibrated"].to_list() == oracle.play(frame, groups=groups)
        assert written.drop("recalibrated").rows() == frame.rows()
        assert state().rounds == oracle.r.rounds == frame["y"].count()
        assert state().unresolved == frame["y"].null_count()
    assert state().predict_many([0.3]) == oracle.r.predict_many([0.3])


@pytest.mark.alike("recalibrates many times by each kind of file")
@pytest.mark.parametrize("ending", WRITE)
def test_rows_about_one_event_are_told_to_the_recalibrator(ending: str) -> None:
    games = [None if k % 11 == 0 else k // 40 for k in range(ROWS)]
    truth = TRUTH.with_columns(
        pl.Series("game", games), pl.Series("hour", [k % 3 for k in range(ROWS)])
    )
    options = ["--event", "game", "--by", "place", "--by", "hour", "--state", "s.json"]
    r, tickets = tc.Recalibrator(max_unresolved=1 << 20), {}
    alone = Oracle()
    for rows in (150, 400, ROWS):
        frame = grown(truth, rows, 90)
        WRITE[ending](frame, Path("log" + ending))
        done = run(*command(ending, *options))
        assert done.exit_code == 0, done.output
        for name, y, p, place, game, hour in frame.rows():
            if name not in tickets:
                event = None if game is None else str(game)
                tickets[name] = (
                    r.issue(p, group=(f"place={place}", f"hour={hour}"), event=event),
                    [],
                )
            ticket, known = tickets[name]
            if y is not None and not known:
                r.resolve(ticket, y)
                known.append(y)
        said = [tickets[name][0].p for name in frame["order"]]
        assert READ[ending](Path("out" + ending))["recalibrated"].to_list() == said
        assert state().to_json() == r.to_json()
        assert said != alone.play(frame.select("order", "y", "p", "place")) or rows == 150


def test_events_that_are_refused() -> None:
    TRUTH.with_columns(game=pl.lit([1, 2])).write_parquet("log.parquet")
    done = run(*command(".parquet", "--event", "game"))
    assert (done.exit_code, "has no events in column 'game' (--event)" in done.stderr) == (
        2,
        True,
    ), done.stderr
    done = run(*command(".parquet", "--event", "match"))
    assert (done.exit_code, "has no column 'match' (--event)" in done.stderr) == (2, True), (
        done.stderr
    )
    assert not Path("out.parquet").exists()


def test_an_event_log_has_the_outcome_in_a_row_of_its_own() -> None:
    Path("log.csv").write_text(
        "order,y,p,place\na,,0.5,Rome\nb,,0.25,Oslo\na,1,,\nc,0,0.75,Rome\nb,0,0.25,\nb,0,,\n"
    )
    assert run(*command(".csv", "--by", "place")).exit_code == 0
    r = tc.Recalibrator()
    a, b = r.issue(0.5, group="Rome"), r.issue(0.25, group="Oslo")
    r.resolve(a, 1)
    c = r.issue(0.75, group="Rome")
    assert pl.read_csv("out.csv")["recalibrated"].to_list() == [a.p, b.p, a.p, c.p, b.p, b.p]


def test_the_report_is_about_each_id_once() -> None:
    Path("log.csv").write_text(
        "order,y,p,place\n" + "".join(f"a{k},,0.{k}5,Rome\na{k},{k % 2},,\n" for k in range(10))
    )
    assert run(*command(".csv", "--by", "place", "--report", "page.html")).exit_code == 0
    page = Path("page.html").read_text()
    assert "10 rounds" in page
    assert "20 rounds" not in page
    Path("log.csv").write_text("order,y,p\na,,0.5\n")
    done = run(*command(".csv", "--report", "page.html"))
    assert (done.exit_code, "no good row" in done.stderr) == (2, True)


def test_it_is_told_what_was_learned_and_what_is_to_come() -> None:
    grown(TRUTH, 400, 90).write_csv("log.csv")
    first = run(*command(".csv", "--state", "s.json"))
    known = grown(TRUTH, 400, 90)["y"].count()
    assert f"{known} outcomes learned; {400 - known} still to come\n" in first.stdout
    TRUTH.write_csv("log.csv")
    found = json.loads(run(*command(".csv", "--state", "s.json", "--json")).stdout)
    counts = {
        "rows": 200,
        "earlier": 400,
        "skipped": 0,
        "unknown": 0,
        "learned": ROWS - known,
        "lost": 0,
    }
    assert {name: found[name] for name in counts} == counts
    said = pl.read_csv("out.csv")
    late = np.r_[np.flatnonzero(grown(TRUTH, 400, 90)["y"].is_null()), 400:ROWS]
    for name, column in (("score", "p"), ("recalibrated", "recalibrated")):
        y, p = said["y"].to_numpy()[late], said[column].to_numpy()[late]
        assert found["brier"][name] == pytest.approx(tc.brier_score(y, p))
        assert found["smooth_calibration_error"][name] == pytest.approx(
            tc.smooth_calibration_error(y, p)
        )


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("n7,{y},{p},{place}", None),
        ("n7,,{p},{place}", None),
        ("n7,{other},{p},{place}", "y of this id was {y} before, got {other}"),
        ("n7,,0.9999,{place}", "p of this id was {p} before, got 0.9999"),
        ("n7,{y},{p},Lima", "place of this id was '{place}' before, got 'Lima'"),
        ("new,1,,Rome", "p must be a probability for a new id, got nothing"),
        (",1,0.5,Rome", "order (--id) must be an id, got nothing"),
    ],
)
@pytest.mark.parametrize("across", [False, True])
def test_what_contradicts_an_earlier_row_is_refused(
    row: str, said: str | None, across: bool
) -> None:
    _, y, p, place = TRUTH.rows()[7]
    values = {"y": y, "p": p, "place": place, "other": 1 - y}
    text = TRUTH[:20].write_csv()
    options = ["--by", "place", "--state", "s.json"]
    if across:
        Path("log.csv").write_text(text)
        assert run(*command(".csv", *options)).exit_code == 0
    before = {path.name: path.read_bytes() for path in Path().iterdir()}
    Path("log.csv").write_text(text + row.format(**values) + "\n")
    done = run(*command(".csv", *options))
    assert done.exit_code == (0 if said is None else 2), done.output
    if said is not None:
        name = "" if "--id" in said else f"order '{row.partition(',')[0]}': "
        assert f"log.csv, line 22: {name}{said.format(**values)}" in done.stderr
        after = {
            path.name: path.read_bytes() for path in Path().iterdir() if path.name != "log.csv"
        }
        assert after == {name: data for name, data in before.items() if name != "log.csv"}


def test_a_state_with_ids_is_not_used_without_them_nor_the_other_way_round() -> None:
    TRUTH[:50].write_csv("log.csv")
    assert run(*command(".csv", "--state", "ids.json")).exit_code == 0
    plain = ["recalibrate", "log.csv", "-o", "out.csv"]
    assert run(*plain, "--state", "plain.json", "--again").exit_code == 0
    for arguments, said in (
        ([*plain, "--state", "ids.json"], "ids.json knows rows by their 'order': use --id so"),
        (
            command(".csv", "--state", "plain.json"),
            "plain.json was saved by a run without --id: its rows cannot",
        ),
        (
            [*plain, "--state", "ids.json", "--id", "place"],
            "knows rows by their 'order', so --id must be that",
        ),
        (
            command(".csv", "--state", "ids.json", "--by", "place"),
            "ids.json knows rows without groups: use --by so",
        ),
    ):
        before = {path.name: path.read_bytes() for path in Path().iterdir()}
        done = run(*arguments)
        assert (done.exit_code, said in done.stderr) == (2, True), done.stderr
        assert {path.name: path.read_bytes() for path in Path().iterdir()} == before
    done = run(*command(".csv", "--state", "plain.json", "--again"))
    said = "--again is for runs without --id: rows are known by their ids"
    assert (done.exit_code, said in done.stderr, state("plain.json").rounds) == (2, True, 50)
    assert run(*plain, "--state", "ids.json", "--again").exit_code == 0
    assert state("ids.json").rounds == 100


DAY = datetime(2025, 3, 1, 0, 0)
HOURS = [DAY + timedelta(hours=7 * k, milliseconds=120 * k) for k in range(20)]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (pl.Series(range(20)), pl.Series(range(20), dtype=pl.Float64)),
        (pl.Series(range(20), dtype=pl.UInt8), pl.Series(range(20), dtype=pl.Float32)),
        (pl.Series(range(20)), pl.Series([f"{k}" for k in range(20)])),
        (pl.Series(range(20)), pl.Series([f"{k}" for k in range(20)]).cast(pl.Decimal(10, 2))),
        (
            pl.Series(range(20)).cast(pl.Float32) / 7,
            (pl.Series(range(20)).cast(pl.Float32) / 7).cast(pl.Float64),
        ),
        (pl.Series(range(20)) / 8, (pl.Series(range(20)) / 8).cast(pl.Decimal(10, 4))),
        (pl.Series(HOURS, dtype=pl.Datetime("us")), pl.Series(HOURS, dtype=pl.Datetime("ns"))),
        (pl.Series(HOURS, dtype=pl.Datetime("ms")), pl.Series(HOURS, dtype=pl.Datetime("us"))),
        (
            pl.Series(HOURS).dt.replace_time_zone("UTC"),
            pl.Series(HOURS)
            .dt.replace_time_zone("UTC")
            .dt.convert_time_zone("Europe/Rome")
            .dt.cast_time_unit("ns"),
        ),
        (
            pl.Series([(DAY + timedelta(k)).date() for k in range(20)]),
            pl.Series([DAY + timedelta(k) for k in range(20)]),
        ),
    ],
)
def test_an_id_is_the_same_in_another_type(first: pl.Series, second: pl.Series) -> None:
    TRUTH[:20].with_columns(
        order=first, y=pl.when(pl.int_range(20) % 2 == 0).then("y")
    ).write_parquet("log.parquet")
    assert run(*command(".parquet", "--state", "s.json")).exit_code == 0
    TRUTH[:20].with_columns(order=second).write_parquet("log.parquet")
    done = run(*command(".parquet", "--state", "s.json"))
    assert (done.exit_code, state().rounds, state().unresolved) == (0, 20, 0), done.output
    assert "20 rows recalibrated before; 0 new" in done.stdout


@pytest.mark.parametrize(
    "ids",
    [
        pl.Series([k / 4 for k in range(20)]),
        pl.Series([2**53 + k for k in range(20)]),
        pl.Series([(DAY + timedelta(microseconds=k)).time() for k in range(20)]),
        pl.Series([DAY + timedelta(microseconds=k) for k in range(20)]),
        pl.Series([str(10**k) for k in range(20)]).cast(pl.Decimal(30, 0)),
    ],
)
def test_other_ids_are_other_ids(ids: pl.Series) -> None:
    TRUTH[:20].with_columns(order=ids).write_parquet("log.parquet")
    done = run(*command(".parquet", "--state", "s.json"))
    assert (done.exit_code, state().rounds) == (0, 20), done.output


@pytest.mark.parametrize(
    ("ending", "ids"),
    [
        (".parquet", [1.0, 2.0, float("nan")]),
        (".parquet", ["a", "b", ""]),
        (".parquet", ["a", "b", None]),
        (".jsonl", ["a", "b", ""]),
        (".jsonl", ["a", "b", None]),
        (".jsonl", [1.5, 2.5, float("nan")]),
        (".csv", ["a", "b", ""]),
    ],
)
def test_a_missing_id_is_refused(ending: str, ids: list[object]) -> None:
    frame = TRUTH[:3].with_columns(order=pl.Series(ids))
    if ending == ".jsonl":
        Path("log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in frame.to_dicts()))
    else:
        WRITE[ending](frame, Path("log" + ending))
    done = run(*command(ending, "--state", "s.json"))
    place = {".parquet": "row 3", ".jsonl": "line 3", ".csv": "line 4"}[ending]
    said = f"log{ending}, {place}: order (--id) must be an id, got nothing"
    assert (done.exit_code, said in done.stderr, Path("s.json").exists()) == (2, True, False), (
        done.output
    )


def test_ids_with_the_state_of_another_recalibrator_are_an_error_of_the_state() -> None:
    Path("log.csv").write_text("order,y,p\na,,0.5\n")
    assert run(*command(".csv", "--state", "s.json")).exit_code == 0
    r, last = tc.Recalibrator(), json.loads(Path("s.json").read_text())["run"]
    forged = to_json("Recalibrator", r.config, r.state(), run=last)
    Path("s.json").write_text(forged)
    Path("log.csv").write_text("order,y,p\na,1,0.5\n")
    done = run(*command(".csv", "--state", "s.json"))
    said = (
        "Error: s.json has ids that are not of its recalibrator: it awaits the outcome of a "
        "forecast that was never"
    )
    assert (done.exit_code, done.stderr.splitlines()[-1].startswith(said)) == (2, True), done.output
    assert Path("s.json").read_text() == forged


def test_new_rows_must_not_be_earlier_than_the_last_learned() -> None:
    rows = ["order,y,p,when", "a,,0.5,3", "b,1,0.25,5"]
    Path("log.csv").write_text("\n".join(rows) + "\n")
    options = [".csv", "--state", "s.json", "--time", "when"]
    assert run(*command(*options)).exit_code == 0
    Path("log.csv").write_text("\n".join([*rows[:2], "c,1,0.5,4", rows[2]]) + "\n")
    done = run(*command(*options))
    said = "line 3: when (--time) must not be before 5, up to which the state has learned, got '4'"
    assert (done.exit_code, said in done.stderr) == (2, True)
    # an old row alone, and one without times
    Path("log.csv").write_text("\n".join([rows[0], "a,1,0.5,3"]) + "\n")
    assert run(*command(*options)).exit_code == 0
    assert run(*command(*options[:3])).exit_code == 0
    Path("log.csv").write_text("\n".join([rows[0], "c,1,0.5,4"]) + "\n")
    assert run(*command(*options)).exit_code == 2
    Path("log.csv").write_text("\n".join([rows[0], "a,1,0.5,3", rows[2], "c,1,0.5,5"]) + "\n")
    assert run(*command(*options)).exit_code == 0
    assert state().rounds == 3


def test_outcomes_that_nobody_awaits_any_more_are_told() -> None:
    Path("s.json").write_text(tc.Recalibrator(max_unresolved=2).to_json())
    Path("log.csv").write_text("order,y,p\na,,0.5\nb,,0.25\nc,,0.75\n")
    assert run(*command(".csv", "--state", "s.json")).exit_code == 0
    Path("log.csv").write_text("order,y,p\na,1,0.5\nb,0,0.25\nc,1,0.75\n")
    done = run(*command(".csv", "--state", "s.json"))
    assert "1 outcome not learned: no longer awaited: too many were\n" in done.stdout
    assert state().rounds == 2
    assert "not learned" not in run(*command(".csv", "--state", "s.json")).stdout


def test_a_half_written_line_waits_here_too() -> None:
    Path("log.csv").write_text("order,y,p\na,,0.5\nb,,0.25\na,1,0.")
    done = run(*command(".csv", "--state", "s.json"))
    assert (done.exit_code, "line 4: no line break yet, left out" in done.stderr) == (0, True)
    Path("log.csv").write_text("order,y,p\na,,0.5\nb,,0.25\na,1,0.5\n")
    assert run(*command(".csv", "--state", "s.json")).exit_code == 0
    assert state().rounds == 1


@pytest.mark.slow("is killed before every step")
@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet"])
def test_killed_before_any_step_and_started_again_it_writes_the_same(
    ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every place where a process can die: each write, rename, sync and removal; with a state of a
    run before."""
    source, target, kept = Path("log" + ending), Path("out" + ending), Path("s.json")
    words = command(ending, "--state", "s.json", "--by", "place")
    WRITE[ending](grown(TRUTH, 300, 90), source)
    assert run(*words).exit_code == 0
    start = {target: target.read_bytes(), kept: kept.read_bytes()}
    WRITE[ending](TRUTH, source)
    assert run(*words).exit_code == 0
    assert kills_that_change_nothing(words, start, lambda: saved(kept), monkeypatch) > 10


def saved(path: Path) -> tuple[str, object]:
    """What was learned, and what is known by ids."""
    text = path.read_text()
    return tc.Recalibrator.from_json(text).to_json(), json.loads(text)["run"]["known"]


@pytest.mark.slow("tries many examples")
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_any_rows_in_any_runs_are_as_issue_and_resolve(data: st.DataObject) -> None:
    for path in Path().iterdir():
        path.unlink()
    oracle, table = Oracle(), {}
    for _ in range(data.draw(st.integers(1, 4))):
        rows = []
        for name in data.draw(st.lists(st.sampled_from("abcdefghij"), min_size=1, max_size=12)):
            p, y = table.setdefault(
                name, (data.draw(st.sampled_from([0.0, 0.25, 0.7, 1.0])), data.draw(st.booleans()))
            )
            rows.append((name, int(y) if data.draw(st.booleans()) else None, p, None))
        schema = {"order": pl.String, "y": pl.Int64, "p": pl.Float64, "place": pl.String}
        frame = pl.DataFrame(rows, schema=schema, orient="row")
        frame.write_csv("log.csv")
        done = run(*command(".csv", "--state", "s.json"))
        assert done.exit_code == 0, done.output
        assert pl.read_csv("out.csv")["recalibrated"].to_list() == oracle.play(frame)
        assert (state().rounds, state().unresolved) == (oracle.r.rounds, oracle.r.unresolved)
