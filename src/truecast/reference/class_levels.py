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
        self.digits = self.cells.bit_length() + (len(tilts) - 2).bit_length()
        keys = range(0, END + 1, END // self.cells)
        self.places = [int(forecast_at(key) * WHOLE) for key in keys]
        self.finest = (62 - (self.places[1] - 1).bit_length()) // 2
        samples = [(-tilt, k, i) for k, row in enumerate(tilts) for i, tilt in enumerate(row)]
        self.order = [(k, i) for _, k, i in sorted(samples)]
        self.rank = [[0] * len(row) for row in tilts]
        for r, (k, i) in enumerate(self.order):
            self.rank[k][i] = r

    def find(self) -> tuple[int, list[int]]:
        """The class that has a sample at the height, and a crossing of each class."""
        low, high = 0, len(self.order)  # odd, even
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.is_odd(self.crossings(middle)) else (low, middle)
        who, sample = self.order[low]
        left = self.crossings(low)
        left[who] = [sample, sample + 1]
        for k in reversed(range(len(left))):
            while k != who and len(left[k]) > 1:
                half = len(left[k]) // 2
                lower, upper = left[k][:half], left[k][half:]
                left[k] = lower
                left[k] = lower if self.is_odd(left) else upper
        return who, [one[0] for one in left]

    def crossings(self, height: int) -> list[list[int]]:
        """Of each class, if this number of samples is above."""
        found = []
        for row in self.rank:
            above = [True, *(rank < height for rank in row), False]
            found.append([x for x, (a, b) in enumerate(pairwise(above)) if a != b])
        return found

    def is_odd(self, choices: Sequence[Sequence[int]]) -> bool:
        """Whether the ways to choose, with a sum of at most 1, are odd in number.

        The bits of `sums` are the sums with an odd number of ways to them in which no class is
        above 1/2. If one is, those of `left` are what it leaves, less the others.
        """
        odd = 0
        for scale in {0, *(self.scale(x) for each in choices for x in each if self.is_high(x))}:
            sums, left, most = 1, 0, 1 << (self.digits - scale)
            for each in choices:
                sums_before, left_before = sums, left
                backwards = int(f"{sums:0{most + 1}b}"[::-1], 2)
                sums = left = 0
                for x in each:
                    if not self.is_high(x):
                        by = self.units(self.place(x), scale)
                        sums ^= sums_before << by
                        left ^= left_before >> by
                    elif self.scale(x) == scale:
                        left ^= backwards >> (most - self.units(WHOLE - self.place(x), scale))
                sums &= (2 << most) - 1
            odd += left.bit_count() + (sums.bit_count() if scale == 0 else 0)
        return odd % 2 == 1

    def counts(self, choice: Sequence[int]) -> bool:
        """Whether one way counts: its sum is at most 1, or nearly."""
        high = [x for x in choice if self.is_high(x)]
        scale = self.scale(high[0]) if high else 0
        room = WHOLE - self.place(high[0]) if high else WHOLE
        others = sum(self.units(self.place(x), scale) for x in choice if not self.is_high(x))
        return len(high) < 2 and others <= self.units(room, scale)

    def place(self, crossing: int) -> int:
        """The lower end of its cell."""
        return self.places[max(crossing - 1, 0)]

    def is_high(self, crossing: int) -> bool:
        """Whether it is above 1/2."""
        return self.place(crossing) > WHOLE // 2

    def scale(self, high: int) -> int:
        """The last one that has what this crossing leaves of 1: up to 4^-scale."""
        left = WHOLE - self.place(high)
        return min((62 - (left - 1).bit_length()) // 2, self.finest) if left else self.finest

    def units(self, length: int, scale: int) -> int:
        """Of 2^-(digits + scale), so that they are as short on the arc near 0 as elsewhere."""
        return length >> (62 - self.digits - scale)
