"""`truecast watch`: alarms, exit codes, following, and a state in which no row counts twice."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner, Result

import truecast as tc
from disk import Killed, killed_after
from truecast.cli import main
from truecast.files import records

ROWS = 3_000


def run(*arguments: object, text: str | bytes | None = None) -> Result:
    return CliRunner().invoke(main, ["watch", *(str(each) for each in arguments)], input=text)


def rows(count: int = ROWS, change: int = 1_000, seed: int = 1) -> pl.DataFrame:
    """Forecasts that are 20 points too high from a row on."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.25, 0.95, count).round(5)
    q = np.where(np.arange(count) < change, p, p - 0.2)
    return pl.DataFrame(
        {
            "when": [f"2025-{1 + k // 2500:02}-{1 + k % 2500 // 100:02}" for k in range(count)],
            "p": p,
            "better": q.round(5),
            "y": (rng.random(count) < q).astype(int),
            "place": rng.choice(["JFK", "LGA"], count),
        }
    )


FRAME = rows()
ARGUMENTS = "--once", "--score", "p", "--outcome", "y"


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_BLOCK", 1 << 13)
    monkeypatch.chdir(tmp_path)


def test_an_alarm_is_exit_code_3_and_says_since_when() -> None:
    FRAME.write_csv("a.csv")
    done = run("a.csv", *ARGUMENTS, "--time", "when")
    assert done.exit_code == 3
    first = done.stdout.splitlines()[0]
    assert first.startswith("ALARM p, line 1")
    assert "points too high since 2025-01-" in first
    FRAME.head(900).write_csv("b.csv")
    done = run("b.csv", *ARGUMENTS)
    assert (done.exit_code, "no alarm" in done.stdout) == (0, True)


def test_the_command_is_the_monitor() -> None:
    FRAME.write_csv("a.csv")
    done = run("a.csv", *ARGUMENTS, "--json", "--by", "place", "--alpha", "0.05")
    found = json.loads(done.stdout)["scores"]["p"]
    m = tc.Monitor(alpha=0.05)
    m.update_many(FRAME["p"], FRAME["y"], groups=FRAME["place"].to_list())
    assert found["evidence"] == m.evidence
    assert found["alarm"]["since"] == m.alarm.since
    assert found["groups"]["JFK"]["evidence"] == m.groups["JFK"].evidence


def test_alarms_of_groups_are_counted_and_listed() -> None:
    FRAME.write_csv("a.csv")
    options = (*ARGUMENTS, "--by", "place")
    said = run("a.csv", *options).stdout.splitlines()
    assert sum(line.startswith("ALARM") for line in said) == 3
    assert "3 alarms, 2 of them of groups" in "\n".join(said)
    found = json.loads(run("a.csv", *options, "--json").stdout)
    score = found["scores"]["p"]
    assert found["alarms"] == score["alarms"] == len(found["raised"]) == 3
    assert sorted(str(each["group"]) for each in found["raised"]) == ["JFK", "LGA", "None"]
    assert [group["alarms"] for group in score["groups"].values()] == [1, 1]


def test_two_scores_side_by_side() -> None:
    FRAME.write_csv("a.csv")
    done = run("a.csv", *ARGUMENTS, "--score", "better")
    assert "p drifted, better holds" in done.stdout
    assert done.exit_code == 3


def test_mean_time_counts_alarms() -> None:
    FRAME.write_csv("a.csv")
    done = run("a.csv", *ARGUMENTS, "--mean-time", "1000", "--json")
    found = json.loads(done.stdout)
    assert found["alarms"] == found["scores"]["p"]["alarms"] > 5
    assert done.exit_code == 3


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_a_state_continues_and_counts_no_row_twice(ending: str) -> None:
    def write(frame: pl.DataFrame) -> None:
        {"csv": frame.write_csv, "jsonl": frame.write_ndjson, "parquet": frame.write_parquet}[
            ending
        ](f"a.{ending}")

    for count in (800, 800, 2_000, ROWS):
        write(FRAME.head(count))
        done = run(f"a.{ending}", *ARGUMENTS, "--state", "s.json")
        assert done.exit_code == (3 if count > 1_500 else 0), done.output
    kept = tc.Monitor.from_json(Path("s.json").read_text())
    m = tc.Monitor()
    m.update_many(FRAME["p"], FRAME["y"])
    assert kept.state() == m.state()
    done = run(f"a.{ending}", *ARGUMENTS, "--state", "s.json")  # nothing new: the alarm stays
    assert done.exit_code == 3
    assert "3,000 rows seen before; 0 new" in done.stderr


