"""Every measure against its definition in fractions, and the laws it obeys."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import truecast as tc
from rounds import DYADIC, FORECASTS, columns, exact, rounds, tally_of
from truecast import _core
from truecast.measures.smooth_ece import by_transforms
from truecast.reference import measures as plain

ROWS = rounds()
SUMS = [
    tc.brier_score,
    tc.calibration_error_by_value,
    tc.smooth_calibration_error,
    tc.calibration_decision_loss,
    tc.u_calibration_error,
]
NEAR = {"rel": 1e-12, "abs": 1e-13}


def arc_energy(tally: tc.Tally) -> float:
    return tc.arc_energy(tally).energy


@pytest.mark.slow("tries many examples")
@settings(max_examples=500)
@given(ROWS)
def test_sums_are_those_of_the_reference(rows: list) -> None:
    tally = tally_of(rows)
    fractions = exact(tally)
    for name in (
        "calibration_error_by_value",
        "smooth_calibration_error",
        "u_calibration_error",
        "calibration_decision_loss",
    ):
        expected = float(getattr(plain, name)(fractions))
        assert getattr(tc, name)(tally, total=True) == pytest.approx(expected, **NEAR), name
        assert getattr(tc, name)(tally) == pytest.approx(expected / len(rows), **NEAR), name
    squares = sum(z * p * p + o * (1 - p) ** 2 for p, z, o in fractions)
    assert tc.brier_score(tally, total=True) == pytest.approx(float(squares), **NEAR)


@pytest.mark.slow("tries many examples")
@settings(max_examples=300)
@given(ROWS, st.sampled_from([0.05, 1.0, 7.5]))
def test_laplace_is_the_double_sum(rows: list, scale: float) -> None:
    tally = tally_of(rows)
    pairs = plain.laplace_sum(exact(tally), scale)
    square = tc.laplace_calibration_error(tally, scale=scale, squared=True)
    assert square == pytest.approx(pairs / len(rows) ** 2, rel=1e-11, abs=1e-13)
    assert tc.laplace_calibration_error(tally, scale=scale) == math.sqrt(square)
    if len(rows) > 1:
        own = sum((y - p) ** 2 for y, p in rows)
        unbiased = tc.laplace_calibration_error(tally, scale=scale, squared=True, unbiased=True)
        assert unbiased == pytest.approx(
            (pairs - own) / len(rows) / (len(rows) - 1), rel=1e-10, abs=1e-13
        )


@pytest.mark.slow("tries many examples")
@settings(max_examples=300)
@given(ROWS)
def test_witness_is_lipschitz_and_attains_the_smooth_error(rows: list) -> None:
    tally = tally_of(rows)
    witness = tc.smooth_calibration_witness(tally)
    assert witness.error == tc.smooth_calibration_error(tally)
    f, p = [Fraction(x) for x in witness.f.tolist()], [Fraction(x) for x in witness.p.tolist()]
    assert all(abs(x) <= 1 for x in f)
    assert all(
        abs(x - y) <= (q - r) * (1 + Fraction(1, 2**48)) + Fraction(1, 2**52)
        for (x, r), (y, q) in pairwise(zip(f, p, strict=True))
    )
    attained = sum(
        (o - (z + o) * q) * x for (q, z, o), x in zip(exact(tally), f, strict=True)
    ) / len(rows)
    assert float(attained) == pytest.approx(witness.error, **NEAR)
    assert np.array_equal(witness(witness.p), witness.f)


@pytest.mark.slow("tries many examples")
@settings(max_examples=300)
@given(ROWS)
def test_curve_is_the_isotonic_regression_and_scores_come_apart(rows: list) -> None:
    tally = tally_of(rows)
    curve = tc.reliability_curve(tally)
    assert (np.diff(curve.rate) > 0).all()
    assert curve(tally.p).tolist() == [float(rate) for rate in plain.isotonic_rates(exact(tally))]
    for part, score in ((curve.brier, tc.brier_score), (curve.log, tc.log_loss)):
        assert part.score == score(tally)
        assert part.miscalibration >= 0
        assert part.discrimination >= 0
        if math.isfinite(part.score):
            together = part.miscalibration - part.discrimination + part.uncertainty
            assert together == pytest.approx(part.score, rel=1e-12, abs=1e-13)
    recalibrated = tc.reliability_curve(columns(rows)[0], curve(columns(rows)[1]))
    assert recalibrated.brier.miscalibration == pytest.approx(0, abs=1e-13)


@pytest.mark.slow("tries many examples")
@settings(max_examples=300)
@given(ROWS, st.integers(1, 12), st.sampled_from(["uniform", "quantile"]))
def test_bins_follow_their_one_rule(rows: list, n_bins: int, strategy: str) -> None:
    tally = tally_of(rows)
    bins = tc.reliability_bins(*columns(rows), n_bins=n_bins, strategy=strategy)
    again = tc.reliability_bins(tally, n_bins=n_bins, strategy=strategy)
    edges = bins.edges.tolist()
    for k in range(len(bins)):
        last = k == len(bins) - 1
        inside = [
            (y, p) for y, p in rows if edges[k] <= p < edges[k + 1] or (last and p == edges[k + 1])
        ]
        assert bins.counts[k] == again.counts[k] == len(inside)
        assert bins.ones[k] == again.ones[k] == sum(y for y, _ in inside)
        if inside:
            mean = sum(Fraction(p) for _, p in inside) / len(inside)
            assert (
                bins.forecast[k]
                == again.forecast[k]
                == pytest.approx(float(mean), rel=1e-15, abs=2**-62)
            )
    if strategy == "uniform":
        assert edges == [k / n_bins for k in range(n_bins + 1)]
    else:
        assert (bins.counts > 0).all()
        for edge in edges[1:-1]:
            k = next(
                k
                for k in range(1, n_bins)
                if k * len(rows) <= n_bins * sum(p < edge for _, p in rows)
            )
            earlier = max((p for _, p in rows if p < edge))
            wanted = [
                j
                for j in range(k, n_bins)
                if j * len(rows) <= n_bins * sum(p < edge for _, p in rows)
            ]
            assert any(n_bins * sum(p < earlier for _, p in rows) < j * len(rows) for j in wanted)


@given(ROWS, st.integers(1, 12))
def test_binned_error_is_below_the_error_by_value(rows: list, n_bins: int) -> None:
    tally = tally_of(rows)
    by_norm = [
        tc.binned_calibration_error(tally, n_bins=n_bins, norm=norm) for norm in ("l1", "l2", "max")
    ]
    assert by_norm[0] <= by_norm[1] + 1e-15 <= by_norm[2] + 2e-15
    assert by_norm[0] <= tc.calibration_error_by_value(tally) + 1e-15
    for norm in ("l1", "l2"):
        assert (
            0
            <= tc.binned_calibration_error(tally, n_bins=n_bins, norm=norm, debias=True)
            <= by_norm[1] + 1e-15
        )


@pytest.mark.slow("tries many examples")
@given(rounds(DYADIC))
def test_mirrored_rounds_have_the_same_measures(rows: list) -> None:
    tally = tally_of(rows)
    mirrored = tally_of([(1 - y, 1 - p) for y, p in rows])
    assert tally.mirrored() == mirrored
    for measure in (*SUMS, tc.log_loss, tc.laplace_calibration_error, tc.smooth_ece, arc_energy):
        assert measure(mirrored) == pytest.approx(measure(tally), rel=1e-9, abs=1e-12), (
            measure.__name__
        )
    rates = tc.reliability_curve(mirrored).rate
    assert (1 - rates[::-1]).tolist() == pytest.approx(
        tc.reliability_curve(tally).rate.tolist(), abs=1e-15
    )


@pytest.mark.slow("tries many examples")
@given(st.lists(st.tuples(st.integers(0, 1), FORECASTS, FORECASTS), min_size=1, max_size=16))
def test_smooth_error_and_lower_distance_are_lipschitz(
    rows: list[tuple[int, float, float]],
) -> None:
    y, p, q = (np.array([row[k] for row in rows]) for k in range(3))
    moved = float(np.abs(p - q).mean())
    assert (
        abs(tc.smooth_calibration_error(y, p) - tc.smooth_calibration_error(y, q))
        <= 2 * moved + 1e-13
    )
    assert (
        tc.lower_calibration_distance(y, p).lower
        <= tc.lower_calibration_distance(y, q).upper + moved
    )


@given(ROWS)
def test_chain_of_smooth_error_lower_distance_and_error_by_value(rows: list) -> None:
    tally = tally_of(rows)
    smooth, distance = tc.smooth_calibration_error(tally), tc.lower_calibration_distance(tally)
    assert 0 <= distance.lower <= distance.upper
    assert smooth / 2 <= distance.upper
    assert distance.lower <= 2 * smooth + 1e-15
    assert distance.lower <= tc.calibration_error_by_value(tally) + 1e-15
    assert tc.calibration_error_by_value(tally) ** 2 <= tc.calibration_decision_loss(tally) + 1e-12
    assert tc.calibration_decision_loss(tally) <= 2 * tc.calibration_error_by_value(tally) + 1e-12
    assert tc.u_calibration_error(tally) <= tc.calibration_decision_loss(tally) + 1e-12


@pytest.mark.slow("tries many examples")
@given(ROWS)
def test_weights_of_one_half_change_no_mean(rows: list) -> None:
    y, p = columns(rows)
    half = tc.Tally.from_predictions(y, p, sample_weight=np.full(len(y), 0.5))
    whole = tc.Tally.from_predictions(y, p)
    for measure in (
        *SUMS,
        tc.log_loss,
        tc.laplace_calibration_error,
        tc.smooth_ece,
        tc.binned_calibration_error,
    ):
        assert measure(half) == pytest.approx(measure(whole), rel=1e-12, abs=1e-13), (
            measure.__name__
        )
    assert tc.reliability_curve(half).rate.tolist() == tc.reliability_curve(whole).rate.tolist()
    assert tc.lower_calibration_distance(half).upper == pytest.approx(
        tc.lower_calibration_distance(whole).upper, abs=1e-9
    )
    uneven = tc.Tally.from_predictions(y, p, sample_weight=1.0 + np.arange(len(y)))
    repeated = tc.Tally.from_predictions(y, p, sample_weight=1 + np.arange(len(y)))
    for measure in SUMS:
        assert measure(uneven, total=True) == pytest.approx(
            measure(repeated, total=True), **NEAR
        ), measure.__name__


def direct_smooth_ece(y: np.ndarray, p: np.ndarray, sigma: float) -> float:
    """The definition: residuals under a Gaussian reflected at 0 and 1, integrated on a fine
    grid."""
    t = np.linspace(0, 1, 20_001)
    smoothed = np.zeros_like(t)
    for image in range(-4, 5):
        for place in (2 * image + p, 2 * image - p):
            smoothed += np.exp(-(((t[:, None] - place) / sigma) ** 2) / 2) @ (y - p)
    smoothed = np.abs(smoothed) / (sigma * math.sqrt(2 * math.pi) * len(y))
    return float((smoothed[1:] + smoothed[:-1]).sum() / 2 / (len(t) - 1))


@pytest.mark.slow("tries many examples")
@settings(max_examples=25)
@given(rounds(most=12), st.sampled_from([0.01, 0.05, 0.3]))
def test_smooth_ece_is_the_integral_and_its_own_bandwidth(rows: list, sigma: float) -> None:
    y, p = columns(rows)
    assert tc.smooth_ece(y, p, bandwidth=sigma) == pytest.approx(
        direct_smooth_ece(y, p, sigma), rel=1e-4, abs=1e-9
    )
    value = tc.smooth_ece(y, p)
    if value > 0.005:
        assert direct_smooth_ece(y, p, value) == pytest.approx(value, rel=1e-4)


@given(st.lists(st.tuples(st.integers(0, 10**9), st.integers(1, 10**9)), min_size=1, max_size=20))
def test_scores_of_blocks_are_their_definitions(counts: list[tuple[int, int]]) -> None:
    """The Brier score in fractions; the log score to many digits."""
    zeros, ones = np.array(counts).T.copy()
    whole = [(int(zeros.sum()), int(ones.sum()))]
    found = _core.scores_of_blocks(ones / (zeros + ones), zeros, ones)
    for blocks, brier, log in ((counts, *found[:2]), (whole, *found[2:])):
        total = sum(z + o for z, o in blocks)
        squares = sum(Fraction(z * o, z + o) for z, o in blocks)
        assert brier == pytest.approx(float(squares / total), rel=1e-15)
        with localcontext(prec=50):
            entropy = sum(
                side * (Decimal(z + o) / side).ln() for z, o in blocks for side in (z, o) if side
            )
            assert log == pytest.approx(float(entropy / total), rel=2e-15)


@pytest.mark.slow("tries many examples")
@given(rounds(most=40))
def test_smooth_ece_wave_by_wave_is_that_by_transforms(rows: list) -> None:
    tally = tally_of(rows)
    found = tc.smooth_ece(*columns(rows))
    assert found == tc.smooth_ece(tally)
    if found > 0.016:  # smaller ones are always found by transforms, which takes long
        assert found == pytest.approx(by_transforms(tally), abs=1e-11)


@pytest.mark.parametrize("n", [1, 5, 30, 300, 1023])
@pytest.mark.parametrize("power", [0.3, 1.0, 3.0])
def test_smooth_ece_of_few_forecasts_at_all_bandwidths(n: int, power: float) -> None:
    rng = np.random.default_rng(n)
    p = rng.random(n) ** power
    tally = tc.Tally.from_predictions(rng.random(n) < p**1.5, p)
    assert tc.smooth_ece(tally) == pytest.approx(by_transforms(tally), abs=1e-11)
    weighted = tc.Tally(tally.p, 0.25 * tally.zeros, 0.25 * tally.ones)
    assert tc.smooth_ece(weighted) == pytest.approx(tc.smooth_ece(tally), abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_smooth_ece_solves_its_equation_by_the_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = np.append(rng.random(5), (0.0, 1.0)[: seed % 3])
    tally = tc.Tally.from_predictions(np.arange(len(p)) % 2, p)
    found = tc.smooth_ece(tally)
    cells = max(256, 1 << math.ceil(math.log2(64 / found)))
    assert plain.smoothed_residuals(exact(tally), found, cells) == pytest.approx(found, abs=1e-11)
