"""`truecast recalibrate --id` on files of several classes: outcomes come later, across runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner, Result

import truecast as tc
from disk import READ, WRITE, kills_that_change_nothing
from truecast.cli import main
from truecast.files import recalibration, records

NAMES = ["home", "draw", "away"]
SCORES = ["p_home", "p_draw", "p_away"]
NEW = ["recalibrated_home", "recalibrated_draw", "recalibrated_away"]


def run(*arguments: object, text: str | None = None) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments], input=text)


def command(ending: str = ".csv", *options: str) -> list[str]:
    return ["recalibrate", "log" + ending, "-o", "out" + ending, "--id", "game", *options]


@pytest.fixture(autouse=True)
def _in_small_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_BLOCK", 1 << 12)
    monkeypatch.setattr("truecast.files.parquet._ROWS", 100)
    monkeypatch.setattr(recalibration, "_CHUNKS", 2)
    monkeypatch.chdir(tmp_path)


def games(rounds: int = 300) -> pl.DataFrame:
    rng = np.random.default_rng(5)
    truth = rng.dirichlet(np.ones(3), rounds)
    y = (truth.cumsum(axis=1) < rng.random((rounds, 1))).sum(axis=1).clip(max=2)
    rows = truth**2 / (truth**2).sum(axis=1, keepdims=True)
    said = {score: rows[:, k] for k, score in enumerate(SCORES)}
    ids = {"game": [f"g{k}" for k in range(rounds)]}
    return pl.DataFrame(ids | {"result": [NAMES[k] for k in y]} | said)


TRUTH = games()


def grown(rows: int, late: int) -> pl.DataFrame:
    """The log when it has this number of rows: outcomes come some rows later, in no order."""
    due = np.random.default_rng(1).integers(0, late, len(TRUTH))
    known = (np.arange(len(TRUTH)) + due)[:rows] < rows
    return TRUTH[:rows].with_columns(result=pl.when(pl.Series(known)).then("result"))


class Oracle:
    """The same row by row, in Python: a ticket for each id."""

    def __init__(self) -> None:
        self.r = tc.ClassRecalibrator(classes=NAMES, max_unresolved=1 << 20)
        self.tickets: dict[str, Any] = {}
        self.known: set[str] = set()

    def play(self, frame: pl.DataFrame) -> list[list[float]]:
        for name, outcome, *said in frame.rows():
            if name not in self.tickets:
                self.tickets[name] = self.r.issue(said)
            if outcome is not None and name not in self.known:
                self.r.resolve(self.tickets[name], outcome)
                self.known.add(name)
        return [[*self.tickets[name].p] for name in frame["game"]]


def written(ending: str = ".csv") -> list[list[float]]:
    return READ[ending](Path("out" + ending)).select(NEW).to_numpy().tolist()


def learned(path: str = "s.json") -> dict[str, Any]:
    return tc.ClassRecalibrator.from_json(Path(path).read_text()).state()


@pytest.mark.alike("recalibrates many times by each kind of file")
@pytest.mark.parametrize("ending", WRITE)
def test_a_growing_log_whose_outcomes_are_filled_in_later_is_as_issue_and_resolve(
    ending: str,
) -> None:
    oracle = Oracle()
    for rows in (120, 250, 300):
        log = grown(rows, 90)
        WRITE[ending](log, Path("log" + ending))
        done = run(*command(ending, "--state", "s.json"))
        assert done.exit_code == 0, done.output
        assert written(ending) == oracle.play(log)
        assert learned() == oracle.r.state()
        assert str(oracle.r.certificate) in done.stdout
    assert "outcomes learned; " in done.stdout
    assert run(*command(ending, "--state", "s.json")).exit_code == 0
    assert learned() == oracle.r.state()


def test_an_event_log_has_the_outcome_in_a_row_of_its_own() -> None:
    """From standard input, without a state; the second row of a game has no scores."""
    said = TRUTH.with_columns(result=pl.lit(None, pl.String))
    came = TRUTH.with_columns(pl.lit(None, pl.Float64).alias(score) for score in SCORES)
    log = pl.concat([said[:50], came[:30], said[50:60], came[30:55]])
    words = ["--id", "game", "--scores", ",".join(SCORES)]
    done = run("recalibrate", "-", "-o", "-", *words, text=log.write_csv())
    assert done.exit_code == 0, done.stderr
    found = pl.read_csv(done.stdout.encode()).select(NEW).to_numpy().tolist()
    assert found == Oracle().play(log)
    assert "55 outcomes learned; 5 still to come" in done.stderr


def test_errors_before_and_after_are_of_the_outcomes_learned_now() -> None:
    log = grown(300, 50)
    log.write_csv("log.csv")
    data = json.loads(run(*command(".csv", "--json")).stdout)
    oracle = Oracle()
    p = np.array(oracle.play(log))
    known = log["result"].is_not_null().to_numpy()
    y = log["result"].drop_nulls().to_list()
    rows = {"score": log.select(SCORES).to_numpy(), "recalibrated": p}
    for name, all_rows in rows.items():
        some = all_rows[known]
        brier, smooth = data["brier"][name], data["smooth_calibration_error"][name]
        assert brier == pytest.approx(tc.brier_score(y, some, labels=NAMES), rel=1e-12)
        errors = tc.classwise_calibration_errors(y, some, labels=NAMES)
        assert smooth == pytest.approx(errors.sum, rel=1e-12)
    assert data["learned"] == len(y)


@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("g3,away,,,", "result of this id was 'home' before, got 'away'"),
        ("g3,home,0.5,0.25,0.25", "p_draw of this id was 0.375 before, got 0.25"),
        ("g3,home,0.5,,0.5", "must all be there, or none of them for an id that is known"),
        ("g4,home,,,", "p_home must be a probability for a new id, got nothing"),
        ("g4,lost,0.5,0.25,0.25", "must be one of the classes home, draw, away"),
    ],
)
def test_what_contradicts_an_earlier_row_is_refused(row: str, told: str, across: bool) -> None:
    first = "g1,draw,0.5,0.25,0.25\ng2,away,0.5,0.25,0.25\ng3,home,0.5,0.375,0.125\n"
    head = "game,result,p_home,p_draw,p_away\n"
    words = [*command(), "--state", "s.json", "--scores", ",".join(SCORES)]
    if across:
        Path("log.csv").write_text(head + first)
        assert run(*words).exit_code == 0
    before = {path.name: path.read_bytes() for path in Path().iterdir() if path.name != "log.csv"}
    Path("log.csv").write_text(head + (first if not across else "") + row + "\n")
    done = run(*words)
    assert done.exit_code == 2
    assert told in " ".join(done.stderr.split())
    assert f"line {2 if across else 5}" in done.stderr
    after = {path.name: path.read_bytes() for path in Path().iterdir() if path.name != "log.csv"}
    assert after == before


def test_a_state_of_ids_is_for_the_same_classes() -> None:
    TRUTH.write_csv("log.csv")
    words = command(".csv", "--state", "s.json")
    assert run(*words).exit_code == 0
    done = run(*words, "--scores", "p_draw,p_home,p_away")
    assert done.exit_code == 2
    assert "is of classes home, draw, away, not of classes draw, home, away" in done.stderr
    pl.DataFrame({"game": ["a", "b"], "y": [0, 1], "p": [0.5, 0.25]}).write_csv("log.csv")
    done = run(*words)
    assert done.exit_code == 2
    assert "not of outcomes 0 or 1" in done.stderr
    saved = json.loads(Path("s.json").read_text())
    assert saved["run"]["known"]["width"] == 3


@pytest.mark.slow("is killed before every step")
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_killed_before_any_step_and_started_again_it_writes_the_same(
    ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the killed run was the first or continued another."""
    source, target, state = Path("log" + ending), Path("out" + ending), Path("s.json")
    words = command(ending, "--state", "s.json")
    WRITE[ending](grown(40, 20), source)
    assert run(*words).exit_code == 0
    start = {target: target.read_bytes(), state: state.read_bytes()}
    WRITE[ending](grown(110, 20), source)
    assert run(*words).exit_code == 0
    assert kills_that_change_nothing(words, start, learned, monkeypatch) > 5
