"""Online Platt scaling of another forecaster."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecast.arena.forecasters.follower import Follower
from truecast.errors import StateError
from truecast.recalibrate.hints import Platt

__all__ = ["OnlinePlatt"]


class OnlinePlatt(Follower):
    """Passes another's forecasts through a line on the logit scale (after Platt, 1999).

    The line is fitted as outcomes come, as by `truecast.hints.Platt`: Newton steps on the log loss
    so far, from the identity. Gupta and Ramdas (2023), who made Platt scaling online, take online
    Newton steps (Hazan, Agarwal and Kale, 2007) in a ball; what they prove of their regret is not
    proved of this.

    A practical baseline, the usual one: it corrects a base that is too bold, too timid or shifted,
    while the future is like the past. Nothing is proved about its calibration: coins that stop when
    they have run one way, as `EarlyStop` tosses them, leave it off for ever.

    A round costs O(1) and one of the base.

    Parameters
    ----------
    base
        The forecaster that is followed, copied as it is: one of truecast or `truecast.arena` that
        looks at outcomes alone, or what `config` says of it. None takes `RunningMean`.
    memory
        How many rounds it remembers, about: 2 or more. None remembers all.

    Raises
    ------
    InputError
        If an option breaks its rule.

    Examples
    --------
    >>> import truecast as tc
    >>> f = OnlinePlatt(tc.arena.Climatology(rate=0.9))
    >>> game = tc.arena.play(f, tc.arena.Coins(0.3), rounds=1_000)
    >>> bool(abs(game.p[500:].mean() - 0.3) < 0.05)
    True
    """

    def __init__(self, base: Any = None, *, memory: int | None = None) -> None:
        super().__init__(base)
        self._hint = Platt(memory)

    @property
    def config(self) -> dict[str, Any]:
        """The keyword arguments that rebuild this forecaster."""
        return super().config | self._hint.config

    def _answer(self, q: float) -> float:
        return self._hint.predict(q)

    def _take(self, q: float, y: int) -> None:
        self._hint.learn(q, y)

    def _follow(
        self, scores: NDArray[np.float64], outcomes: NDArray[np.uint8], said: NDArray[np.float64]
    ) -> None:
        said[:] = self._hint.forecast_many(scores, outcomes)

    def state(self) -> dict[str, Any]:
        """Everything a round can change, as plain data."""
        return super().state() | {"hint": self._hint.state()}

    def load(self, state: object) -> None:
        """Take over a state that `state` gave, or raise StateError with nothing changed."""
        hint, self._hint = self._hint, Platt(**self._hint.config)
        try:
            self._hint.load(state.get("hint") if isinstance(state, dict) else None)
            super().load(state)
        except StateError:
            self._hint = hint
            raise
