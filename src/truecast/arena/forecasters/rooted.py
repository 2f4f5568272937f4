"""Forecasts at a root of the weighted errors so far: for two rules of the literature."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from truecast.arena.forecasters.base import LiteratureForecaster, Measure, Planned

__all__ = ["RootedForecaster"]

_ROUNDING = 2.0**-48


class RootedForecaster(Planned, LiteratureForecaster):
    r"""Forecasts a root of :math:`S(p) = \sum_s K(p, p_s)(y_s - p_s)`.

    K is linear between grid points.

    Let :math:`w(p)` be the weights of the grid points j/m in p: at most two are positive, they sum
    to 1 and have the mean p. The kernel is :math:`K(p, q) = w(p)^T K w(q)` for a matrix K that is
    positive, with ones on its diagonal and nothing above; so S is linear between its values at the
    grid points, the vector :math:`K r` with :math:`r = \sum_s (y_s - p_s) w(p_s)`, which is all
    that is kept. A subclass says how a round changes them.

    The forecast is 0 if S(0) <= 0, else 1 if S(1) >= 0, else a root between neighbours, found by
    halving. Then S(p)(y - p) <= 0, whether y is 0 or 1, and a round adds at most :math:`(y - p)^2
    w^T K w` to :math:`r^T K r`.
    """

    bounds: ClassVar[Measure | None] = "smooth"

    def __init__(self, *, horizon: int | None = None, grid: int | None = None) -> None:
        self._plan(horizon, grid, self._best_grid)
        self._sums = self._start(self._grid)
        super().__init__(sums=self._sums)

    @staticmethod
    @abstractmethod
    def _best_grid(horizon: int) -> int:
        """The grid for this many rounds."""

    @staticmethod
    @abstractmethod
    def _start(grid: int) -> list[float] | NDArray[np.float64]:
        """S at the grid points before the first round."""

    @abstractmethod
    def _add(self, cell: int, left: float, right: float) -> None:
        """Take in what a round adds to r at the ends of a cell."""

    def _forecast(self) -> float:
        sums = self._sums
        m = self._grid
        if sums[0] <= 0:
            return 0.0
        if sums[m] >= 0:
            return 1.0
        low, high = 0, m  # S is positive at low and not at high
        while high - low > 1:
            middle = (low + high) // 2
            if sums[middle] > 0:
                low = middle
            else:
                high = middle
        above, below = float(sums[low]), float(sums[high])
        return (low + above / (above - below)) / m

    def _learn(self, p: float, y: int) -> None:
        place = p * self._grid
        cell = min(int(place), self._grid - 1)
        weight = place - cell
        self._add(cell, (1 - weight) * (y - p), weight * (y - p))

    def _bound_by(self, rounds: int, slope: float, factor: float) -> float:
        """Bound the smooth error by `factor` times the root of V, the sum of (y - p)**2.

        `slope` is the norm of 1 - 2p: since (y - p)**2 = p(1 - p) + (1 - 2p)(y - p), and the sum of
        the last is at most slope times the root of V, V <= T/4 + slope sqrt(V).

        Doubles: with u = 2**-53, S is off by at most u(|S| + 10) more after each round, and the
        forecast by 5u, where the slopes of S are at most m sqrt(2) times its norm; so the norm's
        square is at most V + 32 u T**1.5 (T + m), as long as that adds no more than a quarter to T.
        Later nothing is claimed.
        """
        extra = _ROUNDING * rounds**1.5 * (rounds + self._grid)
        if extra > rounds / 4:
            return float(rounds)
        root = min(
            (slope + math.sqrt(slope**2 + rounds + 4 * extra)) / 2, math.sqrt(rounds + extra)
        )
        return min(float(rounds), factor * root + rounds * 2.0**-53)
