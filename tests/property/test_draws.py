"""Resamples: the laws they are drawn from, and the same draws in plain Python."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product
from math import comb, factorial, prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import truecast as tc
from truecast import _core, _threads
from truecast.measures.uncertainty import resampled, resampled_tallies
from truecast.reference import draws

keys = st.integers(0, 2**64 - 1)
cells = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 512).map(lambda k: k / 512)),
    min_size=1,
    max_size=40,
)


def drawn(source, keys, cells):
    out = np.empty((len(keys), cells), np.int64)
    source.draw(np.asarray(keys, np.uint64), out)
    return out


def rows(source, cells, number, seed=0):
    return drawn(source, np.random.default_rng(seed).integers(0, 1 << 64, number, np.uint64), cells)


def chi_square(seen, expected):
    """Return by how many deviations chi-square is above its mean; cells of 5 or more."""
    order = np.argsort(expected)
    seen, expected = np.asarray(seen)[order], np.asarray(expected)[order]
    starts = np.flatnonzero(np.diff(np.floor(np.cumsum(expected) / 5), prepend=-1))
    seen, expected = np.add.reduceat(seen, starts), np.add.reduceat(expected, starts)
    seen = seen[expected > 0]
    expected = expected[expected > 0]
    free = max(len(expected) - 1, 1)
    return (((seen - expected) ** 2 / expected).sum() - free) / (2 * free) ** 0.5


# -- lockstep with the reference


@settings(max_examples=40)
@given(cells, st.lists(keys, min_size=1, max_size=3))
def test_calibrated_ones_are_those_of_the_reference(of, keys):
    weights, p = map(list, zip(*of, strict=True))
    source = _core.CalibratedOnes(np.array(weights), np.array(p))
    expected = [draws.calibrated_ones(weights, p, key) for key in keys]
    assert drawn(source, keys, len(p)).tolist() == expected


@pytest.mark.slow("tries many examples")
@settings(max_examples=40)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=30), st.lists(keys, min_size=1, max_size=3))
def test_bootstraps_are_those_of_the_reference(counts, keys):
    source = _core.Bootstrap(np.array(counts))
    expected = [draws.bootstrap(counts, key) for key in keys]
    assert drawn(source, keys, len(counts)).tolist() == expected


def test_a_bootstrap_that_is_drawn_again_is_that_of_the_reference():
    counts, again = [1] * 100, 18132  # the first key with too many rounds at first
    law = draws._poisson(Fraction(0.7))
    assert sum(draws._draw(law, draws.bits_at(again, k)) for k in range(100)) > 100
    expected = draws.bootstrap(counts, again)
    assert drawn(_core.Bootstrap(np.array(counts)), [again], 100).tolist() == [expected]


@given(st.lists(st.integers(1, 12), min_size=1, max_size=3), st.data())
def test_the_farthest_stretch_is_that_of_the_reference(sizes, data):
    number = max(sizes)
    steps = st.lists(st.floats(-1e9, 1e9), min_size=number, max_size=number)
    surplus = np.cumsum([data.draw(steps) for _ in sizes], axis=1)
    variance = np.cumsum(np.abs(data.draw(steps)))
    out = np.empty(len(sizes))
    _core.farthest_off(surplus, variance, out)
    expected = [draws.farthest_off(row, variance.tolist()) for row in surplus.tolist()]
    assert out.tolist() == expected


@given(cells, st.lists(keys, min_size=1, max_size=5))
def test_smooth_errors_of_rows_are_those_of_their_tallies(of, keys):
    p = np.unique([q for _, q in of])
    both = np.random.default_rng(keys[0]).multinomial(
        50, np.full(2 * len(p), 1 / (2 * len(p))), len(keys)
    )
    zeros, ones = both[:, : len(p)], both[:, len(p) :]
    out = np.empty(len(keys))
    _core.smooth_errors(p, zeros, ones, 50.0, out)
    expected = [
        tc.smooth_calibration_error(tc.Tally(p, *row)) for row in zip(zeros, ones, strict=True)
    ]
    assert out.tolist() == expected


def test_rows_of_other_shapes_are_refused():
    p, row, out = np.array([0.25, 0.5]), np.ones((1, 2), np.int64), np.empty(1)
    for zeros in (row[:, :1], np.ones((2, 2), np.int64), np.ones((1, 4), np.int64)[:, ::2]):
        for some in ((zeros, row), (row, zeros)):
            with pytest.raises(ValueError, match="a row for each resample"):
                _core.smooth_errors(p, *some, 2.0, out)
    for surplus, variance in ((np.ones((1, 3)), p), (np.ones((2, 2)), p)):
        with pytest.raises(ValueError, match="a row for each resample"):
            _core.farthest_off(surplus, variance, out)


# -- the laws


@pytest.mark.parametrize("n", [1, 3, 30, 244, 900])
@pytest.mark.parametrize("p", [0.0, 1e-3, 0.2, 0.5, 0.97, 1.0])
def test_ones_are_binomial(n, p):
    number = 20_000
    ones = rows(_core.CalibratedOnes(np.array([n]), np.array([p])), 1, number)[:, 0]
    law = [comb(n, k) * p**k * (1 - p) ** (n - k) if p else float(k == 0) for k in range(n + 1)]
    assert ones.min() >= 0
    assert ones.max() <= n
    assert abs(chi_square(np.bincount(ones, minlength=n + 1), number * np.array(law))) < 4


@pytest.mark.parametrize("counts", [[1], [2, 1], [1, 0, 3], [2, 2, 1, 1], [12, 3, 1]])
def test_a_bootstrap_of_few_rounds_is_multinomial_completely(counts):
    total, number = sum(counts), 30_000
    seen = Counter(
        map(tuple, rows(_core.Bootstrap(np.array(counts)), len(counts), number).tolist())
    )
    possible = [row for row in product(range(total + 1), repeat=len(counts)) if sum(row) == total]
    law = [
        factorial(total)
        * prod((c / total) ** k / factorial(k) for c, k in zip(counts, row, strict=True))
        for row in possible
    ]
    assert set(seen) <= set(possible)
    assert abs(chi_square([seen[row] for row in possible], number * np.array(law))) < 4


def test_each_part_of_a_bootstrap_of_many_rounds_is_binomial():
    counts, number = np.array([700, 20, 0, 1280, 1, 8000]), 20_000
    total = int(counts.sum())
    row = rows(_core.Bootstrap(counts), len(counts), number)
    assert (row.sum(1) == total).all()
    some = ([0], [1], [2], [3], [4], [5], [0, 3], [1, 4])  # sums show how they depend on each other
    for part in some:
        q = counts[part].sum() / total
        mean, deviation = total * q, (total * q * (1 - q)) ** 0.5
        seen = row[:, part].sum(1)
        assert abs(seen.mean() - mean) <= 4 * deviation / number**0.5
        assert abs(seen.std() - deviation) <= 4 * deviation / (2 * number) ** 0.5
    below = np.bincount(row[:, 1], minlength=80)[:80]
    law = [comb(total, k) * (20 / total) ** k * (1 - 20 / total) ** (total - k) for k in range(80)]
    assert abs(chi_square(below, number * np.array(law))) < 4


def test_more_rounds_than_tables_hold_are_drawn_from_the_same_laws():
    many = tc.Tally([0.25, 0.5], [3 * 10**7, 2 * 10**7], [10**7, 2 * 10**7])
    few = tc.Tally([0.25, 0.5], [3 * 10**5, 2 * 10**5], [10**5, 2 * 10**5])
    assert few.total < _core.DRAWN_BY_TABLES < many.total
    for kind in ("consistency", "confidence"):
        spread = []
        for tally in (few, many):
            ones = np.array([ones for _, ones in resampled(tally, kind, 2000, 0)])
            off = (ones - tally.ones) / tally.total**0.5
            assert (np.abs(off.mean(0)) < 4 * off.std(0) / 2000**0.5).all()
            spread.append(off.std(0))
        assert np.allclose(*spread, rtol=0.1)


# -- what is drawn


def test_a_seed_gives_the_same_resamples_however_many_threads_draw(monkeypatch):
    rng = np.random.default_rng(0)
    tally = tc.Tally.from_predictions(rng.random(3000) < 0.4, rng.random(3000).round(2))
    for kind in ("consistency", "confidence"):
        found = []
        for allowed in (1, 2):
            monkeypatch.setattr(_threads, "threads", lambda allowed=allowed: allowed)
            found.append(np.array([*resampled(tally, kind, 100, 5)]))
        assert (found[0] == found[1]).all()
        fewer = np.array([*resampled(tally, kind, 70, 5)])
        assert (fewer == found[0][:70]).all()


def test_resampled_tallies_leave_out_forecasts_that_were_not_drawn():
    tally = tc.Tally([0.2, 0.4, 0.9], [1, 1, 0], [0, 1, 1])
    for other in resampled_tallies(tally, "confidence", 50, 0):
        assert (other.weights > 0).all()
        assert other.weights.sum() == other.total == 4
        assert set(other.p) <= set(tally.p)


@pytest.mark.parametrize(
    "make",
    [
        lambda: _core.CalibratedOnes(np.array([1, 2]), np.array([0.5])),
        lambda: _core.CalibratedOnes(np.array([-1]), np.array([0.5])),
        lambda: _core.CalibratedOnes(np.array([1]), np.array([np.nan])),
        lambda: _core.Bootstrap(np.array([_core.DRAWN_BY_TABLES, 1])),
        lambda: _core.Bootstrap(np.array([3])).draw(np.zeros(2, np.uint64), np.zeros((2, 2), int)),
    ],
)
def test_the_kernel_refuses_what_would_reach_beyond_its_memory(make):
    with pytest.raises(ValueError, match="must|for each"):
        make()
