"""The energy on the arc, against its definition in 200 bits, and what it proves (docs/arc.md)."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import truecast as tc
from rounds import FORECASTS, columns, exact, rounds, tally_of
from truecast import _core
from truecast.arc import LOWER_DISTANCE, energy_of
from truecast.reference import arc as plain
from truecast.reference import measures

BITS = 200
UNIT = Fraction(1, 2**53)
SUMMED = 32  # forecasts that are summed one by one; the others by halves
ROWS = rounds()
COUNTS = st.integers(0, 3) | st.integers(0, 2**40)


@st.composite
def tallies(draw: st.DrawFn) -> tc.Tally:
    """Tallies with counts of any size, 0 and 1 among the forecasts."""
    p = draw(st.lists(FORECASTS.map(abs), min_size=1, max_size=12, unique=True).map(sorted))
    counts = st.lists(COUNTS, min_size=len(p), max_size=len(p))
    zeros, ones = draw(counts), draw(counts)
    ones[0] += 1
    return tc.Tally(p, zeros, ones)


def exact_shape(q: Fraction) -> int:
    """2^200 times the factor of the kernel, rounded down; its relative error is below 2^-190."""
    one = 2**BITS
    x = one - math.isqrt((q.numerator << 2 * BITS) // q.denominator)
    top = 4 * one**3 + 6 * x * one**2 - 30 * x**2 * one + 45 * x**3
    return 121 * 16 * top // (123 * (7 * one - 4 * x) ** 2)


def exact_energy(p: list[float], r: list[Fraction]) -> tuple[Fraction, Fraction]:
    """E and the energy of the magnitudes: pair by pair."""
    rise = [exact_shape(1 - Fraction(q)) for q in p]
    fall = [exact_shape(Fraction(q)) for q in p]
    energy = gross = Fraction(0)
    for i, j in product(range(len(p)), repeat=2):
        pair = r[i] * r[j] * (rise[min(i, j)] * fall[max(i, j)])
        energy, gross = energy + pair, gross + abs(pair)
    return energy / 4**BITS, gross / 4**BITS


def residuals(tally: tc.Tally) -> tuple[list[float], list[Fraction]]:
    """As doubles, and exactly."""
    columns = zip(tally.p.tolist(), tally.zeros.tolist(), tally.ones.tolist(), strict=True)
    pairs = [
        (o * (1.0 - p) - z * p, o * (1 - Fraction(p)) - z * Fraction(p)) for p, z, o in columns
    ]
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


@pytest.mark.slow("tries many examples")
@settings(max_examples=1000)
@given(FORECASTS)
@example(0.0)
@example(2.0**-54)
@example(1 - 2.0**-53)
def test_the_shape_is_off_by_at_most_19_units(p: float) -> None:
    for found, q in ((plain.rise(p), 1 - Fraction(p)), (plain.fall(p), Fraction(p))):
        true = Fraction(exact_shape(q), 2**BITS)
        assert abs(Fraction(found) - true) <= 19 * UNIT * true


@given(FORECASTS, st.integers(0, 5), st.integers(1, 5))
def test_the_compiled_kernel_is_the_plain_one(p: float, zeros: int, ones: int) -> None:
    r = ones * (1.0 - p) - zeros * p
    found, gross, _ = _core.arc_energy(np.array([p]), np.array([zeros]), np.array([ones]))
    assert found == gross == (r * plain.rise(p)) * (r * plain.fall(p))


@pytest.mark.slow("tries many examples")
@settings(max_examples=300)
@given(tallies())
# all but cancel
@example(tc.Tally([0.4999728236586185, 0.49997282365861856], [0, 1110], [1110, 0]))
def test_energy_is_off_by_no_more_than_proved(tally: tc.Tally) -> None:
    said, true = residuals(tally)
    found, computed_gross, _ = _core.arc_energy(tally.p, tally.zeros, tally.ones)
    energy, gross = exact_energy(tally.p.tolist(), list(map(Fraction, said)))
    tiny = Fraction(1, 2**1000)  # products of what is next to nothing vanish
    assert abs(Fraction(found) - energy) <= 105 * UNIT * gross + tiny
    assert abs(Fraction(computed_gross) - gross) <= 105 * UNIT * gross + tiny
    bounds = tc.arc_energy(tally, total=True)
    assert Fraction(bounds.smooth_error) ** 2 >= Fraction(58334, 100000) ** 2 * energy
    assert Fraction(bounds.lower_distance) ** 2 >= Fraction(53552, 100000) ** 2 * energy
    off = sum(abs(Fraction(x) - y) for x, y in zip(said, true, strict=True))
    assert off <= 4 * UNIT * tally.total + tiny


@pytest.mark.slow("sums over all pairs of many forecasts")
@pytest.mark.parametrize("n", [33, 999, 2**18 + 99])  # the last by two threads
def test_energy_of_many_forecasts_is_off_by_no_more_than_proved(n: int) -> None:
    rng = np.random.default_rng(n)
    p = np.unique(0.001 + 0.998 * rng.random(n) ** 3)
    ones = rng.integers(0, 2**25, len(p))
    zeros = np.round(ones * (1 - p) / p).astype(np.int64)  # r is far smaller than its parts
    zeros[: len(p) // 2 : 2] += 1000
    tally = tc.Tally(p, zeros, ones)
    said, _ = residuals(tally)
    found, computed_gross, _ = _core.arc_energy(tally.p, tally.zeros, tally.ones)
    near = gross_near = energy = gross = 0  # of residuals times 2^100
    for q, r in zip(tally.p.tolist(), said, strict=True):
        rise, fall = exact_shape(1 - Fraction(q)), exact_shape(Fraction(q))
        whole = int(math.ldexp(r, 100))
        energy += whole * fall * (2 * near + whole * rise) >> 2 * BITS
        gross += abs(whole) * fall * (2 * gross_near + abs(whole) * rise) >> 2 * BITS
        near, gross_near = near + whole * rise, gross_near + abs(whole) * rise
    allowed = (105 + 2 * math.ceil(math.log2(len(p) / SUMMED))) * UNIT * gross
    assert allowed < Fraction(1, 2**45) * gross
    assert abs(Fraction(found) * 4**100 - energy) <= allowed
    assert abs(Fraction(computed_gross) * 4**100 - gross) <= allowed


@pytest.mark.slow("tries many examples")
@settings(max_examples=300)
@given(ROWS)
def test_energy_is_the_double_sum(rows: list) -> None:
    tally = tally_of(rows)
    counts = {
        p: (z, o)
        for p, z, o in zip(tally.p.tolist(), tally.zeros.tolist(), tally.ones.tolist(), strict=True)
    }
    expected = plain.energy(counts)
    found, mean = tc.arc_energy(tally, total=True), tc.arc_energy(*columns(rows))
    assert found.energy == pytest.approx(expected, rel=1e-11, abs=1e-11)
    assert (found.total, mean.total) == (len(rows), len(rows))
    for name in ("energy", "expected", "lower_distance", "smooth_error"):
        assert getattr(mean, name) == getattr(found, name) / len(rows)
    assert found == energy_of(tally)
    prices = [(z + o) * p * (1 - p) * plain.kernel(p, p) for p, (z, o) in counts.items()]
    assert found.expected == pytest.approx(math.fsum(prices), rel=1e-14)
    assert mean.expected <= 1 + 1e-14


def test_halves_are_the_same_by_one_thread_and_by_two() -> None:
    p = (0.5 + np.arange(2**18)) / 2**18
    ones = np.random.default_rng(5).integers(0, 2, len(p))
    whole = _core.arc_energy(p, 1 - ones, ones)
    assert whole == _core.arc_energy(p, 1 - ones, ones)
    parts = [
        _core.arc_energy(p[half], (1 - ones)[half], ones[half])
        for half in (slice(2**17), slice(2**17, None))
    ]
    assert whole[2] == parts[0][2] + parts[1][2]


@pytest.mark.slow("tries many examples")
@settings(max_examples=300)
@given(tallies() | ROWS.map(tally_of))
@example(tc.Tally([0.1], [9], [1]))  # its residual is 0 as a double, but not exactly
@example(tc.Tally([0.1, 0.3], [90, 7], [10, 3]))
def test_bounds_are_never_below_what_they_bound(tally: tc.Tally) -> None:
    found, mean = tc.arc_energy(tally, total=True), tc.arc_energy(tally)
    smooth = measures.smooth_calibration_error(exact(tally))
    assert Fraction(found.smooth_error) >= smooth
    assert Fraction(mean.smooth_error) * tally.total >= smooth
    assert found.lower_distance >= tc.lower_calibration_distance(tally, total=True).lower
    assert mean.lower_distance >= tc.lower_calibration_distance(tally).lower


@pytest.mark.slow("tries many examples")
@settings(max_examples=200)
@given(ROWS, st.data())
def test_bounds_hold_for_real_weights(rows: list, data: st.DataObject) -> None:
    sizes = st.sampled_from([0.0, 1e-100, 1e-30, 0.1, 1 / 3, 1.0, 1e30, 1e100])
    weights = data.draw(st.lists(sizes, min_size=len(rows), max_size=len(rows)))
    weights[0] = weights[0] or 1.0
    tally = tc.Tally.from_predictions(*columns(rows), sample_weight=weights)
    found, mean = tc.arc_energy(tally, total=True), tc.arc_energy(tally)
    fractions = [(p, Fraction(z), Fraction(o)) for p, z, o in exact(tally)]
    smooth = measures.smooth_calibration_error(fractions)
    assert Fraction(found.smooth_error) >= smooth
    assert Fraction(mean.smooth_error) * sum(z + o for _, z, o in fractions) >= smooth
    assert mean.lower_distance >= tc.lower_calibration_distance(tally).lower
    assert math.isnan(found.expected)
    assert math.isnan(mean.expected)


def test_bounds_are_near_where_forecasts_are_one_half() -> None:
    one = tc.arc_energy([1], [0.5])
    assert 0.5 <= one.lower_distance <= 0.54
    assert 0.5 <= one.smooth_error <= 0.59
    many = tc.arc_energy(tc.Tally([0.5], [10**9], [10**9 + 1]), total=True)
    assert many.lower_distance == pytest.approx(LOWER_DISTANCE * math.sqrt(many.energy), rel=0.02)


RULES: list[Callable[[tuple[int, ...]], float]] = [
    lambda _: 0.3,
    lambda past: (1 + sum(past)) / (2 + len(past)),
    lambda past: [0.5, 0.125, 0.875, 1.0, 0.25][len(past)],
    lambda past: 0.9 if past[-1:] == (1,) else 0.05,
    lambda past: float(past[-1]) if past else 0.5,
]


@pytest.mark.parametrize("rule", RULES)
def test_the_mean_energy_is_the_expected_one(rule: Callable[[tuple[int, ...]], float]) -> None:
    """Over all strings, each as probable as the forecasts say, whatever they make of the past."""
    energy = expected = everything = Fraction(0)
    for outcomes in product((0, 1), repeat=5):
        p = [rule(outcomes[:t]) for t in range(5)]
        chance = math.prod(
            Fraction(q) if y else 1 - Fraction(q) for q, y in zip(p, outcomes, strict=True)
        )
        found = tc.arc_energy(outcomes, p, total=True)
        everything += chance
        energy += chance * Fraction(found.energy)
        expected += chance * Fraction(found.expected)
    assert everything == 1
    assert abs(energy - expected) <= Fraction(1, 2**46) * 5 * 5 * 57


@given(ROWS, ROWS)
def test_energy_is_that_of_merged_tallies_in_any_order(rows: list, more: list) -> None:
    whole = tc.arc_energy(tally_of(rows) + tally_of(more))
    assert whole == tc.arc_energy(*columns(more + rows)) == tc.arc_energy(*columns(rows + more))
    twice = tc.arc_energy(tally_of(rows + rows), total=True)
    once = tc.arc_energy(tally_of(rows), total=True)
    assert twice.energy == pytest.approx(4 * once.energy, rel=1e-15, abs=1e-300)
    assert twice.expected == pytest.approx(2 * once.expected, rel=1e-14)


@given(ROWS)
def test_weights_of_one_half_halve_the_energy_and_change_no_bound(rows: list) -> None:
    half = tc.arc_energy(*columns(rows), sample_weight=np.full(len(rows), 0.5))
    whole = tc.arc_energy(*columns(rows))
    assert half.energy == pytest.approx(whole.energy / 2, rel=1e-15, abs=1e-300)
    assert half.lower_distance == pytest.approx(whole.lower_distance, rel=1e-15)
    assert half.smooth_error == pytest.approx(whole.smooth_error, rel=1e-15)


def test_wrong_certainties_count() -> None:
    wrong = tc.arc_energy([1, 0], [0.0, 1.0], total=True)
    assert wrong.expected == 0
    assert 56.1 < tc.arc_energy([1], [0.0]).energy < 56.3
    assert wrong.energy < 2 * 56.3  # residuals of opposite sign
    assert tc.arc_energy([0, 1], [0.0, 1.0]).energy == 0
    right = tc.arc_energy([0, 1], [0.0, 1.0])
    assert 0 <= right.lower_distance <= 1e-15
    assert energy_of(tc.Tally()) == tc.ArcEnergy(0, 0.0, 0.0, 0.0, 0.0)
