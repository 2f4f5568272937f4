"""The measures that are maxima, against linear programmes written from their definitions."""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate, pairwise, product

import numpy as np
import pytest
from scipy.optimize import linprog

import truecast as tc
from rounds import exact, random_tallies
from truecast.reference import measures as plain

# what the solver allows itself is 1e-7 otherwise
CLOSELY = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def solved(*arguments: object, **options: object) -> float:
    result = linprog(*arguments, **options, method="highs", options=CLOSELY)
    assert result.status == 0
    return float(result.fun)


def residuals(tally: tc.Tally) -> np.ndarray:
    return (tally.ones - tally.weights * tally.p) / tally.total


@pytest.mark.slow("solves linear programmes")
@pytest.mark.parametrize("seed", range(4))
def test_smooth_error_is_the_linear_programme(seed: int) -> None:
    for tally in random_tallies(seed, 500):
        # f_1 and the slopes, all in [-1, 1]: forecasts that are close would be lost in the solver's
        # tolerance otherwise
        f = np.tril(np.ones((len(tally.p), len(tally.p)))) * np.r_[1.0, np.diff(tally.p)]
        rows, limits = np.vstack((f, -f)), np.ones(2 * len(f))
        best = -solved(-residuals(tally) @ f, rows, limits, bounds=(-1, 1))
        # where forecasts are not close, the solver ends in a corner that is exact
        close = np.diff(tally.p).min(initial=1) < 1e-4
        assert tc.smooth_calibration_error(tally) == pytest.approx(
            best, abs=1e-8 if close else 1e-12
        )
        assert tc.smooth_calibration_error(tally, total=True) == pytest.approx(
            float(plain.smooth_calibration_error(exact(tally))), rel=1e-12, abs=1e-13
        )


def split_rounds(tally: tc.Tally, values: np.ndarray) -> float:
    """The cheapest way to move parts of rounds to these values so that every value is
    calibrated."""
    n, m = len(tally.p), len(values)
    distance = np.abs(tally.p[:, None] - values[None, :]).reshape(-1)
    from_zeros = np.kron(np.eye(n), np.ones(m))
    calibrated = np.hstack((-np.tile(np.diag(values), n), np.tile(np.diag(1 - values), n)))
    rows = np.vstack(
        (
            np.hstack((from_zeros, 0 * from_zeros)),
            np.hstack((0 * from_zeros, from_zeros)),
            calibrated,
        )
    )
    right = np.concatenate((tally.zeros, tally.ones, np.zeros(m))) / tally.total
    return solved(np.r_[distance, distance], A_eq=rows, b_eq=right, bounds=(0, None))


@pytest.mark.slow("solves linear programmes")
@pytest.mark.parametrize("seed", range(2))
def test_lower_distance_bounds_hold_and_meet(seed: int) -> None:
    for tally in random_tallies(10 + seed, 60, most=10):
        bounds = tc.lower_calibration_distance(tally, rtol=1e-8)
        values = np.unique(np.concatenate((np.linspace(0, 1, 21), tally.p, bounds.values)))
        cheapest = split_rounds(tally, values)
        assert bounds.lower <= cheapest + 1e-8  # this solver's tolerance
        assert cheapest <= bounds.upper + 1e-8
        assert bounds.upper - bounds.lower <= 2e-8
        check_witnesses(tally, bounds)


@pytest.mark.slow("solves linear programmes")
@pytest.mark.parametrize("power", [0.5, 1.0, 3.0])
def test_lower_distance_of_many_forecasts(power: float) -> None:
    rng = np.random.default_rng(int(2 * power))
    p = np.concatenate((0.3 * rng.random(2000), 0.8 + 0.2 * rng.random(1500)))  # with a hole
    tally = tc.Tally.from_predictions(rng.random(len(p)) < p**power, p)
    bounds = tc.lower_calibration_distance(tally)
    assert bounds.lower <= bounds.upper <= (1 + 1e-6) * bounds.lower
    check_witnesses(tally, bounds)
    # of few forecasts, none of them far
    few = tc.lower_calibration_distance(tally.coarsened(256), rtol=1e-6)
    assert bounds.lower <= few.upper + 1 / 256
    assert few.lower <= bounds.upper + 1 / 256


def check_witnesses(tally: tc.Tally, bounds: tc.LowerDistance) -> None:
    """In fractions: prices keep their rules up to a few units in the last place, and are worth what
    is claimed."""
    tiny = Fraction(1, 2**50)
    nodes = [Fraction(x) for x in bounds.nodes.tolist()]
    sides = [
        [Fraction(x) for x in side.tolist()] for side in (bounds.zero_prices, bounds.one_prices)
    ]
    for side in sides:  # between any two nodes, not only neighbours
        for sign in (1, -1):
            heights = [sign * a - v for v, a in zip(nodes, side, strict=True)]
            assert all(
                later <= least + tiny
                for later, least in zip(heights, accumulate(heights, min), strict=True)
            )
    for (v, a, b), (w, c, d) in pairwise(zip(nodes, *sides, strict=True)):
        # (1 - x) A + x B at the ends, and at the top of the parabola between
        assert (1 - v) * a + v * b <= tiny
        assert (1 - w) * c + w * d <= tiny
        slope_a, slope_b = (c - a) / (w - v), (d - b) / (w - v)
        if slope_b < slope_a:
            x = v - ((1 - v) * slope_a + v * slope_b + b - a) / (2 * (slope_b - slope_a))
            if v < x < w:
                assert (1 - x) * (a + slope_a * (x - v)) + x * (b + slope_b * (x - v)) <= tiny
    worth = Fraction(0)
    for p, zeros, ones in exact(tally):
        k = max(
            0, min(int(np.searchsorted(bounds.nodes, float(p), side="right")) - 1, len(nodes) - 2)
        )
        share = (p - nodes[k]) / (nodes[k + 1] - nodes[k])
        for side, count in zip(sides, (zeros, ones), strict=True):
            worth += count * (side[k] * (1 - share) + side[k + 1] * share)
    assert bounds.lower <= max(0, worth / int(tally.total))
    values, masses = (
        [Fraction(x) for x in column.tolist()] for column in (bounds.values, bounds.masses)
    )
    cost = Fraction(0)
    for ones in (False, True):
        moves = [(p, Fraction(o if ones else z, int(tally.total))) for p, z, o in exact(tally)]
        moves += [(v, -m * (v if ones else 1 - v)) for v, m in zip(values, masses, strict=True)]
        moves.sort()
        surplus = Fraction(0)
        for (here, change), (there, _) in pairwise(moves):
            surplus += change
            cost += abs(surplus) * (there - here)
        assert abs(surplus + moves[-1][1]) <= tiny
    assert cost <= bounds.upper


