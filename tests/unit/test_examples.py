"""The examples run, and what they show is so."""

from __future__ import annotations

import csv
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import truecast as tc

EXAMPLES = Path(__file__).parents[2] / "examples"
SCORES = r"^  (\w[\w ,]*?) +Brier (\S+) +smCE (\S+)$"


@pytest.mark.slow("runs an example")
@pytest.mark.parametrize(
    ("name", "rounds"), [("sklearn_classifier", ["569"]), ("river_pipeline", ["1,250", "1,250"])]
)
def test_recalibrated_is_better_and_certified(name: str, rounds: list[str]) -> None:
    command = [sys.executable, "-W", "error", str(EXAMPLES / f"{name}.py")]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
    assert not done.stderr
    figures = re.findall(SCORES, done.stdout, re.MULTILINE)
    assert [kind for kind, _, _ in figures[1::2]] == ["recalibrated"] * 2
    for (_, brier, error), (_, our_brier, our_error) in zip(
        figures[::2], figures[1::2], strict=True
    ):
        assert float(our_brier) < 0.95 * float(brier)
        assert float(our_error) < float(error)
    assert re.findall(r"^after (\S+) rounds$", done.stdout, re.MULTILINE) == rounds
    assert len(re.findall(r"^  distance to calibration   <= ", done.stdout, re.MULTILINE)) == len(
        rounds
    )


@pytest.mark.parametrize("framework", ["sklearn", "river"])
def test_a_framework_is_needed_by_its_adapter_alone(framework: str) -> None:
    code = f"import sys; sys.modules[{framework!r}] = None; import truecast, truecast.adapters"
    subprocess.run([sys.executable, "-c", code], check=True)
    missing = subprocess.run(
        [sys.executable, "-c", f"{code}; import truecast.adapters.{framework}"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert missing.returncode
    assert re.search(rf"ModuleNotFoundError: .*\b{framework}\b", missing.stderr)


def test_the_package_imports_no_framework() -> None:
    code = (
        "import sys, truecast; sys.exit(bool({'sklearn', 'river', 'truecast.adapters'} & "
        "{*sys.modules}))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def play(name: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Run a script here, as `python examples/NAME.py` would, and return its names."""
    monkeypatch.syspath_prepend(EXAMPLES)
    monkeypatch.setattr(sys, "argv", [name])
    return runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")


def printed_scores(text: str) -> dict[str, tuple[float, float]]:
    return {
        name: (float(brier), float(error))
        for name, brier, error in re.findall(SCORES, text, re.MULTILINE)
    }


def scores(y: Any, p: Any) -> tuple[float, float]:
    return round(tc.brier_score(y, p), 4), round(tc.smooth_calibration_error(y, p), 4)


@pytest.mark.slow("runs an example")
def test_flights_as_late_as_they_land(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = play("flights", monkeypatch)
    text = capsys.readouterr().out
    y, said, model = run["y"], run["said"], run["scores"]
    told = printed_scores(text)
    assert told["the model"] == scores(y, model)
    assert told["recalibrated"] == scores(y, said)
    # better than the model, than means, and worse than with outcomes that nobody had
    assert told["recalibrated"][0] < told["the last 200 to land"][0]
    assert (
        told["as if told at once"][0] < told["recalibrated"][0] < told["the mean, in hindsight"][0]
    )
    assert told["recalibrated"][0] < 0.95 * told["the model"][0]
    assert told["recalibrated"][1] < 0.2 * told["the model"][1]
    most = re.search(r"at most (\d+) flights were in the air", text)
    assert most
    assert int(most[1]) > 100
    months = np.array(re.findall(r"^\d+ +(\S+) +(\S+) +(\S+)$", text, re.MULTILINE), float)
    assert len(months) == 9
    late, by_model, by_us = months.T
    assert abs(by_us - late).max() < abs(by_model - late).max() / 2
    certificate = run["recalibrator"].certificate
    assert (certificate.rounds, certificate.unresolved) == (len(y), 0)
    assert {*run["recalibrator"].groups} == {"EWR", "JFK", "LGA", "morning", "afternoon", "evening"}
    for name, group in run["recalibrator"].groups.items():
        here = np.array([name in both for both in run["groups"]])
        assert group.certificate.rounds == here.sum()
        assert (
            tc.smooth_calibration_error(y[here], said[here], total=True)
            <= group.certificate.smooth_error
        )
        assert f"{name:<9} {here.sum():>7,} flights" in text
    assert_csv_is_made_of(run["flights"])
    assert_nothing_is_known_too_early(run)


def assert_csv_is_made_of(table: Any) -> None:
    """`scores.csv` is every 45th flight."""
    with (EXAMPLES / "scores.csv").open() as file:
        rows = list(csv.DictReader(file))
    some = table[::45]
    assert [row["date"] for row in rows] == some.date.dt.strftime("%Y-%m-%d").tolist()
    assert [row["airport"] for row in rows] == some.origin.tolist()
    assert [int(row["outcome"]) for row in rows] == some.outcome.tolist()
    assert [float(row["score"]) for row in rows] == pytest.approx(some.score.tolist(), abs=2e-4)


def assert_nothing_is_known_too_early(run: dict[str, Any]) -> None:
    """Played anew from the first flights alone, with all outcomes after an hour turned round, that
    hour is the same."""
    first = 3_000
    departure, landed = (run[name].to_numpy()[:first] for name in ("departure", "landed"))
    y, hour = run["y"][:first], departure[first // 2]
    other = np.where(landed >= hour, 1 - y, y)
    recalibrator, tickets = tc.Recalibrator(), {}
    for event in np.argsort(np.concatenate([departure, landed]), kind="stable").tolist():
        if event < first:
            tickets[event] = recalibrator.issue(run["scores"][event], group=run["groups"][event])
        else:
            recalibrator.resolve(tickets[event - first], other[event - first])
    before = np.flatnonzero(departure <= hour)
    assert [tickets[flight].p for flight in before] == run["said"][before].tolist()


@pytest.mark.slow("runs an example")
def test_digits_before_and_after_with_a_report(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    run = play("digits_report", monkeypatch)
    text = capsys.readouterr().out
    y, model = run["y_new"], run["model"]
    told = printed_scores(text)
    assert told == {
        "the forest": scores(y, run["scores"]),
        "recalibrated": scores(y, model.forecasts_),
    }
    assert told["recalibrated"][0] < 0.7 * told["the forest"][0]
    assert told["recalibrated"][1] < 0.5 * told["the forest"][1]
    assert f"after {len(y)} rounds" in text
    assert "underconfident" in run["report"].verdicts["the forest"]
    proof = {"after": model.forecasts_, "certificate": model.certificate_}
    page = tc.html_report(y, run["scores"], **proof, title="Odd digits", score="the forest").html
    assert (tmp_path / "digits.html").read_text() == run["report"].html == page
