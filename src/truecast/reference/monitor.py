"""Evidence by its definition: every stake kept by itself (docs/monitor.md, section 2).

Slow: O(T) a round for each bet. The compiled core keeps one number for all stakes of a bet.
"""

from __future__ import annotations

import math

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
    *(0.1, 0.125, 0.125, 0.1),
    *(0.18, 0.1),
    *(0.14 / 16,) * 16,
    *(0.03, 0.03, 0.02, 0.01, 0.01, 0.01),
    *(0.01, 0.01),
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


class PlainMonitor:
    """The evidence against one stream of forecasts whose outcomes are known at once.

    Parameters
    ----------
    level
        Whether all stakes sum to 1, so that the evidence has mean 1. Else each round has one of 1,
        and the evidence after T rounds has mean T.
    """

    def __init__(self, *, level: bool) -> None:
        self.level = level
        self.rounds = 0
        self.learned = [_Learned(memory, cells) for memory in _MEMORIES for cells in _FINENESSES]
        self.stakes: list[tuple[int, list[float]]] = []  # the round, and what each bet made of it

    @property
    def evidence(self) -> float:
        """All that stakes have become, and the stakes of the rounds to come."""
        now = math.fsum(value for _, values in self.stakes for value in values)
        if not self.level:
            return now
        return now + 1 - math.fsum(stake_of(n + 1) for n in range(self.rounds))

    @property
    def since(self) -> float:
        """The mean of the round in which a stake was made, weighted by what it has become.

        Learned bets adapt: their stakes do not tell.
        """
        fixed, learned = len(_fixed_tilts(0)), len(self.learned)
        weights = [
            math.fsum(values[:fixed] + values[fixed + learned :]) for _, values in self.stakes
        ]
        rounds = [start for start, _ in self.stakes]
        together = zip(weights, rounds, strict=True)
        return math.fsum(w * r for w, r in together) / math.fsum(weights)

    def update(self, p: float, y: int) -> None:
        """Bet on a forecast, and see what came of it."""
        factors = self.factors(p, y)
        stake = stake_of(self.rounds + 1) if self.level else 1.0
        self.stakes.append((self.rounds, [stake * part for part in _PARTS]))
        self.stakes = [
            (start, [value * factor for value, factor in zip(values, factors, strict=True)])
            for start, values in self.stakes
        ]
        for each in self.learned:
            each.learn(_row(p), p, y)
        self.rounds += 1

    def factors(self, p: float, y: int) -> list[float]:
        """What each bet multiplies its stakes by: q / p or (1 - q) / (1 - p)."""
        row = _row(p)
        tilts = [*_fixed_tilts(row), *(each.tilt(row) for each in self.learned)]
        others = [p * a / (1 - p + p * a) for a in tilts]
        others += [(1 - lapse) * p + lapse / 2 for lapse in _LAPSES]
        return [q / p if y else (1 - q) / (1 - p) for q in others]


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
