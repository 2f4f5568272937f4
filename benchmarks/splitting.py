"""The finite part of theorem 12 (docs/distance.md, section 11), in arithmetic that proves it.

    python benchmarks/splitting.py  # all rows of the shipped table, and the theorem from them
    python benchmarks/splitting.py --rows     # makes the table of truecast/splitting.py

Half a minute. Needs the package installed. A row is a number n = N^2 and, in thousandths, an upper
bound of

    H(n) = D + S + the least of sqrt(c + 1 + 2 ln(K + 1)) / 2 and R,    K = min(n - 1, the integer part of 4 N).

D, the mean part, c, the number of nodes of the core, and R, the sum of 1/(a + b) over the core, are
sums over coprime (a, b) with ab < n, and S is that over spines. All is summed in integers and
rounded up; logarithms are those of `decimal`, which are correctly rounded.
"""

from __future__ import annotations

import argparse
import decimal
import math
from collections.abc import Iterable
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from truecast.splitting import CUBE_ROOTS, LARGE, ROWS, THOUSAND

Rows = list[tuple[int, int]]

_UNIT = 1 << 60  # of sums of 1/b
# of ratios of two b, and of those that are squared: sums stay below 2^63
_RATIO, _SQUARE = 1 << 30, 1 << 24
_UP = decimal.Context(prec=30, rounding=decimal.ROUND_CEILING)
_FEW = 16  # n up to which R may be the least

LAST = 400_000_000  # N = 20,000: from there on the theorem is proved by hand


class Row:
    """The sums of one n over a = 1, 2, ...: upper bounds, exactly."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.k = min(n - 1, math.isqrt(16 * n))
        self.mean = Fraction(1, 2) if n > 1 else Fraction(0)
        self.core = 1 if n > 1 else 0
        self.spines = Fraction(0)

    def add(self, a: int, coprime: NDArray[np.int64]) -> None:
        """Add all pairs (a, b) and (b, a), b > a; `coprime` are the numbers up to a coprime to a."""
        most = (self.n - 1) // a  # b <= most if and only if ab < n
        if most <= a:
            return
        first, last = _window(a, a, coprime), _window(most, a, coprime)
        # 1/b - 1/(b + a) over b = a + 1, ..., most: all but the first and the last a of the b
        # cancel
        self.mean += 2 * (_most(first) - _least(last))
        self.core += 2 * (_count(min(self.k, most), a, coprime) - _count(a, a, coprime))
        if most > self.k:
            self._add_spines(a, _window(self.k, a, coprime), last)

    def _add_spines(self, a: int, first: NDArray[np.int64], last: NDArray[np.int64]) -> None:
        """Add the bound of lemma 3 for the chains from b = `first` to b = `last`, on both sides."""
        chains = len(first)
        # sums of 1/b are at most ln((b_k + a/2) / (b_0 + a/2)) / a; the mean of logarithms is at
        # most that of the mean
        ratios = -((2 * last + a) * -_RATIO // (2 * first + a))
        mean = _UP.divide(decimal.Decimal(int(ratios.sum())), decimal.Decimal(chains * _RATIO))
        self.spines += Fraction(chains, a) * _logarithm(mean)
        self.spines += (_most(first) - _least(last)) / 2
        parts = first * _SQUARE // last
        self.spines += (chains - Fraction(int((parts * parts).sum()), _SQUARE**2)) / (2 * a)

    def constant(self) -> int:
        """Return an upper bound of H(n) in thousandths."""
        if self.n == 1:
            return 0
        core = _root(self.core + 1 + 2 * _logarithm(decimal.Decimal(self.k + 1))) / 2
        if self.n <= _FEW:
            core = min(
                core, sum(Fraction(1, a + b) for a, b in nodes(self.n) if max(a, b) <= self.k)
            )
        return math.ceil(THOUSAND * (self.mean + core + self.spines))


def nodes(n: int) -> list[tuple[int, int]]:
    """Return all coprime (a, b) with ab < n."""
    return [(a, b) for a in range(1, n) for b in range(1, (n - 1) // a + 1) if math.gcd(a, b) == 1]


def _logarithm(number: decimal.Decimal) -> Fraction:
    """Return an upper bound of a natural logarithm: the one after the nearest of 30 digits."""
    return Fraction(number.ln(_UP).next_plus(_UP))


def _root(square: Fraction) -> Fraction:
    """Return an upper bound of a square root."""
    return Fraction(math.isqrt(math.ceil(square * _UNIT**2)) + 1, _UNIT)


def _window(after: int, a: int, coprime: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the b in (after, after + a] coprime to a: one a residue, always in this order."""
    b = coprime + (after - after % a)
    return np.where(b <= after, b + a, b)


