"""Evidence by its definition: every stake kept by itself (docs/monitor.md, section 2).

Slow: O(T) a round for each bet. The compiled core keeps one number for all stakes of a bet.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

__all__ = ["PlainMonitor", "stake_of"]

_ROWS = 256
_PLACES = 8
_OFFSETS = (-0.5, -0.2, 0.2, 0.5)
_SLOPES = (-0.25, 0.35)
_DIPS = (-0.6, 0.6)
_MEMORIES = (500.0, 5000.0)
_FINENESSES = (1, 4, 16)
_LAPSES = (1 / 32, 1 / 512)
_PARTS = (  # of a stake, for each bet
    *(0.1, 0.14, 0.14, 0.1),
    *(0.17, 0.1),
    *(0.14 / 16,) * 16,
    *(0.03, 0.03, 0.02, 0.01, 0.005, 0.005),
    *(0.005, 0.005),
)
_BLOCKS = 54
_CALM = 20.0
_FARTHEST = 5.0


def stake_of(n: int) -> float:
    """What part of all stakes is for round n = 1, 2, ...; they sum to 1."""
    block = n.bit_length() - 1  # rounds 2^block to 2^(block + 1) - 1 share evenly
    of_all = math.fsum(1 / (b + 1) for b in range(_BLOCKS))
    return 1 / ((block + 1) * of_all * (1 << block))


def _row(p: float) -> int:
    u = math.sqrt(0.5 * p) if p <= 0.5 else 1 - math.sqrt(0.5 * (1 - p))
    return min(_ROWS - 1, int(u * _ROWS))


def _middle(row: int) -> float:
    u = (row + 0.5) / _ROWS
    return 2 * u * u if u <= 0.5 else 1 - 2 * (1 - u) ** 2


class _Learned:
    """What the forecasts of each cell have missed lately, over their variance."""

    def __init__(self, memory: float, cells: int) -> None:
        self.memory, self.cells = memory, cells
        self.missed = [0.0] * cells
        self.variance = [0.0] * cells

    def tilt(self, row: int) -> float:
        cell = row * self.cells // _ROWS
        by = max(-1.0, min(1.0, self.missed[cell] / (self.variance[cell] + _CALM)))
        return (1 + by / 2) / (1 - by / 2)

    def learn(self, row: int, p: float, y: int) -> None:
        cell, keep = row * self.cells // _ROWS, 1 - 1 / self.memory
        self.missed[cell] = keep * self.missed[cell] + y - p
        self.variance[cell] = keep * self.variance[cell] + p * (1 - p)


class _Account:
    """Everyone's stakes, or a group's, each kept by itself."""

    def __init__(self) -> None:
        self.learned = [_Learned(memory, cells) for memory in _MEMORIES for cells in _FINENESSES]
        self.stakes: list[tuple[int, list[float]]] = []  # forecast, and what each bet made of it

    @property
    def total(self) -> float:
        return math.fsum(value for _, values in self.stakes for value in values)

    @property
    def since(self) -> float:
        """The mean number of the forecast that a stake was made on, weighted by what it became.

        Learned bets adapt: their stakes do not tell.
        """
        fixed, learned = len(_fixed_tilts(0)), len(self.learned)
        weights = [
            math.fsum(values[:fixed] + values[fixed + learned :]) for _, values in self.stakes
        ]
        starts = [start for start, _ in self.stakes]
        together = zip(weights, starts, strict=True)
        return math.fsum(w * start for w, start in together) / math.fsum(weights)

    def play(self, number: int, p: float, y: int | None, stake: float) -> None:
        """Bet on a forecast; `y` is None if nobody will know, which is counted at its least."""
        zero, one = self.factors(p, 0), self.factors(p, 1)
        factors = [min(pair) for pair in zip(zero, one, strict=True)]
        if y is not None:
            factors = one if y else zero
        self.stakes.append((number, [stake * part for part in _PARTS]))
        self.stakes = [
            (start, [value * factor for value, factor in zip(values, factors, strict=True)])
            for start, values in self.stakes
        ]
        if y is not None:
            for each in self.learned:
                each.learn(_row(p), p, y)

    def factors(self, p: float, y: int) -> list[float]:
        """What each bet multiplies its stakes by: q / p or (1 - q) / (1 - p)."""
        row = _row(p)
        tilts = [*_fixed_tilts(row), *(each.tilt(row) for each in self.learned)]
        tilted = [(a if y else 1) / (1 - p + p * a) for a in tilts]  # q = p a / (1 - p + p a)
        others = [(1 - lapse) * p + lapse / 2 for lapse in _LAPSES]
        return tilted + [q / p if y else (1 - q) / (1 - p) for q in others]


class PlainMonitor:
    """The evidence against forecasts, everyone's and each group's, in the order of issue.

    Parameters
    ----------
    level
        Whether all stakes sum to 1, so that the evidence of all accounts has mean 1. Else each
        round has one of 1, and the evidence after T rounds has mean T.
    """

    def __init__(self, *, level: bool) -> None:
        self.level = level
        self.rounds = 0
        self.everyone = _Account()
        self.groups: dict[str, _Account] = {}
        self._issued = 0
        self._waiting: list[list[Any]] = []  # number, p, groups, whether it is settled, outcome

    @property
    def evidence(self) -> float:
        """All that everyone's stakes have become, and the stakes of the rounds to come."""
        now = self.everyone.total
        if not self.level:
            return now
        return now + 1 - math.fsum(stake_of(n + 1) for n in range(self.rounds))

    def update(self, p: float, y: int, groups: Sequence[str] = ()) -> None:
        """Learn an outcome that is known before the next forecast."""
        self.resolve(self.issue(p, groups), y)

    def issue(self, p: float, groups: Sequence[str] = ()) -> int:
        """Return the number of a forecast whose outcome comes later."""
        self._waiting.append([self._issued, p, sorted(set(groups)), False, None])
        for name in groups:
            self.groups.setdefault(name, _Account())
        self._issued += 1
        return self._issued - 1

    def resolve(self, number: int, y: int | None) -> None:
        """Learn an outcome, None if it will never be known; it waits for those before it."""
        ticket = next(each for each in self._waiting if each[0] == number)
        ticket[3:] = True, y
        while self._waiting and self._waiting[0][3]:
            number, p, groups, _, outcome = self._waiting.pop(0)
            self._settle(number, p, groups, outcome)

    def _settle(self, number: int, p: float, groups: list[str], y: int | None) -> None:
        """Bet on a forecast; everyone and its groups share the stake evenly."""
        stake = stake_of(self.rounds + 1) if self.level else 1.0
        accounts = [self.everyone, *(self.groups[name] for name in groups)]
        for account in accounts:
            account.play(number, p, y, stake / len(accounts))
        self.rounds += 1


def _fixed_tilts(row: int) -> list[float]:
    """The odds of p are multiplied by these."""
    p = _middle(row)
    logit = max(-_FARTHEST, min(_FARTHEST, math.log(p / (1 - p))))
    place = row * _PLACES // _ROWS
    return [
        *(math.exp(by) for by in _OFFSETS),
        *(math.exp(by * logit) for by in _SLOPES),
        *(math.exp(by) if at == place else 1.0 for by in _DIPS for at in range(_PLACES)),
    ]
