"""A height at which all classes have this tilt, and probabilities that sum to 1, in plain Python.

Every class has a curve over the arc, its tilt. It comes from above at 0 and leaves downwards at 1,
so it crosses every height an odd number of times. Of all ways to choose a crossing of each class,
count those that sum to 1 or less, mod 2: high above there is one, and far below there is none.
Where the parity changes, one class trades a crossing for the next one, and with some choice of the
others that takes the sum past 1 (docs/classes.md, section 2).

Crossing x of a class is between its samples x - 1 and x. Before the first sample and after the last
there is one more: those at 0 and at 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from truecast.reference.guard import END, forecast_at

__all__ = ["WHOLE", "Levels"]

WHOLE = 1 << 62


class Levels:
    """Tilts at even points of the arc, a power of two and one of them for each class."""

    def __init__(self, tilts: Sequence[Sequence[float]]) -> None:
        self.cells = len(tilts[0]) - 1
        self.digits = (self.cells - 1).bit_length() + (len(tilts) - 1).bit_length()
        keys = range(0, END + 1, END // self.cells)
        self.places = [int(forecast_at(key) * WHOLE) for key in keys]
        samples = [(-tilt, k, i) for k, row in enumerate(tilts) for i, tilt in enumerate(row)]
        self.order = [(k, i) for _, k, i in sorted(samples)]
        self.rank = [[0] * len(row) for row in tilts]
        for r, (k, i) in enumerate(self.order):
            self.rank[k][i] = r

    def find(self) -> tuple[int, list[int]]:
        """The class that has its sample at the height, and a crossing of each class."""
        low, high = 0, len(self.order)  # odd, even
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.is_odd(self.crossings(middle)) else (low, middle)
        who, sample = self.order[low]
        left = self.crossings(low)
        left[who] = [sample, sample + 1]
        for k in range(len(left)):
            while k != who and len(left[k]) > 1:
                half = len(left[k]) // 2
                lower, upper = left[k][:half], left[k][half:]
                left[k] = lower
                left[k] = lower if self.is_odd(left) else upper
        return who, [one[0] for one in left]

    def crossings(self, height: int) -> list[list[int]]:
        """Of each class, if so many samples are above."""
        found = []
        for row in self.rank:
            above = [True, *(rank < height for rank in row), False]
            found.append([x for x, (a, b) in enumerate(pairwise(above)) if a != b])
        return found

    def is_odd(self, choices: Sequence[Sequence[int]]) -> bool:
        """Whether the ways to choose, with a sum of at most 1, are odd in number."""
        sums = {0}  # those with oddly many ways to them
        for crossings in choices[:-1]:
            further: set[int] = set()
            for x in crossings:
                for s in sums:
                    if (more := s + self.place(x)) <= WHOLE:
                        further ^= {self.cut(more)}
            sums = further
        return sum(s + self.place(x) <= WHOLE for s in sums for x in choices[-1]) % 2 == 1

    def place(self, crossing: int) -> int:
        """The lower end of its cell."""
        return self.places[max(crossing - 1, 0)]

    def cut(self, total: int) -> int:
        """Down to a multiple of a power of two, at most 2^-digits of a root.

        That of the sum, or of what it lacks of 1.
        """
        nearer = min(total, WHOLE - total)
        zeros = (nearer.bit_length() - 1) // 2 + 31 - self.digits
        return total if nearer == 0 or zeros <= 0 else total >> zeros << zeros
