"""How often `truecast.stretches` marks something, where forecasts are calibrated or not.

Run: python benchmarks/finder.py [worlds]

In calibrated worlds the share must be at most 0.05, but for the error of the simulation, which is
printed beside it. In the others it is compared with that of the smooth calibration error by itself
(p-value of `uncertainty` below 0.05), and with Bernstein's inequality over all stretches, which is
proved and so on the safe side.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import truecast as tc
from truecast.measures.finder import SIGNIFICANT, stretches, stretches_p_value
from truecast.measures.pooling import pooled

Array = NDArray[np.float64]
Forecasts = Callable[[np.random.Generator], Array]
Truth = Callable[[Array], Array]

FORECASTS: dict[str, Forecasts] = {
    "5 rounds": lambda rng: rng.random(5),
    "30 rounds, ties": lambda rng: rng.random(30).round(1),
    "400 rounds, two forecasts": lambda rng: rng.choice([0.3, 0.6], 400),
    "400 rounds": lambda rng: rng.random(400),
    "2,000 rounds": lambda rng: rng.random(2000),
    "2,000 rounds, ties": lambda rng: rng.beta(2, 3, 2000).round(2),
    "5,000 rounds": lambda rng: rng.random(5000),
    "5,000 rounds, rare (1 %)": lambda rng: rng.beta(0.5, 50, 5000),
    "5,000 rounds, rare, one forecast": lambda rng: np.full(5000, 0.002),
    "500 rounds, mostly 0 or 1": lambda rng: rng.choice([0.0, 1.0, 0.5], 500, p=[0.45, 0.45, 0.1]),
}

WORLDS: dict[str, tuple[str, Truth]] = {
    "p + .03 sin 6 pi p": ("5,000 rounds", lambda p: p + 0.03 * np.sin(6 * np.pi * p)),
    "p + .08 sin 6 pi p": ("2,000 rounds", lambda p: p + 0.08 * np.sin(6 * np.pi * p)),
    "too extreme": ("2,000 rounds", lambda p: 0.5 + 0.9 * (p - 0.5)),
    "too extreme, ties": ("2,000 rounds, ties", lambda p: 0.4 + 0.85 * (p - 0.4)),
    "not extreme enough": ("400 rounds", lambda p: np.clip(0.5 + 1.2 * (p - 0.5), 0, 1)),
    "too high": ("2,000 rounds", lambda p: np.maximum(p - 0.025, 0)),
    "too low by half, rare": ("5,000 rounds, rare (1 %)", lambda p: 1.5 * p),
    "too low by half, rare, one forecast": (
        "5,000 rounds, rare, one forecast",
        lambda p: 1.5 * p + 0.001,
    ),
    "off in one place": ("5,000 rounds", lambda p: np.where((p > 0.7) & (p < 0.8), p - 0.07, p)),
    "two forecasts, apart": (
        "400 rounds, two forecasts",
        lambda p: np.where(p < 0.5, p + 0.09, p - 0.09),
    ),
    "two forecasts, one off": (
        "400 rounds, two forecasts",
        lambda p: np.where(p < 0.5, p + 0.11, p),
    ),
    "the wrong way": ("30 rounds, ties", lambda p: 1 - p),
    "few": ("5 rounds", lambda p: 1 - p),
}


def marked(y: NDArray[np.bool_], p: Array, seed: int) -> tuple[bool, bool, bool]:
    """Return what marks something: the finder, the smooth error, Bernstein's inequality."""
    tally = tc.Tally.from_predictions(y, p)
    found = stretches(tally, resamples=199, random_state=seed)
    assert bool(found.off) == (found.p_value < SIGNIFICANT)
    smooth = tc.uncertainty(
        tc.smooth_calibration_error, tally, resamples=199, random_state=seed
    ).p_value
    return bool(found.off), smooth < SIGNIFICANT, stretches_p_value(pooled(tally)) < SIGNIFICANT


def shares(forecasts: Forecasts, truth: Truth, worlds: int) -> Array:
    """Return how often each of the three finds something in that number of worlds."""
    found = []
    for seed in range(worlds):
        rng = np.random.default_rng(seed)
        p = forecasts(rng)
        found.append(marked(rng.random(len(p)) < truth(p), p, seed))
    return np.mean(found, axis=0)


def main(worlds: int) -> None:
    """Print both tables."""
    print(f"## Calibrated: how often anything is marked, of {worlds:,} worlds\n")
    print("| forecasts | stretches | smooth error alone | Bernstein |\n|---|---:|---:|---:|")
    every = []
    for name, forecasts in FORECASTS.items():
        share = shares(forecasts, lambda p: p, worlds)
        every.append(share[0])
        print(f"| {name} | {share[0]:.3f} | {share[1]:.3f} | {share[2]:.3f} |", flush=True)
    error = (0.05 * 0.95 / worlds) ** 0.5
    print(
        f"\nStandard error of each if it is 0.05: {error:.3f}; mean of all: {np.mean(every):.4f}.\n"
    )
    print(f"## Not calibrated: how often it is found, of {worlds:,} worlds\n")
    print(
        "| forecasts | truth | stretches | smooth error alone | Bernstein |\n"
        "|---|---|---:|---:|---:|"
    )
    for name, (forecasts_name, truth) in WORLDS.items():
        share = shares(FORECASTS[forecasts_name], truth, worlds)
        print(
            f"| {forecasts_name} | {name} | {share[0]:.3f} | {share[1]:.3f} | {share[2]:.3f} |",
            flush=True,
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
