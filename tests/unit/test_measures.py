"""Measures: options, refusals, reports; the numbers are checked in tests/property and
tests/exhaustive."""

from __future__ import annotations

import copy
import json
import math
import pickle
from dataclasses import FrozenInstanceError, fields
from fractions import Fraction
from functools import partial
from operator import attrgetter

import numpy as np
import pytest

import truecast as tc
from truecast.measures.figures import FIGURES, Shared, parts_besides

Y, P = [0, 1, 1, 0, 1], [0.1, 0.4, 0.4, 0.9, 1.0]
WEIGHTED = tc.Tally([0.25, 0.5], [0.5, 1], [0.5, 3])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            partial(tc.brier_score, tc.Tally([0.5], [1], [1]), P),
            "y_prob and sample_weight must be left out beside a",
        ),
        (partial(tc.brier_score, Y), "y_prob is needed unless the first argument is a Tally"),
        (
            partial(tc.brier_score, [], []),
            "y_true must have at least one round, of positive weight",
        ),
        (
            partial(tc.brier_score, Y, P, sample_weight=[0] * 5),
            "y_true must have at least one round, of positive",
        ),
        (
            partial(tc.binned_calibration_error, Y, P, n_bins=0),
            "n_bins must be a whole number from 1 to",
        ),
        (
            partial(tc.binned_calibration_error, Y, P, strategy="even"),
            "strategy must be one of 'uniform', 'quantile'",
        ),
        (
            partial(tc.binned_calibration_error, Y, P, norm="l3"),
            "norm must be one of 'l1', 'l2', 'max', got 'l3'",
        ),
        (
            partial(tc.binned_calibration_error, Y, P, norm="l2", total=True),
            "total must be False unless norm is 'l1'",
        ),
        (
            partial(tc.binned_calibration_error, Y, P, norm="max", debias=True),
            "debias must be False for norm 'max'",
        ),
        (
            partial(tc.binned_calibration_error, WEIGHTED, debias=True),
            "sample_weight must be integers",
        ),
        (
            partial(tc.laplace_calibration_error, Y, P, scale=0),
            "scale must be a number above 0, finite, got 0",
        ),
        (
            partial(tc.laplace_calibration_error, Y, P, scale=math.inf),
            "scale must be a number above 0, finite",
        ),
        (
            partial(tc.laplace_calibration_error, Y, P, scale=True),
            "scale must be a number above 0, finite, got True",
        ),
        (
            partial(tc.laplace_calibration_error, Y, P, unbiased=True),
            "squared must be True with unbiased",
        ),
        (
            partial(tc.laplace_calibration_error, WEIGHTED, squared=True, unbiased=True),
            "sample_weight must be integers",
        ),
        (
            partial(tc.laplace_calibration_error, [1], [0.5], squared=True, unbiased=True),
            "y_true must have two rounds",
        ),
        (
            partial(tc.smooth_ece, Y, P, bandwidth=-1),
            "bandwidth must be a number above 0, finite, got -1",
        ),
        (
            partial(tc.lower_calibration_distance, Y, P, rtol=0),
            "rtol must be a number above 0 and below 1, got 0",
        ),
        (
            partial(tc.reliability_band, Y, P, kind="both"),
            "kind must be one of 'consistency', 'confidence'",
        ),
        (
            partial(tc.reliability_band, Y, P, level=1),
            "level must be a number above 0 and below 1, got 1",
        ),
        (
            partial(tc.reliability_band, Y, P, resamples=0),
            "resamples must be a whole number from 1",
        ),
        (
            partial(tc.reliability_band, Y, P, random_state=-1),
            "random_state must be a whole number from 0, a",
        ),
        (partial(tc.reliability_band, WEIGHTED), "sample_weight must be integers"),
        (
            partial(tc.uncertainty, "brier", Y, P),
            "measure must be a function of a Tally, got 'brier'",
        ),
        (partial(tc.Tally().coarsened, 0), "cells must be a whole number from 1"),
    ],
)
def test_refusals_name_argument_rule_and_value(call: partial, message: str) -> None:
    with pytest.raises(tc.InputError, match="^" + message):
        call()


