"""`truecast recalibrate` on files of several classes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner, Result

import truecast as tc
from disk import READ, WRITE, kills, kills_that_change_nothing
from truecast.cli import main
from truecast.files import recalibration, records

NAMES = ["home", "draw", "away"]
SCORES = ["p_home", "p_draw", "p_away"]
NEW = ["recalibrated_home", "recalibrated_draw", "recalibrated_away"]


def run(*arguments: object, text: str | None = None) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments], input=text)


def games(rounds: int = 900, seed: int = 3) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.ones(3), rounds)
    y = (truth.cumsum(axis=1) < rng.random((rounds, 1))).sum(axis=1).clip(max=2)
    rows = truth**2 / (truth**2).sum(axis=1, keepdims=True)
    said = {score: rows[:, k] for k, score in enumerate(SCORES)}
    return pl.DataFrame({"day": range(rounds), "result": [NAMES[k] for k in y]} | said)


FRAME = games()


@pytest.fixture(autouse=True)
def _in_small_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that small files are read in several parts."""
    monkeypatch.setattr(records, "_BLOCK", 1 << 12)
    monkeypatch.setattr("truecast.files.parquet._ROWS", 100)
    monkeypatch.setattr(recalibration, "_CHUNKS", 2)
    monkeypatch.chdir(tmp_path)


def played(frame: pl.DataFrame = FRAME, **options: Any) -> tuple[Any, np.ndarray]:
    """What Python makes of it."""
    r = tc.Recalibrator(classes=NAMES, **options)
    return r, r.forecast_many(frame.select(SCORES).to_numpy(), frame["result"].to_list())


def written(path: Path | str, columns: list[str] = NEW) -> list[list[float]]:
    return READ["".join(Path(path).suffixes)](Path(path)).select(columns).to_numpy().tolist()


@pytest.mark.parametrize("ending", WRITE)
def test_all_columns_and_one_a_class_bit_for_bit_as_in_python(ending: str) -> None:
    source, target = Path("games" + ending), Path("out" + ending)
    WRITE[ending](FRAME, source)
    done = run("recalibrate", source, "-o", target)
    assert done.exit_code == 0, done.output
    found = READ[ending](target)
    assert found.columns == [*FRAME.columns, *NEW]
    assert found.drop(NEW).rows() == FRAME.rows()
    assert written(target) == played()[1].tolist()
    assert sorted(path.name for path in Path().iterdir()) == sorted([source.name, target.name])


def test_prints_the_certificate_and_errors_before_and_after() -> None:
    FRAME.write_csv("games.csv")
    r, p = played()
    done = run("recalibrate", "games.csv", "-o", "out.csv")
    assert str(r.certificate) in done.stdout
    y, scores = FRAME["result"].to_list(), FRAME.select(SCORES).to_numpy()
    came = np.array(y)[:, None] == np.array(NAMES)
    expected = [
        ("Brier score (0 to 2)", [((rows - came) ** 2).sum(axis=1).mean() for rows in (scores, p)]),
        (
            "smooth errors of classes, summed",
            [tc.classwise_calibration_errors(y, rows, labels=NAMES).sum for rows in (scores, p)],
        ),
    ]
    for name, (before, after) in expected:
        assert f"  {name:32}{before:12.6f}{after:12.6f}" in done.stdout
    data = json.loads(run("recalibrate", "games.csv", "-o", "out.csv", "--json").stdout)
    assert data["learned"] == len(FRAME)
    (_, brier), (_, smooth) = expected
    assert list(data["brier"].values()) == pytest.approx(brier, rel=1e-12)
    assert list(data["smooth_calibration_error"].values()) == pytest.approx(smooth, rel=1e-12)
    proved = data["certificate"]
    assert proved["lower_distance"] == r.certificate.lower_distance
    assert proved["classes"]["draw"]["energy"] == r.certificate.classes["draw"].energy
    assert proved["worst"] == r.certificate.worst
    assert set(proved["top"]) == set(NAMES)


