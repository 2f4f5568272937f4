"""Greed: the outcome that makes things worse at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Literal

from truecast import _check
from truecast.arena.adversaries.base import Adversary, LadderAdversary
from truecast.arena.game import Round

__all__ = ["GreedyBias", "GreedyCertificate"]


class GreedyBias(Adversary):
    """Takes the outcome after which the calibration error by value is larger; a one if neither is.

    Sees the forecast, or its distribution, and then uses the expectation. If a forecaster names two
    points, it sees only their middle. If it sees a single forecast, it plays like `Threshold`: the
    first outcome at a value is the farther one, and repeating it is always worse. With the
    distribution, the two differ.

    Parameters
    ----------
    sees
        "forecast" or "distribution".
    """

    def __init__(self, sees: Literal["forecast", "distribution"] = "forecast") -> None:
        _check.choice("sees", sees, ("forecast", "distribution"))
        self.sees = sees

    def outcomes(self, game: Round) -> Iterator[int]:
        """Yield an outcome for every round."""
        biases: defaultdict[float, float] = defaultdict(float)
        while True:
            if game.outcomes:
                biases[game.said[-1]] += game.said[-1] - game.outcomes[-1]
            zero = one = 0.0
            for p, weight in game.distribution:
                zero += weight * abs(biases[p] + p)
                one += weight * abs(biases[p] + p - 1)
            yield int(one >= zero)


class GreedyCertificate(LadderAdversary):
    """Takes the outcome that makes D + A of the certificate larger; a one if neither does.

    Sees the forecast and the ladder that it comes from, so it plays against ladders only.
    """

    def outcomes(self, game: Round) -> Iterator[int]:
        """Yield an outcome for every round."""
        f = game.forecaster
        whole = f.denominator
        while True:
            cell = f.open_cell
            said = round(2 * whole * game.forecast)  # exact: forecasts are ends or middles of cells
            points = f.points[cell : cell + 2].tolist()
            biases = f.biases[cell : cell + 2].tolist()
            zero, one = (
                abs(said - 2 * points[y])
                + 2 * abs(biases[y] + points[y] - whole * y)
                - 2 * abs(biases[y])
                for y in (0, 1)
            )
            yield int(one >= zero)