def test_log_loss_is_infinite_when_the_impossible_happens() -> None:
    assert tc.log_loss([1, 0], [0.0, 0.5]) == math.inf
    assert tc.log_loss([0, 1], [1.0, 0.5]) == math.inf
    assert tc.log_loss([0, 1], [0.0, 1.0]) == 0
    decomposition = tc.reliability_curve([1, 0], [0.0, 0.5]).log
    assert decomposition.miscalibration == math.inf
    assert decomposition.uncertainty == pytest.approx(math.log(2))


def test_intervals_of_bins() -> None:
    bins = tc.reliability_bins([0, 1, 1, 1], [0.1, 0.1, 0.1, 0.9], n_bins=3)
    low, high = bins.intervals(0.9)
    assert (low[1], high[1]) == (0, 1)  # empty
    assert 0 < low[0] < 2 / 3 < high[0] < 1
    assert 0 < low[2] < 1 == high[2]
    # Wilson, solved the other way: the ends are z standard errors from the rate
    z = 1.6448536269514722
    for end in (low[0], high[0]):
        assert abs(end - 2 / 3) == pytest.approx(z * math.sqrt(end * (1 - end) / 3))
    narrow = bins.intervals(0.5)
    assert low[0] < narrow[0][0] < narrow[1][0] < high[0]
    with pytest.raises(tc.InputError, match="^sample_weight must be integers"):
        tc.reliability_bins(WEIGHTED).intervals()


def test_debiased_errors_are_smaller_and_right_on_average() -> None:
    rng = np.random.default_rng(0)
    plain, debiased = [], []
    for _ in range(200):
        p = rng.random(500)
        y = rng.random(500) < p
        plain.append(tc.binned_calibration_error(y, p, norm="l2") ** 2)
        debiased.append(tc.binned_calibration_error(y, p, norm="l2", debias=True) ** 2)
    assert np.mean(debiased) < 0.4 * np.mean(plain)


def test_bin_sums_are_exact_at_large_counts() -> None:
    tally = tc.Tally([0.1, 0.3, 0.7], [2**51, 1, 5], [3, 2**51, 7])
    bins = tc.reliability_bins(tally, n_bins=1)
    assert bins.forecast[0] == pytest.approx(
        float(tally.p @ tally.weights) / tally.total, rel=1e-15
    )
    assert bins.counts.tolist() == [2**52 + 16]


# the second: products on either side of a multiple of 2^64
@pytest.mark.parametrize("a", [2**30, 2**33 - 1, 2**50])
def test_isotonic_compares_large_counts_exactly(a: int) -> None:
    # (a + 2) / (2 a + 3) < (a + 1) / (2 a + 1), by so little that products of doubles do not tell
    assert float(a + 2) * float(a) == float(a + 1) * float(a + 1)
    increasing = tc.reliability_curve(tc.Tally([0.1, 0.2], [a + 1, a], [a + 2, a + 1]))
    assert increasing.zeros.tolist() == [a + 1, a]
    decreasing = tc.reliability_curve(tc.Tally([0.1, 0.2], [a, a + 1], [a + 1, a + 2]))
    assert decreasing.zeros.tolist() == [2 * a + 1]


def test_results_are_frozen() -> None:
    report = tc.measure(Y, P)
    for result, name in (
        (report, "brier"),
        (report.brier, "score"),
        (tc.reliability_bins(Y, P), "rate"),
    ):
        with pytest.raises(FrozenInstanceError):
            setattr(result, name, 0)
    for array in (
        tc.smooth_calibration_witness(Y, P).f,
        tc.reliability_bins(Y, P).rate,
        tc.reliability_curve(Y, P).rate,
    ):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


