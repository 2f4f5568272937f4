"""The solved game at its public edge, and the forecaster that plays it."""

from __future__ import annotations

import dataclasses
import json
import signal
import zlib
from fractions import Fraction
from itertools import pairwise
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import truecast as tc
from truecast.arena._core import bound_game, solve_game
from truecast.arena.adversaries import Adversary, Coins, Constant, EarlyStop, Periodic, Threshold
from truecast.arena.forecasters.minimax import Minimax
from truecast.arena.game import play
from truecast.arena.minimax import farey, minimax_value, solve
from truecast.errors import InputError, StateError
from truecast.testing import check_forecaster


def test_farey_fractions():
    assert farey(3) == (0, Fraction(1, 3), Fraction(1, 2), Fraction(2, 3), 1)
    assert [len(farey(order)) for order in range(1, 9)] == [2, 3, 5, 7, 11, 13, 19, 23]


@pytest.mark.parametrize(("rounds", "gap"), [(1, 3e-12), (2, 3e-12), (3, 3e-12), (4, 6e-4)])
def test_bounds_of_the_value_are_close(rounds, gap):
    value = minimax_value(rounds)
    seen = minimax_value(rounds, deterministic=True)
    assert value.lower <= value.upper <= value.lower + gap
    assert seen.lower <= seen.upper <= seen.lower + 3e-12
    assert value.upper <= seen.upper + 1e-14
    assert dataclasses.replace(value, rounds=1) != dataclasses.replace(value, rounds=2)


@pytest.mark.slow("solves the game of five rounds")
def test_five_rounds():
    value = minimax_value(5)
    assert 0.8 < value.lower < value.upper < 0.81


def test_bounds_hold_whatever_the_points_and_ends():
    """All intervals of one game have the value in common."""
    choices = [
        {"points": (0, 1)},
        {"points": farey(2)},
        {"points": farey(3), "ends": (0, 1)},
        {"points": farey(5), "ends": farey(2)},
        {"points": [Fraction(k, 7) for k in range(8)]},
    ]
    for deterministic in (False, True):
        found = [minimax_value(3, deterministic=deterministic, **choice) for choice in choices]
        assert (
            max(value.lower for value in found)
            <= 2 / 3 + 1e-12
            <= min(value.upper for value in found) + 3e-12
        )
        assert all(value.lower >= 0 for value in found)


def test_without_farey_fractions_only_rounding_bounds_the_value():
    points = [Fraction(k, 20) for k in range(21)]
    value = minimax_value(3, points=points)
    assert value.upper - value.lower == pytest.approx(3 / 40, abs=1e-11)
    points = sorted({*points, *farey(3)})
    gap = max(b - a for a, b in pairwise(points))
    assert (
        minimax_value(3, points=points, ends=(0, 1)).lower
        >= solve(3, tuple(points)).value() - gap - 1e-11
    )


@pytest.mark.parametrize(
    "wrong",
    [
        {"rounds": 0},
        {"rounds": 13},
        {"rounds": 2.0},
        {"rounds": 8},
        {"rounds": 3, "deterministic": 1},
        {"rounds": 3, "points": [0]},
        {"rounds": 3, "points": [0, 0.5]},
        {"rounds": 3, "points": [0, 0.6, 0.5, 1]},
        {"rounds": 3, "points": [0, "x", 1]},
        {"rounds": 3, "points": [0, float("nan"), 1]},
        {"rounds": 3, "points": [0, 1e-15, 1]},
        {"rounds": 3, "points": [0, "1/0", 1]},
        {"rounds": 1, "points": [Fraction(k, 1024) for k in range(1025)]},
        {"rounds": 3, "points": farey(3), "ends": [0, Fraction(1, 4), 1]},
        {"rounds": 12, "points": farey(12)},
    ],
)
def test_wrong_arguments_are_refused(wrong):
    with pytest.raises(InputError):
        minimax_value(**wrong)


def test_as_many_points_as_are_allowed():
    value = minimax_value(1, points=[Fraction(k, 1023) for k in range(1024)])
    assert value.lower <= 0.5 <= value.upper


