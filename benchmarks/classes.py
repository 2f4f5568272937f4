"""Several classes: what measuring costs against one column.

Ratios in one run, best of several; `python benchmarks/classes.py measure`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

import truecast as tc

ROUNDS = 10**6
SEEDS = (0, 1)


def best(work: Callable[[], Any], times: int = 3) -> float:
    """Return the least of several times."""
    least = float("inf")
    for _ in range(times):
        start = perf_counter()
        work()
        least = min(least, perf_counter() - start)
    return least


def drawn(rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a class for each row, by its probabilities."""
    return np.minimum(
        (rng.random((len(rows), 1)) > np.cumsum(rows, axis=1)).sum(axis=1), rows.shape[1] - 1
    )


def whole_rows(seed: int, classes: int = 10) -> None:
    """Print the cost of ten columns against that of the smooth error of one."""
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(classes, 0.5), ROUNDS)
    y = drawn(rows, rng)
    one = best(lambda: tc.smooth_calibration_error(y == 0, np.ascontiguousarray(rows[:, 0])))
    tally = best(lambda: tc.ClassTally.from_predictions(y, rows))
    every = best(lambda: tc.measure(y, rows))
    print(
        f"seed {seed}: {ROUNDS:,} rounds, K = {classes}: tc.measure {every:.2f} s, "
        f"{every / one:.1f} x the smooth error of one column ({one:.3f} s); asked: 12; "
        f"of that the tally {tally:.2f} s"
    )


def few_entries(seed: int, classes: int = 1000, listed: int = 10) -> None:
    """Print what a thousand classes cost, ten of them listed in each row."""
    rng = np.random.default_rng(seed)
    start = rng.integers(classes, size=(ROUNDS, 1))
    which = (start + rng.integers(1, classes // listed) * np.arange(listed)) % classes
    values = rng.dirichlet(np.full(listed, 0.5), ROUNDS)
    y = which[np.arange(ROUNDS), drawn(values, rng)]
    rows = tc.TopK(which, values)
    seconds = best(lambda: tc.measure(y, rows, labels=classes), 2)
    print(
        f"seed {seed}: {ROUNDS:,} rounds, K = {classes:,}, {listed} listed: tc.measure "
        f"{seconds:.1f} s; asked: 10 s"
    )


def measure() -> None:
    """Print both figures."""
    for seed in SEEDS:
        whole_rows(seed)
    for seed in SEEDS:
        few_entries(seed)


PARTS = {"measure": measure}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
