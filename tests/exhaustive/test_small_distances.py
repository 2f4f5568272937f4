"""The distance to calibration against all partitions and the plain lattice; its kernel in lockstep
with the latter."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from fractions import Fraction
from functools import cache
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

import truecast as tc
from truecast._core import SearchLimits
from truecast.distance import Distance, calibration_distance, search, verify_witness
from truecast.distance.problem import Found, Problem
from truecast.reference import distance as plain

Rounds = tuple[np.ndarray, np.ndarray]
Prices = tuple[np.ndarray, np.ndarray]
AMPLE = 10**9
SHARES = (0.1, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.999)  # of the memory that a search needs
CUTS = (0.0, 1e-12, 1e-4, 1e-2, 0.05, 0.3, 1.0)
STOPS = (
    {"rtol": 0.5},
    {"rtol": 0.03},
    {"time_limit": 1e-9},
    {"memory_limit": 1.0},
    *({"memory_limit": 1000.0 + 333 * k} for k in range(12)),
)


def draw(rng: np.random.Generator, most: int) -> Rounds:
    """Rounds of many kinds: tied, on grids of their own values, close together, at the ends;
    calibrated and not."""
    n = int(rng.integers(1, most + 1))
    p = rng.random(n)
    p = (
        lambda: p,
        lambda: rng.integers(0, 6, n) / 5,
        lambda: 0.5 + rng.integers(-3, 4, n) * 2.0**-53,
        lambda: rng.choice([0.0, 1.0, 5e-324, 1 - 2.0**-53], n),
        lambda: 0.3 + 1e-6 * p,
        lambda: rng.integers(0, 13, n) / 12,
        lambda: 1e-3 * p,
        lambda: 1 - 1e-2 * p,
        lambda: np.full(n, p[0]),
        lambda: rng.choice(p[:2], n),
        lambda: np.minimum(1, rng.integers(0, n + 1, n) / rng.integers(1, n + 1, n)),
        lambda: np.sort(p)[::-1] / 2 + 0.25,
    )[rng.integers(12)]()
    chance = (p, p, 1 - p, np.full(n, 0.5), p**3, p < np.median(p), np.zeros(n))[rng.integers(7)]
    return (rng.random(n) < chance).astype(np.int64), p


def fractions(p: np.ndarray) -> list[Fraction]:
    return [Fraction(x) for x in p.tolist()]


def by_lattice(y: np.ndarray, p: np.ndarray) -> Fraction:
    return plain.calibration_distance(fractions(p), y.tolist())


def check(y: np.ndarray, p: np.ndarray, exact: Fraction, **options: float) -> Distance:
    """Bounds hold in fractions, in total and per round, and the witness is calibrated and as far as
    they say."""
    found = calibration_distance(y, p, total=True, **options)
    assert Fraction(found.lower) <= exact <= Fraction(found.upper)
    lower, upper = found.means
    assert Fraction(lower) <= exact / len(y) <= Fraction(upper)
    assert verify_witness(y, p, found.witness, total=True) == found.upper
    assert found.upper - 3e-15 * len(y) <= cost_in_blocks(y, p, found) <= Fraction(found.upper)
    if not options:
        assert found.exact
        assert found.ended == "exact"
    if found.exact:
        assert found.upper - found.lower <= 1e-12 * len(y)
    return found


def cost_in_blocks(y: np.ndarray, p: np.ndarray, found: Distance) -> Fraction:
    zeros, ones = (iter(sorted(fractions(p[y == outcome]))) for outcome in (0, 1))
    cost = Fraction(0)
    for m, n in zip(found.witness.zeros.tolist(), found.witness.ones.tolist(), strict=True):
        group = [next(zeros) for _ in range(m)] + [next(ones) for _ in range(n)]
        cost += sum(abs(x - Fraction(n, m + n)) for x in group)
    assert not [*zeros, *ones]
    return cost


@cache
def all_partitions(n: int) -> np.ndarray:
    """A row a partition: its groups as sets of bits, and empty ones."""
    rows: list[list[int]] = [[]]
    for t in range(n):
        bit = 1 << t
        rows = [
            row
            for old in rows
            for row in ([*old, bit], *([g | bit * (g == h) for g in old] for h in old))
        ]
    return np.array([row + [0] * (n - len(row)) for row in rows])


def by_partitions(y: np.ndarray, steps: np.ndarray, m: int) -> Fraction:
    """The distance of forecasts steps / m, in integers over 2520 m."""
    n = len(y)
    members = np.arange(1 << n)[:, None] >> np.arange(n) & 1
    means = 2520 * m * (members @ y) // np.maximum(1, members.sum(1))
    costs = (members * np.abs(2520 * steps - means[:, None])).sum(1)
    return Fraction(int(costs[all_partitions(n)].sum(1).min()), 2520 * m)


class Here:
    """A pool of threads without threads."""

    def __init__(self, threads: int) -> None: ...

    def __enter__(self) -> Here:
        return self

    def __exit__(self, *error: object) -> None: ...

    def submit(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(function(*arguments, **options))
        return future


@pytest.fixture
def cheap_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prices that cost nothing, and are worth little: so the search has to find everything
    itself."""

    def prices(tally: tc.Tally) -> tuple[np.ndarray, ...]:
        nodes = np.array([0.0, 0.5, 1.0])
        side = np.array([nodes, nodes - 1]) * ((tally.p @ tally.weights > tally.ones.sum()) - 0.5)
        return nodes, side, np.array([tally.rate]), np.ones(1)

    monkeypatch.setattr(search, "best_prices", prices)
    monkeypatch.setattr("concurrent.futures.ThreadPoolExecutor", Here)


