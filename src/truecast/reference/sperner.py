"""Three classes jointly, in fractions: labels by the chairman's schedule, cells by looking at all.

Read it beside docs/sperner.md. A vertex is a triple of whole numbers that sum to m; it stands for
the forecast of its coordinates over m.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations
from math import floor

__all__ = ["PlainSperner", "chairman", "joint_distance", "triangles"]

Vertex = tuple[int, ...]


def chairman(weights: Sequence[Fraction], seats: Sequence[int]) -> int:
    """Return who is next: of those who may be, the one who must be soonest (Tijdeman, 1980).

    With d = 1/(2k - 2), the i-th turn of j may come from n = (i - 1 + d)/w_j on, and must have come
    by the first n beyond (i - d)/w_j.
    """
    step = Fraction(1, 2 * len(weights) - 2)
    now = sum(seats) + 1
    ready = [j for j, w in enumerate(weights) if now * w - seats[j] >= step]
    return min(ready, key=lambda j: (floor((seats[j] + 1 - step) / weights[j]), j))


def triangles(m: int) -> Iterator[tuple[Vertex, Vertex, Vertex]]:
    """Yield the m^2 cells of the triangle."""
    for a in range(m + 1):
        for b in range(m + 1 - a):
            c = m - a - b
            if c >= 1:
                yield (a, b, c), (a + 1, b, c - 1), (a, b + 1, c - 1)
            if a >= 1 and b >= 1:
                yield (a, b, c), (a - 1, b, c + 1), (a, b - 1, c + 1)


class PlainSperner:
    """All vertices with the seats of their outcomes; every cell is looked at in every round."""

    def __init__(self, m: int) -> None:
        self.m = m
        self.seats = {vertex: [0, 0, 0] for cell in triangles(m) for vertex in cell}

    def label(self, vertex: Vertex) -> int:
        """The next outcome of a vertex."""
        weights = [Fraction(part, self.m) for part in vertex]
        return chairman(weights, self.seats[vertex])

    def full_cells(self) -> list[tuple[Vertex, ...]]:
        """Return the cells that have all labels, each in the order of its labels."""
        return [
            tuple(sorted(cell, key=self.label))
            for cell in triangles(self.m)
            if {self.label(vertex) for vertex in cell} == {0, 1, 2}
        ]

    def credit(self, vertex: Vertex, outcome: int) -> None:
        """Count an outcome at a vertex; it must be its label."""
        if self.label(vertex) != outcome:
            raise ValueError(f"the next outcome of {vertex} is {self.label(vertex)}")
        self.seats[vertex][outcome] += 1

    def bias(self, vertex: Vertex) -> list[Fraction]:
        """Outcomes of each kind at a vertex, less those that its forecast expects."""
        rounds = sum(self.seats[vertex])
        return [
            seats - Fraction(rounds * part, self.m)
            for seats, part in zip(self.seats[vertex], vertex, strict=True)
        ]


def joint_distance(forecasts: Sequence[Sequence[Fraction]], outcomes: Sequence[int]) -> Fraction:
    """Return the l1 distance to the nearest calibrated forecasts, in total, by all partitions.

    Forecasts are calibrated if, among the rounds with the same one, each class came as often as
    that says: so each part of a partition says its mean outcome.
    """
    classes = range(len(forecasts[0]))

    @cache
    def cost(part: tuple[int, ...]) -> Fraction:
        mean = [Fraction(sum(outcomes[t] == k for t in part), len(part)) for k in classes]
        return sum((abs(forecasts[t][k] - mean[k]) for t in part for k in classes), Fraction(0))

    @cache
    def cheapest(rounds: tuple[int, ...]) -> Fraction:
        """The least cost of a partition: the first round's part, and the best of the rest."""
        if not rounds:
            return Fraction(0)
        first, *others = rounds
        parts = (some for size in range(len(rounds)) for some in combinations(others, size))
        return min(
            cost((first, *part)) + cheapest(tuple(t for t in others if t not in part))
            for part in parts
        )

    return cheapest(tuple(range(len(outcomes))))
