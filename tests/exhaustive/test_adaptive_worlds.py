"""All small worlds of the ladders that split their cells, and the sums of the proofs.

docs/adaptive.md has the theorems. The plain ladders, in fractions, run beside the compiled ones.
"""

from __future__ import annotations

import copy
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import cache
from pathlib import Path

import pytest

import truecast as tc
from truecast.reference import PlainSplitWalk, calibration_distance

Told = tuple[Fraction, int]  # a forecast and its outcome


@cache
def tally_distance(tally: tuple[tuple[Told, int], ...]) -> Fraction:
    told = [pair for pair, count in tally for _ in range(count)]
    return calibration_distance([p for p, _ in told], [y for _, y in told])


def distance(told: Iterable[Told]) -> Fraction:
    """CalDist, exactly."""
    return tally_distance(tuple(sorted(Counter(told).items())))


def agree(plain: PlainSplitWalk, ladder: tc.HorizonFree) -> bool:
    n = ladder.denominator
    return (
        [g * n for g in plain.points] == ladder.points.tolist()
        and [a * n for a in plain.alpha] == ladder.biases.tolist()
        and [s * 2 * n for s in plain.spent] == ladder.spent.tolist()
        and plain.deviation == ladder.deviation
        and plain.bias_sums() == ladder.bias_sums
    )


def another(plain: PlainSplitWalk) -> PlainSplitWalk:
    new = copy.copy(plain)
    new.points, new.alpha, new.spent = plain.points[:], plain.alpha[:], plain.spent[:]
    return new


def walks(
    at: str, split: float, longest: int
) -> Iterator[tuple[tc.HorizonFree, PlainSplitWalk, tuple[Told, ...]]]:
    """The forecaster after every string of outcomes, beside the plain one."""
    waiting = [(tc.HorizonFree(at=at, split=split), PlainSplitWalk(at, Fraction(split)), ())]
    while waiting:
        f, plain, told = waiting.pop()
        yield f, plain, told
        for y in (0, 1) if len(told) < longest else ():
            g, beside = tc.HorizonFree(at=at, split=split), another(plain)
            g.load(f.state())
            p = Fraction(g.predict())
            assert beside.predict() == p
            g.observe(y)
            beside.observe(y)
            waiting.append((g, beside, (*told, (p, y))))


@pytest.mark.slow("plays all strings of outcomes")
@pytest.mark.parametrize(
    ("at", "split", "longest"),
    [("outer", 0.25, 11), ("outer", 1.0, 8), ("middle", 0.5, 9), ("middle", 0.125, 8)],
)
def test_all_strings_on_ladders_that_split(at: str, split: float, longest: int) -> None:
    worst, known = Fraction(0), tc.HorizonFree(at=at, split=split)
    promised = [known.a_priori(rounds) for rounds in range(longest + 1)]
    for f, plain, told in walks(at, split, longest):
        assert agree(plain, f)
        assert f.open_cell == plain.cell
        assert all(a <= 0 for a in plain.alpha[: plain.cell + 1])
        assert all(a >= 0 for a in plain.alpha[plain.cell + 1 :])
        assert all(g - 1 <= a <= g for g, a in zip(plain.points, plain.alpha, strict=True))
        proved = f.deviation + min(f.bias_sums)
        assert f.deviation + f.bias_sums[0] <= len(told)
        assert distance(told) <= proved <= promised[len(told)]
        worst = max(worst, proved)
    if (at, split, longest) == ("outer", 0.25, 11):
        assert worst == Fraction(33, 8)


# The sums of theorems 3 and 4, in fractions.
# of lambda = k / 2**j, by (k, j)
TABLE = {
    (1, 1): Fraction(11, 4),
    (3, 3): Fraction(7, 2),
    (1, 2): Fraction(39, 8),
    (3, 4): Fraction(23, 4),
    (1, 3): Fraction(59, 8),
    (3, 5): Fraction(71, 8),
    (1, 4): Fraction(47, 4),
    (3, 6): Fraction(113, 8),
    (1, 5): Fraction(155, 8),
    (3, 7): Fraction(189, 8),
    (1, 6): Fraction(34),
    (3, 8): Fraction(343, 8),
    (1, 7): Fraction(251, 4),
    (3, 9): Fraction(639, 8),
    (1, 8): Fraction(239, 2),
}
HALF = Fraction(1, 2)


def highest_weight(g: Fraction, low: Fraction, high: Fraction) -> Fraction:
    """At least W_v(g) = v (1 - v) + |g - v| for v from low to high, at most 1/2."""
    from_above, from_below = g - low**2, 2 * high - high**2 - g
    if g >= high:
        return from_above
    return from_below if g <= low else max(from_above, from_below)


def profit(
    r: Fraction, c: Fraction, price: Fraction, weight: tuple[Fraction, Fraction], *, mirrored: bool
) -> Fraction:
    """The largest profit of a point r <= 1/2: what its ones cost and split, less `price` for each
    round."""
    width = min(Fraction(1, r.denominator), HALF)
    best = gain = Fraction(0)
    ones = 0
    while width * (1 + 1 / max(c, width)) > price:
        needed = max(1, int(c / width))
        middle = r - width / 2
        split = highest_weight(1 - middle if mirrored else middle, *weight)
        for more in {1, needed - 1, needed} - {0}:  # linear in between
            k = ones + more
            rounds = k if r == HALF else 1 + (k - 1) / r
            best = max(best, gain + more * width + split * (more == needed) - price * rounds)
        gain += needed * width + split
        ones += needed
        width /= 2
    return best


