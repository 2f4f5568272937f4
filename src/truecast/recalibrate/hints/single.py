"""Hints for one score: the probability itself, a line, means, a curve.

Shells of kernels in `_core/hints.hpp`, with twins in `reference/hints.py`.
"""

from __future__ import annotations

from truecast.recalibrate.hints.base import Hint, check_memory, check_prior

__all__ = ["BinMeans", "Identity", "Isotonic", "Platt"]


class Identity(Hint):
    """Returns the score itself and learns nothing: for a model that is already calibrated.

    Examples
    --------
    >>> Identity().predict(0.83)
    0.83
    """

    def __init__(self) -> None:
        super().__init__("Identity")


class Platt(Hint):
    r"""Online Platt scaling: a straight line on the logit scale, fitted by second-order steps.

    .. math:: \sigma(a + b \, \mathrm{logit}(x)), \qquad a = 0, b = 1 \text{ at first}

    Each outcome costs one Newton step on the log loss so far plus a quadratic pull towards a = 0, b
    = 1; a loss of t rounds ago counts (1 - 1/memory)\ :sup:`t`. Logits are clipped to 16 either
    way, so scores of 0 and 1 work.

    It corrects scores that are overconfident, underconfident, shifted or reversed. It fits only a
    straight line on the logit scale, however long it learns. A short memory follows changes, but is
    noisier.

    Parameters
    ----------
    memory
        About how many rounds it remembers, 2 or more. None remembers all.

    Examples
    --------
    >>> hint = Platt()
    >>> for t in range(1000):  # the model says 0.9, and is right four times in five
    ...     hint.learn(0.9, t % 5 > 0)
    >>> round(hint.predict(0.9), 2)
    0.8
    """

    _options = ("_memory",)

    def __init__(self, memory: int | None = None) -> None:
        self._memory = check_memory(memory)
        super().__init__("Platt", memory=self._memory)


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

    _options = ("_memory", "_prior")

    def __init__(self, memory: int | None = None, *, prior: float = 10.0) -> None:
        self._memory, self._prior = check_memory(memory), check_prior(prior)
        super().__init__("BinMeans", memory=self._memory, prior=self._prior)


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

    _options = ("_memory", "_prior")

    def __init__(self, memory: int | None = None, *, prior: float = 1.0) -> None:
        self._memory, self._prior = check_memory(memory), check_prior(prior)
        super().__init__("Isotonic", memory=self._memory, prior=self._prior)