def test_columns_and_classes_may_be_named() -> None:
    """Names that share nothing, in another order, and other words in the outcome."""
    words = {"home": "1", "draw": "X", "away": "2"}
    columns = {"p_home": "h%", "p_draw": "d", "p_away": "a"}
    frame = FRAME.with_columns(pl.col("result").replace(words)).rename(columns)
    for ending in (".csv", ".jsonl"):
        source, target = Path("games" + ending), Path("out" + ending)
        WRITE[ending](frame, source)
        options = "--outcome", "result", "--scores", "d,a,h%", "--classes", "X,2,1"
        done = run("recalibrate", source, "-o", target, *options, "--column", "new%")
        assert done.exit_code == 0, done.output
        r = tc.Recalibrator(classes=["X", "2", "1"])
        said = r.forecast_many(frame.select("d", "a", "h%").to_numpy(), frame["result"].to_list())
        assert written(target, ["new%_X", "new%_2", "new%_1"]) == said.tolist()
    done = run("recalibrate", "out.csv", "-o", "more.csv", *options, "--column", "new%")
    assert done.exit_code == 2
    assert "has a column 'new%_X' already: choose another name with --column" in done.stderr


def test_the_output_can_be_measured_by_its_new_columns() -> None:
    FRAME.write_csv("games.csv")
    run("recalibrate", "games.csv", "-o", "out.csv")
    options = "--scores", ",".join(NEW), "--resamples", "0", "--json"
    data = json.loads(run("measure", "out.csv", *options).stdout)
    assert data["labels"] == NAMES
    assert data["brier"]["score"] == pytest.approx(played()[0].certificate.brier, rel=1e-9)


def test_normalize() -> None:
    frame = FRAME.with_columns(pl.col("p_home") * 0.5)
    frame.write_csv("games.csv")
    done = run("recalibrate", "games.csv", "-o", "out.csv")
    assert done.exit_code == 2
    assert "line 2: the 3 scores (p_home, p_draw, p_away) must sum to 1 within 1e-06" in done.stderr
    assert not Path("out.csv").exists()
    assert run("recalibrate", "games.csv", "-o", "out.csv", "--normalize").exit_code == 0
    assert written("out.csv") == played(frame, normalize=True)[1].tolist()


def test_bad_rows_are_named_or_skipped() -> None:
    lines = FRAME.write_csv().splitlines()
    lines.insert(700, "700,lost,0.2,0.3,0.5")  # no such class
    lines.insert(750, "750,home,0.2,0.3,1.5")
    Path("games.csv").write_text("\n".join(lines) + "\n")
    done = run("recalibrate", "games.csv", "-o", "out.csv")
    assert done.exit_code == 2
    assert "games.csv, line 701: result must be" in done.stderr
    assert "'lost'" in done.stderr
    assert [path.name for path in Path().iterdir()] == ["games.csv"]
    done = run("recalibrate", "games.csv", "-o", "out.csv", "--skip-bad")
    assert "2 bad rows skipped" in done.stdout
    assert written("out.csv") == played()[1].tolist()


def test_a_class_that_never_comes_does_no_harm() -> None:
    frame = FRAME.filter(pl.col("result") != "draw")
    frame.write_csv("games.csv")
    done = run("recalibrate", "games.csv", "-o", "out.csv", "--classes", "home,draw,away")
    assert done.exit_code == 0, done.output
    assert written("out.csv") == played(frame)[1].tolist()


def test_rows_without_an_outcome_are_forecast_and_not_learned_from() -> None:
    at = pl.col("day") % 5 == 3
    frame = FRAME.with_columns(pl.when(at).then(None).otherwise("result").alias("result"))
    frame.write_csv("games.csv")
    assert "use --unknown" in run("recalibrate", "games.csv", "-o", "out.csv").stderr
    done = run("recalibrate", "games.csv", "-o", "out.csv", "--unknown")
    assert "180 rows without an outcome: forecast, not learned from" in done.stdout
    r = tc.Recalibrator(classes=NAMES)
    for (outcome, *scores), said in zip(
        frame.select("result", *SCORES).iter_rows(), written("out.csv"), strict=True
    ):
        assert r.predict(scores).tolist() == said
        if outcome is not None:
            r.observe(outcome)


def test_rows_may_be_sorted_by_time_and_come_from_standard_input() -> None:
    text = FRAME.reverse().write_csv()
    done = run("recalibrate", "-", "-o", "-", "--time", "day", "--sort", text=text)
    assert done.exit_code == 0, done.stderr
    Path("out.csv").write_text(done.stdout)
    assert written("out.csv") == played()[1].tolist()