def test_partitions_in_integers_are_those_of_the_reference() -> None:
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 4, 5, 6, 6, 6):
        steps, y = rng.integers(0, 8, n), rng.integers(0, 2, n)
        exact = plain.brute_force_distance([Fraction(int(k), 7) for k in steps], y.tolist())
        assert by_partitions(y, steps, 7) == exact


@pytest.mark.slow("searches hundreds of small cases by brute force")
@pytest.mark.usefixtures("cheap_prices")
@pytest.mark.parametrize("seed", range(4))
def test_no_partition_is_nearer(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for k in range(1500):
        n, m = int(rng.integers(1, 10)), int(2 ** rng.integers(0, 4) if k % 3 else 2**40)
        steps = rng.integers(0, m + 1, n)
        y = (rng.random(n) < (steps / m, 1 - steps / m, 0.5)[k % 3]).astype(np.int64)
        check(y, steps / m, by_partitions(y, steps, m))


@pytest.mark.slow("searches hundreds of small cases by brute force")
@pytest.mark.parametrize("seed", range(4))
def test_no_path_is_shorter(seed: int) -> None:
    rng = np.random.default_rng(10 + seed)
    for _ in range(600):
        y, p = draw(rng, 16)
        check(y, p, by_lattice(y, p))
    for most in (30, 45, 60):
        y, p = draw(rng, most)
        check(y, p, by_lattice(y, p))


@pytest.mark.slow("searches hundreds of small cases by brute force")
@pytest.mark.usefixtures("cheap_prices")
@pytest.mark.parametrize("seed", range(4))
def test_no_path_is_shorter_whatever_the_prices(seed: int) -> None:
    rng = np.random.default_rng(20 + seed)
    for k in range(1800):
        y, p = draw(rng, 12 if k % 25 else 40)
        exact = by_lattice(y, p)
        check(y, p, exact)
        check(y, p, exact, **STOPS[k % len(STOPS)])


@pytest.mark.slow("goes through all small tallies")
@pytest.mark.usefixtures("cheap_prices")
@pytest.mark.parametrize(
    "places", [(0.0, 0.25, 0.5, 1.0), (0.125, 0.25, 0.375, 0.75), (0.0, 5e-324, 0.5, 0.75)]
)
def test_all_tallies_of_up_to_four_values(places: tuple[float, ...]) -> None:
    counts = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 1), (0, 2)]
    for sizes in product(counts, repeat=4):
        p = np.repeat(places, [z + o for z, o in sizes])
        y = np.array([bit for z, o in sizes for bit in [0] * z + [1] * o], np.int64)
        if len(y):
            check(y, p, by_lattice(y, p))


