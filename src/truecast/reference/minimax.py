"""The calibration game in fractions.

Values on a few points, and the best answer to an adversary who sees cells.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from itertools import product

from truecast.reference.distance import calibration_distance

__all__ = ["best_answer", "game_value", "solve_columns"]

Said = tuple[Fraction, int]  # a forecast and its outcome
Seen = tuple[int, int]  # the number of a cell and the outcome


def solve_columns(
    columns: Sequence[tuple[Fraction, Fraction]],
) -> tuple[Fraction, dict[int, Fraction]]:
    """Return the value of a game with two rows, and the weights of columns that keep both to it.

    The cheaper rows of the mixtures fill the convex hull of the columns, so the best mixture is a
    column, or a mixture of two with equal rows.
    """
    best = min(range(len(columns)), key=lambda i: max(columns[i]))
    value, weights = max(columns[best]), {best: Fraction(1)}
    for (i, (a0, a1)), (j, (b0, b1)) in product(enumerate(columns), repeat=2):
        if a0 < a1 and b0 > b1:
            weight = (b0 - b1) / (a1 - a0 + b0 - b1)
            mixed = weight * a0 + (1 - weight) * b0
            if mixed < value:
                value, weights = mixed, {i: weight, j: 1 - weight}
    return value, weights


def game_value(rounds: int, points: Sequence[Fraction], *, deterministic: bool = False) -> Fraction:
    """Return the value of the game with forecasts from these points.

    Backwards, over what was said and what came.
    """

    @cache
    def value(played: tuple[Said, ...]) -> Fraction:
        if len(played) == rounds:
            return calibration_distance([p for p, _ in played], [y for _, y in played])
        zeros, ones = ([value(tuple(sorted((*played, (p, y))))) for p in points] for y in (0, 1))
        columns = list(zip(zeros, ones, strict=True))
        return min(map(max, columns)) if deterministic else solve_columns(columns)[0]

    return value(())


def best_answer(
    rounds: int,
    cells: Sequence[Sequence[Fraction]],
    chance: Callable[[tuple[Seen, ...], int], Fraction],
    *,
    deterministic: bool = False,
    in_order: bool = True,
) -> Fraction:
    """Return the least expected CalDist against an adversary who sees only cells of forecasts.

    Forecasts are from the points of the cells. The adversary plays a one with a chance that depends
    on what he saw, in order of the rounds unless he forgets it, and on the present cell if the game
    is deterministic; otherwise he is shown cell 0 there.
    """
    points = sorted({p for cell in cells for p in cell})

    @cache
    def distance(played: tuple[Said, ...]) -> Fraction:
        return calibration_distance([p for p, _ in played], [y for _, y in played])

    @cache
    def cost(played: tuple[tuple[int, int, Fraction], ...]) -> Fraction:
        if len(played) == rounds:
            return distance(tuple(sorted((p, y) for _, y, p in played)))
        costs = []
        # nobody sees the last cell, unless it is seen before the outcome
        unseen = len(played) == rounds - 1 and not deterministic
        for cell, of_cell in enumerate([points] if unseen else cells):
            nu = chance(tuple((c, y) for c, y, _ in played), cell if deterministic else 0)
            for p in of_cell:
                after = ((*played, (cell, y, p)) for y in (0, 1))
                zero, one = map(cost, after if in_order else (tuple(sorted(way)) for way in after))
                costs.append((1 - nu) * zero + nu * one)
        return min(costs)

    return cost(())