@pytest.mark.slow("kills the command before each thing that it does to the disk")
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_killed_at_any_moment_the_old_output_is_whole(
    ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = Path("games" + ending), Path("out" + ending)
    frame = FRAME.head(250)
    WRITE[ending](frame, source)
    whole = played(frame)[1].tolist()
    command = ["recalibrate", str(source), "-o", str(target)]
    for steps in kills(command, {target: b"of an earlier run"}, monkeypatch):
        if target.read_bytes() != b"of an earlier run":
            assert written(target) == whole, steps
    assert steps >= 4
    assert run("recalibrate", source, "-o", target).exit_code == 0
    assert written(target) == whole
    assert sorted(path.name for path in Path().iterdir()) == sorted([source.name, target.name])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--scores", ",".join(SCORES), "--score", "p_home"], "must not be given together"),
        (["--scores", "p_home,p_lost"], "has no column 'p_lost' (--scores)"),
    ],
)
def test_what_is_not_for_classes_is_refused_and_leaves_nothing(words: list[str], told: str) -> None:
    FRAME.write_csv("games.csv")
    done = run("recalibrate", "games.csv", "-o", "out.csv", *words)
    assert done.exit_code == 2
    assert told in " ".join(done.stderr.split())
    assert [path.name for path in Path().iterdir()] == ["games.csv"]


def place(day: int) -> str | None:
    return (None, "Leeds", "Bath")[day % 3]


PLACES = FRAME.with_columns(
    place=pl.Series([place(day) for day in FRAME["day"]]), cup=pl.col("day") % 2
)
GROUPED = "max_groups" in tc.Recalibrator(classes=2).config


@pytest.mark.alike("recalibrates by each kind of file")
@pytest.mark.skipif(not GROUPED, reason="the recalibrator of classes takes no groups")
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
@pytest.mark.parametrize("ids", [[], ["--id", "day", "--event", "cup"]])
@pytest.mark.parametrize("by", [["--by", "place"], ["--by", "place", "--by", "cup"]])
def test_groups_are_calibrated_as_in_python(ending: str, ids: list[str], by: list[str]) -> None:
    source, target = Path("games" + ending), Path("out" + ending)
    WRITE[ending](PLACES, source)
    words = "recalibrate", source, "-o", target, "--state", "s.json", "--max-groups", "50"
    done = run(*words, *by, *ids)
    assert done.exit_code == 0, done.output
    r: Any = tc.ClassRecalibrator(classes=NAMES, max_groups=50, max_unresolved=1 << 20)
    for row, said in zip(PLACES.rows(named=True), written(target), strict=True):
        group: Any = row["place"]
        if len(by) > 2:
            named = [("place", row["place"]), ("cup", row["cup"])]
            group = tuple(f"{name}={cell}" for name, cell in named if cell is not None)
        scores = [row[score] for score in SCORES]
        if ids:
            ticket = r.issue(scores, group=group, event=str(row["cup"]))
            assert [*ticket.p] == said
            r.resolve(ticket, row["result"])
        else:
            assert r.predict(scores, group=group).tolist() == said
            r.observe(row["result"])
    assert learned() == r.state()
    assert run(*words, *by, *ids).exit_code == 0  # all is known
    assert learned() == r.state()


@pytest.mark.slow("makes pages")
@pytest.mark.parametrize("words", [[], ["--id", "day"], ["--normalize"], ["--state", "s.json"]])
def test_the_page_compares_before_and_after(words: list[str]) -> None:
    at = pl.col("day") % 5 == 3
    unknown = pl.when(at).then(None).otherwise("result").alias("result")
    frame = FRAME.with_columns(unknown) if "--id" in words else FRAME
    if "--normalize" in words:
        frame = frame.with_columns(pl.col(SCORES) / 2)
    frame.write_csv("games.csv")
    if "--state" in words:
        FRAME.head(300).write_csv("games.csv")
        assert run(*WITH_STATE).exit_code == 0
        FRAME.write_csv("games.csv")
    done = run("recalibrate", "games.csv", "-o", "out.csv", "--report", "page.html", *words)
    assert done.exit_code == 0, done.output
    known = frame["result"].is_not_null().to_numpy()
    y = frame["result"].drop_nulls().to_list()
    after = np.array(written("out.csv"))[known]
    r = played(FRAME)[0]
    if "--id" in words:
        r = tc.Recalibrator(classes=NAMES)
        for outcome, *scores in frame.select("result", *SCORES).rows():
            ticket = r.issue(scores)
            if outcome is not None:
                r.resolve(ticket, outcome)
    page = tc.html_report(
        y,
        frame.select(SCORES).to_numpy()[known],
        labels=NAMES,
        normalize="--normalize" in words,
        after=after,
        certificate=r.certificate,
        title="Before and after recalibration: out.csv",
        source="out.csv",
        outcome="result",
        group="group",
    )
    assert Path("page.html").read_text() == page.html


