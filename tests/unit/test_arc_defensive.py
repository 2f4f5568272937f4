"""Defensive forecasting on the arc: the theorems of docs/defensive.md, one by one."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import truecast as tc
from truecast.arena.forecasters.arc_defensive import ArcDefensive
from truecast.arena.roster import ADVERSARIES
from truecast.testing import check_forecaster


def angle(p: np.ndarray) -> np.ndarray:
    return np.arccos(1 - 2 * p)


@cache
def kernel(m: int) -> np.ndarray:
    """The inverse of the matrix of Q for m cells, written down entry by entry."""
    h = math.pi / m
    middles = h * (np.arange(m) + 0.5)
    rho = np.sin(middles) ** 2 * np.sqrt(-np.log(abs(np.cos(middles))))
    rho[[0, -1]] *= 2
    rho /= h * rho.sum()
    q = np.zeros((m + 1, m + 1))
    for c in range(m):
        mean, slope = np.zeros(m + 1), np.zeros(m + 1)
        mean[c : c + 2], slope[c : c + 2] = 0.5, (-1 / h, 1 / h)
        q += h * rho[c] * (np.outer(mean, mean) + np.outer(slope, slope))
    return np.linalg.inv(q)


def residuals(p: np.ndarray, y: np.ndarray, m: int) -> np.ndarray:
    at = np.clip(angle(p) * m / math.pi, 0, m)
    cell = np.minimum(at.astype(int), m - 1)
    r = np.zeros(m + 1)
    np.add.at(r, cell, (y - p) * (1 - (at - cell)))
    np.add.at(r, cell + 1, (y - p) * (at - cell))
    return r


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.integers(1, 30))
def test_prices_are_topped_by_a_sine(seed: int, rounds: int) -> None:
    """Theorem 1: the sup of theorem 1's proof lies between the prices, at prices that prove lower distances."""
    rng = np.random.default_rng(seed)
    p = rng.choice([rng.random(rounds), rng.integers(0, 9, rounds) / 8, rng.beta(0.3, 0.3, rounds)])
    found = tc.lower_calibration_distance(rng.integers(0, 2, rounds), p)
    v = np.linspace(0, 1, 400)
    a, b = np.interp(v, found.nodes, found.zero_prices), np.interp(v, found.nodes, found.one_prices)
    low = np.arcsin(np.clip(b[:-1] / (1 - v[:-1]), -1, 1))
    phi = (low[:, np.newaxis] - abs(np.subtract.outer(angle(v[:-1]), angle(v)))).max(axis=0)
    f = np.sin(np.maximum(phi, -np.pi / 2))
    assert (a <= -v * f + 1e-9).all()
    assert (b <= (1 - v) * f + 1e-9).all()


@given(st.lists(st.floats(-1, 1), min_size=8, max_size=60), st.floats(-2, 2))
def test_norm_of_a_sine_is_at_most_one(slopes: list[float], start: float) -> None:
    """Lemma 2, and it is sharp: f = 2p - 1, whose angle has slope 1, has norm nearly 1."""
    m = len(slopes) // 2 * 2
    q = np.linalg.inv(kernel(m))
    g = np.sin(start + np.cumsum([0, *slopes[:m]]) * math.pi / m)
    assert g @ q @ g <= 1 + 1e-9
    steepest = -np.cos(np.linspace(0, math.pi, m + 1))
    assert 1 - 3 / m**2 < steepest @ q @ steepest <= 1 + 1e-9


@pytest.mark.parametrize("grid", [2, 16, 90])
def test_kernel_is_the_inverse_of_the_norm(grid: int) -> None:
    f = ArcDefensive(grid=grid)
    i = np.arange(grid + 1)
    mine = f._rising[np.minimum.outer(i, i)] * f._falling[np.maximum.outer(i, i)]
    np.testing.assert_allclose(mine, kernel(grid), rtol=1e-9)


