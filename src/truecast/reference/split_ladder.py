"""Ladders that split their own cells, in plain Python and exact fractions (docs/adaptive.md)."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

from truecast.reference.ladder import PlainLadder

__all__ = ["PlainSplitWalk"]

# cells are not split below this, and deviations are rounded up to half of it
FINEST = Fraction(1, 1 << 40)


def rounded_up(x: Fraction) -> Fraction:
    """The least multiple of FINEST / 2 that is not below x."""
    return ceil(x / (FINEST / 2)) * (FINEST / 2)


class PlainSplitWalk:
    """The walk without a horizon: from one cell, no slack. `forecast` is "outer" or "middle".

    Points have a bias each, cells what forecasts in them have deviated since they began.
    """

    def __init__(self, forecast: str = "outer", split_at: Fraction = Fraction(1, 4)) -> None:
        self.points = [Fraction(0), Fraction(1)]
        self.forecast = forecast
        self.split_at = split_at
        self.alpha = [Fraction(0), Fraction(0)]
        self.spent = [Fraction(0)]
        self.deviation = Fraction(0)
        self.squared_error = 0.0
        self.rounds = 0
        self.cell = 0

    def predict(self) -> Fraction:
        """The end of the cell farther from 1/2, if there is one; or its middle."""
        low, high = self.points[self.cell : self.cell + 2]
        if self.forecast == "middle" or high - low == 1:
            return (low + high) / 2
        return max(low, high, key=lambda g: abs(g - Fraction(1, 2)))

    def observe(self, y: int) -> None:
        """Credit the end towards y; stay while the cell is open, else move on towards y.

        Also within a split cell.
        """
        here, end = self.cell, self.cell + y
        alpha = self.alpha[end] + self.points[end] - y
        stays = alpha >= 0 if y else alpha <= 0
        there = here if stays else here + (1 if y else -1)
        low, high = self.points[there : there + 2]
        self.credit(end, here, self.predict(), y)
        within = [i for i in self.cells() if low <= self.points[i] and self.points[i + 1] <= high]
        self.cell = within[-1] if y else within[0]

    def cells(self) -> range:
        """Cell i lies between points i and i + 1."""
        return range(len(self.points) - 1)

    def credit(self, point: int, cell: int, p: float | Fraction, y: int) -> None:
        """Count a forecast p with the outcome y for a point, and its deviation for a cell.

        Split the cell if it is due.
        """
        paid = rounded_up(abs(Fraction(p) - self.points[point]))
        self.alpha[point] += self.points[point] - y
        self.spent[cell] += paid
        self.deviation += paid
        error = float(p) - y
        self.squared_error += error * error
        self.rounds += 1
        self.split_if_due(cell)

    def split_if_due(self, cell: int) -> None:
        """A new point in the middle, without bias; both halves have cost nothing yet."""
        low, high = self.points[cell : cell + 2]
        if self.spent[cell] >= self.split_at and high - low > FINEST:
            self.points.insert(cell + 1, (low + high) / 2)
            self.alpha.insert(cell + 1, Fraction(0))
            self.spent[cell : cell + 1] = [Fraction(0), Fraction(0)]

    def bias_sums(self) -> tuple[Fraction, Fraction]:
        """A and B, of which neither knows how the points came to be."""
        ladder = PlainLadder(self.points)
        ladder.alpha = self.alpha
        return ladder.bias(), ladder.pooled()

    def certificate(self) -> Fraction:
        """Return D + min(A, B), which CalDist of the forecasts with an outcome is at most."""
        return self.deviation + min(self.bias_sums())
