"""Forecasts at roots: the guarantees of KakadeFoster and Defensive, and each step of their
proofs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import truecast as tc
from everybody import everybody
from truecast import testing
from truecast.arena.adversaries import Adversary
from truecast.arena.forecasters.defensive import Defensive
from truecast.arena.forecasters.kakade_foster import KakadeFoster
from truecast.arena.game import Round, play

BOTH = (KakadeFoster, Defensive)
OUTCOMES = st.lists(st.integers(0, 1), min_size=1, max_size=60) | st.integers(1, 60).map(
    lambda n: [1] * n
)
TINY = 1e-9  # for what the tests themselves compute in doubles


class GreedySmooth(Adversary):
    """Takes the outcome after which the smooth calibration error is larger; slow."""

    sees = "forecast"

    def outcomes(self, game: Round) -> Iterator[int]:
        while True:
            p = [*game.said, game.forecast]
            zero, one = (
                tc.smooth_calibration_error([*game.outcomes, y], p, total=True) for y in (0, 1)
            )
            yield int(one >= zero)


def weights(p: float, m: int) -> np.ndarray:
    """The weights of the grid points in p: tents."""
    return np.maximum(1 - np.abs(m * p - np.arange(m + 1)), 0)


def matrix(kind: type, m: int) -> np.ndarray:
    """The kernel on the grid."""
    points = np.arange(m + 1) / m
    return (
        np.eye(m + 1) if kind is KakadeFoster else np.exp(-np.abs(points[:, np.newaxis] - points))
    )


def smooth(y: Any, p: Any) -> float:
    return tc.smooth_calibration_error(y, p, total=True)


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize(
    "options", [{"horizon": 500}, {"grid": 1}, {"grid": 3}, {"grid": 30}, {"grid": 100}], ids=str
)
def test_smooth_error_is_within_the_bound_against_all_adversaries(
    kind: Any, options: dict[str, int]
) -> None:
    tried = 0
    for adversary in everybody():
        f = kind(**options)
        if not adversary.plays(f):
            continue
        game = play(f, adversary, 500, seed=tried)
        for t in (1, 2, 3, 5, 8, 13, 50, 200, 500):
            assert smooth(game.y[:t], game.p[:t]) <= f.a_priori(t) + TINY, (adversary, t)
        tried += 1
    assert tried >= 15


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("grid", [1, 4, 12])
def test_smooth_error_is_within_the_bound_against_greed_on_itself(kind: Any, grid: int) -> None:
    f = kind(grid=grid)
    game = play(f, GreedySmooth(), 150)
    assert smooth(game.y, game.p) <= f.a_priori(150) + TINY


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("grid", [1, 2, 5])
def test_smooth_error_is_within_the_bound_for_all_short_outcomes(kind: Any, grid: int) -> None:
    rounds = 8
    for y in itertools.product((0, 1), repeat=rounds):
        f = kind(grid=grid)
        assert smooth(y, f.forecast_many(y)) <= f.a_priori(rounds) + TINY


@pytest.mark.parametrize("kind", BOTH)
@given(y=OUTCOMES, m=st.integers(1, 40))
def test_forecasts_are_roots_of_the_weighted_errors(kind: Any, y: list[int], m: int) -> None:
    """S, from its definition, is 0 at the forecast, or points beyond the end that the forecast is
    at."""
    f, r, kernel = kind(grid=m), np.zeros(m + 1), matrix(kind, m)
    for outcome in y:
        p = f.predict()
        s = weights(p, m) @ kernel @ r
        if p == 0:
            assert s <= 1e-12
        elif p == 1:
            assert s >= -1e-12
        else:
            assert abs(s) <= 1e-12
        r += (outcome - p) * weights(p, m)
        f.observe(outcome)
        assert f.state()["sums"] == pytest.approx((kernel @ r).tolist(), abs=1e-12)


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("m", [1, 8, 60])
def test_energy_grows_by_at_most_the_squared_error(kind: Any, m: int) -> None:
    """Step (1) of the proofs, round by round, against all adversaries."""
    kernel = matrix(kind, m)
    for adversary in everybody():
        f = kind(grid=m)
        if not adversary.plays(f):
            continue
        game = play(f, adversary, 200)
        r, energy = np.zeros(m + 1), 0.0
        for p, y in zip(game.p.tolist(), game.y.tolist(), strict=True):
            w = weights(p, m)
            r += (y - p) * w
            before, energy = energy, r @ kernel @ r
            assert energy - before <= (y - p) ** 2 * (w @ kernel @ w) + TINY
            assert w @ kernel @ w <= 1 + TINY


def test_energy_in_exact_numbers_is_within_what_rounding_is_allowed() -> None:
    """The energy exceeds V by the 32 u T**1.5 (T + m) of the bound at most: for all rounds, in
    fractions."""
    m, rng = 13, np.random.default_rng(3)
    f = KakadeFoster(grid=m)
    r, squares = [Fraction(0)] * (m + 1), Fraction(0)
    for t, y in enumerate((rng.random(1500) < np.repeat([0.5, 0.03, 0.9], 500)).tolist(), start=1):
        p = Fraction(f.predict())
        cell = min(math.floor(p * m), m - 1)
        weight = p * m - cell
        r[cell] += (1 - weight) * (y - p)
        r[cell + 1] += weight * (y - p)
        squares += (y - p) ** 2 * (weight**2 + (1 - weight) ** 2)
        f.observe(y)
        if t % 100 == 0 or t < 20:
            assert sum(x * x for x in r) <= squares + Fraction(32 * t**1.5 * (t + m)) / 2**53


@pytest.mark.parametrize("kind", BOTH)
@given(y=OUTCOMES, m=st.integers(1, 40))
def test_squared_errors_are_near_a_quarter(kind: Any, y: list[int], m: int) -> None:
    """Step (4) of the proofs: V <= T/4 + g sqrt(V)."""
    p = kind(grid=m).forecast_many(y)
    v = np.sum((np.array(y) - p) ** 2)
    g = math.sqrt(np.sum((1 - 2 * np.arange(m + 1) / m) ** 2) if kind is KakadeFoster else 19 / 6)
    assert v <= len(y) / 4 + g * math.sqrt(v) + TINY


@st.composite
def smooth_functions(draw: Any) -> np.ndarray:
    """Values on a grid of a function in [-1, 1] with slopes of at most 1; often a zigzag near 1,
    which is worst."""
    m = draw(st.integers(1, 60))
    slopes = st.sampled_from([-1.0, 1.0]) | st.floats(-1, 1)
    steps = draw(
        st.lists(slopes, min_size=m, max_size=m) | st.just([(-1.0) ** k for k in range(m)])
    )
    values = np.concatenate([[0.0], np.cumsum(steps) / m])
    top = draw(st.sampled_from([1.0 - values.max(), -1.0 - values.min(), 0.0]))
    return np.clip(values + top, -1, 1)


@given(values=smooth_functions())
def test_norm_of_a_smooth_function_is_at_most_the_root_of_two(values: np.ndarray) -> None:
    """Step (2) for Defensive, and the norm by its formula: of the linear interpolation, which
    cannot be below."""
    m = len(values) - 1
    a, b = values[:-1], values[1:]
    integral = np.sum((a * a + a * b + b * b) / (3 * m) + m * (b - a) ** 2)
    formula = (values[0] ** 2 + values[-1] ** 2 + integral) / 2
    assert values @ np.linalg.solve(matrix(Defensive, m), values) <= formula + TINY
    assert formula <= 2 + TINY


def test_the_root_of_two_is_needed_and_the_norm_of_the_slope_is_right() -> None:
    m = 400
    zigzag = 1 - (np.arange(m + 1) % 2) / m
    assert zigzag @ np.linalg.solve(matrix(Defensive, m), zigzag) > 1.99
    line = 1 - 2 * np.arange(m + 1) / m
    assert line @ np.linalg.solve(matrix(Defensive, m), line) == pytest.approx(19 / 6, abs=1e-4)


@given(values=smooth_functions(), places=st.lists(st.floats(0, 1), min_size=1, max_size=10))
def test_interpolation_is_off_by_twice_the_product_of_the_weights(
    values: np.ndarray, places: list[float]
) -> None:
    """Step (2) for KakadeFoster: the highest 1-Lipschitz function through values on the grid is
    2u/m above at most."""
    m = len(values) - 1
    points = np.arange(m + 1) / m
    for p in places:
        highest = np.min(values + np.abs(p - points))
        w = weights(p, m)
        assert highest - w @ values <= (1 - w @ w) / m + TINY


def test_bounds_by_hand() -> None:
    f = KakadeFoster(grid=2)
    root = (math.sqrt(2) + math.sqrt(102)) / 2
    assert f.a_priori(100) == pytest.approx(root * math.sqrt(3 + 100 / 8), rel=1e-9)
    f = Defensive(grid=10)
    root = (math.sqrt(19 / 6) + math.sqrt(400 + 19 / 6)) / 2
    assert f.a_priori(400) == pytest.approx(root * (math.sqrt(2) + 1), rel=1e-9)


@pytest.mark.parametrize("kind", BOTH)
def test_bounds_are_never_above_the_trivial_one_and_claim_nothing_beyond_doubles(kind: Any) -> None:
    f = kind(grid=7)
    assert f.bounds == "smooth"
    assert f.a_priori(0) == 0
    for t in (1, 2, 10, 10**4, 10**8, 10**10, 2**53):
        assert 0 < f.a_priori(t) <= t
    assert f.a_priori(10**10) == 10**10
    assert [f.a_priori(t) for t in range(60)] == sorted(f.a_priori(t) for t in range(60))


@pytest.mark.parametrize("rounds", [1, 2, 10, 500, 10**4, 10**6, 10**8])
def test_horizon_chooses_a_grid_with_the_bounds_that_are_stated(rounds: int) -> None:
    root, cube = math.sqrt(rounds), math.cbrt(rounds)
    rounding = 1 + rounds * 1e-10  # below 1 % up to 10**8
    f = KakadeFoster(horizon=rounds)
    m = f.grid
    assert abs(m - min(range(1, 2 * m + 10), key=lambda k: k + 1 + rounds / (2 * k * k))) <= 1
    # without steps (3) and (4)
    assert f.a_priori(rounds) <= math.sqrt((m + 1) * rounds) + rounds / (2 * m)
    assert f.a_priori(rounds) <= (0.613 * cube**2 + 0.6 * cube + 1) * rounding
    d = Defensive(horizon=rounds)
    assert d.grid >= 2 * root
    assert d.a_priori(rounds) <= (0.833 * root + 1.5 + 1.4 / root) * rounding


@given(y=OUTCOMES, m=st.integers(1, 20))
def test_defensive_forecasting_with_the_identity_is_kakade_and_foster(y: list[int], m: int) -> None:
    f = Defensive(grid=m)
    f._falling = np.eye(m + 1)[0]
    f._rising = np.eye(m + 1)[m]
    assert f.forecast_many(y).tolist() == KakadeFoster(grid=m).forecast_many(y).tolist()


def test_first_forecasts_by_hand() -> None:
    """0 while S(0) <= 0; then 1 while S(1) >= 0; then the lowest root that halving finds."""
    assert KakadeFoster(grid=4).forecast_many([1, 1, 0, 0]).tolist() == [0, 1, 1, 0.25]
    assert KakadeFoster(grid=4).forecast_many([0, 0, 1, 0, 1]).tolist() == [0, 0, 0, 1, 0.25]
    e = math.exp(-1)
    said = Defensive(grid=1).forecast_many([1, 0, 1, 1])
    assert said[:3].tolist() == [0, 1, 0.5]  # S = 1 - e at 0 and e - 1 at 1
    assert said[3] == pytest.approx((1 - e + (1 + e) / 4) / (2 * (1 - e)))


def test_contradiction_makes_the_error_by_value_half_of_the_rounds() -> None:
    for f in (KakadeFoster(horizon=1000), Defensive(horizon=1000)):
        game = play(f, tc.arena.Threshold(), 1000)
        assert 1000 * tc.calibration_error_by_value(game.y, game.p) > 450
        assert smooth(game.y, game.p) < 10


@pytest.mark.slow("plays thousands of rounds one by one")
@pytest.mark.parametrize("kind", BOTH)
def test_contract(kind: Any) -> None:
    testing.check_forecaster(lambda: kind(horizon=100))
    testing.check_forecaster(
        lambda: kind(grid=1), checks=[c for c in testing.CHECKS if c != testing.check_memory]
    )


@pytest.mark.parametrize("kind", BOTH)
def test_options(kind: Any) -> None:
    f = kind(horizon=50, grid=6)
    assert (f.horizon, f.grid, f.config) == (50, 6, {"horizon": 50, "grid": 6})
    assert repr(kind(grid=6)) == f"{kind.__name__}(grid=6)"
    for wrong in (
        {},
        {"horizon": 0},
        {"grid": 0},
        {"grid": 2.0},
        {"grid": 2**21},
        {"horizon": "9"},
    ):
        with pytest.raises(tc.InputError):
            kind(**wrong)
    with pytest.raises(tc.StateError):
        f.load(kind(grid=5).state())


def test_no_horizon_chooses_a_larger_grid_than_may_be_given() -> None:
    largest = Defensive(horizon=1 << 47).grid
    assert largest == 1 << 20
    with pytest.raises(tc.InputError, match="grid"):
        Defensive(grid=largest + 1)
