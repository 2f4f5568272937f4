"""What the forecaster on the arc costs, holds and proves, as ratios taken in one run.

    python benchmarks/pages.py arc  # into the docs; three minutes
    python benchmarks/arc.py  # to look at; --quick for a hundredth, --long for more seeds and sizes

Needs the package installed.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from statistics import median

import numpy as np
from timing import header, pair, seconds

import truecast as tc

LONG = "coin", "periodic"  # played for the most rounds, too
Rates = Callable[[np.ndarray], np.ndarray]
OUTCOMES: dict[str, Rates] = {
    "coin": lambda t: np.full(len(t), 0.5),
    "rare, 1 in 100": lambda t: np.full(len(t), 0.01),
    "drifting rate": lambda t: 0.5 + 0.4 * np.sin(20 * t),
    "periodic": lambda t: (np.arange(len(t)) % 2).astype(float),
}


def outcomes(rates: Rates, rounds: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    parts = np.array_split(np.arange(rounds), max(1, rounds // 10**6))
    return np.concatenate(
        [(rng.random(len(t)) < rates(t / rounds)).astype(np.uint8) for t in parts]
    )


BATCH = """\
ns a round of `forecast_many`, the median of seeds, each run once, and in the same run `HorizonFree`; the knots of the tree; and how far the energy that the certificate is computed from is off a
recomputation in extended precision.
"""


def batch(seeds: dict[int, int], long: bool) -> None:
    print("\n## Batch\n")
    print(BATCH)
    print(
        "| outcomes | rounds | seeds | Arc | HorizonFree | ratio | knots | / T^(2/3) | E / T | E off by |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name, rates in OUTCOMES.items():
        sizes = list(seeds) if long or name in LONG else list(seeds)[:-1]
        shortest = 0.0
        for rounds in sizes:
            ours, other = [], []
            out = np.zeros(rounds)
            for seed in range(seeds[rounds]):
                y = outcomes(rates, rounds, seed)
                f = tc.Arc()
                ours.append(
                    seconds(lambda f=f, y=y, out=out: f.forecast_many(y, out=out), 1) / rounds * 1e9
                )
                other.append(
                    seconds(lambda y=y, out=out: tc.HorizonFree().forecast_many(y, out=out), 1)
                    / rounds
                    * 1e9
                )
            arc, free = median(ours), median(other)
            shortest = shortest or arc
            energy = f.energy.energy
            off = abs(energy / recomputed(f.tally) - 1)
            print(
                f"| {name} | {rounds:,} | {seeds[rounds]} | {arc:.0f} | {free:.0f} | **{arc / free:.1f}** | "
                f"{f.knots:,} | "
                f"{f.knots / rounds ** (2 / 3):.2f} | {energy / rounds:.4f} | {off:.0e} |"
            )
            sys.stdout.flush()
            if rounds == sizes[-1]:
                print(
                    f"| {name} | {rounds:,} / {sizes[0]:,} | | **{arc / shortest:.2f}** | | | | | | |"
                )


def recomputed(tally: tc.Tally) -> float:
    """E in extended precision, by a plain double pass."""
    p = tally.p.astype(np.longdouble)
    r = tally.ones - (tally.zeros + tally.ones) * p

    def shape(q: np.ndarray) -> np.ndarray:
        x = 1 - np.sqrt(q)
        return (
            np.longdouble(121)
            / 123
            * (4 + x * (6 + x * (45 * x - 30)))
            / (np.longdouble(1.75) - x) ** 2
        )

    rise, fall = r * shape(1 - p), r * shape(p)
    before = np.cumsum(rise) - rise
    return float((fall * (2 * before + rise)).sum())


def single(calls: int) -> None:
    y = np.random.default_rng(0).integers(0, 2, calls).tolist()
    ratio, ours, _ = pair(tc.Arc, y, repeat=2)
    f = tc.Arc()
    f.forecast_many(y)
    certificate = seconds(lambda: f.certificate) * 1e6
    print("\n## From Python\n")
    print(
        f"predict + observe, {calls:,} rounds: {ours:.0f} ns a pair, {ratio:.1f} times a "
        "pair of empty methods"
    )
    print(f"\ncertificate, from {f.knots:,} knots: {certificate:.0f} us")
    print(
        f"\nsaved as JSON: {len(f.to_json()) / f.knots:.0f} letters a knot; in memory 64 "
        "bytes a knot"
    )


def bounds() -> None:
    print("\n## Proved before the first round, CalDist / sqrt(T)\n")
    print("| T | Arc | HorizonFree | BentGrid, which knows T | the paper |")
    print("|---|---|---|---|---|")
    for rounds in [10**k for k in range(2, 10)]:
        proved = [tc.Arc(), tc.HorizonFree(), tc.BentGrid(horizon=rounds)]
        cells = [f"{float(f.a_priori(rounds)) / math.sqrt(rounds):.3f}" for f in proved]
        print(f"| {rounds:,} | {' | '.join(cells)} | {2 + 1 / math.sqrt(rounds):.3f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a hundredth of the rounds")
    parser.add_argument("--long", action="store_true", help="more seeds, all of 10^8 rounds")
    options = parser.parse_args()
    scale = 100 if options.quick else 1
    header("Benchmarks: the arc", "arc.py", "numpy")
    bounds()
    seeds = {10**6: 3, 10**7: 3 if options.long else 1, 10**8: 1}
    batch({rounds // scale: count for rounds, count in seeds.items()}, options.long)
    single(10**6 // scale)


if __name__ == "__main__":
    main()