OF_TWO_OR_A_TALLY = [
    tc.arc_energy,
    tc.averaged_two_bin_error,
    tc.binned_calibration_error,
    tc.brier_score,
    tc.calibration_decision_loss,
    tc.calibration_error_by_value,
    tc.calibration_error_quantile,
    tc.calibration_in_the_large,
    tc.calibration_slope,
    tc.integrated_calibration_index,
    tc.laplace_calibration_error,
    tc.log_loss,
    tc.observed_expected_ratio,
    tc.reliability_bins,
    tc.reliability_curve,
    tc.smooth_calibration_error,
    tc.u_calibration_error,
]


def figures(found: object) -> list[object]:
    """All numbers of a result, in order, as text: bit for bit, and nan is nan."""
    if isinstance(found, np.ndarray):
        return [str(found.dtype), *map(repr, found.tolist())]
    if hasattr(found, "__dataclass_fields__"):
        return [x for name in found.__dataclass_fields__ for x in figures(getattr(found, name))]
    return [repr(found)]


@pytest.mark.parametrize("measure", OF_TWO_OR_A_TALLY)
@pytest.mark.parametrize("kind", ["int64", "float64", "bool", "uint8"])
def test_few_rounds_give_what_their_tally_gives(measure, kind: str) -> None:
    rng = np.random.default_rng(5)
    for n in (1, 9, 60, 1_023, 1_024):
        for p in (rng.random(n), rng.integers(0, 9, n) / 8, rng.random(n) ** 9):
            y = (rng.random(n) < p**1.2).astype(kind)
            few = tc.Tally.from_predictions(y, p)
            tally = tc.Tally(few.p, few.zeros, few.ones)  # which kernels take by its columns
            assert figures(measure(y, p)) == figures(measure(few)) == figures(measure(tally))


@pytest.mark.parametrize("measure", OF_TWO_OR_A_TALLY)
@pytest.mark.parametrize(
    ("y", "p"), [([0, 2], [0.5, 0.5]), ([0, 1], [0.5, 1.5]), ([0, 1], [0.5, np.nan])]
)
def test_bad_rounds_are_refused_as_by_the_tally(measure, y: list, p: list) -> None:
    with pytest.raises(tc.InputError) as by_tally:
        tc.Tally.from_predictions(y, p)
    with pytest.raises(tc.InputError) as by_measure:
        measure(np.array(y), np.array(p))
    assert str(by_measure.value) == str(by_tally.value)


def test_report_has_what_the_single_measures_give() -> None:
    tally = tc.Tally.from_predictions(Y, P)
    report = tc.measure(Y, P)
    assert report == tc.measure(tally)
    assert (report.total, report.forecasts, report.mean_outcome) == (5, 4, 0.6)
    assert report.mean_forecast == pytest.approx(np.mean(P))
    for name in (
        "smooth_calibration_error",
        "smooth_ece",
        "laplace_calibration_error",
        "calibration_error_by_value",
        "binned_calibration_error",
        "calibration_decision_loss",
        "u_calibration_error",
        "arc_energy",
    ):
        assert getattr(report, name) == getattr(tc, name)(tally), name
        if name + "_total" in report.totals and name != "arc_energy":
            assert report.totals[name + "_total"] == pytest.approx(
                getattr(tc, name)(tally, total=True)
            ), name
    assert report.debiased_calibration_error == tc.binned_calibration_error(tally, debias=True)
    assert report.quantile_calibration_error == tc.binned_calibration_error(
        tally, strategy="quantile"
    )
    assert report.largest_bin_gap == tc.binned_calibration_error(tally, norm="max")
    distance = tc.lower_calibration_distance(tally, rtol=1e-4)
    assert report.lower_distance == (distance.lower, distance.upper)
    total = tc.lower_calibration_distance(tally, rtol=1e-4, total=True)
    assert report.totals["lower_distance_total_at_most"] == pytest.approx(total.upper)
    energy = tc.arc_energy(tally, total=True).energy
    assert report.totals["arc_energy_total"] == pytest.approx(energy)
    curve = tc.reliability_curve(tally)
    assert (report.brier, report.log) == (curve.brier, curve.log)


