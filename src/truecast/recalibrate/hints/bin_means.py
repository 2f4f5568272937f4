"""Decayed means of residuals in bins."""

from __future__ import annotations

from typing import Any

from truecast.recalibrate.hints.base import Hint, check_memory, check_prior

__all__ = ["BinMeans"]


class BinMeans(Hint):
    """The score plus the mean of (outcome - score) near it.

    Residuals are averaged at 129 knots, a quarter apart on the logit scale, so rare events have
    their own knots; a score between two knots uses both in proportion. Each mean is shrunk towards
    0 as if it had `prior` more residuals of 0, and a residual t rounds old counts (1 -
    1/memory)**t.

    It learns any smooth distortion, each region only from its own rounds: a region without rounds
    keeps its scores, and the order of scores may change.

    Parameters
    ----------
    memory
        About how many rounds it remembers, 2 or more. None remembers all.
    prior
        How many rounds of trust in the score each knot starts with.

    Examples
    --------
    >>> hint = BinMeans()
    >>> for t in range(1000):
    ...     hint.learn(0.9, t % 5 > 0)
    >>> round(hint.predict(0.9), 2), hint.predict(0.2)
    (0.8, 0.2)
    """

    def __init__(self, memory: int | None = None, *, prior: float = 10.0) -> None:
        self._memory, self._prior = check_memory(memory), check_prior(prior)
        super().__init__("BinMeans", memory=self._memory, prior=self._prior)

    @property
    def config(self) -> dict[str, Any]:
        """The keyword arguments that rebuild this hint."""
        return {"memory": self._memory, "prior": self._prior}
