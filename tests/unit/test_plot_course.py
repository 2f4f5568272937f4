"""The course of a certificate, and the state of a ladder: against the forecasters themselves."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import truecast as tc
from truecast import arena, plot
from truecast.errors import InputError

BITS = st.lists(st.integers(0, 1), min_size=1, max_size=60)
PLAYERS = [
    lambda: tc.AlmostOneStepAhead(horizon=40),
    lambda: tc.AlmostOneStepAhead(grid=5, at="middle", cell="lowest"),
    lambda: tc.BentGrid(horizon=40),
    lambda: tc.HorizonFree(),
    lambda: tc.Arc(),
    lambda: tc.Guard(budget=1.5),
    lambda: tc.Recalibrator(),
]


def played(
    make: object, y: list[int], scores: list[float], looked: list[int]
) -> tuple[list[float], list[object]]:
    """Play round by round; return the forecasts, and the certificate after each of some rounds."""
    player, said, seen = make(), [], []
    for t, (outcome, score) in enumerate(zip(y, scores, strict=True), 1):
        said.append(
            player.predict(score)
            if isinstance(player, tc.Guard | tc.Recalibrator)
            else player.predict()
        )
        player.observe(outcome)
        if t in looked:
            seen.append(player.certificate)
    return said, seen


@settings(max_examples=40)
@given(st.sampled_from(PLAYERS), BITS, st.integers(2, 12), st.data())
def test_a_course_is_that_of_the_loop(
    make: object, y: list[int], points: int, data: st.DataObject
) -> None:
    scores = data.draw(st.lists(st.floats(0, 1), min_size=len(y), max_size=len(y)))
    distances = data.draw(st.integers(1, 15))
    follows = isinstance(make(), tc.Guard | tc.Recalibrator)
    # short games must be certified, however busy the machine is
    limit = 60.0 if len(y) <= 20 else 0.3
    options = {"points": points, "distances": distances, "time_limit": limit}
    course = plot.certificate_course(make(), y, scores=scores if follows else None, **options)
    said, seen = played(make, y, scores, course.rounds.tolist())
    assert course.certificate.tolist() == [certificate.bound for certificate in seen]
    assert course.brier == seen[-1].brier
    assert (course.rounds[0], course.rounds[-1], course.measured[-1]) == (1, len(y), len(y))
    assert 1 <= len(course.rounds) <= points
    assert set(course.measured) <= set(course.rounds)
    assert len(course.measured) == min(distances, len(course.rounds))
    assert (course.a_priori >= course.certificate).all()
    assert np.array_equal(course.paper, 2 * np.sqrt(course.rounds) + 1)
    for t, lower, upper in zip(course.measured, course.lower, course.upper, strict=True):
        exact = tc.calibration_distance(y[:t], said[:t], total=True, time_limit=0.5)
        assert lower <= exact.upper + 1e-9
        assert upper >= exact.lower - 1e-9
        assert lower <= course.certificate[course.rounds.tolist().index(t)] + 1e-9
        # as close as was asked for, if there was time
        assert upper <= lower / (1 - 0.01) + 1e-9 or len(y) > 20


def test_what_was_proved_before_is_for_the_rounds_so_far() -> None:
    y = np.random.default_rng(0).integers(0, 2, 500)
    f = tc.AlmostOneStepAhead(horizon=1000)
    course = plot.certificate_course(f, y, points=9, distances=1)
    assert course.a_priori == pytest.approx([float(f.a_priori(int(t))) for t in course.rounds])
    assert all(
        Fraction(bound) >= f.a_priori(int(t))
        for bound, t in zip(course.a_priori, course.rounds, strict=True)
    )
    assert course.a_priori[0] < course.a_priori[-1] < f.certificate.a_priori
    assert (course.name, course.measured.tolist()) == (repr(f), [500])


@pytest.mark.parametrize("make", [tc.Guard, tc.Recalibrator])
@pytest.mark.parametrize("budget", [1.5, 4.0])
def test_what_was_proved_before_is_the_budget_where_hints_are_followed(
    make: Any, budget: float
) -> None:
    rng = np.random.default_rng(0)
    y, scores = rng.integers(0, 2, 3000), rng.random(3000)
    course = plot.certificate_course(
        make(budget=budget), y, scores=scores, points=9, distances=1, time_limit=0.1
    )
    assert course.a_priori.tolist() == [
        tc.Guard(budget=budget).a_priori(int(t)) for t in course.rounds
    ]
    assert (course.certificate <= course.a_priori).all()
    assert course.certificate[-1] < course.a_priori[-1] < 3000


def test_a_forecaster_that_has_played_is_played_anew_and_left_alone() -> None:
    y = np.random.default_rng(0).integers(0, 2, 100)
    for make in (tc.HorizonFree, tc.Arc):
        f = make()
        f.forecast_many(y)
        before = f.to_json()
        course = plot.certificate_course(f, y, points=5, distances=2)
        assert f.to_json() == before
        assert course.certificate[-1] == f.certificate.bound
        assert np.array_equal(
            course.certificate, plot.certificate_course(make(), y, points=5).certificate
        )


def test_the_course_of_an_arc_is_drawn() -> None:
    pytest.importorskip("matplotlib")
    y = np.random.default_rng(0).integers(0, 2, 300)
    figure = plot.certificate_course(tc.Arc(), y, points=12, distances=3).draw()
    labels = figure.axes[0].get_legend_handles_labels()[1]
    assert {"certificate", "distance to calibration"} <= set(labels)
    assert figure.axes[0].get_title().startswith("Arc()")


LADDERS = [
    lambda: tc.AlmostOneStepAhead(grid=7),
    lambda: tc.AlmostOneStepAhead(grid=4, cell="highest"),
    lambda: tc.BentGrid(horizon=50),
    lambda: tc.HorizonFree(split=0.0625),
]


@settings(max_examples=80)
@given(st.sampled_from(LADDERS), BITS)
def test_a_ladder_is_shown_as_it_is(make: object, y: list[int]) -> None:
    f = make()
    f.forecast_many(y)
    state = plot.ladder_state(f)
    assert state.points.tolist() == [point / f.denominator for point in f.points.tolist()]
    assert state.biases.tolist() == [bias / f.denominator for bias in f.biases.tolist()]
    assert np.flatnonzero(state.open_cells).tolist() == [f.open_cell]
    assert (state.rounds, state.name) == (len(y), repr(f))
    assert state.bias == pytest.approx(abs(state.biases).sum())
    assert (state.pooled, state.deviation) == pytest.approx(
        (float(f.bias_sums[1]), float(f.deviation))
    )
    assert_allowed(state)
    # never above 0 left of the cell
    for k, (low, high) in enumerate(zip(state.low, state.high, strict=True)):
        assert (high == 0) if k <= f.open_cell else (low == 0)


def assert_allowed(state: plot.LadderState) -> None:
    assert (state.low - 1e-12 <= state.biases).all()
    assert (state.biases <= state.high + 1e-12).all()
    for side in (state.low, state.high):
        assert (side[0], side[-1]) == (0, 0)


def test_the_ladder_of_one_step_ahead() -> None:
    osa = tc.OneStepAhead(grid=6)
    osa.forecast_many([1, 0, 0, 1, 1, 0, 0])
    state = plot.ladder_state(osa)
    assert state.name == "OneStepAhead(grid=6)"
    assert state.bias == pytest.approx(float(osa.calibration_error))
    at = int(np.flatnonzero(state.open_cells)[0])
    assert (state.points[at], state.points[at + 1]) == osa.pair
    assert_allowed(state)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: plot.certificate_course(tc.HorizonFree(), []), "outcomes"),
        (lambda: plot.certificate_course(tc.HorizonFree(), [0, 2]), "outcomes"),
        (lambda: plot.certificate_course(tc.HorizonFree(), [0, 1], scores=[0.5, 0.5]), "scores"),
        (lambda: plot.certificate_course(tc.Guard(), [0, 1]), "scores"),
        (lambda: plot.certificate_course(tc.Guard(), [0, 1], scores=[0.5, 1.5]), "scores"),
        (lambda: plot.certificate_course(tc.Recalibrator(), [0, 1], scores=[0.5]), "scores"),
        (lambda: plot.certificate_course(tc.OneStepAhead(grid=4), [0, 1]), "forecaster"),
        (lambda: plot.certificate_course(arena.Climatology(), [0, 1]), "forecaster"),
        (lambda: plot.certificate_course("aosa", [0, 1]), "forecaster"),
        (lambda: plot.certificate_course(tc.HorizonFree(), [0, 1], points=1), "points"),
        (lambda: plot.certificate_course(tc.HorizonFree(), [0, 1], distances=0), "distances"),
        (lambda: plot.certificate_course(tc.HorizonFree(), [0, 1], time_limit=0), "time_limit"),
        (lambda: plot.certificate_course(tc.HorizonFree(), [0, 1], rtol=2), "rtol"),
        (lambda: plot.ladder_state(tc.Recalibrator()), "forecaster"),
        (lambda: plot.ladder_state(tc.Guard()), "forecaster"),
        (lambda: plot.ladder_state(None), "forecaster"),
    ],
)
def test_nonsense_is_refused_by_name(call: object, argument: str) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.argument == argument
