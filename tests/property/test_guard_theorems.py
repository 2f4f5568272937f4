"""The theorems of docs/adaptive.md, section 3, about the guard on the arc: what they rest on, and
games of any kind."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import truecast as tc
from truecast.reference.arc import fall, rise
from truecast.reference.guard import (
    COARSEST,
    END,
    EVERYONE,
    PARTS,
    UNIT,
    ArcGuard,
    Placed,
    angle_of,
    forecast_at,
    key_near,
    shape_at,
    spacing,
)

GREATEST = 56.18  # of the kernel
TINY = 1e-9
NASTY = [0.0, 5e-324, 1e-300, 1e-12, 2.0**-33, 0.02, 0.3, 0.5, 0.83, math.nextafter(1.0, 0.0), 1.0]
hints = st.sampled_from(NASTY) | st.floats(0, 1)


# Keys, spacings, and what knots hide.


@given(st.integers(0, END), st.integers(0, 28))
def test_a_key_is_the_nearest_to_its_forecast(key: int, fineness: int) -> None:
    step = spacing(1) >> fineness
    p = forecast_at(key)
    found = key_near(p, step)
    assert found % step == 0
    # near 1 a float does not tell forecasts with close angles apart
    blur = END * 2e-8 + 1 if p > 0.5 else 8
    assert abs(found - key) <= step / 2 + blur
    assert forecast_at(END - key) == pytest.approx(1.0 - p, abs=1e-15)
    assert p <= forecast_at(min(key + 1, END))


def test_the_spacing_shrinks_like_the_rounds_to_the_minus_two_thirds() -> None:
    for t in (*range(1, 3000), 92_681, 92_682, 2**18, 2**18 + 1, 10**7, 2**30):  # forecasts made
        d = (END // spacing(t)).bit_length() - 1
        assert 2.0**d >= max(2.0**12, 2 * t ** (2 / 3)) * (1 - 1e-12)
        assert d == COARSEST or 2.0 ** (d - 1) < 2 * t ** (2 / 3) * (1 + 1e-12)


def most_hidden(rounds: int) -> float:
    """The sum of half the spacings, as angles, over all rounds."""
    total, before, d = 0.0, 0, COARSEST
    while before < rounds:
        upto = min(rounds, math.isqrt(8 ** (d - 1)) + 1)
        total += (upto - before) * math.pi / 2 ** (d + 1)
        before, d = upto, d + 1
    return total


def test_knots_hide_little() -> None:
    assert sum(math.pi / END * spacing(t) / 2 for t in range(100_000)) == pytest.approx(
        most_hidden(100_000), rel=1e-4
    )
    rounds = sorted({int(2 ** (i / 64)) for i in range(64 * 60)})
    ratios = [most_hidden(T) / T ** (1 / 3) for T in rounds]
    assert all(most_hidden(T) <= math.pi * T / 2**13 * (1 + 1e-9) for T in rounds)
    assert 1.73 < max(ratios) <= 1.734


def test_what_knots_hide_must_be_counted() -> None:
    """Ones said just below a knot and zeros just above: no energy, and yet not calibrated."""
    guard, said, outcomes = ArcGuard(), [], []
    knot, half = END // 2, spacing(1) // 2 - 1000
    for t in range(2000):
        p = guard.predict(forecast_at(knot + (half if t % 2 else -half)))
        guard.observe(1 - t % 2)
        said.append(p)
        outcomes.append(1 - t % 2)
    energy = float(guard.energies()[EVERYONE])
    lower = tc.lower_calibration_distance(outcomes, said, total=True).lower
    assert 0.53552 * math.sqrt(max(energy, 0.0)) < 0.9 * lower < lower <= guard.lower_distance()
    assert guard.fields[EVERYONE].hidden <= most_hidden(2000)


# What the proof needs of the kernel.

ANGLES = np.linspace(0.0, math.pi, 200_001)
FORECASTS = np.sin(ANGLES / 2) ** 2
STEP = float(ANGLES[1])


class Grid(NamedTuple):
    """The factors of the kernel at every forecast, and K(p, p)."""

    rise: np.ndarray
    fall: np.ndarray
    own: np.ndarray


@pytest.fixture(scope="module")
def grid() -> Grid:
    rises, falls = (np.array([side(p) for p in FORECASTS.tolist()]) for side in (rise, fall))
    return Grid(rises, falls, rises * falls)


def test_the_kernel_changes_slowly(grid: Grid) -> None:
    """By at most 3.01 of K(k, k) for a unit of the angle; K(k, k)(1/2 - p) by 1.5, the price by
    2.3."""
    steepness = np.diff(grid.rise) / grid.rise[1:] - np.diff(grid.fall) / grid.fall[:-1]
    assert 3.0 < steepness.max() / STEP <= 3.01
    centred = grid.own * (0.5 - FORECASTS)
    assert np.max(np.abs(np.diff(centred)) / np.minimum(grid.own[1:], grid.own[:-1])) / STEP <= 1.5
    assert np.max(np.abs(np.diff(FORECASTS * (1 - FORECASTS) * grid.own))) / STEP <= 2.3
    assert 3.99 < grid.own.min() < grid.own.max() <= GREATEST


def test_prices_between_knots_are_hardly_more_than_one(grid: Grid) -> None:
    """Up to 5.4 in 10,000 more, while the spacing is coarse; 150 in all."""
    most = {12: 0.00054, 13: 0.00024, 14: 0.00009, 15: 0.00001}
    surplus, before = 0.0, 0
    for d in range(COARSEST, 40):
        half = math.pi / 2 ** (d + 1)
        price = grid.own / 4 * (np.sin(ANGLES) ** 2 + np.abs(np.sin(2 * ANGLES)) * half + half**2)
        # two angles of the grid the greatest price is at most this much more
        between = 100 * STEP**2
        assert price.max() + between <= 1 + most.get(d, 0.0)
        assert price.max() > 1 + most.get(d, -0.0001) - 0.0001
        upto = math.isqrt(8 ** (d - 1)) + 1
        surplus += most.get(d, 0.0) * (upto - before)
        before = upto
    assert 140 < surplus <= 150
    assert np.max(FORECASTS * (1 - FORECASTS) * grid.own) <= 0.99994


def test_angles_of_knots_are_off_by_less_than_is_counted() -> None:
    """In doubles, p near 1 is rounded to 2^-53: hidden counts 2^-26 more for it."""
    keys = [*range(1, 30_000), *(2**i + j for i in range(15, 39) for j in range(-3, 4))]
    off = {}
    for key in keys:
        p = forecast_at(END - key)
        off[key] = abs(2 * math.asin(math.sqrt(1.0 - p)) - math.pi * key / END)  # 1 - p is exact
        assert abs(2 * math.asin(math.sqrt(forecast_at(key))) - math.pi * key / END) <= 1e-15
    assert max(off, key=off.__getitem__) == 5215
    assert 2.0**-26 - 1e-12 < off[5215] < 2.0**-26 - 5e-13


def promised_energy(budget: float, rounds: int) -> float:
    """Theorem 10 without groups: what the energy is at most, in doubles."""
    allowed = budget * (1000 + rounds + min(0.00054 * rounds, 150))
    return allowed + 2.0**-38 * rounds**2 + 2.0**-28 * math.sqrt(budget) * (rounds + 1000) ** 1.5


def test_bounds_leave_room_for_rounding(grid: Grid) -> None:
    """The sums of theorem 10's proof, for one field and for many."""
    u = 2.0**-53
    for rounds, m, budget in [
        (2**i, m, c) for i in range(31) for m in (1, 2, 10, 300) for c in (1.05, 4.0, 1000.0)
    ]:
        growing = 2.0**-38 * (1 + m / 100) * m * rounds**2
        rest = 2.0**-28 * math.sqrt(budget) * (m * (rounds + 1000)) ** 1.5
        energy = budget * m * (1000 + rounds + 150) + growing + rest
        assert energy <= 1.02 * budget * m * (rounds + 1150)
        if rounds > 1:
            assert (
                112.4 * (92 + m) * u * m * rounds + 2.0**-40 * m
                <= 2.0**-39 * (1 + m / 100) * m * rounds
            )
        w = 2.0**-39 * (1 + m / 100) * m * rounds * (rounds + 1) / 2
        assert 2 * w <= growing
        roots = 2 / 3 * ((rounds + 1150) ** 1.5 - 1150**1.5)  # of t + 1150, over the rounds
        assert roots <= 0.68 * (rounds + 1000) ** 1.5
        residuals = 2.0**-32 * math.sqrt(GREATEST * m * 1.02 * budget * m) * roots
        assert 2 * residuals <= 0.65 * rest
        linear = rounds * (2.0**-32 * GREATEST * m + budget * m / 2**37)
        assert 2 * residuals + 2 * linear + 2.0**-50 * energy <= rest
        assert (92 + m) * u * rounds * math.sqrt(GREATEST / grid.own.min()) <= 0.0002
    assert (3.01 * 2**30 + 1.5) * math.pi / END <= 0.0093
    assert np.max(np.maximum(FORECASTS, 1 - FORECASTS) * np.sqrt(grid.own)) <= 7.4954