def all_profits(c: Fraction, price: Fraction, intervals: int) -> Fraction:
    """The largest sum of theorem 3 over v, or a little more."""
    levels = 1
    while Fraction(1, 2**levels) * (1 + 1 / max(c, Fraction(1, 2**levels))) > price:
        levels += 1
    points = [Fraction(i, 2**levels) for i in range(1, 2 ** (levels - 1) + 1)]
    sums = []
    for i in range(intervals):
        weight = Fraction(i, 2 * intervals), Fraction(i + 1, 2 * intervals)
        first = max(Fraction(0), max(c, HALF) - price * max(1, 2 * c)) + highest_weight(
            HALF, *weight
        )
        sums.append(
            first
            + sum(profit(r, c, price, weight, mirrored=m) for r in points for m in (False, True))
        )
    return max(sums)


@pytest.mark.slow("computes all profits in fractions")
def test_no_ladder_earns_more_than_the_table() -> None:
    for (k, j), most in TABLE.items():
        earned = all_profits(Fraction(1, 4), Fraction(k, 2**j), 16)
        assert most - Fraction(3, 16) < earned < most


def theorem_3(c: float, price: float) -> float:
    level = -math.log2(c)
    return (
        3 / (16 * c * price) * ((c + 0.5) ** 2 + 1 / 24)
        + max(c, 0.5)
        + 1.75
        + (level - 2 + 2 ** (1 - level))
        + 2 * c
        + (2 * c + 1.5) * (math.log2(1 / price) / 4 + math.log2(1 + 1 / c) / 4 + 1.107)
        + 0.618 * (2 + 1.5 / c)
        + 1.5 * math.sqrt((4 + 3 / c) * price)
    )


def formula(n: int) -> Fraction:
    """Theorem 4's, for lambda = 1/n, with log2(n) rounded up to sixteenths."""
    sixteenths = next(i for i in range(16 * n.bit_length(), -1, -1) if 2**i <= n**16) + 1
    return Fraction(29 * n, 64) + Fraction(sixteenths, 32) + Fraction(25, 2)


@pytest.mark.slow("computes a long table")
def test_formula_is_above_the_profits() -> None:
    for c in (1.0, 0.5, 0.25, 0.125):
        for j in range(1, 7):
            assert all_profits(Fraction(c), Fraction(1, 2**j), 4) < theorem_3(c, 2.0**-j)
    for n in [*range(64, 1000), *(3**i for i in range(5, 20))]:
        assert theorem_3(0.25, 1 / n) < formula(n)


def theorem_4(rounds: int) -> Fraction:
    """At prices of the table, and around the best of the formula."""
    best = max(67, math.isqrt(64 * rounds // 29))
    table = (Fraction(k, 2**j) * rounds + high for (k, j), high in TABLE.items())
    return min(
        Fraction(rounds),
        *table,
        *(Fraction(rounds, n) + formula(n) for n in range(best - 3, best + 4)),
    )


def in_closed_form(rounds: int) -> Fraction:
    """sqrt(29)/4 sqrt(T) + log2(T)/4 + 13, rounded down by less than 2**-20."""
    root = Fraction(math.isqrt(29 * rounds << 80), 4 << 40)
    return root + Fraction(math.floor(math.log2(rounds) * 2**22) - 1, 2**24) + 13


MANY = [*range(1, 5_000), *(int(2 ** (i / 256)) for i in range(13 * 256, 35 * 256)), 1 << 35]


@pytest.mark.slow("goes through many numbers of rounds")
def test_bound_is_as_stated_for_every_number_of_rounds() -> None:
    f = tc.HorizonFree()
    before = Fraction(0)
    for rounds in MANY:
        bound = f.a_priori(rounds)
        assert before <= bound <= in_closed_form(rounds)
        assert bound <= 1 or (bound - 1) ** 2 < 4 * rounds  # the paper's
        before = bound
    assert f.a_priori(0) == 0
    assert f.a_priori((1 << 38) + 1) == (1 << 38) + 1


def test_bound_is_the_theorems() -> None:
    f = tc.HorizonFree()
    for rounds in MANY[::37]:
        assert f.a_priori(rounds) == theorem_4(rounds)


def test_page_says_what_the_bound_is() -> None:
    f, page = tc.HorizonFree(), (Path(__file__).parents[2] / "docs" / "adaptive.md").read_text()
    powers, ratios = (
        re.search(rf"^\| {name} \| (.*) \|$", page, re.MULTILINE)[1].split(" | ")  # type: ignore[index]
        for name in ("T", r"`a_priori\(T\)` / √T")
    )
    assert [power.replace(",", "") for power in powers] == [str(10**k) for k in range(2, 11)]
    assert [float(ratio) for ratio in ratios] == [
        math.ceil(f.a_priori(10**k) / Fraction(math.isqrt(10**k * 10**20), 10**10) * 10**4) / 10**4
        for k in range(2, 11)
    ]