def test_ctrl_c_is_heard_while_the_game_is_solved():
    class Heard(Exception):
        pass

    def hear(*_):
        raise Heard

    def soon_heard(long):
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        long()

    # some seconds of work; the start of the game comes last
    points, solved = np.arange(13), np.zeros(comb(26 + 7, 7))
    values, chances = np.full(len(solved), np.nan), np.full(comb(2 + 6, 6), np.nan)
    work = (
        lambda: solve_game(points * 35, 420, 7, False, values),
        lambda: bound_game(points * 35, 420, 7, False, solved, np.array([0, 13]), points, chances),
    )
    before = signal.signal(signal.SIGALRM, hear)
    try:
        for long in work:
            with pytest.raises(Heard):
                soon_heard(long)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert np.isnan(values[0])
    assert np.isnan(chances[0])


def test_kernels_refuse_what_does_not_fit():
    points, first, said = (np.array(x, np.int64) for x in ([0, 1, 2], [0, 2, 4], [0, 1, 1, 2]))
    values, chances = np.empty(28), np.empty(5)  # C(6 + 2, 2) states, C(4 + 1, 1) sights
    solve_game(points, 2, 2, False, values)
    assert bound_game(points, 2, 2, False, values, first, said, chances) == 0.5
    for wrong in (
        lambda: solve_game(points, 2, 2, False, np.empty(27)),
        lambda: solve_game(points, 2, 3, False, np.empty(84)),  # thirds are not halves
        lambda: solve_game(points, 2, 17, False, values),
        lambda: solve_game(points[::-1].copy(), 2, 2, False, values),
        lambda: solve_game(points * 2, 2, 2, False, values),
        lambda: bound_game(points, 2, 2, True, values, first, said, chances),
        lambda: bound_game(points, 2, 2, False, values, first, said + 1, chances),
        lambda: bound_game(points, 2, 2, False, values, first[:2], said, chances),
        lambda: bound_game(points, 2, 2, False, values, np.array([0, 0, 4]), said, chances),
        lambda: bound_game(points, 2, 2, False, np.empty(27), first, said, chances),
    ):
        with pytest.raises(ValueError):
            wrong()


SOLUTIONS = [
    solve(3, farey(3)),
    solve(4, farey(4)),
    solve(3, tuple(Fraction(k, 7) for k in range(8))),
]


@given(st.sampled_from(SOLUTIONS), st.data())
def test_mixtures_keep_to_the_value(solution, data):
    """In any state, whatever comes, the expectation does not rise."""
    kinds = st.integers(0, 2 * len(solution.points) - 1)
    items = data.draw(st.lists(kinds, max_size=solution.rounds - 1))
    mixture = solution.mixture(items)
    number = {float(point): i for i, point in enumerate(solution.points)}
    assert 1 <= len(mixture) <= 2
    assert sum(w for _, w in mixture) == pytest.approx(1, abs=1e-15)
    after = [
        sum(w * solution.value([*items, 2 * number[p] + y]) for p, w in mixture) for y in (0, 1)
    ]
    assert max(after) == pytest.approx(solution.value(items), abs=1e-13)


def test_solution_of_the_game_that_is_seen_says_one_point():
    solution = solve(3, farey(6), deterministic=True)
    ((p, weight),) = solution.mixture()
    assert weight == 1
    i = solution.points.index(Fraction(p).limit_denominator(6))
    assert (
        max(solution.value([2 * i + y]) for y in (0, 1)) == solution.value() == pytest.approx(2 / 3)
    )


@pytest.mark.slow("plays thousands of rounds one by one")
@pytest.mark.parametrize("horizon", [1, 3, 5])
def test_minimax_keeps_the_contract(horizon):
    check_forecaster(lambda: Minimax(horizon=horizon, seed=7))


def test_minimax_repeats_itself_with_a_seed_only():
    y = np.arange(200) % 3 == 0
    said = [Minimax(horizon=4, seed=seed).forecast_many(y).tolist() for seed in (1, 1, 2)]
    assert said[0] == said[1] != said[2]