def test_an_alarm_of_a_group_stays_too() -> None:
    rng = np.random.default_rng(3)
    p = rng.uniform(0.3, 0.9, 4_000).round(4)
    place = np.where(np.arange(4_000) % 8 == 0, "LGA", "JFK")
    y = (rng.random(4_000) < np.where(place == "LGA", p - 0.25, p)).astype(int)
    pl.DataFrame({"p": p, "y": y, "place": place}).write_csv("a.csv")
    for _ in range(2):
        done = run("a.csv", *ARGUMENTS, "--by", "place", "--state", "s.json")
        assert done.exit_code == 3
    assert "  LGA: forecasts" in done.stdout
    assert "ALARM" not in done.stdout


def test_another_file_is_new_and_one_that_shares_rows_is_refused() -> None:
    FRAME.head(500).write_csv("monday.csv")
    rows(500, 500, seed=2).write_csv("tuesday.csv")
    FRAME.slice(1, 700).write_csv("shifted.csv")
    assert run("monday.csv", *ARGUMENTS, "--state", "s.json").exit_code == 0
    before = Path("s.json").read_text()
    done = run("shifted.csv", *ARGUMENTS, "--state", "s.json")
    assert done.exit_code == 2
    assert "no row counts twice" in done.stderr
    assert Path("s.json").read_text() == before
    assert run("tuesday.csv", *ARGUMENTS, "--state", "s.json").exit_code == 0
    assert tc.Monitor.from_json(Path("s.json").read_text()).rounds == 1_000


def test_half_a_line_waits() -> None:
    text = FRAME.head(300).write_csv()
    Path("a.csv").write_text(text[:-4])  # inside the last row
    run("a.csv", *ARGUMENTS, "--state", "s.json")
    assert tc.Monitor.from_json(Path("s.json").read_text()).rounds == 299
    Path("a.csv").write_text(text)
    run("a.csv", *ARGUMENTS, "--state", "s.json")
    assert tc.Monitor.from_json(Path("s.json").read_text()).rounds == 300


@pytest.mark.slow("kills a run before each thing that it does to the disk")
def test_killed_while_it_saves_it_has_saved_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    FRAME.head(400).write_csv("a.csv")
    run("a.csv", *ARGUMENTS, "--state", "s.json")
    FRAME.head(700).write_csv("a.csv")
    m = tc.Monitor()
    m.update_many(FRAME["p"].head(700), FRAME["y"].head(700))
    kills = 0
    for steps in range(20):
        with contextlib.suppress(Killed), killed_after(steps, monkeypatch) as left:
            run("a.csv", *ARGUMENTS, "--state", "s.json")
        kills += left[0] < 0
        Path("s.json.lock").unlink(missing_ok=True)
        assert tc.Monitor.from_json(Path("s.json").read_text()).rounds in (400, 700)
    assert kills
    run("a.csv", *ARGUMENTS, "--state", "s.json")
    assert tc.Monitor.from_json(Path("s.json").read_text()).state() == m.state()


def test_a_state_says_which_options_it_was_begun_with() -> None:
    FRAME.write_csv("a.csv")
    run("a.csv", *ARGUMENTS, "--state", "s.json")
    done = run("a.csv", *ARGUMENTS, "--state", "s.json", "--by", "place")
    said = "a.csv begins with rows that the state has seen without --by: it must be as it was"
    assert done.stderr.endswith(f"{said}\n")
    done = run("a.csv", *ARGUMENTS, "--state", "s.json", "--mean-time", "1000")
    assert "cannot change: --alpha 0.01; give the same ones, or use a new --state" in done.stderr
    Path("t.json").write_text("p,y\n")
    done = run("a.csv", *ARGUMENTS, "--state", "t.json")
    assert (
        done.stderr == "Error: t.json is not a saved monitor: it is not JSON; use a new --state\n"
    )


