"""The calibration game against brute force: every history, every cell, and answers to adversaries
in fractions."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import pairwise, product
from math import comb
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

import truecast as tc
from truecast.arena.forecasters.minimax import Minimax
from truecast.arena.minimax import farey, minimax_value, short_sighted, solve
from truecast.reference.distance import brute_force_distance, calibration_distance
from truecast.reference.minimax import best_answer, game_value, solve_columns

VALUES = {1: Fraction(1, 2), 2: Fraction(1, 2), 3: Fraction(2, 3), 4: Fraction(47, 64)}
SEEN_VALUES = {1: Fraction(1, 2), 2: Fraction(1, 2), 3: Fraction(2, 3), 4: Fraction(3, 4)}


def parts(n):
    return tuple(Fraction(k, n) for k in range(n + 1))


def cells_between(ends, points):
    return [[p for p in points if a <= p <= b] for a, b in pairwise(ends)]


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize(
    ("rounds", "points"),
    [
        (1, farey(3)),
        (2, parts(5)),
        (2, farey(4)),
        (3, farey(3)),
        (3, parts(4)),
        (3, (0, 1)),
        (4, parts(3)),
    ],
)
def test_values_on_points_are_those_in_fractions(rounds, points, deterministic):
    points = tuple(map(Fraction, points))
    exact = game_value(rounds, points, deterministic=deterministic)
    assert solve(rounds, points, deterministic=deterministic).value() == pytest.approx(
        float(exact), abs=1e-14
    )


@pytest.mark.parametrize(
    ("rounds", "points"), [(1, farey(2)), (2, farey(3)), (3, farey(2)), (3, farey(3))]
)
def test_values_without_merging_histories_by_linear_programming(rounds, points):
    """Every order of rounds a state of its own, distances by all partitions, every game by
    HiGHS."""

    def value(p, y):
        if len(p) == rounds:
            return float(brute_force_distance(p, y))
        costs = np.array([[value([*p, x], [*y, bit]) for x in points] for bit in (0, 1)])
        n = len(points)
        keep = linprog(
            [*[0] * n, 1],
            A_ub=np.c_[costs, [-1, -1]],
            b_ub=[0, 0],
            A_eq=[[*[1] * n, 0]],
            b_eq=[1],
        )
        return keep.fun

    assert solve(rounds, points).value() == pytest.approx(value([], []), abs=1e-9)


def test_games_of_two_rows_are_solved():
    rng = np.random.default_rng(1)
    for _ in range(300):
        columns = [
            (Fraction(int(rng.integers(8))), Fraction(int(rng.integers(8))))
            for _ in range(int(rng.integers(1, 7)))
        ]
        value, weights = solve_columns(columns)
        assert sum(weights.values()) == 1
        assert len(weights) <= 2
        assert max(sum(w * columns[i][y] for i, w in weights.items()) for y in (0, 1)) == value
        crossings = [
            (a[0] - b[0]) / (a[0] - b[0] + b[1] - a[1])
            for a, b in product(columns, repeat=2)
            if a[0] - b[0] + b[1] - a[1] != 0
        ]
        chances = [0, 1, *(nu for nu in crossings if 0 <= nu <= 1)]
        assert value == max(min((1 - nu) * a + nu * b for a, b in columns) for nu in chances)


def test_distance_is_concave_between_farey_fractions():
    """At the mean of corners of a box of cells, CalDist is at least the mean of its values
    there."""
    rng = np.random.default_rng(2)
    for _ in range(150):
        rounds = int(rng.integers(1, 6))
        points = farey(rounds)
        y = [int(rng.integers(2)) for _ in range(rounds)]
        gaps = list(pairwise(points))
        cells = [gaps[rng.integers(len(gaps))] for _ in range(rounds)]
        shares = [Fraction(int(rng.integers(5)), 4) for _ in range(rounds)]
        p = [(1 - w) * a + w * b for (a, b), w in zip(cells, shares, strict=True)]
        mean = Fraction(0)
        for corner in product((0, 1), repeat=rounds):
            weight = Fraction(1)
            for end, w in zip(corner, shares, strict=True):
                weight *= w if end else 1 - w
            if weight:
                mean += weight * calibration_distance(
                    [c[end] for c, end in zip(cells, corner, strict=True)], y
                )
        assert mean <= calibration_distance(p, y)


@pytest.mark.alike("solves eight games")
@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize(
    ("rounds", "ends"), [(2, farey(2)), (2, farey(1)), (2, parts(4)), (3, farey(1))]
)
def test_points_between_are_of_no_use_against_who_sees_cells(rounds, ends, deterministic):
    rng = np.random.default_rng(3)
    coarse = sorted({*farey(rounds), *ends})
    fine = sorted({*coarse, *parts(12)} if rounds == 2 else {*coarse, *parts(4)})
    for _ in range(2):
        chance = cache(lambda seen, cell: Fraction(int(rng.integers(5)), 4))
        found = {
            best_answer(rounds, cells_between(ends, points), chance, deterministic=deterministic)
            for points in (coarse, fine)
        }
        assert len(found) == 1


def test_farey_fractions_of_the_rounds_are_not_enough():
    """With the adversary seeing the forecasts that were rounded, rounding is not free: five rounds
    show it."""
    fifths, sixths, sevenths = (solve(5, farey(order)).value() for order in (5, 6, 7))
    assert fifths == pytest.approx(102316397 / 125946634, abs=1e-14)
    assert sixths == pytest.approx(13354433 / 16489546, abs=1e-14)
    assert fifths > sixths + 0.002 > sevenths + 0.003
    assert [
        solve(t, farey(t)).value() - solve(t, farey(2 * t)).value() for t in (1, 2, 3)
    ] == pytest.approx([0] * 3)


def chances_of(solution, ends):
    """The bound of the kernel, and the chances behind it as a function of what is seen."""
    bound, chances = short_sighted(solution, ends)
    cells = len(ends) - 1

    def chance(seen, cell):
        items = sorted(2 * c + y for c, y in seen)
        t = len(items)
        at = comb(2 * cells + t - 1, t - 1) if t else 0
        at += sum(comb(item + j, j + 1) for j, item in enumerate(items))
        return chances[at * cells + cell] if solution.deterministic else chances[at]

    return bound, chance


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize(
    ("rounds", "points", "ends"),
    [
        (1, farey(2), farey(1)),
        (2, farey(3), farey(2)),
        (3, farey(3), farey(3)),
        (3, farey(4), farey(2)),
    ],
)
def test_bounds_below_are_best_answers(rounds, points, ends, deterministic):
    solution = solve(rounds, points, deterministic=deterministic)
    bound, chance = chances_of(solution, ends)
    answer = best_answer(
        rounds,
        cells_between(ends, points),
        lambda *at: Fraction(float(chance(*at))),
        deterministic=deterministic,
    )
    assert bound == pytest.approx(float(answer), abs=1e-13)
    assert bound <= solution.value() + 1e-13


def mirrored(seen):
    return tuple((5 - cell, 1 - y) for cell, y in seen)


def chances_of_four_rounds():
    """Chances found by linear programming and rounded: how does not matter, the answer to them is
    computed anew.

    The file has them after 1, 2 and 3 rounds, of which the first was a zero, in the order of what
    was seen; after a one the mirror image is played. The first outcome is a coin's.
    """
    listed = iter((Path(__file__).parent / "minimax_four.txt").read_text().split())
    first, later = [(cell, 0) for cell in range(6)], list(product(range(6), (0, 1)))
    table = {(): Fraction(1, 2)}
    table |= {
        seen: Fraction(next(listed)) for t in range(3) for seen in product(first, *[later] * t)
    }
    assert next(listed, None) is None
    return table | {mirrored(seen): 1 - nu for seen, nu in table.items() if seen}


@pytest.mark.slow("solves the game of four rounds")
@pytest.mark.parametrize("rounds", VALUES)
def test_values_of_up_to_four_rounds(rounds):
    """A forecaster on a few points, and an adversary who sees cells and plays simple fractions, get
    the same."""
    points = parts(6) if rounds == 3 else farey(max(rounds, 2))
    assert game_value(rounds, points) == VALUES[rounds]
    if rounds == 4:
        table = chances_of_four_rounds()
        simple = lambda seen, _: table[seen]  # noqa: E731
    else:
        _, chance = chances_of(solve(rounds, points), points)
        simple = cache(lambda *at: Fraction(float(chance(*at))).limit_denominator(100))
    assert best_answer(rounds, cells_between(points, points), simple) == VALUES[rounds]
    value = minimax_value(rounds, points=points)
    assert value.lower <= VALUES[rounds] <= value.upper <= VALUES[rounds] + Fraction(2, 10**12)


@pytest.mark.slow("solves the game of four rounds")
@pytest.mark.parametrize("rounds", SEEN_VALUES)
def test_values_of_up_to_four_rounds_if_forecasts_are_seen(rounds):
    points = parts(6) if rounds == 3 else farey(max(rounds, 2))
    assert game_value(rounds, points, deterministic=True) == SEEN_VALUES[rounds]
    _, chance = chances_of(solve(rounds, points, deterministic=True), points)
    simple = cache(lambda *at: Fraction(float(chance(*at))).limit_denominator(100))
    cells = cells_between(points, points)
    assert (
        best_answer(rounds, cells, simple, deterministic=True, in_order=False)
        == SEEN_VALUES[rounds]
    )


def worst(forecaster, rounds):
    """The expected CalDist of these rounds against the best answer, which looks at every
    history."""
    start = forecaster.state()

    def expected(p, y):
        if len(p) == rounds:
            return float(calibration_distance(list(map(Fraction, p)), y))
        costs = []
        for bit in (0, 1):
            forecaster.load(start)
            for said, outcome in zip(p, y, strict=True):  # a draw may be any of the distribution
                forecaster.predict()
                forecaster._said = said
                forecaster.observe(outcome)
            mixture = forecaster.distribution
            assert sum(w for _, w in mixture) == pytest.approx(1, abs=1e-15)
            costs.append(sum(w * expected([*p, said], [*y, bit]) for said, w in mixture))
        return max(costs)

    return expected([], [])


@pytest.mark.parametrize(
    ("horizon", "rounds"), [(1, 3), (2, 2), (2, 3), (2, 5), (3, 2), (3, 3), (3, 5), (4, 4), (5, 3)]
)
def test_minimax_keeps_to_its_bound_whatever_the_adversary(horizon, rounds):
    forecaster = Minimax(horizon=horizon)
    found = worst(forecaster, rounds)
    assert found <= forecaster.a_priori(rounds) + 1e-12
    if rounds <= horizon:
        assert found == pytest.approx(forecaster.a_priori(rounds), abs=1e-12)
    if rounds == horizon:
        assert found == pytest.approx(float(VALUES[horizon]), abs=1e-12)


@pytest.mark.parametrize("rounds", range(1, 6))
def test_no_deterministic_forecaster_beats_the_value(rounds):
    least = minimax_value(rounds, deterministic=True, points=farey(rounds)).lower
    for make in (
        lambda: tc.AlmostOneStepAhead(horizon=rounds),
        lambda: tc.AlmostOneStepAhead(horizon=rounds, at="middle"),
        lambda: tc.BentGrid(horizon=rounds),
        lambda: tc.HorizonFree(),
    ):
        distances = [
            tc.calibration_distance(y, make().forecast_many(y), total=True).upper
            for y in product((0, 1), repeat=rounds)
        ]
        assert max(distances) >= least