def test_report_prints_and_becomes_plain_data() -> None:
    report = tc.measure(Y, P)
    lines = str(report).splitlines()
    assert lines[0] == "5 rounds at 4 distinct forecasts"
    arc = report.arc_energy
    figures = (report.brier.score, report.smooth_calibration_error, arc.lower_distance)
    for figure in (*figures, *report.lower_distance):
        assert any(line.endswith(f"{figure:.6f}") for line in lines), figure
    assert max(map(len, lines)) <= 80
    plain = json.loads(json.dumps(report.to_dict()))
    assert plain["brier"]["score"] == report.brier.score
    assert plain["arc_energy"]["lower_distance"] == arc.lower_distance >= report.lower_distance[0]
    assert plain["totals"] == report.totals
    weighted = tc.measure(WEIGHTED)
    assert str(weighted).startswith("weight 5 at 2 distinct forecasts")
    assert math.isnan(weighted.debiased_calibration_error)


@pytest.mark.parametrize("outcome", [0, 1])
def test_one_class_and_one_round_are_fine(outcome: int) -> None:
    for p in ([0.3], [0.0, 1.0], [0.2, 0.2, 0.9]):
        report = tc.measure([outcome] * len(p), p)
        assert report.brier.uncertainty == report.log.uncertainty == 0
        assert math.isfinite(report.smooth_ece)


def test_lower_distance_is_zero_for_calibrated_forecasts() -> None:
    bounds = tc.lower_calibration_distance([0, 1, 0, 1, 1, 1], [0.5, 0.5, 0.0, 1.0, 1.0, 1.0])
    assert bounds.lower == 0
    assert bounds.upper <= 1e-9


def test_bounds_get_closer_on_request() -> None:
    rng = np.random.default_rng(1)
    p = rng.random(200)
    y = rng.random(200) < p**2
    loose, close = (tc.lower_calibration_distance(y, p, rtol=rtol) for rtol in (0.3, 1e-8))
    assert loose.lower <= close.lower <= close.upper <= loose.upper
    assert close.upper - close.lower <= 1e-8 * close.upper


def test_bands_hold_what_they_say() -> None:
    rng = np.random.default_rng(3)
    outside = []
    for seed in range(30):
        p = rng.integers(1, 10, 400) / 10
        y = rng.random(400) < p
        band = tc.reliability_band(y, p, resamples=300, random_state=seed)
        curve = tc.reliability_curve(y, p)(band.p)
        outside.append(np.mean((curve < band.lower) | (curve > band.upper)))
    assert 0.02 < np.mean(outside) < 0.18  # 0.1, pointwise
    confidence = tc.reliability_band(y, p, kind="confidence", resamples=300)
    assert (confidence.lower <= curve + 0.05).all()
    assert (confidence.upper >= curve - 0.05).all()
    wide = tc.reliability_band(y, p, level=0.99, resamples=300, random_state=29)
    assert (wide.lower <= band.lower).all()


@pytest.mark.slow("resamples many data sets")
def test_p_values_are_uniform_for_calibrated_forecasts_and_small_for_others() -> None:
    rng = np.random.default_rng(4)
    values = []
    for seed in range(40):
        p = rng.random(300)
        sure = tc.uncertainty(
            tc.smooth_calibration_error, rng.random(300) < p, p, resamples=100, random_state=seed
        )
        values.append(sure.p_value)
    assert 0.3 < np.mean(values) < 0.7
    assert 0.2 < np.mean(np.array(values) <= 0.5) < 0.8
    off = tc.uncertainty(tc.smooth_calibration_error, rng.random(300) < p**3, p, resamples=200)
    assert off.p_value == 1 / 201
    assert off.lower < off.estimate < off.upper
    assert off.if_calibrated < off.lower


