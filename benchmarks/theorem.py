"""The theorem, measured: distances to calibration of the forecasters, beside their certificates and bounds.

    python benchmarks/pages.py theorem && python docs/make_pictures.py theorem  # into the docs; some minutes, on a busy machine too
    python benchmarks/theorem.py  # to look at

Needs the package installed. The picture is drawn from the page's tables.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from distance import OUTCOMES, play, sizes
from timing import header, picture

import truecast as tc

FORECASTERS: dict[str, Callable[[int], Any]] = {
    "AOSA, lower end (the paper)": lambda rounds: tc.AlmostOneStepAhead(horizon=rounds),
    "AOSA, middle": lambda rounds: tc.AlmostOneStepAhead(horizon=rounds, at="middle"),
    "BentGrid": lambda rounds: tc.BentGrid(horizon=rounds),
}
# rounds up to which the distance itself is asked for, and how closely beyond
EXACTLY, RTOL = 10_000, 1e-6
WHAT = """
This page shows how far the forecasts of `AlmostOneStepAhead` (AOSA) and `BentGrid`, built for T rounds, are from
calibrated ones. CalDist is a total, computed by `calibration_distance`: exactly up to {exactly:,} rounds, and to {rtol:g}
relative beyond, unless the time limit of {limit:g} s ends a search. The certificate is known after
every round, the proved bound before the first (theorems 3, 5 and 7 of [the theory](theory.md));
2 sqrt(T) + 1 is the bound of the paper.

Outcomes are: fair coins; 0, 1, 0, 1, ...; the threshold, which sees the forecast p and is 1 if p <= 1/2; greedy ones,
which see the ladder and choose the outcome that makes D + A, deviation plus biases, larger; and all ones.

In every row CalDist <= certificate <= proved bound <= 2 sqrt(T) + 1; otherwise the script would have stopped.
"""


@dataclass(frozen=True)
class Row:
    """A forecaster and its opponent, after a number of rounds."""

    rounds: int
    forecaster: str
    outcomes: str
    lower: float
    upper: float
    exact: bool
    certificate: float
    bound: float
    paper: float


def measured(rounds: int, name: str, kind: str, limit: float) -> Row:
    """Play, measure, and insist on the theorem."""
    print(f"{name}, {kind}, {rounds:,} rounds", file=sys.stderr, flush=True)
    forecaster = FORECASTERS[name](rounds)
    y, p = play(forecaster, kind, rounds)
    rtol = 0.0 if rounds <= EXACTLY else RTOL
    found = tc.calibration_distance(y, p, rtol=rtol, time_limit=limit, total=True)
    proved = forecaster.certificate
    row = Row(
        rounds,
        name,
        kind,
        found.lower,
        found.upper,
        found.exact,
        proved.bound,
        proved.a_priori,
        proved.paper,
    )
    # the certificate is of the fractions that the forecasts stand for; an upper bound that is not
    # tight proves nothing
    least = found.upper * (1 - 1e-8) if found.exact else found.lower
    if not least <= proved.bound * (1 + 1e-12) + rounds * 2.0**-54:
        raise RuntimeError(f"the distance is above the certificate, so one of them is wrong: {row}")
    if not proved.bound <= proved.a_priori <= proved.paper:
        raise RuntimeError(f"the certificate is above what was proved before: {row}")
    return row


def table(rows: list[Row]) -> None:
    rounds = rows[0].rounds
    print(f"\n## {rounds:,} rounds\n")
    print("| forecaster | outcomes | CalDist, at least | at most | relative gap | ", end="")
    print("certificate | proved bound | 2 sqrt(T) + 1 | CalDist / sqrt(T) |\n" + "|---" * 9 + "|")
    for row in rows:
        gap = "exact" if row.exact else f"{(row.upper - row.lower) / row.upper:.1e}"
        proved = f"{row.certificate:.6f} | {row.bound:.6f} | {row.paper:.6f}"
        print(
            f"| {row.forecaster} | {row.outcomes} | {row.lower:.6f} | {row.upper:.6f} | {gap} | ",
            end="",
        )
        print(f"{proved} | **{row.upper / math.sqrt(rounds):.3f}** |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--rounds", type=sizes, default=[100, 1_000, 10_000, 100_000], help="such as 100,1000"
    )
    parser.add_argument("--time-limit", type=float, default=900.0, help="seconds for a distance")
    options = parser.parse_args()
    header("The theorem, measured", "theorem.py", "numpy")
    print(WHAT.format(exactly=EXACTLY, rtol=RTOL, limit=options.time_limit).rstrip())
    picture("theorem", "CalDist over sqrt(T), a panel for each forecaster, below what is proved")
    print("\nThe picture shows CalDist and the two bounds, all over sqrt(T).")
    rows: list[Row] = []
    for rounds in options.rounds:
        rows += [
            measured(rounds, name, kind, options.time_limit)
            for name in FORECASTERS
            for kind in OUTCOMES
        ]
        table(rows[-len(FORECASTERS) * len(OUTCOMES) :])


if __name__ == "__main__":
    main()