def feasible_prices(rng: np.random.Generator) -> Prices:
    """Prices that change no faster than the places, lowered until (1 - v) A + v B is nowhere
    positive."""
    nodes = np.unique(np.r_[0.0, 1.0, rng.integers(0, 25, rng.integers(1, 12)) / 24, rng.random(2)])
    slopes = rng.choice([-1.0, 0.0, 1.0], (2, len(nodes) - 1)) * (
        rng.random() if rng.integers(2) else 1
    )
    start = rng.uniform(-1, 1, (2, 1))
    prices = start + np.hstack((np.zeros((2, 1)), np.cumsum(slopes * np.diff(nodes), axis=1)))
    highest = max((1 - nodes) * prices[0] + nodes * prices[1])
    for k, (v, w) in enumerate(pairwise(nodes)):
        (a, b), (slope_a, slope_b) = prices[:, k], slopes[:, k]
        if slope_b < slope_a:
            x = np.clip(
                v - ((1 - v) * slope_a + v * slope_b + b - a) / (2 * (slope_b - slope_a)), v, w
            )
            highest = max(highest, (1 - x) * (a + slope_a * (x - v)) + x * (b + slope_b * (x - v)))
    return nodes, prices - highest - 2.0**-50 - rng.choice([0, 0, 0.01, 0.3])


def draw_prices(rng: np.random.Generator, y: np.ndarray, p: np.ndarray) -> Prices:
    kind = rng.integers(8)
    if kind == 0:
        return np.array([0.0, 1.0]), np.zeros((2, 2))
    if kind == 1:
        return np.array([0.0, 1.0]), np.array([[0.0, 1.0], [-1.0, 0.0]]) * rng.uniform(-1, 1)
    if kind == 2:
        bounds = tc.lower_calibration_distance(y, p, rtol=float(rng.choice([0.3, 1e-2, 1e-4])))
        return bounds.nodes, np.array([bounds.zero_prices, bounds.one_prices])
    return feasible_prices(rng)


class Lockstep:
    """A problem, and the least reduced cost of its chains in fractions."""

    def __init__(self, y: np.ndarray, p: np.ndarray, prices: Prices) -> None:
        self.tally = tc.Tally.from_predictions(y, p)
        self.problem = Problem.of(self.tally, *prices)
        self.ends = [self.problem, self.problem.mirrored()]
        self.rounds, self.limits = len(y), dict[int, SearchLimits]()
        self.heavy = 1 + 7 * len(y) % 5  # few values with data between their parents are heavy
        self.least = self.reduced(self.problem)
        assert self.reduced(self.ends[1]) == self.least
        assert Fraction(self.problem.worth) <= by_lattice(y, p)

    @staticmethod
    def reduced(problem: Problem) -> Fraction:
        one = 1 << problem.shift
        zeros, zero_prices, ones, one_prices = (column.tolist() for column in problem.columns)
        x, y = [Fraction(k, one) for k in zeros + ones], [0] * len(zeros) + [1] * len(ones)
        return plain.calibration_distance(x, y) - Fraction(sum(zero_prices + one_prices), one)

    def search(
        self,
        end: int,
        budget: float,
        cut: float,
        other: Found | None = None,
        profile: bool = True,
        memory: int = AMPLE,
        bridges: bool = False,
    ) -> Found:
        limits = self.limits[end] = SearchLimits(memory, 600.0)
        found = self.ends[end].search(
            limits,
            budget=budget,
            cut=cut,
            bounds=None if other is None else other.bounds,
            other=other,
            profile=profile,
            heavy=self.heavy,
            bridges=bridges,
        )
        most_loss = Fraction(1.25 * cut * self.rounds)
        most_excess = most_loss / 5 if bridges else most_loss
        loss, excess = Fraction(found.loss), Fraction(found.excess)
        assert loss <= most_loss * (1 + Fraction(1e-8))
        assert excess <= most_excess * (1 + Fraction(1e-8))
        for known in limits.progress[1:]:
            assert min(Fraction(budget) - most_loss, Fraction(known) - most_excess) <= self.least
        for known in found.bounds.lengths.tolist():
            assert min(Fraction(known), Fraction(budget) - loss) <= self.least
        if not found.ended:
            assert min(self.length(found) - excess, Fraction(budget) - loss) <= self.least
            if budget >= self.least + loss:
                assert found.length < np.inf
        if found.witness is not None:  # an upper bound, and not a loose one
            error = Fraction(self.problem.slop) + Fraction(self.rounds * budget) / 2**49
            assert found.length >= self.least - error - (loss if bridges else 0)
            # steps are followed back through nodes that got shorter since: a cell may be bridged
            # more than once, for at most `cut` a round
            error += most_loss if bridges else 0
            witness_cost = Fraction(verify_witness(self.tally, witness=found.witness, total=True))
            assert witness_cost <= Fraction(self.problem.worth) + Fraction(found.length) + error
        return found

    def sweep(self, end: int, budget: float, cut: float, other: Found | None, **how: bool) -> None:
        """With the memory that a search needs it has a chain; with less, no chain but its length,
        or nothing."""
        ample = self.search(end, budget, cut, other, **how)
        assert (ample.witness is None) == (ample.length == np.inf)
        enough = self.search(end, budget, cut, other, memory=ample.peak, **how)
        assert (enough.ended, enough.length, enough.peak) == ("", ample.length, ample.peak)
        assert (enough.witness is None) == (ample.witness is None)
        for share in SHARES:
            memory = int(share * ample.peak)
            short = self.search(end, budget, cut, other, memory=memory, **how)
            assert short.witness is None
            assert short.peak <= memory
            assert short.ended == "memory" or (short.ended, short.length) == ("", ample.length)

    def length(self, found: Found) -> Fraction:
        return Fraction(min(found.length, 4.0 * self.rounds))  # no chain is longer


