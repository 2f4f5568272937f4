"""Online Platt scaling."""

from __future__ import annotations

from typing import Any

from truecast.recalibrate.hints.base import Hint, check_memory

__all__ = ["Platt"]


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

    def __init__(self, memory: int | None = None) -> None:
        self._memory = check_memory(memory)
        super().__init__("Platt", memory=self._memory)

    @property
    def config(self) -> dict[str, Any]:
        """The keyword arguments that rebuild this hint."""
        return {"memory": self._memory}