def test_minimax_starts_anew_after_each_game():
    forecaster = Minimax(horizon=3)
    first = forecaster.distribution
    forecaster.forecast_many([1, 1, 1])
    assert forecaster.distribution == first
    assert forecaster.state()["game"] == [-1, -1, -1]


@pytest.mark.parametrize("horizon", [0, 9, 2.5, None])
def test_minimax_refuses_horizons(horizon):
    with pytest.raises(InputError):
        Minimax(horizon=horizon)


@pytest.mark.parametrize(
    "game", [[-1, -1, -1], [10, -1, -1], [-2, -1, -1], [3, 2, -1], [3, -1], [1.0, -1, -1]]
)
def test_minimax_refuses_states_that_are_no_game(game):
    forecaster = Minimax(horizon=3)
    forecaster.forecast_many([0])
    saved = json.loads(forecaster.to_json())
    saved["state"]["game"] = game
    del saved["crc32"]
    saved["crc32"] = zlib.crc32(json.dumps(saved, sort_keys=True, separators=(",", ":")).encode())
    with pytest.raises(StateError):
        Minimax.from_json(json.dumps(saved))


def test_bound_of_many_rounds_is_that_of_the_games_and_the_rest():
    forecaster = Minimax(horizon=4)
    assert forecaster.bounds == "distance"
    assert forecaster.a_priori(0) == 0
    assert forecaster.a_priori(4) == forecaster.solution.value() == pytest.approx(47 / 64)
    assert forecaster.a_priori(14) == pytest.approx(3 * 47 / 64 + forecaster.a_priori(2))
    assert 0.5 == forecaster.a_priori(1) < forecaster.a_priori(2) <= 2


class Best(Adversary):
    """Takes the outcome that costs more by the solution."""

    sees = "distribution"

    def __init__(self, solution):
        self._solution = solution

    def outcomes(self, game):
        while True:
            items = present(self._solution, game.said, game.outcomes)
            zero, one = (expected(self._solution, items, game.distribution, y) for y in (0, 1))
            yield int(one > zero)


def present(solution, said, outcomes):
    """The items of the game that goes on."""
    start = len(said) - len(said) % solution.rounds
    points = list(map(float, solution.points))
    return [2 * points.index(p) + y for p, y in zip(said[start:], outcomes[start:], strict=True)]


def expected(solution, items, distribution, y):
    points = list(map(float, solution.points))
    return sum(w * solution.value([*items, 2 * points.index(p) + y]) for p, w in distribution)


ADVERSARIES = [
    Coins(),
    Coins(0.2),
    Constant(1),
    Periodic(),
    EarlyStop(),
    Threshold("distribution"),
    None,
]


@pytest.mark.alike("follows 28 games")
@pytest.mark.parametrize("horizon", [2, 3, 4, 5])
@pytest.mark.parametrize("adversary", ADVERSARIES)
def test_what_is_to_be_expected_never_rises(horizon, adversary):
    """The potential of the proof, round by round: the value of the state, which ends as the
    distance of the game."""
    forecaster = Minimax(horizon=horizon, seed=3)
    solution = forecaster.solution
    rounds = 12 * horizon
    game = play(forecaster, adversary or Best(solution), rounds, seed=4)
    again, p, y = Minimax(horizon=horizon, seed=3), game.p.tolist(), game.y.tolist()
    total = 0.0
    for t in range(rounds):
        items = present(solution, p[:t], y[:t])
        assert expected(solution, items, again.distribution, y[t]) <= solution.value(items) + 1e-13
        assert again.predict() == p[t]
        again.observe(y[t])
        if (t + 1) % horizon == 0:
            part = slice(t + 1 - horizon, t + 1)
            distance = tc.calibration_distance(y[part], p[part], total=True).upper
            assert solution.value(
                [*items, 2 * solution.points.index(Fraction(p[t]).limit_denominator(9)) + y[t]]
            ) == (pytest.approx(distance, abs=1e-13))
            total += distance
    assert game.distance().totals[1] <= total + 1e-12
