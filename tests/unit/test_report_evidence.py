"""Evidence over time on the page: what a monitor says of the same rounds."""

from __future__ import annotations

import numpy as np
import pytest

import truecast as tc
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
    assert abs(found.since - day) < 7 * 86_400
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
