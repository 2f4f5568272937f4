"""Statements of the arena that no other test looks at: a lemma in a proof, two bounds, the end of a game."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import truecast as tc
from truecast.arena.forecasters.arc_defensive import ArcDefensive
from truecast.arena.forecasters.running_mean import RunningMean

ANGLES = st.floats(0, math.pi)


@given(ANGLES, ANGLES, st.floats(-1, 1))
def test_one_price_limits_the_other_on_either_side(here: float, there: float, least: float) -> None:
    """docs/defensive.md, (1): with f >= least at v, the prices keep f at u as high as the arc says, u < v or u > v."""
    u, v = math.sin(here / 2) ** 2, math.sin(there / 2) ** 2
    d = abs(u - v)
    lows = [(v * least - d) / u] if u > 1e-9 else []
    lows += [((1 - v) * least - d) / (1 - u)] if u < 1 - 1e-9 else []
    lowest = min(max(*lows, -1.0), 1.0)
    assert lowest >= math.sin(max(math.asin(least) - abs(here - there), -math.pi / 2)) - 1e-6


@pytest.mark.parametrize("outcomes", [[1], [0, 1], [0] * 40, [1, 0] * 30, [0] * 9 + [1] * 60, [1] * 200 + [0]])
def test_running_mean_is_as_good_as_the_best_constant_nearly(outcomes: list[int]) -> None:
    y = np.array(outcomes)
    loss = -np.log(np.abs(1 - y - RunningMean().forecast_many(y))).sum()
    counts = np.bincount(y, minlength=2)
    best = -sum(n * math.log(n / len(y)) for n in counts.tolist() if n)
    assert loss <= best + math.log(len(y)) / 2 + math.log(2) + 1e-12
    if 0 in counts:  # where the bound is nearly met: for constant outcomes the excess is ln(pi T)/2, nearly
        assert loss >= best + math.log(math.pi * len(y)) / 2 - 1e-12


@pytest.mark.parametrize(("grid", "close"), [(2, 1.03), (12, 1.02), (60, 1.002)])
def test_bound_on_the_arc_is_that_of_theorem_3(grid: int, close: float) -> None:
    """The largest p(1-p)K(p,p), looked for at many p with K from the matrix of the norm, is what `a_priori` has."""
    h = math.pi / grid
    at = h * (np.arange(grid) + 0.5)
    weight = np.sin(at) ** 2 * np.sqrt(-np.log(abs(np.cos(at)))) * (1.0 + (np.minimum(at, math.pi - at) < h))
    weight /= weight.sum()
    one, next_ = np.eye(grid, grid + 1), np.eye(grid, grid + 1, 1)
    mean, slope = (one + next_) / 2, (next_ - one) / h
    kernel = np.linalg.inv((mean.T * weight) @ mean + (slope.T * weight) @ slope)
    x = np.linspace(0, grid, 20 * grid + 1)
    w = np.maximum(1 - abs(x[:, np.newaxis] - np.arange(grid + 1)), 0)
    most = (np.sin(h * x) ** 2 / 4 * np.einsum("xi,ij,xj->x", w, kernel, w)).max()
    for rounds in (1, 100, 10**6):
        least = math.sqrt(rounds * most)
        grid_hides = rounds * h / 2
        assert least + grid_hides <= ArcDefensive(grid=grid).a_priori(rounds) <= close * least + grid_hides * (1 + 1e-8)


@pytest.mark.parametrize("rate", [0, 1])
def test_sign_preservation_keeps_the_signs_that_are_there(rate: int) -> None:
    """Against 0 all signs are plus, and ones keep them; against 1 all are minus, and zeros do."""
    game = tc.arena.play(tc.arena.Climatology(rate=rate), tc.arena.SignPreservation(), 2_000)
    assert set(game.y[-200:].tolist()) == {1 - rate}
