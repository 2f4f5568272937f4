"""A mix of hints, so you need not choose one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from truecast.errors import InputError
from truecast.recalibrate.hints.base import Hint, build
from truecast.recalibrate.hints.single import BinMeans, Identity, Isotonic, Platt

__all__ = ["Mix"]

MAX_HINTS = 64


class Mix(Hint):
    r"""A weighted mix of hints: nearly as good as the best of them, and often better.

    The mix is :math:`\sum_i w_i p_i`. Each outcome multiplies the weight of every member by the
    probability that the member gave it. Then a share of all weight is handed out as at the start
    (fixed share), so that the member that is best after a change can recover: 3 parts in 10,000,
    and less after an outcome that the mix gave more than 98 %, so that rare events still count. One
    more member is the *stack* of the given hints: a logistic regression of the outcomes on their
    logits, by second-order steps. The first hint starts with three fifths of all weight, the second
    with three twentieths.

    Whatever happens in T rounds, if any of n hints has a log loss of L nats in total, the mix has
    at most L + ln(4n) + 0.00031 T, and at most 1.016 (L + ln(4n)) + 4e-8 T. Changing to another
    hint that is better from then on costs at most ln(4n) + 8.2 after an outcome that the mix gave
    98 % or less, and ln(4n) + 17.4 after any (docs/adaptive.md, section 9). This holds if outcomes
    come at once: the later they come, the more slowly weights change. It promises nothing beyond
    what its members say, and proves nothing about calibration.

    Parameters
    ----------
    hints
        The members, copied; at most 64, none of them a mix. Or their description from `config`.
        None uses `Identity`, `Platt` with five memories from 5 rounds to all, `BinMeans` with two
        and `Isotonic` with a small prior.

    Raises
    ------
    InputError
        If a member is not a hint, or there is none.

    Notes
    -----
    A round costs O(n**2) for n members. If outcomes come late, pass the notes of `issue` to
    `learn`. Otherwise members are judged by what they would say now, and those with a short memory
    look better than they are.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> hint = Mix()
    >>> said = hint.forecast_many(np.full(5000, 0.9), rng.random(5000) < 0.8)
    >>> bool(abs(said[1000:].mean() - 0.8) < 0.01)
    True
    """

    def __init__(self, hints: Sequence[Hint | dict[str, Any]] | None = None) -> None:
        members, self._configs = built(_default() if hints is None else hints)
        self._members = len(members)
        super().__init__("Mix", members=members)

    @property
    def config(self) -> dict[str, Any]:
        """The keyword arguments that rebuild this hint."""
        return {"hints": [dict(config) for config in self._configs]}


def built(hints: Sequence[Hint | dict[str, Any]]) -> tuple[list[Hint], list[dict[str, Any]]]:
    """The members that these are or describe, and how `config` describes them."""
    if not isinstance(hints, list | tuple) or not 1 <= len(hints) <= MAX_HINTS:
        raise InputError("hints", f"must be a list of 1 to {MAX_HINTS} hints", hints)
    members = [build(hint, position) for position, hint in enumerate(hints)]
    return members, [{"kind": type(member).__name__, **member.config} for member in members]


def _default() -> list[Hint | dict[str, Any]]:
    platts = [Platt(memory) for memory in (None, 1000, 200, 30, 5)]
    return [Identity(), *platts, BinMeans(), BinMeans(1000, prior=5.0), Isotonic(prior=0.1)]
