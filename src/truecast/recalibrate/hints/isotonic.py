"""Streaming isotonic regression."""

from __future__ import annotations

from typing import Any

from truecast.recalibrate.hints.base import Hint, check_memory, check_prior

__all__ = ["Isotonic"]


class Isotonic(Hint):
    """Isotonic regression of outcomes on scores: the best hints that never decrease with the score.

    Outcomes are counted at 321 knots: a quarter apart on the logit scale up to 16, then each 1/16
    farther out, so that scores of 1e-9 and 1e-90 are told apart. Neighbours whose rates would
    decrease are pooled, and between the centres of the pools the hint goes straight. It is fitted
    anew after every round at first, then after a sixteenth more rounds, and at least every 256.

    It learns any distortion that keeps the order of scores, and none that does not: scores turned
    around become nearly one and the same hint.

    Parameters
    ----------
    memory
        How many rounds it remembers, about: 2 or more. None remembers all.
    prior
        How many rounds of faith in the score each knot begins with; a tenth of it beyond a logit of
        16.

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
        """The keyword arguments that build this hint anew."""
        return {"memory": self._memory, "prior": self._prior}
