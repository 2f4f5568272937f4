"""Ladders that split their own cells, in plain Python and exact fractions (docs/adaptive.md)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, exp, sqrt
from typing import NamedTuple

from truecast.reference.ladder import PlainLadder

__all__ = ["Made", "PlainGuard", "PlainSplitWalk"]

FINEST = Fraction(1, 1 << 40)  # cells are not split below this, and deviations are rounded up to half of it


def rounded_up(x: Fraction) -> Fraction:
    """The least multiple of FINEST / 2 that is not below x."""
    return ceil(x / (FINEST / 2)) * (FINEST / 2)


class PlainSplitLadder:
    """Points with a bias each, cells with what the forecasts made in them have deviated since they came to be."""

    def __init__(self, points: Sequence[Fraction], split_at: Fraction | None) -> None:
        self.points = list(points)
        self.split_at = split_at
        self.alpha = [Fraction(0) for _ in self.points]
        self.spent = [Fraction(0) for _ in self.cells()]
        self.deviation = Fraction(0)
        self.squared_error = 0.0
        self.rounds = 0

    def cells(self) -> range:
        """Cell i lies between points i and i + 1."""
        return range(len(self.points) - 1)

    def credit(self, point: int, cell: int, p: float | Fraction, y: int) -> None:
        """Count a forecast p with the outcome y for a point, and its deviation for a cell; split that if it is due."""
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
        if self.split_at is not None and self.spent[cell] >= self.split_at and high - low > FINEST:
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


class PlainSplitWalk(PlainSplitLadder):
    """The walk without a horizon: from one cell, no slack. `forecast` is "outer" or "middle"."""

    def __init__(self, forecast: str = "outer", split_at: Fraction = Fraction(1, 4)) -> None:
        super().__init__([Fraction(0), Fraction(1)], split_at)
        self.forecast = forecast
        self.cell = 0

    def predict(self) -> Fraction:
        """The end of the cell farther from 1/2, if there is one; or its middle."""
        low, high = self.points[self.cell : self.cell + 2]
        if self.forecast == "middle" or high - low == 1:
            return (low + high) / 2
        return max(low, high, key=lambda g: abs(g - Fraction(1, 2)))

    def observe(self, y: int) -> None:
        """Credit the end towards y; stay while the cell is open, else move on towards y, also within a split cell."""
        here, end = self.cell, self.cell + y
        alpha = self.alpha[end] + self.points[end] - y
        stays = alpha >= 0 if y else alpha <= 0
        there = here if stays else here + (1 if y else -1)
        low, high = self.points[there : there + 2]
        self.credit(end, here, self.predict(), y)
        within = [i for i in self.cells() if low <= self.points[i] and self.points[i + 1] <= high]
        self.cell = within[-1] if y else within[0]


class Made(NamedTuple):
    """A forecast: the ends of its cell, and what was said."""

    low: Fraction
    high: Fraction
    said: float


class PlainNudge:
    """Residuals summed under hats on the grids 0, 1 and 0, 1/2, 1 and 0, 1/4, ..., 1; they shift the odds of hints."""

    def __init__(self) -> None:
        self.misses = [[0.0] * (cells + 1) for cells in (1, 2, 4)]
        self.variance = self.lag = 0.0

    def strength(self) -> float:
        """Falls with the rounds, and with the outcomes that are outstanding when forecasts are made."""
        return 0.5 / (sqrt(200.0 + self.variance) * (1.0 + sqrt(self.lag)))

    def wait(self, late: int) -> None:
        """A forecast was made while so many others were outstanding."""
        self.lag += (late - self.lag) / 64.0

    def apply(self, hint: float) -> float:
        """The hint with its log odds shifted by strength * sums, each taken straight between hats; at most by 6."""
        total = 0.0
        for level in self.misses:
            for k, weight in self.hats(hint, len(level) - 1):
                total += weight * level[k]
        odds = hint * exp(min(max(self.strength() * total, -6.0), 6.0))
        return odds / (1.0 - hint + odds)

    def learn(self, p: float, y: int) -> None:
        """Add the residual under the hats over p; no sum goes beyond a shift of 2."""
        most = 2.0 / self.strength()
        for level in self.misses:
            for k, weight in self.hats(p, len(level) - 1):
                level[k] = min(max(level[k] + weight * (y - p), -most), most)
        self.variance += p * (1.0 - p)

    @staticmethod
    def hats(x: float, cells: int) -> list[tuple[int, float]]:
        """The two hats over x, with their heights there."""
        k = min(int(x * cells), cells - 1)
        part = x * cells - k
        return [(k, 1.0 - part), (k + 1, part)]


class PlainGuard(PlainSplitLadder):
    """The guard: forecasts near a hint, with slack K; outcomes may come late.

    `grid` is a number of equal cells, which are not split then. Otherwise a cell is split at (K + 1 + L) / 4, where L
    is `late`, the number of outcomes that may be outstanding; they widen the slack to K = slack * (1 + L / 4), too.
    """

    def __init__(self, slack: Fraction, grid: int | None = None, late: int = 0, nudge: bool = False) -> None:
        self.slack = slack * (1 + Fraction(late, 4))
        self.nudge = PlainNudge() if nudge else None
        m = grid or 1
        points = [(i / FINEST // m) * FINEST for i in range(m + 1)]
        super().__init__(points, None if grid else (self.slack + 1 + late) / 4)
        self.asked: Made | None = None
        self.awaited: list[Made] = []
        self.given_up: list[Made] = []
        self.most_awaited = 0

    def takes(self, j: int, y: int) -> bool:
        """Whether point j may be credited with y: 0 and 1 are always right, and the others not far off."""
        if self.points[j] == 1 - y:
            return False
        return self.alpha[j] >= -self.slack if y else self.alpha[j] <= self.slack

    def is_open(self, i: int) -> bool:
        """Whether each outcome is taken by one of the ends."""
        return all(self.takes(i, y) or self.takes(i + 1, y) for y in (0, 1))

    def enter(self, hint: Fraction) -> int:
        """A cell with the hint if one is open; else the next above if these take no ones, or below if no zeros."""
        around = [i for i in self.cells() if self.points[i] <= hint <= self.points[i + 1]]
        opened = [i for i in self.cells() if self.is_open(i)]
        for i in reversed(around):
            if i in opened:
                return i
        upper = around[-1]
        if self.takes(upper, 1) or self.takes(upper + 1, 1):
            return max(i for i in opened if i < upper)
        return min(i for i in opened if i > upper)

    def place(self, hint: float) -> Made:
        """The hint, nudged if that is wanted, and clipped into the cell that it leads to."""
        if self.nudge:
            hint = self.nudge.apply(hint)
        i = self.enter(Fraction(hint))
        low, high = self.points[i : i + 2]
        return Made(low, high, min(max(hint, float(low)), float(high)))

    def predict(self, hint: float) -> float:
        """Only the last forecast asked for is kept for `observe`."""
        self.asked = self.place(hint)
        return self.asked.said

    def observe(self, y: int) -> None:
        """Learn the outcome of the last forecast asked for."""
        assert self.asked is not None, "predict first"  # noqa: S101
        self.learn(self.asked, y)
        self.wait()
        self.asked = None

    def issue(self, hint: float) -> Made:
        """Forecast something whose outcome comes later."""
        made = self.place(hint)
        self.wait()
        self.awaited.append(made)
        self.most_awaited = max(self.most_awaited, len(self.awaited))
        return made

    def wait(self) -> None:
        """Tell the nudge how many outcomes were outstanding when a forecast was made."""
        if self.nudge:
            self.nudge.wait(len(self.awaited))

    def resolve(self, made: Made, y: int) -> None:
        """Learn the outcome of an issued forecast."""
        self.awaited.remove(made)
        self.learn(made, y)

    def give_up(self, made: Made) -> None:
        """Await its outcome no longer."""
        self.awaited.remove(made)
        self.given_up.append(made)

    def learn(self, made: Made, y: int) -> None:
        """Credit an end of the cell where the forecast was made; charge the cell where it lies now."""
        ends = self.points.index(made.low), self.points.index(made.high)
        parts = [i for i in range(*ends) if self.points[i] <= Fraction(made.said) <= self.points[i + 1]]
        self.credit(self.credited(ends, made.said, y), parts[-1], made.said, y)
        if self.nudge:
            self.nudge.learn(made.said, y)

    def credited(self, ends: tuple[int, int], p: float, y: int) -> int:
        """An end that takes y, for which D + A grows less; if none does any more, the one that is less far off."""
        towards_first = ends[::-1] if y else ends
        willing = [j for j in towards_first if self.takes(j, y)]
        if willing:
            return min(willing, key=lambda j: self.growth(j, p, y))
        able = [j for j in towards_first if self.points[j] != 1 - y]
        return min(able, key=lambda j: abs(self.alpha[j]))

    def growth(self, j: int, p: float, y: int) -> Fraction:
        """What D + A grows by if point j is credited."""
        after = self.alpha[j] + self.points[j] - y
        return rounded_up(abs(Fraction(p) - self.points[j])) + abs(after) - abs(self.alpha[j])

    def unknown(self) -> Fraction:
        """The sum of max(p, 1 - p) over the forecasts without outcome."""
        worst = (max(Fraction(made.said), 1 - Fraction(made.said)) for made in (*self.awaited, *self.given_up))
        return sum(map(rounded_up, worst), Fraction(0))

    def certificate(self) -> Fraction:
        """Return D + min(A, B) + `unknown`, which CalDist is at most, whatever the missing outcomes."""
        return super().certificate() + self.unknown()