@pytest.mark.slow("resamples many data sets")
def test_interval_of_an_error_that_chance_explains_begins_at_nothing() -> None:
    rng = np.random.default_rng(5)
    p = rng.random(300)
    y, errors = (
        rng.random(300) < p,
        (tc.smooth_calibration_error, tc.binned_calibration_error, tc.smooth_ece),
    )
    for measure in errors:
        sure = tc.uncertainty(measure, y, p, resamples=100)
        assert sure.lower == 0 < sure.estimate < sure.upper
        assert sure.p_value >= 0.05
    # 0 is not what they would be
    for measure in (tc.brier_score, partial(tc.binned_calibration_error, debias=True)):
        assert tc.uncertainty(measure, y, p, resamples=100).lower > 0
    chance = tc.uncertainty(errors[0], y, p, resamples=100).p_value
    assert tc.uncertainty(errors[0], y, p, resamples=100, level=1 - 2.1 * chance).lower > 0


def test_the_same_seed_gives_the_same_and_a_generator_goes_on() -> None:
    one, two = (
        tc.uncertainty(tc.brier_score, Y, P, resamples=50, random_state=7) for _ in range(2)
    )
    assert one == two
    rng = np.random.default_rng(7)
    assert tc.uncertainty(tc.brier_score, Y, P, resamples=50, random_state=rng) == one
    assert tc.uncertainty(tc.brier_score, Y, P, resamples=50, random_state=rng) != one


def test_measures_that_pooling_changes_are_refused_when_it_would() -> None:
    rng = np.random.default_rng(6)
    p = rng.random(20_000)
    tally = tc.Tally.from_predictions(rng.random(20_000) < p, p)
    for measure in (tc.calibration_error_by_value, tc.calibration_decision_loss):
        with pytest.raises(
            tc.InputError, match="^measure must not depend on forecasts being exactly equal"
        ):
            tc.uncertainty(measure, tally, resamples=20)
        assert tc.uncertainty(measure, tally.coarsened(100), resamples=20).p_value > 0.05
    assert tc.uncertainty(tc.smooth_calibration_error, tally, resamples=20).p_value > 0.05


@pytest.mark.slow("measures many forecasts")
def test_smooth_error_has_no_drift_in_its_masses() -> None:
    # steps that round the same way each time, were masses doubles
    n = 100_000
    p = np.append(2.0**-4 + np.arange(n) * 2.0**-52 * (2**29 + 0.375), 0.5)
    tally = tc.Tally(p, np.append(np.zeros(n, int), 3 * n), np.append(np.ones(n, int), 0))
    # all ones pull up as far as they can: f = 1 on the left, down to 1 - (0.5 - v) at the end, or
    # the other way round
    places, c = [Fraction(x) for x in p.tolist()], [1 - Fraction(x) for x in p.tolist()[:-1]]
    down = Fraction(-3 * n) * places[-1]
    falling = sum(c) + down * (1 - (places[-1] - places[-2]))
    rising = -down - sum(x * (1 - (places[-1] - v)) for x, v in zip(c, places, strict=False))
    best = max(abs(falling), rising) / (4 * n)
    assert tc.smooth_calibration_error(tally) >= float(best) * (1 - 1e-14)
    witness = tc.smooth_calibration_witness(tally)
    attained = sum(Fraction(f) * x for f, x in zip(witness.f.tolist(), [*c, down], strict=True)) / (
        4 * n
    )
    assert float(attained) == pytest.approx(witness.error, rel=1e-13)


def test_resamples_are_of_many_cells() -> None:
    p = np.random.default_rng(2).random(30_000)
    band = tc.reliability_band(p < 0.5, p, resamples=2)
    assert 4000 < len(band.p) <= 4096


@pytest.mark.slow("sums over all pairs of many forecasts")
def test_laplace_on_dense_forecasts_is_the_double_sum() -> None:
    rng = np.random.default_rng(3)
    # with this scale on either side of where the series takes over
    for step in (1e-5, 1.5e-4, 4e-4):
        p = np.sort(0.2 + step * (np.arange(1500) + 0.3 * rng.random(1500)))
        y = rng.random(1500) < 0.5
        r = (y - p).astype(np.longdouble)
        pairs = (
            np.exp(-np.abs(np.subtract.outer(p, p).astype(np.longdouble)) / np.longdouble(0.1)) @ r
        ) @ r
        value = tc.laplace_calibration_error(y, p, scale=0.1, squared=True)
        assert value == pytest.approx(float(pairs / len(p) ** 2), rel=3e-13)
    n = 200_000  # a regular grid: nothing averages out
    even = tc.laplace_calibration_error(np.ones(n), np.arange(n) / n, squared=True)
    assert even == pytest.approx(_laplace_of_an_even_grid(n), rel=1e-12)


