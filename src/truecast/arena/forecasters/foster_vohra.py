"""No internal regret in the squared loss (Foster and Vohra 1998)."""

from __future__ import annotations

from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np

from truecast import _check
from truecast.arena.forecasters.base import Distribution, Planned, RandomForecaster
from truecast.arena.forecasters.intervals import (
    MAX_HORIZON,
    Array,
    largest,
    least,
    neighbours,
)
from truecast.errors import StateError

__all__ = ["FosterVohra"]


class FosterVohra(Planned, RandomForecaster):
    """Draws a point of the grid so that nobody regrets not having said another one in its place.

    The regret R_ij is the sum over the rounds of (v_i - y)^2 - (v_j - y)^2, each times the
    probability that v_i = i/m had, for all pairs of points i and j (Foster and Vohra 1998,
    Asymptotic calibration). A point without a positive regret may be said for sure. If there is
    none, there are neighbours i and i + 1 of which the lower regrets not having been higher and the
    upper not having been lower; they are drawn with probabilities inversely proportional to g_i =
    sum over j of w_ij R_ij^+ |v_i - v_j|, where w_ij = |i - j|^-decay weighs the pairs.

    The paper draws from a distribution that balances the flow between all points, sum over j of
    mu_i R_ij^+ - mu_j R_ji^+ = 0, and weighs all pairs alike. Two neighbours that regret only each
    other, which is soon so, balance it; before that they still do all that the proof asks for (see
    the notes), and no system of equations has to be solved. The larger the decay, the more this is
    the rule of `Foster` with an interval around each point.

    The expected calibration error by value after T rounds, against those who do not see the draws,
    is at most T/(2m) + u, where, with S_e the sum over k = 1, ..., m of k^(e - decay), u is the
    less of

    - sqrt((m + 1)(1 + S_2) T),
    - the largest u with u^2 = (m + 1)(1 + 1/S_2)(T (S_2/4 + S_3/(2m) + S_4/(4m^2)) + (S_2 +
      S_3/m)(T/(2m) + u)).

    With decay 4 and the m that `horizon=T` chooses it is about 1.31 T^(2/3) for large T. With decay
    0, the paper's, S_2 is about m^3/3, and no more follows than T^(5/6), which is also what the
    paper's theorems give when the squares they speak of are turned into absolute values. Later
    papers credit it with T^(2/3). The constants and the proof are ours.

    It says nothing about a single game, and nothing at all against an adversary that sees the
    forecast.

    Parameters
    ----------
    horizon
        The expected number of rounds, T: chooses the grid with the least bound. More rounds are
        allowed.
    grid
        The number of steps between 0 and 1, m, if you want to choose it: there are m + 1 points.
    decay
        How much less the regrets of far pairs weigh: a whole number from 0, the paper's, to 16.
    seed
        What the draws are made from.

    Notes
    -----
    Proof. Let b_i and n_i be the sums of (y - v_i) and of 1 over the rounds, times the probability
    of v_i. With d = v_j - v_i, R_ij = 2 d b_i - n_i d^2: positive at most on the side of i to which
    b_i points, and there for some j only if it is for the neighbour. With k = |i - j|, R_ij =
    (2k/m) x_ij, where x_ij is by how much b_i exceeds n_i k/(2m) on the side of j. A round in which
    v_i has the probability mu_i changes x_ij by mu_i (y - z_ij) if j is above and by the opposite
    if it is below, less so if x_ij becomes negative, with z_ij the middle between v_i and v_j. So
    P, the sum over all pairs of k^2 w_ij (x_ij^+)^2, grows by at most m^2 times the sum of +-mu_i
    g_i (y - z_i), where z_i is a mean of the z_ij that regret, and by the squares. For two
    neighbours the signs differ and mu_i g_i is the same, so the sum is minus a multiple of z_i -
    z_(i+1), and z_i is not below the middle between the two, z_(i+1) not above it. The squares are
    at most mu_i^2 q_i, where q_i is the sum over k of k^(2 - decay) (|y - v_i| + k/(2m))^2 or, if
    that is less, of k^(2 - decay). There may be a j on either side at the distance k, but it counts
    once: if the round turns b_i round, the x_ij^+ that appears on the other side is at most what
    its change exceeds x_ij^+ by on this one.

    Since |b_i| exceeds n_i/(2m) by at most the x_ij^+ of its neighbour, the sum of |b_i| is at most
    T/(2m) + sqrt((m + 1) P), with P at most the sum of mu_i^2 q_i over all rounds, for any
    outcomes. What was drawn differs from this by the sum over i of |sum over t of (1[v_i drawn]
    - mu_i)(y - v_i)|: martingales, together in expectation at most the root of m + 1 times the
    expected sum of mu_i (1 - mu_i)(y - v_i)^2. By Cauchy and Schwarz the two roots are at most
    sqrt((m + 1)(1 + 1/S_2) sum of mu_i q_i). That is the first bound, and the second follows as for
    `Foster`.

    A round costs O(log m).

    Examples
    --------
    >>> f = FosterVohra(grid=4)
    >>> f.distribution
    ((0.5, 1.0),)
    >>> p = f.forecast_many([1, 0, 1, 0, 1])
    >>> [round(weight, 3) for point, weight in f.distribution]
    [0.564, 0.436]
    >>> FosterVohra(horizon=1_000_000).a_priori(1_000_000) < 1.4 * 1_000_000 ** (2 / 3)
    True
    """

    bounds = "by value"

    _options = ("_horizon", "_grid", "_decay", "_seed")

    def __init__(
        self, *, horizon: int | None = None, grid: int | None = None, decay: int = 4, seed: int = 0
    ) -> None:
        self._decay = _check.whole_number("decay", decay, least=0, most=16)
        self._plan(horizon, grid, partial(least, partial(_bounds, self._decay)), MAX_HORIZON)
        m = self._grid
        steps = range(m + 1)
        self._powers = [
            list(accumulate(k ** (e - decay) if k else 0 for k in steps)) for e in (2, 3)
        ]
        self._biases, self._counts = [0.0] * (m + 1), [0.0] * (m + 1)
        super().__init__(seed, biases=self._biases, counts=self._counts)

    @property
    def decay(self) -> int:
        """How much less the regret of far pairs weighs."""
        return self._decay

    def _bound(self, rounds: int) -> float:
        return min(float(_bounds(self.decay, rounds, self.grid)[-1]), rounds)

    def _mixture(self) -> Distribution:
        low, high = neighbours(self._imbalance, self.grid + 1)
        if low == high:
            return ((low / self.grid, 1.0),)
        from_low, from_high = self._pull(low, self.grid - low), self._pull(high, high)
        lower = from_high / (from_low + from_high)
        return (low / self.grid, lower), (high / self.grid, 1 - lower)

    def _imbalance(self, i: int) -> float:
        """Positive if point i regrets not being the next, negative if the one before, else 0."""
        bias = self._biases[i]
        half = self._counts[i] / 2
        return max(bias - half, 0.0) or min(bias + half, 0.0)

    def _pull(self, i: int, room: int) -> float:
        """The g_i of the rule, up to a factor.

        That is the sum over k = 1, ..., room of k^(2 - decay) (2 m |b_i| - n_i k)^+.
        """
        bias = 2 * abs(self._biases[i])
        count = self._counts[i]
        most = room if bias >= room * count else int(bias / count)
        return bias * self._powers[0][most] - count * self._powers[1][most]

    def _learn(self, p: float, y: int) -> None:
        for v, weight in self.distribution:
            i = round(v * self.grid)
            self._biases[i] += weight * (self.grid * y - i)
            self._counts[i] += weight

    def _refuse(self, state: dict[str, Any]) -> None:
        for i, (bias, count) in enumerate(zip(state["biases"], state["counts"], strict=True)):
            room = count * (1 + 1e-6)  # they are sums of fractions, rounded
            if not 0 <= count <= state["rounds"] or not -i * room <= bias <= (self.grid - i) * room:
                raise StateError(f"the saved bias and count of point {i} are of no rounds")


def _bounds(decay: int, rounds: int, most: int) -> Array:
    """Bounds on the expected error by value with grids of 1, 2, ..., `most` steps."""
    m = np.arange(1.0, most + 1)
    near, far, farther = (np.cumsum(m ** (e - decay)) for e in (2, 3, 4))
    scale = (m + 1) * (1 + 1 / near)
    slope = near + far / m
    square = near / 4 + far / (2 * m) + farther / (4 * m**2)
    coarse = np.sqrt((m + 1) * (1 + near) * rounds)
    fine = largest(scale * slope, scale * rounds * (square + slope / (2 * m)))
    bound: Array = rounds / (2 * m) + np.minimum(coarse, fine)
    return bound