@pytest.mark.slow("searches thousands of times in lockstep")
@pytest.mark.parametrize("seed", range(4))
def test_kernel_in_lockstep(seed: int) -> None:
    rng = np.random.default_rng(30 + seed)
    for k in range(450):
        y, p = draw(rng, 12 if k % 50 else 40)
        one = Lockstep(y, p, draw_prices(rng, y, p))
        least = max(float(one.least), 1e-9)
        for profile in (False, True):
            cut = float(rng.choice(CUTS) * rng.random())
            near = least + 1.25 * cut * len(y)
            for budget in (near, least * rng.random(), least * (1 + rng.random()), 2.0 * len(y)):
                end, bridges = (int(k) for k in rng.integers(2, size=2))
                one.search(end, float(budget), cut, profile=profile, bridges=bool(bridges))
        check_ever_more_closely(rng, one, least)


def check_ever_more_closely(rng: np.random.Generator, one: Lockstep, least: float) -> None:
    """Bounds from one end lose nothing in a search from the other end."""
    upper = least * (1 + float(rng.choice([0, rng.random()])))
    loss = float(rng.choice([1e-9, 1e-3, 0.05, 1])) * max(upper, 1e-6) * rng.random()
    others: list[Found | None] = [None, None]
    for _ in range(3):
        bridges = bool(rng.integers(2))
        found = [
            one.search(
                end, upper + 2 * loss, loss / (1.25 * one.rounds), others[end], bridges=bridges
            )
            for end in (0, 1)
        ]
        others = [found[1], found[0]]
        bounds = [found[1].bounds, found[0].bounds]
        # parts that do not overlap
        for v, length in zip(1 - bounds[1].values, bounds[1].lengths, strict=True):
            after = bounds[0].lengths[bounds[0].values >= v].max(initial=0.0)
            assert Fraction(min(float(length + after), upper)) <= one.least + Fraction(1, 2**50)
        loss /= rng.choice([2, 64])
        cut = loss / (1.25 * one.rounds)
        for end in (0, 1):
            one.search(end, upper + loss, cut, others[end], profile=False, bridges=bridges)
            one.search(end, upper + loss, 0.0, others[end], memory=int(rng.integers(0, 3000)))
            memory = int(rng.integers(200, 2500))
            one.search(end, upper + 2 * loss, cut, others[end], memory=memory, bridges=bridges)
        if rng.integers(8) == 0:
            one.sweep(int(rng.integers(2)), upper + loss, cut, None, bridges=bridges)
        # each has come halfway
        excess = loss / 5 if bridges else loss
        together = search._so_far([], [one.limits[0], one.limits[1]], upper + loss, excess)
        assert Fraction(together) <= one.least + Fraction(1, 2**50)


