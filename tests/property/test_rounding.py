"""Splittings of rounds, rounded to whole ones, against the definition in fractions
(docs/distance.md, theorem 11)."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import truecast as tc
from truecast.distance import splitting_gap
from truecast.distance.rounding import rounded
from truecast.splitting import finest_cells


def test_rare_forecasts_pass_long_spines_in_one_step() -> None:
    """Step by step this would take 10^8 nodes; the limits are below what one of them takes."""
    rounds, rate = 10**12, 1e-8
    zeros, ones = [rounds - 13_000, rounds // 100, 10], [13_000, 250, 20]
    for tally in (
        tc.Tally([rate, 3 * rate, 0.5], zeros, ones),
        tc.Tally([0.5, 1 - 3 * rate, 1 - rate], [20, 250, 13_000], zeros[::-1]),
    ):
        found = tc.calibration_distance(tally, total=True, time_limit=1e-9, memory_limit=1)
        assert found.upper - found.lower <= splitting_gap(int(tally.total)) + 1e-6 * found.upper
        assert tc.verify_witness(tally, witness=found.witness, total=True) == pytest.approx(
            found.upper
        )


Atoms = list[tuple[Fraction, Fraction]]


def _tent(u: Fraction, w: Fraction, x: Fraction) -> Fraction:
    """Of the node between neighbours u < w: 0 outside of their cell, and 1/(its denominator) at the
    node."""
    return max(Fraction(0), min(u.denominator * (x - u), w.denominator * (w - x)))


def _plain(atoms: Atoms, finest: float) -> dict[Fraction, int]:
    """Theorem 11, word for word: the groups of every value, from all tents of the tree down to the
    finest cells."""
    floors: dict[Fraction, tuple[int, Fraction, Fraction]] = {}
    cells = [(Fraction(0), Fraction(1))]
    while cells:
        u, w = cells.pop()
        if u.denominator * w.denominator >= finest:
            continue
        v = Fraction(u.numerator + w.numerator, u.denominator + w.denominator)
        floors[v] = math.floor(sum(mass * _tent(u, w, x) for x, mass in atoms)), u, w
        cells += [(u, v), (v, w)]
    groups = {v: floor for v, (floor, _, _) in floors.items()}
    for floor, *parents in floors.values():
        for parent in parents:
            if parent in groups:
                groups[parent] -= floor
    return groups


@st.composite
def splittings(draw: st.DrawFn) -> tuple[Atoms, int, int]:
    """Calibrated masses at dyadic values, with whole numbers of zeros and ones in all."""
    parts = st.tuples(st.integers(1, 63), st.integers(1, 60))
    atoms = [
        (Fraction(k, 64), Fraction(n, 4))
        for k, n in draw(st.lists(parts, max_size=8, unique_by=lambda t: t[0]))
    ]
    ones = sum((x * mass for x, mass in atoms), Fraction(0))
    zeros = sum(((1 - x) * mass for x, mass in atoms), Fraction(0))
    ends = math.ceil(zeros) - zeros, math.ceil(ones) - ones
    atoms += [(Fraction(at), mass) for at, mass in enumerate(ends) if mass]
    return sorted(atoms), math.ceil(zeros), math.ceil(ones)


@pytest.mark.slow("tries many examples")
@given(splittings(), st.sampled_from([0.3, 1.0, 4.0]))
def test_floors_of_tents_leave_an_honest_partition(splitting, depth):
    atoms, zeros, ones = splitting
    if not atoms:
        return
    finest = depth * (zeros + ones) ** (2 / 3)
    scale = 1 + Fraction(1, 4 * (zeros + ones))
    expected = _plain([(x, mass * scale) for x, mass in atoms], finest)
    assert min(expected.values(), default=0) >= 0  # floors are superadditive
    witness = rounded(
        *(np.array(column, float) for column in zip(*atoms, strict=True)), zeros, ones, finest
    )
    found = {
        Fraction(int(one), int(zero + one)): int(zero + one)
        for zero, one in zip(witness.zeros, witness.ones, strict=True)
    }
    sizes = {v: groups * v.denominator for v, groups in expected.items() if groups}
    assert {v: size for v, size in found.items() if 0 < v < 1} == sizes
    assert (witness.zeros.sum(), witness.ones.sum()) == (zeros, ones)


@pytest.mark.parametrize("size", [2, 3, 7, 30, 1_000, 123_457])
def test_groups_that_are_whole_stay_whole(size):
    """Masses that are whole groups already are taken as they are, although 1/3 is no double."""
    values, masses = np.array([1 / 3, 0.5, 6 / 7]), np.array([3.0, 2.0, 7.0]) * size
    witness = rounded(values, masses, (2 + 1 + 1) * size, (1 + 1 + 6) * size, 100.0)
    assert witness.values.tolist() == values.tolist()
    assert (witness.zeros + witness.ones).tolist() == masses.tolist()


@pytest.mark.parametrize("rounds", [10, 100, 1_000, 10_000])
@pytest.mark.parametrize("kind", ["calibrated", "rare", "narrow", "inverted", "spread"])
def test_rounding_costs_no_more_than_the_theorem_says(rounds, kind):
    rng = np.random.default_rng(rounds)
    p = {
        "rare": rng.random(rounds) ** 4 * 0.02,
        "narrow": 0.5 + 0.001 * rng.random(rounds),
        "spread": (np.arange(rounds) + 0.5) / rounds,
    }.get(kind, rng.random(rounds))
    y = rng.random(rounds) < (1 - p if kind == "inverted" else p)
    if kind == "spread":  # error diffusion: the sum of outcomes follows that of forecasts
        y = np.diff(np.floor(np.cumsum(p)), prepend=0) > 0
    lower = tc.lower_calibration_distance(y, p, total=True)
    witness = rounded(
        lower.values, lower.masses, int((~y).sum()), int(y.sum()), finest_cells(rounds)
    )
    assert (
        tc.verify_witness(y, p, witness, total=True) <= lower.upper + splitting_gap(rounds) + 1 / 8
    )


@pytest.mark.parametrize("memory", [1e3, 4e9])
def test_a_search_that_may_not_begin_is_nearly_as_good(memory):
    """Whatever the limits, the interval is no wider than theorem 12 says."""
    rng = np.random.default_rng(5)
    p = rng.random(3_000)
    y = rng.random(3_000) < p
    found = tc.calibration_distance(y, p, memory_limit=memory, time_limit=0.2)
    lower, upper = found.totals
    assert upper - lower <= splitting_gap(3_000) + 1 / 8
    assert tc.verify_witness(y, p, found.witness, total=True) <= upper
    by_value = tc.calibration_error_by_value(y, p)
    assert upper < 0.1 * by_value * 3_000


@pytest.mark.parametrize("rounds", [1 << 26, 10**9, 10**12])
def test_beyond_what_can_be_searched_the_interval_is_narrow(rounds):
    """A witness within 1.96 T^(1/3) of the lower distance, where isotonic groups alone are far
    away."""
    p = np.linspace(0, 1, 102)[1:-1]
    rng = np.random.default_rng(1)
    sizes = rng.multinomial(rounds, np.full(100, 0.01))
    ones = rng.binomial(sizes, np.clip(p + rng.choice([-0.03, 0.03], 100), 0, 1))
    tally = tc.Tally(p, sizes - ones, ones)
    found = tc.calibration_distance(tally)
    assert found.ended == "memory"
    lower, upper = found.totals
    assert upper - lower <= 1.96 * rounds ** (1 / 3) + 1e-6 * upper
    assert tc.verify_witness(tally, witness=found.witness, total=True) == upper