@settings(max_examples=30)
@given(st.lists(st.integers(0, 1), max_size=50), st.sampled_from([2, 8, 40]))
def test_energy_grows_by_at_most_the_variance(y: list[int], grid: int) -> None:
    """Theorem 3, first part: round by round, and what the forecaster keeps is what it is."""
    f = ArcDefensive(grid=grid)
    k = kernel(grid)
    allowed = 0.0
    said = []
    for t, bit in enumerate(y):
        p = f.predict()
        w = residuals(np.array([p]), np.array([p + 1]), grid)
        allowed += p * (1 - p) * float(w @ k @ w)
        said.append(p)
        f.observe(bit)
        r = residuals(np.array(said), np.array(y[: t + 1]), grid)
        energy = float(r @ k @ r)
        assert energy <= allowed * (1 + 1e-9) + 1e-12
        off = np.abs(np.array(said) - y[: t + 1]).sum() * math.pi / grid / 2
        assert f.lower_distance_bound == pytest.approx(math.sqrt(energy) + off, rel=1e-6, abs=1e-7)
        assert f.lower_distance_bound <= f.a_priori(t + 1)


@settings(max_examples=50)
@given(st.integers(0, 2**32), st.integers(1, 60))
def test_energy_bounds_the_lower_distance_of_any_forecasts(seed: int, rounds: int) -> None:
    """Theorem 3, second and third part, for forecasts that are not ours."""
    rng = np.random.default_rng(seed)
    p = rng.choice([rng.random(rounds), rng.integers(0, 9, rounds) / 8, rng.beta(0.3, 0.3, rounds)])
    y = (rng.random(rounds) < rng.choice([p, 1 - p, np.full(rounds, 0.5), np.ones(rounds)])).astype(int)
    m = 64
    r = residuals(p, y, m)
    root, off = math.sqrt(r @ kernel(m) @ r), abs(y - p).sum() * math.pi / m / 2
    assert tc.lower_calibration_distance(y, p, total=True).lower <= root + off + 1e-9
    smooth = tc.smooth_calibration_error(y, p, total=True)
    assert smooth <= math.sqrt(5) / 2 * root + off / 2 + 1e-9


def test_the_bound_is_nearly_sharp() -> None:
    """All ones at 1/2 are T/2 from calibrated; a kernel a tenth smaller would deny it."""
    r = residuals(np.full(100, 0.5), np.ones(100), 400)
    root = math.sqrt(r @ kernel(400) @ r)
    assert 50 <= root <= 50 * 1.06


@pytest.mark.parametrize("name", ADVERSARIES)
def test_lower_distance_is_within_the_bounds_against_all_adversaries(name: str) -> None:
    for rounds in (60, 300):
        f = ArcDefensive(horizon=rounds)
        if not ADVERSARIES[name].plays(f):
            return
        game = tc.arena.play(f, ADVERSARIES[name], rounds, seed=3)
        lower = tc.lower_calibration_distance(game.y, game.p, total=True).lower
        assert lower <= f.lower_distance_bound <= f.a_priori(rounds)
        assert f.a_priori(rounds) <= 0.528 * math.sqrt(rounds) + 0.4 * rounds ** (1 / 3)


@pytest.mark.parametrize("grid", [88, 400, 4_000])
def test_every_forecast_costs_the_same(grid: int) -> None:
    """Section 4: p(1-p)K(p,p) is k/4 on the whole arc, up to a few cells at its ends; the sum of weights is exact."""
    f = ArcDefensive(grid=grid)
    cost = np.sin(np.linspace(0, math.pi, grid + 1)) ** 2 / 4 * f._kernel
    np.testing.assert_allclose(cost[grid // 10 : -grid // 10], 1.10975 / 4, rtol=8e-3)
    assert max(cost) <= f._most <= 0.528**2


def test_closed_form_of_the_bound_for_every_horizon() -> None:
    for rounds in (*range(1, 120), 10**3, 10**4, 10**5):
        bound = ArcDefensive(horizon=rounds).a_priori(rounds)
        assert bound <= 0.528 * math.sqrt(rounds) + 0.4 * rounds ** (1 / 3)


def test_contract_and_options() -> None:
    check_forecaster(lambda: ArcDefensive(horizon=64))
    assert ArcDefensive(grid=7).config["grid"] == 8
    for options in ({}, {"grid": 1}, {"horizon": 0}, {"grid": 2.5}):
        with pytest.raises(tc.InputError):
            ArcDefensive(**options)
