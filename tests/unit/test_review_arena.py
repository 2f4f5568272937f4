"""Statements of the arena that no other test looks at: a lemma in a proof, a bound, the end of a
game."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import truecast as tc
from truecast.arena.forecasters.running_mean import RunningMean

ANGLES = st.floats(0, math.pi)


@given(ANGLES, ANGLES, st.floats(-1, 1))
def test_one_price_limits_the_other_on_either_side(here: float, there: float, least: float) -> None:
    """docs/arc.md, theorem 1: with f >= least at v, the prices keep f at u as high as the arc says,
    on either side."""
    u, v = math.sin(here / 2) ** 2, math.sin(there / 2) ** 2
    d = abs(u - v)
    lows = [(v * least - d) / u] if u > 1e-9 else []
    lows += [((1 - v) * least - d) / (1 - u)] if u < 1 - 1e-9 else []
    lowest = min(max(*lows, -1.0), 1.0)
    assert lowest >= math.sin(max(math.asin(least) - abs(here - there), -math.pi / 2)) - 1e-6


@pytest.mark.parametrize(
    "outcomes", [[1], [0, 1], [0] * 40, [1, 0] * 30, [0] * 9 + [1] * 60, [1] * 200 + [0]]
)
def test_running_mean_is_as_good_as_the_best_constant_nearly(outcomes: list[int]) -> None:
    y = np.array(outcomes)
    loss = -np.log(np.abs(1 - y - RunningMean().forecast_many(y))).sum()
    counts = np.bincount(y, minlength=2)
    best = -sum(n * math.log(n / len(y)) for n in counts.tolist() if n)
    assert loss <= best + math.log(len(y)) / 2 + math.log(2) + 1e-12
    # where the bound is nearly met: for constant outcomes the excess is ln(pi T)/2, nearly
    if 0 in counts:
        assert loss >= best + math.log(math.pi * len(y)) / 2 - 1e-12


@pytest.mark.parametrize("rate", [0, 1])
def test_sign_preservation_keeps_the_signs_that_are_there(rate: int) -> None:
    """Against 0 all signs are plus, and ones keep them; against 1 all are minus, and zeros do."""
    game = tc.arena.play(tc.arena.Climatology(rate=rate), tc.arena.SignPreservation(), 2_000)
    assert set(game.y[-200:].tolist()) == {1 - rate}
