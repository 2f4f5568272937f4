"""Almost-One-Step-Ahead in plain Python and exact fractions (the paper, algorithm 1)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import isqrt

__all__ = ["PlainLadder", "bent_points", "uniform_points"]


def uniform_points(m: int) -> list[Fraction]:
    """0, 1/m, ..., 1: the paper's grid."""
    return [Fraction(i, m) for i in range(m + 1)]


def bent_points(bend: int, denominator: int = 1 << 30) -> tuple[list[Fraction], Fraction]:
    """The bent grid with 2 * bend + 2 cells, and its kappa, bit by bit of k = kappa N^2."""
    n = denominator

    def left_half(k: int) -> list[int]:
        points = [0]
        for _ in range(bend):
            g = points[-1]
            # the highest with points[j] (points[j] - g) <= k
            points.append((g + isqrt(g * g + 4 * k)) // 2)
        return points

    k = n * n  # certainly enough
    bit = n * n
    while bit:
        if k - bit >= 0 and n * (n // 2 - left_half(k - bit)[-1]) <= k - bit:
            k -= bit
        else:
            bit //= 2
    left = [Fraction(g, n) for g in left_half(k)]
    return [*left, Fraction(1, 2), *(1 - g for g in reversed(left))], Fraction(k, n * n)


class PlainLadder:
    """The paper's state: the look-ahead bias of every point, and the cell of the next forecast.

    `forecast` is "lower", "upper", "middle" or "outer" (the end of the cell farther from 1/2);
    `cell` is "walk", "lowest" or "highest". Outcomes are 0 and 1, or fractions between them
    (docs/theory.md, section 9); of these only D + A is a bound, not D + B.
    """

    def __init__(
        self, points: Sequence[Fraction], forecast: str = "lower", cell: str = "walk"
    ) -> None:
        self.points = list(points)
        self.forecast = forecast
        self.rule = cell
        self.alpha = [Fraction(0) for _ in self.points]
        self.deviation = Fraction(0)
        self.squared_error = 0.0
        self.rounds = 0
        self.cell = (len(self.points) - 1) // 2
        self._choose(towards=0)

    def predict(self) -> Fraction:
        """Any point of the cell will do."""
        lower, upper = self.points[self.cell], self.points[self.cell + 1]
        if self.forecast == "outer":
            return lower if upper <= Fraction(1, 2) else upper
        return {"lower": lower, "upper": upper, "middle": (lower + upper) / 2}[self.forecast]

    def observe(self, y: int | Fraction) -> Fraction:
        """Credit the end of the cell nearer to y; return it, One-Step-Ahead's answer.

        An outcome inside the cell is its own answer, which has no error: nothing is credited.
        """
        lower, upper = self.points[self.cell], self.points[self.cell + 1]
        answer = max(lower, min(upper, Fraction(y)))
        towards = int(answer == upper)
        self.rounds += 1
        self.deviation += abs(self.predict() - answer)
        error = float(self.predict()) - float(y)
        self.squared_error += error * error
        self.alpha[self.cell + towards] += answer - y
        self._choose(towards)
        return answer

    def is_open(self, i: int) -> bool:
        """Whether the bias of the left end of cell i is <= 0 and that of its right end >= 0."""
        return self.alpha[i] <= 0 <= self.alpha[i + 1]

    def _choose(self, towards: int) -> None:
        cells = range(len(self.points) - 1)
        if self.rule == "lowest":
            self.cell = next(i for i in cells if self.is_open(i))
        elif self.rule == "highest":
            self.cell = next(i for i in reversed(cells) if self.is_open(i))
        elif not self.is_open(self.cell):
            # to the neighbour on the side of the outcome, which is open
            self.cell += 1 if towards == 1 else -1

    def bias(self) -> Fraction:
        """A: One-Step-Ahead's distance to the sequence of each point's mean outcome."""
        return sum((abs(a) for a in self.alpha), Fraction(0))

    def pooled(self) -> Fraction:
        """B: its distance to the sequence that pools first.

        From every biased point, one round of the outcome in excess.
        """
        biased = [(g, a) for g, a in zip(self.points, self.alpha, strict=True) if a != 0]
        if not biased:
            return Fraction(0)
        v = Fraction(sum(a < 0 for _, a in biased), len(biased))
        return sum(
            (abs(a + 1 - g if a < 0 else a - g) + abs(v - g) for g, a in biased), Fraction(0)
        )

    def certificate(self) -> Fraction:
        """Return D + min(A, B), which CalDist of the forecasts is at most."""
        return self.deviation + min(self.bias(), self.pooled())
