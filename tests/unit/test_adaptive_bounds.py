"""The bounds before the first round, in floats and straight from the formulas of docs/adaptive.md."""

from __future__ import annotations

from math import ceil, inf, log2, sqrt

import pytest

import truecast as tc

ROUNDS = [0, 1, 10, 1_000, 10**5, 10**7, 10**9]
LEVELS = range(60)


def plus(x: float) -> float:
    return max(x, 0.0)


def guarded(rounds: int, slack: float, late: int, outstanding: int) -> float:
    """Theorems 8 and 10: at most `outstanding` forecasts unresolved, and as many as `late` expected."""
    k = slack * (1 + late / 4)
    c = (k + 1 + late) / 4
    most = max(outstanding, 1 + late)
    if most == 1:
        psi = 2 * k + 1 + 2 * c / 3
        psi += sum(2 ** (i - 1) * (plus(k - (2**i - 1) * c) + plus(k + 1 - (2**i - 1) * c)) for i in LEVELS[1:])
        stale = 0.0
    else:
        psi = 2 * (k + most) + 2 * c / 3 + sum(2**i * plus(k + most - (2**i - 1) * c) for i in LEVELS[1:])
        stale = 1 + (k + most) / c
    extra = ceil(log2(stale)) if stale else 0
    bound = min(rounds / 2**j + psi * 2**j + j + (most - 1) * stale * (j + extra) for j in LEVELS)
    return min(rounds, bound) if bound < c * (2**20 - 1) else rounds  # beyond, there may be no more cells


@pytest.mark.parametrize("slack", [0.0, 0.5, 1.0, 2.0, 7.25])
@pytest.mark.parametrize(("late", "outstanding"), [(0, 1), (0, 2), (0, 9), (3, 1), (3, 4), (3, 9), (20, 21)])
def test_bound_of_the_guard_is_the_theorems(slack: float, late: int, outstanding: int) -> None:
    guard = tc.Guard(slack=slack, late=late)
    made = [guard._issue(0.3) for _ in range(outstanding - 1)]
    for low, high, said in made:
        guard._resolve(low, high, said, False)
    for rounds in ROUNDS:
        assert float(guard.a_priori(rounds)) == pytest.approx(guarded(rounds, slack, late, outstanding), rel=1e-6)


@pytest.mark.parametrize(("slack", "grid", "outstanding"), [(0.0, 1, 1), (1.0, 30, 1), (1.0, 30, 4), (2.5, 7, 2)])
def test_bound_of_the_guard_on_a_fixed_grid_is_the_theorems(slack: float, grid: int, outstanding: int) -> None:
    guard = tc.Guard(slack=slack, grid=grid)
    for low, high, said in [guard._issue(0.3) for _ in range(outstanding - 1)]:
        guard._resolve(low, high, said, True)
    a_point = slack + (0.5 if outstanding == 1 else outstanding)
    for rounds in ROUNDS:
        assert float(guard.a_priori(rounds)) == pytest.approx(rounds / grid + (grid - 1) * a_point, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("split", [1.0, 0.5, 0.125, 0.03125])
def test_bound_of_the_middle_is_the_theorems(split: float) -> None:
    forecaster = tc.HorizonFree(at="middle", split=split)
    overshoot = sum(plus(0.5 - split * 2**e) for e in LEVELS)
    for rounds in ROUNDS[:-1]:
        bound = sqrt((split + 0.5) ** 2 + 1 / 12) * sqrt(3 * rounds / (2 * split) + 1) - (split + 0.5) + overshoot
        assert float(forecaster.a_priori(rounds)) == pytest.approx(min(bound, rounds), rel=1e-9)


@pytest.mark.parametrize("split", [1.0, 0.5, 0.125])
def test_bound_of_the_outer_end_is_the_theorems(split: float) -> None:
    """With a round number for log2(1 + 1/c), which is above it by less than c/4 in its place in the formula."""
    forecaster = tc.HorizonFree(split=split)
    halvings = -log2(split)
    growth = 3 / (4 * split) * ((split + 0.5) ** 2 + 1 / 24)
    d = max(split, 0.5) + 7 / 4 + (halvings - 2 + 2 ** (1 - halvings)) + 2 * split
    d += (2 * split + 1.5) * (log2(1 + 1 / split) / 4 + 1.107) + 0.618 * (2 + 3 / (2 * split))
    for rounds in ROUNDS[:-1]:
        least = inf
        for j in LEVELS[1:]:
            price = 2.0**-j
            profit = growth / (4 * price) + (2 * split + 1.5) / 4 * j + d + 1.5 * sqrt((4 + 3 / split) * price)
            least = min(least, price * rounds + profit)
        found = float(forecaster.a_priori(rounds))
        assert min(least, rounds) <= found <= min(least + 0.125 * split * (2 * split + 1.5), rounds) + 1e-6
