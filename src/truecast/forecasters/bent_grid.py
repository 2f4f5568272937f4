"""The bent grid: cells wider towards 0 and 1 (docs/theory.md, section 6)."""

from __future__ import annotations

import math
from bisect import bisect_left
from fractions import Fraction

import numpy as np

from truecast import _check
from truecast.errors import InputError
from truecast.forecasters.base import LadderForecaster, check_horizon, chosen_grid
from truecast.ladder import CELL_RULES, CellRule

__all__ = ["BentGrid"]

MAX_GRID = 1 << 18  # where lemma 6 ends
MAX_HORIZON = 1 << 36  # whose best grid is below that
_N = 1 << 30


class BentGrid(LadderForecaster):
    r"""For a known number of rounds: nearly three times below the paper's bound.

    Almost-One-Step-Ahead on a better grid. Near 0 few outcomes are 1, and near 1 few are 0. So the
    outer end of a cell is rarely wrong there, and cells may be wider: a cell at x has a width
    proportional to 1/min(x, 1-x). Whatever the outcomes, the distance to calibration after T rounds
    is at most

    .. math:: \kappa T + J + 5/4, \qquad m = 2J + 2 \text{ cells},

    which with the best J is :math:`\sqrt{T/2} + \frac14 \ln T + O(1)`: 0.71 sqrt(T) against the
    paper's 2 sqrt(T) + 1 (docs/theory.md, theorem 7).

    It sees only past outcomes, so it is no sharper than they allow: see `Certificate`. On short
    streams (below about 50 rounds) `AlmostOneStepAhead` with at="middle" has the better bound.

    Parameters
    ----------
    horizon
        The expected number of rounds, up to 2**36. Without `grid`, it chooses the best grid. You
        can play more rounds.
    grid
        The number of cells, m = 2J + 2, an even number.
    cell
        Which open cell to take if there are several: "walk", "lowest" or "highest", as for
        `AlmostOneStepAhead`.

    Raises
    ------
    InputError
        If an option breaks its rule, or neither horizon nor grid is given.

    Notes
    -----
    A round costs O(1), the state O(m). The points are integers over 2**30, so forecasts are exact
    floats.

    Examples
    --------
    >>> f = BentGrid(horizon=10_000)
    >>> forecasts = f.forecast_many([0, 1] * 5_000)
    >>> f.certificate.a_priori < 0.74 * 10_000**0.5
    True
    >>> f.certificate.bound < f.certificate.a_priori
    True
    """

    _options = ("_horizon", "grid", "_cell")

    def __init__(
        self, *, horizon: int | None = None, grid: int | None = None, cell: CellRule = "walk"
    ) -> None:
        rounds = check_horizon(horizon, most=MAX_HORIZON)
        _check.choice("cell", cell, tuple(CELL_RULES))
        m = chosen_grid(rounds, grid, self.best_grid, least=2, most=MAX_GRID)
        if m % 2:
            raise InputError(
                "grid", "must be even, because the bent grid mirrors its cells at 1/2", grid
            )
        left, k = _left_half(m // 2 - 1)
        points = np.array([*left, _N // 2, *(_N - g for g in reversed(left))], np.int64)
        outer = 2 * np.concatenate([points[: m // 2], points[m // 2 + 1 :]])
        super().__init__(points, _N, np.stack([outer, outer]), cell)
        self._horizon, self._cell, self._kappa = rounds, cell, Fraction(k, _N * _N)

    @property
    def kappa(self) -> Fraction:
        """The most deviation a round costs, on average over the rounds credited to a point."""
        return self._kappa

    @staticmethod
    def best_grid(horizon: int) -> int:
        """Return the grid of least proved bound after `horizon` rounds, about sqrt(T/2) cells.

        Examples
        --------
        >>> BentGrid.best_grid(10_000)
        74
        """
        rounds = _check.whole_number("horizon", horizon, least=1, most=MAX_HORIZON)
        best, best_bound, h = 0, math.inf, 0.0
        for bend in range(MAX_GRID // 2):
            bound = _real_kappa(h) * rounds + bend
            if bound < best_bound:
                best, best_bound = bend, bound
            elif bend > best_bound:  # more cells alone cost more than that
                break
            h = _next_h(h)
        return 2 * best + 2

    def _bound(self, rounds: int) -> Fraction:
        """Theorem 7: kappa T + J + 5/4, for the grid as it is in integers."""
        return self.kappa * rounds + (self.grid // 2 - 1) + Fraction(5, 4)


def _real_kappa(h: float) -> float:
    """Kappa of the grid in real numbers whose last h_J is h."""
    return 1.0 / (math.sqrt(h * h + 2) + h) ** 2


def _next_h(h: float) -> float:
    return (h + math.sqrt(h * h + 4)) / 2


def _left_half(bend: int) -> tuple[list[int], int]:
    """Return g_0 .. g_J over N and the least k = kappa N^2 with which they reach the middle.

    Lemma 6.
    """
    h = 0.0
    for _ in range(bend):
        h = _next_h(h)
    near = int(_real_kappa(h) * _N * _N)
    # lemma 6: from there k is at most 3 N up, and floats are off by far less than N
    low = max(0, near - _N)
    k = low + bisect_left(
        range(low, near + 5 * _N), True, key=lambda k: _reaches(_climb(bend, k), k)
    )
    return _climb(bend, k), k


def _climb(bend: int, k: int) -> list[int]:
    """From 0, each time the highest g with g (g - last) <= k."""
    points = [0]
    for _ in range(bend):
        last = points[-1]
        points.append((last + math.isqrt(last * last + 4 * k)) // 2)
    return points


def _reaches(points: list[int], k: int) -> bool:
    return (_N // 2 - points[-1]) * _N <= k
