"""The commonest calls, from ten rounds to ten million: what a user waits for.

Needs nothing but the package.

    python benchmarks/pages.py calls  # into the docs; two minutes; --quick up to 100,000 rounds
    python benchmarks/calls.py        # to look at
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from timing import header

import truecast as tc
from truecast import _check

SEEDS = (0, 1, 2)
BUDGET = 0.1  # seconds for each call, size and seed; one run at least

Call = Callable[[np.ndarray, np.ndarray], Any]

LIMITS: dict[str, Call] = {
    "both arrays checked, nothing else": _check.predictions,
    "np.sort of the forecasts": lambda y, p: np.sort(p),
    "numpy's mean of (p - y)²": lambda y, p: np.mean((p - y) ** 2),
}
CALLS: dict[str, Call] = {
    "brier_score": tc.brier_score,
    "log_loss": tc.log_loss,
    "binned_calibration_error": tc.binned_calibration_error,
    "smooth_calibration_error": tc.smooth_calibration_error,
    "smooth_ece": tc.smooth_ece,
    "reliability_curve": tc.reliability_curve,
    "Tally.from_predictions": tc.Tally.from_predictions,
    "measure": tc.measure,
    "Recalibrator().forecast_many": lambda y, p: tc.Recalibrator().forecast_many(p, y),
    "Arc().forecast_many": lambda y, p: tc.Arc().forecast_many(y),
    "Monitor().update_many": lambda y, p: tc.Monitor().update_many(p, y),
}


MEASURES: tuple[Call, ...] = (
    tc.Tally.from_predictions,
    tc.brier_score,
    tc.log_loss,
    tc.binned_calibration_error,
    tc.calibration_error_by_value,
    tc.averaged_two_bin_error,
    tc.u_calibration_error,
    tc.calibration_decision_loss,
    tc.integrated_calibration_index,
    tc.laplace_calibration_error,
    tc.calibration_error_quantile,
    tc.observed_expected_ratio,
    tc.arc_energy,
    tc.smooth_calibration_error,
    tc.reliability_bins,
    tc.reliability_curve,
    tc.smooth_calibration_witness,
    tc.calibration_in_the_large,
    tc.calibration_slope,
    tc.smooth_ece,
    tc.lower_calibration_distance,
)


def rounds(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    y = (rng.random(n) < p**1.2).astype(np.int64)
    y[:2] = (0, 1)  # a slope needs both
    return y, p


def least(call: Call, y: np.ndarray, p: np.ndarray) -> float:
    """Seconds of the quickest run of some; the first is not counted."""
    call(y, p)  # imports what it needs
    times: list[float] = []
    while sum(times) < BUDGET and len(times) < 2_000:
        start = time.perf_counter()
        call(y, p)
        times.append(time.perf_counter() - start)
    return min(times)


def shown(taken: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if taken >= size:
            return f"{taken / size:.3g} {unit}"
    return f"{taken / 1e-6:.3g} µs"


def every_measure(n: int) -> None:
    print(f"\n## Every measure of {n} rounds, to both arrays checked and nothing else\n")
    print("| measure | time | ratio |\n|---|---|---|")
    y, p = rounds(n, 0)
    nothing = least(_check.predictions, y, p)
    for call in MEASURES:
        taken = least(call, y, p)
        name = call.__qualname__
        print(f"| `{name}` | {shown(taken)} | **{taken / nothing:.1f}** |", flush=True)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("--quick", action="store_true", help="up to 100,000 rounds")
    sizes = (10, 100, 1_000, 100_000) + (() if asked.parse_args().quick else (10_000_000,))
    header("The commonest calls", "calls.py", "numpy")
    print(f"\nForecasts uniform, outcomes with chance p^1.2; the quickest run, least and largest of {len(SEEDS)} seeds.\n")  # fmt: skip
    print("| call | " + " | ".join(f"{n:,} rounds" for n in sizes) + " |")
    print("|---" * (len(sizes) + 1) + "|")
    for name, call in (LIMITS | CALLS).items():
        cells = []
        for n in sizes:
            found = [least(call, *rounds(n, seed)) for seed in SEEDS]
            low, high = shown(min(found)), shown(max(found))
            cells.append(low if low == high else f"{low} to {high}")
        title = name if name in LIMITS else f"`{name}`"
        print(f"| {title} | " + " | ".join(cells) + " |", flush=True)
    every_measure(100)


if __name__ == "__main__":
    main()
