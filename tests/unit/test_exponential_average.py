"""The exponential average: each step of theorem 9 of docs/theory.md, in fractions, and its bounds
in games."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import truecast as tc
from everybody import everybody
from rounds import random_tallies
from truecast import testing
from truecast.arena import ExponentialAverage, play

HALF = Fraction(1, 2)
TINY = 1e-9  # for what the tests themselves compute in doubles
HORIZONS = [None, 1, 12, 500]
SHARES = st.fractions(0, 1, max_denominator=60)
#: any outcomes in [0, 1], and often runs of the ends, which are the worst
REAL_OUTCOMES = st.lists(
    SHARES | st.sampled_from([Fraction(0), Fraction(1)]), min_size=1, max_size=25
)


def averages(y: Sequence[Fraction], speeds: Sequence[Fraction]) -> list[Fraction]:
    """The rule in fractions: all forecasts, and the one after them."""
    p = [HALF]
    for outcome, m in zip(y, speeds, strict=True):
        p.append(p[-1] + (outcome - p[-1]) / m)
    return p


def smooth(y: Any, p: Any) -> float:
    return tc.smooth_calibration_error(y, p, total=True)


def smooth_bound(rounds: int, horizon: int | None) -> float:
    """Theorem 9 (b) and (c) for the smooth error."""
    if horizon is None:
        return 1.5 * math.sqrt(rounds / 2)
    m = 1 + math.sqrt(horizon / 2)
    return m / 2 + rounds / (8 * (m - 1))


def check(f: ExponentialAverage, y: Any, p: Any, *, lower: bool = True) -> None:
    assert smooth(y, p) <= smooth_bound(len(y), f.horizon) + TINY
    if lower:
        found = tc.lower_calibration_distance(y, p, total=True).lower
        assert found <= f.a_priori(len(y)) + TINY


class Line:
    """A function with these slopes between knots k/n, cut off at -1 and 1; its integral from 1/2,
    exactly."""

    def __init__(self, start: Fraction, slopes: Sequence[Fraction]) -> None:
        n = len(slopes)
        knots = [(Fraction(0), start)]
        for k, slope in enumerate(slopes):
            x, value = knots[-1]
            aim = value + slope / n
            end = max(Fraction(-1), min(Fraction(1), aim))
            if end != aim:  # where it reaches the limit
                knots.append((x + (end - value) / slope, end))
            knots.append((Fraction(k + 1, n), end))
        self.knots = knots

    def __call__(self, x: Fraction) -> Fraction:
        for (a, low), (b, high) in itertools.pairwise(self.knots):
            if a <= x <= b:
                return low + (high - low) * (x - a) / (b - a) if b > a else high
        raise AssertionError(x)

    def integral(self, x: Fraction) -> Fraction:
        return self._from_0(x) - self._from_0(HALF)

    def _from_0(self, x: Fraction) -> Fraction:
        total = Fraction(0)
        for (a, low), (b, _) in itertools.pairwise(self.knots):
            if a < x:
                end = min(b, x)
                total += (end - a) * (low + self(end)) / 2
        return total


@st.composite
def lines(draw: Any) -> tuple[int, Line]:
    """A Lipschitz constant of 1 or 2, and a function into [-1, 1] that has it."""
    steep = draw(st.sampled_from([1, 2]))
    slopes = st.sampled_from([-steep, steep]).map(Fraction) | st.fractions(
        -steep, steep, max_denominator=9
    )
    return steep, Line(
        draw(st.fractions(-1, 1, max_denominator=9)), draw(st.lists(slopes, min_size=1, max_size=7))
    )


@pytest.mark.slow("computes in fractions")
@given(y=REAL_OUTCOMES, m=st.fractions(Fraction(11, 10), 9, max_denominator=10), line=lines())
def test_every_step_of_the_proof_in_fractions(
    y: list[Fraction], m: Fraction, line: tuple[int, Line]
) -> None:
    steep, w = line
    rounds = len(y)
    p = averages(y, [m] * rounds)
    assert all(0 <= x <= 1 for x in p)
    for here, after in itertools.pairwise(p):  # (1)
        assert (
            w(here) * (after - here)
            <= w.integral(after) - w.integral(here) + steep * (after - here) ** 2 / 2
        )
    squares = sum((a - b) ** 2 for a, b in zip(y, p, strict=False))
    assert squares <= m / (m - 1) * Fraction(rounds, 4)  # (2)
    assert w.integral(p[-1]) <= abs(p[-1] - HALF)
    total = sum(w(b) * (a - b) for a, b in zip(y, p, strict=False))
    assert total <= m * w.integral(p[-1]) + steep * squares / (2 * m)
    assert total <= m / 2 + steep * rounds / (8 * (m - 1))


@pytest.mark.slow("computes in fractions")
@given(
    y=REAL_OUTCOMES,
    steps=st.lists(st.sampled_from([Fraction(0), HALF, Fraction(1)]), min_size=25, max_size=25),
    line=lines(),
)
def test_growing_m_in_fractions(
    y: list[Fraction], steps: list[Fraction], line: tuple[int, Line]
) -> None:
    """Step (3), for any m that does not fall."""
    steep, w = line
    speeds = list(itertools.accumulate(steps[: len(y)], initial=Fraction(3, 2)))[1:]
    p = averages(y, speeds)
    total = sum(w(b) * (a - b) for a, b in zip(y, p, strict=False))
    costs = sum(steep / (8 * (m - 1)) for m in speeds)
    assert total <= speeds[-1] - speeds[0] / 2 + costs


def test_squared_errors_reach_what_is_proved() -> None:
    """Alternating outcomes about 1/2: the (T/4) m/(m - 1) is not generous."""
    m, rounds = Fraction(10), 400
    y = [Fraction(t % 2) for t in range(rounds)]
    p = averages(y, [m] * rounds)
    squares = sum((a - b) ** 2 for a, b in zip(y, p, strict=False))
    assert squares > Fraction(98, 100) * m / (m - 1) * rounds / 4


@pytest.mark.parametrize("seed", range(2))
def test_lower_distance_is_within_functions_of_slope_two(seed: int) -> None:
    """Lemma 8, by linear programmes; and it is never weaker than twice the smooth error."""
    closer = 0
    for tally in random_tallies(40 + seed, 80, most=10):
        f = np.tril(np.ones((len(tally.p), len(tally.p)))) * np.r_[1.0, 2 * np.diff(tally.p)]
        off = (tally.ones - tally.weights * tally.p) / tally.total
        rows, limits = np.vstack((f, -f)), np.ones(2 * len(f))
        result = linprog(-off @ f, rows, limits, bounds=(-1, 1), method="highs")
        assert result.status == 0
        twice = 2 * tc.smooth_calibration_error(tally)
        assert tc.lower_calibration_distance(tally, rtol=1e-6).lower <= -result.fun + 1e-7
        assert -result.fun <= twice + 1e-7
        closer += bool(-result.fun < 0.9 * twice)
    assert closer >= 10


@pytest.mark.slow("plays all games of twelve rounds")
@pytest.mark.parametrize("horizon", [None, 1, 4, 12])
def test_bounds_on_all_strings_to_twelve(horizon: int | None) -> None:
    for rounds in range(1, 13):
        for y in itertools.product((0, 1), repeat=rounds):
            f = ExponentialAverage(horizon=horizon)
            check(f, y, f.forecast_many(y), lower=rounds in (2, 5, 9))


@pytest.mark.alike("plays every adversary")
@pytest.mark.parametrize("horizon", HORIZONS)
def test_bounds_against_all_adversaries(horizon: int | None) -> None:
    tried = 0
    for adversary in everybody():
        f = ExponentialAverage(horizon=horizon)
        if not adversary.plays(f):
            continue
        game = play(f, adversary, 500, seed=tried)
        for t in (1, 2, 3, 8, 50, 200, 500):
            check(f, game.y[:t], game.p[:t])
        tried += 1
    assert tried >= 15


def test_with_another_m_the_error_can_be_far_larger() -> None:
    """Quick on outcomes that alternate, slow on outcomes that do not: the theorem's m matters."""
    y = [0, 1] * 2000
    quick = ExponentialAverage(horizon=2)
    slow = ExponentialAverage(horizon=4000 * 4000 * 2)
    right = ExponentialAverage(horizon=4000)
    assert smooth(y, quick.forecast_many(y)) > 2 * right.a_priori(4000)
    assert smooth([1] * 4000, slow.forecast_many([1] * 4000)) > 2 * right.a_priori(4000)
    assert smooth(y, right.forecast_many(y)) < right.a_priori(4000)


