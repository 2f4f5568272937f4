"""Streaming isotonic regression."""

from __future__ import annotations

from typing import Any

from truecast.recalibrate.hints.base import Hint, check_memory, check_prior

__all__ = ["Isotonic"]


class Isotonic(Hint):
    """Isotonic regression of outcomes on scores: the best hints that never decrease with the score.

    Outcomes are counted at 321 knots: a quarter apart on the logit scale up to 16, then each 1/16
    farther out, so scores of 1e-9 and 1e-90 stay distinct. Neighbours whose rates would decrease
    are pooled, and the hint is linear between the centres of the pools. It is fitted again after
    every round at first, then after a sixteenth more rounds, and at least every 256.

    It learns any distortion that keeps the order of scores, and no other: reversed scores all
    become nearly the same hint.

    Parameters
    ----------
    memory
        About how many rounds it remembers, 2 or more. None remembers all.
    prior
        How many rounds of trust in the score each knot starts with; a tenth of that beyond a logit
        of 16.

    Examples
    --------
    >>> hint = Isotonic()
    >>> for t in range(1000):
    ...     hint.learn(0.9, t % 5 > 0)
    >>> round(hint.predict(0.9), 2)
    0.8
    """

    def __init__(self, memory: int | None = None, *, prior: float = 1.0) -> None:
        self._memory, self._prior = check_memory(memory), check_prior(prior)
        super().__init__("Isotonic", memory=self._memory, prior=self._prior)

    @property
    def config(self) -> dict[str, Any]:
        """The keyword arguments that rebuild this hint."""
        return {"memory": self._memory, "prior": self._prior}