def _least(b: NDArray[np.int64]) -> Fraction:
    """Return a lower bound of the sum of 1/b."""
    return Fraction(int((_UNIT // b).sum()), _UNIT)


def _most(b: NDArray[np.int64]) -> Fraction:
    """Return an upper bound of the sum of 1/b."""
    return _least(b) + Fraction(len(b), _UNIT)


def _count(most: int, a: int, coprime: NDArray[np.int64]) -> int:
    """Return how many b from 1 to `most` are coprime to a."""
    return most // a * len(coprime) + int(np.searchsorted(coprime, most % a, side="right"))


def constants(numbers: Iterable[int]) -> Rows:
    """Return n and, in thousandths, an upper bound of H(n), for each of these n."""
    rows = [Row(n) for n in sorted(numbers)]
    for a in range(1, math.isqrt(rows[-1].n) + 1):
        upto = np.arange(1, a + 1)
        coprime = upto[np.gcd(upto, a) == 1]
        for row in rows:
            if row.n > a * a:
                row.add(a, coprime)
    return [(row.n, row.constant()) for row in rows]


def grid() -> list[int]:
    """Return the n that are tried."""
    numbers = [1]
    while numbers[-1] < LAST:
        last = numbers[-1]
        numbers.append(max(last + 1, last * 11 // 10 if last < 10**6 else last * 5 // 4))
    return [*numbers[:-1], LAST]


def crossing(one: tuple[int, int], other: tuple[int, int]) -> Fraction:
    """Return the T at which two rows are equal."""
    (n, low), (m, high) = one, other
    return Fraction(high - low, THOUSAND) / (Fraction(1, 2 * n) - Fraction(1, 2 * m))


def envelope(rows: Rows) -> Rows:
    """Leave out the rows that are nowhere the least."""
    kept: Rows = []
    for row in rows:
        while len(kept) > 1 and crossing(kept[-2], kept[-1]) >= crossing(kept[-1], row):
            kept.pop()
        kept.append(row)
    return kept


def least(rows: Rows, rounds: Fraction | int) -> tuple[Fraction, int]:
    """Return the least bound for T rounds, and its n."""
    return min(
        (Fraction(rounds) / (2 * n) + Fraction(constant, THOUSAND), n) for n, constant in rows
    )


def greatest(rows: Rows, more: Fraction = Fraction(0)) -> tuple[Fraction, Fraction]:
    """Return the greatest (least bound + more)^3 / T over 1 <= T <= LARGE, and where it is.

    The cube root, s T^(2/3) + c T^(-1/3) for each row, is convex in T^(1/3): so it is greatest
    where two rows cross, or at an end.
    """
    places = [
        Fraction(1),
        *(crossing(one, other) for one, other in pairwise(rows)),
        Fraction(LARGE),
    ]
    return max(((least(rows, t)[0] + more) ** 3 / t, t) for t in places if 1 <= t <= LARGE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", action="store_true", help="make the table anew, and print it")
    if parser.parse_args().rows:
        rows = envelope(constants(grid()))
        for start in range(0, len(rows), 5):
            print(
                "    " + " ".join(f"({n}, {constant})," for n, constant in rows[start : start + 5])
            )
    else:
        rows = constants(n for n, _ in ROWS)
        if rows != list(ROWS):
            raise RuntimeError("the table that is shipped is not the one that is proved")
        print(f"{len(rows)} rows are proved, to n = {rows[-1][0]:,}.")
    cube, place = greatest(rows)
    if cube > CUBE_ROOTS**3:
        raise RuntimeError("the table does not prove the theorem")
    ratio = float(cube) ** (1 / 3)
    print(
        f"CalDist - L <= {ratio:.5f} T^(1/3) for 1 <= T <= {LARGE:.3g}; most at T = "
        f"{float(place):.6g}."
    )
    for power in range(14):
        bound, n = least(rows, 10**power)
        print(
            f"T = 1e{power}: {float(bound):.6g} = {float(bound) / 10 ** (power / 3):.4f} "
            f"T^(1/3), n = {n}"
        )


if __name__ == "__main__":
    main()