@pytest.mark.parametrize("horizon", [None, 3, 10**6])
def test_doubles_are_within_what_the_bound_allows_for(horizon: int | None) -> None:
    """Every round is off by less than 2**-52, and stays in [0, 1]."""
    f = ExponentialAverage(horizon=horizon)
    rng = np.random.default_rng(5)
    y = (rng.random(4000) < np.repeat([0.5, 1.0, 0.0, 0.02], 1000)).tolist()
    worst = Fraction(0)
    for t, outcome in enumerate(y, start=1):
        p = Fraction(f.predict())
        f.observe(outcome)
        m = Fraction(1 + math.sqrt((horizon or t) / 2))
        after = Fraction(f.predict())
        assert 0 <= after <= 1
        worst = max(worst, abs(after - p - (outcome - p) / m))
    assert 0 < worst <= Fraction(1, 2**52)


def test_bounds_by_hand() -> None:
    assert ExponentialAverage(horizon=200).a_priori(200) == pytest.approx(10.5, rel=1e-12)
    assert ExponentialAverage(horizon=200).a_priori(200) > 10.5  # rounded up
    assert ExponentialAverage(horizon=200).a_priori(800) == pytest.approx(5.5 + 20, rel=1e-12)
    assert ExponentialAverage().a_priori(200) == pytest.approx(20, rel=1e-12)
    assert ExponentialAverage().a_priori(200) > 20
    for f in (ExponentialAverage(), ExponentialAverage(horizon=50)):
        assert f.bounds == "lower distance"
        assert f.a_priori(0) == 0
        assert f.a_priori(1) == 1
        assert [f.a_priori(t) for t in range(60)] == sorted(f.a_priori(t) for t in range(60))


