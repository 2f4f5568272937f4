"""The distance to calibration, exactly, by two methods too slow for anything but small cases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import accumulate, count, product
from math import gcd, lcm

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
    as a group. A group of k di zeros and k dj ones costs as much as k groups of di and dj, which
    have the same value: steps without a common divisor are enough. O(zeros^2 ones^2).
    """
    # everything in units of 1 / (denominators of p times all group sizes), so that all sums are of
    # integers
    denominator = lcm(1, *(x.denominator for x in p)) * lcm(1, *range(1, len(y) + 1))
    zeros = sorted(int(x * denominator) for x, bit in zip(p, y, strict=True) if bit == 0)
    ones = sorted(int(x * denominator) for x, bit in zip(p, y, strict=True) if bit == 1)

    def costs(side: list[int], value: int, size: int) -> list[int]:
        """What `size` forecasts in a row cost at this value, from each on."""
        first = list(accumulate((abs(x - value) for x in side), initial=0))
        return [after - before for before, after in zip(first, first[size:], strict=False)]

    steps = []
    for di, dj in product(range(1, len(zeros) + 1), range(1, len(ones) + 1)):
        if gcd(di, dj) == 1:
            value = dj * denominator // (di + dj)
            steps.append((di, dj, costs(zeros, value, di), costs(ones, value, dj)))
    to_one = costs(ones, denominator, 1)
    length = [list(accumulate(to_one, initial=0))]
    for i, to_zero in enumerate(costs(zeros, 0, 1), 1):
        row = [before + to_zero for before in length[-1]]
        for di, dj, of_zeros, of_ones in steps:
            if di > i:
                break
            of_zero = of_zeros[i - di]
            for j, before, of_one in zip(count(dj), length[i - di], of_ones, strict=False):
                path = before + of_zero + of_one
                if path < row[j]:
                    row[j] = path
        for j, of_one in enumerate(to_one, 1):
            row[j] = min(row[j], row[j - 1] + of_one)
        length.append(row)
    return Fraction(length[-1][-1], denominator)
