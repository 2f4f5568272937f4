"""Proper scores: the sum over rounds is exact, in any order, and equal to that over the tally."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import truecast as tc
from truecast import InputError, _core

rounds = st.lists(
    st.tuples(st.integers(0, 1), st.floats(0, 1) | st.sampled_from([0.0, 1.0, 0.5, 5e-324])),
    min_size=1,
    max_size=40,
)


def exact_brier(y: np.ndarray, p: np.ndarray) -> float:
    """The sum of the rounded squares, without error, rounded once."""
    squares = [float((a - b) * (a - b)) for a, b in zip(y.astype(float), p, strict=True)]
    return float(sum(map(Fraction, squares)))


@given(rounds, st.sampled_from([np.uint8, np.int64, np.float64, np.bool_]))
@settings(max_examples=60)
def test_one_pass_and_the_tally_say_the_same(pairs, kind):
    y, p = np.array([a for a, _ in pairs], kind), np.array([b for _, b in pairs])
    tally = tc.Tally.from_predictions(y, p)
    for score in (tc.brier_score, tc.log_loss):
        assert score(y, p) == score(tally)
        assert score(y[::-1], p[::-1]) == score(y, p)
        assert score(y, p, total=True) == score(tally, total=True)


@pytest.mark.parametrize("n", [1, 2, 511, 512, 513, 3_000])
def test_the_sum_of_squares_is_rounded_once(n):
    rng = np.random.default_rng(n)
    p, y = rng.random(n) ** 3, rng.integers(0, 2, n)
    assert tc.brier_score(y, p, total=True) == exact_brier(y, p)


@pytest.mark.parametrize("n", [3, 100, 1_500, 300_000])
def test_the_expected_ones_are_rounded_once(n):
    rng = np.random.default_rng(n)
    p, y = rng.random(n) ** 3, rng.integers(0, 2, n)
    y[0] = 1
    expected = math.fsum(p.tolist())  # rounded once
    order = rng.permutation(n)
    tally = tc.Tally.from_predictions(y, p)
    for rounds in ((y, p), (y[order], p[order]), (tally,)):
        assert tc.observed_expected_ratio(*rounds).estimate == y.sum() / expected
    assert tc.observed_expected_ratio(tally + tally).estimate == y.sum() / expected


def test_expected_ones_too_few_for_the_unit_are_not_lost():
    for n in (2, 2_000):
        y, p = np.ones(n, np.int64), np.full(n, 1e-300)
        assert tc.observed_expected_ratio(y, p).estimate == pytest.approx(1e300)


def test_log_loss_is_as_precise_as_the_logarithm():
    p = np.concatenate([10.0 ** -np.arange(0, 300, 7), 1 - 10.0 ** -np.arange(1, 16)])
    for y in (0, 1):
        for x in p.tolist():
            ours = tc.log_loss([y], [x])
            exact = -math.log(x) if y else (-math.log1p(-x) if x < 1 else math.inf)
            assert ours == pytest.approx(exact, rel=3e-16, abs=0)


def test_scores_too_small_for_the_unit_are_not_lost():
    assert tc.brier_score([0], [1e-20]) == 1e-20 * 1e-20
    assert tc.log_loss([0], [1e-40]) == 1e-40
    assert tc.brier_score([0, 1], [0.0, 1.0]) == 0.0
    assert tc.log_loss([0, 1], [0.0, 1.0]) == 0.0


def test_what_had_probability_0_costs_everything():
    assert tc.log_loss([1, 0], [0.0, 0.5]) == math.inf
    assert tc.log_loss([0] * 600 + [0], [0.5] * 600 + [1.0]) == math.inf


def test_counts_as_large_as_there_can_be():
    half = 2**52
    tally = tc.Tally([0.25, 0.75], [half, 0], [0, half])
    assert tc.brier_score(tally) == 0.0625
    assert tc.brier_score(tally, total=True) == 2**53 * 0.0625


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize("score", ["brier_rounds", "log_rounds"])
def test_threads_change_nothing(score, threads):
    rng = np.random.default_rng(3)
    p, y = rng.random(5_000), rng.integers(0, 2, 5_000)
    kernel = getattr(_core, score)
    assert kernel(y, p, threads) == kernel(y, p, 1)


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan, math.inf, -math.inf, -5e-324])
@pytest.mark.parametrize("at", [0, 511, 512, 999])
def test_a_forecast_that_is_none_is_named_wherever_it_is(bad, at):
    p = np.full(1_000, 0.5)
    p[at] = bad
    with pytest.raises(InputError, match=f"y_prob.*between 0 and 1.*{at}"):
        tc.brier_score(np.zeros(1_000), p)


@pytest.mark.parametrize("bad", [0.5, 2, -1, math.nan, math.inf, 5e-324, 0.25, 3e-308])
@pytest.mark.parametrize("at", [0, 511, 512, 999])
def test_an_outcome_that_is_none_is_named_wherever_it_is(bad, at):
    y = np.zeros(1_000)
    y[at] = bad
    with pytest.raises(InputError, match="y_true.*0 or 1"):
        tc.log_loss(y, np.full(1_000, 0.5))
    if isinstance(bad, int):
        with pytest.raises(InputError, match="y_true.*0 or 1"):
            tc.brier_score(y.astype(np.int64), np.full(1_000, 0.5))


def test_minus_zero_is_zero_and_other_byte_orders_are_read():
    assert tc.brier_score([-0.0, 1.0], [-0.0, 1.0]) == 0.0
    y, p = np.array([0, 1, 1]), np.array([0.1, 0.7, 0.4])
    swapped = y.astype(">i8"), p.astype(">f8")
    assert tc.brier_score(*swapped) == tc.brier_score(y, p)
    assert tc.smooth_calibration_error(*swapped) == tc.smooth_calibration_error(y, p)


@pytest.mark.parametrize("norm", ["l1", "l2", "max"])
def test_the_binned_error_is_the_bins_error(norm):
    rng = np.random.default_rng(5)
    p, y = rng.random(2_000), rng.integers(0, 2, 2_000)
    error = tc.binned_calibration_error(y, p, norm=norm)
    assert error == tc.reliability_bins(y, p).error(norm)
    assert error == tc.binned_calibration_error(tc.Tally.from_predictions(y, p), norm=norm)
