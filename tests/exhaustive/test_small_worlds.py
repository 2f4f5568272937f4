"""All outcome strings: the compiled core against the theorems, in exact integers."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from functools import cache
from math import lcm

import numpy as np
import pytest

import truecast as tc
from truecast.forecasters.base import LadderForecaster
from truecast.ladder import CELL_RULES
from truecast.reference import (
    PlainLadder,
    bent_points,
    brute_force_distance,
    calibration_distance,
    uniform_points,
)

LONGEST = 14
ENDS = ("lower", "upper", "middle")


def all_strings(length: int) -> np.ndarray:
    """Row s holds the bits of s, first outcome first: its prefix of length - 1 is row s // 2 of the
    shorter ones."""
    numbers = np.arange(1 << length)
    return (numbers[:, np.newaxis] >> np.arange(length)[::-1] & 1).astype(np.uint8)


def said_fraction(f: LadderForecaster, cell: int, end: str) -> Fraction:
    low, high = (Fraction(int(g), f.denominator) for g in f.points[cell : cell + 2])
    if end == "outer":
        return low if cell < f.grid // 2 else high
    return {"lower": low, "upper": high, "middle": (low + high) / 2}[end]


Counts = tuple[tuple[int, int, int], ...]  # (forecast over a unit, zeros, ones), increasing


@cache
def distance(tally: Counts, unit: int) -> Fraction:
    """CalDist of a tally."""
    p = [Fraction(v, unit) for v, zeros, ones in tally for _ in range(zeros + ones)]
    y = [bit for _, zeros, ones in tally for bit in [0] * zeros + [1] * ones]
    return calibration_distance(p, y)


@cache
def moved_together(tally: Counts, unit: int) -> Fraction:
    """How far it is to calibrated forecasts if rounds of equal forecasts move together.

    A bound of CalDist, which is the least over all calibrated forecasts, and found much sooner.
    """
    scale = lcm(*range(1, sum(zeros + ones for _, zeros, ones in tally) + 1))
    least = [0]  # for the first values of the tally
    for end in range(1, len(tally) + 1):
        costs = [least[start] + to_rate(tally[start:end], unit, scale) for start in range(end)]
        least.append(min(costs))
    return Fraction(least[-1], unit * scale)


def to_rate(group: Counts, unit: int, scale: int) -> int:
    """How far it is from these forecasts to their rate, over unit * scale."""
    rounds = sum(zeros + ones for _, zeros, ones in group)
    rate = sum(ones for _, _, ones in group) * (scale // rounds) * unit
    return sum(abs(v * scale - rate) * (zeros + ones) for v, zeros, ones in group)


def tallies(f: LadderForecaster, strings: np.ndarray, cells: np.ndarray, end: str) -> list[Counts]:
    """The tally of each string, with forecasts over twice the denominator of the points."""
    counts = np.zeros((len(strings), f.grid, 2), np.int64)
    for t in range(strings.shape[1]):
        np.add.at(counts, (np.arange(len(strings)), cells[:, t], strings[:, t]), 1)
    unique, which = np.unique(counts.reshape(len(strings), -1), axis=0, return_inverse=True)
    said = [int(said_fraction(f, i, end) * 2 * f.denominator) for i in range(f.grid)]
    as_tally = []
    for row in unique.reshape(-1, f.grid, 2).tolist():
        merged: dict[int, list[int]] = defaultdict(lambda: [0, 0])
        for v, (zeros, ones) in zip(said, row, strict=True):
            merged[v][0] += zeros
            merged[v][1] += ones
        as_tally.append(tuple((v, *n) for v, n in sorted(merged.items()) if sum(n)))
    return [as_tally[k] for k in which.reshape(-1)]


def check_world(f: LadderForecaster, end: str, longest: int) -> None:
    m, n, points = f.grid, f.denominator, f.points
    scale = lcm(*range(1, m + 1))  # certificates are integers over 2 * n * scale
    streams = tc.forecast_streams(f, all_strings(0))
    cells = np.empty((1, 0), np.int64)
    for length in range(longest + 1):
        before, strings = streams, all_strings(length)
        streams = tc.forecast_streams(f, strings)
        biases, cell = streams._biases, streams._cells
        rows = np.arange(len(strings))

        # the invariant of the ladder
        assert (biases[:, 0] == 0).all()
        assert (biases[:, m] == 0).all()
        assert ((points - n <= biases) & (biases <= points)).all()
        is_open = (biases[:, :-1] <= 0) & (biases[:, 1:] >= 0)
        assert is_open[rows, cell].all()
        if f.cell == "lowest":
            assert (cell == is_open.argmax(axis=1)).all()
        if f.cell == "highest":
            assert (cell == m - 1 - is_open[:, ::-1].argmax(axis=1)).all()
        if length:
            came_from = before._cells[rows // 2]
            assert (abs(cell - came_from) <= 1).all()
            cells = np.concatenate([cells[rows // 2], came_from[:, np.newaxis]], axis=1)
            said = [float(said_fraction(f, i, end)) for i in range(m)]
            assert (streams.forecasts == np.array(said)[cells]).all()

        # the biases are those of the credited points
        expected = np.zeros_like(biases)
        for t in range(length):
            credited = cells[:, t] + strings[:, t]
            expected[rows, credited] += points[credited] - n * strings[:, t].astype(np.int64)
        assert (biases == expected).all()

        # CalDist <= certificate <= a-priori bound
        exact = [streams.forecaster(k) for k in (0, len(streams) // 2, len(streams) - 1)]
        sums = np.empty((len(streams), 4), np.int64)
        tc._core.sums_of_streams(f, biases, sums)
        bias, pooled = sums[:, 0] * scale, sums[:, 1] * scale + sums[:, 2] * (scale // sums[:, 3])
        bound = streams._deviations[:, 1].astype(np.int64) * scale + 2 * np.minimum(bias, pooled)
        for k, forecaster in zip((0, len(streams) // 2, len(streams) - 1), exact, strict=True):
            certificate = forecaster.deviation + min(forecaster.bias_sums)
            assert certificate == Fraction(int(bound[k]), 2 * n * scale)
        a_priori = f.a_priori(length)
        assert Fraction(int(bound.max()), 2 * n * scale) <= a_priori
        least_certificate: dict[Counts, int] = {}
        for tally, value in zip(tallies(f, strings, cells, end), bound.tolist(), strict=True):
            least_certificate[tally] = min(value, least_certificate.get(tally, value))
        for tally, value in least_certificate.items():
            certificate = Fraction(value, 2 * n * scale)
            near = moved_together(tally, 2 * n) <= certificate
            assert near or distance(tally, 2 * n) <= certificate


@pytest.mark.slow("plays all strings of outcomes")
@pytest.mark.parametrize("grid", range(1, 7))
@pytest.mark.parametrize("end", ENDS)
def test_ladder_invariant_and_bounds_on_all_strings(grid: int, end: str) -> None:
    for rule in CELL_RULES:  # in one process, since the rules share most tallies
        check_world(tc.AlmostOneStepAhead(grid=grid, at=end, cell=rule), end, LONGEST)


@pytest.mark.slow("plays all strings of outcomes")
@pytest.mark.parametrize("end", ENDS)
def test_walk_from_every_start_on_all_strings(end: str) -> None:
    for grid in range(1, 7):
        for start in range(grid):
            f = tc.AlmostOneStepAhead(grid=grid, at=end)
            f.load(f.state() | {"open_cell": start})
            check_world(f, end, 9)


@pytest.mark.slow("plays all strings of outcomes")
@pytest.mark.parametrize("bend", range(4))
def test_bent_grid_bound_on_all_strings(bend: int) -> None:
    for rule in CELL_RULES:
        check_world(tc.BentGrid(grid=2 * bend + 2, cell=rule), "outer", 13)


@pytest.mark.slow("plays all strings of outcomes")
@pytest.mark.parametrize("rule", CELL_RULES)
def test_reference_and_core_agree_on_all_strings(rule: str) -> None:
    worlds = [
        (tc.AlmostOneStepAhead(grid=m, at=e, cell=rule), uniform_points(m), e)
        for m in (1, 2, 3, 5)
        for e in ENDS
    ]
    worlds += [
        (tc.BentGrid(grid=2 * j + 2, cell=rule), bent_points(j)[0], "outer") for j in (0, 1, 2)
    ]
    length = 9
    for f, points, end in worlds:
        strings = all_strings(length)
        streams = tc.forecast_streams(f, strings)
        for s, string in enumerate(strings.tolist()):
            plain = PlainLadder(points, end, rule)
            said = []
            for y in string:
                said.append(float(plain.predict()))
                plain.observe(y)
            core = streams.forecaster(s)
            assert streams.forecasts[s].tolist() == said
            assert [Fraction(a, f.denominator) for a in core.biases.tolist()] == plain.alpha
            assert (core.open_cell, core.deviation, core.bias_sums) == (
                plain.cell,
                plain.deviation,
                (plain.bias(), plain.pooled()),
            )


@pytest.mark.slow("searches hundreds of small cases by brute force")
@pytest.mark.parametrize("length", range(8))
def test_lattice_distance_is_the_brute_force_distance(length: int) -> None:
    rng = np.random.default_rng(length)
    for _ in range(40):
        denominator = int(rng.integers(1, 8))
        p = [Fraction(int(k), denominator) for k in rng.integers(0, denominator + 1, length)]
        y = rng.integers(0, 2, length).tolist()
        assert calibration_distance(p, y) == brute_force_distance(p, y)


def test_no_calibrated_forecasts_are_nearer_than_the_distance() -> None:
    """What the small worlds try first is a bound of the distance, and sometimes more than it."""
    more = 0
    for zeros_and_ones in np.ndindex(3, 3, 3, 3):
        counts = [*zip(zeros_and_ones[::2], zeros_and_ones[1::2], strict=True)]
        tally = tuple((v, *n) for v, n in zip((1, 4), counts, strict=True) if sum(n))
        assert distance(tally, 6) <= moved_together(tally, 6)
        more += distance(tally, 6) < moved_together(tally, 6)
    assert more


def test_all_tallies_of_one_and_two_values_have_the_brute_force_distance() -> None:
    grid = [Fraction(k, 3) for k in range(4)]
    for v in grid:
        for w in grid:
            for counts in np.ndindex(3, 3, 2, 2):
                p = [v] * (counts[0] + counts[1]) + [w] * (counts[2] + counts[3])
                y = [0] * counts[0] + [1] * counts[1] + [0] * counts[2] + [1] * counts[3]
                assert calibration_distance(p, y) == brute_force_distance(p, y)
