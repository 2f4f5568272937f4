"""Which stretches of forecasts are off: found by looking at all of them, and proved by Bernstein's inequality."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truecast.tally import Tally

__all__ = ["stretches", "stretches_p_value"]

_MARKS = 128  # between which stretches are sought
_STRIKING = 4.0  # deviations
_LIKEWISE = 2.0  # deviations from which what lies between two stretches is off in the same way
_NARROW = 0.1  # of two stretches, that may lie between them for them to be one
_MOST = 3


class _Sums(NamedTuple):
    """Up to each mark: the index of the forecast, the sum of y - p, its variance by chance, the rounds.

    `unit` is the most that a round adds to a sum.
    """

    at: NDArray[np.int64]
    surplus: NDArray[np.float64]
    variance: NDArray[np.float64]
    rounds: NDArray[np.float64]
    unit: float

    def striking(self, first: Any, last: Any) -> Any:
        """Return how many deviations the surplus between two marks is away from 0; with its sign.

        In the sense of Bernstein's inequality: by chance, z is exceeded with a probability of at most exp(-z**2 / 2),
        however few the rounds and rare the outcomes.
        """
        surplus, variance = self.surplus[last] - self.surplus[first], self.variance[last] - self.variance[first]
        return surplus / np.sqrt(np.maximum(variance, 0) + self.unit * np.abs(surplus) / 3 + 1e-300)


def stretches(tally: Tally) -> list[tuple[int, int]]:
    """Return the first index and the one after the last of the stretches in which the most is off, in order.

    Of all stretches the most striking one is taken, then those to its left and right are looked at in the same way;
    neighbours that are off in one direction become one.
    """
    sums = _sums(tally)
    found: list[tuple[int, int]] = []
    left = [(0, len(sums.at) - 1)]
    while left:
        start, end = left.pop()
        first, last = _most_striking(sums, start, end)
        if abs(sums.striking(first, last)) >= _STRIKING:
            found.append((first, last))
            left += [(a, b) for a, b in ((start, first), (last, end)) if a < b]
    joined = _joined(sums, sorted(found))
    largest = sorted(joined, key=lambda marks: -abs(sums.surplus[marks[1]] - sums.surplus[marks[0]]))[:_MOST]
    return [(int(sums.at[first]), int(sums.at[last])) for first, last in sorted(largest)]


def stretches_p_value(tally: Tally) -> float:
    """Return how often, at the most, any stretch of calibrated forecasts would be as far off as one is here.

    By Bernstein's inequality for every stretch, above and below, and the sum over all of them: proved for independent
    rounds, so it is on the large side. Unlike the smooth calibration error it sees forecasts that are too high here and
    too low close by. Not for real weights.
    """
    sums = _sums(tally)
    number = len(sums.at) * (len(sums.at) - 1) // 2
    most = sums.striking(*_most_striking(sums, 0, len(sums.at) - 1))
    return min(1.0, 2 * number * math.exp(-(most**2) / 2))


def _sums(tally: Tally) -> _Sums:
    index = np.unique(np.linspace(0, len(tally.p), _MARKS + 1).astype(np.int64))
    times = tally.weights**2 if tally.weighted else tally.weights  # a weighted forecast counts as one round
    columns = (
        tally.ones * (1 - tally.p) - tally.zeros * tally.p,
        times * tally.p * (1 - tally.p),
        tally.weights.astype(np.float64),
    )
    surplus, variance, rounds = (np.append(0.0, np.cumsum(column))[index] for column in columns)
    return _Sums(index, surplus, variance, rounds, float(tally.weights.max()) if tally.weighted else 1.0)


def _most_striking(sums: _Sums, start: int, end: int) -> tuple[int, int]:
    marks = np.arange(start, end + 1)
    deviations = np.triu(np.abs(sums.striking(marks[:, None], marks)), 1)
    first, last = np.unravel_index(int(np.argmax(deviations)), deviations.shape)
    return start + int(first), start + int(last)


def _joined(sums: _Sums, found: list[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for marks in found:
        if joined and _alike(sums, joined[-1], marks):
            joined[-1] = (joined[-1][0], marks[1])
        else:
            joined.append(marks)
    return joined


def _alike(sums: _Sums, one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether two stretches are off in one direction, and what lies between them is too, or is hardly anything."""
    sign = np.sign(sums.striking(*one))
    if sign != np.sign(sums.striking(*other)):
        return False
    between = sums.rounds[other[0]] - sums.rounds[one[1]]
    narrow = between <= _NARROW * (sums.rounds[other[1]] - sums.rounds[one[0]])
    return bool(narrow or sign * sums.striking(one[1], other[0]) >= _LIKEWISE)
