"""Two neighbouring intervals, drawn so that excess and deficit balance (Foster 1999)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from truecast.arena.forecasters.base import Distribution, Planned, RandomForecaster
from truecast.arena.forecasters.intervals import (
    MAX_HORIZON,
    Array,
    Intervals,
    largest,
    least,
    neighbours,
)

__all__ = ["Foster"]


class Foster(Planned, RandomForecaster):
    """Draws between two neighbouring intervals, one with too many ones and one with too few.

    For each interval [i/m, (i + 1)/m] it keeps the excess, the sum of (outcome - upper end) over
    the rounds in which the interval was said, and the deficit, the sum of (lower end - outcome). An
    interval in which neither is positive is at rest and may be said for sure. If there is none, two
    neighbours have a positive excess E and a positive deficit D; the lower is said with probability
    D/(E + D), the upper with E/(E + D). What is said is the middle.

    This is the rule of Foster (1999), A proof of calibration via Blackwell's approachability
    theorem, as later work gives it; the paper itself could not be had. Some have means for excess
    and deficit; the proof below needs sums. The rule is to say an interval at rest whenever there
    is one; here a bisection takes the interval at rest or the pair that it meets first, which the
    proof allows too and which spares the rounds of trying out every interval.

    The expected calibration error by value after T rounds, against those who do not see the draws,
    is at most T/(2m) + u, where u is the less of

    - (1 - 1/m) sqrt(m T),
    - the largest u with u^2 = m (T (1/2 + 1/(2m))^2 + (1 - 1/m^2)(T/(2m) + u)), about sqrt(m T)/2
      when T is large.

    With the m that `horizon=T` chooses, about (4T)^(1/3), this is about 0.95 T^(2/3) for large T.
    The constants, and the proof in the notes, are ours.

    It says nothing about a single game, and nothing at all against an adversary that sees the
    forecast.

    Parameters
    ----------
    horizon
        The expected number of rounds, T: chooses the grid with the least bound. More rounds are
        allowed.
    grid
        The number of intervals, m, if you want to choose it.
    seed
        What the draws are made from.

    Notes
    -----
    Proof. Let x_i be the excess of interval i if positive, minus the deficit if that is: the signed
    distance of the ones from what the interval allows. Let c_i be its middle and h = 1/(2m). Say i
    is said and y comes. If x_i > 0, then |x_i| becomes at most |x_i + y - r|, with r the upper end;
    if x_i < 0, the same with the lower end; at rest it becomes at most the distance of y from the
    interval. So the square grows by at most 2 x_i (y - r) + (y - r)^2. For a pair, r is the common
    end, and the first term is 0 in expectation, whatever y: that is what the weights are for. So in
    expectation the sum of squares grows by at most (y - r)^2 a round, at rest by that distance
    squared, and so by at most (1 - 1/m)^2: a common end is neither 0 nor 1. Finally the error by
    value is at most the sum of n_i h + |x_i|, with n_i the number of rounds in interval i, so at
    most T h + sqrt(m sum of squares). That is the first bound.

    For the second bound, (y - r)^2 <= (|y - c_i| + h)^2 <= (1/2 + h)^2 + (1 + 2h)(1 - 2c_i)(y -
    c_i), since (y - c)^2 = c(1 - c) + (1 - 2c)(y - c), |y - c| = 2c(1 - c) + (1 - 2c)(y - c) and
    c(1 - c) <= 1/4. Over all rounds the last term adds up to at most (1 + 1/m)(1 - 1/m) times the
    error by value, which is at most T h + u.

    A round costs O(log m).

    Examples
    --------
    >>> f = Foster(grid=5)
    >>> f.distribution
    ((0.5, 1.0),)
    >>> p = f.forecast_many([1, 0, 1, 0, 1])
    >>> f.distribution
    ((0.5, 0.5), (0.7, 0.5))
    >>> Foster(horizon=1_000_000).a_priori(1_000_000) < 0.97 * 1_000_000 ** (2 / 3)
    True
    """

    bounds = "by value"

    _options = ("_horizon", "_grid", "_seed")

    def __init__(
        self, *, horizon: int | None = None, grid: int | None = None, seed: int = 0
    ) -> None:
        self._plan(horizon, grid, partial(least, _bounds), MAX_HORIZON)
        self._intervals = Intervals(self._grid)
        super().__init__(seed, excess=self._intervals.excess, deficit=self._intervals.deficit)

    def _bound(self, rounds: int) -> float:
        return min(float(_bounds(rounds, self.grid)[-1]), rounds)

    def _mixture(self) -> Distribution:
        low, high = neighbours(self._intervals.imbalance, self.grid)
        if low == high:
            return ((self._intervals.middle(low), 1.0),)
        excess, deficit = self._intervals.excess[low], self._intervals.deficit[high]
        lower = deficit / (excess + deficit)
        return (self._intervals.middle(low), lower), (self._intervals.middle(high), 1 - lower)

    def _learn(self, p: float, y: int) -> None:
        self._intervals.book(int(p * self.grid), y)

    def _refuse(self, state: dict[str, Any]) -> None:
        self._intervals.refuse(state)


def _bounds(rounds: int, most: int) -> Array:
    """Bounds on the expected error by value with 1, 2, ..., `most` intervals."""
    m = np.arange(1.0, most + 1)
    half = 1 / (2 * m)
    tilt = 1 - m**-2
    coarse = (1 - 1 / m) * np.sqrt(m * rounds)
    fine = largest(m * tilt, m * rounds * ((0.5 + half) ** 2 + tilt * half))
    bound: Array = rounds * half + np.minimum(coarse, fine)
    return bound