def test_standard_input_ends_with_an_exit_code() -> None:
    done = run("-", "--score", "p", "--outcome", "y", "--json", text=FRAME.write_csv())
    assert done.exit_code == 3
    alarm = json.loads(done.stdout.splitlines()[0])
    assert alarm["alarm"]["direction"] == "too high"
    assert alarm["group"] is None


def test_a_certain_alarm_is_json(tmp_path: Path) -> None:
    Path("a.csv").write_text("p,y\n0.5,1\n0,1\n")
    done = run("a.csv", *ARGUMENTS, "--json")
    found = json.loads(done.stdout)["scores"]["p"]
    assert (found["evidence"], found["certain"]) == (None, True)
    assert "for certain" in run("a.csv", *ARGUMENTS).stdout


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--alpha", "2"), "--alpha"),
        (("--alpha", "0.1", "--mean-time", "100"), "choose one"),
        (("--by", "place", "--by", "place"), "once"),
        (("--score", "better", "--state", "s.json"), "one --score"),
        (("--time", "nowhere"), "nowhere"),
        (("--state", "a.csv"), "same file"),
    ],
)
def test_bad_options_are_refused(options: tuple[str, ...], says: str) -> None:
    FRAME.write_csv("a.csv")
    done = run("a.csv", *ARGUMENTS, *options)
    assert done.exit_code == 2
    assert says in done.stderr


def test_a_state_keeps_its_promise() -> None:
    FRAME.head(100).write_csv("a.csv")
    run("a.csv", *ARGUMENTS, "--state", "s.json")
    done = run("a.csv", *ARGUMENTS, "--state", "s.json", "--alpha", "0.05")
    assert done.exit_code == 2
    assert "or use a new --state" in done.stderr
    Path("s.json").write_text("nonsense")
    assert run("a.csv", *ARGUMENTS, "--state", "s.json").exit_code == 2


def wait_for(condition: Any, process: subprocess.Popen[str]) -> None:
    for _ in range(600):
        if condition():
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    pytest.fail("waited for too long")


@pytest.mark.slow("starts processes and waits for them")
@pytest.mark.skipif(os.name != "posix", reason="sends signals")
def test_a_growing_file_is_followed_and_a_killed_run_continued(tmp_path: Path) -> None:
    lines = FRAME.write_csv().splitlines(keepends=True)
    file, state = tmp_path / "log.csv", tmp_path / "s.json"
    file.write_text("".join(lines[:501]))
    command = [sys.executable, "-m", "truecast", "watch", str(file), "--score", "p"]
    command += ["--outcome", "y", "--interval", "0.02", "--state", str(state)]

    def seen() -> int:
        if not state.exists():
            return 0
        return tc.Monitor.from_json(state.read_text()).rounds

    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as first:
        wait_for(lambda: seen() == 500, first)
        with file.open("a") as log:
            log.write("".join(lines[501:801]) + lines[801][:5])
        wait_for(lambda: seen() == 800, first)
        first.kill()
    (tmp_path / "s.json.lock").unlink(missing_ok=True)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as second:
        with file.open("a") as log:
            log.write(lines[801][5:] + "".join(lines[802:]))
        wait_for(lambda: seen() == ROWS, second)
        second.send_signal(signal.SIGINT)
        said, _ = second.communicate(timeout=30)
    assert second.returncode == 130
    assert said.startswith("ALARM p")
    m = tc.Monitor()
    m.update_many(FRAME["p"], FRAME["y"])
    assert tc.Monitor.from_json(state.read_text()).state() == m.state()


