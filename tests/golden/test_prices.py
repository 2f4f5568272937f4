"""The solver of best prices, against HiGHS and against its own rules."""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate, pairwise

import highspy
import numpy as np
import pytest
from hypothesis import given, settings

import truecast as tc
from rounds import random_tallies, rounds, tally_of
from truecast import _core
from truecast.measures.prices import best_prices, bounds_by_prices


def by_highs(nodes: np.ndarray, masses: np.ndarray) -> float:
    """The most that prices at the nodes can be worth; in units of the gaps, as HiGHS allows itself
    1e-10 in a row."""
    n, gaps = len(nodes), np.diff(nodes)
    program = highspy.HighsLp()
    # variables: A_0, slopes of A, B_0, slopes of B
    prices = np.tril(np.ones((n, n))) * np.r_[1.0, gaps]
    rule = np.hstack(((1 - nodes)[:, None] * prices, nodes[:, None] * prices))
    program.num_col_, program.num_row_ = 2 * n, n
    program.sense_ = highspy.ObjSense.kMaximize
    program.col_cost_ = np.concatenate((masses[0] @ prices, masses[1] @ prices))
    program.col_lower_, program.col_upper_ = np.full(2 * n, -1.0), np.full(2 * n, 1.0)
    program.row_lower_, program.row_upper_ = np.full(n, -highspy.kHighsInf), np.zeros(n)
    program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    program.a_matrix_.start_ = 2 * n * np.arange(n + 1)
    program.a_matrix_.index_, program.a_matrix_.value_ = (
        np.tile(np.arange(2 * n), n),
        rule.reshape(-1),
    )
    solver = highspy.Highs()
    solver.silent()
    for name in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
        solver.setOptionValue(name, 1e-10)
    solver.passModel(program)
    solver.run()
    assert solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return float(solver.getInfo().objective_function_value)


def solved(
    nodes: np.ndarray, masses: np.ndarray, tolerance: float = 1e-10
) -> tuple[np.ndarray, np.ndarray, int]:
    prices, atoms = np.full((2, len(nodes)), np.nan), np.full(len(nodes), np.nan)
    iterations = _core.solve_prices(nodes, masses, tolerance, 300, prices, atoms)
    assert np.isfinite(prices).all()
    assert (atoms >= 0).all()
    assert (np.abs(np.diff(prices, axis=1)) <= np.diff(nodes) + 1e-13 * np.abs(prices).max()).all()
    assert ((1 - nodes) * prices[0] + nodes * prices[1] <= 1e-13).all()
    return prices, atoms, iterations


