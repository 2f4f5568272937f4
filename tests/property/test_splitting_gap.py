"""From the lower distance to the distance: lemmas, table and theorem 12 of docs/distance.md,
section 11."""

from __future__ import annotations

import _thread
import importlib.util
import math
import threading
from collections.abc import Callable
from concurrent import futures
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, pairwise, product
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import truecast as tc
from truecast.distance import search, splitting_gap
from truecast.distance.rounding import rounded
from truecast.splitting import CUBE_ROOTS, LARGE, ROWS, SCALE, THOUSAND, finest_cells

HALF = Fraction(1, 2)
EXTRA = Fraction(1, 8)  # what a quarter of a round more can cost: theorem 12 (c)
BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "splitting.py"


class Cell(NamedTuple):
    """Neighbours u < w."""

    u: Fraction
    w: Fraction

    @property
    def middle(self) -> Fraction:
        return Fraction(
            self.u.numerator + self.w.numerator, self.u.denominator + self.w.denominator
        )

    @property
    def sides(self) -> tuple[int, int]:
        return self.u.denominator, self.w.denominator

    def halves(self) -> list[Cell]:
        return [Cell(self.u, self.middle), Cell(self.middle, self.w)]


ROOT = Cell(Fraction(0), Fraction(1))


@cache
def tree(n: int, most: int) -> tuple[list[Cell], list[Cell]]:
    """Cells that are split, a * b < n and a, b <= most, and those that are not."""
    split, leaves, cells = [], [], [ROOT]
    while cells:
        cell = cells.pop()
        a, b = cell.sides
        if a * b < n and max(a, b) <= most:
            split.append(cell)
            cells += cell.halves()
        else:
            leaves.append(cell)
    return split, leaves