def games(count: int = 4_000, change: int = 2_000) -> pl.DataFrame:
    """Rows of three classes; from a row on, a third of the draws are home wins."""
    rng = np.random.default_rng(3)
    p = rng.dirichlet([4, 5, 6], count)
    y = (rng.random((count, 1)) > p.cumsum(axis=1)).sum(axis=1)
    y[(np.arange(count) >= change) & (y == 1) & (rng.random(count) < 0.35)] = 0
    named = {f"p_{name}": p[:, k] for k, name in enumerate(("home", "draw", "away"))}
    return pl.DataFrame(named | {"result": np.array(["home", "draw", "away"])[y]})


CLASSES = "--once", "--outcome", "result", "--scores", "p_home,p_draw,p_away"


def test_classes_are_watched_and_named() -> None:
    frame = games()
    frame.write_csv("games.csv")
    done = run("games.csv", *CLASSES)
    assert done.exit_code == 3, done.output
    said = done.stdout.splitlines()
    alarms = [line for line in said if line.startswith("ALARM")]
    assert alarms[0].startswith("ALARM result, line ")
    assert "forecasts of home are " in alarms[0]
    assert [line for line in said if line.startswith("  forecasts of home are ")]
    assert all(len(line) <= 80 for line in said if line not in alarms)
    found = json.loads(run("games.csv", *CLASSES, "--json").stdout)["scores"]["result"]
    m = tc.Monitor(classes=["home", "draw", "away"], normalize=True)
    m.update_many(frame.select("p_home", "p_draw", "p_away").to_numpy(), frame["result"].to_numpy())
    assert found["evidence"] == m.evidence
    assert found["alarm"]["label"] == m.alarm.label == "home"
    assert list(found["classes"]) == ["home", "draw", "away"]
    assert found["classes"]["draw"]["alarm"]["direction"] == "too high"
    assert found["classes"]["away"]["alarm"] is None


def test_alarms_come_in_the_order_of_rows_and_the_confidence_is_named() -> None:
    rng = np.random.default_rng(0)
    p = rng.dirichlet([4, 5, 6], 3_000)
    y = (rng.random((3_000, 1)) > p.cumsum(axis=1)).sum(axis=1)
    sure = p**2 / (p**2).sum(axis=1, keepdims=True)
    named = {f"p_{name}": sure[:, k] for k, name in enumerate(("home", "draw", "away"))}
    result = np.array(["home", "draw", "away"])[y]
    pl.DataFrame(named | {"result": result}).write_csv("games.csv")
    done = run("games.csv", *CLASSES, "--normalize")
    alarms = [line for line in done.stdout.splitlines() if line.startswith("ALARM")]
    rows = [int(line.split("line ")[1].split(":")[0]) for line in alarms]
    assert len(alarms) == 4
    assert rows == sorted(rows)
    assert sum(line.startswith("ALARM result, confidence, line ") for line in alarms) == 1
    assert "\n  confidence: forecasts " in done.stdout


def test_classes_continue_from_a_state() -> None:
    frame = games()
    frame.head(2_500).write_csv("games.csv")
    assert run("games.csv", *CLASSES, "--state", "s.json").exit_code in (0, 3)
    frame.write_csv("games.csv")
    assert run("games.csv", *CLASSES, "--state", "s.json").exit_code == 3
    kept = tc.ClassMonitor.from_json(Path("s.json").read_text())
    whole = tc.Monitor(classes=["home", "draw", "away"], normalize=True)
    whole.update_many(frame.drop("result").to_numpy(), frame["result"].to_numpy())
    assert kept.state() == whole.state()
    FRAME.write_csv("a.csv")
    refused = run("a.csv", *ARGUMENTS, "--state", "s.json")
    assert refused.exit_code == 2
    assert "has other options, which cannot change" in refused.stderr
    with_groups = (*CLASSES, "--by", "result"), ("--once", "--by", "p_away")
    for options in with_groups:
        done = run("games.csv", *options)
        assert done.exit_code == 2
        assert "--by does not work with several classes yet" in done.stderr
