"""Rounds for property tests: full of ties, ends, and neighbours in floating point."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

import truecast as tc
from truecast.reference.measures import Tally as ReferenceTally

GRIDDED = st.builds(lambda k, m: min(k, m) / m, st.integers(0, 12), st.integers(1, 12))
NEIGHBOURS = st.sampled_from(
    [
        0.0,
        -0.0,
        5e-324,
        1e-300,
        1.0,
        np.nextafter(1, 0),
        0.5,
        np.nextafter(0.5, 1),
        np.nextafter(0.5, 0),
        0.3,
        0.1 + 0.2,
    ]
).map(float)
FORECASTS = GRIDDED | NEIGHBOURS | st.floats(0, 1)
DYADIC = st.integers(0, 64).map(lambda k: k / 64)


def rounds(
    forecasts: st.SearchStrategy[float] = FORECASTS, *, least: int = 1, most: int = 24
) -> st.SearchStrategy:
    """Lists of (outcome, forecast); every now and then all outcomes alike."""
    either = st.lists(st.tuples(st.integers(0, 1), forecasts), min_size=least, max_size=most)
    return either | st.tuples(st.integers(0, 1), either).map(lambda t: [(t[0], p) for _, p in t[1]])


def columns(rows: list[tuple[int, float]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([y for y, _ in rows], np.int64), np.array([p for _, p in rows], np.float64)


def tally_of(rows: list[tuple[int, float]]) -> tc.Tally:
    return tc.Tally.from_predictions(*columns(rows))


def exact(tally: tc.Tally) -> ReferenceTally:
    return [
        (Fraction(p), z, o)
        for p, z, o in zip(tally.p.tolist(), tally.zeros.tolist(), tally.ones.tolist(), strict=True)
    ]


def random_tallies(seed: int, number: int, most: int = 24) -> list[tc.Tally]:
    """Small tallies of many kinds: continuous, gridded, clustered, at the ends, one class, adjacent
    floats."""
    rng = np.random.default_rng(seed)
    tallies = []
    for k in range(number):
        n = int(rng.integers(1, most + 1))
        p = rng.random(n)
        kind = k % 6
        if kind == 1:
            p = rng.integers(0, 6, n) / 5
        elif kind == 2:
            p = 0.5 + rng.integers(-3, 4, n) * 2.0**-53
        elif kind == 3:
            p = np.where(rng.random(n) < 0.5, 0.0, 1.0)
        elif kind == 4:
            p = 0.3 + 1e-6 * rng.random(n)
        y = rng.random(n) < (p if k % 5 else 1 - p)
        if k % 7 == 0:
            y[:] = k % 2
        tallies.append(tc.Tally.from_predictions(y, p))
    return tallies
