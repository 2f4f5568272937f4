"""What a service remembers of its forecasts: figures before and after, in bounded memory.

Each forecast has rows `before` and `after`: what the model said, and what was answered, of one
outcome or of each class. Until its outcome comes, both wait here. Then they are added to sums, and
to counts by cell: cells are fine near 0 and 1, where forecasts of rare events lie.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field

__all__ = ["Record", "Side", "cell_of"]

WINDOW = 200  # outcomes that the rolling average looks back on


def cell_of(p: float, cells: int) -> int:
    """Return the cell of a forecast: the edges are at 2 u^2 and 1 - 2 (1 - u)^2."""
    u = math.sqrt(0.5 * p) if p <= 0.5 else 1.0 - math.sqrt(0.5 * (1.0 - p))
    return min(int(u * cells), cells - 1)


@dataclass
class Half:
    """Sums over rounds of one forecast: the model's, or the answered one."""

    cells: int
    brier: float = 0.0
    log: float = 0.0  # of those that are finite
    refuted: int = 0  # the others: exactly 0 or 1, and wrong
    zeros: list[int] = field(default_factory=list)
    ones: list[int] = field(default_factory=list)
    said: list[float] = field(default_factory=list)  # sums of forecasts

    def __post_init__(self) -> None:
        self.zeros, self.ones = [0] * self.cells, [0] * self.cells
        self.said = [0.0] * self.cells

    def add(self, p: float, y: bool) -> None:
        """Add a round."""
        right = p if y else 1.0 - p
        self.brier += (1.0 - right) * (1.0 - right)
        if right > 0.0:
            self.log -= math.log(right)
        else:
            self.refuted += 1
        at = cell_of(p, self.cells)
        (self.ones if y else self.zeros)[at] += 1
        self.said[at] += p


@dataclass
class Side:
    """One outcome, or one class: its halves, and the rolling average beside them."""

    cells: int
    ones: int = 0
    rolling: float = 0.0  # sum of Brier scores
    recent: deque[bool] = field(default_factory=lambda: deque(maxlen=WINDOW))

    def __post_init__(self) -> None:
        self.before, self.after = Half(self.cells), Half(self.cells)

    @property
    def average(self) -> float:
        """The average of the last outcomes, 1/2 before the first."""
        return sum(self.recent) / len(self.recent) if self.recent else 0.5


@dataclass(frozen=True)
class Open:
    """A forecast that awaits its outcome."""

    at: int
    before: list[float]
    after: list[float]
    average: list[float]
    groups: list[int]


@dataclass
class Sums:
    """Sums of the only class or of the most probable one: of everyone, or of a group."""

    rounds: int = 0
    right: int = 0
    before: float = 0.0
    after: float = 0.0

    def add(self, came: bool, before: float, after: float) -> None:
        """Add a round."""
        self.rounds += 1
        self.right += came
        self.before += before
        self.after += after


class Record:
    """See the head of this file.

    Parameters
    ----------
    classes
        How many numbers a forecast has: 1, or a number of classes.
    cells
        How finely forecasts are told apart.
    most
        How many may await their outcomes, before the oldest is given up.
    """

    def __init__(self, classes: int, cells: int, most: int) -> None:
        self.sides = [Side(cells) for _ in range(classes)]
        self.most = most
        self.issued = self.given_up = 0
        self.all, self.groups = Sums(), dict[int, Sums]()
        self.noise = 0.0  # the sum of p (1 - p)
        self.open: dict[int, Open] = {}

    def issue(self, at: int, before: list[float], after: list[float], groups: list[int]) -> int:
        """Remember a forecast, return its number."""
        if len(self.open) >= self.most:
            self.give_up(next(iter(self.open)))
        averages = [side.average for side in self.sides]
        self.open[self.issued] = Open(at, before, after, averages, groups)
        self.issued += 1
        return self.issued - 1

    def resolve(self, ticket: int, outcome: int) -> None:
        """Add a forecast and its outcome."""
        found = self.open.pop(ticket)
        one = len(self.sides) == 1
        for k, side in enumerate(self.sides):
            y = outcome == (1 if one else k)
            side.before.add(found.before[k], y)
            side.after.add(found.after[k], y)
            side.rolling += (y - found.average[k]) * (y - found.average[k])
            side.ones += y
            side.recent.append(y)
        top = found.after.index(max(found.after))
        before, after = max(found.before), found.after[top]
        came = outcome == (1 if one else top)
        self.all.add(came, before, after)
        self.noise += after * (1.0 - after)
        for group in found.groups:
            self.groups.setdefault(group, Sums()).add(came, before, after)

    def give_up(self, ticket: int) -> None:
        """Remember a forecast no longer."""
        del self.open[ticket]
        self.given_up += 1
