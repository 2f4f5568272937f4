"""The forecaster without a horizon: its ladder splits its cells (docs/adaptive.md, 1 and 2)."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from truecast import _check
from truecast.forecasters.base import OutcomeForecaster
from truecast.ladder import refuse_bias
from truecast.split_ladder import DENOMINATOR, SplitLadder, checked, claimed
from truecast.state import plain

__all__ = ["HorizonFree"]

Place = Literal["outer", "middle"]
SPLITS = tuple(2.0**-k for k in range(11))


class HorizonFree(SplitLadder, OutcomeForecaster):
    r"""Needs no number of rounds, and its certificate stays small on easy outcomes.

    `Arc` has the smaller bound.

    It starts with one cell, [0, 1]. It splits a cell in the middle when the forecasts made in it
    deviate by `split` from what One-Step-Ahead would have said. So the grid becomes fine only where
    forecasts stay. Whatever the outcomes, its distance to calibration after T rounds is below 2
    sqrt(T) + 1 for every T at once, up to 2**35, with the default `split`; and at most

    ==================  ===================================================
    `HorizonFree()`     1.3463 sqrt(T) + 0.361 ln(T) + 13
    `at="middle"`       1.969 sqrt(T); 1.803 sqrt(T) with split=0.5
    ==================  ===================================================

    (docs/adaptive.md, theorems 3 to 5). It adapts to outcomes that no opponent chooses: up to a
    million rounds its certificate grew about like the cube root of T on coins, and like log T or a
    little faster on periodic outcomes. `BentGrid` has a smaller bound if T is known.

    It sees only past outcomes, so it is no sharper than they allow: see `Certificate`. With
    at="outer" it forecasts 0 and 1, which can make the log loss infinite.

    Parameters
    ----------
    at
        Where in the cell to forecast: at its "outer" end, the one farther from 1/2, or in its
        "middle", which never forecasts 0 or 1 and has the larger bound. In the first cell both
        forecast 1/2.
    split
        The deviation at which a cell is split: 1, 1/2, 1/4, ... or 1/1024. Small ones need many
        cells, and there are at most 2**20: with 1/16 `a_priori` is below T up to 2**28 rounds, with
        1/256 only up to 2**16.

    Raises
    ------
    InputError
        If an option breaks its rule.

    Notes
    -----
    A round costs O(1), amortised over the splits, of which there are about sqrt(T); the state is
    O(cells). Points are integers over 2**40, so forecasts are exact floats.

    Examples
    --------
    >>> f = HorizonFree()
    >>> f.predict()
    0.5
    >>> f.observe(1)
    >>> forecasts = f.forecast_many([0, 1] * 50_000)
    >>> f.certificate.bound < 0.1 * f.rounds**0.5
    True
    >>> f.cells < 200
    True
    """

    _options = ("_at", "_split")

    def __init__(self, *, at: Place = "outer", split: float = 0.25) -> None:
        _check.choice("at", at, ("outer", "middle"))
        self._at, self._split = at, _check.option("split", split, SPLITS)
        super().__init__(
            np.array([0, DENOMINATOR], np.int64), int(2 * DENOMINATOR * self._split), at == "middle"
        )

    @property
    def at(self) -> Place:
        """Where in the cell the forecast lies."""
        return self._at

    @property
    def split(self) -> float:
        """The deviation at which a cell is split."""
        return self._split

    def _bound(self, rounds: int) -> Fraction:
        """docs/adaptive.md, theorems 3 to 5; never more than the number of rounds."""
        c = Fraction(self._split)
        if self.at == "middle":
            bound = _middle(rounds, c)
        elif c == Fraction(1, 4):
            table = [price * rounds + profit for price, profit in _PROFITS.items()]
            bound = min(*table, _quarter(rounds))
        else:
            most = rounds.bit_length() // 2 + 7  # the least is at 2**j of the order sqrt(rounds)
            bound = min(_outer(rounds, c, j) for j in range(1, most))
        return claimed(bound, rounds, c)

    def state(self) -> dict[str, Any]:
        """Everything a round can change, as plain data."""
        return plain(self._saved())

    def load(self, state: object) -> None:
        """Take over a state that `state` gave, or raise StateError with nothing changed."""
        good = checked(state, self._entries(), int(2 * DENOMINATOR * self._split))
        for j, (point, bias) in enumerate(zip(good["points"], good["biases"], strict=True)):
            least, most = (point - DENOMINATOR, 0) if j <= good["open_cell"] else (0, point)
            if not least <= bias <= most:
                refuse_bias(j, bias, least, most)
        self._restore(good)


#: docs/adaptive.md, theorem 4: price of a round -> the most that a ladder that splits at 1/4 earns
_PROFITS = {
    Fraction(price): Fraction(profit)
    for price, profit in {
        "1/2": "11/4",
        "3/8": "7/2",
        "1/4": "39/8",
        "3/16": "23/4",
        "1/8": "59/8",
        "3/32": "71/8",
        "1/16": "47/4",
        "3/64": "113/8",
        "1/32": "155/8",
        "3/128": "189/8",
        "1/64": "34",
        "3/256": "343/8",
        "1/128": "251/4",
        "3/512": "639/8",
        "1/256": "239/2",
    }.items()
}


def _outer(rounds: int, c: Fraction, j: int) -> Fraction:
    """docs/adaptive.md, theorem 3, at the price 2**-j, rounded up."""
    halvings = c.denominator.bit_length() - 1
    log = halvings + Fraction(3, 2) * c  # above log2(1 + 1/c)
    growth = Fraction(3, 4) / c * ((c + Fraction(1, 2)) ** 2 + Fraction(1, 24))
    ends = 2 * c + Fraction(3, 2)
    fixed: Fraction = (
        max(c, Fraction(1, 2))
        + Fraction(7, 4)
        + (halvings - 2 + Fraction(2, (1 << halvings)))
        + 2 * c
    )
    fixed += ends * (log / 4 + Fraction(1107, 1000)) + Fraction(618, 1000) * (
        2 + Fraction(3, 2) / c
    )
    last = Fraction(3, 2) * _root_above((4 + 3 / c) / (1 << j))
    return Fraction(rounds, (1 << j)) + growth / 4 * (1 << j) + ends / 4 * j + fixed + last


def _quarter(rounds: int) -> Fraction:
    """docs/adaptive.md, theorem 4: the same for c = 1/4, at about the best of the prices 1/n."""
    best = max(67, math.isqrt(64 * rounds // 29))  # the price is at most 1/64
    return min(Fraction(rounds, n) + _quarter_profit(n) for n in range(best - 3, best + 4))


def _quarter_profit(n: int) -> Fraction:
    log = Fraction((n**16).bit_length(), 16)  # above log2(n), by at most 1/16
    return Fraction(29 * n, 64) + log / 2 + Fraction(25, 2)


def _middle(rounds: int, c: Fraction) -> Fraction:
    """docs/adaptive.md, theorem 5, rounded up."""
    half = Fraction(1, 2)
    overshoot = sum((max(half - c * 2**e, Fraction(0)) for e in range(12)), Fraction(0))
    square = ((c + half) ** 2 + Fraction(1, 12)) * (Fraction(3 * rounds, 2) / c + 1)
    return _root_above(square) - (c + half) + overshoot


def _root_above(square: Fraction) -> Fraction:
    """A fraction not below the root, by less than 2**-40."""
    return Fraction(math.isqrt(math.floor(square * 2**80)) + 1, 2**40)
