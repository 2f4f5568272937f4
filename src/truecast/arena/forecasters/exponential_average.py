"""The exponential average of the outcomes."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from truecast.arena.forecasters.base import LiteratureForecaster
from truecast.certificate import round_up
from truecast.errors import StateError
from truecast.forecasters.base import check_horizon

__all__ = ["ExponentialAverage"]

_ULP = Fraction(1, 2**52)  # more than one round in doubles is off


class ExponentialAverage(LiteratureForecaster):
    r"""Moves its forecast towards each outcome by 1/m of the way, starting at 1/2.

    .. math:: p \leftarrow p + (y - p)/m

    The usual moving average, with an m that has a proof: :math:`m = 1 + \sqrt{T/2}` for a horizon
    of T rounds, and :math:`1 + \sqrt{t/2}` in round t without one. Whatever the outcomes, after T
    rounds the lower distance to calibration and the smooth calibration error are, in total, at most

    ================  ====================  ================  ======================================
    .                 horizon=T             no horizon        for every m > 1, if it stays the same
    ================  ====================  ================  ======================================
    lower distance    sqrt(T/2) + 1/2       sqrt(2T)          m/2 + T/(4(m - 1))
    smooth error      0.5304 sqrt(T) + 1/2  1.0607 sqrt(T)    m/2 + T/(8(m - 1))
    ================  ====================  ================  ======================================

    (docs/theory.md, theorem 9). `a_priori` is the first line. The distance to calibration, which
    does not split rounds, is larger than the lower distance by at most 1.96 T\ :sup:`1/3`
    (docs/distance.md, theorem 12).

    The bounds say nothing about the error by value, which a contradicting adversary makes about
    T/2, or about sharpness: after a change it takes m rounds to follow, and on a fair coin it never
    settles.

    Parameters
    ----------
    horizon
        The expected number of rounds, T. You can play more; m stays the same. None uses an m that
        grows.

    Raises
    ------
    InputError
        If the horizon is not a whole number of 1 or more.

    Notes
    -----
    A round costs O(1).

    Examples
    --------
    >>> import truecast as tc
    >>> f = ExponentialAverage(horizon=8)
    >>> f.forecast_many([1, 1, 0]).round(3).tolist()
    [0.5, 0.667, 0.778]
    >>> f = ExponentialAverage(horizon=1_000)
    >>> game = tc.arena.play(f, tc.arena.EarlyStop(), rounds=1_000)
    >>> tc.lower_calibration_distance(game.y, game.p, total=True).upper < f.a_priori(1_000) < 22.9
    True
    """

    bounds = "lower distance"

    _options = ("_horizon",)

    def __init__(self, *, horizon: int | None = None) -> None:
        self._horizon = check_horizon(horizon)
        super().__init__(average=[0.5])

    @property
    def horizon(self) -> int | None:
        """The number of rounds this was built for; more are allowed."""
        return self._horizon

    def _m(self, round_number: int) -> float:
        return 1 + math.sqrt((self._horizon or round_number) / 2)

    def _bound(self, rounds: int) -> float:
        """Theorem 9 plus what doubles add; also, every forecast is within 1 of its outcome."""
        m = Fraction(self._m(rounds))
        if self._horizon is None:
            proved = Fraction(math.nextafter(math.sqrt(2 * rounds), math.inf))
        else:
            proved = m / 2 + rounds / (4 * (m - 1))
        return min(round_up(proved + rounds * (m + 10) * _ULP), float(rounds))

    def _forecast(self) -> float:
        return float(self._memory["average"][0])

    def _learn(self, p: float, y: int) -> None:
        self._memory["average"][0] = p + (y - p) / self._m(self._rounds + 1)

    def _refuse(self, state: dict[str, Any]) -> None:
        (p,) = state["average"]
        if not 0 <= p <= 1 or (state["rounds"] == 0 and p != 0.5):
            rule = "be from 0 to 1, and 1/2 before the first round"
            raise StateError(f"the saved average must {rule}, got {p!r}")