def promised_distance(budget: float, rounds: int) -> float:
    """Theorem 10 without groups, and what splitting may have hidden."""
    lower = 0.53552 * math.sqrt(promised_energy(budget, rounds))
    lower += most_hidden(rounds) + rounds * (2.0**-26 + 2.0**-40 + 2.0**-33)
    return lower + tc.splitting_gap(rounds)


def test_the_short_form_of_the_bound_is_above_it() -> None:
    for rounds in sorted({int(2 ** (i / 16)) for i in range(16 * 30 + 1)}):
        for budget in (1.05, 2.0, 4.0, 16.0):
            short = 0.53552 * math.sqrt(budget * (rounds + 1150)) + 3.7 * rounds ** (1 / 3)
            assert promised_distance(budget, rounds) <= short
            lower = 0.53552 * math.sqrt(budget * (rounds + 1150)) + 1.742 * rounds ** (1 / 3)
            assert promised_distance(budget, rounds) - tc.splitting_gap(rounds) <= lower
    assert 0.53552 * math.sqrt(4) <= 1.0711


def test_page_says_what_the_guard_promises() -> None:
    page = (Path(__file__).parents[2] / "docs" / "adaptive.md").read_text()
    for budget in (2, 4):
        found = re.search(rf"^\| distance / √T, C = {budget} \| (.*) \|$", page, re.MULTILINE)
        assert found
        told = [float(ratio) for ratio in found[1].split(" | ")]
        for rounds, ratio in zip((10**k for k in range(3, 10)), told, strict=True):
            bound = promised_distance(budget, rounds)
            assert ratio == math.ceil(bound / math.sqrt(rounds) * 1000) / 1000


