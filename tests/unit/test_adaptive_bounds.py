"""The bounds before the first round, in floats and straight from the formulas of
docs/adaptive.md."""

from __future__ import annotations

from math import inf, log2, sqrt

import pytest

import truecast as tc

ROUNDS = [0, 1, 10, 1_000, 10**5, 10**7, 10**9]
LEVELS = range(60)


def plus(x: float) -> float:
    return max(x, 0.0)


@pytest.mark.parametrize("split", [1.0, 0.5, 0.125, 0.03125])
def test_bound_of_the_middle_is_the_theorems(split: float) -> None:
    forecaster = tc.HorizonFree(at="middle", split=split)
    overshoot = sum(plus(0.5 - split * 2**e) for e in LEVELS)
    for rounds in ROUNDS[:-1]:
        bound = (
            sqrt((split + 0.5) ** 2 + 1 / 12) * sqrt(3 * rounds / (2 * split) + 1)
            - (split + 0.5)
            + overshoot
        )
        assert float(forecaster.a_priori(rounds)) == pytest.approx(min(bound, rounds), rel=1e-9)


@pytest.mark.parametrize("split", [1.0, 0.5, 0.125])
def test_bound_of_the_outer_end_is_the_theorems(split: float) -> None:
    """With a round number for log2(1 + 1/c), which is above it by less than c/4 in its place in the
    formula."""
    forecaster = tc.HorizonFree(split=split)
    halvings = -log2(split)
    growth = 3 / (4 * split) * ((split + 0.5) ** 2 + 1 / 24)
    d = max(split, 0.5) + 7 / 4 + (halvings - 2 + 2 ** (1 - halvings)) + 2 * split
    d += (2 * split + 1.5) * (log2(1 + 1 / split) / 4 + 1.107) + 0.618 * (2 + 3 / (2 * split))
    for rounds in ROUNDS[:-1]:
        least = inf
        for j in LEVELS[1:]:
            price = 2.0**-j
            profit = (
                growth / (4 * price)
                + (2 * split + 1.5) / 4 * j
                + d
                + 1.5 * sqrt((4 + 3 / split) * price)
            )
            least = min(least, price * rounds + profit)
        found = float(forecaster.a_priori(rounds))
        assert (
            min(least, rounds)
            <= found
            <= min(least + 0.125 * split * (2 * split + 1.5), rounds) + 1e-6
        )