def instances(seed: int, number: int, most: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Nodes from 0 to 1, evenly spaced or down to gaps of 1e-12, and masses: dense, sparse, far
    apart in size."""
    rng = np.random.default_rng(seed)
    found = []
    for k in range(number):
        n = int(rng.integers(2, most))
        gaps = np.maximum(rng.random(n - 1) ** (12 if k % 3 == 0 else 1), 1e-12)
        nodes = np.append(np.cumsum(gaps) - gaps, 0.0) / gaps.sum()
        nodes[-1] = 1.0
        masses = rng.random((2, n)) * (rng.random((2, n)) < rng.choice([0.1, 0.5, 1.0]))
        if k % 4 == 1:
            masses *= rng.random((2, n)) ** 30
        if k % 4 == 2:
            masses[k // 4 % 2] *= 10.0 ** -int(rng.integers(0, 300))
        if masses.sum() > 0 and (np.diff(nodes) > 0).all():
            found.append((nodes, masses / masses.sum()))
    return found


@pytest.mark.slow("solves linear programmes")
def test_prices_are_worth_what_highs_finds() -> None:
    for nodes, masses in instances(0, 300, 40):
        prices, atoms, iterations = solved(nodes, masses)
        assert iterations < 60
        worth = float((masses * prices).sum())
        assert worth == pytest.approx(by_highs(nodes, masses), abs=1e-8)
        # the atoms cost as much: no splitting costs less than prices are worth
        zeros, ones = masses.sum(axis=1)
        short = [zeros - float((1 - nodes) @ atoms), ones - float(nodes @ atoms)]
        assert np.abs(short).max() <= 1e-7
        atoms[[0, -1]] += np.maximum(short, 0)
        cost = _core.transport_cost(nodes, masses[0], nodes, (1 - nodes) * atoms)
        cost += _core.transport_cost(nodes, masses[1], nodes, nodes * atoms)
        assert cost == pytest.approx(worth, abs=1e-6)


def test_few_nodes_and_one_class() -> None:
    ends = np.array([0.0, 1.0])
    for masses, worth in (
        ([[0.5, 0.0], [0.0, 0.5]], 0.0),
        ([[0.0, 0.5], [0.5, 0.0]], 1.0),
        ([[1.0, 0.0], [0.0, 0.0]], 0.0),
        ([[0.0, 1.0], [0.0, 0.0]], 1.0),
        ([[0.0, 0.0], [1.0, 0.0]], 1.0),
    ):
        prices, atoms, _ = solved(ends, np.array(masses))
        assert float((np.array(masses) * prices).sum()) == pytest.approx(worth, abs=1e-9)
        assert atoms.sum() == pytest.approx(1, abs=1e-9)


def test_whatever_the_masses_the_last_iterate_is_there() -> None:
    for nodes, masses in instances(1, 1500, 60):
        solved(nodes, masses)
        solved(nodes, masses, 0.0)  # asks for more than doubles have
        assert (
            _core.solve_prices(
                nodes, masses, 1e-9, 1, np.empty((2, len(nodes))), np.empty(len(nodes))
            )
            <= 1
        )


def check_rules(tally: tc.Tally) -> None:
    nodes, prices, values, atoms = best_prices(tally)
    tiny = Fraction(1, 2**50)
    assert nodes[0] == 0
    assert nodes[-1] == 1
    assert (np.diff(nodes) > 0).all()
    assert (np.diff(values) > 0).all()
    assert (atoms > 0).all()
    places, sides = (
        [Fraction(x) for x in nodes.tolist()],
        [[Fraction(x) for x in side.tolist()] for side in prices],
    )
    for side in sides:
        for sign in (1, -1):
            heights = [sign * a - v for v, a in zip(places, side, strict=True)]
            assert all(
                later <= least + tiny
                for later, least in zip(heights, accumulate(heights, min), strict=True)
            )
    for (v, a, b), (w, c, d) in pairwise(zip(places, *sides, strict=True)):
        assert (1 - v) * a + v * b <= 0
        assert (1 - w) * c + w * d <= 0
        slope_a, slope_b = (c - a) / (w - v), (d - b) / (w - v)
        if slope_b < slope_a:
            x = v - ((1 - v) * slope_a + v * slope_b + b - a) / (2 * (slope_b - slope_a))
            if v < x < w:
                assert (1 - x) * (a + slope_a * (x - v)) + x * (b + slope_b * (x - v)) <= 0
    parts = [
        (Fraction(v), Fraction(m)) for v, m in zip(values.tolist(), atoms.tolist(), strict=True)
    ]
    zeros, ones = (
        Fraction(int(side.sum()), int(tally.total)) for side in (tally.zeros, tally.ones)
    )
    assert abs(sum((1 - v) * m for v, m in parts) - zeros) <= tiny
    assert abs(sum(v * m for v, m in parts) - ones) <= tiny


@pytest.mark.slow("tries many examples")
@settings(max_examples=40, deadline=None)
@given(rounds())
def test_best_prices_keep_their_rules(rows: list) -> None:
    check_rules(tally_of(rows))


@pytest.mark.slow("prices thousands of forecasts")
@pytest.mark.parametrize("power", [0.0, 1.0, 2.0])
def test_bounds_of_thousands_of_forecasts_meet(power: float) -> None:
    rng = np.random.default_rng(int(power))
    p = rng.random(5000)
    tally = tc.Tally.from_predictions(rng.random(len(p)) < p**power, p)
    found = bounds_by_prices(tally, 1e-8)
    assert found.upper - found.lower <= 3e-8 * found.upper
    check_rules(tally)


def test_small_tallies_are_priced_closely() -> None:
    for tally in random_tallies(30, 120, most=40):
        found = bounds_by_prices(tally, 1e-8)
        assert found.upper - found.lower <= 2e-8


def test_forecasts_closer_than_nodes_may_be() -> None:
    p = 0.3 + 2.0**-44 * np.arange(200)
    tally = tc.Tally(p, np.arange(200) % 3, (np.arange(200) + 1) % 2)
    found = bounds_by_prices(tally, 1e-6)
    assert np.diff(found.nodes).min() >= 2.0**-42
    assert found.lower <= abs(tally.rate - 0.3) <= found.upper + 200 * 2.0**-44
    assert found.upper - found.lower <= 1e-6 * found.upper
