"""The calibration game of a few rounds: its value, and how far from it the forecasters are.

    python benchmarks/pages.py minimax  # into the docs; ten minutes, 2 GB
    python benchmarks/minimax.py  # to look at

Needs the package installed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from itertools import product
from math import ceil, floor
from typing import Any

from timing import header

import truecast as tc
from truecast.arena.minimax import GameValue, minimax_value


def best_aosa(rounds: int, at: Any) -> tc.AlmostOneStepAhead:
    return tc.AlmostOneStepAhead(grid=tc.AlmostOneStepAhead.best_grid(rounds, at), at=at)


FORECASTERS: dict[str, Callable[[int], Any]] = {
    "AOSA, lower (the paper)": lambda rounds: tc.AlmostOneStepAhead(horizon=rounds),
    "AOSA, upper": lambda rounds: tc.AlmostOneStepAhead(horizon=rounds, at="upper"),
    "AOSA, lower, best grid": lambda rounds: best_aosa(rounds, "lower"),
    "AOSA, upper, best grid": lambda rounds: best_aosa(rounds, "upper"),
    "AOSA, middle": lambda rounds: best_aosa(rounds, "middle"),
    "BentGrid": lambda rounds: tc.BentGrid(horizon=rounds),
    "HorizonFree": lambda rounds: tc.HorizonFree(),
    "HorizonFree, middle": lambda rounds: tc.HorizonFree(at="middle"),
}
GAMES = """
The total CalDist that the best forecaster pays for T rounds against the best adversary.
V is for an adversary who knows how each forecast is drawn but not the draw, W for one who sees the forecast first. *At
least* and *at most* are proved bounds ([the game](minimax.md), theorems 2 and 3), rounded outwards in the fifth digit, except
for differences below 1e-10; the seconds, of processor time, are for both. For T <= 4 the values are exactly V = 1/2, 1/2, 2/3, 47/64
and W = 1/2, 1/2, 2/3, 3/4 (theorem 4).
"""
WORST = """
The largest CalDist over all 2^T strings of outcomes, by `calibration_distance`. These forecasters are deterministic:
anyone who knows one knows its next forecast, so compare with W; nothing here can be below it. Without a named grid,
it is the one built for T rounds; the best grid is from `best_grid`.
"""


def shown(value: GameValue) -> str:
    return (
        f"{floor(1e5 * value.lower + 1e-5) / 1e5:.5f} | {ceil(1e5 * value.upper - 1e-5) / 1e5:.5f}"
    )


def solved(rounds: int) -> tuple[GameValue, GameValue]:
    """Print a row of the first table."""
    start = time.process_time()
    drawn, seen = (
        minimax_value(rounds, deterministic=deterministic) for deterministic in (False, True)
    )
    by = f"{drawn.upper / rounds**0.5:.3f} | {drawn.upper / rounds ** (1 / 3):.3f}"
    print(
        f"| {rounds} | {shown(drawn)} | {shown(seen)} | {by} | {time.process_time() - start:.1f} |",
        flush=True,
    )
    return drawn, seen


def worst(name: str, rounds: int, least: float) -> float:
    """Return the largest distance of a forecaster, and insist that it is not below the value."""
    found = 0.0
    for y in product((0, 1), repeat=rounds):
        distance = tc.calibration_distance(
            y, FORECASTERS[name](rounds).forecast_many(y), total=True
        )
        found = max(found, distance.upper)
    if found < least:
        raise RuntimeError(f"{name} is better than can be in {rounds} rounds: {found} < {least}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7, help="of the longest game, at most 7")
    options = parser.parse_args()
    header("The calibration game, measured", "minimax.py", "numpy")
    print("\n## The value" + f"\n{GAMES}")
    print(
        "| T | V at least | at most | W at least | at most | V / sqrt(T) at most | V / "
        "T^(1/3) at most | s |"
    )
    print("|---" * 8 + "|")
    values = {rounds: solved(rounds) for rounds in range(1, options.rounds + 1)}
    print("\n## The forecasters" + f"\n{WORST}")
    print(
        "| T | W at least | at most | "
        + " | ".join(FORECASTERS)
        + " |\n"
        + "|---" * (3 + len(FORECASTERS))
        + "|"
    )
    for rounds, (_, seen) in values.items():
        found = " | ".join(f"{worst(name, rounds, seen.lower):.5f}" for name in FORECASTERS)
        print(f"| {rounds} | {shown(seen)} | {found} |", flush=True)


if __name__ == "__main__":
    main()