# A state: what was learned from is known again, by all columns of scores.

WITH_STATE = ["recalibrate", "games.csv", "-o", "out.csv", "--state", "s.json"]


def learned(path: str = "s.json") -> dict[str, Any]:
    return tc.ClassRecalibrator.from_json(Path(path).read_text()).state()


def test_a_growing_log_continues_where_it_ended() -> None:
    FRAME.head(400).write_csv("games.csv")
    assert run(*WITH_STATE).exit_code == 0
    FRAME.write_csv("games.csv")
    done = run(*WITH_STATE)
    assert "400 rows recalibrated before; 500 new" in done.stdout
    r, p = played()
    assert written("out.csv") == p.tolist()
    assert learned() == r.state()
    assert str(r.certificate) in done.stdout
    assert "900 rows recalibrated before; 0 new" in run(*WITH_STATE).stdout
    assert learned() == r.state()


def test_the_file_of_tomorrow_continues_too_also_a_state_of_python() -> None:
    FRAME.head(400).write_csv("games.csv")
    r, _ = played(FRAME.head(400))
    Path("s.json").write_text(r.to_json())
    FRAME.tail(500).write_csv("games.csv")
    assert run(*WITH_STATE).exit_code == 0
    both, p = played()
    assert written("out.csv") == p[400:].tolist()
    assert learned() == both.state()


@pytest.mark.slow("kills the command before each thing that it does to the disk")
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_killed_at_any_moment_the_same_command_continues(
    ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target, state = Path("games" + ending), Path("out" + ending), Path("s.json")
    frame = FRAME.head(250)
    WRITE[ending](frame, source)
    command = ["recalibrate", str(source), "-o", str(target), "--state", str(state)]
    assert run(*command).exit_code == 0
    r, p = played(frame)
    assert written(target) == p.tolist()
    assert learned() == r.state()
    start = {target: None, state: None}
    assert kills_that_change_nothing(command, start, learned, monkeypatch) > 10


@pytest.mark.alike("recalibrates twice for each change")
@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"p_draw": 0.25, "p_away": 0.25, "p_home": 0.5}, "p_draw 0.25"),
        ({"p_draw": "p_away", "p_away": "p_draw"}, "p_away"),  # p_home is as it was
        ({"result": "draw"}, "result draw"),
    ],
)
def test_a_row_that_differs_is_named(change: dict[str, Any], told: str, kept: bool) -> None:
    FRAME.write_csv("games.csv")
    assert run(*WITH_STATE).exit_code == 0
    before = Path("s.json").read_bytes()
    row = FRAME.with_row_index().filter((pl.col("index") > 600) & (pl.col("result") == "home"))
    at = int(row["index"][0])
    cells = {
        name: pl.col(value) if value in FRAME.columns else pl.lit(value)
        for name, value in change.items()
    }
    here = pl.int_range(pl.len()) == at
    changed = [pl.when(here).then(cell).otherwise(name).alias(name) for name, cell in cells.items()]
    FRAME.with_columns(changed).write_csv("games.csv")
    if not kept:
        Path("out.csv").unlink()
    done = run(*WITH_STATE)
    assert done.exit_code == 2
    assert f"line {at + 2}" in done.stderr
    assert not kept or (told in done.stderr and "where the last run read" in done.stderr)
    assert "no row is learned twice" in done.stderr
    assert Path("s.json").read_bytes() == before


def test_a_shorter_file_is_refused() -> None:
    FRAME.write_csv("games.csv")
    assert run(*WITH_STATE).exit_code == 0
    FRAME.head(700).write_csv("games.csv")
    done = run(*WITH_STATE)
    assert done.exit_code == 2
    assert "has only 700 of the 900 rows that the last run read" in done.stderr
    FRAME.tail(700).write_csv("games.csv")  # its oldest rows are gone
    assert run(*WITH_STATE).exit_code == 2


