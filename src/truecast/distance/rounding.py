"""From rounds that may be split to whole ones: masses rounded down on the Stern-Brocot tree."""

from __future__ import annotations

import math
from bisect import bisect_left
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from truecast.distance.witness import Witness, grouped

__all__ = ["rounded"]

# Values and rounds are counted in small parts: sums of these are exact, in Python's integers.
_UNITS = 1 << 60  # of a value
_PARTS = 1 << 40  # of a round


class _Cell(NamedTuple):
    """Neighbours u < w on the tree, and which values lie between them.

    A fraction is a numerator and a denominator; `low` and `high` are the nodes that stand for u and
    w.
    """

    u: tuple[int, int]
    w: tuple[int, int]
    low: int
    high: int
    start: int
    end: int


def rounded(
    values: NDArray[np.float64], masses: NDArray[np.float64], zeros: int, ones: int, finest: float
) -> Witness:
    """Return calibrated forecasts of whole rounds near a calibrated splitting of them.

    They cost at most 1.96 T^(1/3) more than the splitting, for T rounds and the `finest` of
    `splitting.finest_cells` (docs/distance.md, theorem 11).

    Parameters
    ----------
    values, masses
        The splitting: increasing forecasts, and how many rounds, not always whole, receive each.
    zeros, ones
        How many rounds there are; ``sum((1 - values) * masses)`` and ``sum(values * masses)`` up to
        rounding.
    finest
        Cells of the tree are split that are wider than 1/finest.

    Notes
    -----
    Every node v of the tree has a tent over its cell; f, the integral of the tent, is rounded down.
    What is left of a node after its children in both directions have taken theirs is how many
    groups have the value v. Where all values of a cell lie next to one end, a whole spine of nodes
    is passed in one step: O(n log(finest)) steps of exact arithmetic for n values, and O(finest
    log(finest)) at most.
    """
    tree = _Tree(values, masses)
    cells = [_Cell((0, 1), (1, 1), 0, 1, 0, len(values))]
    most = math.ceil(finest) - 1
    while cells:
        cell = cells.pop()
        if cell.u[1] * cell.w[1] <= most:
            cells += tree.split(cell, most)
    return tree.witness(zeros, ones)


def _mirrored(of: tuple[int, int]) -> tuple[int, int]:
    return of[1] - of[0], of[1]


def _spine(u: tuple[int, int], w: tuple[int, int], last: int, most: int, equal: int = 1) -> int:
    """Return how many nodes v follow each other from w towards u until one is below `last`.

    `last` is the greatest value. As long as all values are left of v, its tent is the same function
    of them: each node's groups go on to the next one, and only the last keeps any. Cells are split
    while the product of their denominators is at most `most`. A value that equals v counts as left
    of it, or not if `equal` is 0.
    """
    split = (most // u[1] - w[1]) // u[1] + 1
    return min(split, (w[0] * _UNITS - last * w[1] - 1 + equal) // (last * u[1] - u[0] * _UNITS))


class _Tree:
    """The masses, summed, and the nodes so far; the first two are 0 and 1."""

    def __init__(self, values: NDArray[np.float64], masses: NDArray[np.float64]) -> None:
        self._values = [int(value) for value in np.rint(values * _UNITS)]
        # a quarter of a round more in all: makes up for what rounding took off whole groups, but is
        # no other round; it costs 1/8 at most (docs/distance.md, theorem 12 (c))
        more = 1 + 0.25 / masses.sum()
        whole = [int(mass) for mass in np.rint(masses * more * _PARTS)]
        moments = (value * mass for value, mass in zip(self._values, whole, strict=True))
        self._mass = [0, *accumulate(whole)]
        self._moment = [0, *accumulate(moments)]
        self._fractions = [(0, 1), (1, 1)]
        self._groups = [0, 0]

    def split(self, cell: _Cell, most: int) -> list[_Cell]:
        """Add the node between two neighbours, and return the cells on its sides.

        Returns nothing where it gets no group. Then nothing below it gets one either: the tent of a
        node is nowhere lower than those of its children together. Cells are split while the product
        of their denominators is at most `most`.
        """
        u, w = cell.u, cell.w
        v = u[0] + w[0], u[1] + w[1]
        middle = bisect_left(self._values, v[0] * _UNITS // v[1] + 1, cell.start, cell.end)
        tent = self._integral(u, cell.start, middle) - self._integral(w, middle, cell.end)
        groups = tent // (_UNITS * _PARTS)
        if not groups:
            return []
        here = len(self._fractions)
        below = above = 1  # how many nodes take their groups from either end
        if middle == cell.end:
            below = _spine(u, w, self._values[middle - 1], most)
        elif middle == cell.start:
            above = _spine(_mirrored(w), _mirrored(u), _UNITS - self._values[middle], most, equal=0)
        v = above * w[0] + below * u[0], above * w[1] + below * u[1]
        self._fractions.append(v)
        self._groups.append(groups)
        self._groups[cell.low] -= below * groups
        self._groups[cell.high] -= above * groups
        return [
            _Cell(u, v, cell.low, here, cell.start, middle),
            _Cell(v, w, here, cell.high, middle, cell.end),
        ]

    def _integral(self, of: tuple[int, int], start: int, end: int) -> int:
        """Return the sum of mass times (denominator * value - numerator) over some values."""
        moment = self._moment[end] - self._moment[start]
        mass = self._mass[end] - self._mass[start]
        return of[1] * moment - of[0] * mass * _UNITS

    def witness(self, zeros: int, ones: int) -> Witness:
        """Return the groups, and what is left over at 0 and 1."""
        value_of, size_of = np.array(self._fractions[2:], np.int64).reshape(-1, 2).T
        groups = np.array(self._groups[2:], np.int64)
        of_one = groups * value_of
        of_zero = groups * size_of - of_one
        of_zero = np.append(of_zero, (zeros - of_zero.sum(), 0))
        of_one = np.append(of_one, (0, ones - of_one.sum()))
        some = of_zero + of_one > 0
        return grouped(of_zero[some], of_one[some])
