"""Defensive forecasting against every function that the lower distance to calibration can use."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecast import _check
from truecast.arena.forecasters.base import LiteratureForecaster, Planned
from truecast.errors import StateError
from truecast.forecasters.base import check_horizon, need_horizon_or_grid

__all__ = ["ArcDefensive"]

_MOST_GRID = 1 << 17  # beyond, rounding would be worth more than the cells
_PARTS = 32  # of a cell, to bound what one round adds
_STEPS, _SMALL = 100, 1e-14  # of the search for a root, and what is as good as 0


class ArcDefensive(Planned, LiteratureForecaster):
    r"""K29* of Vovk (2005) with a kernel made for the lower distance to calibration: that stays near 0.53 sqrt(T).

    Forecasts lie on an arc: p = (1 - cos(angle))/2. Every pair of prices that proves a lower distance is topped by a
    function f of the forecast whose value and slope on the arc satisfy f\ :sup:`2` + f'\ :sup:`2` <= 1
    (docs/defensive.md, theorem 1). So it is enough to keep the sum of (y - p) f(p) small for all functions of norm 1,
    the norm being a mean of f\ :sup:`2` + f'\ :sup:`2` over the arc; defensive forecasting does that: it says the root
    of the residuals so far, weighted by the kernel of that norm. With a mean chosen so that every forecast costs the
    same, whatever the outcomes,

    .. math:: \mathrm{LowerCalDist} \le 0.528 \sqrt{T} + \frac{\pi}{2m} \, T

    for every T (docs/defensive.md, theorem 3) if m is 32 or more, where 0.528 is computed and not proved for all m at
    once; `a_priori` has the number of the m at hand. With `horizon` the second term is at most 0.4 T\ :sup:`1/3`.

    The lower distance is the distance to calibration with rounds that may be split. The distance itself is larger by
    at most 41 T\ :sup:`1/3` according to Wang and Yang (2026); with that, it beats sqrt(T/2), the bound of `BentGrid`,
    for enormous T. What is proved here is about the lower distance, and nothing about sharpness.

    Parameters
    ----------
    horizon
        The expected number of rounds, T; chooses a grid of 4 T\ :sup:`2/3` cells. More rounds are allowed.
    grid
        The number of cells of the arc, m, even: a round costs O(m), in a few operations on arrays.

    Examples
    --------
    >>> f = ArcDefensive(horizon=1_000)
    >>> forecasts = f.forecast_many([0, 1, 1] * 300)
    >>> f.lower_distance_bound <= f.a_priori(900) < 0.71 * 900**0.5
    True
    """

    bounds = "lower distance"

    def __init__(self, *, horizon: int | None = None, grid: int | None = None) -> None:
        self._horizon = check_horizon(horizon, most=10**9)
        need_horizon_or_grid(horizon, grid)
        if grid is None:
            grid = min(2 * max(16, math.ceil(2 * (self._horizon or 1) ** (2 / 3))), _MOST_GRID)
        self._grid = _check.whole_number("grid", grid, least=2, most=_MOST_GRID)
        self._grid += self._grid % 2  # the mean is infinite, though integrable, at the middle of the arc
        self._width = math.pi / self._grid
        # what doubles lose: ten times what was found beside 140 bits, where the kernel grows to m**2 at its ends
        self._up = 1 + 1e-9 + self._grid**2 * 2.0**-53
        self._rising = _rising(self._grid)
        self._falling = self._rising[::-1].copy()
        self._kernel = self._rising * self._falling
        self._centre = 0.5 * self._kernel * np.cos(self._width * np.arange(self._grid + 1))
        self._place: tuple[int, float] = (0, 0.0)
        super().__init__(bias=np.zeros(self._grid + 1), sums=[0.0, 0.0])

    @property
    def lower_distance_bound(self) -> float:
        """A proved bound on the lower distance to calibration of the forecasts so far, in total."""
        square, off = self._memory["sums"]
        return (math.sqrt(max(float(square), 0.0)) + float(off) * self._width / 2) * self._up

    def _bound(self, rounds: int) -> float:
        """docs/defensive.md, theorem 3: root of T times what a round adds at most, and what the grid hides."""
        return (math.sqrt(rounds * self._most) + rounds * self._width / 2) * self._up

    @cached_property
    def _most(self) -> float:
        """The most that p(1-p)K(p,p) comes to: K is convex in a cell, so at most its values at the ends of a part."""
        x = np.linspace(0.0, 1.0, _PARTS + 1)[:, np.newaxis]
        k, cross = self._kernel, self._rising[:-1] * self._falling[1:]
        inside = (1 - x) ** 2 * k[:-1] + 2 * x * (1 - x) * cross + x**2 * k[1:]
        variance = np.sin(self._width * (np.arange(self._grid) + x)) ** 2 / 4
        ends = [np.maximum(a[1:], a[:-1]) for a in (inside, variance)]
        middle = self._grid // 2  # p = 1/2 is a knot: no part has its largest variance inside
        return float((ends[0] * ends[1])[:, : middle + 1].max())

    def _forecast(self) -> float:
        """Return the root of S*(p) = sum of K(p, p_s)(y_s - p_s) + K(p, p)(1/2 - p), or the end it points to."""
        pulls = self._memory["bias"] + self._centre
        if pulls[0] <= 0:
            self._place = 0, 0.0
        elif pulls[-1] >= 0:
            self._place = self._grid - 1, 1.0
        else:
            low, high = 0, self._grid
            while high - low > 1:  # pulls[low] > 0 >= pulls[high]
                middle = (low + high) // 2
                low, high = (middle, high) if pulls[middle] > 0 else (low, middle)
            self._place = low, self._root(low)
        cell, x = self._place
        return math.sin(self._width * (cell + x) / 2) ** 2

    def _root(self, cell: int) -> float:
        """Where S* passes 0 between two knots, by the Illinois rule: S* is nearly straight there."""
        left, right, cross = self._ends(cell)
        s, t = float(self._memory["bias"][cell]), float(self._memory["bias"][cell + 1])
        low, high = 0.0, 1.0
        above = s + 0.5 * left * math.cos(self._width * cell)
        below = t + 0.5 * right * math.cos(self._width * (cell + 1))
        side, enough = 0.0, _SMALL * (abs(s) + abs(t) + left + right)
        for _ in range(_STEPS):
            x = (low * below - high * above) / (below - above)
            kernel = (1 - x) * ((1 - x) * left + 2 * x * cross) + x * x * right
            here = (1 - x) * s + x * t + 0.5 * kernel * math.cos(self._width * (cell + x))
            if abs(here) <= enough:
                break
            if here > 0:
                low, above = x, here
                below /= 1 + (side > 0)  # the end that stays a second time
            else:
                high, below = x, here
                above /= 1 + (side < 0)
            side = here
        return x

    def _ends(self, cell: int) -> tuple[float, float, float]:
        cross = self._rising[cell] * self._falling[cell + 1]
        return float(self._kernel[cell]), float(self._kernel[cell + 1]), float(cross)

    def _learn(self, p: float, y: int) -> None:
        (cell, x), bias, off = self._place, self._memory["bias"], y - p
        left, right, cross = self._ends(cell)
        pull = float((1 - x) * bias[cell] + x * bias[cell + 1])
        kernel = (1 - x) ** 2 * left + 2 * x * (1 - x) * cross + x * x * right
        self._memory["sums"][0] += 2 * off * pull + off * off * kernel
        self._memory["sums"][1] += abs(off)
        fall = (1 - x) * self._falling[cell] + x * self._falling[cell + 1]
        rise = (1 - x) * self._rising[cell] + x * self._rising[cell + 1]
        bias[: cell + 1] += (off * fall) * self._rising[: cell + 1]
        bias[cell + 1 :] += (off * rise) * self._falling[cell + 1 :]

    def _refuse(self, state: dict[str, Any]) -> None:
        (square, off), rounds = state["sums"], state["rounds"]
        if not (0 <= off <= rounds and square <= rounds * self._most * self._up):
            raise StateError(f"the saved sums must be of {rounds} rounds, got {state['sums']!r:.60}")


def _rising(grid: int) -> NDArray[np.float64]:
    """Half of the kernel of docs/defensive.md, section 3: K(i, j) = rising[min(i, j)] * rising[grid - max(i, j)].

    K is the inverse of the tridiagonal matrix of the norm, so `rising` solves its rows but the last; it is scaled by
    the Wronskian, which is the same in every cell.
    """
    width = math.pi / grid
    middles = width * (np.arange(grid) + 0.5)
    mean = np.sin(middles) ** 2 * np.sqrt(-np.log(np.abs(np.cos(middles))))
    mean[[0, -1]] *= 2  # where a cell is wide for its place on the arc; elsewhere every forecast costs the same
    mean /= mean.sum() * width
    own, other = mean * (width / 4 + 1 / width), mean * (width / 4 - 1 / width)
    rising = [1.0]
    before = 0.0
    for i in range(grid):
        here = own[i] + (own[i - 1] if i else 0.0)
        rising.append(float(-(here * rising[-1] + before) / other[i]))
        before = other[i] * rising[-2]
    found = np.array(rising)
    half = grid // 2
    wronskian = -other[half] * (found[half + 1] * found[half] - found[half] * found[half - 1])
    return found / math.sqrt(wronskian)
