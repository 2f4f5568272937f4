"""An optimal player of a few rounds, over and over."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

from truecast import _check
from truecast.arena.forecasters.base import Distribution, RandomForecaster
from truecast.arena.minimax import Solution, farey, solve
from truecast.errors import StateError

__all__ = ["Minimax"]

# of the Farey fractions that are said: as many as are solved in a few seconds
_ORDERS = {1: 2, 2: 2, 3: 3, 4: 4, 5: 7, 6: 6, 7: 6, 8: 5}
_NONE = -1


class Minimax(RandomForecaster):
    """Plays the calibration game of Qiao and Zheng (2024) by its solution.

    A new game starts every `horizon` rounds. In each round it draws from one or two points, which
    make the worst outcome as cheap as it can be: see `truecast.arena.minimax.solve`. In a game of
    up to 4 rounds no forecaster does better (docs/minimax.md, theorem 4), in a longer one none that
    says the same points, Farey fractions of a small order.

    The expected CalDist of one game is at most its value on the points said, whatever the adversary
    does who does not see the draws. CalDist is sub-additive, so after n = k horizon + r rounds it
    is at most k times that, plus the most that the first r rounds of a game can cost, which is
    computed from the solution (docs/minimax.md, theorem 6). That bound grows like n: this is the
    best there is for a few rounds, and of no use for many.

    A round costs O(points horizon) in Python; the solution is made once for all of the same
    horizon, at 5 in under a second, at 8 in some seconds.

    Parameters
    ----------
    horizon
        Rounds of a game, from 1 to 8.
    seed
        Of the draws.

    Examples
    --------
    >>> forecaster = Minimax(horizon=3)
    >>> round(forecaster.a_priori(3), 6)
    0.666667
    >>> forecaster.distribution
    ((0.5, 1.0),)
    """

    bounds = "distance"

    _options = ("_horizon", "_seed")

    def __init__(self, *, horizon: int, seed: int = 0) -> None:
        self._horizon = _check.whole_number("horizon", horizon, least=1, most=max(_ORDERS))
        super().__init__(seed, game=[_NONE] * self._horizon)

    @property
    def horizon(self) -> int:
        """The number of rounds of a game."""
        return self._horizon

    @property
    def solution(self) -> Solution:
        """The game as it is played here."""
        return _solution(self._horizon, self._horizon)

    def _mixture(self) -> Distribution:
        return _mixture(
            self._horizon, tuple(sorted(self._memory["game"][: self._rounds % self._horizon]))
        )

    def _learn(self, p: float, y: int) -> None:
        game = self._memory["game"]
        at = self._rounds % self._horizon
        game[at] = 2 * _number(self._horizon, p) + y
        if at + 1 == self._horizon:
            game[:] = [_NONE] * self._horizon

    def _bound(self, rounds: int) -> float:
        games, rest = divmod(rounds, self._horizon)
        return games * self.solution.value() + (_most(self._horizon, rest, ()) if rest else 0.0)

    def _refuse(self, state: dict[str, Any]) -> None:
        game = state["game"]
        played = state["rounds"] % self._horizon
        kinds = 2 * len(farey(_ORDERS[self._horizon]))
        if any(not 0 <= item < kinds for item in game[:played]) or any(
            item != _NONE for item in game[played:]
        ):
            raise StateError(f"the saved game must be of {played} rounds, got {game!r:.60}")


@cache
def _solution(horizon: int, rounds: int) -> Solution:
    """The game of `rounds` rounds with the points of this horizon."""
    return solve(rounds, farey(_ORDERS[horizon]))


@cache
def _number(horizon: int, p: float) -> int:
    return [float(point) for point in farey(_ORDERS[horizon])].index(p)


@lru_cache(maxsize=1 << 14)
def _mixture(horizon: int, items: tuple[int, ...]) -> Distribution:
    return _solution(horizon, horizon).mixture(items)


@lru_cache(maxsize=1 << 14)
def _most(horizon: int, rounds: int, items: tuple[int, ...]) -> float:
    """The greatest expected distance, from these items on, if the game is left after `rounds`."""
    if len(items) == rounds:
        return _solution(horizon, rounds).value(items)
    mixture = [(2 * _number(horizon, p), weight) for p, weight in _mixture(horizon, items)]
    return max(
        sum(
            weight * _most(horizon, rounds, tuple(sorted((*items, item + y))))
            for item, weight in mixture
        )
        for y in (0, 1)
    )