def _laplace_of_an_even_grid(n: int) -> float:
    left, total, decay = np.longdouble(0), np.longdouble(0), np.exp(-np.longdouble(1) / n)
    for i in range(n):
        r = 1 - np.longdouble(i) / n
        left *= decay
        total += r * (r + 2 * left)
        left += r
    return float(total / n**2)


def test_sums_are_compensated() -> None:
    few = 4000
    p = np.append(np.arange(few) / 8192, 0.5)
    tally = tc.Tally(p, np.append(np.ones(few, int), 2**52), np.zeros(few + 1, int))
    exact = sum(
        Fraction(x) ** 2 * z for x, z in zip(p.tolist(), tally.zeros.tolist(), strict=False)
    )
    assert tc.brier_score(
        tc.Tally(p, [*[1] * few, 2**52], [0] * (few + 1)), total=True
    ) == pytest.approx(float(exact), rel=2e-16)
    upside = tally.mirrored()  # the large count first
    assert tc.brier_score(upside, total=True) == pytest.approx(
        tc.brier_score(tally, total=True), rel=2e-16
    )


def test_witness_is_flat_where_nothing_is_at_stake() -> None:
    assert tc.smooth_calibration_witness([0, 1, 0, 1], [0.5, 0.5, 0.5, 0.5]).f.tolist() == [0.0]
    assert tc.smooth_calibration_witness(tc.Tally([0.25, 0.5], [3, 1], [1, 1])).f.tolist() == [
        0.0,
        0.0,
    ]


def test_miscalibration_is_never_negative_by_rounding() -> None:
    for n in range(1, 60):
        for k in range(n + 1):
            curve = tc.reliability_curve(tc.Tally([k / n], [n - k], [k]))
            for part in (curve.brier, curve.log):
                assert 0 <= part.miscalibration <= 1e-15
                assert part.discrimination == 0


def test_weights_of_very_different_size() -> None:
    bins = tc.reliability_bins([1, 1, 0], [0.1, 0.9, 0.9], sample_weight=[1e20, 1.0, 1.0], n_bins=2)
    assert (bins.counts.tolist(), bins.rate[1], bins.forecast[1]) == ([1e20, 2.0], 0.5, 0.9)
    log = tc.reliability_curve([0, 1], [0.5, 0.5], sample_weight=[1e-20, 1.0]).log
    assert log.miscalibration - log.discrimination + log.uncertainty == pytest.approx(log.score)
    for scale in (1e-90, 1e90):
        y, p, w = (
            [0, 0, 0, 1, 1],
            [0.99, 0.19, 0.82, 0.16, 0.41],
            np.array([0.2, 0.6, 0.4, 0.6, 0.7]),
        )
        plain, scaled = (
            tc.measure(y, p, sample_weight=w).to_dict(),
            tc.measure(y, p, sample_weight=w * scale).to_dict(),
        )
        for name in (
            "smooth_calibration_error",
            "laplace_calibration_error",
            "smooth_ece",
            "quantile_calibration_error",
        ):
            assert scaled[name] == pytest.approx(plain[name], rel=1e-12), name
        assert scaled["brier"] == pytest.approx(plain["brier"], rel=1e-12)
        for name in ("lower_distance", "smooth_error"):
            bound = plain["arc_energy"][name]
            assert scaled["arc_energy"][name] == pytest.approx(bound, rel=1e-12), name
    for weight in (1e101, 1e-101, -1.0, math.nan, math.inf):
        with pytest.raises(
            tc.InputError,
            match=r"^sample_weight must be 0, or from 1e-100 to 1e\+100, got .* at position 1",
        ):
            tc.brier_score([0, 1], [0.5, 0.5], sample_weight=[1.0, weight])


