"""Sums and quantiles of many values, by another way than of few: the same, bit for bit."""

from __future__ import annotations

import math
from fractions import Fraction
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truecast import _core
from truecast.measures import prices
from truecast.tally import Tally

smooth_ece = import_module("truecast.measures.smooth_ece")  # by its name there is the function


@given(
    seed=st.integers(0, 1 << 32),
    size=st.integers(0, 3000),
    digits=st.sampled_from([1, 30, 300]),
    turned=st.booleans(),
)
def test_a_sum_is_rounded_once(seed: int, size: int, digits: int, turned: bool) -> None:
    rng = np.random.default_rng(seed)
    values = rng.uniform(-1, 1, size) * 10.0 ** -rng.integers(0, digits, size)
    values[rng.random(size) < 0.3] = 0.0
    if turned:  # all but the least bits cancel
        values = np.concatenate([values, -np.nextafter(values, 1)])
    assert math.fsum(prices._parts(values)) == math.fsum(values)


@pytest.mark.parametrize("tiny", [5e-324, 2.0**-1030])
def test_a_sum_of_the_least_numbers_is_exact(tiny: float) -> None:
    values = np.array([1.0, -1.0] * 800 + [tiny] * 2001)
    assert Fraction(math.fsum(prices._parts(values))) == 2001 * Fraction(tiny)


@given(
    values=st.lists(st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.5]), min_size=1, max_size=30),
    shares=st.lists(st.sampled_from([0.0, 1e-9, 0.1, 0.5, 0.7, 0.9, 1.0]), max_size=4),
)
def test_quantiles_of_equal_weights_are_those_of_any(values: list[float], shares: list[float]):
    p = np.arange(1, len(values) + 1) / (len(values) + 1)
    ones = np.ones(len(values), np.int64)
    rates = p + np.array(values)  # of blocks of one forecast each, that far from it
    once = _core.curve_errors(p, 0 * ones, ones, p, rates, np.array(shares))[1:]
    weighted = _core.curve_errors(p, ones, ones, p, rates, np.array(shares))[1:]
    assert once == weighted
    far = np.abs(p - rates).tolist()
    assert once == [
        next(e for e in sorted(far) if sum(v <= e for v in far) >= q * len(far)) for q in shares
    ]


@given(
    counts=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)).filter(any), min_size=1),
)
def test_every_forecast_moves_to_its_own_rate(counts: list[tuple[int, int]]) -> None:
    zeros, ones = np.array(counts).T
    tally = Tally(np.arange(1, len(counts) + 1) / (len(counts) + 1), zeros, ones)
    nodes, masses = prices._rates(tally)
    assert nodes.tolist() == sorted({0.0, 1.0, *(ones / (zeros + ones)).tolist()})
    for node, mass in zip(nodes, masses, strict=True):
        there = ones / (zeros + ones) == node
        assert mass == pytest.approx((zeros + ones)[there].sum() / tally.total, rel=1e-12)


@given(
    seed=st.integers(0, 1 << 32),
    power=st.integers(4, 11),
    sigma=st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1e-12, 13 / 16, 13 / 64, 100.0])),
)
def test_waves_that_are_left_out_add_nothing(seed: int, power: int, sigma: float) -> None:
    rng = np.random.default_rng(seed)
    y, p = rng.random(50) < 0.4, rng.random(50)
    tally = Tally.from_predictions(y, p)
    found = smooth_ece._smoothed(tally, power)(sigma)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(smooth_ece, "_DAMPED", 1e9)  # all of them
        assert smooth_ece._smoothed(tally, power)(sigma) == found
