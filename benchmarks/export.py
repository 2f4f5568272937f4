"""Tables of a frozen map: how large, how close, how long: `python benchmarks/export.py`.

Processor time, one run of each. docs/guides/export.md shows it.
"""

import time

import numpy as np

import truecast as tc

MANY = 100_000


def trained(rounds: int) -> tc.Recalibrator:
    rng = np.random.default_rng(0)
    scores = rng.random(rounds)
    made = tc.Recalibrator()
    made.forecast_many(scores, rng.random(rounds) < 0.1 + 0.8 * scores**1.5)
    return made


def main() -> None:
    rng = np.random.default_rng(5)
    scores = np.concatenate(
        (rng.random(MANY), 10.0 ** -(300 * rng.random(MANY)), np.arange(MANY) / MANY)
    )
    print(
        f"{'rounds':>9} {'tolerance':>9} {'knots':>7} {'kB':>6} {'found':>8} {'elsewhere':>9} {'s':>5}"
    )
    for tolerance in (1e-6, 1e-4):
        for rounds in (1_000, 100_000, 1_000_000):
            recalibrator = trained(rounds)
            start = time.process_time()
            table = recalibrator.to_table(tolerance=tolerance)
            took = time.process_time() - start
            off = np.abs(table(scores) - recalibrator.predict_many(scores)).max()
            size = len(table.to_json()) / 1e3
            print(
                f"{rounds:9,} {tolerance:9.0e} {len(table):7,} {size:6,.0f} {table.error:8.1e} {off:9.1e} {took:5.1f}"
            )


if __name__ == "__main__":
    main()