def test_intervals_of_billions_of_rounds() -> None:
    low, high = tc.reliability_bins(tc.Tally([0.5], [2**31], [2**31]), n_bins=1).intervals()
    assert low[0] == pytest.approx(0.5 - 1.2551e-05, abs=1e-8)
    assert high[0] == pytest.approx(0.5 + 1.2551e-05, abs=1e-8)


def test_extreme_options() -> None:
    assert tc.smooth_ece(Y, P, bandwidth=1e200) == pytest.approx(abs(np.mean(np.subtract(Y, P))))
    with pytest.raises(tc.InputError, match="^scale must be a number above 0, finite"):
        tc.laplace_calibration_error(Y, P, scale=10**400)
    with pytest.raises(tc.InputError, match="^measure must return a number, got LowerDistance"):
        tc.uncertainty(tc.lower_calibration_distance, Y, P)
    assert tc.uncertainty(
        tc.brier_score, Y, P, resamples=20, random_state=None
    ).estimate == tc.brier_score(Y, P)
    with pytest.raises(tc.InputError, match="^resamples must be a whole number from 20 to"):
        tc.uncertainty(tc.brier_score, Y, P, resamples=19)
    assert str(tc.measure([1], [0.5])).startswith("1 round at 1 distinct forecast\n")


def test_resampling_costs_the_same_for_a_billion_rounds() -> None:
    p = np.arange(1, 100) / 100
    tally = tc.Tally(p, np.round(1e7 * (1 - p)).astype(int), np.round(1e7 * p).astype(int))
    sure = tc.uncertainty(tc.calibration_error_by_value, tally, resamples=50)
    assert sure.estimate < 1e-8
    assert sure.p_value == 1
    assert sure.lower == 0 < sure.if_calibrated < sure.upper < 1e-3


@pytest.mark.alike("needs the finest grids")
@pytest.mark.parametrize("p", [5e-324, 1e-300, 1e-13, 1e-6, 1 - 1e-16])
@pytest.mark.parametrize("y", [0, 1])
def test_smooth_ece_ends_where_its_bandwidth_is_tiny(p, y):
    assert tc.smooth_ece([y], [p]) == pytest.approx(abs(y - p), rel=0.05, abs=2e-5)


def test_every_figure_is_in_one_part():
    tally = tc.Tally.from_predictions([0, 1, 1, 0], [0.1, 0.2, 0.7, 0.9])
    for known in ((), ("smooth_calibration_error",), ("brier", "total")):
        found = [name for part in parts_besides(Shared(tally), *known) for name in part()]
        assert sorted(found) == sorted({*FIGURES} - {*known})


def test_parts_make_the_report_that_one_thread_makes(monkeypatch):
    rng = np.random.default_rng(0)
    p = rng.random(5_000)
    tally = tc.Tally.from_predictions(rng.random(len(p)) < p, p)
    shared = tc.measure(tally)
    monkeypatch.setattr("truecast.measures.figures._TWO_THREADS", 1 << 30)
    assert repr(tc.measure(tally)) == repr(shared)


def pickled(result):
    return pickle.loads(pickle.dumps(result))


@pytest.mark.parametrize("measure", [tc.reliability_curve, tc.smooth_calibration_witness])
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickled])
def test_fields_made_when_asked_for_are_those_of_a_tally(measure, copied):
    waiting = copied(measure(np.array(Y), np.array(P)))
    with pytest.raises(AttributeError, match="has no attribute 'colour'"):
        attrgetter("colour")(waiting)
    of_tally = measure(tc.Tally.from_predictions(Y, P))
    for field in fields(of_tally):
        made, known = getattr(waiting, field.name), getattr(of_tally, field.name)
        assert getattr(waiting, field.name) is made
        if isinstance(known, np.ndarray):
            assert np.array_equal(made, known)
            assert made.dtype == known.dtype
            assert not made.flags.writeable
        else:
            assert made == known
    assert repr(copied(waiting)) == repr(of_tally)
