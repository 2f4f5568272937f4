"""The distance to calibration, exactly, by two methods too slow for anything but small cases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import accumulate
from math import lcm

__all__ = ["brute_force_distance", "calibration_distance"]


def brute_force_distance(p: Sequence[Fraction], y: Sequence[int]) -> Fraction:
    """CalDist by definition: all partitions of the rounds, each group at its mean outcome."""

    def cost(group: list[int]) -> Fraction:
        mean = Fraction(sum(y[t] for t in group), len(group))
        return sum((abs(p[t] - mean) for t in group), Fraction(0))

    return min(sum(map(cost, groups), Fraction(0)) for groups in _partitions(len(y)))


def _partitions(n: int) -> Iterator[list[list[int]]]:
    if n == 0:
        yield []
        return
    for groups in _partitions(n - 1):
        for k in range(len(groups)):
            yield [*groups[:k], [*groups[k], n - 1], *groups[k + 1 :]]
        yield [*groups, [n - 1]]


def calibration_distance(p: Sequence[Fraction], y: Sequence[int]) -> Fraction:
    """CalDist as a shortest path.

    Sort the forecasts of the zeros and those of the ones. Groups in increasing order of value can
    be taken as consecutive blocks of both lists, so CalDist is the length of the shortest path over
    lattice points (i, j), from (0, 0) to (zeros, ones), where a step takes the next zeros and ones
    as a group. O(zeros^2 ones^2).
    """
    # everything in units of 1 / (denominators of p times all group sizes), so that all sums are of
    # integers
    denominator = lcm(1, *(x.denominator for x in p)) * lcm(1, *range(1, len(y) + 1))
    zeros = sorted(int(x * denominator) for x, bit in zip(p, y, strict=True) if bit == 0)
    ones = sorted(int(x * denominator) for x, bit in zip(p, y, strict=True) if bit == 1)

    def costs_up_to(value: int) -> tuple[list[int], list[int]]:
        """What the first k zeros, and the first k ones, cost at this value."""
        to_value = [[abs(x - value) for x in side] for side in (zeros, ones)]
        return list(accumulate(to_value[0], initial=0)), list(accumulate(to_value[1], initial=0))

    costs = [
        [costs_up_to(dj * denominator // max(di + dj, 1)) for dj in range(len(ones) + 1)]
        for di in range(len(zeros) + 1)
    ]
    length = [[0] * (len(ones) + 1) for _ in range(len(zeros) + 1)]
    for i in range(len(zeros) + 1):
        for j in range(len(ones) + 1):
            shortest = None
            for i0 in range(i + 1):
                for j0 in range(j if i0 == i else j + 1):
                    of_zeros, of_ones = costs[i - i0][j - j0]
                    path = length[i0][j0] + of_zeros[i] - of_zeros[i0] + of_ones[j] - of_ones[j0]
                    if shortest is None or path < shortest:
                        shortest = path
            length[i][j] = shortest or 0
    return Fraction(length[-1][-1], denominator)
