"""Resamples of a tally, from exact tables of their laws: the twin of _core/draws.hpp."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import accumulate, combinations
from math import comb, factorial, sqrt

__all__ = ["bits_at", "bootstrap", "calibrated_ones", "farthest_off"]

_WORD = (1 << 64) - 1
_NOTHING = Fraction(1, 1 << 90)


def bits_at(key: int, place: int) -> int:
    """Return the random bits at a place of the sequence that starts at a key: SplitMix64."""
    z = (key + (place + 1) * 0x9E3779B97F4A7C15) & _WORD
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & _WORD
    z = (z ^ z >> 27) * 0x94D049BB133111EB & _WORD
    return z ^ z >> 31


def calibrated_ones(weights: Sequence[int], p: Sequence[float], key: int) -> list[int]:
    """Return how many rounds of each cell are ones if its forecast is their probability."""
    return [
        _draw(_binomial(n, Fraction(q)), bits_at(key, place))
        for place, (n, q) in enumerate(zip(weights, p, strict=True))
    ]


def bootstrap(counts: Sequence[int], key: int) -> list[int]:
    """Return counts of as many rounds, drawn from these with replacement.

    Independent Poisson counts are, given their sum, a multinomial. A sum that is too large is drawn
    again; what is missing is drawn round by round.
    """
    total, places = sum(counts), iter(range(1 << 62))
    part = max(0.0, 1.0 - 3.0 / sqrt(total)) if total else 0.0
    laws = [_poisson(Fraction(count * part)) for count in counts]
    while True:
        row = [_draw(law, bits_at(key, next(places))) for law in laws]
        if sum(row) <= total:
            break
    for _ in range(total - sum(row)):
        row[_draw(counts, bits_at(key, next(places)))] += 1
    return row


def farthest_off(surplus: Sequence[float], variance: Sequence[float]) -> float:
    """Return the largest squared deviation of any stretch, from the sums up to each mark."""
    most = 0.0
    for first, last in combinations(range(len(surplus)), 2):
        s = abs(surplus[last] - surplus[first])
        v = max(variance[last] - variance[first], 0.0)
        most = max(most, s * s / (v + s / 3 + 1e-300))
    return most


def _draw(weights: Sequence[int | Fraction], bits: int) -> int:
    """Return the least value whose distribution function exceeds the bits."""
    u = Fraction(bits >> 1, 1 << 63) * sum(weights)
    return next(k for k, upto in enumerate(accumulate(weights)) if upto > u)


def _binomial(n: int, p: Fraction) -> list[Fraction]:
    return [comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]


def _poisson(mean: Fraction) -> list[Fraction]:
    """Return weights in proportion to the law, up to where they no longer matter."""

    def weights() -> Iterator[Fraction]:
        for k in range(1 << 62):
            weight = mean**k / factorial(k)
            yield weight
            if k >= mean and weight <= _NOTHING:
                return

    return [*weights()]