@cache
def tents(n: int, most: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values at 0 and at 1 of the lines that are the tents on each leaf (leaves, nodes), and the
    leaves' widths."""
    split, leaves = tree(n, most)
    lines = np.zeros((2, len(leaves), len(split)), object)
    for i, leaf in enumerate(leaves):
        for j, cell in enumerate(split):
            (a, b), (s, q) = cell.sides, (cell.u.numerator, cell.w.numerator)
            if cell.u <= leaf.u and leaf.w <= cell.middle:  # a (t - u)
                lines[:, i, j] = -s, a - s
            elif cell.middle <= leaf.u and leaf.w <= cell.w:  # b (w - t)
                lines[:, i, j] = q, q - b
    return lines[0], lines[1], np.array([leaf.w - leaf.u for leaf in leaves], object)


def cost(n: int, most: int, weights: list[Any]) -> Fraction:
    """J of the sum of these weights times the tents, exactly: on a leaf both its terms are
    constant."""
    at_zero, at_one, widths = tents(n, most)
    each = np.array(weights, object)
    return widths @ (abs(at_zero @ each) + abs(at_one @ each))


def mean_part(n: int) -> Fraction:
    cells, _ = tree(n, n)
    return sum((Fraction(min(c.sides), max(c.sides) * sum(c.sides)) for c in cells), Fraction(0))


# Lemma 3: one spine


def chain(a: int, b: int, eta: list[Any]) -> tuple[Fraction, Fraction]:
    """Variation and J of a chain of tents on the cells (a, b), (a, a + b), ... with the left end in
    common."""
    q = 1 if a == 1 else pow(a, -1, b)  # q a - s b = 1
    s = (q * a - 1) // b
    variation = total = n = Fraction(0)
    for each in eta:
        # a (t - s/a) for those before, b (q/b - t) for this one
        at_zero, at_one = each * q - n * s, n * (a - s) - each * (b - q)
        variation += abs(at_one - at_zero) / (b * (a + b))
        total += (abs(at_zero) + abs(at_one)) / (b * (a + b))
        n, b, q = n + each, a + b, q + s
    return variation + abs(n) / b, total + (abs(n) * s + abs(n) * (a - s)) / (a * b)


def spine(a: int, b: int, k: int) -> tuple[Fraction, Fraction, Fraction]:
    """The three terms of the lemma."""
    last = b + k * a
    each = sum((Fraction(1, b + j * a) for j in range(1, k + 1)), Fraction(0))
    return (
        each / 2,
        (Fraction(1, b) - Fraction(1, last)) / 4,
        (1 - Fraction(b, last) ** 2) / (4 * a),
    )


ends = st.tuples(st.integers(1, 30), st.integers(1, 200)).filter(
    lambda t: t[0] <= t[1] and math.gcd(*t) == 1
)
parts = st.fractions(-HALF, HALF, max_denominator=20)


@pytest.mark.slow("tries many examples")
@given(ends, st.lists(parts | st.sampled_from([-HALF, HALF]), min_size=1, max_size=25))
def test_a_spine_costs_no_more_than_the_lemma_says(sides, eta):
    variation, total = chain(*sides, eta)
    assert variation <= total <= sum(spine(*sides, len(eta)))


@pytest.mark.parametrize("sides", [(1, 1), (1, 2), (1, 7), (2, 3), (3, 4), (5, 21)])
@pytest.mark.parametrize("k", [1, 2, 3, 6])
def test_all_extreme_spines(sides, k):
    """J is convex, so these are enough; for them it is the variation."""
    for eta in product((-HALF, HALF), repeat=k):
        variation, total = chain(*sides, list(eta))
        assert variation == total <= sum(spine(*sides, k))


def test_no_term_of_the_lemma_is_much_too_large():
    first, second, third = spine(1, 17, 1)
    value, _ = chain(1, 17, [HALF])
    assert value > Fraction(99, 100) * first + second + third
    assert value > first + second + Fraction(99, 100) * third
    first, second, third = spine(1, 2, 1)
    assert chain(1, 2, [HALF])[0] > first + second / 2 + third


# Lemma 1 and 2: all tents


@pytest.mark.parametrize("n", [2, 3, 7, 20, 45])
def test_the_sum_of_all_tents_costs_its_variation_alone(n):
    for most in (n, math.isqrt(4 * n)):
        at_zero, at_one, _ = tents(n, most)
        everything = at_zero.sum(1), at_one.sum(1)
        assert (everything[0] * everything[1] <= 0).all()
        _, leaves = tree(n, most)
        for leaf, low, high in zip(leaves, *everything, strict=True):
            (a, b), (s, q) = leaf.sides, (leaf.u.numerator, leaf.w.numerator)
            assert (low, high) == (1 - (q - s), 1 + (b - q) - (a - s))
            for t in (leaf.u, leaf.w):
                value = low + t * (high - low)
                assert 0 <= value <= min(1, (most + 1) * t, (most + 1) * (1 - t))
    assert cost(n, n, [HALF] * len(tree(n, n)[0])) == mean_part(n)


def plain_constant(n: int) -> float:
    """H(n) from its definition, in floats."""
    k = min(n - 1, math.isqrt(16 * n))
    cells = [cell.sides for cell in tree(n, n)[0]]
    core = [sides for sides in cells if max(sides) <= k]
    first = [(a, b) for a, b in cells if b > k >= b - a]  # of the spines on one side
    spines = sum(sum(spine(a, b, -((a * b - n) // a**2))) for a, b in first)
    swing = min(
        math.sqrt(len(core) + 1 + 2 * math.log(k + 1)) / 2, sum(1 / (a + b) for a, b in core)
    )
    return float(mean_part(n)) + swing + 2 * float(spines)


@pytest.mark.parametrize("n", range(2, 7))
def test_all_extreme_roundings_of_a_small_tree(n):
    """J is convex in the parts that are lost, so it is greatest if all or nothing of a group is."""
    nodes = len(tree(n, n)[0])
    worst = max(cost(n, n, list(lost)) for lost in product((0, 1), repeat=nodes))
    assert mean_part(n) < worst <= plain_constant(n)


@pytest.mark.slow("tries many examples")
@given(st.sampled_from([7, 14, 25, 40]), st.randoms(use_true_random=False))
def test_what_rounding_down_loses_costs_no_more_than_the_constant(n, random):
    nodes = len(tree(n, n)[0])
    chance = random.random()
    lost = [
        random.choice([Fraction(random.randrange(64), 64), int(random.random() < chance)])
        for _ in range(nodes)
    ]
    assert cost(n, n, lost) <= plain_constant(n)


@pytest.mark.parametrize(
    "n", [14, 40, pytest.param(90, marks=pytest.mark.slow("rounds thousands of fractions"))]
)
def test_greedy_roundings_cost_no_more_than_the_constant(n):
    """Change one part after the other while that costs more: far above random ones."""
    at_zero, at_one, widths = (array.astype(float) for array in tents(n, n))
    rng = np.random.default_rng(n)
    bound = plain_constant(n)
    for _ in range(5):
        lost, best = rng.integers(0, 2, at_zero.shape[1]).astype(float), 0.0
        for node in np.tile(rng.permutation(len(lost)), 6):
            lost[node] = 1 - lost[node]
            value = float(widths @ (abs(at_zero @ lost) + abs(at_one @ lost)))
            lost[node], best = (lost[node], value) if value > best else (1 - lost[node], best)
        assert 0.5 * bound < best <= bound + 1e-9


# The table


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    spec = importlib.util.spec_from_file_location("splitting_benchmark", BENCHMARK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow("computes nearly all rows of a table")
def test_rows_are_those_that_are_proved(benchmark):
    """Nearly all of them; the benchmark does all, which takes half a minute."""
    few = [row for row in ROWS if row[0] <= 2_000_000]
    assert len(few) > 0.8 * len(ROWS)
    assert benchmark.constants(n for n, _ in few) == few


@pytest.mark.slow("computes many constants twice")
def test_proved_constants_are_those_of_the_definition(benchmark):
    for n, constant in benchmark.constants(range(2, 161)):
        exact = plain_constant(n)
        assert exact - 1e-9 <= constant / THOUSAND <= 1.0002 * exact + 0.001, n


def test_rows_prove_the_theorem_up_to_large(benchmark):
    cube, place = benchmark.greatest(list(ROWS))
    assert cube <= CUBE_ROOTS**3
    assert 1 <= place <= LARGE
    assert benchmark.greatest(list(ROWS), EXTRA)[0] <= CUBE_ROOTS**3
    rng = np.random.default_rng(0)
    for rounds in (int(x) for x in np.exp(rng.uniform(0, math.log(LARGE), 300))):
        assert benchmark.least(ROWS, rounds)[0] ** 3 <= cube * rounds
    assert benchmark.envelope(list(ROWS)) == list(ROWS)


def by_hand(scale: float, ratio: float) -> tuple[float, float, float]:
    """Upper bounds of section 11 for N = scale and K = ratio * N: the mean part, the core's nodes,
    the spines."""
    log, x = math.log(scale), scale / ratio
    log_x, pi2 = math.log(x), math.pi**2
    off, off_x = log + 7 / 3, log_x + 7 / 3
    mean = 12 / pi2 * (2 - math.pi / 2) * scale + 2 * math.log(2) * off + log**2 / 2 + 2 * log + 1.5
    core = (
        6 / pi2 * scale**2 * (1 + 2 * math.log(ratio))
        + 2 * ratio * scale * off
        + 2 * scale * (log + 1)
        + 1
    )
    spines = 8 / pi2 * x + log_x**2 / 2 + 7 / 3 * log_x + (log_x + 1) / ratio**2 + off_x / 2
    spines += ((1.7 + 0.6 / ratio**2) / pi2 * x + (2 + 1 / ratio**2) * off_x) / ratio**2
    return mean, core, spines


def test_by_hand_from_large_on():
    """The estimate of section 11 at N = 20,000, from which on it falls with N."""
    scale, ratio = 20_000.0, 4.25
    assert SCALE * 20_000**3 <= LARGE
    mean, core, spines = by_hand(scale, ratio)
    constant = mean + math.sqrt(core + 1 + 2 * math.log(ratio * scale + 1)) / 2 + spines
    assert constant <= 1.49267 * scale < float(SCALE) * scale
    # 3/2 SCALE^(2/3) T^(1/3), with room for an eighth of a round
    assert 1.5 * float(SCALE) ** (2 / 3) + 0.125 / LARGE ** (1 / 3) < 1.95998


@pytest.mark.parametrize("n", [100, 1_000, 30_000, 400_000])
def test_by_hand_is_above_what_is_summed(benchmark, n):
    row = benchmark.Row(n)
    for a in range(1, math.isqrt(n) + 1):
        row.add(a, np.array([k for k in range(1, a + 1) if math.gcd(k, a) == 1]))
    mean, core, spines = by_hand(math.sqrt(n), row.k / math.sqrt(n))
    room = math.log(n) ** 2
    assert row.mean < mean < row.mean + room
    assert row.core < core < row.core + 20 * math.sqrt(n) * math.log(n)
    assert row.spines < spines < row.spines + room


# The function


@pytest.mark.slow("goes through many rows")
@given(st.integers(0, LARGE - 1) | st.integers(0, 10_000))
def test_gap_is_the_least_row_rounded_up(rounds):
    exact = min(Fraction(rounds, 2 * n) + Fraction(constant, THOUSAND) for n, constant in ROWS)
    gap = splitting_gap(rounds)
    assert exact <= Fraction(gap) <= exact * (1 + Fraction(1, 2**50))
    assert Fraction(gap) <= Fraction(rounds, 2)
    assert Fraction(gap) ** 3 <= CUBE_ROOTS**3 * rounds


@given(st.integers(LARGE, 2**53))
def test_gap_of_very_many_rounds_is_rounded_up(rounds):
    cube = CUBE_ROOTS**3 * rounds
    assert cube <= Fraction(splitting_gap(rounds)) ** 3 <= cube * (1 + Fraction(1, 2**48))


def test_gap_grows_with_the_rounds():
    steps = [
        *range(3000),
        *sorted({int(1.01**k) for k in range(805, 3690)}),
        LARGE - 1,
        LARGE,
        LARGE + 1,
    ]
    gaps = [splitting_gap(rounds) for rounds in sorted(steps)]
    assert all(one <= other for one, other in pairwise(gaps))


@pytest.mark.parametrize("rounds", [-1, 1.0, True, "1", 2**53 + 1])
def test_gap_of_what_is_no_number_of_rounds(rounds):
    with pytest.raises(tc.errors.InputError, match="rounds must be a whole number from 0"):
        splitting_gap(rounds)


# The theorem


@pytest.mark.slow("goes through all small worlds")
def test_all_small_worlds_are_within_the_gap():
    """All rounds with forecasts in quarters, up to 4 of them, and in halves, up to 6: the
    difference is up to 1/2."""
    widest = 0.0
    for parts, most in ((4, 4), (2, 6)):
        for rounds in range(2, most + 1):
            for kinds in combinations_with_replacement(range(2 * parts + 2), rounds):
                y, p = np.array(kinds) % 2, np.array(kinds) // 2 / parts
                if y.min() == y.max():
                    continue
                exact, lower = (
                    measure(y, p, total=True)
                    for measure in (tc.calibration_distance, tc.lower_calibration_distance)
                )
                assert exact.exact
                assert exact.upper <= lower.lower + splitting_gap(rounds)
                widest = max(widest, exact.lower - lower.upper)
    assert 0.49 < widest < 0.51


def moved(x: np.ndarray, z: np.ndarray, sizes: np.ndarray) -> float:
    """What it costs to move points x to masses at z."""
    places = np.concatenate((x, z))
    order = np.argsort(places, kind="stable")
    between = np.cumsum(np.concatenate((np.ones(len(x)), -sizes))[order])
    return float(np.abs(between[:-1]) @ np.diff(places[order]))


def vertices(rng: np.random.Generator, n: int) -> np.ndarray:
    cells, _ = tree(60, 60)
    return np.array(
        sorted(
            float(cells[i].middle)
            for i in rng.choice(len(cells), min(n, len(cells)), replace=False)
        )
    )


MASSES: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "anywhere": lambda rng, n: np.sort(rng.random(n)),
    "vertices": vertices,
    "spaced": lambda _, n: (np.arange(n) + 0.5) / n,
    "near 0": lambda rng, n: np.sort(rng.random(n) ** 4),
    "near 1/2": lambda rng, n: 0.5 + np.sort(rng.random(n) - 0.5) ** 3,
    "one": lambda rng, _: rng.random(1),
}


@pytest.mark.parametrize("kind", MASSES)
@pytest.mark.parametrize("rounds", [3, 12, 100, 1_500])
def test_masses_rounded_down_cost_no_more_than_the_gap(kind, rounds):
    rng = np.random.default_rng(rounds)
    for places in (1, 3, round(rounds ** (1 / 3)), round(rounds ** (2 / 3)), rounds):
        for even in (True, False):
            values = MASSES[kind](rng, places)
            sizes = np.ones(len(values)) if even else rng.exponential(1, len(values))
            sizes *= rng.uniform(0.5, 1) * rounds / sizes.sum()
            zeros, ones = (math.ceil(side @ sizes - 1e-9) for side in (1 - values, values))
            values = np.concatenate(([0.0], values, [1.0]))
            ends = zeros - (1 - values[1:-1]) @ sizes, ones - values[1:-1] @ sizes
            sizes = np.maximum(0, np.concatenate((ends[:1], sizes, ends[1:])))
            witness = rounded(values, sizes, zeros, ones, finest_cells(zeros + ones))
            # forecasts anywhere: the triangle inequality is in the theorem
            for width in (0.0, 0.1, 1.0):
                p0, p1 = (np.sort(_near(rng, values, part * sizes, n, width)) for part, n in (
                    (1 - values, zeros), (values, ones)))  # fmt: skip
                split = moved(p0, values, (1 - values) * sizes) + moved(p1, values, values * sizes)
                y = np.repeat([0, 1], (zeros, ones))
                whole = tc.verify_witness(y, np.concatenate((p0, p1)), witness, total=True)
                assert whole <= split + splitting_gap(zeros + ones) + float(EXTRA) + 1e-9


def _near(
    rng: np.random.Generator, values: np.ndarray, sizes: np.ndarray, n: int, width: float
) -> np.ndarray:
    if not n:
        return np.zeros(0)
    places = rng.choice(values, n, p=sizes / sizes.sum())
    return np.clip(places + width * (rng.random(n) - 0.5), 0, 1)


def equally_spaced(rounds: int) -> tuple[np.ndarray, np.ndarray]:
    """About T^(2/3) values with about T^(1/3) rounds each; outcomes by error diffusion."""
    each = max(1, round(rounds ** (1 / 3)))
    values = -(-rounds // each)
    p = np.repeat((np.arange(values) + 0.5) / values, each)[:rounds]
    return (np.diff(np.floor(np.cumsum(p) + 0.5), prepend=0) > 0).astype(int), p


def test_equally_spaced_forecasts_are_far_apart():
    """What the theorem is about is not all rounding: 0.45 T^(1/3), found exactly."""
    y, p = equally_spaced(1728)
    lower = tc.lower_calibration_distance(y, p, total=True)
    found = tc.calibration_distance(y, p, total=True)
    assert found.exact
    assert 0.45 * 12 < found.lower - lower.upper <= splitting_gap(1728)


def drawn(kind: str, rounds: int) -> tuple[np.ndarray, np.ndarray]:
    if kind == "spaced":
        return equally_spaced(rounds)
    rng = np.random.default_rng(rounds)
    p = rng.random(rounds)
    rate = {"calibrated": p, "inverted": 1 - p, "coins": np.full(rounds, 0.5)}[kind]
    return (rng.random(rounds) < rate).astype(int), p


def interrupted(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Let Ctrl-C come while this is at work and waited for."""
    waited_for, stopped = threading.Event(), threading.Event()
    work, wait, stop = getattr(search, name), futures.wait, search._Bracket.stop

    def slow(*arguments: Any, **options: Any) -> Any:
        assert waited_for.wait(60)
        _thread.interrupt_main()
        assert stopped.wait(60)
        return work(*arguments, **options)

    def waiting(*arguments: Any) -> Any:
        waited_for.set()
        return wait(*arguments)

    def stopping(*arguments: Any) -> None:
        stop(*arguments)
        stopped.set()

    monkeypatch.setattr(search, name, slow)
    monkeypatch.setattr(futures, "wait", waiting)
    monkeypatch.setattr(search._Bracket, "stop", stopping)


@pytest.mark.alike("80 searches")
@pytest.mark.parametrize("kind", ["spaced", "calibrated", "inverted", "coins"])
@pytest.mark.parametrize("rounds", [2, 30, 700, 8_000])
@pytest.mark.parametrize("limit", ["time", "memory", "interrupted", "rounds", "interrupted rounds"])
def test_every_search_ends_with_an_interval_within_the_gap(monkeypatch, kind, rounds, limit):
    y, p = drawn(kind, rounds)
    lower = tc.lower_calibration_distance(y, p, total=True)
    options = {"time": {"time_limit": 1e-9}, "memory": {"memory_limit": 1.0}}.get(limit, {})
    if "rounds" in limit:
        monkeypatch.setattr(search, "_MOST_ROUNDS", 2)
    if "interrupted" in limit:
        interrupted(
            monkeypatch, "lower_calibration_distance" if "rounds" in limit else "best_prices"
        )
    found = tc.calibration_distance(y, p, total=True, **options)
    ended = "interrupted" if "interrupted" in limit else "memory" if limit == "rounds" else limit
    assert found.ended in (ended, "exact")
    assert found.upper <= lower.upper + splitting_gap(rounds) + float(EXTRA)
    assert found.upper - found.lower <= float(CUBE_ROOTS) * rounds ** (1 / 3) + 2e-6 * found.upper
    assert tc.verify_witness(y, p, found.witness, total=True) == found.upper