@pytest.mark.slow("searches with many limits")
def test_memory_that_is_short_costs_the_chain_but_no_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain that was not traced is looked for just beyond its length, and not over and over."""
    searches: list[list[Found]] = []
    take = search._Bracket.take

    def watched(bracket: Any, found: list[Found]) -> None:
        searches.append(found)
        take(bracket, found)

    monkeypatch.setattr(search._Bracket, "take", watched)
    monkeypatch.setattr(search._Bracket, "approach", lambda *arguments: None)  # all is left to find
    monkeypatch.setattr("concurrent.futures.ThreadPoolExecutor", Here)
    ways = set[tuple[str, str]]()
    for rounds, seed in product((20, 60, 140, 260), range(12)):
        rng = np.random.default_rng(seed)
        p = rng.random(rounds)
        y = (rng.random(rounds) < (p, p**2)[seed % 2]).astype(np.int64)
        searches.clear()
        ample = calibration_distance(y, p, total=True)
        assert ample.exact
        needed = max((one.peak for found in searches for one in found), default=0)
        for share in (*SHARES, 1.0):
            searches.clear()
            # two searches share four fifths, less what the rounds themselves take
            limit = np.ceil(2.5 * (share * needed + 128 * rounds)) + 3
            short = calibration_distance(y, p, total=True, memory_limit=limit)
            assert short.lower <= ample.upper
            assert short.upper >= ample.lower
            assert verify_witness(y, p, short.witness, total=True) == short.upper
            assert short.ended == "exact" or (short.ended == "memory" and share < 1)
            traced = "".join(map(how_traced, searches))
            assert traced.count("u") <= 3
            ways.add((traced, short.ended))
    # a chain that is found, found again and traced; and one that there is no memory for
    assert {("uut", "exact"), ("uuu", "memory")} <= ways


def how_traced(found: list[Found]) -> str:
    """Whether searches from both ends have a chain, its length, or neither."""
    if any(one.witness is not None for one in found):
        return "t"
    return "u" if any(map(search._untraced, found)) else "-"


def test_a_search_that_gave_up_hands_on_only_what_is_final() -> None:
    """It may end among the steps of a value: lengths there are not those of all steps."""
    y = [0, 1, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 1]
    offsets = [-20, 1241, 592, 1437, 239, 1169, -689, -573, 1058, 1257, -1134, -1580, -332]
    p = [2 / 7 + each * 1e-9 for each in offsets]
    exact = plain.calibration_distance([Fraction(each) for each in p], y)
    prices = np.array([[0.0, -0.25, -0.5], [0.5, 0.25, 0.0]])
    problem = Problem.of(tc.Tally.from_predictions(y, p), np.array([0.0, 0.5, 1.0]), prices)
    ends, rounds = (problem, problem.mirrored()), len(y)
    gave_up = 0
    for memory, end in product(range(600, 800, 8), (0, 1)):
        given = SearchLimits(memory, 60.0)
        cut = 0.008 / (1.25 * rounds)
        one = ends[1 - end].search(given, budget=0.1515, cut=cut, profile=True, heavy=64)
        gave_up += one.ended == "memory"
        budget, cut = 0.1435, 0.00066 / (1.25 * rounds)
        two = ends[end].search(
            SearchLimits(10**9, 60.0),
            budget=budget,
            cut=cut,
            bridges=True,
            heavy=64,
            bounds=one.bounds,
            other=one,
        )
        lower = problem.worth + min(two.length - two.excess, budget - two.loss)
        assert Fraction(lower) <= exact + Fraction(1, 2**40), (memory, end)
    assert gave_up
