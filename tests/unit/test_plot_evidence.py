"""The course of evidence: against the monitor itself, and how it is drawn."""

from __future__ import annotations

import numpy as np
import pytest

import truecast as tc
from truecast import plot
from truecast.errors import InputError

RNG = np.random.default_rng(4)
P = RNG.uniform(0.1, 0.9, 3_000)
Y = (RNG.random(3_000) < np.where(np.arange(3_000) < 1_500, P, P - 0.1)).astype(int)


@pytest.mark.parametrize("options", [{"alpha": 0.05}, {"mean_time": 500}])
def test_a_course_is_that_of_the_loop(options: dict[str, float]) -> None:
    course = plot.evidence_course(Y, P, points=300, **options)
    m = tc.Monitor(**options)
    seen, alarms = [], []
    for p, y in zip(P.tolist(), Y.tolist(), strict=True):
        before = m.alarms
        m.update(p, y)
        seen.append(m.alarm.evidence if m.alarms > before else m.evidence)
        if m.alarms > before:
            alarms.append(m.alarm.round)
    assert course.high.max() == max(seen)
    assert course.low.min() == min(seen)
    assert {each.round for each in course.alarms} <= set(alarms)
    assert course.alarms[-1].round == alarms[-1]
    assert course.finding == m.finding
    assert course.brier == pytest.approx(np.mean((P - Y) ** 2))


@pytest.mark.slow("draws pictures")
def test_it_is_drawn_with_times_and_without() -> None:
    days = np.datetime64("2025-01-01") + np.arange(3_000) // 100
    course = plot.evidence_course(Y, P, times=days)
    figure = course.draw()
    (axes,) = figure.axes
    assert axes.get_yscale() == "log"
    assert "too high" in axes.get_title()
    assert "2025-01-" in axes.get_title()
    right = plot.evidence_course(Y[:1_000], P[:1_000])
    assert right.said is None
    assert "no alarm" in right.draw().axes[0].get_title()


def test_bad_input_is_refused() -> None:
    for options in ({"times": [1, 2]}, {"times": np.arange(3_000)[::-1]}, {"points": 1}):
        with pytest.raises(InputError):
            plot.evidence_course(Y, P, **options)
    with pytest.raises(InputError):
        plot.evidence_course([], [])
