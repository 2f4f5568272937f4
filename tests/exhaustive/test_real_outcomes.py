"""Outcomes between 0 and 1 on the ladder: theorem 10 of docs/theory.md, in fractions."""

from __future__ import annotations

from collections import defaultdict
from copy import copy
from fractions import Fraction
from functools import cache
from math import ceil, isqrt, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truecast.ladder import CELL_RULES
from truecast.reference import PlainLadder, brute_force_distance, uniform_points

HALF = Fraction(1, 2)
WORLDS = {
    "halves": (0, HALF, 1),
    "thirds": (0, Fraction(1, 3), 1),
    "near the ends": (Fraction(1, 10), 1),
}
ENDS = ("lower", "upper", "middle")


def bound(rounds: int, m: int, end: str) -> Fraction:
    """Theorem 10 (c)."""
    width = Fraction(1, 2 * m) if end == "middle" else Fraction(1, m)
    return width * rounds + Fraction(3 * m, 4) - 1 + Fraction(1, 4 * m)


def check(ladder: PlainLadder, before: int, y: Fraction) -> None:
    """Theorem 2 as theorem 10 has it: signs, sizes, one cell at most, and towards the outcome."""
    g, a, cell = ladder.points, ladder.alpha, ladder.cell
    assert a[0] == a[-1] == 0
    assert ladder.is_open(cell)
    assert abs(cell - before) <= 1
    assert all(x - 1 <= bias <= x for x, bias in zip(g, a, strict=True))
    assert all(bias <= 0 for bias in a[: cell + 1])
    assert all(bias >= 0 for bias in a[cell + 1 :])
    if g[before] < y < g[before + 1]:
        assert cell == before


@cache
def distance(rounds: tuple[tuple[Fraction, Fraction], ...]) -> Fraction:
    return brute_force_distance([p for p, _ in rounds], [y for _, y in rounds])


def observed(ladder: PlainLadder, y: Fraction) -> Fraction:
    """One-Step-Ahead's answer, with the invariant checked."""
    before = ladder.cell
    answer = ladder.observe(y)
    check(ladder, before, y)
    return answer


def branch(ladder: PlainLadder) -> PlainLadder:
    other = copy(ladder)
    other.alpha = list(ladder.alpha)
    return other


def explore(
    ladder: PlainLadder,
    values: list[Fraction],
    played: tuple[tuple[Fraction, Fraction], ...],
    longest: int,
) -> int:
    """Check every string of these values that continues from here; return how many there are."""
    certified = ladder.deviation + ladder.bias()
    assert certified <= bound(len(played), len(ladder.points) - 1, ladder.forecast)
    if len(played) <= 5:
        assert distance(tuple(sorted(played))) <= certified
    if len(played) == longest:
        return 1
    strings = 1
    for y in values:
        after = branch(ladder)
        said = after.predict()
        observed(after, y)
        strings += explore(after, values, (*played, (said, y)), longest)
    return strings


@pytest.mark.slow("plays all strings of outcomes")
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("world", WORLDS)
def test_real_outcomes_on_all_strings(world: str, end: str) -> None:
    """For D + A to 9 rounds where outcomes are halves; for the distance by its definition to 5."""
    values = [Fraction(y) for y in WORLDS[world]]
    most = 9 if world == "halves" else 6
    for m, rule, longest in [
        (1, "walk", 5),
        (2, "lowest", 6),
        (3, "walk", most),
        (3, "highest", 6),
        (4, "walk", 6),
    ]:
        strings = explore(PlainLadder(uniform_points(m), end, rule), values, (), longest)
        assert strings == sum(len(values) ** rounds for rounds in range(longest + 1))


@pytest.mark.slow("tries many examples")
@given(
    y=st.lists(st.fractions(0, 1, max_denominator=30), max_size=60),
    m=st.integers(1, 9),
    end=st.sampled_from(ENDS),
    rule=st.sampled_from(list(CELL_RULES)),
)
def test_real_outcomes_are_answered_by_a_nearly_calibrated_sequence(
    y: list[Fraction], m: int, end: str, rule: str
) -> None:
    """A is its calibration error by value, as the proof says, and D is how far it is from what was
    said."""
    ladder = PlainLadder(uniform_points(m), end, rule)
    errors: defaultdict[Fraction, Fraction] = defaultdict(Fraction)
    deviation = Fraction(0)
    for outcome in y:
        said, answer = ladder.predict(), observed(ladder, outcome)
        errors[answer] += answer - outcome
        deviation += abs(said - answer)
    assert all(error == 0 for answer, error in errors.items() if answer not in ladder.points)
    assert sum(map(abs, errors.values())) == ladder.bias()
    assert ladder.deviation == deviation
    assert ladder.deviation + ladder.bias() <= bound(len(y), m, end)


def test_the_grids_of_theorem_10_have_the_bounds_that_are_stated() -> None:
    for rounds in range(1, 5000):
        root = sqrt(rounds)
        ends = isqrt(rounds - 1) + 1
        assert bound(rounds, ends, "lower") <= 1.75 * root < 2 * root + 1
        middle = max(1, ceil(sqrt(2 * rounds / 3) - 0.5))
        assert bound(rounds, middle, "middle") <= sqrt(1.5 * rounds)