def test_the_same_rows_read_in_another_way_are_refused() -> None:
    off = FRAME.with_columns(pl.col(score) * (1 + 5e-7) for score in SCORES)
    off.write_csv("games.csv")
    assert run(*WITH_STATE).exit_code == 0
    before = Path("s.json").read_bytes()
    done = run(*WITH_STATE, "--normalize")
    assert done.exit_code == 2
    assert "--scores, --percent and --normalize must be as before" in done.stderr
    swapped = "--scores", "p_draw,p_home,p_away", "--classes", "home,draw,away"
    done = run(*WITH_STATE, *swapped)
    assert done.exit_code == 2
    assert "--scores, --percent and --normalize must be as before" in done.stderr
    assert Path("s.json").read_bytes() == before


@pytest.mark.parametrize("words", [[], ["--again"]])
def test_a_state_of_other_classes_is_refused(words: list[str]) -> None:
    FRAME.write_csv("games.csv")
    assert run(*WITH_STATE).exit_code == 0
    before = Path("s.json").read_bytes()
    done = run(*WITH_STATE, *words, "--scores", "p_draw,p_home,p_away")
    assert done.exit_code == 2
    assert "is of classes home, draw, away, not of classes draw, home, away" in done.stderr
    binary = pl.DataFrame({"y": [0, 1, 1] * 9, "p": [0.25, 0.5, 0.75] * 9})
    binary.write_csv("scores.csv")
    done = run("recalibrate", "scores.csv", "-o", "o.csv", "--state", "s.json", *words)
    assert done.exit_code == 2
    assert "is of classes home, draw, away, not of outcomes 0 or 1" in done.stderr
    assert not Path("o.csv").exists()
    assert Path("s.json").read_bytes() == before
    assert run("recalibrate", "scores.csv", "-o", "o.csv", "--state", "t.json").exit_code == 0
    done = run("recalibrate", "games.csv", "-o", "out2.csv", "--state", "t.json", *words)
    assert done.exit_code == 2
    assert "is of outcomes 0 or 1, not of classes home, draw, away" in done.stderr


def test_a_class_is_not_taken_for_an_outcome_that_is_missing() -> None:
    """Class 2 and no outcome at all are different rows."""
    unknown = pl.when(pl.col("result") == "away").then(None).otherwise("result").alias("result")
    FRAME.with_columns(unknown).write_csv("games.csv")
    assert run(*WITH_STATE, "--unknown").exit_code == 0
    FRAME.write_csv("games.csv")
    done = run(*WITH_STATE, "--unknown")
    assert done.exit_code == 2
    assert "of which some had no outcome" in done.stderr
    assert "--id is for outcomes that come later" in done.stderr


def test_a_state_of_classes_is_not_for_ids() -> None:
    """Neither one that the command saved nor one of Python."""
    pl.DataFrame({"id": range(9), "y": [0, 1, 1] * 3, "p": [0.5] * 9}).write_csv("scores.csv")
    FRAME.write_csv("games.csv")
    assert run(*WITH_STATE).exit_code == 0
    Path("t.json").write_text(tc.Recalibrator(classes=3).to_json())
    for state, told in (("s.json", "without --id"), ("t.json", "is of classes 0, 1, 2, not")):
        done = run("recalibrate", "scores.csv", "-o", "o.csv", "--state", state, "--id", "id")
        assert done.exit_code == 2
        assert told in done.stderr


def test_a_state_that_takes_logits_is_refused() -> None:
    """Probabilities are no log-odds, whether of classes or of outcomes 0 or 1."""
    FRAME.write_csv("games.csv")
    Path("s.json").write_text(tc.Recalibrator(classes=NAMES, scale="logit").to_json())
    pl.DataFrame({"y": [0, 1, 1], "p": [0.25, 0.5, 0.75]}).write_csv("scores.csv")
    Path("t.json").write_text(tc.Recalibrator(scale="logit").to_json())
    for file, state in (("games.csv", "s.json"), ("scores.csv", "t.json")):
        done = run("recalibrate", file, "-o", "out.csv", "--state", state)
        assert done.exit_code == 2
        assert "log-odds" in done.stderr
        assert not Path("out.csv").exists()
