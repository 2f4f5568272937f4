"""Calibeating."""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import Any

from truecast import _check
from truecast.arena.forecasters.follower import Follower
from truecast.errors import StateError

__all__ = ["Calibeating"]

MAX_BINS = 1 << 20


class Calibeating(Follower):
    r"""Says the share of ones so far in the bin of another's forecast (Foster and Hart, 2023).

    In a bin without outcomes it repeats the other forecaster, its base. So it beats the base by the
    base's own calibration error: its Brier score is a little more than that of the base with every
    bin relabelled, in hindsight, to its share of ones. Summed over the rounds it is at most

    .. math:: \sum_b \Big(\frac{k_b (n_b - k_b)}{n_b} + 1 + \ln n_b\Big)

    over the bins that were used, :math:`n_b` times with :math:`k_b` ones. `brier_bound` is this
    number. The first terms are the *refinement* of the base in these bins: what any labels of
    theirs leave.

    That does not make it calibrated: the share so far is not the final share, and an adversary can
    keep them apart.

    Parameters
    ----------
    base
        The forecaster to follow, copied: one of truecast or `truecast.arena` that sees only
        outcomes, or its description from `config`. None uses `RunningMean`.
    bins
        How many bins of equal width; each holds its lower edge, the last also 1.

    Raises
    ------
    InputError
        If an option breaks its rule.

    Notes
    -----
    A round costs O(log bins) and one of the base.

    Proof (the argument of Foster and Hart's section 4, the constant ours): in one bin let
    :math:`a_k` be the mean of the first k outcomes, :math:`A_k` the sum of their squared distances
    to it, and :math:`a_0` what is said first. Then :math:`A_k = A_{k-1} + (1 - 1/k)(y_k -
    a_{k-1})^2`, so :math:`\sum_k (y_k - a_{k-1})^2 = A_n + \sum_k (y_k - a_{k-1})^2/k \le A_n + 1 +
    \ln n`.

    Examples
    --------
    >>> import truecast as tc
    >>> f = Calibeating(tc.arena.Climatology(rate=0.9))
    >>> f.forecast_many([0, 0, 1, 0]).round(3).tolist()
    [0.9, 0.0, 0.0, 0.333]
    >>> round(f.brier_bound, 3)  # 3/4 of refinement
    3.136
    """

    def __init__(self, base: Any = None, *, bins: int = 10) -> None:
        self._bins = _check.whole_number("bins", bins, least=1, most=MAX_BINS)
        super().__init__(base, zeros=[0] * self._bins, ones=[0] * self._bins)
        self._edges = [k / self._bins for k in range(1, self._bins)]

    @property
    def config(self) -> dict[str, Any]:
        """The keyword arguments that rebuild this forecaster."""
        return super().config | {"bins": self._bins}

    @property
    def brier_bound(self) -> float:
        """A bound on the sum of (y - p)**2 so far, up to the rounding of doubles. Costs O(bins)."""
        pairs = zip(self._memory["zeros"], self._memory["ones"], strict=True)
        used = [(n0, n1) for n0, n1 in pairs if n0 + n1]
        return math.fsum(n0 * n1 / (n0 + n1) + 1 + math.log(n0 + n1) for n0, n1 in used)

    def _answer(self, q: float) -> float:
        k = bisect_right(self._edges, q)
        ones: int = self._memory["ones"][k]
        n = self._memory["zeros"][k] + ones
        return ones / n if n else q

    def _take(self, q: float, y: int) -> None:
        self._memory["ones" if y else "zeros"][bisect_right(self._edges, q)] += 1

    def _refuse(self, state: dict[str, Any]) -> None:
        for name in ("zeros", "ones"):
            if not all(0 <= n <= _check.MOST_ROUNDS for n in state[name]):
                raise StateError(f"the saved {name} must be counts, got {state[name]!r:.60}")
