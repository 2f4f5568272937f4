"""Fair coins, until the forecaster has had bad luck."""

from __future__ import annotations

from collections.abc import Iterator

from truecast import _check
from truecast.arena.adversaries.base import Adversary
from truecast.arena.game import Round

__all__ = ["EarlyStop"]


class EarlyStop(Adversary):
    r"""Tosses fair coins until the forecasts are off by `enough` in sum, then keeps them off.

    From the proof of Qiao and Zheng (2024) that no forecaster's expected distance to calibration
    grows slower than the cube root of T: while the coins last the forecasts must stay near 1/2, so
    their signed error, :math:`\sum_t (p_t - y_t)`, is a random walk; once it has gone far enough,
    constant outcomes of the other kind than would pay it back are forecast well, and leave it. What
    is summed and when it is enough are our reading of that proof, whose text we did not have. Sees
    past forecasts, but not the current one.

    Parameters
    ----------
    enough
        When to stop tossing; the cube root of the rounds if not given.
    """

    random = True

    def __init__(self, enough: float | None = None) -> None:
        self._enough = (
            None if enough is None else _check.between("enough", enough, 0.0, float("inf"))
        )

    def outcomes(self, game: Round) -> Iterator[int]:
        """Yield an outcome for every round."""
        enough = self._enough or game.rounds ** (1 / 3)
        excess = 0.0
        for coin in game.rng.integers(0, 2, game.rounds).tolist():
            yield coin
            excess += game.said[-1] - game.outcomes[-1]
            if abs(excess) >= enough:
                break
        while True:
            yield int(excess < 0)