def test_lower_distance_in_closed_form() -> None:
    for zeros, ones in product(range(6), range(6)):
        for p in (0.0, 0.25, 0.3, 1.0):
            if zeros + ones:
                bounds = tc.lower_calibration_distance(
                    tc.Tally([p], [zeros], [ones]), rtol=1e-9, total=True
                )
                assert bounds.lower <= abs((zeros + ones) * p - ones) + 1e-13
                assert bounds.upper >= abs((zeros + ones) * p - ones) - 1e-13
                assert bounds.upper - bounds.lower <= 1e-8
    # twice the smooth error: no more is possible
    most = tc.lower_calibration_distance([0, 1], [0.1, 0.9], rtol=1e-9)
    assert most.lower <= 0.08 <= most.upper
    assert tc.smooth_calibration_error([0, 1], [0.1, 0.9]) == pytest.approx(0.04, abs=1e-15)
    apart = tc.lower_calibration_distance([0, 1], [0.9, 0.1], rtol=1e-9)
    assert apart.lower <= 0.4 <= apart.upper  # both to 1/2
    assert apart.upper - apart.lower <= 1e-8


def proper_scores(reports: np.ndarray, gain: np.ndarray) -> float:
    """The most that a proper score with values in [0, 1] on these reports can make of `gain`, by
    report and outcome."""
    n = len(reports)
    rows = []
    for x, z in product(range(n), range(n)):
        if x != z:  # at belief x, reporting z is no better
            row = np.zeros((n, 2))
            row[z] += (1 - reports[x], reports[x])
            row[x] -= (1 - reports[x], reports[x])
            rows.append(row.reshape(-1))
    constraints = {"A_ub": np.array(rows), "b_ub": np.zeros(len(rows))} if rows else {}
    return -solved(-gain.reshape(-1), bounds=(0, 1), **constraints)


def tallies_around_half() -> list[tc.Tally]:
    rng = np.random.default_rng(0)
    tallies = []
    for places in ([0, 0.5, 1], [0, 0.01, 0.49, 0.5, 0.51, 0.99, 1], [0.5], [0.25, 0.5, 0.75]):
        for k in range(40):
            zeros, ones = rng.integers(0, 4, (2, len(places)))
            scale = 1 if k % 2 else rng.random(len(places))  # real weights too
            if (zeros + ones).any():
                tallies.append(tc.Tally(places, zeros * scale, ones * scale))
    return tallies


@pytest.mark.slow("solves many linear programmes")
def test_decision_losses_are_the_linear_programmes_over_all_proper_scores() -> None:
    for tally in random_tallies(20, 240, most=7) + tallies_around_half():
        rate = tally.ones / tally.weights
        counts = np.stack((tally.zeros, tally.ones), axis=1) / tally.total
        reports = np.unique(np.r_[tally.p, rate, tally.rate])
        if np.diff(reports).min(initial=1) < 1e-4:
            continue  # below what the solver can tell apart
        swap, constant = np.zeros((len(reports), 2)), np.zeros((len(reports), 2))
        np.add.at(swap, np.searchsorted(reports, rate), counts)
        np.add.at(swap, np.searchsorted(reports, tally.p), -counts)
        np.add.at(constant, np.searchsorted(reports, tally.p), -counts)
        constant[np.searchsorted(reports, tally.rate)] += counts.sum(axis=0)
        assert tc.calibration_decision_loss(tally) == pytest.approx(
            proper_scores(reports, swap), abs=1e-8
        )
        assert tc.u_calibration_error(tally) == pytest.approx(
            proper_scores(reports, constant), abs=1e-8
        )


@pytest.mark.slow("goes through all small tallies")
def test_all_tallies_of_up_to_three_values_on_a_grid() -> None:
    counts = [(z, o) for z in range(3) for o in range(3) if z + o]
    for places in ([0.0, 0.5, 1.0], [0.25, 0.5, 0.75], [0.0, 0.125, 1.0]):
        for sizes in product(counts, repeat=3):
            tally = tc.Tally(places, [z for z, _ in sizes], [o for _, o in sizes])
            fractions = exact(tally)
            for name in (
                "smooth_calibration_error",
                "calibration_error_by_value",
                "u_calibration_error",
                "calibration_decision_loss",
            ):
                value = getattr(tc, name)(tally, total=True)
                assert value == pytest.approx(
                    float(getattr(plain, name)(fractions)), rel=1e-13, abs=1e-14
                )
            rates = tc.reliability_curve(tally)(tally.p).tolist()
            assert rates == [float(rate) for rate in plain.isotonic_rates(fractions)]
