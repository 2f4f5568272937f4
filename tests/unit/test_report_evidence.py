"""Evidence over time on the page: what a monitor says of the same rounds."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import truecast as tc
from truecast.cli import main
from truecast.report.course import RunningCourse, course_of
from truecast.report.words import evidence_sentences

RNG = np.random.default_rng(0)
P = RNG.uniform(0.2, 0.9, 3_000)
Y = (RNG.random(3_000) < np.where(np.arange(3_000) < 1_500, P, P - 0.15)).astype(int)
DAYS = np.datetime64("2025-01-01") + np.arange(3_000) // 50


def test_the_page_says_what_the_monitor_says() -> None:
    course = course_of(DAYS, Y, P)
    assert course is not None
    found = course.evidence
    assert found is not None
    m = tc.Monitor(alpha=0.01)
    m.update_many(P, Y)
    assert found.alarm == m.alarm
    assert found.evidence.max() == pytest.approx(min(m.peak, 1e30))
    day = (DAYS[m.alarm.since] - np.datetime64("1970-01-01")).astype(int) * 86_400
    assert abs(found.since - day) <= 86_400
    (sentence,) = evidence_sentences(course)
    assert sentence.startswith("Alarm on 2025-0")
    assert "too high since about 2025-01-" in sentence
    page = tc.html_report(Y, P, times=DAYS, resamples=20).html
    assert sentence in page


def test_the_recalibrated_ones_are_watched_too() -> None:
    after = tc.Recalibrator().forecast_many(P, Y)
    course = course_of(DAYS, Y, P, after)
    assert course is not None
    drifted, holds = evidence_sentences(course)
    assert "bets against the forecasts" in drifted
    assert holds.startswith("No alarm: bets against the recalibrated ones")


def test_rounds_out_of_order_are_not_bet_on() -> None:
    course = course_of(DAYS[::-1], Y, P)
    assert course is not None
    assert course.evidence is None
    assert evidence_sentences(course) == []
    running = RunningCourse()
    for part in (slice(1_500, 3_000), slice(1_500)):
        running.add(DAYS[part], Y[part], P[part])
    parts = running.course()
    assert parts is not None
    assert parts.evidence is None


def test_many_rounds_are_kept_in_few_points() -> None:
    running = RunningCourse()
    p = np.full(150_000, 0.5)
    y = np.random.default_rng(1).integers(0, 2, 150_000)
    for start in range(0, 150_000, 5_000):
        part = slice(start, start + 5_000)
        running.add(np.arange(start, start + 5_000), y[part], p[part])
    course = running.course()
    assert course is not None
    assert course.evidence is not None
    assert len(course.evidence.time) <= 400
    assert course.evidence.alarm is None


@pytest.mark.parametrize("rows", [200, 3_000, 20_000])
def test_the_page_and_the_command_say_the_same_times(rows: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(rows)
    p = rng.uniform(0.3, 0.7, rows)
    y = (rng.random(rows) < p - (0.25 if rows == 200 else 0.05)).astype(int)
    days = np.datetime64("2024-01-01") + np.arange(rows) // 20
    file = tmp_path / "rows.csv"
    lines = zip(days, p, y, strict=True)
    file.write_text("date,score,outcome\n" + "".join(f"{d},{q},{o}\n" for d, q, o in lines))
    printed = CliRunner().invoke(main, ["watch", str(file), "--once", "--time", "date"]).output
    alarm = re.search(r"ALARM score, line \d+ \((\S+)\): .* since (\S+);", printed)
    assert alarm
    (sentence,) = evidence_sentences(course_of(days, y, p))
    assert sentence.startswith(f"Alarm on {alarm[1]}:")
    assert f"since about {alarm[2]}." in sentence
