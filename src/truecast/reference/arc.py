"""The forecaster on the arc, in plain Python: the first point where the field is weak enough.

The page to read first, and the oracle that the compiled tree is driven against, bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable

__all__ = ["Arc", "energy", "fall", "kernel", "rise"]

_SCALE = 121.0 / 123.0  # so that no price exceeds 1
_FINEST = 2.0**-51  # cells are not halved further


def rise(p: float) -> float:
    """The factor of the kernel that grows with p."""
    return _shape(1.0 - p)


def fall(p: float) -> float:
    """The factor of the kernel that falls with p."""
    return _shape(p)


def _shape(q: float) -> float:
    x = 1.0 - math.sqrt(q)
    gap = 1.75 - x
    return _SCALE * (4.0 + x * (6.0 + x * (45.0 * x - 30.0))) / (gap * gap)


def kernel(p: float, q: float) -> float:
    """K(p, q): how strongly a residual at q is felt at p."""
    return rise(min(p, q)) * fall(max(p, q))


def energy(counts: dict[float, tuple[int, int]]) -> float:
    """E, the sum of r K(p, q) r' over all pairs of forecasts, r = ones - rounds * p."""
    r = {p: ones - (zeros + ones) * p for p, (zeros, ones) in counts.items()}
    return math.fsum(r[p] * r[q] * kernel(p, q) for p in r for q in r)


class Arc:
    """Halves towards the root of the field; says the first middle where a round costs little."""

    def __init__(self) -> None:
        self.rounds = 0
        self.counts: dict[float, tuple[int, int]] = {}

    def predict(self) -> float:
        """The probability that the next outcome is 1."""
        low, high, left, right = 0.0, 1.0, 0.0, 0.0
        while True:
            p = (low + high) / 2
            up, down, r = rise(p), fall(p), self._residual(p)
            below = left + self._sum(rise, low, p) + r * up
            above = right + self._sum(fall, p, high)
            price = p * (1.0 - p) * (up * down)
            field = down * below + up * above + up * down * (0.5 - p)
            if self._cost(field, p) <= price / 64 + min(14.0 / (self.rounds + 1), 1.0 - price):
                return p
            if high - low <= _FINEST:
                return low if p > 0.5 else high
            if field > 0.0:
                low, left = p, below
            else:
                high, right = p, above + r * down

    def observe(self, outcome: int) -> None:
        """Learn the outcome, 0 or 1."""
        p = self.predict()
        zeros, ones = self.counts.get(p, (0, 0))
        self.counts[p] = (zeros + (outcome == 0), ones + (outcome == 1))
        self.rounds += 1

    @staticmethod
    def _cost(field: float, p: float) -> float:
        """What a round at p adds to the energy beyond its price, at worst."""
        return 2.0 * field * (1.0 - p if field > 0.0 else -p)

    def _residual(self, p: float) -> float:
        zeros, ones = self.counts.get(p, (0, 0))
        return ones * (1.0 - p) - zeros * p

    def _sum(self, shape: Callable[[float], float], low: float, high: float) -> float:
        """Sum residual * shape over the forecasts strictly between, in the order of halvings."""
        return self._halved(shape, low, high, [p for p in self.counts if low < p < high])

    def _halved(
        self, shape: Callable[[float], float], low: float, high: float, between: list[float]
    ) -> float:
        if not between:
            return 0.0
        p = (low + high) / 2
        below = self._halved(shape, low, p, [q for q in between if q < p])
        above = self._halved(shape, p, high, [q for q in between if q > p])
        return below + self._residual(p) * shape(p) + above