# A forecast that is allowed can always be found.


@st.composite
def wild_fields(draw: st.DrawFn) -> ArcGuard:
    """Any residuals, of up to 2^30 rounds, and no room at all."""
    guard = ArcGuard(budget=draw(st.sampled_from([1.05, 1.5, 4.0])), exact=True, start=0.0)
    guard.made = draw(st.sampled_from([0, 100, 10**6, 2**30 - 1]))
    size = draw(st.sampled_from([1, 10**3, 10**6, 2**27]))
    keys = st.integers(0, END) | st.sampled_from([0, 1, END - 1, END, END // 2])
    for name in (EVERYONE, "a", "b")[: draw(st.integers(1, 3))]:
        residuals = draw(st.dictionaries(keys, st.integers(-size * UNIT, size * UNIT), max_size=4))
        guard.fields.setdefault(name, type(guard.fields[EVERYONE])()).residuals = {
            key: Fraction(r, UNIT) for key, r in residuals.items()
        }
    return guard


@pytest.mark.slow("tries many examples")
@settings(max_examples=150, deadline=None)
@given(guard=wild_fields(), hint=hints)
def test_a_forecast_that_is_allowed_is_found_in_any_field(guard: ArcGuard, hint: float) -> None:
    assert guard.room() == 0
    placed = guard.place(hint, [name for name in guard.fields if name is not EVERYONE])
    m = len(placed.fields)
    assert placed.w <= guard.budget * (placed.price + Fraction(m, 2**36))
    if placed.p != hint:
        assert placed.p == forecast_at(placed.key)
        up = guard.slope(hint, key_near(hint, spacing(guard.made)), placed.fields) > 0
        start = key_near(hint, spacing(guard.made))
        assert placed.key >= start if up else placed.key <= start


def test_a_hint_may_jump_over_another() -> None:
    """Where the field is wild, the order of hints is not kept; hints that are said as they are keep
    theirs."""
    guard = ArcGuard(budget=1.05, start=0.0)
    rounds = {71135395840: 10.0, 208305913856: -16.0, 615522500608: 14.0, 781415612416: 8.0}
    guard.fields[EVERYONE].residuals = {key: int(r * UNIT) for key, r in rounds.items()}
    energy = guard.energies()[EVERYONE]
    guard.fields[EVERYONE].counted = energy
    guard.prices = energy / guard.budget + 5
    grid = [i / 2000 for i in range(1, 2000)]
    said = [guard.place(hint).p for hint in grid]
    assert any(a > b for a, b in pairwise(said))
    kept = [p for p, hint in zip(said, grid, strict=True) if p == hint]
    assert len(kept) > 20
    assert kept == sorted(kept)


# Games: late outcomes, groups, in floats, checked in fractions.


def exact_energy(residuals: dict[int, int | Fraction]) -> Fraction:
    """In one pass over the knots: each with itself, and twice with those below it."""
    total = below = Fraction(0)
    for key in sorted(residuals):
        up, down = map(Fraction, shape_at(key))
        r = Fraction(residuals[key], UNIT)
        total += r * down * (2 * below + r * up)
        below += r * up
    return total


class Games(RuleBasedStateMachine):
    @initialize(
        budget=st.sampled_from([1.05, 1.5, 4.0]),
        start=st.sampled_from([0.0, 1.0, 20.0]),
        share=st.floats(0.01, 1),
    )
    def build(self, budget: float, start: float, share: float) -> None:
        self.guard = ArcGuard(budget=budget, start=start, share=share)
        self.said: list[tuple[Placed, int]] = []
        self.tickets: list[Placed] = []
        self.late = 0

    def keep(self, placed: Placed, y: int) -> None:
        self.said.append((placed, y))

    @rule(
        hint=hints,
        y=st.integers(0, 1),
        groups=st.sets(st.sampled_from("abc")),
        times=st.integers(1, 12),
    )
    def rounds(self, hint: float, y: int, groups: set[str], times: int) -> None:
        for _ in range(times):
            assert (
                self.guard.predict(hint, sorted(groups)) == self.guard.place(hint, sorted(groups)).p
            )
            placed = self.guard.asked
            assert placed is not None
            self.keep(placed, y)
            self.late += len(placed.fields) * len(self.tickets)
            self.guard.observe(y)

    @rule(hint=hints, groups=st.sets(st.sampled_from("abc")), times=st.integers(1, 6))
    def issue(self, hint: float, groups: set[str], times: int) -> None:
        for _ in range(times):
            room = self.guard.room()
            placed = self.guard.issue(hint, sorted(groups))
            assert (
                placed.w <= self.guard.budget * placed.price + self.guard.share * room + 2 / PARTS
            )
            self.late += len(placed.fields) * len(self.tickets)
            self.tickets.append(placed)

    @precondition(lambda self: self.tickets)
    @rule(which=st.integers(0, 50), y=st.integers(0, 1))
    def resolve(self, which: int, y: int) -> None:
        placed = self.tickets.pop(which % len(self.tickets))
        self.guard.resolve(placed, y)
        self.keep(placed, y)

    @precondition(lambda self: self.tickets)
    @rule(which=st.integers(0, 50))
    def give_up(self, which: int) -> None:
        self.guard.give_up(self.tickets.pop(which % len(self.tickets)))

    @invariant()
    def theorem(self) -> None:
        """Theorems 6 and 8, of energies that fractions have from the residuals."""
        guard = self.guard
        energies = {name: exact_energy(one.residuals) for name, one in guard.fields.items()}
        for name, one in guard.fields.items():
            assert one.energy - TINY <= one.counted <= one.energy + one.rounds / PARTS + TINY
            assert float(energies[name]) == pytest.approx(one.energy, rel=1e-9, abs=TINY)
        total = float(sum(energies.values(), Fraction(0)))
        potential, allowance = float(guard.potential()), float(guard.allowance())
        assert total <= potential + TINY
        # what is rounded to parts, in a round of up to four fields
        parts = (float(guard.budget) + 4) / PARTS
        assert potential <= allowance + (parts + TINY) * (1 + guard.made)
        # and residuals: section 6
        rounded = parts + 2.0**-31 * (2 * math.sqrt(GREATEST * potential) + 3 * GREATEST)
        assert float(guard.excess) <= 2 * GREATEST * self.late + rounded * guard.made

    @rule(missing=st.integers(0, 2**20), name=st.sampled_from([EVERYONE, "a", "b"]))
    def distances(self, missing: int, name: Hashable) -> None:
        """Whatever the missing outcomes, each group is within its certificate."""
        guard = self.guard
        if name not in guard.fields:
            return
        open_ends = [*guard.waiting, *guard.given_up]
        rows = [*self.said, *((placed, missing >> i & 1) for i, placed in enumerate(open_ends))]
        own = [(placed.p, y) for placed, y in rows if name in placed.fields]
        if own:
            p, y = [p for p, _ in own], [y for _, y in own]
            assert (
                tc.lower_calibration_distance(y, p, total=True).lower
                <= guard.lower_distance(name) + TINY
            )
            assert tc.smooth_calibration_error(y, p, total=True) <= guard.smooth_error(name) + TINY


Games.TestCase.settings = settings(max_examples=25, stateful_step_count=15, deadline=None)
TestGames = pytest.mark.slow("plays many games in fractions")(Games.TestCase)


def test_outcomes_held_back_cost_the_root_of_their_number() -> None:
    """An opponent asks at one hint until enough wait, then lets all end alike: the energy is as
    theorem 8 says."""
    for late in (4, 16):
        guard = ArcGuard()
        for burst in range(3):
            tickets = [guard.issue(0.3) for _ in range(late + 1)]
            for placed in tickets:
                guard.resolve(placed, burst % 2)
        pairs = 3 * late * (late + 1) / 2
        assert guard.prices <= guard.made + pairs
        energy = float(guard.energies()[EVERYONE])
        assert energy <= float(guard.allowance())
        assert 0 < guard.excess <= 2 * GREATEST * pairs


@given(p=st.floats(0, 1), y=st.integers(0, 1))
def test_residuals_are_rounded_by_half_a_unit_at_most(p: float, y: int) -> None:
    guard = ArcGuard()
    guard.predict(p)
    assert guard.asked is not None
    key = guard.asked.key
    guard.observe(y)
    kept = Fraction(guard.fields[EVERYONE].residuals[key], UNIT)
    assert abs(kept - (y - Fraction(p))) <= Fraction(1, 2 * UNIT)
    assert abs(angle_of(p) - math.pi * key / END) <= math.pi / 2**13 + 1e-7
