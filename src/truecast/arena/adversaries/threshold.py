"""Contradiction."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from truecast import _check
from truecast.arena.adversaries.base import Adversary
from truecast.arena.game import Round

__all__ = ["Threshold"]


class Threshold(Adversary):
    """Contradicts: 1 if the forecast is at most 1/2, else 0.

    Sees the forecast, or its distribution's mean. If it sees the forecast, the outcomes at each
    value are all the same and at least 1/2 away, so the error by value is T/2 or more for any
    forecaster (Oakes 1985, Dawid 1985). So no deterministic forecaster can keep that error small,
    and the distance is the better measure.

    Parameters
    ----------
    sees
        "forecast", or "distribution" to use the mean of the possible forecasts.
    """

    def __init__(self, sees: Literal["forecast", "distribution"] = "forecast") -> None:
        _check.choice("sees", sees, ("forecast", "distribution"))
        self.sees = sees

    def outcomes(self, game: Round) -> Iterator[int]:
        """Yield an outcome for every round."""
        while True:
            yield int(sum(p * weight for p, weight in game.distribution) <= 0.5)
