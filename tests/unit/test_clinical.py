"""Slope, intercept, O:E, ICI: weights, ties, certainties, separation and one class only."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import truecast as tc
from rounds import exact, rounds, tally_of
from truecast import _core
from truecast.reference import measures as plain

RNG = np.random.default_rng(8)
P = RNG.random(400).round(2).clip(0.01, 0.99)
Y = (RNG.random(400) < 0.15 + 0.6 * P).astype(int)
ALL = (
    tc.calibration_slope,
    tc.calibration_in_the_large,
    tc.observed_expected_ratio,
    tc.integrated_calibration_index,
    tc.calibration_error_quantile,
    tc.averaged_two_bin_error,
)


def figures(found: object) -> list[float]:
    if isinstance(found, tc.CalibrationSlope):
        return [*figures(found.slope), *figures(found.intercept), found.left_out]
    if isinstance(found, tc.Interval):
        return [found.estimate, found.lower, found.upper]
    assert isinstance(found, float)
    return [found]


@pytest.mark.parametrize("measure", ALL)
def test_a_tally_integer_weights_and_repeated_rounds_are_the_same(measure) -> None:
    times = RNG.integers(0, 4, 400)
    repeated = measure(np.repeat(Y, times), np.repeat(P, times))
    assert measure(Y, P, sample_weight=times) == repeated
    assert measure(tc.Tally.from_predictions(Y, P, sample_weight=times)) == repeated


@pytest.mark.parametrize("measure", ALL)
def test_real_weights_change_no_estimate_and_give_no_interval(measure) -> None:
    found, weighted = measure(Y, P), measure(Y, P, sample_weight=np.full(400, 0.25))
    for one, other in zip(figures(found), figures(weighted), strict=True):
        assert math.isnan(other) or other == pytest.approx(one, rel=1e-9, abs=1e-12)
    if isinstance(weighted, tc.CalibrationSlope):
        assert np.isnan(figures(weighted)).tolist() == [False, True, True] * 2 + [False]
    if isinstance(weighted, tc.Interval):
        assert np.isnan(figures(weighted)).tolist() == [False, True, True]


@pytest.mark.parametrize("measure", ALL[:3])
@pytest.mark.parametrize("level", [0, 1, "much", math.nan])
def test_levels_are_refused_unless_between_0_and_1(measure, level) -> None:
    with pytest.raises(tc.InputError, match="level must be a number above 0 and below 1"):
        measure(Y, P, level=level)


def test_wider_intervals_hold_narrower_ones() -> None:
    for measure in ALL[:3]:
        narrow, wide = (figures(measure(Y, P, level=level)) for level in (0.5, 0.99))
        assert wide[1] < narrow[1] < narrow[0] < narrow[2] < wide[2]


@pytest.mark.parametrize("q", [-0.1, 1.1, "most", True])
def test_quantiles_are_refused_unless_from_0_to_1(q) -> None:
    with pytest.raises(tc.InputError, match="q must be a number from 0 to 1"):
        tc.calibration_error_quantile(Y, P, q=q)


def test_the_line_makes_residuals_and_logits_orthogonal() -> None:
    line = tc.calibration_slope(Y, P)
    z = np.log(P / (1 - P))
    fitted = 1 / (1 + np.exp(-(line.intercept.estimate + line.slope.estimate * z)))
    assert (Y - fitted).sum() == pytest.approx(0, abs=1e-9)
    assert ((Y - fitted) * z).sum() == pytest.approx(0, abs=1e-9)
    shift = tc.calibration_in_the_large(Y, P).estimate
    assert (Y - 1 / (1 + np.exp(-(shift + z)))).sum() == pytest.approx(0, abs=1e-9)


def test_certainties_that_came_true_are_left_out() -> None:
    sure = tc.calibration_slope([0, 1, 1, *Y], [0.0, 1.0, 1.0, *P])
    assert sure.left_out == 3
    assert figures(sure)[:-1] == figures(tc.calibration_slope(Y, P))[:-1]
    shift = tc.calibration_in_the_large([0, 1, 1, *Y], [0.0, 1.0, 1.0, *P])
    assert shift == tc.calibration_in_the_large(Y, P)


@pytest.mark.parametrize(("wrong", "said"), [(1, 0.0), (0, 1.0)])
def test_no_line_allows_a_wrong_certainty(wrong: int, said: float) -> None:
    found = tc.calibration_slope([wrong, *Y], [said, *P])
    assert np.isnan(figures(found)[:-1]).all()
    assert found.why == "a forecast of exactly 0 or 1 was wrong, which no line allows"
    assert np.isnan(figures(tc.calibration_in_the_large([wrong, *Y], [said, *P]))).all()


@pytest.mark.parametrize(
    ("y", "p", "slope", "shift", "why"),
    [
        ([0, 0, 1], [0.1, 0.2, 0.2], math.inf, 0.94, "a threshold separates zeros from ones"),
        ([1, 1, 0], [0.1, 0.2, 0.2], -math.inf, 2.4, "separates ones from zeros: the wrong way"),
        ([1, 1], [0.1, 0.2], math.nan, math.inf, "all outcomes are alike"),
        ([0, 0], [0.1, 0.2], math.nan, -math.inf, "all outcomes are alike"),
        ([0, 1], [0.5, 0.5], math.nan, 0.0, "all forecasts are alike"),
        ([0, 1], [0.0, 1.0], math.nan, math.nan, "all forecasts are 0 or 1"),
    ],
)
def test_where_no_line_fits_best_the_reason_is_given(y, p, slope, shift, why) -> None:
    found = tc.calibration_slope(y, p)
    assert found.slope.estimate == pytest.approx(slope, nan_ok=True)
    assert np.isnan([found.slope.lower, found.slope.upper, found.intercept.estimate]).all()
    assert why in found.why
    assert tc.calibration_in_the_large(y, p).estimate == pytest.approx(shift, abs=0.1, nan_ok=True)
    report = tc.measure(y, p)  # says the same, and does not stumble
    assert report.calibration_slope.why == found.why


def test_the_ratio_at_its_ends() -> None:
    none = tc.observed_expected_ratio([0, 0], [0.5, 0.25])
    assert (none.estimate, none.lower) == (0, 0)
    assert 0 < none.upper < 1 / 0.375
    every = tc.observed_expected_ratio([1, 1], [0.5, 0.25])
    assert (every.estimate, every.upper) == (1 / 0.375, 1 / 0.375)
    assert tc.observed_expected_ratio([1, 0], [0.0, 0.0]).estimate == math.inf
    assert math.isnan(tc.observed_expected_ratio([0, 0], [0.0, 0.0]).estimate)


def test_uncertainty_takes_the_index_and_the_truthful_error() -> None:
    for measure in (tc.integrated_calibration_index, tc.averaged_two_bin_error):
        found = tc.uncertainty(measure, Y, P, resamples=50)
        assert found.estimate == measure(Y, P)
        assert 0 < found.if_calibrated < found.estimate


@pytest.mark.slow("tries many examples")
@settings(max_examples=60, deadline=None)
@given(rounds())
def test_index_and_quantiles_by_their_definition(rows: list) -> None:
    tally = tally_of(rows)
    rates = plain.isotonic_rates(exact(tally))
    errors = sorted(
        abs(p - rate)
        for (p, zeros, ones), rate in zip(exact(tally), rates, strict=True)
        for _ in range(zeros + ones)
    )
    mean = sum(errors, Fraction(0)) / len(errors)
    assert tc.integrated_calibration_index(tally) == pytest.approx(float(mean), abs=1e-15)
    for q in (Fraction(1, 2), Fraction(1)):
        least = errors[math.ceil(q * len(errors)) - 1]
        found = tc.calibration_error_quantile(tally, q=float(q))
        assert found == pytest.approx(float(least), abs=1e-15)


@pytest.mark.slow("tries many examples")
@settings(max_examples=100, deadline=None)
@given(rounds())
def test_the_truthful_error_by_its_definition(rows: list) -> None:
    tally = tally_of(rows)
    expected = float(plain.averaged_two_bin_error(exact(tally)))
    assert tc.averaged_two_bin_error(tally) == pytest.approx(expected, rel=1e-12, abs=1e-16)


@pytest.mark.slow("tries many examples")
@settings(max_examples=100, deadline=None)
@given(rounds())
def test_the_truthful_error_lies_between_bounds_by_the_smooth_error(rows: list) -> None:
    tally = tally_of(rows)
    error, smooth = tc.averaged_two_bin_error(tally), tc.smooth_calibration_error(tally)
    assert error <= 2 * smooth + 1e-15
    assert smooth <= math.sqrt(4.5 * error) + 1e-8


@pytest.mark.slow("tries many examples")
@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=1, max_size=4))
@example([(2, 4), (6, 4)])
def test_no_forecasts_have_less_truthful_error_on_average_than_the_right_ones(cells: list) -> None:
    """All outcomes of up to four rounds, with their probabilities, in fractions."""
    truth = [Fraction(right, 8) for right, _ in cells]
    lie = [Fraction(other, 8) for _, other in cells]

    def mean(said: list[Fraction]) -> Fraction:
        total = Fraction(0)
        for bits in range(1 << len(cells)):
            y = [bits >> t & 1 for t in range(len(cells))]
            chance = math.prod(p if o else 1 - p for p, o in zip(truth, y, strict=True))
            tally = sorted(
                (p, sum(1 - o for q, o in pairs if q == p), sum(o for q, o in pairs if q == p))
                for pairs in [list(zip(said, y, strict=True))]
                for p in set(said)
            )
            total += chance * plain.averaged_two_bin_error(tally)
        return total

    assert mean(truth) == sum(p * (1 - p) for p in truth) / Fraction(len(truth)) ** 2
    assert mean(truth) <= mean(lie)
    # what is said is right on average wherever it is said: only then nothing is lost
    kept = all(
        sum(p - q for p, q in zip(truth, lie, strict=True) if q == said) == 0 for said in lie
    )
    assert (mean(truth) == mean(lie)) == kept


@pytest.mark.slow("tries many examples")
@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(-30, 30), st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=9
    ),
    st.floats(-5, 5),
    st.floats(-5, 5),
)
def test_the_kernel_of_the_line_is_its_plain_twin(rows: list, a: float, b: float) -> None:
    z, zeros, ones = (np.array(column) for column in zip(*rows, strict=True))
    expected = plain.logistic_sums(z.tolist(), zeros.tolist(), ones.tolist(), a, b)
    found = _core.logistic_sums(z, zeros.astype(float), ones.astype(float), a, b)
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("number", [1, 7, 64, 100])
def test_exponentials_of_many_are_those_of_the_library(number: int) -> None:
    rng = np.random.default_rng(number)
    one = np.ones(1)
    for spread in (1e-9, 0.3, 1.0, 30.0, 745.0):
        z = np.sort(rng.uniform(-spread, spread, number))
        small = np.exp(-np.abs(z))
        p = np.where(z < 0, small, 1.0) / (1.0 + small)
        for each, expected in zip(z, p, strict=True):
            assert _core.logistic_sums(each * one, one, 0 * one, 0.0, 1.0)[1] == pytest.approx(
                expected, rel=1e-15, abs=2e-323
            )
        loss, by_a, by_b, *_ = _core.logistic_sums(z, np.ones(number), np.zeros(number), 0.0, 1.0)
        assert by_a == pytest.approx(math.fsum(p), rel=1e-15)
        assert by_b == pytest.approx(math.fsum(p * z), rel=1e-14, abs=1e-14 * spread)
        assert loss == pytest.approx(math.fsum(np.logaddexp(0.0, z)), rel=1e-14)


@pytest.mark.parametrize(
    ("n", "seed"), [*product((10, 100), range(60)), (40_000, 0), (40_000, 1), (40_000, 2)]
)
def test_at_the_best_line_no_derivative_is_left(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = rng.random(n) ** (1 + seed % 8)
    tally = tc.Tally.from_predictions(rng.random(n) < p**1.2, p)
    z = np.log(tally.p) - np.log1p(-tally.p)
    line = tc.calibration_slope(tally)
    if not line.why:
        a, b = line.intercept.estimate, line.slope.estimate
        _, *slopes, aa, ab, bb = _core.logistic_sums(z, tally.zeros, tally.ones, a, b)
        assert np.abs(slopes).max() < 1e-12 * n
        variances = np.diagonal(np.linalg.inv([[aa, ab], [ab, bb]]))
        wide = [one.upper - one.estimate for one in (line.intercept, line.slope)]
        assert wide == pytest.approx(1.959964 * np.sqrt(variances), rel=1e-6)
    shift = tc.calibration_in_the_large(tally).estimate
    if math.isfinite(shift):
        assert abs(_core.logistic_sums(z, tally.zeros, tally.ones, shift, 1.0)[1]) < 1e-12 * n


@pytest.mark.parametrize("extreme", [1e-300, 5e-324, 1 - 2**-53])
def test_extreme_forecasts_have_a_line(extreme: float) -> None:
    y, p = [0, 1, 0, 1, 0, 1], [extreme, extreme, 0.2, 0.4, 0.6, 0.7]
    line = tc.calibration_slope(y, p)
    assert np.isfinite(figures(line)).all()
    z = np.log(p) - np.log1p(-np.array(p))
    fitted = 1 / (1 + np.exp(-(line.intercept.estimate + line.slope.estimate * z)))
    assert (np.array(y) - fitted).sum() == pytest.approx(0, abs=1e-9)
    assert math.isfinite(tc.calibration_in_the_large(y, p).estimate)


def test_the_slope_of_weights_that_differ_very_much_is_found() -> None:
    """The curvature along one direction is rounded away: a step of Newton's would be infinite."""
    p = np.array([0.04, 0.8, 0.25, 0.03, 0.47, 0.72, 0.44, 0.36, 0.66, 0.16]) ** 3
    y = np.arange(10) == 6
    weights = [7e-4, 1e-3, 4e-4, 3e-4, 6e4, 9e-3, 4.0, 2e-9, 6e3, 2e-3]
    found = tc.calibration_slope(y, p, sample_weight=weights)
    z = np.log(p / (1 - p))
    missed = weights * (1 / (1 + np.exp(-found.intercept.estimate - found.slope.estimate * z)) - y)
    assert abs(missed.sum()) <= 1e-9
    assert abs((missed * z).sum()) <= 1e-9
