"""Kakade and Foster's deterministic forecaster."""

from __future__ import annotations

import math

from truecast.arena.forecasters.rooted import RootedForecaster

__all__ = ["KakadeFoster"]


class KakadeFoster(RootedForecaster):
    r"""Forecasts where the errors so far, shared out between grid points, cancel.

    By Kakade and Foster (2004 and 2008). A tent on each point j/m of a grid weighs the errors near
    it: :math:`S_j = \sum_s w_j(p_s)(y_s - p_s)`. The forecast is a root of :math:`S(p) = \sum_j
    w_j(p) S_j`; 0 where S(0) <= 0, and else 1 where S(1) >= 0. So smooth calibration (Foster and
    Hart, 2018) needs no coins: whatever the outcomes, after T rounds the total smooth calibration
    error is at most

    .. math:: \sqrt V \sqrt{m + 1 + T/(2m^2)}, \qquad
        \sqrt V \le \tfrac12\big(g + \sqrt{T + g^2}\big), \quad g^2 = \frac{(m + 1)(m + 2)}{3m}

    which is about :math:`0.61\,T^{2/3}` with the grid of `horizon=T`. Of `Defensive` and the
    forecasters of truecast it grows like :math:`\sqrt T`. The bound says nothing of the error by
    value, which a contradicting adversary makes about T/2, nor of sharpness.

    Parameters
    ----------
    horizon
        The expected number of rounds, T. Alone, it chooses the cube root of T as the grid, which
        makes the second factor of the bound least. More rounds are allowed.
    grid
        The number of cells, m.

    Raises
    ------
    InputError
        If an option breaks its rule, or neither is given.

    Notes
    -----
    A round costs O(log m), the state is m + 1 floats.

    The rule for two outcomes and the proof are ours, after what citing papers state of theirs.
    Write V for the sum of (y - p)**2, f for a function of slope at most 1 with values in [-1, 1],
    and u = w(1 - w) for the weight w of a forecast in its cell. (1) S(p)(y - p) <= 0, so the sum of
    the squares of all :math:`S_j` grows by at most (y - p)**2 times the sum of the squared weights,
    1 - 2u. (2) Between grid points f differs from its interpolation by at most 2u/m. (3) Hence, by
    Cauchy and Schwarz, over the m + 1 grid points, over the rounds, and over these two,

    .. math:: \sum_t f(p_t)(y_t - p_t) \le \sqrt{(m + 1) \sum_t (1 - 2u_t)(y_t - p_t)^2}
        + \sqrt{\sum_t \frac{2u_t}{m^2} \sum_t 2u_t (y_t - p_t)^2} \le \sqrt{\Big(m + 1 +
        \frac{T}{2m^2}\Big) V}

    as 2u <= 1/2. (4) (y - p)**2 = p(1 - p) + (1 - 2p)(y - p), and 1 - 2p is its own interpolation,
    so :math:`V \le T/4 + g\sqrt V`, where g**2 is the sum of (1 - 2j/m)**2. `a_priori` adds what
    rounding may do: less than 1 % up to 10**8 rounds.

    Examples
    --------
    >>> import truecast as tc
    >>> f = KakadeFoster(horizon=1_000)
    >>> f.grid, round(f.a_priori(1_000), 1)
    (10, 67.6)
    >>> game = tc.arena.play(f, tc.arena.Threshold(), rounds=1_000)
    >>> tc.smooth_calibration_error(game.y, game.p, total=True) < 67.6
    True
    """

    @staticmethod
    def _best_grid(horizon: int) -> int:
        return round(math.cbrt(horizon))

    @staticmethod
    def _start(grid: int) -> list[float]:
        return [0.0] * (grid + 1)  # a list: entries of arrays are slow to reach

    def _add(self, cell: int, left: float, right: float) -> None:
        self._sums[cell] += left
        self._sums[cell + 1] += right

    def _bound(self, rounds: int) -> float:
        m = self._grid
        slope = math.sqrt((m + 1) * (m + 2) / (3 * m))
        return self._bound_by(rounds, slope, math.sqrt(m + 1 + rounds / (2 * m * m)))
