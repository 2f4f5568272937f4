"""What forecasters with intervals share: excesses, deficits, the choice of two, the best grid."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecast.errors import StateError

__all__ = ["MAX_HORIZON", "Intervals", "largest", "least", "neighbours"]

MAX_HORIZON = 1 << 40  # so that no horizon wants a larger grid

Array = NDArray[np.float64]


class Intervals:
    """The intervals [i/m, (i + 1)/m], each with the excess and deficit of its rounds.

    The excess is the sum of (outcome - upper end), the deficit that of (lower end - outcome): how
    far the ones are above what the upper end, or below what the lower end, would have made of these
    rounds. At most one of them is positive, since they add up to -1/m a round. Both are kept as
    integers over m.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.excess, self.deficit = [0] * count, [0] * count

    def imbalance(self, i: int) -> int:
        """The excess if positive, minus the deficit if that is, else 0: the interval is at rest."""
        return max(self.excess[i], 0) or -max(self.deficit[i], 0)

    def middle(self, i: int) -> float:
        """What is forecast in interval i."""
        return (2 * i + 1) / (2 * self.count)

    def book(self, i: int, y: int) -> None:
        """Count a round in which interval i was said."""
        self.excess[i] += self.count * y - i - 1
        self.deficit[i] += i - self.count * y

    def refuse(self, state: Mapping[str, Any]) -> None:
        """Raise StateError if no rounds can leave such excesses and deficits."""
        rounds = 0
        for i, (excess, deficit) in enumerate(zip(state["excess"], state["deficit"], strict=True)):
            said = -excess - deficit
            ones, rest = divmod(excess + (i + 1) * said, self.count)
            if rest or not 0 <= ones <= said:
                raise StateError(f"the saved excess and deficit of interval {i} are of no rounds")
            rounds += said
        if rounds != state["rounds"]:
            raise StateError(
                f"the saved excesses and deficits must be of {state['rounds']} rounds, "
                f"are of {rounds}"
            )


def neighbours(imbalance: Callable[[int], float], count: int) -> tuple[int, int]:
    """Return an i at rest twice, or an i in excess and its upper neighbour, which is in deficit.

    By bisection, from the middle: the lowest is never in deficit, the highest never in excess.
    """
    low, high = -1, count
    while high - low > 1:
        i = (low + high) // 2
        found = imbalance(i)
        if not found:
            return i, i
        low, high = (i, high) if found > 0 else (low, i)
    return low, high


def least(bounds: Callable[[int, int], Array], rounds: int) -> int:
    """Return the grid with the least of `bounds(rounds, most)`, those of the grids 1 to `most`.

    They are close to T/(2m) + sqrt(c mT) with c >= 1/4, which falls until m = (T/c)^(1/3) and rises
    from there.
    """
    most = 8 + 2 * round(rounds ** (1 / 3))
    return 1 + int(np.argmin(bounds(rounds, most)))


def largest(slope: Array, square: Array) -> Array:
    """Return the largest u with u**2 <= slope * u + square."""
    root: Array = slope / 2 + np.sqrt(slope**2 / 4 + square)
    return root
