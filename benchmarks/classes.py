"""Several classes: what measuring costs against one column; the joint forecaster's walk.

Ratios in one run, best of several; `python benchmarks/classes.py measure`, or `sperner`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any

import numpy as np

import truecast as tc
from truecast.arena import Sperner

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
        f"{every / one:.1f} x the smooth error of one column ({one:.3f} s); target: 12; "
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
        f"{seconds:.1f} s; target: 10 s"
    )


def measure() -> None:
    """Print both figures."""
    for seed in SEEDS:
        whole_rows(seed)
    for seed in SEEDS:
        few_entries(seed)


def sperner(rounds: int = 10**5) -> None:
    """Print what a round of the joint forecaster costs, and how far it walks."""
    rng = np.random.default_rng(0)
    coins = rng.integers(0, 3, rounds).tolist()
    drift = rng.binomial(2, np.arange(rounds) / rounds).tolist()
    worlds: dict[str, Callable[[int, tuple[float, ...]], int]] = {
        "fair coins": lambda t, p: coins[t],
        "one class": lambda t, p: 0,
        "the least likely": lambda t, p: min(range(3), key=p.__getitem__),
        "drift": lambda t, p: drift[t],
    }
    for name, outcome in worlds.items():
        forecaster = Sperner(horizon=rounds)
        steps, most, start = 0, 0, process_time()
        for t in range(rounds):
            y = outcome(t, forecaster.predict())
            kept = forecaster._first.get(forecaster.cell[y], len(forecaster._path))
            forecaster.observe(y)
            walked = max(0, len(forecaster._path) - kept)
            steps, most = steps + walked, max(most, walked)
        seconds = process_time() - start
        print(
            f"{name}: T = {rounds:,}, m = {forecaster.grid}: {seconds / rounds * 1e6:.0f} us a "
            f"round, {steps / rounds:.2f} steps, {most} at most; bound "
            f"{forecaster.bound / rounds ** (2 / 3):.3f} T^(2/3), before the start "
            f"{forecaster.a_priori(rounds) / rounds ** (2 / 3):.3f}"
        )


PARTS = {"measure": measure, "sperner": sperner}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