def test_forecasts_by_hand() -> None:
    said = ExponentialAverage(horizon=2).forecast_many([1, 1, 0, 0])
    assert said.tolist() == [0.5, 0.75, 0.875, 0.4375]
    f = ExponentialAverage()
    f.forecast_many([1])
    assert f.predict() == 0.5 + 0.5 / (1 + math.sqrt(0.5))
    f.observe(0)
    assert f.predict() == pytest.approx((0.5 + 0.5 / (1 + math.sqrt(0.5))) / 2)


@pytest.mark.slow("plays thousands of rounds one by one")
def test_contract_and_options() -> None:
    testing.check_forecaster(ExponentialAverage)
    testing.check_forecaster(lambda: ExponentialAverage(horizon=100))
    assert ExponentialAverage(horizon=9).config == {"horizon": 9}
    assert repr(ExponentialAverage()) == "ExponentialAverage()"
    for wrong in (0, 2.5, "9", True):
        with pytest.raises(tc.InputError):
            ExponentialAverage(horizon=wrong)
    f = ExponentialAverage(horizon=9)
    for rounds, average in ((3, -0.1), (3, 1.1), (0, 0.4)):
        with pytest.raises(tc.StateError, match="saved average must be from 0 to 1"):
            f.load({"rounds": rounds, "issued": False, "average": [average]})
