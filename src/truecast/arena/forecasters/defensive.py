"""Defensive forecasting."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from truecast.arena.forecasters.rooted import RootedForecaster

__all__ = ["Defensive"]

_SLOPE = math.sqrt(19 / 6)


class Defensive(RootedForecaster):
    r"""Forecasts where no bet on the errors so far would win: defensive forecasting.

    This is K29 of Vovk, Takemura and Shafer (2005). The forecast is a root of :math:`S(p) = \sum_s
    K(p, p_s)(y_s - p_s)`; 0 where S(0) <= 0, and else 1 where S(1) >= 0 (K29 asks for a root also
    then, if there is one: what is proved needs only S(p)(y - p) <= 0). The kernel is Laplace's,
    :math:`K(x, y) = e^{-|x - y|}` on the grid of all j/m and linear in between in x and in y, so
    that memory stays as it is; with the identity on the grid in its place this is `KakadeFoster`.
    Whatever the outcomes, after T rounds the total smooth calibration error is at most

    .. math:: \sqrt V \Big(\sqrt2 + \frac{\sqrt T}{2m}\Big), \qquad
        \sqrt V \le \tfrac12\big(g + \sqrt{T + g^2}\big), \quad g^2 = \tfrac{19}6

    which is about :math:`0.83\sqrt T + 1.5` with the grid of `horizon=T`, and :math:`0.71\sqrt T +
    1.3` on the finest. The bound says nothing of the error by value, which a contradicting
    adversary makes about T/2, nor of sharpness.

    Parameters
    ----------
    horizon
        The expected number of rounds, T. Alone, it chooses 2 sqrt(T) as the grid, rounded up. More
        rounds are allowed.
    grid
        The number of cells, m.

    Raises
    ------
    InputError
        If an option breaks its rule, or neither is given.

    Notes
    -----
    A round costs O(m), so T rounds with the grid of `horizon=T` cost O(T**1.5); the state is m + 1
    floats. Without the grid a round would cost as much as there were rounds before it.

    Why this kernel: every function that is smooth in the sense of the measure has a finite norm
    with it, while a Gaussian kernel's functions are all analytic. On [0, 1] its norm is

    .. math:: \|f\|^2 = \tfrac12\big(f(0)^2 + f(1)^2\big) + \tfrac12 \int_0^1 f^2 + f'^2

    (on [0, x], :math:`K_x' = K_x` and :math:`fK_x + f'K_x' = (fK_x)'`; on [x, 1], :math:`K_x' =
    -K_x` and it is :math:`-(fK_x)'`; so the product of f and :math:`K_x` is f(x)). Thus
    :math:`\|f\|^2 \le 2` if f has slopes of at most 1 and values in [-1, 1], and no other width
    does better: with :math:`e^{-|x - y|/s}` the bound is 1 + (s + 1/s)/2.

    The proof is ours, by Vovk's argument. Write r for the sum of the (y - p) w(p), where w(p) are
    the weights of the grid points in p, and V for the sum of (y - p)**2. (1) A round adds 2 S(p)(y
    - p) <= 0 and :math:`(y - p)^2 w^T K w \le (y - p)^2` to :math:`r^T K r`, so it stays at most V.
    (2) For the values v of f on the grid, :math:`v^T K^{-1} v \le \|f\|^2`, the least norm of all
    functions with these values, so :math:`v^T r \le \sqrt{2V}`. (3) f differs from its
    interpolation by at most 1/(2m), and the sum of the |y - p| is at most :math:`\sqrt{TV}`. (4) (y
    - p)**2 = p(1 - p) + (1 - 2p)(y - p), and the norm of 1 - 2p is g, so :math:`V \le T/4 + g\sqrt
    V`. K29*, which adds K(p, p)(1 - 2p)/2 to S, has T/4 itself. `a_priori` adds what rounding may
    do: less than 1 % up to 10**8 rounds.

    Examples
    --------
    >>> import truecast as tc
    >>> f = Defensive(horizon=1_000)
    >>> f.grid, round(f.a_priori(1_000), 1)
    (64, 27.8)
    >>> game = tc.arena.play(f, tc.arena.Threshold(), rounds=1_000)
    >>> tc.smooth_calibration_error(game.y, game.p, total=True) < 27.8
    True
    """

    def __init__(self, *, horizon: int | None = None, grid: int | None = None) -> None:
        super().__init__(horizon=horizon, grid=grid)
        self._falling = np.exp(-np.arange(self._grid + 1) / self._grid)
        self._rising = self._falling[::-1].copy()

    @staticmethod
    def _best_grid(horizon: int) -> int:
        return 2 * (math.isqrt(horizon - 1) + 1)

    @staticmethod
    def _start(grid: int) -> NDArray[np.float64]:
        return np.zeros(grid + 1)

    def _add(self, cell: int, left: float, right: float) -> None:
        near = float(self._falling[1])  # from one end of the cell to the other
        self._sums[: cell + 1] += (left + near * right) * self._rising[self._grid - cell :]
        self._sums[cell + 1 :] += (near * left + right) * self._falling[: self._grid - cell]

    def _bound(self, rounds: int) -> float:
        return self._bound_by(rounds, _SLOPE, math.sqrt(2) + math.sqrt(rounds) / (2 * self._grid))
